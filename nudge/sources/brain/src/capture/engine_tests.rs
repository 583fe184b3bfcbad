//! Tests the faults of the user's own agents. Small programs imitate the agents here. Nudge describes each fault in a
//! sentence, and makes no branch. Nudge tries again only if another try may succeed.

use std::io::Write as _;
use std::process::Stdio;

use super::*;

/// Makes a program from a script. Another process writes the file. If this process had the file open, a child of
/// another test could inherit the open file, and the system does not run a file that is open for writing.
pub fn fake(desk: &Desk, name: &str, script: &str) -> PathBuf {
    let path = desk.path(name);
    let mut shell = Command::new("sh");
    shell.args(["-c", "cat > \"$0\" && chmod 755 \"$0\""]).arg(&path).stdin(Stdio::piped());
    let mut shell = shell.spawn().unwrap();
    shell.stdin.take().unwrap().write_all(format!("#!/bin/sh\n{script}\n").as_bytes()).unwrap();
    assert!(shell.wait().unwrap().success());
    path
}

/// Works on a job. `script` becomes the program of this engine; with `None`, the program is missing.
fn work_with(desk: &Desk, id: &str, engine: &str, script: Option<&str>) -> CaptureJob {
    let path = script.map(|script| fake(desk, engine, script));
    let stop = StopFlag::default();
    let worker = CaptureWorker { program: &|name| path.clone().filter(|_| name == engine), ..desk.worker(&stop) };
    let mut held = desk.take(id);
    worker.run_job(&mut held).unwrap();
    held.job.clone()
}

/// The beginning of a script that writes its answer to the file that `-o` names, as Codex does.
const TO_FILE: &str = "while [ \"$1\" != -o ]; do shift; done; cat >/dev/null; ";

#[test]
fn faults_of_the_users_own_agents() {
    let huge = "head -c 9000000 /dev/zero | tr '\\0' x";
    let faults = |engine: &str| {
        let form = format!("{engine} answered in another form");
        if engine == "claude" {
            [
                ("cat >/dev/null; echo no", "20", "claude answered no JSON".to_owned()),
                ("cat >/dev/null; echo '{\"result\": \"no\"}'", "20", form),
                ("cat >/dev/null; echo '{\"is_error\": true}'", "20", "claude answered with an error".to_owned()),
            ]
            .map(|(script, seconds, said)| (script.to_owned(), seconds, said))
        } else {
            [
                (format!("{TO_FILE}echo no > \"$2\""), "20", form.clone()),
                (format!("{TO_FILE}{huge} > \"$2\""), "20", form.clone()),
                ("cat >/dev/null".to_owned(), "20", form),
            ]
        }
    };
    for engine in ["claude", "codex"] {
        let ended = [
            ("exit 1".to_owned(), "20", format!("{engine} ended with code 1")),
            ("kill -9 $$".to_owned(), "20", format!("{engine} ended by a signal")),
            ("sleep 600 & sleep 600".to_owned(), "1", format!("{engine} gave no answer in 1 s")),
            (format!("exec {huge}"), "20", format!("{engine} answered")),
        ];
        // Nudge stops reading when an answer is too long.
        for (script, seconds, said) in
            ended.into_iter().take(if engine == "claude" { 4 } else { 3 }).chain(faults(engine))
        {
            let desk = Desk::with(&[("brain.llm", engine), ("brain.llm_seconds", seconds)]);
            let id = desk.session("s-1", "hello").id;
            let job = work_with(&desk, &id, engine, Some(&script));
            let note = job.note.unwrap_or_default();
            assert!(note.contains(&said) || (script.starts_with("exec") && note.contains(engine)), "{script}: {note}");
            assert!(!note.contains("xxxx") && note.len() < 200, "{note}");
            assert_eq!((job.state, desk.branches("brain").len()), (JobState::Waiting, 0), "{script}: it may pass");
        }
        let desk = Desk::with(&[("brain.llm", engine)]);
        let id = desk.session("s-1", "hello").id;
        let job = work_with(&desk, &id, engine, None);
        assert!(job.note.unwrap().contains(&format!("There is no {engine} in PATH")));
        // When the program appears in PATH later, Nudge uses it.
        let answer = json!({"units": [unit("Retry with full jitter", BODY)]}).to_string();
        let script = match engine {
            "claude" => format!(
                "cat >/dev/null; printf %s '{}'",
                json!({"structured_output": json!({"units": [unit("Retry with full jitter", BODY)]})})
            ),
            _ => format!("{TO_FILE}printf %s '{answer}' > \"$2\""),
        };
        let job = work_with(&desk, &id, engine, Some(&script));
        assert_eq!((job.state, job.units.len(), job.calls.len()), (JobState::Remote, 1, 1), "{job:?}");
        let left = fs::read_dir(desk.jobs.path())
            .unwrap()
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().starts_with('.'));
        assert_eq!(left.count(), 0, "no file of a moment is left");
    }
}

#[cfg(not(feature = "llm"))]
#[test]
fn a_build_without_apis_says_so() {
    for engine in ["anthropic", "openai"] {
        let desk = Desk::with(&[("brain.llm", engine)]);
        let job = desk.work(&desk.session("s-1", "hello").id);
        let note = job.note.unwrap();
        assert!(
            note.contains("built without the feature `llm`") && note.contains(&format!("cannot ask {engine}; set ")),
            "{note}"
        );
        assert_eq!(job.calls, []);
    }
}
