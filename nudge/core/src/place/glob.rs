//! Globs over folders and branch names (semantics section 2).
//!
//! The alternatives of braces are stored if they take at most twice the pattern's memory. Otherwise, each comparison
//! expands the braces again. Each comparison takes steps from a [`StepBudget`], because its time grows with the
//! pattern's length times the text's length.

mod braces;
mod matching;

use braces::{BraceAlternatives, check_pairs};
use matching::{class_end, literal_head, matches_pattern};

use crate::error::{Error, Result};
use crate::held::allocation_bytes;
use crate::steps::{StepBudget, TooMany};
use crate::text::before_mark;

/// The longest pattern, in bytes.
const MAX_BYTES: usize = 512;
/// The most bytes of all alternatives of a pattern, and also the most alternatives. Braces multiply, so a short pattern
/// can have very many.
const MAX_ALTERNATIVES: usize = 2 << 10;

/// The kind of text that a pattern matches. Only folders have drives and UNC prefixes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GlobKind {
    /// An absolute folder.
    Cwd,
    /// The name of a branch.
    Branch,
}

/// A compiled pattern. It takes at most three times the memory of its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob {
    /// The canonical text, which is stored and shown.
    text: Box<str>,
    forms: GlobForms,
    /// The number of plain bytes at the beginning of the pattern; every match begins with the same bytes.
    head: u16,
    kind: GlobKind,
}

/// The stored alternatives of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
enum GlobForms {
    /// The text itself, which has no braces.
    Text,
    /// The alternatives, one in each line, because they take little memory.
    Lines(Box<str>),
    /// The alternatives in lower case, for drive and UNC patterns, which compare without case.
    Folded(Box<str>),
    /// No alternatives, because they would take too much memory. Each comparison expands the braces.
    Followed,
}

/// A folder or a branch name in the form that globs match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GlobSubject {
    text: Box<str>,
    /// The text in lower case. It exists only for a text with a drive or a UNC prefix, because comparisons of such a
    /// text ignore case.
    folded: Option<Box<str>>,
}

impl GlobSubject {
    /// Makes a subject of an absolute folder; `None` when the folder is relative or has a `..` segment.
    pub fn from_cwd(cwd: impl Into<String>, windows: bool) -> Option<Self> {
        let cwd = cwd.into();
        if is_plain(&cwd) && !windows {
            return Some(Self { text: cwd.into(), folded: None });
        }
        let backslashes = windows || is_drive(&cwd) || cwd.starts_with(r"\\");
        let text = if backslashes { collapse_path(&cwd.replace('\\', "/")) } else { collapse_path(&cwd) };
        let absolute = text.starts_with('/') || (is_drive(&text) && text.as_bytes().get(2) == Some(&b'/'));
        if !absolute || text.split('/').any(|segment| segment == "..") {
            return None;
        }
        let folded = ignores_case(&text).then(|| text.to_lowercase().into());
        Some(Self { text: text.into(), folded })
    }

    /// Makes a subject of a branch; any name is accepted.
    pub fn from_branch(name: impl Into<Box<str>>) -> Self {
        Self { text: name.into(), folded: None }
    }

