//! Tests captures in different repositories: the start of a branch, the review of a branch, and the state after a
//! worker was killed.

use super::*;

fn one_unit() -> Desk {
    Desk::new(&saying(&[unit("Retry with full jitter", BODY)]))
}

/// Returns the paths that the only branch of the remote adds to the commit `before`.
fn brought(desk: &Desk, before: &str) -> String {
    let [branch] = &desk.branches("remote.git")[..] else { panic!("one branch") };
    git(&desk.path("remote.git"), &["diff", "--name-only", before, branch])
}

#[test]
fn nothing_that_was_not_pushed_is_sent_with_a_branch() {
    let ways: [(&str, &[&[&str]]); 4] = [
        ("no origin/HEAD", &[]),
        ("never fetched", &[&["update-ref", "-d", "refs/remotes/origin/main"]]),
        ("a feature branch", &[&["checkout", "-qb", "feature"]]),
        (
            "a feature branch that is tracked",
            &[&["checkout", "-qb", "feature"], &["push", "-q", "-u", "origin", "feature"]],
        ),
    ];
    for (how, words) in ways {
        let desk = one_unit();
        let brain = desk.path("brain");
        for words in words {
            git(&brain, words);
        }
        fs::write(brain.join("draft.md"), "# Draft\n\nNot for anybody yet.\n").unwrap();
        git(&brain, &["add", "-A"]);
        git(&brain, &["commit", "-qm", "draft"]);
        let job = desk.work(&desk.session("s-1", "hello").id);
        assert_eq!((job.state, job.target.as_deref()), (JobState::Remote, Some("main")), "{how}: {job:?}");
        assert_eq!(brought(&desk, "main"), "domains/coding/retry-with-full-jitter.md\n", "{how}");
    }
}

#[test]
fn a_remote_without_branches_is_told_of_and_gets_none() {
    let desk = one_unit();
    let brain = desk.path("brain");
    git(&desk.path("remote.git"), &["update-ref", "-d", "refs/heads/main"]);
    git(&brain, &["update-ref", "-d", "refs/remotes/origin/main"]);
    let id = desk.session("s-1", "hello").id;
    let job = desk.work(&id);
    assert!(job.note.unwrap().contains("`git push -u origin BRANCH` there makes one"));
    git(&brain, &["push", "-q", "-u", "origin", "main"]);
    let job = desk.work(&id);
    assert_eq!((job.state, job.calls.len()), (JobState::Remote, 1), "{job:?}");
}

/// A capture into a repository without commits can be reviewed and merged, with both kinds of hash. After that, a
/// second capture can be merged too.
#[test]
fn a_repository_without_commits_is_reviewed() {
    for format in ["sha1", "sha256"] {
        let desk = one_unit();
        let brain = desk.path("brain");
        fs::remove_dir_all(brain.join(".git")).unwrap();
        git(&brain, &["init", "-q", "-b", "main", &format!("--object-format={format}")]);
        for words in [["config", "user.name", "t"], ["config", "user.email", "t@t"]] {
            git(&brain, &words);
        }
        let job = desk.work(&desk.session("s-1", "hello").id);
        assert_eq!(job.state, JobState::Local, "{format}: {job:?}");
        let second = Desk {
            settings: Desk::new(&saying(&[unit("Cap what is retried", &BODY.replace("fleet", "crowd of clients"))]))
                .settings,
            ..desk
        };
        let job = second.work(&second.session("s-2", "hello").id);
        let repo = BrainRepo::open(&brain).unwrap();
        let branches = repo.list_unmerged(PREFIX).unwrap();
        assert_eq!(branches.len(), 1 + usize::from(job.state == JobState::Local), "{job:?}");
        for branch in &branches {
            let diff = repo.diff_branch(branch).unwrap();
            assert!(diff.contains("\n+title: "), "{diff}");
            assert!(!diff.contains("brain.yaml"), "{diff}");
            repo.merge_branch(branch).unwrap();
            assert!(repo.is_merged(branch, None));
        }
        assert_eq!(repo.list_unmerged(PREFIX).unwrap(), [""; 0]);
        assert!(brain.join("domains/coding/retry-with-full-jitter.md").is_file());
    }
}

