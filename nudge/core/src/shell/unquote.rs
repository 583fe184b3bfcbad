//! Removes the quotes of words.

use std::iter::Peekable;
use std::str::Chars;

/// A word as a program would receive it. `dynamic` is true when the shell replaces a part of the word first.
pub(super) struct ShellWord {
    pub text: String,
    pub dynamic: bool,
}

/// Removes the quotes of a word. Expansions of the shell stay as written. A `$` or backtick that is a plain character
/// gets a backslash, so that a reader can tell it from an expansion.
pub(super) fn unquote_word(raw: &str) -> ShellWord {
    let mut word = ShellWord { text: String::with_capacity(raw.len()), dynamic: false };
    let mut chars = raw.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\'' => word.read_single_quoted(&mut chars, false),
            '"' => word.read_double_quoted(&mut chars),
            '\\' => word.read_escaped(&mut chars),
            '$' if chars.peek() == Some(&'\'') => {
                chars.next();
                word.read_single_quoted(&mut chars, true);
            }
            '$' if chars.peek() == Some(&'"') => {}
            _ => word.push_special(c),
        }
    }
    word
}

impl ShellWord {
    /// Adds a character that has a special meaning for the shell.
    fn push_special(&mut self, c: char) {
        self.dynamic |= matches!(c, '$' | '`');
        self.text.push(c);
    }

    /// Adds a character without a special meaning for the shell.
    fn push_plain(&mut self, c: char) {
        if matches!(c, '$' | '`') {
            self.text.push('\\');
        }
        self.text.push(c);
    }

    fn read_escaped(&mut self, chars: &mut Peekable<Chars<'_>>) {
        match chars.next() {
            Some('\n') => {}
            Some(c) => self.push_plain(c),
            None => self.text.push('\\'),
        }
    }

    /// Reads the text in single quotes. `escapes` is true in `$'...'`, where a backslash begins an escape.
    fn read_single_quoted(&mut self, chars: &mut Peekable<Chars<'_>>, escapes: bool) {
        while let Some(c) = chars.next() {
            match c {
                '\'' => return,
                '\\' if escapes => match chars.next() {
                    Some('n') => self.text.push('\n'),
                    Some('t') => self.text.push('\t'),
                    Some(c) => self.push_plain(c),
                    None => {}
                },
                _ => self.push_plain(c),
            }
        }
    }

    fn read_double_quoted(&mut self, chars: &mut Peekable<Chars<'_>>) {
        while let Some(c) = chars.next() {
            match c {
                '"' => return,
                '\\' if chars.peek().is_some_and(|next| "$`\"\\\n".contains(*next)) => self.read_escaped(chars),
                _ => self.push_special(c),
            }
        }
    }
}
