//! Parses the address of a repository. The canonical form must parse to the same value and contain no password.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nudge_core::place::repo::RepoName;

fuzz_target!(|text: &str| {
    let Ok(repo) = RepoName::parse(text) else { return };
    let shown = repo.to_string();
    assert_eq!(RepoName::parse(&shown).map_err(|error| error.message().to_owned()), Ok(repo), "{text:?} {shown:?}");
});