    /// Returns the text in normal form.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the text for a comparison. `None` when the pattern ignores case (`fold`) but the text does not.
    fn comparable_text(&self, fold: bool) -> Option<&str> {
        if fold { self.folded.as_deref() } else { Some(&self.text) }
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
            Error::scope(format!("A `meta.scope.{field}` pattern {why}.")).about(&format!("meta.scope.{field}"))
        };
        check_pattern(pattern).map_err(refuse)?;
        let text = caret_to_bang(&pattern.replace('\\', "/"));
        // Inside braces, a leading `//` may be a UNC prefix. `any_alternative` collapses the alternatives of such a
        // text.
        let text = if text.contains("{//") || text.contains(",//") { text } else { collapse_path(&text) };
        check_pattern(&text).map_err(refuse)?;
        check_pairs(&text).map_err(refuse)?;
        let head = match text.find('{') {
            // When an alternative is collapsed, its first two `/` may become one, so a match need not begin as the text
            // does.
            _ if !is_collapsed(&text) || text.starts_with("//") => 0,
            _ if kind == GlobKind::Cwd && is_drive(&text) => 0,
            None => literal_head(&text),
            // The head ends with the last whole segment before the first braces.
            Some(brace) => literal_head(&text[..brace]).min(text[..brace].rfind('/').unwrap_or(0)),
        };
        let head = u16::try_from(head).unwrap_or(0);
        let mut glob = Self { text: text.into(), forms: GlobForms::Followed, head, kind };
        glob.forms = glob.compile_forms().map_err(refuse)?;
        Ok(glob)
    }

    /// Checks the alternatives, and chooses whether and how they are stored.
    fn compile_forms(&self) -> Result<GlobForms, &'static str> {
        let most = 2 * self.text.len();
        let (mut count, mut bytes, mut folded, mut climbs) = (0, 0, 0, false);
        let mut is_somewhere = self.kind != GlobKind::Cwd;
        let mut lines = String::new();
        let too_many = self.any_alternative(&mut StepBudget::unlimited(), |pattern, fold, length, _| {
            (count, bytes) = (count + 1, bytes + length);
            folded += usize::from(fold);
            climbs |= has_parent_segment(pattern);
            is_somewhere |= !is_relative(pattern);
            if lines.len() <= most {
                lines.push_str(if count > 1 { "\n" } else { "" });
                lines.push_str(pattern);
            }
            Ok(count > MAX_ALTERNATIVES || bytes > MAX_ALTERNATIVES)
        });
        match too_many {
            Ok(false) if climbs => Err(PARENT),
            Ok(false) if !is_somewhere => Err(RELATIVE),
            Ok(false) if folded == 0 && lines == *self.text => Ok(GlobForms::Text),
            Ok(false) if lines.len() > most => Ok(GlobForms::Followed),
            Ok(false) if folded == 0 => Ok(GlobForms::Lines(lines.into())),
            Ok(false) if folded == count => Ok(GlobForms::Folded(lines.into())),
            Ok(false) => Ok(GlobForms::Followed),
            _ => Err("has too many alternatives; use fewer braces"),
        }
    }

    /// Returns the pattern in canonical form.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the bytes that the pattern takes on the heap.
    pub fn heap_bytes(&self) -> usize {
        let forms = match &self.forms {
            GlobForms::Lines(lines) | GlobForms::Folded(lines) => allocation_bytes(lines.len()),
            GlobForms::Text | GlobForms::Followed => 0,
        };
        allocation_bytes(self.text.len()) + forms
    }

    /// Returns true when the pattern matches the whole subject.
    ///
    /// # Errors
    /// [`TooMany`] when the steps are used up; whether the pattern matches is then unknown.
    pub fn matches(&self, subject: &GlobSubject, steps: &mut StepBudget) -> Result<bool, TooMany> {
        let head = usize::from(self.head);
        steps.take_steps(1 + head / 64)?;
        if !subject.text.as_bytes().starts_with(&self.text.as_bytes()[..head]) {
            return Ok(false);
        }
        let (lines, text) = match &self.forms {
            GlobForms::Text => return matches_pattern(&self.text, &subject.text, head, steps),
            GlobForms::Lines(lines) => (lines, subject.comparable_text(false)),
            GlobForms::Folded(lines) => (lines, subject.comparable_text(true)),
            GlobForms::Followed => {
                return self.any_alternative(steps, |pattern, fold, _, steps| match subject.comparable_text(fold) {
                    Some(text) => matches_pattern(pattern, text, 0, steps),
                    None => Ok(false),
                });
            }
        };
        let Some(text) = text else { return Ok(false) };
        for pattern in lines.split('\n') {
            if matches_pattern(pattern, text, head, steps)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns true when the pattern matches a folder above `subject`: with `/**` added, it would match the subject.
    ///
    /// # Errors
    /// The errors of [`Glob::matches`].
    pub fn matches_above(&self, subject: &GlobSubject, steps: &mut StepBudget) -> Result<bool, TooMany> {
        self.any_alternative(steps, |pattern, fold, _, steps| match subject.comparable_text(fold) {
            Some(text) => matches_pattern(&format!("{}/**", pattern.trim_end_matches('/')), text, 0, steps),
            None => Ok(false),
        })
    }

    /// Calls `look` with each alternative until it returns true. The arguments of `look` are the alternative in normal
    /// form, whether case is ignored, the length of the alternative as written, and the steps.
    fn any_alternative(
        &self,
        steps: &mut StepBudget,
        mut look: impl FnMut(&str, bool, usize, &mut StepBudget) -> Result<bool, TooMany>,
    ) -> Result<bool, TooMany> {
        let mut alternatives = BraceAlternatives::new(&self.text);
        while let Some(written) = alternatives.next(steps)? {
            // These steps count the work for the buffers below.
            steps.take_steps(8 + written.len() / 8)?;
            let collapsed = (!is_collapsed(written)).then(|| collapse_path(written));
            let pattern = collapsed.as_deref().unwrap_or(written);
            let fold = self.kind == GlobKind::Cwd && ignores_case(pattern);
            let found = if fold {
                look(&pattern.to_lowercase(), fold, written.len(), steps)
            } else {
                look(pattern, fold, written.len(), steps)
            };
            if found? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

const PARENT: &str = "may not hold a `..` segment; name the folder itself";

const RELATIVE: &str =
    "matches no absolute folder; begin it with `/`, with `**/` for any folder above, or with a drive";

/// Returns true for a pattern without braces that cannot match an absolute folder. Absolute folders begin with `/` or a
/// drive.
pub fn is_relative(pattern: &str) -> bool {
    let first = before_mark(pattern, &['/']);
    let literal = &first[..first.find(['*', '?', '[']).unwrap_or(first.len())];
    match literal.as_bytes() {
        // A wildcard can stand for a drive letter.
        [] => pattern.is_empty(),
        [letter] => literal.len() == first.len() || !letter.is_ascii_alphabetic(),
        _ => !is_drive(literal),
    }
}

fn check_pattern(pattern: &str) -> Result<(), &'static str> {
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

/// Returns true when a segment is `..`, plain or percent-encoded. Both kinds of slash separate segments.
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

/// Removes empty segments, `.` segments and a trailing slash. A leading `//` (UNC) and the root stay.
pub fn collapse_path(text: &str) -> String {
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
    // The root of a drive keeps its slash, because `C:` alone is a relative path.
    if out.len() == 2 && is_drive(&out) && text.len() > 2 {
        out.push('/');
    }
    out
}

/// Returns true for a folder below the root that is in normal form, as nearly all folders are. The check is quick: it
/// reads the bytes only once, and may return false for some folders in normal form.
fn is_plain(cwd: &str) -> bool {
    let [b'/', .., last] = cwd.as_bytes() else { return false };
    // The loop always runs to its end, so that the compiler can check many bytes in one step.
    let is_odd = |before: u8, byte: u8| byte == b'\\' || before == b'/' && matches!(byte, b'/' | b'.');
    let pairs = cwd.as_bytes().iter().zip(&cwd.as_bytes()[1..]);
    *last != b'/' && !pairs.fold(false, |so_far, (before, byte)| so_far | is_odd(*before, *byte))
}

/// Returns true for a text that [`collapse_path`] does not change. For the root, the result may be false.
fn is_collapsed(text: &str) -> bool {
    let below = text.strip_prefix("//").or_else(|| text.strip_prefix('/')).unwrap_or(text);
    below.split('/').all(|segment| !segment.is_empty() && segment != ".")
}

/// Replaces `[^a]` by `[!a]`.
fn caret_to_bang(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern;
    while let Some(open) = rest.find('[') {
        let (head, class) = rest.split_at(open);
        out.push_str(head);
        let class = match class.strip_prefix("[^") {
            Some(members) => format!("[!{members}"),
            None => class.to_owned(),
        };
        let end = class_end(&class).unwrap_or(1);
        out.push_str(&class[..end]);
        rest = &rest[open + end..];
    }
    out + rest
}

#[cfg(test)]
#[path = "glob_tests.rs"]
mod tests;
