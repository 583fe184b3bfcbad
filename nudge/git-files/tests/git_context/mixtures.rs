//! Tests random mixtures of features, with a fixed seed.

use std::path::PathBuf;

use super::lab::{Lab, OBJECT};

/// The number of repositories. Each needs three runs of git.
const DRAWS: usize = 200;

/// A small random generator (xorshift). Every run draws the same numbers.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or(0) % end
    }

    fn one<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }

    /// Returns up to `most` random lines of `list`.
    fn lines(&mut self, list: &[&str], most: usize) -> String {
        let count = self.below(most + 1);
        (0..count).map(|_| format!("{}\n", self.one(list))).collect()
    }
}

const HEADERS: &[&str] = &[
    "[core]\nrepositoryformatversion = 0",
    "[core]\nrepositoryformatversion = 0\nbare = false",
    "[core]\n\trepositoryformatversion=1\n[extensions]\n\tworktreeConfig",
    "[core]repositoryformatversion=0\r\n[Core]filemode\r\n",
    "\u{feff}; first\n[core]\n  RepositoryFormatVersion = 0 # version",
    "",
];

const PIECES: &[&str] = &[
    "[remote \"origin\"]\n\turl = https://host/org/app.git",
    "[remote \"origin\"] url=git@host:org/app",
    "[Remote \"origin\"]\nURL = \"ssh://host/a b\" ; x",
    "[remote \"origin\"]\n url = gh:o/\\\nr",
    "[remote \"origin\"]\npushurl = https://push/x",
    "[remote \"origin\"]\nfetch = +refs/heads/*:refs/remotes/origin/*",
    "[remote \"Origin\"]\nurl = wrong",
    "[remote.origin]\nurl = old/style",
    "[remote \"other\"]\nurl = o",
    "[url \"https://h/\"]\ninsteadOf = gh:",
    "[url \"X:\"]\ninsteadOf = https://host/\ninsteadOf = git@",
    "[url \"LONG:\"]\ninsteadOf = https://host/org/",
    "[url \"P:\"]\npushInsteadOf = https://",
    "[include]\npath = more",
    "[include]\npath = ../more2",
    "[includeIf \"onbranch:main\"]\npath = more",
    "[includeIf \"onbranch:feature/\"]\npath = more",
    "[includeIf \"gitdir:r/\"]\npath = more",
    "[includeIf \"gitdir:/nowhere/**\"]\npath = more",
    "[includeIf \"gitdir/i:R/.GIT\"]\npath = ../more2",
    "[core]\nwarnAmbiguousRefs = false",
    "[core]\nwarnAmbiguousRefs",
    "[core]\nbare = true",
    "[core]\nworktree = ../sub",
    "[branch \"main\"]\nremote = origin\nmerge = refs/heads/main",
    "[user]\nname = A \"B\" C\nemail = <a@b>",
    "[alias]\nx = \"!f() { echo \\\"$1\\\"; }; f\"",
    "[core]\nfilemode = no",
    "[core]\nautocrlf = input",
    "[push]\ndefault = current",
    "[unknown \"sub.section\"]\nkey",
    "# only a comment [",
];

/// Lines at which git fails, or which versions of git treat differently.
const POISON: &[&str] = &[
    "[remote \"origin\"]\nfetch = +refs/heads/*:refs/remotes/origin",
    "[remote \"origin\"]\nurl =",
    "[core]\nfilemode = sometimes",
    "[a]\nb = c\\d",
];

const HEADS: &[&str] = &[
    "ref: refs/heads/main\n",
    "ref: refs/heads/main",
    "ref: refs/heads/feature/x\n",
    "ref:refs/heads/v1\n",
    "ref: refs/heads/origin\n",
    "ref: refs/heads/alias\n",
    "ref: refs/heads/none\n",
    "1111111111111111111111111111111111111111\n",
    "ref: refs/remotes/origin/main\n",
    "ref: refs/tags/v1",
    "ref: refs/heads/config",
];

