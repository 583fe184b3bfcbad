//! Tests repositories that name programs in every known way. Each program would write a file if it ran.

use std::process::Command;

use nudge_core::patience::CallLimit;

use super::*;

const LIMITS: CallLimits = CallLimits { time: Duration::from_mins(1), output_bytes: 16 << 20 };

/// A repository, and a program that writes a file when it runs.
struct Lab {
    place: TempDir,
}

impl Lab {
    fn new() -> Self {
        let lab = Self { place: tempfile::tempdir().unwrap() };
        fs::create_dir_all(lab.at("repo/notes")).unwrap();
        let script = format!("#!/bin/sh\necho >> '{}'\n", lab.at("mark").display());
        // Another process writes the script, because no test could run it while this process has it open for writing.
        lab.shell(&format!("cat > evil <<'END'\n{script}END\nchmod 755 evil"));
        lab.git(&["init", "-q", "-b", "main"]);
        fs::write(lab.at("repo/a.txt"), "one\n").unwrap();
        fs::write(lab.at("repo/notes/b.txt"), "two\n").unwrap();
        lab.git(&["add", "-A"]);
        lab.git(&["commit", "-qm", "x"]);
        lab.shell("git init -q --bare -b main remote.git");
        lab.git(&["remote", "add", "origin", "../remote.git"]);
        lab.git(&["push", "-q", "-u", "origin", "main"]);
        lab.git(&["checkout", "-qb", "other"]);
        fs::write(lab.at("repo/c.txt"), "three\n").unwrap();
        lab.git(&["add", "-A"]);
        lab.git(&["commit", "-qm", "brings a file"]);
        lab.git(&["checkout", "-q", "main"]);
        lab
    }

    fn at(&self, path: &str) -> PathBuf {
        self.place.path().join(path)
    }

    fn evil(&self) -> String {
        self.at("evil").display().to_string()
    }

    fn shell(&self, script: &str) {
        let mut shell = Command::new("sh");
        shell.args(["-ec", script]).current_dir(self.place.path()).env("GIT_CONFIG_GLOBAL", "/dev/null");
        assert!(shell.status().unwrap().success(), "{script}");
    }

    /// Runs git as the maker of the repository does.
    fn git(&self, words: &[&str]) -> String {
        let mut git = Command::new("git");
        git.current_dir(self.at("repo")).args(["-c", "user.name=t", "-c", "user.email=t@t"]).args(words);
        let done = git.env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
        assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    }

    /// Writes a setting into the file itself, because a git command in the repository could already run the program.
    fn set(&self, key: &str, value: &str) {
        let file = self.at("repo/.git/config");
        assert!(
            Command::new("git").args(["config", "--file"]).arg(file).args([key, value]).status().unwrap().success()
        );
    }

    fn hook(&self, folder: &str, name: &str) {
        fs::create_dir_all(self.at(folder)).unwrap();
        std::os::unix::fs::symlink(self.at("evil"), self.at(folder).join(name)).unwrap();
    }

    fn open(&self) -> GitRepository {
        GitRepository::open(Git::find(&self.at("repo/notes")).unwrap()).unwrap()
    }

    fn assert_unmarked(&self, how: &str) {
        assert!(!self.at("mark").exists(), "{how}: its program was run");
    }
}

const PERSON: [(&str, &str); 4] = [
    ("GIT_AUTHOR_NAME", "t"),
    ("GIT_AUTHOR_EMAIL", "t@t"),
    ("GIT_COMMITTER_NAME", "t"),
    ("GIT_COMMITTER_EMAIL", "t@t"),
];

