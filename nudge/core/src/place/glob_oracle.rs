//! Defines the meaning of a glob for the tests. It expands every alternative of the braces, then matches each
//! alternative by brute force.

use super::matching::class_end;
use super::{GlobKind, GlobSubject, MAX_ALTERNATIVES, collapse_path, ignores_case};

/// Returns true when an alternative of `pattern`, which must be in canonical form, matches the whole subject.
pub fn oracle_matches(pattern: &str, kind: GlobKind, subject: &GlobSubject) -> bool {
    expand_braces(pattern).unwrap().iter().any(|alternative| {
        let pattern = merge_globstars(&collapse_path(alternative));
        let fold = kind == GlobKind::Cwd && ignores_case(&pattern);
        let pattern = if fold { pattern.to_lowercase() } else { pattern };
        let segments = |text: &str| text.split('/').map(|segment| segment.chars().collect()).collect::<Vec<_>>();
        subject
            .comparable_text(fold)
            .is_some_and(|text| pattern == "**" || matches_path(&segments(&pattern), &segments(text)))
    })
}

/// Returns true when some split of the text matches the pattern.
fn matches_path(pattern: &[Vec<char>], text: &[Vec<char>]) -> bool {
    match pattern {
        [] => text.is_empty(),
        [first, rest @ ..] if *first == ['*', '*'] => (0..=text.len()).any(|taken| matches_path(rest, &text[taken..])),
        [first, rest @ ..] => {
            text.split_first().is_some_and(|(head, tail)| matches_segment(first, head) && matches_path(rest, tail))
        }
    }
}

fn matches_segment(pattern: &[char], text: &[char]) -> bool {
    match pattern {
        [] => text.is_empty(),
        ['*', rest @ ..] => (0..=text.len()).any(|taken| matches_segment(rest, &text[taken..])),
        ['?', rest @ ..] => text.split_first().is_some_and(|(_, tail)| matches_segment(rest, tail)),
        ['[', ..] => {
            let whole: String = pattern.iter().collect();
            let class: Vec<char> = whole[..class_end(&whole).unwrap()].chars().collect();
            let (negated, members) = match &class[1..class.len() - 1] {
                ['!', members @ ..] => (true, members),
                members => (false, members),
            };
            text.split_first().is_some_and(|(have, tail)| {
                is_member(members, *have) != negated && matches_segment(&pattern[class.len()..], tail)
            })
        }
        [first, rest @ ..] => {
            text.split_first().is_some_and(|(head, tail)| first == head && matches_segment(rest, tail))
        }
    }
}

fn is_member(members: &[char], have: char) -> bool {
    match members {
        [low, '-', high, rest @ ..] => (low..=high).contains(&&have) || is_member(rest, have),
        [first, rest @ ..] => *first == have || is_member(rest, have),
        [] => false,
    }
}

/// Replaces `**/**` by `**`, which has the same meaning.
fn merge_globstars(pattern: &str) -> String {
    let mut segments: Vec<_> = pattern.split('/').collect();
    segments.dedup_by(|a, b| a == b && *a == "**");
    segments.join("/")
}

/// Returns every alternative of a pattern with braces. Classes are copied unchanged. A range such as `{1..3}` is
/// literal text.
pub fn expand_braces(pattern: &str) -> Result<Vec<String>, &'static str> {
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
                    _ => parts.into_iter().map(expand_braces).collect::<Result<Vec<_>, _>>()?.concat(),
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
        if bytes > MAX_ALTERNATIVES || out.len() * parts.len() > MAX_ALTERNATIVES {
            return Err("has too many alternatives; use fewer braces");
        }
        out = out.iter().flat_map(|head| parts.iter().map(move |part| format!("{head}{part}"))).collect();
    }
    Ok(out)
}

/// Splits the braces at the start of `text`. Returns the position after the `}`, and the parts between the commas.
fn split_braces(text: &str) -> Result<(usize, Vec<&str>), &'static str> {
    let (mut depth, mut from, mut position, mut parts) = (0, 1, 0, Vec::new());
    while let Some(next) = text[position..].chars().next() {
        match next {
            '[' => {
                position += class_end(&text[position..]).ok_or("has a `[` without its `]`")?;
                continue;
            }
            '{' => depth += 1,
            ',' if depth == 1 => {
                parts.push(&text[from..position]);
                from = position + 1;
            }
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            parts.push(&text[from..position]);
            return Ok((position + 1, parts));
        }
        position += next.len_utf8();
    }
    Err("has a `{` without its `}`")
}

/// Returns true for a range such as `1..3`, `a..e` or `1..9..2`. Shells expand ranges; here they are literal text.
fn is_range(text: &str) -> bool {
    let parts: Vec<_> = text.split("..").collect();
    (2..=3).contains(&parts.len())
        && parts.iter().all(|part| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || c == '-'))
}
