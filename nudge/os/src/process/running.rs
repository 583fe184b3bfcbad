//! Tracks the running programs and ends them with this process.

use std::io;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

#[cfg(unix)]
use parking_lot::Mutex;
use tokio::signal::unix::SignalKind;

#[cfg(unix)]
use super::watcher::GroupWatcher;

/// Time that a program has to end by itself once it is told to, before it is killed.
#[cfg(unix)]
const FAREWELL: Duration = Duration::from_millis(200);
const POLL: Duration = Duration::from_millis(1);

/// The programs that run now, by process id. None has been waited for, so its id is not reused.
struct LivePrograms {
    ids: Vec<u32>,
    /// Is true at the end: nothing more is started.
    is_ending: bool,
    #[cfg(unix)]
    watcher: GroupWatcher,
    #[cfg(unix)]
    signals: EndSignals,
}

static LIVE: Mutex<LivePrograms> = Mutex::new(LivePrograms {
    ids: Vec::new(),
    is_ending: false,
    #[cfg(unix)]
    watcher: GroupWatcher::new(),
    #[cfg(unix)]
    signals: EndSignals { are_watched: false, of_others: Vec::new() },
});

impl LivePrograms {
    fn add_group(&mut self, id: u32) {
        self.ids.push(id);
        #[cfg(unix)]
        self.watcher.add_group(id, &self.ids);
    }

    fn remove_group(&mut self, id: u32) {
        self.ids.retain(|known| *known != id);
        #[cfg(unix)]
        self.watcher.remove_group(id);
    }
}

/// A program that runs. It is ended when this is dropped.
#[derive(Debug)]
pub struct RunningProgram {
    /// The process; its streams may be taken.
    pub child: Child,
    status: Option<ExitStatus>,
}

/// Starts a program in a process group of its own.
pub(super) fn start(command: &mut Command, memory_bytes: Option<u64>) -> io::Result<RunningProgram> {
    #[cfg(unix)]
    {
        std::os::unix::process::CommandExt::process_group(command, 0);
        watch_signals();
    }
    // Locked while it starts, so that the thread that ends this process finds it.
    let mut live = LIVE.lock();
    if live.is_ending {
        return Err(io::ErrorKind::Interrupted.into());
    }
    #[cfg(unix)]
    live.watcher.begin();
    let child = command.spawn()?;
    live.add_group(child.id());
    if let Some(bytes) = memory_bytes {
        limit_memory(&child, bytes);
    }
    Ok(RunningProgram { child, status: None })
}

#[cfg(target_os = "linux")]
fn limit_memory(child: &Child, bytes: u64) {
    use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

    // A limit that this process itself has may be lower, and must not be raised.
    let own = getrlimit(Resource::Data).maximum;
    let limit = Some(own.map_or(bytes, |own| own.min(bytes)));
    // A program that has ended already needs no limit.
    let _ = prlimit(Some(Pid::from_child(child)), Resource::Data, Rlimit { current: limit, maximum: limit });
}

#[cfg(not(target_os = "linux"))]
fn limit_memory(_: &Child, _: u64) {}

impl RunningProgram {
    /// Returns how the program has ended; `None` while it runs.
    ///
    /// # Errors
    /// The system's error.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.status.is_none() {
            // Locked: after the wait, its id may be another's.
            let mut live = LIVE.lock();
            self.status = self.child.try_wait()?;
            if self.status.is_some() {
                live.remove_group(self.child.id());
            }
        }
        Ok(self.status)
    }

    /// Waits for the program's end; `None` when it still runs at `deadline`.
    ///
    /// # Errors
    /// The system's error.
    pub fn wait_until(&mut self, deadline: Instant) -> io::Result<Option<ExitStatus>> {
        loop {
            match self.try_wait() {
                Ok(None) if Instant::now() < deadline => std::thread::sleep(POLL),
                ended => return ended,
            }
        }
    }

    /// Ends the program and its children.
    pub fn end(&mut self) {
        if self.status.is_some() {
            return;
        }
        end_groups(&[self.child.id()]);
        let _ = self.child.kill();
        let mut live = LIVE.lock();
        self.status = self.child.wait().ok();
        live.remove_group(self.child.id());
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        self.end();
    }
}

/// Ends all programs that run, as this process is about to end. None can be started from now on.
pub fn end_all() {
    let mut live = LIVE.lock();
    live.is_ending = true;
    end_groups(&live.ids);
}

/// Ends process groups: asks first, so that a program can end its children, then kills. The leaders must be waited for.
#[cfg(unix)]
fn end_groups(ids: &[u32]) {
    use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

    let groups: Vec<_> = ids.iter().filter_map(|id| Pid::from_raw(i32::try_from(*id).ok()?)).collect();
    let send = |signal| {
        for group in &groups {
            let _ = kill_process_group(*group, signal);
        }
    };
    let looking = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let runs = |group: &Pid| matches!(waitid(WaitId::Pid(*group), looking), Ok(None));
    send(Signal::TERM);
    let deadline = Instant::now() + FAREWELL;
    while groups.iter().any(runs) && Instant::now() < deadline {
        std::thread::sleep(POLL);
    }
    send(Signal::KILL);
}

#[cfg(not(unix))]
fn end_groups(_: &[u32]) {}

/// The signals that end this process, and their listeners.
#[cfg(unix)]
struct EndSignals {
    are_watched: bool,
    /// Signals that are ignored here, as others handle them.
    of_others: Vec<std::ffi::c_int>,
}

/// Leaves these signals to another part of this process, which may end it.
#[cfg(unix)]
pub fn leave_signals(kinds: &[SignalKind]) {
    LIVE.lock().signals.of_others.extend(kinds.iter().map(SignalKind::as_raw_value));
}

/// Passes end signals on to the programs: as they have groups of their own, only this process gets them. If listening
/// fails, the programs are started all the same.
#[cfg(unix)]
fn watch_signals() {
    use tokio::signal::unix::signal;

    if std::mem::replace(&mut LIVE.lock().signals.are_watched, true) {
        return;
    }
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
    for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
        let within = runtime.enter();
        let Ok(mut signals) = signal(kind) else { continue };
        drop(within);
        let number = kind.as_raw_value();
        runtime.spawn(async move {
            while signals.recv().await.is_some() {
                let live = LIVE.lock();
                if !live.signals.of_others.contains(&number) {
                    end_groups(&live.ids);
                    // Still locked, so no caller takes a killed program's end for an answer. The code is a shell's.
                    std::process::exit(128 + number);
                }
            }
        });
    }
    std::thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
}
