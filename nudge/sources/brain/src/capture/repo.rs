//! Makes commits with git's low-level commands and a separate index. So the user's checkout, index, stash and
//! configuration stay unchanged, even when several captures run at once. The user's own settings decide how git reaches
//! the remote. Hooks, filters and helpers that the brain's repository names do not run ([`nudge_git`]).

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use nudge_core::error::{Error, Result};
use nudge_core::text::first_line;
use nudge_git::{CallLimits, CallReach, Git, GitCall, GitFailure, GitRepository, RemoteVerb};
use nudge_os::process::ChildProgram;

use crate::git::to_git_error;

/// The limits of one git command. The time is long enough for a slow remote.
const LIMITS: CallLimits = CallLimits { time: Duration::from_mins(1), output_bytes: 16 << 20 };

/// The repository that contains a brain.
pub struct BrainRepo {
    repository: GitRepository,
}

/// The branch from which a capture's branch starts.
pub struct BranchBase {
    /// The name of this branch. The pull request merges into it.
    pub name: String,
    /// The commit from which the branch starts; `None` in a repository without a commit.
    pub commit: Option<String>,
}

/// The prefix of the remote's branches in the local repository.
const REMOTE: &str = "refs/remotes/origin/";

/// A file that a commit contains.
pub struct CommitFile {
    /// The path of the file, relative to the brain's folder.
    pub path: String,
    pub text: String,
    /// Is true when the file exists already and gets an addition.
    pub is_there: bool,
}

/// The input of a new commit.
pub struct NewCommit<'a> {
    pub base: Option<&'a str>,
    pub files: &'a [CommitFile],
    pub message: &'a str,
    /// The time of the commit, in seconds since 1970. The time is an input, so a repeated commit has the same hash.
    pub unix_seconds: i64,
    /// The path of the separate index file.
    pub index: &'a Path,
}

impl BrainRepo {
    /// Opens the repository of a brain.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the brain is in no repository, or when git is missing.
    pub fn open(root: &Path) -> Result<Self> {
        let none = || {
            Error::unavailable(format!(
                "The brain {} is in no repository; `nudge brain init --git` there makes it one.",
                root.display()
            ))
        };
        let is_marked = root.ancestors().any(|folder| folder.join(".git").symlink_metadata().is_ok());
        let opened = Git::find(root).and_then(GitRepository::open);
        let repository =
            opened.map_err(|failure| if failure.is_start() || is_marked { to_git_error(&failure) } else { none() })?;
        Ok(Self { repository })
    }

    /// Finds the commit from which a new branch starts. If there is a remote, it is a commit of a remote branch, so
    /// that a push sends nothing else. Without a remote, it is the wanted branch, or else the checkout.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when no branch of the remote is known.
    pub fn find_base(&self, wanted: Option<&str>) -> Result<BranchBase> {
        let wanted = wanted.filter(|name| is_ref(name)).map(str::to_owned);
        if self.remote().is_none() {
            let commit = wanted.as_ref().and_then(|name| self.commit_of(&format!("refs/heads/{name}")));
            let name = wanted.or_else(|| self.named_by("HEAD", "refs/heads/")).unwrap_or_else(|| "main".to_owned());
            return Ok(BranchBase { name, commit: commit.or_else(|| self.commit_of("HEAD")) });
        }
        let name = wanted
            .or_else(|| self.named_by("refs/remotes/origin/HEAD", REMOTE))
            .or_else(|| self.own_of_the_remote())
            .or_else(|| self.find_upstream());
        let Some(name) = name else {
            return Err(Error::unavailable(
                "No branch of the brain's remote is known to begin at; `git push -u origin BRANCH` there makes one, \
                 and `capture: {base: BRANCH}` in brain.yaml names it.",
            ));
        };
        let tracked = format!("{REMOTE}{name}");
        if self.commit_of(&tracked).is_none() {
            let fetched = format!("+refs/heads/{name}:{tracked}");
            self.ask_remote(RemoteVerb::Fetch, &[&fetched])?;
        }
        Ok(BranchBase { commit: self.commit_of(&tracked), name })
    }