fn here<'a>(words: &'a [&'a str]) -> GitCall<'a> {
    GitCall { words, input: b"", variables: &[], reach: CallReach::Here, limits: LIMITS }
}

fn told(repository: &GitRepository, words: &[&str]) -> String {
    String::from_utf8(repository.run(&here(words)).unwrap()).unwrap()
}

#[test]
fn a_call_that_was_given_up_is_not_waited_for() {
    let lab = Lab::new();
    let repository = lab.open();
    let limit = CallLimit::from_now(LIMITS.time);
    assert!(limit.run(|| repository.run(&here(&["rev-parse", "main"]))).is_ok());
    limit.give_up();
    assert!(limit.run(|| repository.run(&here(&["rev-parse", "main"]))).is_err());
}

/// Does everything that Nudge does in a repository. Failures are allowed, but no program of the repository may run.
fn do_everything(lab: &Lab, repository: &GitRepository) {
    // The new text has the same length as the old one, so git must read the file to find the difference.
    fs::write(lab.at("repo/a.txt"), "ONE\n").unwrap();
    for words in [
        &["status", "--porcelain", "-z", "--untracked-files=all", "--ignore-submodules=all"][..],
        &["cat-file", "blob", "HEAD:a.txt"],
        &["diff", "--name-only", "main", "other", "--"],
        &["log", "-1", "--format=%b", "main", "--"],
        &["diff", "main~0", "other", "--"],
        &["for-each-ref", "--format=%(refname)"],
        &["update-ref", "refs/heads/made", "main"],
        &["update-ref", "-d", "refs/heads/made"],
        &["hash-object", "-w", "--stdin"],
        &["var", "GIT_AUTHOR_IDENT"],
    ] {
        let _ = repository.run(&here(words));
    }
    for (verb, words) in [
        (RemoteVerb::List, &["HEAD"][..]),
        (RemoteVerb::Fetch, &["+refs/heads/main:refs/remotes/origin/main"]),
        (RemoteVerb::Push, &["refs/heads/other:refs/heads/sent"]),
    ] {
        let _ = repository.reach_remote(verb, words, LIMITS);
    }
    fs::write(lab.at("repo/a.txt"), "one\n").unwrap();
    let tree = told(repository, &["rev-parse", "other^{tree}"]);
    let words = ["commit-tree", tree.trim(), "-p", "other", "-F", "-"];
    let made = GitCall {
        input: b"merge me\n",
        variables: &PERSON.map(|(name, value)| (name, OsStr::new(value))),
        ..here(&words)
    };
    let commit = String::from_utf8(repository.run(&made).unwrap()).unwrap();
    told(repository, &["update-ref", "refs/heads/other", commit.trim()]);
    let words = ["merge", "--quiet", "--no-edit", "other"];
    let _ = repository.run(&GitCall { variables: made.variables, input: b"", ..here(&words) });
}

/// A way in which a repository can make git run a program.
struct Way {
    name: &'static str,
    settings: &'static [(&'static str, &'static str)],
    attributes: Option<(&'static str, &'static str)>,
    hooks: &'static [(&'static str, &'static str)],
    /// A command with which plain git runs the program, if there is one. It proves that the way works without Nudge.
    control: Option<&'static [&'static str]>,
}

const PLAIN: Way = Way { name: "", settings: &[], attributes: None, hooks: &[], control: None };
const FILTERS: &[(&str, &str)] =
    &[("filter.a.clean", "EVIL"), ("filter.a.smudge", "EVIL"), ("filter.a.required", "true")];
const DRIVERS: &[(&str, &str)] = &[
    ("diff.external", "EVIL"),
    ("diff.a.textconv", "EVIL"),
    ("diff.a.command", "EVIL"),
    ("merge.a.driver", "EVIL"),
    ("merge.default", "a"),
];
const STATUS: Option<&[&str]> = Some(&["status"]);
const PUSH: Option<&[&str]> = Some(&["push", "-q", "origin", "other"]);
const EXT: &[(&str, &str)] = &[("remote.origin.url", "ext::EVIL"), ("protocol.ext.allow", "always")];
const INSIDE: &str = "repo/.git/hooks";

