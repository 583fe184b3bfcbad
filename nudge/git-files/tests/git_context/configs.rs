//! Tests configuration files: syntax, values, includes, scopes and owners.

use std::os::unix::fs::chown;

use super::shapes::{EITHER, SURE, Shape, URL};

/// Configuration files. `PLAIN` stands for the usual first lines. The flag is true if the reader must be sure of its
/// answer.
pub const TABLE: &[(&str, bool)] = &[
    ("PLAIN[remote \"origin\"] url=one/line", SURE),
    ("PLAIN[remote \"origin\"]url=a b  c ; comment", SURE),
    ("PLAIN[remote \"origin\"]url = \"a;b #c\" # comment", SURE),
    ("PLAIN[remote \"origin\"]\nurl = a\\\n  b\\\nc", SURE),
    ("PLAIN[remote \"origin\"]\nurl = \"a\\\"b\\\\c\\td\"", SURE),
    ("PLAIN[remote \"origin\"]\nurl = a\\nb", SURE),
    ("PLAIN[remote \"origin\"]\nurl = \" a \"  ", SURE),
    ("PLAIN[REMOTE \"origin\"]\nURL = a", SURE),
    ("PLAIN[remote \"Origin\"]\nurl = a", SURE),
    ("PLAIN[remote.Origin]\nurl = a", SURE),
    ("PLAIN[remote \"ori\\gin\"]\nurl = a", SURE),
    ("PLAIN[remote \"origin\"]\nurl = a\nurl = b\n[remote \"origin\"]url=c", SURE),
    ("PLAIN[remote \"origin\"]\npushurl = p\nurl = a", SURE),
    ("PLAIN[remote \"origin\"]\npushurl = p", EITHER),
    ("PLAIN[remote \"origin\"]\nurl =", EITHER),
    ("PLAIN[remote \"origin\"]\nurl = a\nurl =\nurl = b", EITHER),
    ("PLAIN[remote \"origin\"]\nurl", EITHER),
    ("PLAIN[remote \"origin\"]", SURE),
    ("PLAIN[remote \"upstream\"]\nurl = a", SURE),
    ("PLAIN[remote \"origin\"]\nfetch = +refs/heads/*:refs/remotes/origin/*", EITHER),
    ("PLAIN[remote \"origin\"]\nurl = a\nfetch = bad refspec", EITHER),
    ("PLAIN[remote \"origin\"]\nurl = a\nfetch = refs/heads/*:refs/x", EITHER),
    ("PLAIN[remote \"origin\"]\nurl = a\nfetch = +refs/pull/*/head:refs/remotes/pr/*", SURE),
    ("PLAIN[remote \"origin\"]\nurl = a\nprune", SURE),
    ("PLAIN[remote \"origin\"]\nurl = a\nprune = perhaps", EITHER),
    ("PLAIN[remote \"origin\"]\nurl = a\n[branch \"main\"]\nremote = origin\nmerge = refs/heads/main", SURE),
    ("PLAIN[remote \"origin\"]\nurl = a\n[branch \"\"]\nremote = origin", EITHER),
    ("PLAIN[remote \"origin\"]\r\n\turl = a\r\n", SURE),
    ("PLAIN[remote \"origin\"]\nurl = a\rb", SURE),
    ("PLAIN[remote \"origin\"]\nurl = a\tb", SURE),
    ("PLAIN[remote \"origin\"]\nurl = größe/日本", SURE),
    ("\u{feff}PLAIN[remote \"origin\"]\nurl = a", SURE),
    ("PLAIN[remote \"origin\" ]\nurl = a", EITHER),
    ("PLAIN[remote \"origin\"\nurl = a", EITHER),
    ("PLAIN[remote \"origin\"]\nurl = \"a", EITHER),
    ("PLAIN[remote \"origin\"]\nurl = a\\x", EITHER),
    ("PLAIN[remote \"origin\"]\nurl = a\0b", EITHER),
    ("PLAIN[remote \"origin\"]\nu_rl = a", EITHER),
    ("url = a\nPLAIN", EITHER),
    ("PLAIN[remote \"origin\"]\nurl = a\\", SURE),
    ("PLAIN[remote \"origin\"] # comment\nurl = a # comment", SURE),
    ("PLAIN[remote \"origin\"] ; [remote \"x\"]\nurl = a", SURE),
    ("PLAIN[remote \"origin\"]url=a\n[url \"https://h/\"]insteadOf=a", SURE),
    ("PLAIN[remote \"origin\"]url=gh:o/r\n[url \"x:\"]insteadOf=g\n[url \"https://g/\"]insteadOf = gh:", SURE),
    (
        "PLAIN[remote \"origin\"]url=gh:o\n[url \"A\"]insteadOf=gh\n[url \"B\"]insteadOf=gh\n[url \"A\"]insteadOf=gh:",
        SURE,
    ),
    ("PLAIN[remote \"origin\"]url=gh:o\n[url \"A\"]insteadOf=\n[url \"B\"]pushInsteadOf=gh:", SURE),
    ("PLAIN[remote \"origin\"]url=gh:o\n[url \"\"]insteadOf=gh:", SURE),
    ("PLAIN[remote \"origin\"]url=gh:o\n[url]insteadOf=gh:", SURE),
    ("PLAIN[remote \"origin\"]url=gh:o\n[url \"A\"]insteadOf", EITHER),
    ("[remote \"origin\"]\nurl = no/version", SURE),
    ("[core]bare=true\n[remote \"origin\"]\nurl = no/version", EITHER),
    ("[core]worktree=..\n[remote \"origin\"]\nurl = no/version", EITHER),
    ("[core]repositoryformatversion=1\n[extensions]\nunknown=1", EITHER),
    ("[core]repositoryformatversion=0\n[extensions]\nunknown=1", EITHER),
    ("[core]repositoryformatversion=0\n[extensions]\nobjectformat=sha256", EITHER),
    ("[core]repositoryformatversion=1\n[extensions]\nobjectformat=sha1\nnoop\nnoop-v1\npartialclone=origin", SURE),
    ("[core]repositoryformatversion=1\n[extensions]\nrefstorage=files", SURE),
    ("[core]repositoryformatversion=1\n[extensions]\nrefstorage=reftable", EITHER),
    ("[core]repositoryformatversion=2\n", EITHER),
    ("[core]repositoryformatversion=99999999999\n", EITHER),
    ("[core]repositoryformatversion\n", EITHER),
    ("PLAIN bare = maybe", EITHER),
    ("PLAIN bare\n", SURE),
    ("PLAIN filemode = maybe", EITHER),
    ("PLAIN editor\n", EITHER),
    ("PLAIN hookspath = ~nobody-at-all/x\n", EITHER),
    ("PLAIN compression = 20\n", EITHER),
    ("PLAIN eol = sideways\n autocrlf = input\n", SURE),
    ("PLAIN warnambiguousrefs = maybe\n", EITHER),
    ("PLAIN[push]default=odd", EITHER),
    ("PLAIN[push]default=upstream\n[user]name=x\n[color]ui=auto\n[alias]st=status -s\n[a \"b\"]c", SURE),
    ("PLAIN[user]name", EITHER),
    ("PLAIN[transfer]credentialsInUrl=die\n[remote \"origin\"]url=https://u:p@h/x", EITHER),
    ("PLAIN[remote \"origin\"]url=https://u:p@h/x", SURE),
    ("", SURE),
    ("\n\n", SURE),
];

