//! Parses a markdown text into sections, blocks and links. A section is the text below a heading.

use std::ops::Range;

use nudge_core::text::{after_mark, before_mark};
use pulldown_cmark::{CowStr, Event, LinkType, Options, Parser, Tag, TagEnd};

/// The heading below which the program basic-memory lists the relations of a note.
const RELATIONS: &str = "relations";
/// The most characters of a heading. The rest of a longer heading is cut off.
const MAX_TITLE_CHARS: usize = 200;
/// The most characters of a relation's kind.
const MAX_KIND_CHARS: usize = 40;

/// A parsed text.
#[derive(Debug, Default)]
pub struct TextOutline {
    /// The sections, in order. The first is the text before any heading.
    pub sections: Vec<OutlineSection>,
    /// The blocks, in order. Each block reaches to the start of the next block, without the blank lines between the
    /// two.
    pub blocks: Vec<OutlineBlock>,
    /// The links, in order.
    pub links: Vec<OutlineLink>,
}

/// A section: the text below a heading, up to the next heading.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct OutlineSection {
    /// The level of the heading; 0 for the text before any heading.
    pub level: u8,
    /// The titles of the headings above the section, and of its own heading.
    pub path: Vec<String>,
}

/// A block, such as a paragraph, a fence, a table, or a list item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutlineBlock {
    /// The range of the block in the text, in bytes.
    pub range: Range<usize>,
    /// The index of the block's section.
    pub section: usize,
    /// The form of the block.
    pub form: BlockForm,
}

/// The form of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockForm {
    /// A heading.
    Heading,
    /// Sentences. The block may be cut between two sentences.
    Prose,
    /// Lines that cannot be understood alone: a fence, a table, a list item, HTML.
    Whole,
}

/// A link to another file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutlineLink {
    /// The title or the path that the link points to.
    pub target: String,
    /// Is true for `[[target]]`, and false for a link to a path.
    pub is_wiki: bool,
    /// The text before the link, in a list item below the heading *Relations*; else `None`.
    pub relation: Option<String>,
}

impl TextOutline {
    /// Parses a text.
    pub fn parse(text: &str) -> Self {
        let options = Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES | Options::ENABLE_WIKILINKS;
        let mut reader = OutlineReader {
            outline: Self { sections: vec![OutlineSection::default()], ..Self::default() },
            ..OutlineReader::default()
        };
        for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
            reader.read_event(&event, range);
        }
        let mut outline = reader.outline;
        // The parser makes no event for some text, such as the definition of a link. This text becomes part of the
        // block before it.
        let mut end = text.len();
        for block in outline.blocks.iter_mut().rev() {
            let begin = block.range.start.min(end);
            block.range = begin..begin + text[begin..end].trim_end().len();
            end = begin;
        }
        outline.blocks.retain(|block| !block.range.is_empty());
        match outline.blocks.first_mut() {
            Some(first) => first.range.start = text.len() - text.trim_start().len(),
            None if !text.trim().is_empty() => {
                let range = text.len() - text.trim_start().len()..text.trim_end().len();
                outline.blocks.push(OutlineBlock { range, section: 0, form: BlockForm::Prose });
            }
            None => {}
        }
        outline
    }

    /// Returns the title of the first heading; `None` without a heading.
    pub fn first_heading(&self) -> Option<&str> {
        self.sections.iter().find_map(|section| section.path.last()).map(String::as_str)
    }
}

/// The state of the parser between two events.
#[derive(Default)]
struct OutlineReader {
    outline: TextOutline,
    /// The levels of the headings above the present text, in increasing order.
    above: Vec<u8>,
    /// The number of open elements.
    depth: usize,
    /// The depth at which a list item is a block; 0 outside of a list.
    list: usize,
    /// The text of the heading that is being read.
    heading: Option<String>,
    /// The text of a list item before the item's first link.
    before: Option<String>,
}

impl OutlineReader {
    fn read_event(&mut self, event: &Event<'_>, range: Range<usize>) {
        match event {
            Event::Start(tag) => self.start_tag(tag, range),
            Event::End(tag) => self.end_tag(*tag),
            Event::Text(text) | Event::Code(text) => {
                for open in [&mut self.heading, &mut self.before].into_iter().flatten() {
                    open.push_str(text);
                }
            }
            Event::SoftBreak | Event::HardBreak => {
                if let Some(heading) = &mut self.heading {
                    heading.push(' ');
                }
            }
            Event::Rule if self.depth == 0 => self.add_block(range, BlockForm::Whole),
            _ => {}
        }
    }

    fn start_tag(&mut self, tag: &Tag<'_>, range: Range<usize>) {
        match tag {
            Tag::Heading { .. } if self.depth == 0 => {
                self.heading = Some(String::new());
                self.add_block(range, BlockForm::Heading);
            }
            Tag::List(_) if self.depth == 0 => self.list = 1,
            Tag::Paragraph if self.depth == 0 => self.add_block(range, BlockForm::Prose),
            Tag::Item => {
                if self.list == self.depth && self.list > 0 {
                    self.add_block(range, BlockForm::Whole);
                }
                self.before = Some(String::new());
            }
            Tag::Link { link_type, dest_url, .. } | Tag::Image { link_type, dest_url, .. } => {
                let is_image = matches!(tag, Tag::Image { .. });
                self.add_link(*link_type, dest_url, is_image);
            }
            _ if self.depth == 0 => self.add_block(range, BlockForm::Whole),
            _ => {}
        }
        self.depth += 1;
    }

