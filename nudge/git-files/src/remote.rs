//! Finds the output of `git remote get-url origin`, as git's `remote.c` does.

use std::path::Path;

use super::config::ConfigEntry;
use super::layers::ConfigScope;
use super::probe::{DetectStop, FileProbe, PathSight, Res};

/// Returns the URL of `origin`; `None` when the repository has no such remote.
pub(super) fn origin_url(
    probe: &mut FileProbe,
    common: &Path,
    entries: &[(ConfigScope, ConfigEntry)],
) -> Res<Option<String>> {
    let mut configured = false;
    let mut first: Option<&[u8]> = None;
    for (scope, entry) in entries {
        let Some((b"remote", Some(b"origin"), key)) = entry.split_name() else {
            continue;
        };
        configured |= *scope == ConfigScope::Repository;
        if let (b"url", Some(value)) = (key, entry.value.as_deref()) {
            if value.is_empty() {
                return Err(DetectStop::Unsure("an empty URL, which versions of git take differently"));
            }
            first = first.or(Some(value));
        }
    }
    let Some(url) = first else {
        return without_url(probe, common, configured);
    };
    if !configured {
        return Ok(None);
    }
    let url = rewrite_url(url, entries);
    match String::from_utf8(url) {
        Ok(url) => Ok(Some(url)),
        Err(_) => Err(DetectStop::Unsure("the URL is not UTF-8")),
    }
}

/// Handles a remote without `url`. Git then searches old forms of a remote, which are files in `remotes` and
/// `branches`.
fn without_url(probe: &mut FileProbe, common: &Path, configured: bool) -> Res<Option<String>> {
    for folder in ["remotes", "branches"] {
        match probe.lstat(&common.join(folder).join("origin")) {
            PathSight::Absent | PathSight::NotDir => {}
            _ => return Err(DetectStop::Unsure("a remote in a file of its own")),
        }
    }
    if configured {
        return Err(DetectStop::Unsure("origin without a URL"));
    }
    Ok(None)
}

/// Applies `url.<base>.insteadOf`. The longest prefix wins, and the first of equally long prefixes. The bases are in
/// the order in which they first appear (git's `alias_url`).
fn rewrite_url(url: &[u8], entries: &[(ConfigScope, ConfigEntry)]) -> Vec<u8> {
    let mut bases: Vec<(&[u8], Vec<&[u8]>)> = Vec::new();
    for (_, entry) in entries {
        let (Some((b"url", Some(base), b"insteadof")), Some(prefix)) = (entry.split_name(), entry.value.as_deref())
        else {
            continue;
        };
        match bases.iter_mut().find(|known| known.0 == base) {
            Some(known) => known.1.push(prefix),
            None => bases.push((base, vec![prefix])),
        }
    }
    let mut best: Option<(&[u8], &[u8])> = None;
    for (base, prefixes) in &bases {
        for prefix in prefixes {
            if url.starts_with(prefix) && best.is_none_or(|(_, old)| old.len() < prefix.len()) {
                best = Some((base, prefix));
            }
        }
    }
    match best {
        Some((base, prefix)) => [base, &url[prefix.len()..]].concat(),
        None => url.to_vec(),
    }
}
