//! Globs over folders and branch names (semantics section 2).
//!
//! Braces are expanded when a pattern is compiled, so that matching is one loop without recursion
//! or allocation: time grows with pattern length times text length, for every pattern.

use crate::error::{Error, Result};

/// Longest pattern.
const MAX_BYTES: usize = 512;
/// Largest size of all alternatives of one pattern, as braces multiply. With 16 patterns of one scope on a folder of
/// 4 KiB it limits the most hostile match to tens of milliseconds.
const MAX_EXPANDED_BYTES: usize = 2 << 10;

/// The kind of text that a pattern matches; only folders have drives and UNC prefixes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GlobKind {
    /// An absolute folder.
    Cwd,
    /// The name of a branch.
    Branch,
}

/// A compiled pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob {
    /// The canonical text, as stored and shown.
    text: Box<str>,
    /// The pattern without braces, one entry per alternative.
    alternatives: Box<[Alternative]>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Alternative {
    pattern: Box<str>,
    /// True for drive and UNC patterns, which compare without case; `pattern` is in lower case then.
    fold: bool,
}

/// A folder or a branch name, ready to be matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    text: Box<str>,
    /// The text in lower case, if it has a drive or a UNC prefix, where case does not count.
    folded: Option<Box<str>>,
}

impl Subject {
    /// Makes a subject of an absolute folder; `None` when it is relative or holds a `..` segment.
    pub fn cwd(cwd: &str, windows: bool) -> Option<Self> {
        let backslashes = windows || is_drive(cwd) || cwd.starts_with(r"\\");
        let text = if backslashes { collapse(&cwd.replace('\\', "/")) } else { collapse(cwd) };
        let absolute = text.starts_with('/') || (is_drive(&text) && text.as_bytes().get(2) == Some(&b'/'));
        if !absolute || text.split('/').any(|segment| segment == "..") {
            return None;
        }
        let folded = ignores_case(&text).then(|| text.to_lowercase().into());
        Some(Self { text: text.into(), folded })
    }

    /// Makes a subject of a branch; any name is accepted.
    pub fn branch(name: &str) -> Self {
        Self { text: name.into(), folded: None }
    }

    /// Returns the text in normal form.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl Glob {
    /// Checks, normalises and compiles a pattern.
    ///
    /// # Errors
    /// `E_SCOPE_INVALID`, with the reason.
    pub fn new(pattern: &str, kind: GlobKind) -> Result<Self> {
        let refuse = |why: &str| {
            // The message does not repeat the pattern, which may be a secret.
            let field = if kind == GlobKind::Cwd { "cwd_glob" } else { "branch" };
            Error::scope(format!("A {field} pattern {why}."))
        };
        check(pattern).map_err(refuse)?;
        let text = caret_to_bang(&pattern.replace('\\', "/"));
        // Inside braces a leading `//` may be a UNC prefix: the alternatives are collapsed below.
        let text = if text.contains("{//") || text.contains(",//") { text } else { collapse(&text) };
        check(&text).map_err(refuse)?;
        let expanded = expand(&text).map_err(refuse)?;
        let alternatives = expanded.into_iter().map(|alternative| {
            let pattern = merge_globstars(&collapse(&alternative));
            if has_parent_segment(&pattern) {
                return Err(refuse(PARENT));
            }
            let fold = kind == GlobKind::Cwd && ignores_case(&pattern);
            Ok(Alternative { pattern: if fold { pattern.to_lowercase() } else { pattern }.into(), fold })
        });
        Ok(Self { alternatives: alternatives.collect::<Result<_>>()?, text: text.into() })
    }

    /// Returns the pattern in canonical form.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns true when the pattern matches the whole of `subject`.
    pub fn matches(&self, subject: &Subject) -> bool {
        self.alternatives.iter().any(|alternative| {
            let text = if alternative.fold { subject.folded.as_deref() } else { Some(&*subject.text) };
            text.is_some_and(|text| matches(&alternative.pattern, text))
        })
    }

    /// Returns true when the pattern with `/**` added would match `subject`, because it matches a folder above.
    pub fn matches_above(&self, subject: &Subject) -> bool {
        let below = self.alternatives.iter().map(|alternative| Alternative {
            pattern: format!("{}/**", alternative.pattern.trim_end_matches('/')).into(),
            fold: alternative.fold,
        });
        Self { text: Box::default(), alternatives: below.collect() }.matches(subject)
    }
}

const PARENT: &str = "may not hold a `..` segment; name the folder itself";

