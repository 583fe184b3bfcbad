//! Tests that an index after any changes equals an index that is made anew.

mod kit;

use std::fs;
use std::path::Path;

use kit::{Lab, until};
use proptest::prelude::*;
use serde_json::json;

#[derive(Debug, Clone)]
enum Step {
    Write { file: usize, text: usize },
    Remove { file: usize },
    Rename { from: usize, to: usize },
    RenameFolder { from: usize, to: usize },
    Switch { branch: usize },
    Ignore { what: usize },
    Ask { file: usize },
}

const FILES: [&str; 6] = ["a.py", "b.py", "pkg/a.py", "pkg/__init__.py", "pkg/sub/c.py", "lib.rs"];
const FOLDERS: [&str; 4] = ["pkg", "pkg/sub", "moved", "gone/far"];
const IGNORED: [&str; 4] = ["", "pkg/\n", "*.rs\n", "a.py\n!pkg/a.py\n"];

/// Makes one of a few texts with calls to other files. Some files get equal texts.
fn text(file: usize, text: usize) -> String {
    if FILES[file] == "lib.rs" {
        return format!("pub fn f{text}() {{ g() }}\n\nfn g() {{}}\n");
    }
    let import = ["", "from pkg.a import f1\n", "from b import f0, f2\n"][text % 3];
    format!(
        "{import}\n\ndef f{text}(x):\n    return f{}(x)\n\n\nclass K:\n    def m(self):\n        return f{text}(self)\n",
        (text + 1) % 4
    )
}

fn step() -> impl Strategy<Value = Step> {
    let file = 0..FILES.len();
    prop_oneof![
        5 => (file.clone(), 0..4_usize).prop_map(|(file, text)| Step::Write { file, text }),
        2 => file.clone().prop_map(|file| Step::Remove { file }),
        2 => (file.clone(), file.clone()).prop_map(|(from, to)| Step::Rename { from, to }),
        1 => (0..FOLDERS.len(), 0..FOLDERS.len()).prop_map(|(from, to)| Step::RenameFolder { from, to }),
        1 => (0..3_usize).prop_map(|branch| Step::Switch { branch }),
        1 => (0..IGNORED.len()).prop_map(|what| Step::Ignore { what }),
        2 => file.prop_map(|file| Step::Ask { file }),
    ]
}

/// Applies a step. A step that is impossible is skipped.
fn make(lab: &Lab, session: &kit::Session, step: &Step) {
    let full_path = |path: &str| lab.root().join(path);
    let rename = |from: &Path, to: &Path| {
        if from.exists() {
            let _ = to.parent().map(fs::create_dir_all);
            let _ = fs::rename(from, to);
        }
    };
    match *step {
        Step::Write { file, text: number } => {
            let path = full_path(FILES[file]);
            let _ = path.parent().map(fs::create_dir_all);
            let _ = fs::write(path, text(file, number));
        }
        Step::Remove { file } => drop(fs::remove_file(full_path(FILES[file]))),
        Step::Rename { from, to } => rename(&full_path(FILES[from]), &full_path(FILES[to])),
        Step::RenameFolder { from, to } => rename(&full_path(FOLDERS[from]), &full_path(FOLDERS[to])),
        Step::Switch { branch } => {
            lab.commit();
            lab.git(&["checkout", "-q", "-B", &format!("b{branch}"), if branch == 0 { "main" } else { "HEAD" }]);
        }
        Step::Ignore { what } => lab.write(".gitignore", IGNORED[what]),
        Step::Ask { file } => drop(session.ask("file", json!({"path": FILES[file]}))),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, max_shrink_iters: 30, ..ProptestConfig::default() })]

    /// Promise (sources): The index of code equals a cold index after any history.
    #[test]
    fn any_history_leads_to_the_same(batches in prop::collection::vec(prop::collection::vec(step(), 1..5), 1..4)) {
        let lab = Lab::new();
        lab.write("a.py", &text(0, 0));
        lab.commit();
        let session = lab.session();
        for batch in &batches {
            for step in batch {
                make(&lab, &session, step);
            }
            let (_caches, cold) = lab.cold();
            let expected = cold.everything();
            // The watch may not have reported the last change yet.
            until("the index to be what it should be", || {
                session.settled();
                (session.everything() == expected).then_some(())
            });
        }
        drop(session);
        let (_caches, cold) = lab.cold();
        prop_assert_eq!(lab.alone().everything(), cold.everything(), "of what was kept");
    }
}
