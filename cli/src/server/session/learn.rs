//! Learning: a command that failed, and a near one that then worked in the same folder, become a hint (semantics section
//! 20). It stands before the service that all sources answer, and sees what hooks tell it anyway.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::Arc;

use nudge::{Caller, Error, ErrorKind, Method, Result, Service};
use nudge_core::clock::{Clock, Millis};
use nudge_core::shell::{self, Line};
use nudge_core::text::one_line;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use crate::reach::{self, SET_HINT};
use crate::seed;

/// The tag, and the signature, of what was learned.
pub const LEARNED: &str = "learned";
/// How long after a failure what works is held to be its remedy.
const PATIENCE_MS: Millis = 10 * 60 * 1000;
/// Most hints that are learned of one client session.
const MAX_LEARNED: usize = 20;
/// Most client sessions, failures of one, and calls' keys that are remembered.
const MAX_SESSIONS: usize = 256;
const MAX_FAILURES: usize = 8;
const MAX_KEYS: usize = 128;
/// How sure what was learned is at first, and at most; what a success adds, what a failure takes, and below what it goes.
const FIRST: f64 = 0.3;
const MOST: f64 = 0.8;
const A_SUCCESS: f64 = 0.1;
const A_FAILURE: f64 = 0.2;
const LEAST: f64 = 0.1;
/// Longest line, in bytes; longer ones are written for once.
const MAX_LINE: usize = 300;
/// Longest words of a failure in a reason, in characters.
const MAX_TOLD: usize = 160;
/// Most words of an error that become tags, and most keys of one name.
const MAX_WORDS: usize = 6;
const MAX_SAME: usize = 9;
/// Programs that are run with other arguments each time: that one of two worked says nothing of the other.
const LOOKING: &[&str] = &[
    "ls", "cd", "cat", "head", "tail", "less", "grep", "egrep", "rg", "ag", "find", "fd", "sed", "awk", "echo",
    "printf", "test", "[", "rm", "mv", "cp", "mkdir", "rmdir", "touch", "ln", "chmod", "chown", "diff", "cmp", "wc",
    "sort", "which", "type", "kill", "pkill", "sleep", "stat", "file", "tree", "jq", "pwd", "true", "false", "curl",
    "wget", "tee", "xargs",
];

/// What every call of these methods may say.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Said {
    event: Option<String>,
    command: Option<String>,
    ok: Option<bool>,
    error: Option<String>,
    client_session: Option<String>,
    context: Option<Place>,
}

#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Place {
    cwd: Option<String>,
    repo: Option<String>,
}

/// A command that failed.
#[derive(Debug)]
struct Failed {
    command: String,
    cwd: String,
    error: String,
    at: Millis,
}

#[derive(Debug, Default)]
struct OfSession {
    failed: VecDeque<Failed>,
    learned: usize,
    last: Millis,
}

#[derive(Default)]
struct State {
    sessions: HashMap<String, OfSession>,
    /// Of calls that were seen, so that each counts once.
    keys: VecDeque<String>,
}

/// The service that learns.
pub struct Learning {
    asked: Arc<dyn Service>,
    hints: Arc<dyn Service>,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

impl Learning {
    /// Learns from the calls of `asked`; `hints` stores.
    pub fn new(asked: Arc<dyn Service>, hints: Arc<dyn Service>, clock: Arc<dyn Clock>) -> Self {
        Self { asked, hints, clock, state: Mutex::default() }
    }

    /// Looks at a call that was answered. What is refused is not learned, and nobody is told: the caller asked for
    /// something else.
    fn look(&self, by: Caller<'_>, method: &str, params: &RawValue, answer: &RawValue) -> Option<()> {
        let is_outcome = method == "nudge.outcome";
        let said: Said = serde_json::from_str(params.get()).ok()?;
        let is_failure = said.event.as_deref() == Some("failure") || (is_outcome && said.ok == Some(false));
        let (session, command) = (said.client_session?, said.command?);
        let place = said.context.unwrap_or_default();
        let cwd = place.cwd.clone()?;
        let now = self.clock.now();
        if is_outcome {
            if let Some(key) = by.key {
                let mut state = self.state.lock();
                if state.keys.iter().any(|known| known == key) {
                    return None;
                }
                state.keys.push_back(key.to_owned());
                if state.keys.len() > MAX_KEYS {
                    state.keys.pop_front();
                }
            }
            self.weigh(answer, said.ok == Some(true));
        }
        if is_failure {
            self.state.lock().note(session, Failed { command, cwd, error: said.error.unwrap_or_default(), at: now });
            return None;
        }
        if !is_outcome || said.ok != Some(true) || is_known(answer) {
            return None;
        }
        let line = shell::parse(&command).filter(|_| command.len() <= MAX_LINE)?;
        let failed = self.state.lock().remedied(&session, &cwd, &line, now)?;
        self.store(&failed, &command, &line, &place).ok()?;
        if let Some(session) = self.state.lock().sessions.get_mut(&session) {
            session.learned += 1;
        }
        Some(())
    }