fn check(pattern: &str) -> Result<(), &'static str> {
    if pattern.is_empty() {
        return Err("may not be empty; leave the field out to match everywhere");
    }
    if pattern.len() > MAX_BYTES {
        return Err("may have 512 bytes at most");
    }
    if pattern.chars().any(char::is_control) {
        return Err("may not hold control characters");
    }
    if pattern.starts_with(['!', '~']) {
        return Err("may not start with `!` or `~`; write the whole path");
    }
    if pattern.as_bytes().windows(2).any(|pair| matches!(pair, [b'@' | b'+' | b'*' | b'?' | b'!', b'('])) {
        return Err("may not use extended globs such as `@(a|b)`; write `{a,b}`");
    }
    if has_parent_segment(pattern) {
        return Err(PARENT);
    }
    Ok(())
}

/// Returns true when a segment is `..`, plain or percent-encoded, with either slash.
pub fn has_parent_segment(text: &str) -> bool {
    if !text.contains("..") && !text.contains('%') {
        return false;
    }
    let plain = text.to_ascii_lowercase().replace("%2e", ".").replace("%2f", "/").replace("%5c", "/");
    plain.split(['/', '\\']).any(|segment| segment == "..")
}

/// Returns true for a text that begins with a drive such as `C:`.
pub fn is_drive(text: &str) -> bool {
    matches!(text.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic())
}

fn ignores_case(text: &str) -> bool {
    is_drive(text) || text.starts_with("//")
}

/// Drops empty and `.` segments and a trailing slash; a leading `//` (UNC) and the root stay.
pub fn collapse(text: &str) -> String {
    let unc = text.starts_with("//") && !text.starts_with("///");
    let mut out = String::with_capacity(text.len());
    if unc {
        out.push_str("//");
    } else if text.starts_with('/') {
        out.push('/');
    }
    let mut first = true;
    for segment in text.split('/').filter(|segment| !segment.is_empty() && *segment != ".") {
        if !first {
            out.push('/');
        }
        out.push_str(segment);
        first = false;
    }
    // The root of a drive keeps its slash, as `C:` alone is a relative path.
    if out.len() == 2 && is_drive(&out) && text.len() > 2 {
        out.push('/');
    }
    out
}

/// Writes `[^a]` as `[!a]`.
fn caret_to_bang(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern;
    while let Some(at) = rest.find('[') {
        let (head, class) = rest.split_at(at);
        out.push_str(head);
        let class = match class.strip_prefix("[^") {
            Some(members) => format!("[!{members}"),
            None => class.to_owned(),
        };
        let end = class_end(&class).unwrap_or(1);
        out.push_str(&class[..end]);
        rest = &rest[at + end..];
    }
    out + rest
}

/// Replaces `**/**` by `**`, which means the same and is the only form the matcher takes.
fn merge_globstars(pattern: &str) -> String {
    let mut segments: Vec<_> = pattern.split('/').collect();
    segments.dedup_by(|a, b| a == b && *a == "**");
    segments.join("/")
}

/// Returns every alternative of a pattern with braces. Classes are copied as they are; a range such as
/// `{1..3}` is literal.
fn expand(pattern: &str) -> Result<Vec<String>, &'static str> {
    let mut out = vec![String::new()];
    let mut rest = pattern;
    while let Some(next) = rest.chars().next() {
        let (taken, parts) = match next {
            '[' => {
                let end = class_end(rest).ok_or("has a `[` without its `]`")?;
                (end, vec![rest[..end].to_owned()])
            }
            ']' => return Err("has a `]` without its `[`"),
            '}' => return Err("has a `}` without its `{`"),
            '{' => {
                let (end, parts) = split_braces(rest)?;
                let parts = match parts[..] {
                    [only] if is_range(only) => vec![rest[..end].to_owned()],
                    _ => parts.into_iter().map(expand).collect::<Result<Vec<_>, _>>()?.concat(),
                };
                (end, parts)
            }
            _ => {
                let end = rest.find(['[', ']', '{', '}']).unwrap_or(rest.len());
                (end, vec![rest[..end].to_owned()])
            }
        };
        rest = &rest[taken..];
        let bytes: usize = out.len() * parts.iter().map(String::len).sum::<usize>()
            + parts.len() * out.iter().map(String::len).sum::<usize>();
        if bytes > MAX_EXPANDED_BYTES || out.len() * parts.len() > MAX_EXPANDED_BYTES {
            return Err("has too many alternatives; use fewer braces");
        }
        out = out.iter().flat_map(|head| parts.iter().map(move |part| format!("{head}{part}"))).collect();
    }
    Ok(out)
}

/// Returns the end of the class at the start of `text`, one past its `]`.
fn class_end(text: &str) -> Option<usize> {
    let body = text.strip_prefix('[')?;
    let negated = usize::from(body.starts_with('!'));
    // A `]` that comes first belongs to the class.
    let from = 1 + negated + usize::from(body[negated..].starts_with(']'));
    text[from..].find(']').map(|at| from + at + 1)
}

