//! Infers the context of a folder. Every front end uses this one function (semantics section 9).

use std::path::Path;

use super::detect::{GitAnswer, GitDetector, GitInfo};
use super::{ContextSpec, can_be_told};
use crate::place::Os;
use crate::place::repo::RepoName;

/// Infers a context from `cwd`, an absolute folder: the folder, its repository and branch, and the system. The
/// environment is never inferred.
///
/// The repository is the remote `origin` in canonical form, so credentials in its URL are not sent. Without `origin`,
/// it is the `file://` form of the main worktree. Outside a repository, it is the `file://` form of `cwd` itself.
/// `ask_git` answers if git's files are not enough: it may run git, which this library never does, or return `None`.
///
/// ```
/// use nudge_core::context::{detect::GitDetector, infer_context};
/// let here = infer_context(std::path::Path::new("/"), &mut GitDetector::new(), |_| None);
/// assert_eq!(here.cwd.as_deref(), Some("/"));
/// ```
pub fn infer_context(
    cwd: &Path,
    detector: &mut GitDetector,
    ask_git: impl FnOnce(&Path) -> Option<GitInfo>,
) -> ContextSpec {
    let (repo, branch) = match detector.detect(cwd) {
        GitAnswer::Outside => (name_file_repo(cwd), None),
        GitAnswer::Inside(info) => repo_and_branch(&info),
        GitAnswer::Unsure(_) => ask_git(cwd).map_or((None, None), |info| repo_and_branch(&info)),
    };
    ContextSpec { repo, branch: branch.filter(|branch| can_be_told(branch)), ..infer_outside(cwd) }
}

/// Returns the repository of `cwd` in the same form as [`infer_context`]. `None` outside a repository; `infer_context`
/// names the folder instead.
pub fn find_repository(
    cwd: &Path,
    detector: &mut GitDetector,
    ask_git: impl FnOnce(&Path) -> Option<GitInfo>,
) -> Option<String> {
    match detector.detect(cwd) {
        GitAnswer::Outside => None,
        GitAnswer::Inside(info) => repo_and_branch(&info).0,
        GitAnswer::Unsure(_) => repo_and_branch(&ask_git(cwd)?).0,
    }
}

/// Infers a context from `cwd` without reading the folder. A name that no context may have, such as a name with a
/// control character, is left out, because the other fields may be enough for an answer.
pub fn infer_outside(cwd: &Path) -> ContextSpec {
    let cwd = cwd.to_str().filter(|cwd| can_be_told(cwd)).map(str::to_owned);
    ContextSpec { cwd, os: Os::current(), ..ContextSpec::default() }
}

fn repo_and_branch(info: &GitInfo) -> (Option<String>, Option<String>) {
    let repo = match &info.remote {
        Some(url) => RepoName::parse(url).ok().map(|repo| repo.to_string()),
        None => name_file_repo(&info.main),
    };
    (repo, info.branch.clone())
}

fn name_file_repo(path: &Path) -> Option<String> {
    RepoName::parse(path.to_str()?).ok().map(|repo| repo.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_stay_here() {
        let url = ["https://me:", "pw", "@host.example/Org/app.git"].concat();
        let info = |remote: Option<String>| GitInfo {
            root: "/w/linked".into(),
            main: "/w/App".into(),
            remote,
            branch: Some("dev".into()),
        };
        assert_eq!(repo_and_branch(&info(Some(url))), (Some("host.example/org/app".into()), Some("dev".into())));
        assert_eq!(repo_and_branch(&info(None)).0.as_deref(), Some("file:///w/App"));
        assert_eq!(repo_and_branch(&info(Some("../up".into()))).0, None);
    }

    #[test]
    fn what_cannot_be_told_is_left_out() {
        for name in ["/a\nb".to_owned(), format!("/{}", "x".repeat(5_000))] {
            let here = infer_outside(Path::new(&name));
            assert_eq!((&here.cwd, here.os), (&None, Os::current()));
            here.build().unwrap();
        }
        let info = GitInfo { root: "/w/a\nb".into(), main: "/w/a\nb".into(), remote: None, branch: None };
        assert_eq!(repo_and_branch(&info).0, None);
    }

    #[test]
    fn outside_a_repository() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        let here = infer_context(&path, &mut GitDetector::new(), |_| None);
        assert_eq!(here.repo, Some(format!("file://{}", path.to_str().unwrap())));
        assert_eq!(find_repository(&path, &mut GitDetector::new(), |_| None), None);
        assert_eq!((here.branch, here.os), (None, Os::current()));
    }
}
