//! The tag of a hint that was learned in one client session and has not worked in another client session yet (semantics
//! section 20).

use sha2::{Digest as _, Sha256};

use crate::shell::Line;
use crate::text::to_hex;

/// The beginning of the tag. The digests of the failed command line and of the client session follow.
const START: &str = "after:";
/// The bytes of the digest of the failed command line.
const LINE_BYTES: usize = 6;
/// The bytes of the digest of the client session.
const SESSION_BYTES: usize = 4;

/// Makes the tag of a hint whose command worked in `client_session` after `failed` had failed.
///
/// ```
/// use nudge_core::{shell::parse, suggest::unproven};
///
/// let tag = unproven::make_tag(&parse("cd web && npm test 2>&1").unwrap(), "s-1");
/// assert!(unproven::is_tag(&tag) && unproven::is_after(&tag, &parse("npm test").unwrap()));
/// assert!(!unproven::is_after(&tag, &parse("npm ci").unwrap()));
/// assert!(unproven::is_of(&tag, "s-1") && !unproven::is_of(&tag, "s-2"));
/// ```
#[must_use]
pub fn make_tag(failed: &Line, client_session: &str) -> String {
    format!("{START}{}-{}", digest_line(failed), digest_session(client_session))
}

/// Returns true if `tag` has the form that [`make_tag`] writes.
#[must_use]
pub fn is_tag(tag: &str) -> bool {
    tag.starts_with(START)
}

/// Returns true if the hint with this tag was learned after `failed`. Folder and redirections of `failed` do not count.
#[must_use]
pub fn is_after(tag: &str, failed: &Line) -> bool {
    split_tag(tag).is_some_and(|(line, _)| line == digest_line(failed))
}

/// Returns true if the hint with this tag was learned in `client_session`.
#[must_use]
pub fn is_of(tag: &str, client_session: &str) -> bool {
    split_tag(tag).is_some_and(|(_, session)| session == digest_session(client_session))
}

fn split_tag(tag: &str) -> Option<(&str, &str)> {
    tag.strip_prefix(START)?.split_once('-')
}

fn digest_line(line: &Line) -> String {
    let mut digest = Sha256::new();
    for command in line.heads() {
        for (name, value) in &command.assignments {
            for part in [name, "=", value, "\0"] {
                digest.update(part);
            }
        }
        command.words.iter().for_each(|word| {
            digest.update(word);
            digest.update("\0");
        });
        digest.update("\n");
    }
    to_hex(&digest.finalize()[..LINE_BYTES])
}

fn digest_session(client_session: &str) -> String {
    to_hex(&Sha256::digest(client_session)[..SESSION_BYTES])
}
