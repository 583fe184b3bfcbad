//! `nudge hook`: one command for every event of every client.
//!
//! An agent waits for it, so it never fails and never blocks: its exit code is 0, and it prints nothing
//! when there is nothing to say, or when it would take too long.

use std::cell::OnceCell;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nudge::{ErrorKind, HintValue, Result};
use nudge_core::settings::SettingValues;
use nudge_core::suggest::{DigestBuilder, MAX_CONFIRM_MS, SuggestEvent, SuggestTold};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::capture;
use super::checkout::{AgentCheckout, with_doubt};
use super::event::{self, HookEvent, HookMoment};
use crate::args::GlobalFlags;
use crate::running::{RunningSession, parsed_as};
use crate::settings;
use crate::sources;
use crate::{committed, seed};

/// Smallest output limit with which suggestions are asked for: with less there is no room to print any.
const MIN_BYTES: usize = 200;
/// Largest event that is read; clients send less.
const MAX_EVENT_BYTES: u64 = 8 << 20;
/// Stack of the watching thread; the system rounds it up where it needs more.
const WATCH_STACK_BYTES: usize = 64 << 10;
/// Further time for the end of a session: no user waits for a prompt then, and an end that is not noted is lost.
const MORE_FOR_AN_END: Duration = Duration::from_secs(1);
static IS_ENDING: AtomicBool = AtomicBool::new(false);
/// The variable of Claude Code that is 0 where a program reads its answer, as under `claude -p`.
const ATTENDED: &str = "CLAUDE_CODE_SESSION_ATTENDED";
/// Length to which errors and prompts are cut. The end is kept, where an error says most and a long prompt asks.
const MAX_TEXT_BYTES: usize = 16 << 10;

/// Reads an event from stdin and answers it.
pub fn run_hook(global: &GlobalFlags) -> ! {
    let values = read_values();
    let patience_ms = patience_ms(&values);
    let deadline = Instant::now() + Duration::from_millis(patience_ms);
    // The watching thread ends the process when a read or a call hangs. It does nothing else: doing the work on a
    // second thread would cost as much as the calls.
    let watch = move || {
        std::thread::sleep(deadline.saturating_duration_since(Instant::now()));
        if IS_ENDING.load(Ordering::Relaxed) {
            std::thread::sleep(MORE_FOR_AN_END);
        }
        std::process::exit(0);
    };
    std::panic::set_hook(Box::new(|_| {}));
    nudge_malloc::share_one_arena();
    if std::thread::Builder::new().stack_size(WATCH_STACK_BYTES).spawn(watch).is_ok() {
        let _ = std::panic::catch_unwind(|| answer_event(global, &values, patience_ms));
    }
    std::process::exit(0);
}

/// Prints the output, if there is any, and confirms it.
fn answer_event(global: &GlobalFlags, values: &SettingValues, patience_ms: u64) -> Option<()> {
    let mut given = Vec::new();
    std::io::stdin().take(MAX_EVENT_BYTES).read_to_end(&mut given).ok()?;
    let event = event::read(&String::from_utf8_lossy(&given))?;
    if let HookMoment::End { transcript } = &event.moment {
        IS_ENDING.store(true, Ordering::Relaxed);
        return capture::note_end(&event, transcript, values).ok();
    }
    let notice = match event.moment {
        HookMoment::Start { begins: true, .. } => build_notice(&event, values),
        _ => None,
    };
    let max_bytes = values.get_count("hook.bytes");
    // The end of the process does not wait for git.
    let hook = RunningSession::open(global).ok().map(|session| HookRun {
        session: session.without_git(),
        event: &event,
        max_bytes,
        patience_ms,
    });
    let (text, tickets) = hook.as_ref().and_then(|hook| hook.build_text().ok()).unwrap_or_default();
    let said = match (text.is_empty(), notice) {
        (true, None) => return None,
        (true, Some(notice)) => json!({"systemMessage": notice}),
        (false, None) => event.answer.build_output(&text),
        (false, Some(notice)) => {
            let mut said = event.answer.build_output(&text);
            said["systemMessage"] = notice.into();
            said
        }
    };
    // A single write prints the text in one piece, or not at all.
    let mut stdout = std::io::stdout();
    stdout.write_all(format!("{said}\n").as_bytes()).and_then(|()| stdout.flush()).ok()?;
    // Lines without a confirmation, because the process ends here, are told once more: better twice than never.
    tickets.iter().try_for_each(|ticket| hook.as_ref()?.confirm(ticket).ok())
}