/// Splits the braces at the start of `text`: returns the position past the `}`, and the parts between the commas.
fn split_braces(text: &str) -> Result<(usize, Vec<&str>), &'static str> {
    let (mut depth, mut from, mut at, mut parts) = (0, 1, 0, Vec::new());
    while let Some(next) = text[at..].chars().next() {
        match next {
            '[' => {
                at += class_end(&text[at..]).ok_or("has a `[` without its `]`")?;
                continue;
            }
            '{' => depth += 1,
            ',' if depth == 1 => {
                parts.push(&text[from..at]);
                from = at + 1;
            }
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            parts.push(&text[from..at]);
            return Ok((at + 1, parts));
        }
        at += next.len_utf8();
    }
    Err("has a `{` without its `}`")
}

/// Returns true for a range such as `1..3`, `a..e` or `1..9..2`: other tools expand these, here they are literal.
fn is_range(text: &str) -> bool {
    let parts: Vec<_> = text.split("..").collect();
    (2..=3).contains(&parts.len())
        && parts.iter().all(|part| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || c == '-'))
}

/// Matches one pattern without braces. On a mismatch the last `*` of the segment takes one more
/// character, else the last `**` one more segment; earlier ones need no second try, because what
/// stood between them has already matched at the earliest place.
fn matches(pattern: &str, text: &str) -> bool {
    let (p, t) = (pattern.as_bytes(), text.as_bytes());
    if pattern == "**" {
        return true;
    }
    let (mut pi, mut ti) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    let mut globstar: Option<(usize, usize)> = None;
    if pattern.starts_with("**/") {
        (pi, globstar) = (3, Some((3, 0)));
    }
    loop {
        match p.get(pi) {
            None if ti == t.len() => return true,
            // `**` between slashes matches nothing or whole segments.
            Some(b'/') if is_globstar(&p[pi + 1..]) => {
                let whole_segment = ti == t.len() || t[ti] == b'/';
                if whole_segment && pi + 3 == p.len() {
                    return true;
                }
                if whole_segment && ti < t.len() {
                    (pi, ti) = (pi + 4, ti + 1);
                    (star, globstar) = (None, Some((pi, ti)));
                    continue;
                }
            }
            Some(b'*') => {
                pi += p[pi..].iter().take_while(|&&byte| byte == b'*').count();
                star = Some((pi, ti));
                continue;
            }
            Some(b'?' | b'[') => {
                // Everything before has matched byte by byte, so a character begins here on both sides.
                if let Some((pattern_step, text_step)) = one(&pattern[pi..], &text[ti..]) {
                    (pi, ti) = (pi + pattern_step, ti + text_step);
                    continue;
                }
            }
            Some(literal) if t.get(ti) == Some(literal) => {
                if *literal == b'/' {
                    star = None;
                }
                (pi, ti) = (pi + 1, ti + 1);
                continue;
            }
            _ => {}
        }
        if let Some((after, at)) = star
            && let Some(next) = text[at..].chars().next()
            && next != '/'
        {
            (pi, ti) = (after, at + next.len_utf8());
            star = Some((pi, ti));
        } else if let Some((after, at)) = globstar
            && let Some(slash) = t[at..].iter().position(|&byte| byte == b'/')
        {
            (pi, ti) = (after, at + slash + 1);
            (star, globstar) = (None, Some((pi, ti)));
        } else {
            return false;
        }
    }
}

/// Returns true when the pattern after a slash begins with a whole segment `**`.
fn is_globstar(rest: &[u8]) -> bool {
    matches!(rest, b"**" | [b'*', b'*', b'/', ..])
}

/// Matches one character by `?` or a class; returns the bytes by which pattern and text advance.
fn one(pattern: &str, text: &str) -> Option<(usize, usize)> {
    let have = text.chars().next().filter(|&have| have != '/')?;
    if pattern.starts_with('?') {
        return Some((1, have.len_utf8()));
    }
    let end = class_end(pattern)?;
    let body = &pattern[1..end - 1];
    let (negated, body) = body.strip_prefix('!').map_or((false, body), |body| (true, body));
    (in_class(body, have) != negated).then_some((end, have.len_utf8()))
}

fn in_class(body: &str, have: char) -> bool {
    let mut members = body.chars().peekable();
    let mut found = false;
    while let Some(low) = members.next() {
        let mut ahead = members.clone();
        // A `-` at either end belongs to the class.
        let high = (ahead.next() == Some('-')).then(|| ahead.next()).flatten();
        if let Some(high) = high {
            members = ahead;
            found |= (low..=high).contains(&have);
        } else {
            found |= low == have;
        }
    }
    found
}

#[cfg(test)]
#[path = "glob_tests.rs"]
mod tests;
