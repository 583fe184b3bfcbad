//! Words without their quotes.

use std::iter::Peekable;
use std::str::Chars;

/// A word as a program would get it, and whether the shell puts something in first.
pub(super) struct Word {
    pub text: String,
    pub dynamic: bool,
}

/// Takes the quotes off a word. Expansions of the shell stay as they are; a `$` or backtick that is a plain character
/// gets a backslash, so that the two are not confused.
pub(super) fn unquote(raw: &str) -> Word {
    let mut word = Word { text: String::with_capacity(raw.len()), dynamic: false };
    let mut chars = raw.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\'' => word.literal(&mut chars, false),
            '"' => word.double(&mut chars),
            '\\' => word.escaped(&mut chars),
            '$' if chars.peek() == Some(&'\'') => {
                chars.next();
                word.literal(&mut chars, true);
            }
            '$' if chars.peek() == Some(&'"') => {}
            _ => word.open(c),
        }
    }
    word
}

impl Word {
    /// A character that the shell looks at.
    fn open(&mut self, c: char) {
        self.dynamic |= matches!(c, '$' | '`');
        self.text.push(c);
    }

    /// A character that is only that.
    fn closed(&mut self, c: char) {
        if matches!(c, '$' | '`') {
            self.text.push('\\');
        }
        self.text.push(c);
    }

    fn escaped(&mut self, chars: &mut Peekable<Chars<'_>>) {
        match chars.next() {
            Some('\n') => {}
            Some(c) => self.closed(c),
            None => self.text.push('\\'),
        }
    }

    /// Reads the text in single quotes; with escapes in `$'...'`.
    fn literal(&mut self, chars: &mut Peekable<Chars<'_>>, escapes: bool) {
        while let Some(c) = chars.next() {
            match c {
                '\'' => return,
                '\\' if escapes => match chars.next() {
                    Some('n') => self.text.push('\n'),
                    Some('t') => self.text.push('\t'),
                    Some(c) => self.closed(c),
                    None => {}
                },
                _ => self.closed(c),
            }
        }
    }

    fn double(&mut self, chars: &mut Peekable<Chars<'_>>) {
        while let Some(c) = chars.next() {
            match c {
                '"' => return,
                '\\' if chars.peek().is_some_and(|next| "$`\"\\\n".contains(*next)) => self.escaped(chars),
                _ => self.open(c),
            }
        }
    }
}
