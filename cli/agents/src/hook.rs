//! `nudge hook`: a single command for every event of every client.
//!
//! An agent waits for the hook, so the hook never fails and never blocks. The exit code is always 0. The hook prints
//! nothing when there is nothing to tell, or when the answer takes too long.

use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use nudge_app::settings;
use nudge_app::{committed, seed};
use nudge_client::{HookLog, MAX_LIMIT_MS, MIN_LIMIT_MS, RecentHooks, RuntimeDir};
use nudge_core::limit::{BoundedNumber, Limit};
use nudge_core::settings::{SettingValues, ValueOrigin};
use nudge_core::suggest::{MAX_CONFIRM_MS, SuggestEvent};
use nudge_server::session::event::{EVENT, EventAnswer, EventParams};
use serde_json::{Value, json};

use super::capture;
use super::event::{self, HookEvent, HookMoment};
use crate::args::GlobalFlags;
use crate::running::RunningSession;

/// The most bytes of an event that are read; the events of clients are shorter.
const MAX_EVENT_BYTES: u64 = 8 << 20;
/// The stack size of the watching thread. The system may round it up.
const WATCH_STACK_BYTES: usize = 64 << 10;
/// The additional time at the end of a session. No user waits at that moment, and if the hook does not record the end,
/// the capture is lost.
const MORE_FOR_AN_END: Duration = Duration::from_secs(1);
static IS_ENDING: AtomicBool = AtomicBool::new(false);
/// The time within which a late hook notes that it is late. If the disk does not answer, the client waits no longer.
const NOTE_PATIENCE: Duration = Duration::from_millis(50);
/// A variable of Claude Code. The value 0 means that a program and not a user reads the answer, as with `claude -p`.
const ATTENDED: &str = "CLAUDE_CODE_SESSION_ATTENDED";

/// Reads an event from stdin, answers it, and ends the process.
pub fn run_hook(global: &GlobalFlags) -> ! {
    let begun = Instant::now();
    let values = read_values();
    let timer = Arc::new(HookTimer::new(begun, global, &values));
    let late = Arc::clone(&timer);
    // The watching thread ends the process when a read or a call hangs. The main thread does the work, because a second
    // thread for it would cost as much time as the calls.
    let watch = move || {
        late.wait_until_over();
        if IS_ENDING.load(Ordering::Relaxed) {
            std::thread::sleep(MORE_FOR_AN_END);
        } else {
            late.note_late();
        }
        std::process::exit(0);
    };
    std::panic::set_hook(Box::new(|_| {}));
    nudge_malloc::share_one_arena();
    if std::thread::Builder::new().stack_size(WATCH_STACK_BYTES).spawn(watch).is_ok() {
        let _ = std::panic::catch_unwind(|| {
            timer.open_log();
            answer_event(global, &values, &timer)
        });
    }
    std::process::exit(0);
}

/// The start and the time limit of this hook. The hook notes its duration once, in time or late.
struct HookTimer {
    begun: Instant,
    /// The most milliseconds from the start of the process to the end of its output.
    limit_ms: AtomicU64,
    /// The runtime directory that the flags name.
    runtime: Option<PathBuf>,
    /// True when the setting gives the limit; false when the durations of earlier hooks give it.
    is_fixed: bool,
    /// The log of hooks, set when a session's log is open.
    log: OnceLock<HookLog>,
    /// True after the hook began to print, or counted as late: never both.
    is_decided: AtomicBool,
}

impl HookTimer {
    fn new(begun: Instant, global: &GlobalFlags, values: &SettingValues) -> Self {
        Self {
            begun,
            // This limit applies until the log of earlier hooks is read. If that read hangs, the client still waits
            // only this long.
            limit_ms: AtomicU64::new(max_patience_ms(values)),
            runtime: global.runtime_dir.clone(),
            is_fixed: values.get_origin("hook.ms") != ValueOrigin::Default,
            log: OnceLock::new(),
            is_decided: AtomicBool::new(false),
        }
    }

    fn limit_ms(&self) -> u64 {
        self.limit_ms.load(Ordering::Relaxed)
    }

    /// Opens the log of the session if a server runs there. Also computes the limit from the earlier hooks.
    fn open_log(&self) {
        let runtime = RuntimeDir::open(self.runtime.as_deref()).ok();
        let runtime = runtime.filter(|runtime| runtime.read_server_file().is_some());
        if !self.is_fixed {
            let recent = runtime.as_ref().map(RecentHooks::read).unwrap_or_default();
            self.limit_ms.store(recent.choose_limit_ms(), Ordering::Relaxed);
        }
        if let Some(log) = runtime.and_then(|runtime| HookLog::open(&runtime).ok()) {
            let _ = self.log.set(log);
        }
    }

    /// Waits until the limit is over. The limit may become shorter during the wait.
    fn wait_until_over(&self) {
        loop {
            let limit = Duration::from_millis(self.limit_ms());
            let left = limit.saturating_sub(self.begun.elapsed());
            if left.is_zero() {
                return;
            }
            std::thread::sleep(left.min(Duration::from_millis(MIN_LIMIT_MS)));
        }
    }

    /// Notes that the hook was in time.
    fn note_in_time(&self) {
        self.note_hook(self.begun.elapsed(), false);
    }

    /// Decides whether the hook prints or counts as late. Returns true for the first caller only.
    fn decide_end(&self) -> bool {
        !self.is_decided.swap(true, Ordering::Relaxed)
    }

    /// Decides that the hook prints. A hook that counts as late already waits for its end.
    fn end_in_time(&self) {
        while !self.decide_end() {
            std::thread::sleep(NOTE_PATIENCE);
        }
    }