    /// Raises or lowers what was learned and has just been tried.
    fn weigh(&self, answer: &RawValue, ok: bool) {
        for hint in matched(answer).iter().filter(|hint| is_learned(hint)) {
            let confidence = hint["meta"]["confidence"].as_f64().unwrap_or(FIRST);
            let next = if ok { (confidence + A_SUCCESS).min(MOST) } else { confidence - A_FAILURE };
            // Another may change it at the same time; then that counts.
            let _ = if next < LEAST {
                let which = json!({"component": hint["component"], "key": hint["key"], "variant": hint["variant"].as_str().unwrap_or_default()});
                self.call("nudge.delete_hint", &which)
            } else {
                let mut meta = hint["meta"].clone();
                meta["confidence"] = json!((next * 100.0).round() / 100.0);
                if let Some(meta) = meta.as_object_mut() {
                    meta.remove("scope");
                }
                let variant = hint["variant"].as_str().unwrap_or_default();
                self.call(SET_HINT, &json!({"component": hint["component"], "key": hint["key"], "variant": variant, "value": hint["value"], "meta": meta, "if_match_version": hint["version"]}))
            };
        }
    }

    /// # Errors
    /// What the store refuses: a credential, for instance.
    fn store(&self, failed: &Failed, command: &str, line: &Line, place: &Place) -> Result<()> {
        let component = place.repo.as_deref().map_or("commands", seed::short);
        let name = name(line);
        let error = failed.error.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        let colon = if error.is_empty() { "" } else { ": " };
        let reason = format!(
            "worked after `{}` failed{colon}{}",
            one_line(&failed.command, MAX_TOLD),
            one_line(error, MAX_TOLD)
        );
        let mut tags = vec![LEARNED.to_owned()];
        for word in error.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-') {
            let word = word.trim_matches(['-', '_']).to_lowercase();
            if (4..=32).contains(&word.len()) && tags.len() <= MAX_WORDS && !tags.contains(&word) {
                tags.push(word);
            }
        }
        let mut scope = Map::new();
        let top = seed::top_of(Path::new(&failed.cwd));
        let below = top.as_deref().and_then(|top| Path::new(&failed.cwd).strip_prefix(top).ok()).and_then(Path::to_str);
        match (&place.repo, below) {
            (Some(repo), Some(folder)) => {
                scope.insert("repo".into(), repo.as_str().into());
                if !folder.is_empty() {
                    let folder = reach::literal(folder);
                    scope.insert("cwd_glob".into(), json!([format!("**/{folder}"), format!("**/{folder}/**")]));
                }
            }
            _ => drop(scope.insert("cwd_glob".into(), reach::below(&failed.cwd).into())),
        }
        let meta = json!({"reason": reason, "tags": tags, "confidence": FIRST, "source": "tool-output", "added_by": LEARNED, "scope": scope});
        for number in 1..=MAX_SAME {
            let key = if number == 1 { name.clone() } else { format!("{name}-{number}") };
            let params = json!({"component": component, "key": key, "value": {"type": "command", "cmd": command}, "meta": meta, "if_match_version": 0});
            match self.call(SET_HINT, &params) {
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                done => return done,
            }
        }
        Ok(())
    }

    fn call(&self, method: &str, params: &Value) -> Result<()> {
        let params = to_raw_value(params).map_err(|_| Error::invalid("It cannot be written as JSON."))?;
        self.hints.call_by(Caller::named(LEARNED), method, &params).map(drop)
    }
}

impl Service for Learning {
    fn methods(&self) -> Vec<&'static Method> {
        self.asked.methods()
    }

    fn method(&self, name: &str) -> Option<&'static Method> {
        self.asked.method(name)
    }

    fn call_by(&self, caller: Caller<'_>, method: &str, params: &RawValue) -> Result<Box<RawValue>> {
        let answer = self.asked.call_by(caller, method, params)?;
        if matches!(method, "nudge.outcome" | "nudge.suggest" | "nudge.digest") {
            self.look(caller, method, params, &answer);
        }
        Ok(answer)
    }
}

impl State {
    /// Remembers a failure; of one that is told twice the error that is known.
    fn note(&mut self, session: String, failed: Failed) {
        if self.sessions.len() >= MAX_SESSIONS && !self.sessions.contains_key(&session) {
            let oldest = self.sessions.iter().min_by_key(|(_, session)| session.last).map(|(name, _)| name.clone());
            oldest.and_then(|oldest| self.sessions.remove(&oldest));
        }
        let session = self.sessions.entry(session).or_default();
        session.last = failed.at;
        if let Some(known) =
            session.failed.iter_mut().find(|known| known.command == failed.command && known.cwd == failed.cwd)
        {
            known.at = failed.at;
            if !failed.error.is_empty() {
                known.error = failed.error;
            }
            return;
        }
        session.failed.push_back(failed);
        if session.failed.len() > MAX_FAILURES {
            session.failed.pop_front();
        }
    }

