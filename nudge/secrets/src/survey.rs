//! Surveys a text once, before any rule runs. Most rules need a certain character or a long word, and most texts have
//! neither.

/// For each byte, the kinds of bytes to which it belongs, as bits.
const KINDS: [u8; 256] = {
    let mut table = [0; 256];
    let breaks = *b" \t\n\r\x0b\x0c\"'`,;";
    let mut i = 0;
    while i < breaks.len() {
        table[breaks[i] as usize] = TextSurvey::BREAK;
        i += 1;
    }
    let blanks = *b" \t\n\r\x0b\x0c";
    i = 0;
    while i < blanks.len() {
        table[blanks[i] as usize] |= TextSurvey::BLANK;
        i += 1;
    }
    let separators = *b"=:>,";
    i = 0;
    while i < separators.len() {
        table[separators[i] as usize] |= TextSurvey::SEPARATOR;
        i += 1;
    }
    table[b'@' as usize] = TextSurvey::AT;
    table[b'-' as usize] = TextSurvey::DASH;
    table
};

/// The kinds of bytes that occur in a text, and the text's long words.
pub(super) struct TextSurvey<'a> {
    pub text: &'a str,
    seen: u8,
    /// The words that have at least [`TextSurvey::WORD_MIN`] bytes.
    pub words: Vec<&'a str>,
}

impl<'a> TextSurvey<'a> {
    /// A byte that ends a word: white space, a quote, a comma or a semicolon.
    const BREAK: u8 = 1;
    const DASH: u8 = 16;
    /// White space.
    pub const BLANK: u8 = 2;
    /// A byte that may separate a name from a value.
    pub const SEPARATOR: u8 = 4;
    pub const AT: u8 = 8;
    /// Three dashes in a row, as in PEM armour.
    pub const DASHES: u8 = 32;

    /// Length of the shortest word that can be a token by its looks alone, in bytes.
    const WORD_MIN: usize = super::formats::SHORTEST;

    pub fn new(text: &'a str) -> Self {
        let bytes = text.as_bytes();
        let mut survey = Self { text, seen: 0, words: Vec::new() };
        let mut start = 0;
        for (i, &b) in bytes.iter().enumerate() {
            let kind = KINDS[usize::from(b)];
            if kind == 0 {
                continue;
            }
            survey.seen |= kind;
            if kind & Self::BREAK != 0 {
                survey.keep_word(start, i);
                start = i + 1;
            } else if kind == Self::DASH && bytes[..i].ends_with(b"--") {
                survey.seen |= Self::DASHES;
            }
        }
        survey.keep_word(start, bytes.len());
        survey
    }

    fn keep_word(&mut self, start: usize, end: usize) {
        if end - start >= Self::WORD_MIN {
            self.words.extend(self.text.get(start..end));
        }
    }

    pub const fn has_any(&self, kinds: u8) -> bool {
        self.seen & kinds != 0
    }

    /// Returns true when no rule can find anything in this text, if the text is assigned to no name.
    pub fn is_plain(&self) -> bool {
        self.words.is_empty() && !self.has_any(Self::BLANK | Self::SEPARATOR | Self::AT)
    }

    /// Returns the words that have at least `min` bytes.
    pub fn long_words(&self, min: usize) -> impl Iterator<Item = &'a str> {
        self.words.iter().copied().filter(move |word| word.len() >= min)
    }
}
