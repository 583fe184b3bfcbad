//! git's `wildmatch` with `WM_PATHNAME`, for `includeIf`.

/// How a partial match ended (the names are git's).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Walk {
    Match,
    NoMatch,
    AbortAll,
    AbortToStarStar,
}

/// Longer patterns, or more stars, are left to git.
const PATTERN_MAX_BYTES: usize = 4096;
const STARS_MAX: usize = 32;
const STEPS_MAX: u32 = 200_000;

/// Returns true when `pattern` matches all of `text`. `None` when that takes too long, or when the pattern has a
/// bracket expression: git's users hardly write one, and this matcher does not read it.
pub(super) fn matches(pattern: &[u8], text: &[u8], fold_case: bool) -> Option<bool> {
    let stars = pattern.split(|&b| b == b'*').count() - 1;
    if pattern.len() > PATTERN_MAX_BYTES || stars > STARS_MAX || pattern.contains(&b'[') {
        return None;
    }
    let mut glob = Glob { pattern, text, fold_case, steps_left: STEPS_MAX };
    let walk = glob.walk(0, 0);
    (glob.steps_left > 0).then_some(walk == Walk::Match)
}

struct Glob<'a> {
    pattern: &'a [u8],
    text: &'a [u8],
    fold_case: bool,
    steps_left: u32,
}

impl Glob<'_> {
    /// The pattern's byte at `at`, 0 at its end.
    fn pat(&self, at: usize) -> u8 {
        self.pattern.get(at).copied().unwrap_or(0)
    }

    fn txt(&self, at: usize) -> u8 {
        self.text.get(at).copied().unwrap_or(0)
    }

    fn fold(&self, byte: u8) -> u8 {
        if self.fold_case { byte.to_ascii_lowercase() } else { byte }
    }

    fn walk(&mut self, mut p: usize, mut t: usize) -> Walk {
        while p < self.pattern.len() {
            self.steps_left = self.steps_left.saturating_sub(1);
            if self.steps_left == 0 {
                return Walk::AbortAll;
            }
            if t >= self.text.len() && self.pat(p) != b'*' {
                return Walk::AbortAll;
            }
            match self.pat(p) {
                b'?' => {
                    if self.txt(t) == b'/' {
                        return Walk::NoMatch;
                    }
                }
                b'*' => return self.star(p, t),
                byte => {
                    // git folds the case of a plain byte, not of an escaped one.
                    let wanted = if byte == b'\\' {
                        p += 1;
                        self.pat(p)
                    } else {
                        self.fold(byte)
                    };
                    if self.fold(self.txt(t)) != wanted {
                        return Walk::NoMatch;
                    }
                }
            }
            p += 1;
            t += 1;
        }
        if t < self.text.len() { Walk::NoMatch } else { Walk::Match }
    }

    /// A run of stars at `start`, against the text from `t`.
    fn star(&mut self, start: usize, mut t: usize) -> Walk {
        let mut p = start + 1;
        let mut cross_slash = false;
        if self.pat(p) == b'*' {
            while self.pat(p) == b'*' {
                p += 1;
            }
            let opens = start == 0 || self.pat(start - 1) == b'/';
            let next = self.pat(p);
            if opens && (p >= self.pattern.len() || next == b'/' || (next == b'\\' && self.pat(p + 1) == b'/')) {
                if next == b'/' && self.walk(p + 1, t) == Walk::Match {
                    return Walk::Match;
                }
                cross_slash = true;
            }
        }
        let next_slash = self.text[t.min(self.text.len())..].iter().position(|&b| b == b'/');
        if p >= self.pattern.len() {
            return if !cross_slash && next_slash.is_some() { Walk::AbortToStarStar } else { Walk::Match };
        }
        if !cross_slash && self.pat(p) == b'/' {
            return match next_slash {
                Some(skip) => self.walk(p + 1, t + skip + 1),
                None => Walk::AbortAll,
            };
        }
        while t < self.text.len() && self.steps_left > 0 {
            let walk = self.walk(p, t);
            if walk == Walk::NoMatch {
                if !cross_slash && self.txt(t) == b'/' {
                    return Walk::AbortToStarStar;
                }
            } else if !cross_slash || walk != Walk::AbortToStarStar {
                return walk;
            }
            t += 1;
        }
        Walk::AbortAll
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn table() {
        let table = [
            ("abc", "abc", true),
            ("a?c", "abc", true),
            ("a?c", "a/c", false),
            ("*", "abc", true),
            ("*", "a/b", false),
            ("**", "a/b", true),
            ("a/**", "a/b/c", true),
            ("a/**", "a", false),
            ("**/c", "a/b/c", true),
            ("**/c", "c", true),
            ("a/**/c", "a/c", true),
            ("a/**/c", "a/b/b/c", true),
            ("a/*/c", "a/b/b/c", false),
            ("a/*/c", "a/b/c", true),
            ("a**c", "a/c", false),
            ("a\\*c", "a*c", true),
            ("*.git", "x/y.git", false),
            ("**/w/**", "/home/w/r/.git", true),
            ("", "", true),
            ("", "a", false),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "aXbYd", false),
        ];
        for (pattern, text, expected) in table {
            let got = matches(pattern.as_bytes(), text.as_bytes(), false);
            assert_eq!(got, Some(expected), "{pattern} {text}");
        }
        assert_eq!(matches(b"ABC/**", b"abc/d", true), Some(true));
        assert_eq!(matches(b"[a]", b"a", false), None);
        let long = "a".repeat(4000);
        assert_eq!(matches("*a".repeat(16).as_bytes(), long.as_bytes(), false), Some(true));
        assert_ne!(matches("**/*a*a*a*a*a*a*b".as_bytes(), long.as_bytes(), false), Some(true));
    }
}
