//! Rules for paths in hints (semantics section 6).

use crate::error::{Error, Result};
use crate::place::glob::{has_parent_segment, is_drive};

/// Normalises an absolute path: removes `.`, `//` and a trailing slash. The slashes of a drive path
/// stay as they are.
///
/// ```
/// assert_eq!(nudge_core::safety::paths::normalize_path("/srv//x/./y/")?, "/srv/x/y");
/// assert_eq!(nudge_core::safety::paths::normalize_path(r"c:\code\.\x\")?, r"c:\code\x");
/// assert!(nudge_core::safety::paths::normalize_path("/srv/../etc").is_err());
/// # Ok::<(), nudge_core::error::Error>(())
/// ```
///
/// # Errors
/// `E_SCOPE_INVALID` for a relative or UNC path, a `..` segment (plain or percent-encoded) and
/// control characters.
pub fn normalize_path(path: &str) -> Result<String> {
    if path.chars().any(char::is_control) {
        return Err(Error::scope("A path may not hold control characters."));
    }
    if has_parent_segment(path) {
        return Err(Error::scope("A path may not hold a `..` segment; name the folder itself."));
    }
    let drive = is_drive(path);
    let separators: &[char] = if drive { &['/', '\\'] } else { &['/'] };
    let (head, tail) = path.split_at(if drive { 2 } else { 0 });
    if !tail.starts_with(separators) || tail.starts_with("//") && !tail.starts_with("///") && !drive {
        return Err(Error::scope("A path must be absolute: `/folder` or `C:\\folder`, not a share."));
    }
    let mut out = String::with_capacity(path.len());
    out.push_str(head);
    let mut separator = None;
    for piece in tail.split_inclusive(separators) {
        let segment = piece.trim_end_matches(separators);
        if !segment.is_empty() && segment != "." {
            out.extend(separator);
            out.push_str(segment);
            separator = None;
        }
        // The first of several separators in a row is kept.
        separator = separator.or_else(|| piece[segment.len()..].chars().next());
    }
    if out.len() == head.len() {
        out.extend(tail.chars().next());
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        for (path, expected) in [
            ("/", "/"),
            ("///", "/"),
            ("/./", "/"),
            ("/a", "/a"),
            ("/a/", "/a"),
            ("/a//b/./c/.", "/a/b/c"),
            ("/a/...", "/a/..."),
            (r"/a\b", r"/a\b"),
            (r"C:\", r"C:\"),
            ("C:/", "C:/"),
            (r"c:\code\http-proxy", r"c:\code\http-proxy"),
            (r"c:\code\\x/./y\", r"c:\code\x/y"),
            ("c:/code//x/", "c:/code/x"),
        ] {
            assert_eq!(normalize_path(path).unwrap(), expected, "{path}");
        }
        for path in [
            "",
            "a",
            "./a",
            "~",
            "..",
            "/a/..",
            "/a/../b",
            r"C:\a\..\b",
            r"/a\..\b",
            "/%2e%2e/a",
            "C:",
            "C:a",
            r"\\srv\share",
            "//srv/share",
            r"\a",
            "/a\0",
            "/a\nb",
        ] {
            assert_eq!(normalize_path(path).unwrap_err().reason(), "E_SCOPE_INVALID", "{path:?}");
        }
    }
}