    /// The latest failure of which this line, which worked, is the remedy; it is remembered no more.
    fn remedied(&mut self, session: &str, cwd: &str, worked: &Line, now: Millis) -> Option<Failed> {
        let session = self.sessions.get_mut(session).filter(|session| session.learned < MAX_LEARNED)?;
        session.failed.retain(|failed| now.saturating_sub(failed.at) <= PATIENCE_MS);
        let is_remedied = |failed: &Failed| {
            failed.cwd == cwd && shell::parse(&failed.command).is_some_and(|line| is_lesson(&line, worked))
        };
        let at = session.failed.iter().rposition(is_remedied)?;
        session.failed.remove(at)
    }
}

/// Whether it is worth knowing that the second worked where the first did not: it is near, of a program whose arguments
/// are the same each time, and more than files are other.
fn is_lesson(failed: &Line, worked: &Line) -> bool {
    let (Some(mine), Some(others)) = (failed.heads().last(), worked.heads().last()) else { return false };
    let program = others.program.rsplit('/').next().unwrap_or_default();
    if LOOKING.contains(&program) || !failed.is_near(worked) {
        return false;
    }
    let is_file = |word: &&String| !word.starts_with('-') && word.contains(['/', '.']);
    let only_files = mine.arguments() != others.arguments()
        && mine.arguments().iter().filter(|word| !others.arguments().contains(word)).all(|word| is_file(&word))
        && others.arguments().iter().filter(|word| !mine.arguments().contains(word)).all(|word| is_file(&word));
    !only_files
}

/// The key of a command: its program and the first word behind it.
fn name(line: &Line) -> String {
    let Some(command) = line.heads().last() else { return LEARNED.to_owned() };
    let program = command.program.rsplit('/').next().unwrap_or_default();
    let first = command
        .arguments()
        .iter()
        .find(|word| word.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_') && !word.starts_with('-'));
    [Some(program), first.map(String::as_str)].into_iter().flatten().collect::<Vec<_>>().join(".")
}

/// The hints that an outcome has counted for.
fn matched(answer: &RawValue) -> Vec<Value> {
    let answer: Value = serde_json::from_str(answer.get()).unwrap_or_default();
    answer["matched"].as_array().cloned().unwrap_or_default()
}

/// Whether some hint says the command already.
fn is_known(answer: &RawValue) -> bool {
    !matched(answer).is_empty()
}

fn is_learned(hint: &Value) -> bool {
    hint["meta"]["added_by"] == LEARNED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_remedies_are_lessons() {
        for (failed, worked, expected) in [
            ("cargo test", "cargo test --locked", true),
            ("npm test", "CI=1 npm test", true),
            ("pytest -q", "pytest -q -p no:cacheprovider", true),
            ("docker compose up", "sudo docker compose up", true),
            ("make test", "make test JOBS=1", true),
            ("cargo tset", "cargo test", false),
            ("pytest tests/a.py", "pytest tests/b.py", false),
            ("cat a.txt", "cat ./a.txt", false),
            ("grep -r x src", "grep -r y src", false),
            ("npm test", "npm test", false),
            ("npm test", "make", false),
        ] {
            let (failed, worked) = (shell::parse(failed).unwrap(), shell::parse(worked).unwrap());
            assert_eq!(is_lesson(&failed, &worked), expected, "{failed:?} {worked:?}");
        }
    }

    #[test]
    fn commands_have_short_names() {
        for (line, expected) in
            [("cargo test --locked", "cargo.test"), ("cd x && ./run.sh -a", "run.sh"), ("make", "make")]
        {
            assert_eq!(name(&shell::parse(line).unwrap()), expected);
        }
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut state = State::default();
        for at in 0..1_000 {
            let failed = Failed { command: format!("make x{at}"), cwd: "/r".into(), error: String::new(), at };
            state.note(format!("s{}", at % 500), failed);
        }
        assert!(state.sessions.len() <= MAX_SESSIONS);
        for at in 0..100 {
            state.note(
                "s".into(),
                Failed { command: format!("make x{at}"), cwd: "/r".into(), error: String::new(), at },
            );
        }
        assert_eq!(state.sessions["s"].failed.len(), MAX_FAILURES);
        let worked = shell::parse("make x99 -j1").unwrap();
        assert!(state.remedied("s", "/elsewhere", &worked, 100).is_none());
        assert_eq!(state.remedied("s", "/r", &worked, 100).unwrap().command, "make x99");
        assert!(state.remedied("s", "/r", &worked, 100).is_none(), "once");
        let late = shell::parse("make x98 -j1").unwrap();
        assert!(state.remedied("s", "/r", &late, 99 + PATIENCE_MS).is_none(), "too late");
    }
}
