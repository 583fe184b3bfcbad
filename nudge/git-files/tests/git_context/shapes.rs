//! Tests repositories of many forms, one by one.

use std::path::PathBuf;

use super::lab::{Lab, PLAIN};
use nudge_git_files::git_with;

/// The name of a form; a flag that is true if the reader must be sure; a function that makes the repository and returns
/// the folder in which the reader runs.
pub type Shape = (&'static str, bool, fn(&mut Lab) -> PathBuf);

pub const SURE: bool = true;
/// The reader may be unsure, but must not differ from git.
pub const EITHER: bool = false;

pub const URL: &str = "[remote \"origin\"]\n\turl = https://host/org/app.git\n\
                   \tfetch = +refs/heads/*:refs/remotes/origin/*\n";

const PLACES: &[Shape] = &[
    ("outside", SURE, |lab| lab.dir("x/y")),
    ("plain", SURE, |lab| lab.repo(URL)),
    ("by git", SURE, |lab| lab.real_repo("r")),
    ("clone", SURE, |lab| {
        lab.real_repo("r");
        lab.git(&lab.root, &["clone", "-q", "r", "c"]);
        lab.path("c")
    }),
    ("two levels deep", SURE, |lab| {
        lab.repo(URL);
        lab.dir("r/a/b")
    }),
    ("deeply nested", SURE, |lab| {
        lab.repo(URL);
        lab.dir(&format!("r/{}", "d/".repeat(60)))
    }),
    ("unicode and spaces", SURE, |lab| {
        lab.bones("dür 日本/.git", URL);
        lab.dir("dür 日本/ü x")
    }),
    ("linked cwd", SURE, |lab| {
        lab.repo(URL);
        lab.dir("r/a");
        lab.link("r/a", "link");
        lab.path("link")
    }),
    ("inside .git", SURE, |lab| {
        lab.repo(URL);
        lab.path("r/.git/refs")
    }),
    ("in .git itself", SURE, |lab| {
        lab.repo(URL);
        lab.path("r/.git")
    }),
    ("bare", SURE, |lab| {
        lab.git(&lab.root, &["init", "-q", "--bare", "-b", "main", "b.git"]);
        lab.path("b.git")
    }),
    ("inside bare", SURE, |lab| {
        lab.bones("b.git", "bare = true\n[remote \"origin\"]url=x");
        lab.path("b.git/refs")
    }),
    ("core.bare with a .git folder", SURE, |lab| lab.repo("bare = true\n")),
    ("core.worktree", SURE, |lab| {
        lab.dir("elsewhere/in");
        lab.repo("worktree = ../../elsewhere\n")
    }),
    ("core.worktree, inside .git", SURE, |lab| {
        lab.dir("elsewhere");
        lab.repo("worktree = ../../elsewhere\n");
        lab.path("r/.git")
    }),
    ("core.worktree absent", EITHER, |lab| lab.repo("worktree = ../../nowhere\n")),
    ("core.worktree and core.bare", EITHER, |lab| lab.repo("worktree = ..\nbare=true\n")),
    ("linked worktree", SURE, |lab| {
        let repo = lab.real_repo("r");
        lab.git(&repo, &["remote", "add", "origin", "git@host:org/app"]);
        lab.git(&repo, &["worktree", "add", "-q", "-b", "feature/x", "../w"]);
        lab.dir("w/sub")
    }),
    ("detached worktree", SURE, |lab| {
        let repo = lab.real_repo("r");
        lab.git(&repo, &["worktree", "add", "-q", "--detach", "../w"]);
        lab.path("w")
    }),
    ("inside a worktree's own folder", SURE, |lab| {
        let repo = lab.real_repo("r");
        lab.git(&repo, &["worktree", "add", "-q", "--detach", "../w"]);
        lab.path("r/.git/worktrees/w")
    }),
    ("worktree configuration", SURE, |lab| {
        let repo = lab.real_repo("r");
        lab.git(&repo, &["worktree", "add", "-q", "-b", "b", "../w"]);
        lab.git(&repo, &["config", "extensions.worktreeConfig", "true"]);
        let args = ["config", "--worktree", "remote.origin.url", "only/here"];
        lab.git(&lab.path("w"), &args);
        lab.path("w")
    }),
    ("worktree of a bare repository", SURE, |lab| {
        let repo = lab.real_repo("r");
        lab.git(&lab.root, &["clone", "-q", "--bare", "r", "b"]);
        lab.git(&lab.path("b"), &["worktree", "add", "-q", "../w", "main"]);
        let _ = repo;
        lab.path("w")
    }),
    ("worktree whose repository is bare by mistake", SURE, |lab| {
        lab.real_repo("r");
        lab.git(&lab.root, &["clone", "-q", "--bare", "r", "b"]);
        lab.git(&lab.path("b"), &["worktree", "add", "-q", "../w", "main"]);
        lab.git(&lab.path("b"), &["config", "extensions.worktreeConfig", "true"]);
        lab.path("w")
    }),
    ("worktree of a repository with core.worktree", SURE, |lab| {
        let repo = lab.real_repo("r");
        lab.git(&repo, &["worktree", "add", "-q", "-b", "b", "../w"]);
        lab.git(&repo, &["config", "core.worktree", "../../r"]);
        lab.path("w")
    }),
    ("worktree whose repository is gone", SURE, |lab| {
        lab.write("w/.git", "gitdir: /nowhere/.git/worktrees/w\n");
        lab.path("w")
    }),
    ("submodule", SURE, |lab| {
        lab.real_repo("lib");
        let repo = lab.real_repo("r");
        let allow = "protocol.file.allow=always";
        lab.git(&repo, &["-c", allow, "submodule", "--quiet", "add", "../lib", "sub"]);
        lab.dir("r/sub/x")
    }),
    ("inside a submodule's own folder", SURE, |lab| {
        lab.real_repo("lib");
        let repo = lab.real_repo("r");
        let allow = "protocol.file.allow=always";
        lab.git(&repo, &["-c", allow, "submodule", "--quiet", "add", "../lib", "sub"]);
        lab.path("r/.git/modules/sub")
    }),
    ("separate git dir", SURE, |lab| {
        lab.git(&lab.root, &["init", "-q", "--separate-git-dir", "g", "r"]);
        lab.path("r")
    }),
    (".git file, relative, CRLF", SURE, |lab| {
        lab.bones("g", URL);
        lab.write("r/.git", "gitdir: ../g\r\n\n");
        lab.path("r")
    }),
    (".git file, no repository", SURE, |lab| {
        lab.write("r/.git", "gitdir: ../g\n");
        lab.path("r")
    }),
    (".git file, garbage", SURE, |lab| {
        lab.write("r/.git", "gitdir:../g\n");
        lab.path("r")
    }),
    (".git file, empty", SURE, |lab| {
        lab.write("r/.git", "");
        lab.path("r")
    }),
    (".git file, no path", SURE, |lab| {
        lab.write("r/.git", "gitdir: \n");
        lab.path("r")
    }),
    (".git file that names a .git file", SURE, |lab| {
        lab.bones("g", URL);
        lab.write("q/.git", "gitdir: ../g");
        lab.write("r/.git", "gitdir: ../q/.git");
        lab.path("r")
    }),
    (".git link", SURE, |lab| {
        lab.bones("g", URL);
        lab.dir("r");
        lab.link("../g", "r/.git");
        lab.path("r")
    }),
    (".git link to a .git file", SURE, |lab| {
        lab.bones("g", URL);
        lab.write("file", "gitdir: ../g");
        lab.dir("r");
        lab.link("../file", "r/.git");
        lab.path("r")
    }),
    (".git link to nowhere, repository above", SURE, |lab| {
        lab.repo(URL);
        lab.dir("r/a");
        lab.link("../nowhere", "r/a/.git");
        lab.path("r/a")
    }),
    ("empty .git folder, repository above", SURE, |lab| {
        lab.repo(URL);
        lab.dir("r/a/.git");
        lab.path("r/a")
    }),
    ("no objects folder", SURE, |lab| {
        lab.repo(URL);
        let _ = std::fs::remove_dir(lab.path("r/.git/objects"));
        lab.path("r")
    }),
    ("no configuration file", SURE, |lab| {
        lab.repo(URL);
        let _ = std::fs::remove_file(lab.path("r/.git/config"));
        lab.path("r")
    }),
    ("ceiling", EITHER, |lab| {
        lab.repo(URL);
        lab.set("GIT_CEILING_DIRECTORIES", lab.path("r").display().to_string());
        lab.dir("r/a/b")
    }),
    ("GIT_DIR", EITHER, |lab| {
        lab.bones("g", URL);
        lab.set("GIT_DIR", lab.path("g").display().to_string());
        lab.repo("")
    }),
];

/// Makes every repository and compares the answers. Lists all repositories for which they differ.
pub fn check(table: &[Shape]) {
    let mut wrong = Vec::new();
    for (name, sure, build) in table {
        let mut lab = Lab::new();
        let cwd = build(&mut lab);
        match lab.compare(&cwd) {
            Ok(false) if *sure => {
                let why = git_with(&lab.env(), &cwd);
                wrong.push(format!("{name}: should be sure, is {why:?}"));
            }
            Ok(_) => {}
            Err(difference) => wrong.push(format!("{name}:\n{difference}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn places() {
    check(PLACES);
}

#[test]
fn branches() {
    check(super::branches::BRANCHES);
}

/// Tests repositories that differ only in the configuration file of `r`.
#[test]
fn configurations() {
    let mut wrong = Vec::new();
    for (text, sure) in super::configs::TABLE {
        let lab = Lab::new();
        let cwd = lab.repo("");
        lab.write("r/.git/config", text.replace("PLAIN", PLAIN));
        match lab.compare(&cwd) {
            Ok(false) if *sure => {
                wrong.push(format!("{text:?}: should be sure, is {:?}", git_with(&lab.env(), &cwd)));
            }
            Ok(_) => {}
            Err(difference) => wrong.push(format!("{text:?}:\n{difference}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn settings_and_includes() {
    check(super::configs::SHAPES);
}
