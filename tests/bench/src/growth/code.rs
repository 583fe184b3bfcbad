//! Measures how the cost of a project's code grows with its number of functions.

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

/// Calls the source until it has read the whole project.
fn wait(source: &dyn Source, root: &Path) {
    while answer(source, "nudge.code.status", &json!({"root": root}))["as_of"]["complete"] != true {
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Writes the project and builds its index.
pub fn fill(folder: &Path, items: usize) {
    let root = folder.join("project");
    std::fs::create_dir(&root).expect("there is room for files");
    Project::new(&root, items / FUNCTIONS).settle();
    let source = opened(folder);
    wait(&*source, &root);
    source.close();
}

/// Calls all verbs of the code.
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
    let file = |step: usize| step * 379 % files;
    let id = |step: usize| format!("module_{0}.py:step_{0}_7", file(step));
    of("node", 20, |step| drop(verb("node", &json!({"id": id(step)}))));
    of("node, again", 20, |_| drop(verb("node", &json!({"id": id(1)}))));
    of("callers", 20, |step| drop(verb("callers", &json!({"id": id(step)}))));
    of("tests", 4, |step| drop(verb("tests", &json!({"id": id(step)}))));
    of("file", 4, |step| drop(verb("file", &json!({"path": format!("module_{}.py", file(step))}))));
    of("search", 4, |step| drop(verb("search", &json!({"query": format!("step {}", file(step))}))));
    of("context", 4, |step| {
        let prompt = format!("why does step_{}_7() return the wrong amount?", file(step));
        verb("context", &json!({"prompt": prompt}));
    });
    of("status", 4, |_| drop(verb("status", &json!({}))));
    of("refresh, a file", 4, |step| {
        project.write(file(step), files, &format!("amount_{step}"));
        verb("refresh", &json!({"path": format!("module_{}.py", file(step))}));
    });
    source.close();
}
