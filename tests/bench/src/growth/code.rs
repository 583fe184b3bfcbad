//! A project of so many functions.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nudge_code::SOURCE;
use nudge_core::source::{DataDir, SessionIdentity, Source, SourceHost};
use serde_json::{Value, json};

use super::{answer, call, of};
use crate::project::{FUNCTIONS, Project};

fn opened(folder: &Path) -> Arc<dyn Source> {
    let host = SourceHost::new_alone(folder, &SOURCE, &[]).expect("the defaults are allowed");
    let session = SessionIdentity { id: "bench".into(), created_at: 0 };
    (SOURCE.open)(SourceHost { cache: DataDir::new(folder.join("caches")), session, ..host })
        .expect("the folder is there")
}

/// Asks until all of the project is read.
fn wait(source: &dyn Source, root: &Path) {
    while answer(source, "nudge.code.status", &json!({"root": root}))["as_of"]["complete"] != true {
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The project, and an index of it.
pub fn fill(folder: &Path, items: usize) {
    let root = folder.join("project");
    std::fs::create_dir(&root).expect("there is room for files");
    Project::new(&root, items / FUNCTIONS).settle();
    let source = opened(folder);
    wait(&*source, &root);
    source.close();
}

/// All verbs.
pub fn ask(folder: &Path, items: usize) {
    let (root, files) = (folder.join("project"), items / FUNCTIONS);
    let project = Project::at(&root);
    let source = opened(folder);
    wait(&*source, &root);
    let verb = |verb: &str, own: &Value| {
        let mut params = own.clone();
        params["root"] = json!(root);
        call(&*source, &format!("nudge.code.{verb}"), &params)
    };
    let file = |at: usize| at * 379 % files;
    let id = |at: usize| format!("module_{0}.py:step_{0}_7", file(at));
    of("node", 20, |at| drop(verb("node", &json!({"id": id(at)}))));
    of("node, again", 20, |_| drop(verb("node", &json!({"id": id(1)}))));
    of("callers", 20, |at| drop(verb("callers", &json!({"id": id(at)}))));
    of("tests", 4, |at| drop(verb("tests", &json!({"id": id(at)}))));
    of("file", 4, |at| drop(verb("file", &json!({"path": format!("module_{}.py", file(at))}))));
    of("search", 4, |at| drop(verb("search", &json!({"query": format!("step {}", file(at))}))));
    of("context", 4, |at| {
        let prompt = format!("why does step_{}_7() return the wrong amount?", file(at));
        verb("context", &json!({"prompt": prompt}));
    });
    of("status", 4, |_| drop(verb("status", &json!({}))));
    of("refresh, a file", 4, |at| {
        project.write(file(at), files, &format!("amount_{at}"));
        verb("refresh", &json!({"path": format!("module_{}.py", file(at))}));
    });
    source.close();
}