pub const SHAPES: &[Shape] = &[
    ("global insteadOf", SURE, |lab| {
        lab.global("[url \"git@host:\"]\n\tinsteadOf = https://host/\n");
        lab.repo(URL)
    }),
    ("global and repository insteadOf", SURE, |lab| {
        lab.global("[url \"A\"]\n\tinsteadOf = https://host/\n");
        lab.repo(&format!("{URL}[url \"B\"]\ninsteadOf = https://host/\n"))
    }),
    ("global origin alone", SURE, |lab| {
        lab.global("[remote \"origin\"]\nurl = g\n");
        lab.repo("")
    }),
    ("global origin first", SURE, |lab| {
        lab.global("[remote \"origin\"]\nurl = g\n");
        lab.repo(URL)
    }),
    ("global origin, no url in the repository", SURE, |lab| {
        lab.global("[remote \"origin\"]\nurl = g\n");
        lab.repo("[remote \"origin\"]\nprune=true\n")
    }),
    ("XDG default", SURE, |lab| {
        lab.write("home/.config/git/config", "[url \"X\"]insteadOf=https");
        lab.global("[url \"YY\"]insteadOf=https");
        lab.repo(URL)
    }),
    ("XDG_CONFIG_HOME", SURE, |lab| {
        lab.write("xdg/git/config", "[url \"X\"]insteadOf=https");
        lab.set("XDG_CONFIG_HOME", lab.path("xdg").display().to_string());
        lab.repo(URL)
    }),
    ("GIT_CONFIG_GLOBAL", SURE, |lab| {
        lab.global("[url \"X\"]insteadOf=https");
        let file = lab.write("mine", "[url \"Y\"]insteadOf=https");
        lab.set("GIT_CONFIG_GLOBAL", file.display().to_string());
        lab.repo(URL)
    }),
    ("GIT_CONFIG_GLOBAL=/dev/null", SURE, |lab| {
        lab.global("[url \"X\"]insteadOf=https");
        lab.set("GIT_CONFIG_GLOBAL", "/dev/null");
        lab.repo(URL)
    }),
    ("GIT_CONFIG_SYSTEM", SURE, |lab| {
        let file = lab.write("system", "[url \"Y\"]insteadOf=https");
        lab.set("GIT_CONFIG_SYSTEM", file.display().to_string());
        lab.repo(URL)
    }),
    ("global is malformed", EITHER, |lab| {
        lab.global("[url");
        lab.repo(URL)
    }),
    ("global is a folder", EITHER, |lab| {
        lab.dir("home/.gitconfig");
        lab.repo(URL)
    }),
    ("include", SURE, |lab| {
        lab.write("r/.git/more", "[remote \"origin\"]\nurl = included\n");
        lab.repo("[include]\npath = more\n[remote \"origin\"]\nurl = late\n")
    }),
    ("include in the middle", SURE, |lab| {
        lab.write("r/more", "[remote \"origin\"]\nurl = b\n");
        lab.repo("[remote \"origin\"]\nurl = a\n[include]path=../more\n")
    }),
    ("include from home", SURE, |lab| {
        lab.write("home/a/b", "[url \"X\"]insteadOf=https\n[include]path=c");
        lab.write("home/a/c", "[url \"Y\"]insteadOf=https:");
        lab.global("[include]\npath = ~/a/b\npath = /nowhere\n");
        lab.repo(URL)
    }),
    ("include in a linked file", SURE, |lab| {
        lab.write("dots/gitconfig", "[include]path=more");
        lab.write("dots/more", "[url \"X\"]insteadOf=https");
        lab.write("home/more", "[url \"Y\"]insteadOf=https");
        lab.link("../dots/gitconfig", "home/.gitconfig");
        lab.repo(URL)
    }),
    ("include ten deep", SURE, |lab| {
        for n in 0..10 {
            lab.write(&format!("r/.git/i{n}"), format!("[include]path=i{}", n + 1));
        }
        lab.repo(&format!("{URL}[include]path=i1"))
    }),
    ("include loop", EITHER, |lab| lab.repo("[include]path=config")),
    ("include a folder", EITHER, |lab| lab.repo("[include]path=refs")),
    ("include nothing", EITHER, |lab| lab.repo("[include]path=")),
    ("include another's home", EITHER, |lab| lab.repo("[include]path=~root/x")),
    ("include does not set bare", SURE, |lab| {
        lab.write("r/.git/more", "[core]\nbare = true\nworktree=/\n");
        lab.repo("[include]\npath = more\n")
    }),
    ("includeIf, nothing that matters", SURE, |lab| {
        let text = format!("[includeIf \"gitdir:{}/\"]path=m\n[includeIf \"onbranch:*\"]path=none", lab.root.display());
        lab.global(text);
        lab.write("home/m", "[user]name=x\n[core]editor=vi");
        lab.repo(URL)
    }),
    ("includeIf, matching", EITHER, |lab| {
        let text = format!("[includeIf \"gitdir:{}/\"]path=m", lab.root.display());
        lab.global(text);
        lab.write("home/m", "[url \"X\"]insteadOf=https");
        lab.repo(URL)
    }),
    ("includeIf, not matching", EITHER, |lab| {
        lab.global("[includeIf \"gitdir:/elsewhere/\"]path=m");
        lab.write("home/m", "[url \"X\"]insteadOf=https");
        lab.repo(URL)
    }),
    ("includeIf of the future", SURE, |lab| {
        lab.global("[includeIf \"moon:full\"]path=m");
        lab.repo(URL)
    }),
    ("remote in a file of its own", EITHER, |lab| {
        lab.write("r/.git/remotes/origin", "URL: old\n");
        lab.repo("")
    }),
    ("remote in a branches file", EITHER, |lab| {
        lab.write("r/.git/branches/origin", "old#main\n");
        lab.repo("")
    }),
    ("safe.bareRepository", EITHER, |lab| {
        lab.global("[safe]bareRepository=explicit");
        lab.bones("b", "bare=true");
        lab.path("b")
    }),
];