#[test]
fn a_lock_that_was_left_behind_is_in_nobodys_way() {
    let desk = one_unit();
    let id = desk.session("s-1", "hello").id;
    let path_of = |name: &str| desk.jobs.path().join(name);
    let old = std::time::SystemTime::now() - std::time::Duration::from_hours(3);
    fs::write(path_of(".s-1.index.lock"), "").unwrap();
    fs::write(path_of(".new.tmp"), "").unwrap();
    for name in [".old.tmp", ".old.index.lock"] {
        fs::File::create(path_of(name)).unwrap().set_modified(old).unwrap();
    }
    assert_eq!(desk.work(&id).state, JobState::Remote);
    assert!(!path_of(".old.tmp").exists() && !path_of(".old.index.lock").exists(), "what is old is swept");
    assert!(path_of(".new.tmp").exists(), "another process may be writing it");
}

/// If a later step fails, the job keeps the model's answer and does not ask the model again.
#[test]
fn what_was_answered_is_not_asked_again() {
    let desk = one_unit();
    let id = desk.session("s-1", "hello").id;
    let stop = StopFlag::default();
    assert!(desk.worker(&stop).run_step(&mut desk.take(&id)).is_ok());
    let (repository, away) = (desk.path("brain/.git"), desk.path("away"));
    fs::rename(&repository, &away).unwrap();
    let states: Vec<_> = (0..MAX_TRIES).map(|_| desk.work(&id).state).collect();
    assert_eq!(states, [JobState::Asked, JobState::Asked, JobState::Failed]);
    fs::rename(&away, &repository).unwrap();
    fs::remove_file(desk.path("s-1.jsonl")).unwrap();
    desk.take(&id).allow_retry().unwrap();
    let job = desk.work(&id);
    assert_eq!((job.state, job.calls.len()), (JobState::Remote, 1), "{job:?}");
}

/// If the worker is killed during each push, the branch still exists and can be reviewed.
#[test]
fn a_branch_that_is_there_is_no_failure() {
    let desk = one_unit();
    let id = desk.session("s-1", "hello").id;
    let stop = StopFlag::default();
    while desk.jobs.read(&id).unwrap().state != JobState::Branched {
        assert!(desk.worker(&stop).run_step(&mut desk.take(&id)).is_ok());
    }
    let mut held = desk.take(&id);
    held.job.tries = MAX_TRIES;
    held.save().unwrap();
    drop(held);
    assert_eq!(desk.work(&id).state, JobState::Local);
    desk.take(&id).allow_retry().unwrap();
    assert_eq!(desk.work(&id).state, JobState::Remote);
}

/// A brain from a stranger may name programs: a file monitor, filters, hooks, a transport to the remote. Capture and
/// review succeed, and none of these programs runs.
#[cfg(unix)]
#[test]
fn no_program_that_a_brain_names_is_run() {
    let desk = one_unit();
    let (brain, used) = (desk.path("brain"), desk.path("used"));
    let evil = super::engines::fake(&desk, "evil", &format!("echo >> '{}'", used.display()));
    let settings = brain.join(".git/config");
    for key in [
        "core.fsmonitor",
        "core.sshCommand",
        "core.alternateRefsCommand",
        "filter.a.clean",
        "filter.a.smudge",
        "merge.a.driver",
        "diff.external",
        "remote.origin.uploadpack",
        "remote.origin.receivepack",
        "credential.helper",
    ] {
        git(desk.place.path(), &["config", "--file", settings.to_str().unwrap(), key, evil.to_str().unwrap()]);
    }
    fs::write(brain.join(".git/info/attributes"), "* filter=a merge=a\n").unwrap();
    for hooks in [brain.join(".git/hooks"), desk.path("remote.git/hooks")] {
        for name in ["reference-transaction", "post-merge", "post-index-change", "pre-push", "pre-receive", "update"] {
            std::os::unix::fs::symlink(&evil, hooks.join(name)).unwrap();
        }
    }
    let job = desk.work(&desk.session("s-1", "hello").id);
    assert_eq!(job.state, JobState::Remote, "{job:?}");
    let (repo, branch) = (BrainRepo::open(&brain).unwrap(), job.branch.unwrap());
    assert!(repo.diff_branch(&branch).unwrap().contains("\n+title: "));
    repo.merge_branch(&branch).unwrap();
    assert!(brain.join("domains/coding/retry-with-full-jitter.md").is_file());
    assert!(!used.exists(), "a program was run");
    // No program runs for other kinds of remotes either.
    git(desk.place.path(), &["config", "--file", settings.to_str().unwrap(), "protocol.ext.allow", "always"]);
    for url in [format!("ext::{}", evil.display()), "ssh://nobody@localhost:1/x.git".to_owned()] {
        git(desk.place.path(), &["config", "--file", settings.to_str().unwrap(), "remote.origin.url", &url]);
        let repo = BrainRepo::open(&brain).unwrap();
        repo.push_commit("other", "HEAD").unwrap_err();
        assert!(!used.exists(), "{url}");
    }
}

