//! git's `wildmatch` with `WM_PATHNAME`, for `includeIf`.

/// How a partial match ended (the names are git's).
#[derive(Clone, Copy, PartialEq, Eq)]
enum MatchEnd {
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
pub(super) fn match_glob(pattern: &[u8], text: &[u8], fold_case: bool) -> Option<bool> {
    let stars = pattern.split(|&b| b == b'*').count() - 1;
    if pattern.len() > PATTERN_MAX_BYTES || stars > STARS_MAX || pattern.contains(&b'[') {
        return None;
    }
    let mut glob = PatternMatcher { pattern, text, fold_case, steps_left: STEPS_MAX };
    let walk = glob.match_from(0, 0);
    (glob.steps_left > 0).then_some(walk == MatchEnd::Match)
}

struct PatternMatcher<'a> {
    pattern: &'a [u8],
    text: &'a [u8],
    fold_case: bool,
    steps_left: u32,
}

impl PatternMatcher<'_> {
    /// The pattern's byte at `at`, 0 at its end.
    fn pattern_byte(&self, index: usize) -> u8 {
        self.pattern.get(index).copied().unwrap_or(0)
    }

    fn text_byte(&self, index: usize) -> u8 {
        self.text.get(index).copied().unwrap_or(0)
    }

    fn fold_byte(&self, byte: u8) -> u8 {
        if self.fold_case { byte.to_ascii_lowercase() } else { byte }
    }

    fn match_from(&mut self, mut p: usize, mut t: usize) -> MatchEnd {
        while p < self.pattern.len() {
            self.steps_left = self.steps_left.saturating_sub(1);
            if self.steps_left == 0 {
                return MatchEnd::AbortAll;
            }
            if t >= self.text.len() && self.pattern_byte(p) != b'*' {
                return MatchEnd::AbortAll;
            }
            match self.pattern_byte(p) {
                b'?' => {
                    if self.text_byte(t) == b'/' {
                        return MatchEnd::NoMatch;
                    }
                }
                b'*' => return self.match_stars(p, t),
                byte => {
                    // git folds the case of a plain byte, not of an escaped one.
                    let wanted = if byte == b'\\' {
                        p += 1;
                        self.pattern_byte(p)
                    } else {
                        self.fold_byte(byte)
                    };
                    if self.fold_byte(self.text_byte(t)) != wanted {
                        return MatchEnd::NoMatch;
                    }
                }
            }
            p += 1;
            t += 1;
        }
        if t < self.text.len() { MatchEnd::NoMatch } else { MatchEnd::Match }
    }

    /// A run of stars at `start`, against the text from `t`.
    fn match_stars(&mut self, start: usize, mut t: usize) -> MatchEnd {
        let mut p = start + 1;
        let mut cross_slash = false;
        if self.pattern_byte(p) == b'*' {
            while self.pattern_byte(p) == b'*' {
                p += 1;
            }
            let opens = start == 0 || self.pattern_byte(start - 1) == b'/';
            let next = self.pattern_byte(p);
            if opens && (p >= self.pattern.len() || next == b'/' || (next == b'\\' && self.pattern_byte(p + 1) == b'/'))
            {
                if next == b'/' && self.match_from(p + 1, t) == MatchEnd::Match {
                    return MatchEnd::Match;
                }
                cross_slash = true;
            }
        }
        let next_slash = self.text[t.min(self.text.len())..].iter().position(|&b| b == b'/');
        if p >= self.pattern.len() {
            return if !cross_slash && next_slash.is_some() { MatchEnd::AbortToStarStar } else { MatchEnd::Match };
        }
        if !cross_slash && self.pattern_byte(p) == b'/' {
            return match next_slash {
                Some(skip) => self.match_from(p + 1, t + skip + 1),
                None => MatchEnd::AbortAll,
            };
        }
        while t < self.text.len() && self.steps_left > 0 {
            let walk = self.match_from(p, t);
            if walk == MatchEnd::NoMatch {
                if !cross_slash && self.text_byte(t) == b'/' {
                    return MatchEnd::AbortToStarStar;
                }
            } else if !cross_slash || walk != MatchEnd::AbortToStarStar {
                return walk;
            }
            t += 1;
        }
        MatchEnd::AbortAll
    }
}

#[cfg(test)]
mod tests {
    use super::match_glob;

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
            let got = match_glob(pattern.as_bytes(), text.as_bytes(), false);
            assert_eq!(got, Some(expected), "{pattern} {text}");
        }
        assert_eq!(match_glob(b"ABC/**", b"abc/d", true), Some(true));
        assert_eq!(match_glob(b"[a]", b"a", false), None);
        let long = "a".repeat(4000);
        assert_eq!(match_glob("*a".repeat(16).as_bytes(), long.as_bytes(), false), Some(true));
        assert_ne!(match_glob("**/*a*a*a*a*a*a*b".as_bytes(), long.as_bytes(), false), Some(true));
    }
}
