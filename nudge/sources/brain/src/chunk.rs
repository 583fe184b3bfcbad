//! Cuts a text into chunks. A search finds each chunk separately. A chunk is a section under its headings: long enough
//! to be understood alone, and short enough for an embedding model.
//!
//! The chunks depend only on the text, not on a model. So an index without a model has the same chunks.

use std::ops::Range;

use crate::outline::{BlockForm, OutlineBlock, OutlineSection, TextOutline};

/// The version of the rules for cutting. A change of the rules needs a new version; then each index is rebuilt.
pub const VERSION: u32 = 1;
/// The most tokens of a chunk.
pub const MAX_TOKENS: usize = 512;
/// A section with fewer tokens is joined with a neighbouring section.
const FEW_TOKENS: usize = 50;
/// The most tokens that a chunk repeats from the chunk before it.
const OVERLAP_TOKENS: usize = 64;
/// The most letters that count as one token. A longer word counts as several tokens.
const LETTERS: usize = 6;

/// A chunk of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextChunk {
    /// The range of the chunk in the text, in bytes.
    pub range: Range<usize>,
    /// The level of the chunk's heading; 0 without a heading.
    pub level: u8,
    /// The headings above the chunk, joined as in `A > B`.
    pub breadcrumb: String,
}

/// Estimates the number of tokens in a text. In a word, every six letters count as one token. A mark counts as one
/// token, and so does each character of a script that has no spaces.
pub fn count_tokens(text: &str) -> usize {
    let mut counter = TokenCounter::default();
    text.bytes().for_each(|byte| counter.add_byte(byte));
    counter.total()
}

/// Counts the tokens of a text, byte by byte.
#[derive(Default)]
struct TokenCounter {
    whole: usize,
    /// The number of letters of the current word so far.
    letters: usize,
}

impl TokenCounter {
    fn add_byte(&mut self, byte: u8) {
        match byte {
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => self.letters += 1,
            // The first byte of a two-byte letter counts as two letters. The bytes after a first byte do not count.
            0xc0..0xe0 => self.letters += 2,
            0x80..0xc0 => {}
            _ => {
                self.whole += self.letters.div_ceil(LETTERS) + usize::from(!byte.is_ascii_whitespace());
                self.letters = 0;
            }
        }
    }

    fn total(&self) -> usize {
        self.whole + self.letters.div_ceil(LETTERS)
    }
}

/// Neighbouring blocks that belong to one section, or to several joined sections.
struct BlockGroup<'a> {
    blocks: Range<usize>,
    tokens: usize,
    level: u8,
    path: &'a [String],
    /// Is true when the group consists only of headings.
    is_bare: bool,
}

/// Cuts a text into chunks.
///
/// ```
/// use nudge_brain::chunk::chunk_text;
/// use nudge_brain::outline::TextOutline;
///
/// let text = format!("# Retries\n\n{}\n\n## Jitter\n\n{}\n", "one two ".repeat(40), "three four ".repeat(40));
/// let chunks = chunk_text(&text, &TextOutline::parse(&text));
/// let breadcrumbs: Vec<_> = chunks.iter().map(|chunk| &*chunk.breadcrumb).collect();
/// assert_eq!(breadcrumbs, ["Retries", "Retries > Jitter"]);
/// ```
pub fn chunk_text(text: &str, outline: &TextOutline) -> Vec<TextChunk> {
    let sizes: Vec<_> = outline.blocks.iter().map(|block| count_tokens(&text[block.range.clone()])).collect();
    let mut chunks = Vec::new();
    for piece in group_blocks(outline, &sizes) {
        let breadcrumb = piece.path.join(" > ");
        let blocks = &outline.blocks[piece.blocks.clone()];
        for range in cut_blocks(text, blocks, &sizes[piece.blocks]) {
            chunks.push(TextChunk { range, level: piece.level, breadcrumb: breadcrumb.clone() });
        }
    }
    chunks
}

/// Groups the blocks into sections, and joins short sections.
fn group_blocks<'a>(outline: &'a TextOutline, sizes: &[usize]) -> Vec<BlockGroup<'a>> {
    let mut pieces: Vec<BlockGroup<'a>> = Vec::new();
    let mut begin = 0;
    for blocks in outline.blocks.chunk_by(|a, b| a.section == b.section) {
        let end = begin + blocks.len();
        let Some(OutlineSection { level, path }) = blocks.first().and_then(|first| outline.sections.get(first.section))
        else {
            continue;
        };
        let piece = BlockGroup {
            blocks: begin..end,
            tokens: sizes[begin..end].iter().sum(),
            level: *level,
            path,
            is_bare: blocks.iter().all(|block| block.form == BlockForm::Heading),
        };
        begin = end;
        match pieces.last_mut() {
            Some(last) if last.can_join(&piece) => last.join(&piece),
            _ => pieces.push(piece),
        }
    }
    pieces
}

