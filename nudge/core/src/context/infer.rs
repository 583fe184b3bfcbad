//! The one inference of a context, for every front end (semantics section 9).

use std::path::Path;

use super::detect::{Detector, Git, GitInfo};
use super::{ContextSpec, can_be_told};
use crate::place::Os;
use crate::place::repo::Repo;

/// Infers a context from `cwd`, an absolute folder: itself, its repository and branch, and the system. The environment
/// is never inferred.
///
/// The repository is `origin`'s, in canonical form, so that credentials in its URL stay here; else
/// the `file://` form of the main worktree, outside a repository of `cwd` itself. `ask_git` answers where
/// git's files are not enough; it may run git, which this library never does, or say `None`.
///
/// ```
/// use nudge_core::context::{detect::Detector, infer};
/// let here = infer(std::path::Path::new("/"), &mut Detector::new(), |_| None);
/// assert_eq!(here.cwd.as_deref(), Some("/"));
/// ```
pub fn infer(cwd: &Path, detector: &mut Detector, ask_git: impl FnOnce(&Path) -> Option<GitInfo>) -> ContextSpec {
    let (repo, branch) = match detector.git(cwd) {
        Git::Outside => (file(cwd), None),
        Git::Inside(info) => of(&info),
        Git::Unsure(_) => ask_git(cwd).map_or((None, None), |info| of(&info)),
    };
    ContextSpec { repo, branch: branch.filter(|branch| can_be_told(branch)), ..outside(cwd) }
}

/// The repository that `cwd` lies in, as [`infer`] names it; `None` outside one, where `infer` names the folder.
pub fn repository(
    cwd: &Path,
    detector: &mut Detector,
    ask_git: impl FnOnce(&Path) -> Option<GitInfo>,
) -> Option<String> {
    match detector.git(cwd) {
        Git::Outside => None,
        Git::Inside(info) => of(&info).0,
        Git::Unsure(_) => of(&ask_git(cwd)?).0,
    }
}

/// Infers a context from `cwd` without looking at it. A name that no context may hold, such as one with a control
/// character, is left out: the rest may be enough for an answer.
pub fn outside(cwd: &Path) -> ContextSpec {
    let cwd = cwd.to_str().filter(|cwd| can_be_told(cwd)).map(str::to_owned);
    ContextSpec { cwd, os: Os::current(), ..ContextSpec::default() }
}

fn of(info: &GitInfo) -> (Option<String>, Option<String>) {
    let repo = match &info.remote {
        Some(url) => Repo::parse(url).ok().map(|repo| repo.to_string()),
        None => file(&info.main),
    };
    (repo, info.branch.clone())
}

fn file(path: &Path) -> Option<String> {
    Repo::parse(path.to_str()?).ok().map(|repo| repo.to_string())
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
        assert_eq!(of(&info(Some(url))), (Some("host.example/org/app".into()), Some("dev".into())));
        assert_eq!(of(&info(None)).0.as_deref(), Some("file:///w/App"));
        assert_eq!(of(&info(Some("../up".into()))).0, None);
    }

    #[test]
    fn what_cannot_be_told_is_left_out() {
        for name in ["/a\nb".to_owned(), format!("/{}", "x".repeat(5_000))] {
            let here = outside(Path::new(&name));
            assert_eq!((&here.cwd, here.os), (&None, Os::current()));
            here.build().unwrap();
        }
        let info = GitInfo { root: "/w/a\nb".into(), main: "/w/a\nb".into(), remote: None, branch: None };
        assert_eq!(of(&info).0, None);
    }

    #[test]
    fn outside_a_repository() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        let here = infer(&path, &mut Detector::new(), |_| None);
        assert_eq!(here.repo, Some(format!("file://{}", path.to_str().unwrap())));
        assert_eq!(repository(&path, &mut Detector::new(), |_| None), None);
        assert_eq!((here.branch, here.os), (None, Os::current()));
    }
}