/// Repositories that belong to another user. Only root can make them.
const FOREIGN: &[Shape] = &[
    ("foreign work tree", SURE, |lab| {
        let repo = lab.repo(URL);
        foreign(lab, "r");
        repo
    }),
    ("foreign .git", SURE, |lab| {
        let repo = lab.repo(URL);
        foreign(lab, "r/.git");
        repo
    }),
    ("foreign files only", SURE, |lab| {
        let repo = lab.repo(URL);
        foreign(lab, "r/.git/HEAD");
        repo
    }),
    ("foreign .git file", SURE, |lab| {
        lab.bones("g", URL);
        lab.write("r/.git", "gitdir: ../g");
        foreign(lab, "r/.git");
        lab.path("r")
    }),
    ("foreign folder behind a .git file", SURE, |lab| {
        lab.bones("g", URL);
        lab.write("r/.git", "gitdir: ../g");
        foreign(lab, "g");
        lab.path("r")
    }),
    ("foreign bare", SURE, |lab| {
        lab.bones("b", "bare=true");
        foreign(lab, "b");
        lab.path("b")
    }),
    ("foreign, all safe", SURE, |lab| {
        lab.global("[safe]directory=*");
        let repo = lab.repo(URL);
        foreign(lab, "r");
        repo
    }),
    ("foreign, safe", SURE, |lab| {
        lab.global(format!("[safe]directory={}", lab.path("r").display()));
        let repo = lab.repo(URL);
        foreign(lab, "r");
        repo
    }),
    ("foreign, another safe", EITHER, |lab| {
        lab.global(format!("[safe]directory={}/x", lab.path("r").display()));
        let repo = lab.repo(URL);
        foreign(lab, "r");
        repo
    }),
    ("foreign, safe no more", SURE, |lab| {
        lab.global("[safe]directory=*\ndirectory=");
        let repo = lab.repo(URL);
        foreign(lab, "r");
        repo
    }),
    ("foreign, safe below", EITHER, |lab| {
        lab.global(format!("[safe]directory={}/*", lab.root.display()));
        let repo = lab.repo(URL);
        foreign(lab, "r");
        repo
    }),
    ("foreign, safe says the repository", SURE, |lab| {
        let repo = lab.repo("[safe]directory=*");
        foreign(lab, "r");
        repo
    }),
    ("foreign, of the sudo user", EITHER, |lab| {
        lab.set("SUDO_UID", "12345");
        let repo = lab.repo(URL);
        foreign(lab, "r");
        repo
    }),
];

fn foreign(lab: &super::lab::Lab, path: &str) {
    chown(lab.path(path), Some(12345), Some(12345)).expect("root may");
}

#[test]
fn owners() {
    let lab = super::lab::Lab::new();
    let file = lab.write("mine", "");
    if chown(file, Some(12345), None).is_err() {
        eprintln!("skipped: only root can give files away");
        return;
    }
    super::shapes::check(FOREIGN);
}
