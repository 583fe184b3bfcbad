//! Tests branches: the targets of `HEAD`, and the refs that make its short name ambiguous.

use std::path::PathBuf;

use super::lab::{Lab, OBJECT};
use super::shapes::{EITHER, SURE, Shape, URL};

pub const BRANCHES: &[Shape] = &[
    ("nested branch", SURE, |lab| {
        lab.head("ref: refs/heads/feature/x/y\n");
        lab.refer("r/.git", "refs/heads/feature/x/y");
        lab.repo_keeping_head()
    }),
    ("detached", SURE, |lab| {
        lab.head(&format!("{OBJECT}\n"));
        lab.repo_keeping_head()
    }),
    ("detached, with words after", SURE, |lab| {
        lab.head(&format!("{OBJECT} and more\n"));
        lab.repo_keeping_head()
    }),
    ("detached, too long", SURE, |lab| {
        lab.head(&format!("{OBJECT}11\n"));
        lab.repo_keeping_head()
    }),
    ("unborn", SURE, |lab| {
        lab.git(&lab.root, &["init", "-q", "-b", "main", "r"]);
        lab.path("r")
    }),
    ("unborn, a file called HEAD", SURE, |lab| {
        lab.git(&lab.root, &["init", "-q", "-b", "main", "r"]);
        lab.write("r/HEAD", "");
        lab.path("r")
    }),
    ("unborn, a tag of the branch's name", EITHER, |lab| {
        lab.git(&lab.root, &["init", "-q", "-b", "v1", "r"]);
        lab.refer("r/.git", "refs/tags/v1");
        lab.path("r")
    }),
    ("unborn, no branch", EITHER, |lab| {
        lab.head("ref: refs/remotes/origin/x\n");
        lab.repo_keeping_head()
    }),
    ("unborn, by way of another", EITHER, |lab| {
        lab.head("ref: refs/heads/way\n");
        lab.write("r/.git/refs/heads/way", "ref: refs/heads/goal\n");
        lab.repo_keeping_head()
    }),
    ("the branch is garbage", EITHER, |lab| {
        lab.head("ref: refs/heads/x\n");
        lab.write("r/.git/refs/heads/x", "garbage\n");
        lab.repo_keeping_head()
    }),
    ("unborn bare", SURE, |lab| {
        lab.git(&lab.root, &["init", "-q", "--bare", "r"]);
        lab.path("r")
    }),
    ("unborn, refs/heads/x is a folder", SURE, |lab| {
        lab.head("ref: refs/heads/x");
        lab.refer("r/.git", "refs/heads/x/y");
        lab.repo_keeping_head()
    }),
    ("unborn, below a branch", SURE, |lab| {
        lab.head("ref: refs/heads/main/x");
        lab.repo_keeping_head()
    }),
    ("HEAD is garbage", SURE, |lab| {
        lab.head("garbage\n");
        lab.repo_keeping_head()
    }),
    ("HEAD is empty", SURE, |lab| {
        lab.head("");
        lab.repo_keeping_head()
    }),
    ("HEAD with odd spaces", SURE, |lab| {
        lab.head("ref:\t \nrefs/heads/main \r\n\n");
        lab.repo_keeping_head()
    }),
    ("HEAD with a bad name", SURE, |lab| {
        lab.head("ref: refs/heads/a..b\n");
        lab.repo_keeping_head()
    }),
    ("HEAD with a space in the name", SURE, |lab| {
        lab.head("ref: refs/heads/main x\n");
        lab.repo_keeping_head()
    }),
    ("HEAD climbs", SURE, |lab| {
        lab.head("ref: refs/../HEAD\n");
        lab.repo_keeping_head()
    }),
    ("HEAD is a folder", SURE, |lab| {
        lab.repo(URL);
        let _ = std::fs::remove_file(lab.path("r/.git/HEAD"));
        lab.dir("r/.git/HEAD");
        lab.path("r")
    }),
    ("HEAD is a link", SURE, |lab| {
        lab.repo(URL);
        let _ = std::fs::remove_file(lab.path("r/.git/HEAD"));
        lab.link("refs/heads/main", "r/.git/HEAD");
        lab.path("r")
    }),
    ("HEAD is a link elsewhere", SURE, |lab| {
        lab.repo(URL);
        let _ = std::fs::remove_file(lab.path("r/.git/HEAD"));
        lab.write("r/.git/other", "ref: refs/heads/main");
        lab.link("other", "r/.git/HEAD");
        lab.path("r")
    }),
    ("symbolic chain", SURE, |lab| {
        lab.head("ref: refs/heads/a");
        lab.write("r/.git/refs/heads/a", "ref: refs/heads/b");
        lab.write("r/.git/refs/heads/b", "ref: refs/heads/main");
        lab.repo_keeping_head()
    }),
    ("symbolic chain, too long", SURE, |lab| {
        lab.head("ref: refs/heads/a1");
        for n in 1..6 {
            let next = format!("ref: refs/heads/a{}", n + 1);
            lab.write(&format!("r/.git/refs/heads/a{n}"), next);
        }
        lab.refer("r/.git", "refs/heads/a6");
        lab.repo_keeping_head()
    }),
    ("symbolic loop", SURE, |lab| {
        lab.head("ref: refs/heads/a");
        lab.write("r/.git/refs/heads/a", "ref: refs/heads/a");
        lab.repo_keeping_head()
    }),
    ("HEAD on a remote branch", EITHER, |lab| {
        lab.head("ref: refs/remotes/origin/main");
        lab.refer("r/.git", "refs/remotes/origin/main");
        lab.repo_keeping_head()
    }),
    ("HEAD on a remote's HEAD", EITHER, |lab| {
        lab.head("ref: refs/remotes/origin/HEAD");
        lab.refer("r/.git", "refs/remotes/origin/HEAD");
        lab.repo_keeping_head()
    }),
    ("HEAD on a tag, in a worktree ref, on a bare ref", EITHER, |lab| {
        lab.head("ref: refs/worktree/x");
        lab.refer("r/.git", "refs/worktree/x");
        lab.repo_keeping_head()
    }),
    ("tag of the same name", EITHER, |lab| {
        lab.refer("r/.git", "refs/tags/main");
        lab.repo(URL)
    }),
    ("tag of the same name, packed", EITHER, |lab| {
        let repo = lab.real_repo("r");
        lab.git(&repo, &["tag", "main"]);
        lab.git(&repo, &["pack-refs", "--all"]);
        repo
    }),
    ("tag of the same name, not strict", EITHER, |lab| {
        lab.refer("r/.git", "refs/tags/main");
        lab.repo("warnambiguousrefs = false\n")
    }),
    ("remote of the same name", EITHER, |lab| {
        lab.head("ref: refs/heads/origin");
        lab.refer("r/.git", "refs/heads/origin");
        lab.refer("r/.git", "refs/remotes/origin/main");
        lab.write("r/.git/refs/remotes/origin/HEAD", "ref: refs/remotes/origin/main");
        lab.repo_keeping_head()
    }),
    ("remote of the same name, not strict", EITHER, |lab| {
        lab.head("ref: refs/heads/origin");
        lab.refer("r/.git", "refs/heads/origin");
        lab.refer("r/.git", "refs/remotes/origin/HEAD");
        lab.global("[core] warnAmbiguousRefs = 0");
        lab.repo_keeping_head()
    }),
    ("remote of the same name, HEAD dangling", SURE, |lab| {
        lab.head("ref: refs/heads/origin");
        lab.refer("r/.git", "refs/heads/origin");
        lab.write("r/.git/refs/remotes/origin/HEAD", "ref: refs/remotes/origin/main");
        lab.repo_keeping_head()
    }),
    ("refs/<name>", EITHER, |lab| {
        lab.refer("r/.git", "refs/main");
        lab.repo(URL)
    }),
    ("heads/<name> taken too", EITHER, |lab| {
        lab.refer("r/.git", "refs/tags/main");
        lab.refer("r/.git", "refs/tags/heads/main");
        lab.repo(URL)
    }),
    ("a file of git's with the branch's name", SURE, |lab| {
        lab.head("ref: refs/heads/config");
        lab.refer("r/.git", "refs/heads/config");
        lab.repo_keeping_head()
    }),
    ("a ref in git's folder with the branch's name", EITHER, |lab| {
        lab.head("ref: refs/heads/ORIG_HEAD");
        lab.refer("r/.git", "refs/heads/ORIG_HEAD");
        lab.refer("r/.git", "ORIG_HEAD");
        lab.repo_keeping_head()
    }),
    ("branch called FETCH_HEAD", EITHER, |lab| {
        lab.head("ref: refs/heads/FETCH_HEAD");
        lab.refer("r/.git", "refs/heads/FETCH_HEAD");
        lab.write("r/.git/FETCH_HEAD", format!("{OBJECT}\t\tbranch 'x'\n{OBJECT}\n"));
        lab.repo_keeping_head()
    }),
    ("branch called HEAD", EITHER, |lab| {
        lab.refer("r/.git", "refs/heads/HEAD");
        lab.repo(URL)
    }),
    ("remote called HEAD, unborn", EITHER, |lab| {
        lab.head("ref: refs/heads/none");
        lab.refer("r/.git", "refs/tags/HEAD");
        lab.repo_keeping_head()
    }),
    ("branch called worktrees/x", EITHER, |lab| {
        lab.head("ref: refs/heads/worktrees/x");
        lab.refer("r/.git", "refs/heads/worktrees/x");
        lab.repo_keeping_head()
    }),
    ("packed", SURE, |lab| {
        let repo = lab.real_repo("r");
        lab.git(&repo, &["branch", "dev"]);
        lab.git(&repo, &["tag", "-a", "v1", "-m", "v"]);
        lab.git(&repo, &["pack-refs", "--all"]);
        repo
    }),
    ("packed and loose folder", SURE, |lab| {
        let repo = lab.real_repo("r");
        lab.git(&repo, &["pack-refs", "--all"]);
        lab.dir("r/.git/refs/heads/main");
        repo
    }),
    ("packed without header", SURE, |lab| {
        lab.head("ref: refs/heads/b");
        let text = format!("{OBJECT} refs/heads/c\n{OBJECT} refs/heads/b\n^{OBJECT}\n");
        lab.write("r/.git/packed-refs", text);
        lab.repo_keeping_head()
    }),
    ("packed, sorted by a lie", SURE, |lab| {
        lab.head("ref: refs/heads/b");
        let mut text = "# pack-refs with: peeled fully-peeled sorted \n".to_owned();
        for name in ["z", "y", "b", "a", "c"] {
            text += &format!("{OBJECT} refs/heads/{name}\n");
        }
        lab.write("r/.git/packed-refs", text);
        lab.repo_keeping_head()
    }),
    ("packed, cut off", EITHER, |lab| {
        lab.head("ref: refs/heads/b");
        lab.write("r/.git/packed-refs", format!("{OBJECT} refs/heads/b"));
        lab.repo_keeping_head()
    }),
    ("packed, garbage", EITHER, |lab| {
        lab.head("ref: refs/heads/b");
        lab.write("r/.git/packed-refs", "# garbage\nmore\n");
        lab.repo_keeping_head()
    }),
    ("loose ref broken", SURE, |lab| {
        lab.head("ref: refs/heads/b");
        lab.write("r/.git/refs/heads/b", "junk");
        lab.repo_keeping_head()
    }),
    ("loose ref empty", SURE, |lab| {
        lab.head("ref: refs/heads/b");
        lab.write("r/.git/refs/heads/b", "");
        lab.repo_keeping_head()
    }),
    ("loose ref is a link", SURE, |lab| {
        lab.head("ref: refs/heads/b");
        lab.dir("r/.git/refs/heads");
        lab.link("main", "r/.git/refs/heads/b");
        lab.repo_keeping_head()
    }),
    ("loose ref null", SURE, |lab| {
        lab.head("ref: refs/heads/b");
        lab.write("r/.git/refs/heads/b", "0".repeat(40));
        lab.repo_keeping_head()
    }),
    ("packed, below a loose ref", SURE, |lab| {
        lab.head("ref: refs/heads/main/x");
        lab.write("r/.git/packed-refs", format!("{OBJECT} refs/heads/main/x\n"));
        lab.repo_keeping_head()
    }),
    ("packed, below a remote without a file", EITHER, |lab| {
        lab.head("ref: refs/heads/origin");
        lab.refer("r/.git", "refs/heads/origin");
        lab.write("r/.git/packed-refs", format!("{OBJECT} refs/remotes/origin/HEAD\n"));
        lab.repo_keeping_head()
    }),
    ("unicode branch", SURE, |lab| {
        lab.head("ref: refs/heads/größe/日本\n");
        lab.refer("r/.git", "refs/heads/größe/日本");
        lab.repo_keeping_head()
    }),
    ("sha256", SURE, |lab| {
        let args = ["init", "-q", "-b", "main", "--object-format=sha256", "r"];
        lab.git(&lab.root, &args);
        let repo = lab.path("r");
        lab.commit(&repo);
        repo
    }),
    ("sha256, detached", SURE, |lab| {
        lab.git(&lab.root, &["init", "-q", "--object-format=sha256", "r"]);
        let repo = lab.path("r");
        lab.commit(&repo);
        lab.git(&repo, &["checkout", "-q", "--detach"]);
        repo
    }),
    ("reftable", EITHER, |lab| {
        lab.git(&lab.root, &["init", "-q", "--ref-format=reftable", "r"]);
        let repo = lab.path("r");
        lab.commit(&repo);
        repo
    }),
];

impl Lab {
    /// Makes a repository `r`, and keeps the `HEAD` that an earlier step wrote.
    fn repo_keeping_head(&self) -> PathBuf {
        let head = std::fs::read(self.path("r/.git/HEAD")).unwrap_or_default();
        let repo = self.repo(URL);
        self.write("r/.git/HEAD", head);
        repo
    }
}
