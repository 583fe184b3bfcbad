//! Breaks long lines of prose between words, because a terminal breaks them in the middle of one.

use unicode_width::UnicodeWidthStr as _;

/// Breaks `text`, which begins after `indent` columns, into lines of at most `width` columns. The following lines begin
/// with `indent` spaces. Without a width the text stays one line.
pub fn wrap_words(text: &str, indent: usize, width: Option<usize>) -> String {
    let Some(width) = width else { return text.to_owned() };
    let mut out = String::with_capacity(text.len());
    let mut column = indent;
    for word in text.split(' ') {
        let wide = anstream::adapter::strip_str(word).to_string().width();
        if column > indent && column + 1 + wide > width {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent));
            column = indent;
        } else if column > indent {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += wide;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words() {
        for (width, wrapped) in [
            (None, "one two three"),
            (Some(80), "one two three"),
            (Some(9), "one two\n  three"),
            (Some(4), "one\n  two\n  three"),
        ] {
            assert_eq!(wrap_words("one two three", 2, width), wrapped);
        }
        assert_eq!(
            wrap_words("\u{1b}[1m日本\u{1b}[0m x", 0, Some(6)),
            "\u{1b}[1m日本\u{1b}[0m x",
            "escapes have no width"
        );
    }
}
