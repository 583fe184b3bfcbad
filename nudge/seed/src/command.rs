//! Builds the command line of a seed. Names from a file enter the line only as quoted words.

/// Keywords of the shell. A word that is one of them must be quoted at the beginning of a command.
const RESERVED: &[&str] = &[
    "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "in", "function",
    "select", "time",
];

/// A command line that a reader builds. It has two kinds of words: Nudge's own words, unchanged, and words from a
/// stranger's file. A word from a file is quoted if a shell would not read it as one plain word.
///
/// Nudge's own words are `&'static str`, so the compiler rejects a text from a file in their place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandLine(String);

impl CommandLine {
    /// Begins a line with Nudge's own words; `words` is empty when the first word comes from the file.
    pub fn new(words: &'static str) -> Self {
        Self(words.trim_end().to_owned())
    }

    /// Adds Nudge's own words.
    #[must_use]
    pub fn with_words(mut self, words: &'static str) -> Self {
        self.push_text(words);
        self
    }

    /// Adds a word from the file. `None` for a word that the program would read as an option (`--file=/etc/passwd`).
    pub fn word(self, word: &str) -> Option<Self> {
        (!word.starts_with('-')).then(|| self.any_word(word))
    }

    /// Makes a command that the file itself lists word by word. The words may be options.
    pub fn of_words<'a>(words: impl IntoIterator<Item = &'a str>) -> Self {
        words.into_iter().fold(Self::default(), Self::any_word)
    }

    /// Makes a command from a line that the file itself passes to a shell.
    pub fn of_shell(line: &str) -> Self {
        Self(line.to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn into_string(self) -> String {
        self.0
    }

    fn any_word(mut self, word: &str) -> Self {
        let is_plain_char =
            |c: char| c.is_alphanumeric() || "_-./:@%+,".contains(c) || (c == '=' && !self.0.is_empty());
        let is_reserved = self.0.is_empty() && RESERVED.contains(&word);
        if !word.is_empty() && word.chars().all(is_plain_char) && !is_reserved {
            self.push_text(word);
        } else {
            self.push_text(&format!("'{}'", word.replace('\'', r"'\''")));
        }
        self
    }

    fn push_text(&mut self, text: &str) {
        if !self.0.is_empty() {
            self.0.push(' ');
        }
        self.0 += text;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_a_file_stays_one_word() {
        let line = |word: &str| CommandLine::new("cargo run -p").word(word).map(CommandLine::into_string);
        assert_eq!(line("app").as_deref(), Some("cargo run -p app"));
        assert_eq!(line("p; touch x").as_deref(), Some("cargo run -p 'p; touch x'"));
        assert_eq!(line("it's").as_deref(), Some(r"cargo run -p 'it'\''s'"));
        assert_eq!(line(""), Some("cargo run -p ''".to_owned()));
        assert_eq!(line("--config=x"), None);
        let first = |word: &str| CommandLine::new("").word(word).map(CommandLine::into_string);
        assert_eq!((first("a=b"), first("if")), (Some("'a=b'".to_owned()), Some("'if'".to_owned())));
        assert_eq!(CommandLine::of_words(["npm", "--prefix=a b", "ci"]).as_str(), "npm '--prefix=a b' ci");
    }
}

#[cfg(all(test, unix))]
mod properties {
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    /// Lets a real shell split a line into words, and returns the words.
    fn split(line: &str, folder: &std::path::Path) -> Vec<String> {
        let mut shell = Command::new("sh");
        shell.current_dir(folder).args(["-c", &format!("printf '%s\\0' {line}")]);
        let output = shell.output().unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        text.split_terminator('\0').map(str::to_owned).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
        #[test]
        fn a_real_shell_reads_the_words_that_were_given(
            words in proptest::collection::vec("[^\0-]{0,12}|[;&|$`'\"\\\\(){}<>*?~#! \n\t=a-]{0,12}|\\$\\(touch x\\)|`touch x`|a; touch x", 1..5),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let given: Vec<_> = words.iter().filter(|word| !word.starts_with('-')).map(String::as_str).collect();
            let line = given.iter().try_fold(CommandLine::new("make -k"), |line, word| line.word(word)).unwrap();
            let expected: Vec<_> = ["make", "-k"].into_iter().chain(given).collect();
            prop_assert_eq!(split(line.as_str(), folder.path()), expected);
            let all: Vec<_> = words.iter().map(String::as_str).collect();
            // A first word that begins with a dash would be an option of the `printf` in this test.
            let named = CommandLine::of_words([["tool"].as_slice(), &all].concat());
            prop_assert_eq!(&split(named.as_str(), folder.path())[1..], &words[..]);
            prop_assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing was run");
        }
    }
}