const WAYS: &[Way] = &[
    Way { name: "a monitor", settings: &[("core.fsmonitor", "EVIL")], control: STATUS, ..PLAIN },
    Way {
        name: "a filter",
        settings: FILTERS,
        attributes: Some((".gitattributes", "* filter=a")),
        control: STATUS,
        ..PLAIN
    },
    Way {
        name: "a filter by the repository's attributes",
        settings: FILTERS,
        attributes: Some((".git/info/attributes", "* filter=a")),
        control: STATUS,
        ..PLAIN
    },
    Way {
        name: "a filter by a file of attributes",
        settings: &[("filter.a.clean", "EVIL"), ("core.attributesFile", "PLACE/repo/attributes")],
        attributes: Some(("attributes", "* filter=a")),
        control: STATUS,
        ..PLAIN
    },
    Way {
        name: "a process of a filter",
        settings: &[("filter.a.process", "EVIL")],
        attributes: Some((".gitattributes", "* filter=a")),
        control: STATUS,
        ..PLAIN
    },
    Way {
        name: "hooks elsewhere",
        settings: &[("core.hooksPath", "PLACE/hooks")],
        hooks: &[("hooks", "reference-transaction")],
        control: Some(&["update-ref", "refs/heads/x", "main"]),
        ..PLAIN
    },
    Way {
        name: "hooks",
        hooks: &[
            (INSIDE, "reference-transaction"),
            (INSIDE, "post-merge"),
            (INSIDE, "pre-merge-commit"),
            (INSIDE, "pre-push"),
            (INSIDE, "post-index-change"),
            (INSIDE, "post-checkout"),
            (INSIDE, "push-to-checkout"),
        ],
        control: Some(&["merge", "-q", "other"]),
        ..PLAIN
    },
    Way {
        name: "ssh",
        settings: &[("core.sshCommand", "EVIL"), ("remote.origin.url", "ssh://nobody@localhost:1/x.git")],
        ..PLAIN
    },
    Way { name: "a program as the remote", settings: EXT, ..PLAIN },
    Way { name: "a program to push to", settings: &[("remote.origin.pushurl", "ext::EVIL"), EXT[1]], ..PLAIN },
    Way {
        name: "an address that stands for a program",
        settings: &[("url.ext::EVIL .insteadOf", "../"), EXT[1]],
        ..PLAIN
    },
    Way {
        name: "the remote's side",
        settings: &[("remote.origin.uploadpack", "EVIL"), ("remote.origin.receivepack", "EVIL")],
        ..PLAIN
    },
    Way { name: "a helper of the remote", settings: &[("remote.origin.vcs", "ext"), EXT[0], EXT[1]], ..PLAIN },
    Way {
        name: "credentials",
        settings: &[
            ("credential.helper", "!EVIL"),
            ("core.askPass", "EVIL"),
            ("remote.origin.url", "http://a@127.0.0.1:1/x"),
        ],
        ..PLAIN
    },
    Way {
        name: "a proxy",
        settings: &[("core.gitProxy", "EVIL"), ("remote.origin.url", "git://127.0.0.1:1/x.git")],
        ..PLAIN
    },
    Way {
        name: "drivers",
        settings: DRIVERS,
        attributes: Some((".git/info/attributes", "* diff=a merge=a")),
        control: Some(&["diff", "main", "other"]),
        ..PLAIN
    },
    Way {
        name: "signatures",
        settings: &[("log.showSignature", "true"), ("gpg.program", "EVIL"), ("commit.gpgSign", "true")],
        ..PLAIN
    },
    Way { name: "pager and editor", settings: &[("core.pager", "EVIL"), ("core.editor", "EVIL")], ..PLAIN },
    Way { name: "aliases", settings: &[("alias.status", "!EVIL"), ("alias.merge", "!EVIL")], ..PLAIN },
    Way {
        name: "hooks by settings",
        settings: &[("hook.a.command", "EVIL"), ("hook.a.event", "reference-transaction")],
        ..PLAIN
    },
    Way {
        name: "hooks of a remote on this machine",
        hooks: &[
            ("remote.git/hooks", "pre-receive"),
            ("remote.git/hooks", "reference-transaction"),
            ("remote.git/hooks", "update"),
        ],
        control: PUSH,
        ..PLAIN
    },
];

impl Way {
    fn lab(&self) -> Lab {
        let lab = Lab::new();
        for (folder, name) in self.hooks {
            lab.hook(folder, name);
        }
        if let Some((path, text)) = self.attributes {
            fs::write(lab.at("repo").join(path), format!("{text}\n")).unwrap();
        }
        for (key, value) in self.settings {
            let filled = |text: &str| {
                text.replace("EVIL", &lab.evil()).replace("PLACE", &lab.place.path().display().to_string())
            };
            lab.set(&filled(key), &filled(value));
        }
        lab
    }
}

#[test]
fn no_program_that_a_repository_names_is_run() {
    for way in WAYS {
        let lab = way.lab();
        if let Some(words) = way.control {
            fs::write(lab.at("repo/a.txt"), "ONE\n").unwrap();
            let mut git = Command::new("git");
            git.current_dir(lab.at("repo")).args(["-c", "user.name=t", "-c", "user.email=t@t"]).args(words);
            git.env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
            assert!(lab.at("mark").exists(), "{}: git as it is does not run it", way.name);
        }
        let lab = way.lab();
        do_everything(&lab, &lab.open());
        lab.assert_unmarked(way.name);
    }
}

/// Tests the way of Windows: each setting is switched off by its key. The settings include filters in
/// `info/attributes`.
#[test]
fn without_links_what_the_settings_name_is_switched_off() {
    for way in WAYS {
        let lab = way.lab();
        let repository = GitRepository::open_without_links(Git::find(&lab.at("repo/notes")).unwrap()).unwrap();
        do_everything(&lab, &repository);
        lab.assert_unmarked(way.name);
    }
}

