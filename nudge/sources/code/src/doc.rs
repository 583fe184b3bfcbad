//! Documentation: its text, the parameters it lists, what it says that is no longer so.

/// A text without the indentation that all its lines but the first share.
pub(crate) fn dedent(text: &str) -> String {
    let indent = text.lines().skip(1).filter(|line| !line.trim().is_empty());
    let indent = indent.map(|line| line.len() - line.trim_start().len()).min().unwrap_or(0);
    let mut out = String::with_capacity(text.len());
    for (number, line) in text.lines().enumerate() {
        if number > 0 {
            out.push('\n');
        }
        out.push_str(if number == 0 {
            line.trim()
        } else {
            line.get(indent..).unwrap_or(line.trim_start()).trim_end()
        });
    }
    out
}

/// The text of comments without their marks.
pub(crate) fn uncomment(comments: &[&str]) -> String {
    let mut out = String::new();
    for comment in comments {
        for line in comment.lines() {
            let line = line.trim();
            let line = line.strip_suffix("*/").unwrap_or(line);
            let line = ["/**", "/*!", "/*", "///", "//!", "//", "*", "#"]
                .iter()
                .find_map(|mark| line.strip_prefix(mark))
                .unwrap_or(line);
            out.push_str(line.strip_prefix(' ').unwrap_or(line).trim_end());
            out.push('\n');
        }
    }
    out
}
