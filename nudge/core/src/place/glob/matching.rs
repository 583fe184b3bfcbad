//! Matches one pattern without braces, in one loop without recursion or allocation.

use crate::steps::{StepBudget, TooMany};

/// Returns the number of bytes with which every match of `pattern` begins. A `/` at the end of these bytes does not
/// count, because `dir/**` matches `dir`.
pub(super) fn literal_head(pattern: &str) -> usize {
    match memchr::memchr3(b'*', b'?', b'[', pattern.as_bytes()) {
        Some(end) => pattern[..end].trim_end_matches('/').len(),
        None => pattern.len(),
    }
}

/// Matches a pattern against a text. The caller has checked that the first `head` bytes are plain characters and equal
/// on both sides. At a mismatch, the last `*` of the segment takes one more character. If there is none, the last `**`
/// takes one more segment, or several if they do not begin as the pattern goes on. Earlier wildcards need no second
/// try, because the text between them has already matched at the earliest position.
pub(super) fn matches_pattern(pattern: &str, text: &str, head: usize, steps: &mut StepBudget) -> Result<bool, TooMany> {
    let (p, t) = (pattern.as_bytes(), text.as_bytes());
    let (mut pi, mut ti) = (head, head);
    let mut star: Option<(usize, usize)> = None;
    let mut globstar: Option<(usize, usize)> = None;
    // The text's position at which a segment may follow the last `**`.
    let mut from: Option<usize> = None;
    if head == 0 {
        while pattern[pi..].starts_with("**/") {
            (pi, from) = (pi + 3, Some(0));
        }
        if &pattern[pi..] == "**" {
            return Ok(true);
        }
    }
    loop {
        if let Some(from) = from.take() {
            let plain = &p[pi..pi + literal_head(&pattern[pi..])];
            let Some(start) = find_segment(t, from, plain, steps)? else { return Ok(false) };
            (ti, star, globstar) = (start, None, Some((pi, start)));
        }
        steps.take_steps(1)?;
        match p.get(pi) {
            None if ti == t.len() => return Ok(true),
            // A `**` between slashes matches nothing or whole segments.
            Some(b'/') if is_globstar(&p[pi + 1..]) => {
                let mut end = pi + 3;
                // Several `**` in a row have the same meaning as one.
                while p.get(end) == Some(&b'/') && is_globstar(&p[end + 1..]) {
                    end += 3;
                }
                let whole_segment = ti == t.len() || t[ti] == b'/';
                if whole_segment && end == p.len() {
                    return Ok(true);
                }
                if whole_segment && ti < t.len() {
                    (pi, from) = (end + 1, Some(ti + 1));
                    continue;
                }
            }
            Some(b'*') => {
                pi += p[pi..].iter().take_while(|&&byte| byte == b'*').count();
                star = Some((pi, ti));
                continue;
            }
            Some(b'?' | b'[') => {
                // All bytes before this point have matched, so a character begins here on both sides.
                let (pattern, text) = (&pattern[pi..], &text[ti..]);
                let end = class_end(pattern).unwrap_or(1);
                steps.take_steps(end)?;
                if let Some(taken) = match_one(&pattern[..end], text) {
                    (pi, ti) = (pi + end, ti + taken);
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
        if let Some((after, offset)) = star
            && let Some(next) = text[offset..].chars().next()
            && next != '/'
        {
            (pi, ti) = (after, offset + next.len_utf8());
            star = Some((pi, ti));
        } else if let Some((after, offset)) = globstar
            && let Some(slash) = memchr::memchr(b'/', &t[offset..])
        {
            steps.take_steps(slash / 16)?;
            (pi, from) = (after, Some(offset + slash + 1));
        } else {
            return Ok(false);
        }
    }
}

/// Returns the start of the first segment, from the one at `start` on, that begins with these bytes.
fn find_segment(text: &[u8], mut start: usize, plain: &[u8], steps: &mut StepBudget) -> Result<Option<usize>, TooMany> {
    loop {
        let rest = &text[start..];
        steps.take_steps(1 + plain.len() / 16)?;
        // Most segments differ in the first byte, and a comparison of all bytes is a call.
        if plain.first().is_none_or(|first| rest.first() == Some(first)) && rest.starts_with(plain) {
            return Ok(Some(start));
        }
        let Some(slash) = memchr::memchr(b'/', rest) else { return Ok(None) };
        steps.take_steps(slash / 16)?;
        start += slash + 1;
    }
}

/// Returns true when the next segment of the pattern is `**`. `rest` begins after a slash.
fn is_globstar(rest: &[u8]) -> bool {
    matches!(rest, b"**" | [b'*', b'*', b'/', ..])
}

/// Returns the position after the `]` of the class at the start of `text`; `None` when there is no class.
pub(super) fn class_end(text: &str) -> Option<usize> {
    let body = text.strip_prefix('[')?;
    let negated = usize::from(body.starts_with('!'));
    // A `]` at the start of a class is a member of the class.
    let from = 1 + negated + usize::from(body[negated..].starts_with(']'));
    text[from..].find(']').map(|i| from + i + 1)
}

/// Matches one character with `?` or a class. Returns the number of bytes of the character; `None` without a match.
fn match_one(pattern: &str, text: &str) -> Option<usize> {
    let have = text.chars().next().filter(|&have| have != '/')?;
    if let Some(body) = pattern.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        let (negated, body) = body.strip_prefix('!').map_or((false, body), |body| (true, body));
        if in_class(body, have) == negated {
            return None;
        }
    }
    Some(have.len_utf8())
}

fn in_class(body: &str, have: char) -> bool {
    let mut members = body.chars().peekable();
    let mut found = false;
    while let Some(low) = members.next() {
        let mut ahead = members.clone();
        // A `-` at the start or the end of a class is a member of the class.
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