    /// Returns the default branch that the remote reports.
    fn own_of_the_remote(&self) -> Option<String> {
        let said = self.ask_remote(RemoteVerb::List, &["HEAD"]).ok()?;
        let name = said.lines().find_map(|line| line.strip_prefix("ref: refs/heads/")?.strip_suffix("\tHEAD"))?;
        Some(name.to_owned()).filter(|name| is_ref(name))
    }

    /// Returns the upstream branch of the checkout, or else the remote branch with the same name.
    fn find_upstream(&self) -> Option<String> {
        let followed = self.run_git(&["rev-parse", "--symbolic-full-name", "@{upstream}"]).ok();
        let followed = followed.and_then(|full| full.strip_prefix(REMOTE).map(str::to_owned));
        let same =
            || self.named_by("HEAD", "refs/heads/").filter(|name| self.commit_of(&format!("{REMOTE}{name}")).is_some());
        followed.or_else(same)
    }

    /// Returns the branch that a symbolic name points to.
    fn named_by(&self, name: &str, before: &str) -> Option<String> {
        let full = self.run_git(&["symbolic-ref", "--quiet", name]).ok()?;
        full.strip_prefix(before).map(str::to_owned)
    }

    /// Returns the commit that a name points to; `None` if there is none.
    pub fn commit_of(&self, name: &str) -> Option<String> {
        self.run_git(&["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{name}^{{commit}}")]).ok()
    }

    /// Returns true when the checkout contains a commit, or when the remote branch `into` contains it.
    pub fn is_merged(&self, commit: &str, into: Option<&str>) -> bool {
        let remote = into.map(|name| format!("{REMOTE}{name}"));
        ["HEAD"].into_iter().chain(remote.as_deref()).any(|name| {
            self.commit_of(name).is_some() && self.run_git(&["merge-base", "--is-ancestor", commit, name]).is_ok()
        })
    }

    /// Returns the text of a file in a commit; `None` if the commit does not have the file.
    pub fn read_file(&self, commit: &str, path: &str) -> Option<String> {
        self.run_git_raw(&["cat-file", "blob", &format!("{commit}:{}{path}", self.repository.prefix())], "", &[]).ok()
    }

    /// Returns true when a commit has a file with this path.
    pub fn has_file(&self, commit: &str, path: &str) -> bool {
        self.run_git(&["cat-file", "-e", &format!("{commit}:{}{path}", self.repository.prefix())]).is_ok()
    }

    /// Makes a commit that belongs to no branch yet. Returns the hash of the commit.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when git fails.
    pub fn create_commit(&self, commit: &NewCommit<'_>) -> Result<String> {
        let NewCommit { base, files, message, unix_seconds: time, index } = *commit;
        let date = format!("@{time} +0000");
        let own_index = [("GIT_INDEX_FILE", index.as_os_str())];
        match base {
            Some(base) => self.run_git_raw(&["read-tree", base], "", &own_index)?,
            None => self.run_git_raw(&["read-tree", "--empty"], "", &own_index)?,
        };
        for CommitFile { path, text, .. } in files {
            let hash = self.run_git_raw(&["hash-object", "-w", "--stdin", "--no-filters"], text, &own_index)?;
            let entry = format!("100644,{},{}{path}", hash.trim(), self.repository.prefix());
            self.run_git_raw(&["update-index", "--add", "--cacheinfo", &entry], "", &own_index)?;
        }
        let tree = self.run_git_raw(&["write-tree"], "", &own_index)?;
        let mut env = vec![("GIT_AUTHOR_DATE", OsStr::new(&date)), ("GIT_COMMITTER_DATE", OsStr::new(&date))];
        // Git needs a name and an address for the author. These are used if the user has set none.
        for (role, words) in [("AUTHOR", "GIT_AUTHOR_IDENT"), ("COMMITTER", "GIT_COMMITTER_IDENT")] {
            if self.run_git(&["var", words]).is_err() {
                let names = if role == "AUTHOR" {
                    ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL"]
                } else {
                    ["GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"]
                };
                env.extend(names.into_iter().zip(["Nudge", "nudge@localhost"].map(OsStr::new)));
            }
        }
        let mut words = vec!["commit-tree", tree.trim(), "-F", "-"];
        words.extend(base.into_iter().flat_map(|base| ["-p", base]));
        Ok(self.run_git_raw(&words, message, &env)?.trim().to_owned())
    }

    /// Makes the branch for a commit. Returns false when a branch with this name points to another commit.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when git fails.
    pub fn create_branch(&self, name: &str, commit: &str) -> Result<bool> {
        let full = format!("refs/heads/{name}");
        let made = self.run_git(&["update-ref", &full, commit, ""]);
        match self.commit_of(&full) {
            Some(known) => Ok(known == commit),
            None => made.map(|_| false).map_err(|failure| to_git_error(&failure)),
        }
    }

    /// Returns the address of the remote from git's configuration; `None` without a remote.
    pub fn remote(&self) -> Option<String> {
        self.repository.remote().map(str::to_owned)
    }

    /// Pushes a commit to a branch of the remote.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when git fails or the remote refuses the push.
    pub fn push_commit(&self, name: &str, commit: &str) -> Result<()> {
        self.ask_remote(RemoteVerb::Push, &[&format!("{commit}:refs/heads/{name}")]).map(drop)
    }

    /// Lets a child program run git in this repository by itself.
    pub fn lend_to(&self, program: &mut ChildProgram) {
        self.repository.lend_to(program);
    }

    #[cfg(feature = "llm")]
    /// Returns the password that the user's own git helpers have for a host; `None` if they have none.
    pub fn find_credential(&self, host: &str) -> Option<String> {
        let asked = format!("protocol=https\nhost={host}\n\n");
        let (words, reach) = (["credential", "fill"], CallReach::Remote);
        let call = GitCall { words: &words, input: asked.as_bytes(), variables: &[], reach, limits: LIMITS };
        let said = String::from_utf8(self.repository.run(&call).ok()?).ok()?;
        said.lines().find_map(|line| line.strip_prefix("password=").map(str::to_owned))
    }

    /// Returns the texts that a branch proposes, and the changes of the branch as a diff.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when git fails.
    pub fn diff_branch(&self, branch: &str) -> Result<String> {
        let (since, branch) = (self.find_merge_base(branch)?.0, format!("refs/heads/{branch}"));
        let said = self.run_git_raw(&["log", "-1", "--format=%b", &branch, "--"], "", &[])?;
        let said = if said.trim().is_empty() { String::new() } else { format!("{}\n\n", said.trim()) };
        let words = ["diff", "--no-color", "--no-ext-diff", "--no-textconv", &since, &branch, "--"];
        Ok(said + &self.run_git_raw(&words, "", &[])?)
    }

    /// Finds the common ancestor of a branch and the checkout, and returns it with true. If there is no common
    /// ancestor, returns the empty tree with false. This happens when the capture came before the first commit of the
    /// repository.
    fn find_merge_base(&self, branch: &str) -> Result<(String, bool)> {
        if let Ok(commit) = self.run_git(&["merge-base", "HEAD", &format!("refs/heads/{branch}")]) {
            return Ok((commit, true));
        }
        // Git computes the hash of the empty tree, because the hash depends on the repository's kind of hash.
        Ok((self.run_git_raw(&["hash-object", "-t", "tree", "--stdin"], "", &[])?.trim_end().to_owned(), false))
    }

    /// Lists the branches that begin with this prefix and are not merged into the checkout, the oldest first.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when git fails.
    pub fn list_unmerged(&self, prefix: &str) -> Result<Vec<String>> {
        let pattern = format!("refs/heads/{}", prefix.trim_end_matches('/'));
        let mut words = vec!["for-each-ref", "--sort=committerdate", "--format=%(refname:lstrip=2)"];
        let below = format!("{pattern}/");
        let pattern = if prefix.ends_with('/') { &below } else { &pattern };
        if self.commit_of("HEAD").is_some() {
            words.push("--no-merged=HEAD");
        }
        words.push(pattern);
        Ok(self.run_git_raw(&words, "", &[])?.lines().map(str::to_owned).collect())
    }

    /// Merges a branch into the checkout. The checkout must have no uncommitted changes in the files of the branch.
    ///
    /// # Errors
    /// `E_CONFLICT` for such changes, for a checkout that is on no branch, for an unfinished merge or rebase, and for a
    /// merge that fails. `E_UNAVAILABLE` when another git command fails.
    pub fn merge_branch(&self, branch: &str) -> Result<()> {
        if self.named_by("HEAD", "refs/heads/").is_none() {
            return Err(Error::conflict("The brain's checkout is at no branch; check one out, then review again."));
        }
        if self.repository.is_under_way() {
            return Err(Error::conflict(
                "The brain is in the middle of a merge or rebase; end that, then review again.",
            ));
        }
        let (since, is_shared) = self.find_merge_base(branch)?;
        let full = format!("refs/heads/{branch}");
        let paths = self.run_git_raw(&["diff", "--name-only", "-z", &since, &full, "--"], "", &[])?;
        let names: Vec<_> =
            paths.split('\0').filter(|path| !path.is_empty()).map(|path| format!(":(top,literal){path}")).collect();
        let mut words = vec!["status", "--porcelain", "--untracked-files=all", "--"];
        words.extend(names.iter().map(String::as_str));
        let dirty = self.run_git_raw(&words, "", &[])?;
        if !dirty.is_empty() {
            let path = first_line(&dirty);
            let path = path.get(3..).unwrap_or(path);
            return Err(Error::conflict(format!(
                "{path} has changes of yours; commit or remove them, then review again."
            )));
        }
        let mut words = vec!["merge", "--quiet", "--no-edit", &full];
        if !is_shared && self.commit_of("HEAD").is_some() {
            words.push("--allow-unrelated-histories");
        }
        let done = self.run_git(&words);
        done.map(drop).map_err(|error| {
            let _ = self.run_git(&["merge", "--abort"]);
            Error::conflict(format!("Git does not merge {branch} ({error}); merge it by hand."))
        })
    }

    /// Runs git. Returns the output without blanks at its end.
    fn run_git(&self, words: &[&str]) -> std::result::Result<String, GitFailure> {
        self.call(words, "", &[]).map(|text| text.trim_end().to_owned())
    }

    /// Runs git. Returns the whole output.
    fn run_git_raw(&self, words: &[&str], input: &str, variables: &[(&str, &OsStr)]) -> Result<String> {
        self.call(words, input, variables).map_err(|failure| to_git_error(&failure))
    }

    fn call(
        &self,
        words: &[&str],
        input: &str,
        variables: &[(&str, &OsStr)],
    ) -> std::result::Result<String, GitFailure> {
        let call = GitCall { words, input: input.as_bytes(), variables, reach: CallReach::Here, limits: LIMITS };
        self.repository.run(&call).map(|said| String::from_utf8_lossy(&said).into_owned())
    }

    /// Runs a git command that reaches the remote.
    fn ask_remote(&self, verb: RemoteVerb, words: &[&str]) -> Result<String> {
        let said = self.repository.reach_remote(verb, words, LIMITS).map_err(|failure| to_git_error(&failure))?;
        Ok(String::from_utf8_lossy(&said).into_owned())
    }
}

/// Returns true when a text is a valid branch name and git cannot take it for anything else.
pub fn is_ref(name: &str) -> bool {
    (1..=100).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'/' | b'.'))
        && !name.contains("..")
        && !name.contains("//")
        && !name.ends_with(['.'])
        && !name.to_ascii_lowercase().ends_with(".lock")
}