impl<'a> BlockGroup<'a> {
    /// Returns true when the next group fits and may be joined with this one. A group of headings may be joined with
    /// any next group. A short group may be joined with a section at the same level or one level below.
    fn can_join(&self, next: &Self) -> bool {
        let is_short = !next.is_bare && (self.tokens < FEW_TOKENS || next.tokens < FEW_TOKENS);
        let parent = |path: &'a [String]| path.split_last().map(|(_, parent)| parent);
        let is_near = parent(next.path).is_some_and(|own| own == self.path || parent(self.path) == Some(own));
        self.tokens + next.tokens <= MAX_TOKENS && (self.is_bare || (is_short && is_near))
    }

    fn join(&mut self, next: &Self) {
        if self.is_bare {
            (self.path, self.level) = (next.path, next.level);
        } else {
            let common = self.path.iter().zip(next.path).take_while(|(a, b)| a == b).count();
            self.path = &self.path[..common];
            self.level = self.level.min(next.level);
        }
        self.blocks.end = next.blocks.end;
        self.tokens += next.tokens;
        self.is_bare &= next.is_bare;
    }
}

/// Cuts a group between its blocks. A block is cut only if it is too large alone. Each chunk repeats the end of the
/// chunk before it.
fn cut_blocks(text: &str, blocks: &[OutlineBlock], sizes: &[usize]) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    // The chunk that is not complete yet: its start, and its tokens.
    let mut open: Option<(usize, usize)> = None;
    let mut end = 0;
    for (index, (block, size)) in blocks.iter().zip(sizes).enumerate() {
        if let Some((begin, used)) = open
            && used + size > MAX_TOKENS
        {
            ranges.push(begin..end);
            let repeated =
                find_overlap(text, &blocks[..index], &sizes[..index], MAX_TOKENS.saturating_sub(*size), begin);
            open = repeated.map(|from| (from, count_tokens(&text[from..end])));
        }
        end = block.range.end;
        if *size > MAX_TOKENS {
            // The parts of a large block follow each other without a gap, so no text is repeated before them.
            let parts = cut_block(text, block.range.clone());
            ranges.extend(parts);
            open = None;
            continue;
        }
        open = Some(match open {
            Some((begin, used)) => (begin, used + size),
            None => (block.range.start, *size),
        });
    }
    if let Some((begin, _)) = open {
        ranges.push(begin..end);
    }
    ranges
}

/// Finds the place where the repeated text begins: at the last blocks that fit, or else at the last sentences of the
/// last block.
fn find_overlap(text: &str, blocks: &[OutlineBlock], sizes: &[usize], room: usize, after: usize) -> Option<usize> {
    let room = room.min(OVERLAP_TOKENS);
    let mut used = 0;
    let mut from = None;
    for (block, size) in blocks.iter().zip(sizes).rev() {
        // All blocks together never fit into the room, so the loop always ends early.
        if used + size > room || block.form == BlockForm::Heading {
            break;
        }
        used += size;
        from = Some(block.range.start);
    }
    if from.is_some() {
        return from;
    }
    let last = blocks.last().filter(|last| last.form == BlockForm::Prose)?;
    let begin = last.range.start.max(after + 1);
    let prose = text.get(begin..last.range.end)?;
    let ends =
        prose.match_indices([' ', '\n']).filter(|(offset, _)| prose[..*offset].ends_with(['.', '!', '?', ':', '。']));
    let mut begins = ends.map(|(offset, _)| offset + 1);
    begins.find(|offset| count_tokens(&prose[*offset..]) <= room).map(|offset| begin + offset)
}

/// Cuts a block that is too large: after a line if possible, else after a sentence, else after a word, else after any
/// character.
fn cut_block(text: &str, block: Range<usize>) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut begin = block.start;
    while begin < block.end {
        let rest = &text[begin..block.end];
        let fits = count_fitting_bytes(rest);
        let head = &rest[..fits];
        let end = if fits == rest.len() {
            fits
        } else {
            let after_line = head.rfind('\n').map(|offset| offset + 1);
            let after_sentence = || head.rfind(". ").map(|offset| offset + 2);
            let after_word = || head.rfind(char::is_whitespace).map(|offset| offset + 1);
            let cut = after_line.or_else(after_sentence).or_else(after_word).unwrap_or(fits);
            if text.is_char_boundary(begin + cut) { cut } else { fits }
        };
        let trimmed = rest[..end].trim_end().len();
        if trimmed > 0 {
            parts.push(begin..begin + trimmed);
        }
        begin += end;
    }
    parts
}

/// Returns the number of bytes at the start of a text that fit into one chunk. The number is never 0, because no single
/// character fills a chunk.
fn count_fitting_bytes(text: &str) -> usize {
    let mut counter = TokenCounter::default();
    let mut is_over = |c: char| {
        c.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| counter.add_byte(byte));
        counter.total() > MAX_TOKENS
    };
    text.char_indices().find(|(_, c)| is_over(*c)).map_or(text.len(), |(offset, _)| offset)
}

#[cfg(test)]
#[path = "chunk_tests.rs"]
mod tests;