const REFS: &[&str] = &[
    "refs/heads/main",
    "refs/heads/feature/x",
    "refs/heads/v1",
    "refs/tags/v1",
    "refs/tags/main",
    "refs/tags/feature/x",
    "refs/heads/origin",
    "refs/remotes/origin/main",
    "refs/remotes/origin/HEAD",
    "refs/remotes/main",
    "refs/main",
    "refs/tags/heads/main",
    "refs/heads/config",
];

/// Makes a random repository, and returns the folder in which the reader runs.
fn build(draw: &mut Draw, lab: &mut Lab) -> PathBuf {
    let cwd = lab.repo("");
    let mut config = format!("{}\n{}", draw.one(HEADERS), draw.lines(PIECES, 6));
    if draw.below(10) == 0 {
        config.push_str(draw.one(POISON));
    }
    lab.write("r/.git/config", config);
    if draw.below(3) == 0 {
        lab.write("r/.git/more", draw.lines(PIECES, 3).replace("path =", "nopath ="));
        lab.write("r/more2", draw.lines(PIECES, 2).replace("path =", "nopath ="));
    }
    if draw.below(2) == 0 {
        lab.global(draw.lines(PIECES, 3));
        lab.write("home/more", "[url \"home:\"]\ninsteadOf = https://");
    }
    if draw.below(4) == 0 {
        lab.write("r/.git/config.worktree", draw.lines(PIECES, 2));
    }
    lab.head(draw.one(HEADS));
    for _ in 0..draw.below(5) {
        lab.refer("r/.git", draw.one(REFS));
    }
    if draw.below(20) == 0 {
        lab.refer("r/.git", "refs/tags/HEAD");
    }
    if draw.below(5) == 0 {
        lab.write("r/.git/refs/heads/alias", "ref: refs/heads/main\n");
    }
    if draw.below(2) == 0 {
        let mut names: Vec<&str> = (0..draw.below(6)).map(|_| draw.one(REFS)).collect();
        let sorted = draw.below(2) == 0;
        if sorted {
            names.sort_unstable();
            names.dedup();
        }
        let mark = if sorted { "# pack-refs with: peeled sorted \n" } else { "" };
        let records: String = names.iter().map(|name| format!("{OBJECT} {name}\n")).collect();
        lab.write("r/.git/packed-refs", format!("{mark}{records}"));
    }
    lab.dir("r/sub/deep");
    match draw.below(8) {
        0 => lab.path("r/sub/deep"),
        1 => lab.path("r/.git"),
        2 => lab.path("r/.git/refs"),
        3 => {
            lab.link("r/sub", "link");
            lab.path("link")
        }
        4 => linked_worktree(lab),
        _ => cwd,
    }
}

/// Writes the files of a linked worktree `w` of the repository `r`, with the `HEAD` of `r`.
fn linked_worktree(lab: &Lab) -> PathBuf {
    let head = std::fs::read(lab.path("r/.git/HEAD")).unwrap_or_default();
    lab.write("r/.git/worktrees/w/HEAD", head);
    lab.write("r/.git/worktrees/w/commondir", "../..\n");
    lab.write("r/.git/worktrees/w/gitdir", format!("{}\n", lab.path("w/.git").display()));
    lab.write("w/.git", "gitdir: ../r/.git/worktrees/w\n");
    lab.path("w")
}

/// Promise (hints): The git reader agrees with git, or says that it is unsure.
#[test]
fn mixtures() {
    let mut draw = Draw(0x2545_f491_4f6c_dd1d);
    let mut wrong = Vec::new();
    let mut sure = 0;
    for number in 0..DRAWS {
        let mut lab = Lab::new();
        let cwd = build(&mut draw, &mut lab);
        match lab.compare(&cwd) {
            Ok(decided) => sure += usize::from(decided),
            Err(difference) => {
                let config = std::fs::read_to_string(lab.path("r/.git/config"));
                let config = config.unwrap_or_default();
                wrong.push(format!("draw {number}, {}:\n{config}\n{difference}", cwd.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ\n{}", wrong.len(), wrong.join("\n---\n"));
    assert!(sure * 3 > DRAWS, "only {sure} of {DRAWS} were sure");
}