/// Tests a repository with a missing blob whose promisor is a program.
#[test]
fn missing_objects_are_not_fetched() {
    let lab = Lab::new();
    let blob = lab.git(&["rev-parse", "HEAD:a.txt"]);
    let (folder, name) = blob.trim().split_at(2);
    fs::remove_file(lab.at("repo/.git/objects").join(folder).join(name)).unwrap();
    for (key, value) in [
        ("core.repositoryformatversion", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.partialclonefilter", "blob:none"),
        ("remote.origin.uploadpack", &lab.evil()),
    ] {
        lab.set(key, value);
    }
    let mut git = Command::new("git");
    git.current_dir(lab.at("repo")).args(["cat-file", "blob", "HEAD:a.txt"]).env("GIT_CONFIG_GLOBAL", "/dev/null");
    assert!(!git.output().unwrap().status.success());
    assert!(lab.at("mark").exists(), "git as it is runs it");
    fs::remove_file(lab.at("mark")).unwrap();
    let repository = lab.open();
    repository.run(&here(&["cat-file", "blob", "HEAD:a.txt"])).unwrap_err();
    do_everything(&lab, &repository);
    lab.assert_unmarked("a promisor");
}

/// A file of a repository may be a link to an endless file, and git reads some files as a whole, such as
/// `objects/info/alternates`.
#[cfg(target_os = "linux")]
#[test]
fn git_has_a_limit_of_memory() {
    let lab = Lab::new();
    let repository = lab.open();
    let tree = told(&repository, &["rev-parse", "main^{tree}"]);
    // Git first waits for its input. The limit is set before the input arrives.
    let words = ["commit-tree", tree.trim(), "-F", "-", "-F", "/proc/self/limits"];
    let variables = PERSON.map(|(name, value)| (name, OsStr::new(value)));
    let made = repository.run(&GitCall { input: b"limits\n", variables: &variables, ..here(&words) }).unwrap();
    let message = told(&repository, &["cat-file", "commit", String::from_utf8(made).unwrap().trim()]);
    let limit = message.lines().find(|line| line.starts_with("Max data size")).unwrap();
    assert!(limit.contains(&format!(" {} ", crate::MAX_MEMORY_BYTES)), "{limit}");
}

/// Promise (programs): The user's own remote is reached when Nudge asks git.
#[test]
fn the_users_own_remote_is_reached_and_data_of_attributes_counts() {
    let lab = Lab::new();
    lab.set("user.name", "Ada");
    lab.set("user.email", "ada@example.org");
    let repository = lab.open();
    assert_eq!((repository.prefix(), repository.remote()), ("notes/", Some("../remote.git")));
    let pushed = repository.reach_remote(RemoteVerb::Push, &["refs/heads/other:refs/heads/sent"], LIMITS);
    pushed.unwrap();
    let there = told(&repository, &["rev-parse", "other"]);
    assert_eq!(told(&repository, &["rev-parse", "refs/remotes/origin/sent"]), there);
    let heads = repository.reach_remote(RemoteVerb::List, &["HEAD"], LIMITS).unwrap();
    assert!(String::from_utf8(heads).unwrap().starts_with("ref: refs/heads/main\tHEAD\n"));
    repository.reach_remote(RemoteVerb::Fetch, &["+refs/heads/sent:refs/remotes/origin/again"], LIMITS).unwrap();
    assert_eq!(told(&repository, &["rev-parse", "refs/remotes/origin/again"]), there);
    assert_eq!(told(&repository, &["rev-parse", "--symbolic-full-name", "@{upstream}"]), "refs/remotes/origin/main\n");
    assert!(told(&repository, &["var", "GIT_AUTHOR_IDENT"]).starts_with("Ada <ada@example.org>"));
    told(&repository, &["merge", "--quiet", "--no-edit", "other"]);
    // The user's own git shows the same state.
    assert_eq!(lab.git(&["rev-parse", "main"]), there);
    assert_eq!(lab.git(&["status", "--porcelain"]), "");
    assert_eq!(fs::read_to_string(lab.at("repo/c.txt")).unwrap(), "three\n");
    assert!(lab.git(&["reflog", "main"]).contains("merge other"));
    lab.git(&["fsck", "--strict"]);
}

#[test]
fn work_trees_split_indices_and_other_formats_are_read() {
    for words in [&["--object-format=sha256"][..], &["--ref-format=reftable"], &[]] {
        let place = tempfile::tempdir().unwrap();
        let git = |words: &[&str]| {
            let mut git = Command::new("git");
            git.current_dir(place.path()).args(["-c", "user.name=t", "-c", "user.email=t@t"]).args(words);
            git.env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap().status.success()
        };
        if !git(&[&["init", "-q", "-b", "main"], words].concat()) {
            // The installed git does not have this format.
            continue;
        }
        fs::write(place.path().join("a.txt"), "one\n").unwrap();
        assert!(git(&["add", "-A"]) && git(&["commit", "-qm", "x"]) && git(&["update-index", "--split-index"]));
        assert!(git(&["worktree", "add", "-q", "-b", "side", "tree"]));
        fs::write(place.path().join("a.txt"), "two\n").unwrap();
        fs::write(place.path().join("tree/b.txt"), "three\n").unwrap();
        fs::write(place.path().join(".git/info/exclude"), "tree/\n").unwrap();
        let is_tables = place.path().join(".git/reftable").exists();
        let open = |folder: &Path| GitRepository::open(Git::find(folder).unwrap()).unwrap();
        let status = ["status", "--porcelain", "--untracked-files=all"];
        assert_eq!(told(&open(place.path()), &status), " M a.txt\n", "{words:?}");
        if is_tables {
            GitRepository::open(Git::find(&place.path().join("tree")).unwrap()).unwrap_err();
            continue;
        }
        assert_eq!(told(&open(&place.path().join("tree")), &status), "?? b.txt\n", "{words:?}");
        assert_eq!(told(&open(&place.path().join("tree")), &["symbolic-ref", "HEAD"]), "refs/heads/side\n");
    }
}

#[test]
fn the_address_of_a_remote_is_written_to_no_file() {
    let lab = Lab::new();
    let password = ["not", "for", "disks"].concat();
    let url = format!("https://someone:{password}@host.example/x.git");
    lab.set("remote.origin.url", &url);
    let repository = lab.open();
    assert_eq!(repository.remote(), Some(&*url));
    assert_eq!(told(&repository, &["config", "--get", "remote.origin.url"]).trim_end(), url);
    let config = fs::read_to_string(repository.git_dir().join("config")).unwrap();
    assert!(config.contains("hooksPath") && !config.contains(&password), "{config}");
}

#[test]
fn what_a_killed_process_left_is_removed_after_a_day() {
    let place = tempfile::tempdir().unwrap();
    for name in ["nudge-git-x", "other"] {
        fs::create_dir(place.path().join(name)).unwrap();
    }
    let now = SystemTime::now();
    sweep_folders(place.path(), now);
    assert!(place.path().join("nudge-git-x").exists());
    sweep_folders(place.path(), now + MAX_CALL_AGE * 2);
    assert!(!place.path().join("nudge-git-x").exists() && place.path().join("other").exists());
}

#[test]
fn a_work_tree_elsewhere_is_refused() {
    let lab = Lab::new();
    fs::create_dir(lab.at("elsewhere")).unwrap();
    lab.set("core.worktree", lab.at("elsewhere").to_str().unwrap());
    let failure = GitRepository::open(Git::find(&lab.at("repo")).unwrap()).unwrap_err();
    assert!(matches!(failure, GitFailure::Unfit(_)), "{failure}");
}

/// A test cannot change the environment of its process, so it starts the test program again with another environment.
#[test]
fn the_users_own_way_to_other_machines_is_taken() {
    let lab = Lab::new();
    lab.set("remote.origin.url", "ssh://nobody@localhost:1/x.git");
    fs::write(lab.at("users"), format!("[core]\n\tsshCommand = {}\n", lab.evil())).unwrap();
    let mut tests = Command::new(std::env::current_exe().unwrap());
    tests.args(["--exact", "repository::tests::a_process_of_its_own_reaches_a_remote", "--ignored"]);
    tests.env("GIT_CONFIG_GLOBAL", lab.at("users")).env("NUDGE_TEST_REPOSITORY", lab.at("repo"));
    assert!(tests.output().unwrap().status.success());
    assert!(lab.at("mark").exists());
}

#[test]
#[ignore = "started by the test above"]
fn a_process_of_its_own_reaches_a_remote() {
    let folder = std::env::var_os("NUDGE_TEST_REPOSITORY").unwrap();
    let repository = GitRepository::open(Git::find(Path::new(&folder)).unwrap()).unwrap();
    repository.reach_remote(RemoteVerb::List, &["HEAD"], LIMITS).unwrap_err();
}

#[test]
fn addresses_of_this_machine() {
    for url in ["../x.git", "/srv/x", "file:///srv/x", "FILE://localhost/x", "./a:b", "x"] {
        assert!(is_of_this_machine(url), "{url}");
    }
    for url in ["git@example.org:x", "ssh://h/x", "https://h/x", "ext::sh -c x", "h:x"] {
        assert!(!is_of_this_machine(url), "{url}");
    }
}