#[test]
fn at_no_branch_nothing_is_merged() {
    let desk = one_unit();
    let brain = desk.path("brain");
    let job = desk.work(&desk.session("s-1", "hello").id);
    git(&brain, &["checkout", "-q", "--detach"]);
    let repo = BrainRepo::open(&brain).unwrap();
    assert_eq!(repo.merge_branch(&job.branch.unwrap()).unwrap_err().reason(), "E_CONFLICT");
}

/// The name of a note looks like a credential. The request does not list this note, and the capture works without it.
#[test]
fn a_note_called_by_hex_digits_is_left_out() {
    let place = tempfile::tempdir().unwrap();
    let log = place.path().join("asked");
    let answer = json!({"units": [unit("Retry with full jitter", BODY)]}).to_string();
    let desk = Desk::new(&format!("cat >> '{}'; printf %s '{answer}'", log.display()));
    let hex = "0f1e2d3c".repeat(4);
    let text = format!("---\nid: {hex}\n---\n# Clients fail together\n\nClients that fail together retry together.\n");
    fs::write(desk.path("brain/domains/coding/together.md"), text).unwrap();
    let other = "---\nid: other\n---\n# Clients retry\n\nClients retry what they were refused.\n";
    fs::write(desk.path("brain/domains/coding/other.md"), other).unwrap();
    let job = desk.work(&desk.session("s-1", "hello").id);
    assert_eq!(job.state, JobState::Remote, "{job:?}");
    let sent = fs::read_to_string(log).unwrap();
    assert!(!sent.contains(&hex) && sent.contains("- other: Clients retry"), "{sent}");
    let error = view::refuse_secrets("The request", &hex).unwrap_err();
    assert!(!error.message().contains("allow_secret"), "{error:?}");
}

/// A proposal says the same as an existing unit. The reviewer reads the new text, and the unit's file stays unchanged.
/// A proposal without new text makes no branch.
#[test]
fn a_duplicate_is_proposed_as_a_change_in_words() {
    let known = "Each pause is twice the last, up to forty seconds, and a random part of it is taken so that clients \
                 spread over the whole of it.";
    let news = "Each pause is twice the last, up to forty seconds; a random part of it is taken, so that clients spread \
                over the whole of it.";
    // In a brain of a few units, every word is common.
    let desk = |said: &str| {
        let desk = Desk::new(&saying(&[unit("Exponential backoff", said)]));
        let note = |name: &str, text: &str| {
            fs::write(desk.path(&format!("brain/domains/coding/{name}.md")), format!("---\nid: {name}\n---\n{text}\n"))
                .unwrap();
        };
        note("backoff", &format!("# Exponential backoff\n\n{known}"));
        for number in 0..9 {
            note(&format!("n{number}"), &format!("# Number {number}\n\nSomething else about {number} things."));
        }
        desk
    };
    let told = desk(news);
    let job = told.work(&told.session("s-1", "hello").id);
    assert_eq!((job.state, &job.units[..]), (JobState::Remote, &[][..]), "{job:?}");
    let body = pull_request::render_body(&job);
    assert!(
        body.contains("like `domains/coding/backoff.md`:") && body.contains(&format!("~~~\n{news}\n~~~")),
        "{body}"
    );
    let repo = BrainRepo::open(&told.path("brain")).unwrap();
    let shown = repo.diff_branch(&job.branch.unwrap()).unwrap();
    assert!(shown.contains(news) && !shown.contains("diff --git"), "{shown}");
    assert_eq!(brought(&told, "main"), "", "merging it changes nothing");

    let same = desk(known);
    let job = same.work(&same.session("s-1", "hello").id);
    assert_eq!((job.state, job.rejected[0].gate.as_str()), (JobState::Empty, "duplicate"), "{job:?}");
}