/// Returns the text for the user when a session begins.
fn build_notice(event: &HookEvent, values: &SettingValues) -> Option<String> {
    let top = event.cwd.clone().or_else(nudge_client::process_cwd).and_then(|cwd| seed::top_of(&cwd));
    let untrusted = top.and_then(|top| committed::mention_untrusted(&top).ok().flatten());
    let all: Vec<_> = capture::announce_capture(event, values).into_iter().chain(untrusted).collect();
    (!all.is_empty()).then(|| all.join("\n"))
}

/// The command lines of the hints that are told.
#[derive(Default, Deserialize)]
struct ToldCommands {
    suggestions: Vec<ToldCommand>,
}

#[derive(Deserialize)]
struct ToldCommand {
    name: String,
    #[serde(default)]
    hint: Option<ToldHint>,
}

#[derive(Deserialize)]
struct ToldHint {
    value: HintValue,
}

impl ToldCommands {
    fn find_line(&self, name: &str) -> Option<&str> {
        let told = self.suggestions.iter().find(|told| told.name == name)?;
        told.hint.as_ref()?.value.command_line()
    }
}

struct HookRun<'a> {
    session: RunningSession,
    event: &'a HookEvent,
    max_bytes: usize,
    patience_ms: u64,
}

impl HookRun<'_> {
    /// Returns the text, and the tickets that confirm that it was shown.
    fn build_text(&self) -> Result<(String, Vec<String>)> {
        let cwd = self.event.cwd.clone().or_else(nudge_client::process_cwd);
        let checkout = AgentCheckout::from_cwd(cwd.as_deref());
        let mut digest = DigestBuilder::new(self.max_bytes, list_of);
        let ended = match &self.event.moment {
            HookMoment::Worked { command } => Some((command, json!({"ok": true}))),
            HookMoment::Failed { command, exit_code: Some(code), .. } => {
                Some((command, json!({"ok": false, "exit_code": code})))
            }
            _ => None,
        };
        if let Some((command, how)) = ended {
            // An outcome that is refused does not keep anything from being shown.
            let _ = self.report_outcome(command, &how);
        }
        if self.max_bytes < MIN_BYTES {
            return Ok(Default::default());
        }
        if matches!(self.event.moment, HookMoment::Start { .. } | HookMoment::Prompt(_) | HookMoment::Failed { .. }) {
            self.refresh_seeds(cwd.as_deref());
        }
        let (event, more) = match &self.event.moment {
            HookMoment::Start { fresh, .. } => (SuggestEvent::Start, json!({"fresh": fresh})),
            HookMoment::Prompt(prompt) => (SuggestEvent::Prompt, json!({"prompt": end_of(prompt)})),
            HookMoment::Failed { command, error, .. } => {
                (SuggestEvent::Failure, json!({"command": command, "error": end_of(error)}))
            }
            HookMoment::Worked { .. } | HookMoment::Used => (SuggestEvent::Tool, json!({})),
            // It was noted already, and no reader is left.
            HookMoment::End { .. } => return Ok(Default::default()),
            // No user is there to read a further turn, and the caller would get it in the place of the answer.
            HookMoment::Stop if std::env::var(ATTENDED).is_ok_and(|attended| attended == "0") => {
                return Ok(Default::default());
            }
            HookMoment::Stop => (SuggestEvent::Stop, json!({})),
        };
        let started = self.add_told(event, &more, &mut digest, &checkout)?;
        // At the session's start no server may have run, or had any hints. A failure here does not lose the suggestions
        // for the prompt.
        if matches!(event, SuggestEvent::Prompt) && self.event.session.is_some() && !started {
            let _ = self.add_told(SuggestEvent::Start, &json!({}), &mut digest, &checkout);
        }
        let tickets = digest.tickets().to_owned();
        Ok((digest.finish(), tickets))
    }

    /// Brings the commands that this clone's files name in step with them, if the user wants that. A failure does not
    /// keep anything from being shown.
    fn refresh_seeds(&self, cwd: Option<&Path>) {
        let call = |method: &str, params: &Map<String, Value>| {
            let answer = self.session.call(method, params)?;
            parsed_as(&answer)
        };
        let Some(top) = cwd.and_then(seed::top_of) else { return };
        let _ = seed::refresh_clone(&top, &call, false);
        if committed::is_there(&top)
            && let Some(repo) = self.session.find_repository(&top)
        {
            let _ = committed::load_trusted(&top, &repo, &call);
        }
    }

    /// Adds the lines to tell at an event; returns true when the client session was told something before.
    fn add_told<L: Fn(&str) -> Option<&'static str>>(
        &self,
        event: SuggestEvent,
        more: &Value,
        digest: &mut DigestBuilder<L>,
        checkout: &AgentCheckout,
    ) -> Result<bool> {
        let answer = self.suggest(event, digest.room_left(), more)?;
        let told: SuggestTold = parsed_as(&answer)?;
        let commands: ToldCommands = parsed_as(&answer).unwrap_or_default();
        let (started, others) = (told.started, OnceCell::new());
        digest.add_suggestions(event.heading(), told, |line, name, paths| {
            let others = others.get_or_init(|| checkout.find_changed());
            with_doubt(line, checkout.find_doubt(name, paths, commands.find_line(name), others).as_deref())
        });
        Ok(started)
    }

    fn suggest(&self, event: SuggestEvent, max_bytes: usize, more: &Value) -> Result<Box<RawValue>> {
        let params = json!({"event": event, "limit": event.max_lines(), "max_bytes": max_bytes});
        let mut all = more.clone();
        // No longer than this process lives: after that no process shows the answer.
        all["confirm_ms"] = self.patience_ms.clamp(1, MAX_CONFIRM_MS).into();
        if let Some(tool) = &self.event.tool {
            all["tool"] = tool.as_str().into();
        }
        if let Some(file) = &self.event.file {
            all["file"] = file.as_str().into();
        }
        match self.call("nudge.suggest", &params, &all, None) {
            // An older PRIMARY knows no tools, and no confirmation: it takes its answers as told.
            Err(error) if error.kind() == ErrorKind::Invalid => self.call("nudge.suggest", &params, more, None),
            answer => answer,
        }
    }

    /// Tells the server that an answer was shown.
    fn confirm(&self, ticket: &str) -> Result<()> {
        self.call::<IgnoredAny>("nudge.told", &json!({"ticket": ticket}), &Value::Null, None).map(drop)
    }

    /// Reports an outcome. The idempotency key makes it count once when hooks are in the settings of both the user and
    /// the project.
    fn report_outcome(&self, command: &str, more: &Value) -> Result<()> {
        let key = self.event.key.as_deref();
        self.call::<IgnoredAny>("nudge.outcome", &json!({"command": command}), more, key).map(drop)
    }

    fn call<T: DeserializeOwned>(&self, method: &str, params: &Value, more: &Value, key: Option<&str>) -> Result<T> {
        let mut all = Map::new();
        for part in [params, more] {
            all.extend(part.as_object().into_iter().flatten().map(|(name, value)| (name.clone(), value.clone())));
        }
        if let Some(session) = &self.event.session {
            all.insert("client_session".into(), session.as_str().into());
        }
        let cwd = self.event.cwd.clone().or_else(nudge_client::process_cwd);
        self.session.call_from(cwd.as_deref(), method, &all, key)
    }
}

/// Returns the method that lists a source's content; an older PRIMARY names no source, for it has the first alone.
fn list_of(source: &str) -> Option<&'static str> {
    let spec = if source.is_empty() { sources::list_sources().first().copied() } else { sources::find_source(source) };
    spec.map(|spec| spec.list)
}

/// Returns the end of a text, at most [`MAX_TEXT_BYTES`].
fn end_of(text: &str) -> &str {
    let mut from = text.len().saturating_sub(MAX_TEXT_BYTES);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    &text[from..]
}

/// Returns the time limit of the hook, from the start of the process to the end of its output.
pub fn patience_ms(values: &SettingValues) -> u64 {
    values.get_count("hook.ms") as u64
}

/// Returns the configured values. The hook has no flags, as clients decide how it is called. An invalid setting does
/// not fail the agent; `nudge config` and `nudge serve` refuse it.
pub fn read_values() -> SettingValues {
    settings::read().unwrap_or_else(|_| settings::load_defaults())
}
