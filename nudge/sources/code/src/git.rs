//! Lists the files that differ from HEAD. git runs only when a caller asks for the tests of its changes.

use std::sync::Arc;
use std::time::Duration;

use nudge_code_index::{CodeLanguage, FileFacts};
use nudge_core::error::{Error, Result};
use nudge_git::{CallLimits, CallReach, Git, GitCall, GitFailure, GitRepository};

use crate::live::facts_of;
use crate::root::{ProjectRoot, can_be_told};

/// The longest time of one run of git, and the largest output.
const LIMITS: CallLimits = CallLimits { time: Duration::from_secs(5), output_bytes: 64 << 20 };
/// The most files that are compared with their version in HEAD.
const MAX_FILES: usize = 200;

/// A file that differs from HEAD.
#[derive(Debug)]
pub struct ChangedFile {
    /// The path of the file.
    pub path: String,
    /// The facts of the file in HEAD; `None` when HEAD does not have the file, or when the file has no facts there.
    pub before: Option<Arc<FileFacts>>,
}

/// Lists the code files that differ from HEAD.
///
/// # Errors
/// `E_UNAVAILABLE` when git fails; `E_INVALID` when the project is in no repository.
pub fn list_changed_files(root: &ProjectRoot) -> Result<Vec<ChangedFile>> {
    if root.git_dir().is_none() {
        return Err(Error::invalid("This project is in no git repository; give `id` or `path`.")
            .about("id")
            .about("path"));
    }
    let status = ["status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=all"];
    let repository = Git::find(root.path()).and_then(GitRepository::open).map_err(|failure| to_error(&failure))?;
    let said = run_git(&repository, &status, "")?;
    let mut paths: Vec<String> = Vec::new();
    for entry in said.split(|byte| *byte == 0) {
        let Some(path) = entry.get(3..).and_then(|path| std::str::from_utf8(path).ok()) else { continue };
        if CodeLanguage::from_path(path).is_some() && can_be_told(path) && paths.len() < MAX_FILES {
            paths.push(path.to_owned());
        }
    }
    let asked: String = paths.iter().flat_map(|path| ["HEAD:", path, "\n"]).collect();
    let before = if paths.is_empty() { Vec::new() } else { run_git(&repository, &["cat-file", "--batch"], &asked)? };
    let mut before = &*before;
    let mut changed = Vec::new();
    for path in paths {
        let text = next_object(&mut before);
        let before = text.and_then(|text| facts_of(&path, text).ok()).map(Arc::new);
        changed.push(ChangedFile { path, before });
    }
    Ok(changed)
}

/// Takes the next object from the output of `cat-file --batch`; returns `None` for a file that does not exist.
fn next_object<'a>(said: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = said.iter().position(|byte| *byte == b'\n')?;
    let (head, rest) = (said.get(..end)?, said.get(end + 1..)?);
    *said = rest;
    // The first line is `ID blob SIZE`, or `HEAD:PATH missing`.
    let size = std::str::from_utf8(head).ok()?.rsplit_once(" blob ")?.1.parse().ok()?;
    let text = rest.get(..size)?;
    *said = rest.get(size + 1..)?;
    Some(text)
}

/// Runs git on the repository of the root, without the filters and hooks that the repository's own settings name.
fn run_git(repository: &GitRepository, words: &[&str], input: &str) -> Result<Vec<u8>> {
    let call = GitCall { words, input: input.as_bytes(), variables: &[], reach: CallReach::Here, limits: LIMITS };
    repository.run(&call).map_err(|failure| to_error(&failure))
}

fn to_error(failure: &GitFailure) -> Error {
    Error::unavailable(format!("Git does not say what has changed ({failure}); give `id` or `path`."))
        .about("id")
        .about("path")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_follow_one_another() {
        let mut said: &[u8] = b"1a blob 3\nx=1\nHEAD:b.py missing\n2b blob 0\n\n3c blob 99\nshort";
        assert_eq!(next_object(&mut said), Some(&b"x=1"[..]));
        assert_eq!(next_object(&mut said), None);
        assert_eq!(next_object(&mut said), Some(&b""[..]));
        assert_eq!(next_object(&mut said), None);
    }
}
