//! `nudge hook`: one command for every event of every client.
//!
//! An agent waits for the hook, so the hook never fails and never blocks. The exit code is always 0. It prints
//! nothing when there is nothing to tell, or when the answer would take too long.

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

/// The most bytes of an event that are read; clients send less.
const MAX_EVENT_BYTES: u64 = 8 << 20;
/// The stack size of the watching thread; the system rounds it up if it needs more.
const WATCH_STACK_BYTES: usize = 64 << 10;
/// The additional time at the end of a session. No user waits for a prompt then, and an end that is not recorded is
/// lost.
const MORE_FOR_AN_END: Duration = Duration::from_secs(1);
static IS_ENDING: AtomicBool = AtomicBool::new(false);
/// Time in which a late hook notes that it is late; a disk that hangs does not keep the client longer.
const NOTE_PATIENCE: Duration = Duration::from_millis(50);
/// A variable of Claude Code; 0 means that a program reads the answer, as with `claude -p`.
const ATTENDED: &str = "CLAUDE_CODE_SESSION_ATTENDED";

/// Reads an event from stdin and answers it.
pub fn run_hook(global: &GlobalFlags) -> ! {
    let begun = Instant::now();
    let values = read_values();
    let timer = Arc::new(HookTimer::new(begun, global, &values));
    let late = Arc::clone(&timer);
    // The watching thread ends the process when a read or a call hangs. It does no other work: starting a second
    // thread for the work would cost as much as the calls.
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

/// The time and the time limit of this hook, which are noted once.
struct HookTimer {
    begun: Instant,
    /// The milliseconds from the start of the process to the end of its output.
    limit_ms: AtomicU64,
    /// The runtime directory that the flags name.
    runtime: Option<PathBuf>,
    /// True when the setting gives the limit, and not the last hooks.
    is_fixed: bool,
    /// Absent until a session's log is open.
    log: OnceLock<HookLog>,
    is_noted: AtomicBool,
}

impl HookTimer {
    fn new(begun: Instant, global: &GlobalFlags, values: &SettingValues) -> Self {
        Self {
            begun,
            // Until the last hooks are read. A folder that hangs delays the client no longer than a late hook may.
            limit_ms: AtomicU64::new(max_patience_ms(values)),
            runtime: global.runtime_dir.clone(),
            is_fixed: values.get_origin("hook.ms") != ValueOrigin::Default,
            log: OnceLock::new(),
            is_noted: AtomicBool::new(false),
        }
    }

    fn limit_ms(&self) -> u64 {
        self.limit_ms.load(Ordering::Relaxed)
    }

    /// Opens the log of the session, if a server runs there, and takes the limit from the last hooks.
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

    /// Waits until the limit is over, which may become less meanwhile.
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

    /// Notes that the hook was over its limit, on a thread of its own: the write may hang.
    fn note_late(self: Arc<Self>) {
        let (sender, noted) = channel();
        let write = move || {
            let limit = Duration::from_millis(self.limit_ms());
            // A machine can be so busy that the limit is over before the log is open.
            if self.log.get().is_none() {
                self.open_log();
            }
            self.note_hook(limit, true);
            // The receiver may have given up.
            let _ = sender.send(());
        };
        if std::thread::Builder::new().stack_size(WATCH_STACK_BYTES).spawn(write).is_ok() {
            let _ = noted.recv_timeout(NOTE_PATIENCE);
        }
    }

    fn note_hook(&self, took: Duration, is_late: bool) {
        if let Some(log) = self.log.get()
            && !self.is_noted.swap(true, Ordering::Relaxed)
        {
            // A hook has no one to complain to.
            let _ = log.note_hook(took, is_late);
        }
    }
}

/// Prints the output, if any, and confirms it.
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
            note_answered();
            return None;
        }
        None => json!({}),
        Some(text) => event.answer.build_output(text),
    };
    if let Some(notice) = notice {
        said["systemMessage"] = notice.into();
    }
    // A single write prints the whole text or nothing.
    let mut stdout = std::io::stdout();
    stdout.write_all(format!("{said}\n").as_bytes()).and_then(|()| stdout.flush()).ok()?;
    note_answered();
    // If the process ends here without a confirmation, the lines are told once more, which is better than never.
    asked?.confirm()
}

/// Returns the text for the user when a session begins.
fn build_notice(event: &HookEvent, values: &SettingValues) -> Option<String> {
    let top = event.cwd.clone().or_else(nudge_client::process_cwd).and_then(|cwd| seed::top_of(&cwd));
    let untrusted = top.and_then(|top| committed::mention_untrusted(&top).ok().flatten());
    let all: Vec<_> = capture::announce_capture(event, values).into_iter().chain(untrusted).collect();
    (!all.is_empty()).then(|| all.join("\n"))
}

/// The server's answer to an event, and the connection for confirming it.
struct HookRun {
    session: RunningSession,
    answer: EventAnswer,
    client_session: Option<String>,
}

impl HookRun {
    /// Calls the server. Returns `None` when no server runs, and at the end of a turn that no user watches.
    fn ask(global: &GlobalFlags, event: &HookEvent, max_bytes: usize, patience_ms: u64) -> Option<Self> {
        let HookMoment::Ask(params) = &event.moment else { return None };
        // No user would read a further turn, and the calling program would get it instead of the answer.
        if params.event == SuggestEvent::Stop && std::env::var(ATTENDED).is_ok_and(|attended| attended == "0") {
            return None;
        }
        // The server must not wait longer than this process lives.
        let confirm_ms = usize::try_from(patience_ms).unwrap_or(MAX_CONFIRM_MS).clamp(1, MAX_CONFIRM_MS);
        let max_bytes = Limit::new(max_bytes).expect("any number of bytes is in the range");
        let params = EventParams { max_bytes, confirm_ms: BoundedNumber::new(confirm_ms), ..(**params).clone() };
        let Ok(Value::Object(params)) = serde_json::to_value(params) else { return None };
        // The process must be able to end without waiting for git.
        let session = RunningSession::open(global).ok()?.without_git();
        let cwd = event.cwd.clone().or_else(nudge_client::process_cwd);
        // With the key, an outcome counts once even if both the user's and the project's settings have hooks.
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

/// Returns the longest time limit that a hook can have: that of the setting, or else the longest that the last hooks of
/// the session may call for.
pub fn max_patience_ms(values: &SettingValues) -> u64 {
    match values.get_origin("hook.ms") {
        ValueOrigin::Default => MAX_LIMIT_MS,
        _ => values.get_count("hook.ms") as u64,
    }
}

/// Returns the configured values. The hook has no flags, because clients decide how they call it. An invalid setting
/// does not stop the agent; `nudge config` and `nudge serve` refuse it.
pub fn read_values() -> SettingValues {
    settings::read().unwrap_or_else(|_| settings::load_defaults())
}
