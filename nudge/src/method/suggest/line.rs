//! Formats the line about a hint that a model reads.

use std::fmt::Write as _;

use nudge_core::clock::Millis;
use nudge_core::context::Context;
use nudge_core::text::{format_age, make_visible, one_line};
use nudge_core::words::fold_identifier;

use crate::hint::{Hint, HintOrigin};

/// The longest value in a line, in characters. `nudge.get_hint` returns the whole value.
const MAX_VALUE_CHARS: usize = 300;
const MAX_REASON_CHARS: usize = 120;
const MAX_PLACE_CHARS: usize = 60;

/// Returns the name of a hint in a list.
pub(super) fn name(hint: &Hint) -> String {
    format!("{}/{}", make_visible(hint.component()), make_visible(hint.key()))
}

/// Formats a line such as `api/build: make api (3h, codex, 4x; on dev; the default target is wrong)`. The line has the
/// value, the age, the author, the number of times that the hint worked, the scope if it is narrower than the
/// repository, and the reason.
pub(super) fn format_line(hint: &Hint, context: &Context, now: Millis) -> String {
    let mut line = format!(
        "{}: {} ({}, {}",
        name(hint),
        one_line(hint.text(), MAX_VALUE_CHARS),
        format_age(hint.updated_at(), now),
        one_line(source(hint), MAX_REASON_CHARS)
    );
    if hint.failure_count() > 0 {
        let _ = write!(line, "; failed {}x since it last worked", hint.failure_count());
    } else if hint.use_count() > 0 {
        let _ = write!(line, ", {}x", hint.use_count());
    }
    for place in describe_narrower(hint, context) {
        let _ = write!(line, "; {}", one_line(&place, MAX_PLACE_CHARS));
    }
    if let Some(reason) = hint.reason() {
        let _ = write!(line, "; {}", one_line(reason, MAX_REASON_CHARS));
    }
    line.push(')');
    line
}

/// Returns a hint's author.
fn source(hint: &Hint) -> &str {
    let source = hint.added_by().or_else(|| hint.source().map(HintOrigin::as_str)).unwrap_or("somebody");
    source.strip_prefix("agent:").filter(|name| !name.is_empty()).unwrap_or(source)
}

/// Returns true when a hint's line is certainly longer than `bytes`. The caller need not format such a line. In a large
/// store, most lines do not fit into the answer.
pub(super) fn is_longer(hint: &Hint, bytes: usize) -> bool {
    /// The characters around name, value and author, and the shortest age.
    const AROUND: usize = "/: (1s, )".len();
    let mut known = AROUND + hint.reason().map_or(0, |_| "; ".len());
    for (text, most) in [
        (hint.component(), usize::MAX),
        (hint.key(), usize::MAX),
        (hint.text(), MAX_VALUE_CHARS),
        (source(hint), MAX_REASON_CHARS),
        (hint.reason().unwrap_or(""), MAX_REASON_CHARS),
    ] {
        // Only as many bytes are read as the comparison needs.
        known += plain_bytes(text, most.min((bytes + 1).saturating_sub(known)));
    }
    known > bytes
}

/// Counts the first bytes of a text, at most `most`, if the line contains all these bytes unchanged. Otherwise returns
/// 0, because the formatted text may be shorter.
fn plain_bytes(text: &str, most: usize) -> usize {
    let bytes = &text.as_bytes()[..text.len().min(most)];
    let Some((first, rest)) = bytes.split_first() else { return 0 };
    // A start checks every hint, so this loop must be fast: it adds up bytes and always runs to its end, so that the
    // compiler can process many bytes in one step.
    let hidden = bytes.iter().fold(0, |so_far, byte| so_far | u8::from(!matches!(byte, b' '..=b'~')));
    let doubled =
        bytes.iter().zip(rest).fold(0, |so_far, (byte, next)| so_far | u8::from((*byte, *next) == (b' ', b' ')));
    let is_plain = hidden == 0 && doubled == 0 && *first != b' ';
    if is_plain { bytes.len() - usize::from(bytes.ends_with(b" ")) } else { 0 }
}

/// Describes the scope of a hint, as far as the scope is narrower than the agent's repository.
fn describe_narrower(hint: &Hint, context: &Context) -> Vec<String> {
    let scope = hint.scope().to_spec();
    let mut out = Vec::new();
    if !scope.branch.is_empty() {
        out.push(format!("on {}", scope.branch.join(", ")));
    }
    let repo = context.repo().map(|repo| fold_identifier(last_segment(&repo)));
    let folders: Vec<_> =
        scope.cwd_glob.iter().map(|glob| glob.trim_start_matches("**/").trim_end_matches("/**")).collect();
    let is_news = |folder: &&str| {
        !folder.starts_with('/') && *folder != "**" && Some(fold_identifier(last_segment(folder))) != repo
    };
    if !folders.is_empty() && folders.iter().all(is_news) {
        out.push(format!("in {}", folders.join(", ")));
    }
    out
}

/// Returns the last segment of a path.
fn last_segment(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{HintMeta, Nudge, SetHint};

    proptest! {
        #[test]
        fn no_line_is_shorter_than_is_said(
            text in "[a-z \\n\u{200b}\u{e9}]{1,400}",
            key in "[a-z.]{1,20}",
            reason in proptest::option::of("[a-z \\n\u{e9}]{1,200}"),
            added_by in proptest::option::of("(agent:)?[a-z ]{0,200}"),
            plain in "[a-z]{290,310}",
        ) {
            // A text that the line contains unchanged must count in full. Otherwise this check would never exclude a
            // line.
            let counted = plain.len().min(MAX_VALUE_CHARS) + MAX_REASON_CHARS + "api".len() + key.len();
            let odd = HintMeta { reason, added_by, ..HintMeta::default() };
            let usual = HintMeta { reason: Some(plain.clone()), ..HintMeta::default() };
            for (text, meta, at_least) in [(text, odd, 0), (plain, usual, counted)] {
                let store = Nudge::default();
                let Ok(stored) = store.set(SetHint { meta, ..SetHint::new("api", &*key, text) }) else { continue };
                let shown = format_line(&stored.hint, &Context::default(), store.now());
                prop_assert!(!is_longer(&stored.hint, shown.len()), "{shown}");
                prop_assert!(is_longer(&stored.hint, at_least), "{shown}");
            }
        }
    }
}