    /// Notes that the hook exceeded its limit. Another thread does this, because the write may hang. A hook that prints
    /// is not late, and gets the time to finish.
    fn note_late(self: Arc<Self>) {
        if !self.decide_end() {
            std::thread::sleep(NOTE_PATIENCE);
            return;
        }
        let (sender, noted) = channel();
        let write = move || {
            let limit = Duration::from_millis(self.limit_ms());
            // On a very busy machine, the limit may be over before the log is open.
            if self.log.get().is_none() {
                self.open_log();
            }
            self.note_hook(limit, true);
            // The receiver may have stopped waiting.
            let _ = sender.send(());
        };
        if std::thread::Builder::new().stack_size(WATCH_STACK_BYTES).spawn(write).is_ok() {
            let _ = noted.recv_timeout(NOTE_PATIENCE);
        }
    }

    fn note_hook(&self, took: Duration, is_late: bool) {
        if let Some(log) = self.log.get() {
            // A hook cannot report an error to anyone.
            let _ = log.note_hook(took, is_late);
        }
    }
}

/// Answers the event: prints the output, if there is any, and confirms it.
fn answer_event(global: &GlobalFlags, values: &SettingValues, timer: &HookTimer) -> Option<()> {
    let mut given = Vec::new();
    std::io::stdin().take(MAX_EVENT_BYTES).read_to_end(&mut given).ok()?;
    let event = event::read(&String::from_utf8_lossy(&given))?;
    if let HookMoment::End(transcript) = &event.moment {
        IS_ENDING.store(true, Ordering::Relaxed);
        return capture::note_end(&event, transcript, values).ok();
    }
    let notice = event.begins.then(|| build_notice(&event, values)).flatten();
    let asked = HookRun::ask(global, &event, values.get_count("hook.bytes"), timer.limit_ms());
    let text = asked.as_ref().map(|asked| asked.answer.text.as_str()).filter(|text| !text.is_empty());
    let note_answered = || {
        if asked.is_some() {
            timer.note_in_time();
        }
    };
    let mut said = match text {
        None if notice.is_none() => {
            timer.end_in_time();
            note_answered();
            return None;
        }
        None => json!({}),
        Some(text) => event.answer.build_output(text),
    };
    if let Some(notice) = notice {
        said["systemMessage"] = notice.into();
    }
    timer.end_in_time();
    // A single write prints either the whole text or nothing.
    let mut stdout = std::io::stdout();
    stdout.write_all(format!("{said}\n").as_bytes()).and_then(|()| stdout.flush()).ok()?;
    note_answered();
    // If the process ends here without a confirmation, the server tells the lines once more, which is better than
    // never.
    asked?.confirm()
}

/// Returns the text for the user at the start of a session, if there is any.
fn build_notice(event: &HookEvent, values: &SettingValues) -> Option<String> {
    let top = event.cwd.clone().or_else(nudge_client::process_cwd).and_then(|cwd| seed::top_of(&cwd));
    let untrusted = top.and_then(|top| committed::mention_untrusted(&top).ok().flatten());
    let all: Vec<_> = capture::announce_capture(event, values).into_iter().chain(untrusted).collect();
    (!all.is_empty()).then(|| all.join("\n"))
}

/// The server's answer to an event, and the connection over which the hook confirms it.
struct HookRun {
    session: RunningSession,
    answer: EventAnswer,
    client_session: Option<String>,
}

impl HookRun {
    /// Calls the server. Returns `None` when no server runs, and at the end of a turn that no user watches.
    fn ask(global: &GlobalFlags, event: &HookEvent, max_bytes: usize, patience_ms: u64) -> Option<Self> {
        let HookMoment::Ask(params) = &event.moment else { return None };
        // No user would read another turn. The calling program would get its text in place of the real answer.
        if params.event == SuggestEvent::Stop && std::env::var(ATTENDED).is_ok_and(|attended| attended == "0") {
            return None;
        }
        // The server must not wait longer than this process lives.
        let confirm_ms = usize::try_from(patience_ms).unwrap_or(MAX_CONFIRM_MS).clamp(1, MAX_CONFIRM_MS);
        let max_bytes = Limit::new(max_bytes).expect("any number of bytes is in the range");
        let params = EventParams { max_bytes, confirm_ms: BoundedNumber::new(confirm_ms), ..(**params).clone() };
        let Ok(Value::Object(params)) = serde_json::to_value(params) else { return None };
        // The process must be able to end without a wait for git.
        let session = RunningSession::open(global).ok()?.without_git();
        let cwd = event.cwd.clone().or_else(nudge_client::process_cwd);
        // With the key, an outcome counts once, even if both the user's and the project's settings have hooks.
        let key = event.key.as_deref();
        let answer = session.call_from(cwd.as_deref(), EVENT, &params, key).ok()?;
        Some(Self { session, answer, client_session: event.session.clone() })
    }

    /// Confirms to the server that the answer was shown.
    fn confirm(&self) -> Option<()> {
        let confirmed = json!({"client_session": self.client_session, "ticket": self.answer.ticket.as_ref()?});
        self.session.call("nudge.told", confirmed.as_object()?).ok().map(drop)
    }
}

/// Returns the longest time limit that a hook can have, in milliseconds: the limit of the setting, or the longest limit
/// that Nudge computes from earlier hooks.
pub fn max_patience_ms(values: &SettingValues) -> u64 {
    match values.get_origin("hook.ms") {
        ValueOrigin::Default => MAX_LIMIT_MS,
        _ => values.get_count("hook.ms") as u64,
    }
}

/// Returns the values of the settings. The hook has no flags, because the client decides how to call it. After an error
/// in a setting, the hook uses defaults, so that the agent can work; `nudge config` and `nudge serve` report the error.
pub fn read_values() -> SettingValues {
    settings::read().unwrap_or_else(|_| settings::load_defaults())
}
