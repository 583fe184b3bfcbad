//! Splits names and sentences into words.

/// Splits a name into words in lower case: `parseHTTPHeader` gives `parse`, `http`, `header`.
pub fn split_name(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    for_each_word(name, &mut String::new(), |word| words.push(word.to_owned()));
    words
}

/// Folds a name: removes differences of case, and separators.
pub fn fold_name(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Calls `take` with each word of a name or a sentence, in lower case. `word` is an empty text that is used again for
/// each word, because an index reads many.
pub fn for_each_word(text: &str, word: &mut String, mut take: impl FnMut(&str)) {
    let mut chars = text.chars().peekable();
    let mut before: Option<char> = None;
    let mut end_word = |word: &mut String| {
        if !word.is_empty() {
            take(word);
            word.clear();
        }
    };
    while let Some(c) = chars.next() {
        let rises = c.is_uppercase()
            && (before.is_some_and(|before| before.is_lowercase() || before.is_numeric())
                || chars.peek().is_some_and(|after| after.is_lowercase()));
        let is_part = c.is_alphanumeric();
        if rises || !is_part {
            end_word(word);
        }
        if c.is_ascii() && is_part {
            word.push(c.to_ascii_lowercase());
        } else if is_part {
            word.extend(c.to_lowercase());
        }
        before = Some(c);
    }
    end_word(word);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_words() {
        for (name, words) in [
            ("parse_config", &["parse", "config"][..]),
            ("parseHTTPHeader", &["parse", "http", "header"]),
            ("HTTPServer", &["http", "server"]),
            ("__init__", &["init"]),
            ("sha256sum", &["sha256sum"]),
            ("v2Beta", &["v2", "beta"]),
            ("a_Bc", &["a", "bc"]),
            ("Größe", &["größe"]),
            ("", &[]),
            ("_", &[]),
        ] {
            assert_eq!(split_name(name), words, "{name}");
        }
    }
}
