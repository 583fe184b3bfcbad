//! Tests that a file tracked by git does not count as a signal. The tests run in their own process: they start git, and
//! a process that is just starting holds the parent's locks for a moment.

use std::fs;
use std::path::Path;
use std::process::Command;

use nudge_signals::{AgentId, StateDir};

/// Returns true if Nudge refuses an agent's signal file because git tracks it.
fn is_tracked(file: &Path) -> bool {
    let folder = file.parent().unwrap();
    let state = StateDir::find(folder.parent().unwrap().parent().unwrap().to_str(), None).unwrap();
    let agent = AgentId::parse(folder.file_name().unwrap().to_str().unwrap()).unwrap();
    state.inbox(&agent).read(0).unwrap().is_some_and(|read| read.unwrap_err().contains("git tracks it"))
}

fn git(folder: &Path, args: &[&str]) -> bool {
    let mut git = Command::new("git");
    git.current_dir(folder).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    git.args(args).output().is_ok_and(|output| output.status.success())
}

/// Tries real indexes of every version, with both kinds of hashes.
#[test]
fn tracked_files_are_known_by_the_index_of_git() {
    for (version, object_format) in [("2", "sha1"), ("3", "sha1"), ("4", "sha1"), ("2", "sha256"), ("4", "sha256")] {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path();
        assert!(git(top, &["init", "-q", &format!("--object-format={object_format}")]), "git is installed");
        let own = top.join(".chipset/state/nudge");
        for agent in ["came", "own"] {
            fs::create_dir_all(own.join(agent)).unwrap();
            fs::write(own.join(agent).join("latest.json"), "{}").unwrap();
        }
        for length in 0..40 {
            fs::write(top.join(format!("f{}{length}", "x".repeat(length))), "").unwrap();
        }
        let came = own.join("came/latest.json");
        assert!(!is_tracked(&came), "there is no index yet");
        assert!(git(top, &["add", "f*", ".chipset/state/nudge/came"]));
        if version == "3" {
            fs::write(top.join("later"), "").unwrap();
            assert!(git(top, &["add", "-N", "later"]));
        } else {
            assert!(git(top, &["update-index", "--index-version", version]));
        }
        assert!(is_tracked(&came), "{version} {object_format}");
        assert!(!is_tracked(&own.join("own/latest.json")), "{version} {object_format}");
        if object_format == "sha1" {
            assert!(git(top, &["update-index", "--split-index"]));
            assert!(is_tracked(&came), "the index is split");
        }
        fs::write(top.join(".git/index"), "DIRC").unwrap();
        assert!(is_tracked(&own.join("own/latest.json")), "an index that cannot be read may track it");
    }
}

#[test]
fn a_linked_work_tree_has_an_index_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let (main, linked) = (folder.path().join("main"), folder.path().join("linked"));
    fs::create_dir_all(main.join("nudge/a")).unwrap();
    fs::write(main.join("nudge/a/latest.json"), "{}").unwrap();
    assert!(git(&main, &["init", "-q"]) && git(&main, &["add", "."]));
    let commit = ["-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "-m", "a"];
    assert!(git(&main, &commit));
    assert!(git(&main, &["worktree", "add", "-q", linked.to_str().unwrap()]));
    assert!(is_tracked(&linked.join("nudge/a/latest.json")));
    fs::create_dir_all(linked.join("nudge/b")).unwrap();
    fs::write(linked.join("nudge/b/latest.json"), "{}").unwrap();
    assert!(!is_tracked(&linked.join("nudge/b/latest.json")));
}