    fn end_tag(&mut self, tag: TagEnd) {
        self.depth = self.depth.saturating_sub(1);
        match tag {
            TagEnd::Heading(level) if self.depth == 0 => {
                let level = level as u8;
                let Some(title) = self.heading.take() else { return };
                let title: String = title.trim().chars().take(MAX_TITLE_CHARS).collect();
                while self.above.last().is_some_and(|above| *above >= level) {
                    self.above.pop();
                }
                let above = self.outline.sections.last().map_or(&[][..], |section| &section.path);
                let path = above.iter().take(self.above.len()).cloned().chain([title]).collect();
                self.above.push(level);
                self.outline.sections.push(OutlineSection { level, path });
                if let Some(block) = self.outline.blocks.last_mut() {
                    block.section = self.outline.sections.len() - 1;
                }
            }
            TagEnd::List(_) if self.depth == 0 => self.list = 0,
            TagEnd::Item => self.before = None,
            _ => {}
        }
    }

    fn add_block(&mut self, range: Range<usize>, form: BlockForm) {
        let section = self.outline.sections.len() - 1;
        self.outline.blocks.push(OutlineBlock { range, section, form });
    }

    fn add_link(&mut self, kind: LinkType, target: &CowStr<'_>, is_image: bool) {
        let is_wiki = matches!(kind, LinkType::WikiLink { .. });
        let target = before_mark(target, &['#', '^']).trim();
        let file = after_mark(target, &['/', '\\']);
        let is_markdown = file.to_ascii_lowercase().ends_with(".md");
        let is_elsewhere = target.contains("://") || target.starts_with("mailto:");
        // An image counts as a link only if it shows another note.
        let is_asset = is_image && file.contains('.') && !is_markdown;
        let relation = self.before.take();
        if target.is_empty() || is_elsewhere || is_asset || (!is_wiki && !is_markdown) {
            return;
        }
        let section = self.outline.sections.last();
        let is_relation =
            section.and_then(|section| section.path.last()).is_some_and(|own| own.eq_ignore_ascii_case(RELATIONS));
        let relation = relation.filter(|_| is_relation).map(|text| text.trim().to_owned());
        let relation = relation.filter(|text| !text.is_empty() && text.chars().count() <= MAX_KIND_CHARS);
        self.outline.links.push(OutlineLink { target: target.to_owned(), is_wiki, relation });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A parser that compares each heading with all earlier headings takes minutes for this text.
    #[test]
    fn as_many_headings_as_a_file_may_have_take_no_longer_each() {
        let text = "# [[a]]\n".repeat(120_000);
        let outline = TextOutline::parse(&text);
        assert_eq!((outline.sections.len(), outline.links.len()), (120_001, 120_000));
    }

    #[test]
    fn sections_have_the_headings_above_them() {
        let text = "before\n\n# A\n\n## B `x`\n\ntext\n\n### C\n## D\n\n- # no\n\n# E\n#### F\n\nSetext\n===\n";
        let outline = TextOutline::parse(text);
        let paths: Vec<_> = outline.sections.iter().map(|section| section.path.join(" > ")).collect();
        assert_eq!(paths, ["", "A", "A > B x", "A > B x > C", "A > D", "E", "E > F", "Setext"]);
        assert_eq!(outline.first_heading(), Some("A"));
    }

    #[test]
    fn blocks_are_read_as_one_and_leave_nothing_out() {
        let text = "\n\npara\nmore\n\n```sh\n# no\n\n- no\n```\n- one\n  - in\n\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n> quote\n\n[x]: y.md\n\n***\n<b>\n\nend";
        let outline = TextOutline::parse(text);
        let blocks: Vec<_> = outline.blocks.iter().map(|block| &text[block.range.clone()]).collect();
        assert_eq!(
            blocks,
            [
                "para\nmore",
                "```sh\n# no\n\n- no\n```",
                "- one\n  - in",
                "- two",
                "| a | b |\n|---|---|\n| 1 | 2 |",
                "> quote\n\n[x]: y.md",
                "***",
                "<b>",
                "end"
            ]
        );
        assert_eq!(TextOutline::parse("[x]: y.md\n").blocks.len(), 1, "a text of definitions alone");
        assert!(TextOutline::parse(" \n\n").blocks.is_empty());
    }

    #[test]
    fn links_to_other_notes_are_found() {
        let text = "[[Note]] [[a/b|shown]] [[Note#part]] `[[code]]` [md](../x%20y.md#z) [web](https://a.b/c.md) [txt](a.txt) \
                    ![[pic.png]] ![[embed]] [[]] [[#here]]\n\n## Relations\n- pairs_well_with [[Chocolate]] and [[Tea]]\n- [[Bare]]\n";
        let links = TextOutline::parse(text).links;
        let links: Vec<_> = links.iter().map(|link| (&*link.target, link.is_wiki, link.relation.as_deref())).collect();
        assert_eq!(
            links,
            [
                ("Note", true, None),
                ("a/b", true, None),
                ("Note", true, None),
                ("../x%20y.md", false, None),
                ("embed", true, None),
                ("Chocolate", true, Some("pairs_well_with")),
                ("Tea", true, None),
                ("Bare", true, None)
            ]
        );
    }
}
