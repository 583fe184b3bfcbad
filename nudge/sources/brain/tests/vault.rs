//! Asks questions about a brain of 4,000 notes while its files change. Nudge must not rewrite any note. Each section of
//! an answer must be a text that its file had at some time.

mod kit;

use std::collections::HashMap;
use std::fs;
use std::sync::Mutex;
use std::sync::mpsc::sync_channel;

use kit::Desk;
use serde_json::{Value, json};

const NOTES: usize = 4_000;
const CHANGES: usize = 120;
const WORDS: [&str; 8] = ["anchor", "barley", "cobalt", "dahlia", "ember", "fjord", "garnet", "harbor"];

/// All texts that each file has had. The last text is the present one.
type Versions = Mutex<HashMap<String, Vec<String>>>;

fn word(number: usize) -> &'static str {
    WORDS[number % WORDS.len()]
}

/// Records the new text first, and then writes the file. So an answer never contains a text that was not recorded.
fn write(desk: &Desk, versions: &Versions, path: &str, text: String, in_place: bool) {
    versions.lock().unwrap().entry(path.to_owned()).or_default().push(text.clone());
    if in_place {
        return desk.write(path, text);
    }
    // Most editors replace a file in this way.
    desk.write(".new", text);
    fs::create_dir_all(desk.path(path).parent().unwrap()).unwrap();
    fs::rename(desk.path(".new"), desk.path(path)).unwrap();
}

fn note(number: usize, version: usize) -> String {
    let (first, two) = (word(number), word(number / WORDS.len() + version));
    format!(
        "---\ntags: [t{number}]\n---\n# Note {number}\n\nThe {first} of version {version}.\n\n## Part\n\nA {two}, note{number}.\n"
    )
}

/// Changes a file in one of the ways that people use. The sequence is fixed.
fn change(desk: &Desk, versions: &Versions, paths: &[String], step: usize) {
    let path = &paths[step * 7919 % paths.len()];
    let old = versions.lock().unwrap().get(path).and_then(|all| all.last().cloned()).unwrap_or_default();
    match step % 5 {
        0 | 1 => {
            write(desk, versions, path, format!("{old}\n\nChange {step}: {}.\n", word(step)), step.is_multiple_of(2));
        }
        2 => write(desk, versions, &format!("new{}/note{step}.md", step % 13), note(step, step), true),
        3 => {
            let to = format!("moved/{step}.md");
            versions.lock().unwrap().entry(to.clone()).or_default().push(old);
            fs::create_dir_all(desk.path("moved")).unwrap();
            fs::rename(desk.path(path), desk.path(&to)).unwrap();
            versions.lock().unwrap().get_mut(path).unwrap().push(String::new());
            write(desk, versions, path, format!("# Again {step}\n\n{}\n", word(step)), false);
        }
        _ => {
            // Writes half of the text first, and then the whole text.
            write(desk, versions, path, old.chars().take(old.len() / 2).collect(), true);
            write(desk, versions, path, old, true);
        }
    }
}

/// Checks that each section of an answer is a text that its file had at some time. Returns the number of sections.
fn quoted(versions: &Versions, answer: &Value) -> usize {
    let sections_of = |unit: &Value| match &unit["sections"] {
        Value::Array(all) => all.clone(),
        _ => unit.get("section").into_iter().cloned().collect(),
    };
    let units = answer["units"].as_array().unwrap().iter().chain(answer["related"].as_array().unwrap());
    let mut count = 0;
    for unit in units {
        let path = unit["path"].as_str().unwrap();
        for section in sections_of(unit) {
            let text = section["text"].as_str().unwrap().trim_end_matches('…').trim_end();
            // Manuals contain examples of credentials, so these sections are withheld.
            if text.starts_with("[withheld: ") {
                continue;
            }
            let stood =
                versions.lock().unwrap().get(path).is_some_and(|all| all.iter().any(|version| version.contains(text)));
            assert!(stood, "{path} never said {text:?}");
            count += 1;
        }
    }
    count
}

#[test]
fn answers_quote_what_the_files_said_and_no_file_is_rewritten() {
    let desk = Desk::new();
    let versions = Versions::default();
    if desk.copy_real() == 0 {
        for number in 0..NOTES {
            write(
                &desk,
                &versions,
                &format!("f{}/g{}/note{number}.md", number % 20, number % 3),
                note(number, 0),
                true,
            );
        }
    }
    let root = desk.path("");
    for (path, text) in desk.bytes() {
        let path = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        versions.lock().unwrap().insert(path, vec![String::from_utf8(text).unwrap()]);
    }
    let mut paths: Vec<String> = versions.lock().unwrap().keys().cloned().collect();
    paths.sort_unstable();
    let _working = desk.working();
    let (told, answers) = sync_channel(1);
    let sections = std::thread::scope(|scope| {
        let askers: Vec<_> = (0..2)
            .map(|asker| {
                let (desk, versions, told) = (&desk, &versions, told.clone());
                scope.spawn(move || {
                    let mut sections = 0;
                    for round in asker.. {
                        let question = format!("{} {} change", word(round), word(round * 3));
                        let answer = desk.call("context", &json!({"task_description": question, "limit": 20}));
                        sections += quoted(versions, &answer);
                        if told.send(()).is_err() {
                            break;
                        }
                    }
                    sections
                })
            })
            .collect();
        for step in 0..CHANGES {
            change(&desk, &versions, &paths, step);
            // Several changes are made between two answers.
            if step % 4 == 3 {
                answers.recv().unwrap();
            }
        }
        drop(answers);
        askers.into_iter().map(|asker| asker.join().unwrap()).sum::<usize>()
    });
    let now = desk.bytes();
    // The worker reads all files without a question. Each file has the text that was written last.
    desk.wait_for("every file", |stands| stands["units"] == now.len());
    for (path, text) in &now {
        let path = path.strip_prefix(&root).unwrap().to_str().unwrap();
        let last = versions.lock().unwrap()[path].last().cloned().unwrap();
        assert!(last.as_bytes() == text, "{path} was rewritten");
    }
    let stands = desk.call("status", &json!({}));
    assert!(stands["follows"].as_str().unwrap().starts_with("as they change, in "), "{stands}");
    assert!(sections > CHANGES);
    let answers = CHANGES / 4;
    eprintln!("{} files, {CHANGES} changes, {answers} answers, {sections} sections: {}", now.len(), stands["follows"]);
}
