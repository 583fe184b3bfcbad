//! Measures how fast a graph server works with a brain of 4,180 notes: `tests/brain/bolt --measure`.

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{env, fs};

use nudge_brain::SOURCE;
use nudge_core::service::Caller;
use nudge_core::source::{Source, SourceHost, StopFlag};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The number of notes in the manuals of the evaluation. `RELATIONS` is the number of relations.
const NOTES: usize = 4_180;
const RELATIONS: usize = 1_971;
/// The number of questions of each kind.
const QUESTIONS: usize = 100;

fn main() -> Result<(), Box<dyn Error>> {
    let place = tempfile::tempdir()?;
    let brain = place.path().join("brain");
    fs::create_dir(&brain)?;
    (0..NOTES).try_for_each(|number| fs::write(brain.join(format!("n{number}.md")), note(number, "")))?;
    let read_variable = |name: &str| env::var(format!("NUDGE_TEST_BOLT{name}")).unwrap_or_default();
    let (address, user, password, database) =
        (read_variable(""), read_variable("_USER"), read_variable("_PASSWORD"), read_variable("_DATABASE"));
    let root = brain.to_string_lossy();
    let server = [
        ("brain.root", &*root),
        ("brain.bolt", &address),
        ("brain.bolt_user", &user),
        ("brain.bolt_password", &password),
        ("brain.bolt_database", &database),
    ];
    let (by_server, by_index) = (open(place.path(), &server)?, open(place.path(), &server[..1])?);
    for what in ["empty", "mirrored"] {
        let rebuilt = call(&*by_server, "rebuild", &json!({"graph": true}))?;
        println!("rebuild, the server {what}: {rebuilt}");
    }
    for hops in 1..=3 {
        let (mut server, mut index) = (Vec::new(), Vec::new());
        for number in 0..QUESTIONS {
            let question =
                json!({"task_description": format!("word{} of note", number * 7), "limit": 10, "hops": hops});
            for (source, times) in [(&by_server, &mut server), (&by_index, &mut index)] {
                let begun = Instant::now();
                let answer = call(&**source, "context", &question)?;
                times.push(begun.elapsed());
                let degraded = answer["degraded"].to_string();
                assert!(!degraded.contains("bolt:"), "{degraded}");
            }
        }
        let [server, index] = [server, index].map(told);
        println!("a question, {hops} hops: by the server {server}; by the index {index}");
    }
    fs::write(brain.join("n7.md"), note(7, "Changed.\n") + "[[n8]]\n")?;
    println!("one file changed: in step after {} ms", follow(&by_server)?);
    by_server.close();
    by_index.close();
    Ok(())
}

fn note(number: usize, more: &str) -> String {
    let mut text = format!("---\nid: n{number}\n");
    if number < RELATIONS {
        let _ = writeln!(text, "related: [{{id: n{}, type: uses}}]", (number * 31 + 17) % NOTES);
    }
    let _ = writeln!(text, "---\n# Note {number}\n\nOf word{} and word{}.\n{more}", number % 700, number % 131);
    text
}

fn open(place: &Path, settings: &[(&str, &str)]) -> Result<Arc<dyn Source>, Box<dyn Error>> {
    Ok((SOURCE.open)(SourceHost::new_alone(place, &SOURCE, settings)?)?)
}

fn call(source: &dyn Source, verb: &str, params: &Value) -> Result<Value, Box<dyn Error>> {
    let params = RawValue::from_string(params.to_string())?;
    let answer = source.call_by(Caller::with_name("measure"), &format!("nudge.brain.{verb}"), &params)?;
    Ok(serde_json::from_str(answer.get())?)
}

/// Returns the time, in milliseconds, until the server has all changes of the files.
fn follow(source: &Arc<dyn Source>) -> Result<u128, Box<dyn Error>> {
    let (begun, stop) = (Instant::now(), StopFlag::default());
    std::thread::scope(|scope| {
        scope.spawn(|| source.work(&stop));
        // The loop waits for the worker. Until the worker has read the files, `check` compares the server with the old
        // state.
        let changed = || Ok::<_, Box<dyn Error>>(call(&**source, "check", &json!({}))?["problems"] == json!([]));
        let mut is_done = changed();
        while matches!(is_done, Ok(false)) {
            std::thread::sleep(Duration::from_millis(20));
            is_done = changed();
        }
        stop.set();
        is_done.map(|_| begun.elapsed().as_millis())
    })
}

/// Formats the median and the 95th percentile of some times.
fn told(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let percentile = |share: usize| times[times.len() * share / 100].as_secs_f64() * 1_000.0;
    format!("p50 {:.1} ms, p95 {:.1} ms", percentile(50), percentile(95))
}
