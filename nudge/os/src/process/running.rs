//! Keeps a list of the running programs, and ends them when this process ends.

use std::io;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
#[cfg(unix)]
use tokio::signal::unix::SignalKind;

#[cfg(unix)]
use super::watcher::GroupWatcher;

/// The time between SIGTERM and SIGKILL, in which a program can end by itself.
#[cfg(unix)]
const FAREWELL: Duration = Duration::from_millis(200);
const POLL: Duration = Duration::from_millis(1);

/// The programs that run now, by process id. This process has not waited for any of them, so the system reuses none of
/// the ids.
struct LivePrograms {
    ids: Vec<u32>,
    /// Is true when this process is about to end. No further program is started then.
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

/// A running program. Dropping this value ends the program.
#[derive(Debug)]
pub struct RunningProgram {
    /// The process. A caller may take its streams.
    pub child: Child,
    status: Option<ExitStatus>,
}

/// Starts a program in its own process group.
pub(super) fn start(command: &mut Command, memory_bytes: Option<u64>) -> io::Result<RunningProgram> {
    #[cfg(unix)]
    {
        std::os::unix::process::CommandExt::process_group(command, 0);
        watch_signals();
    }
    // The lock is held during the start, so that the thread that ends this process finds every program in the list.
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

    // The limit of this process may be lower than the given one. The program must not exceed it.
    let own = getrlimit(Resource::Data).maximum;
    let limit = Some(own.map_or(bytes, |own| own.min(bytes)));
    // This fails if the program has already ended, which does not matter.
    let _ = prlimit(Some(Pid::from_child(child)), Resource::Data, Rlimit { current: limit, maximum: limit });
}

#[cfg(not(target_os = "linux"))]
fn limit_memory(_: &Child, _: u64) {}

impl RunningProgram {
    /// Returns the exit status of the program; `None` while it runs.
    ///
    /// # Errors
    /// The system's error.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.status.is_none() {
            // The list is locked, because another process may get the id after the wait.
            let mut live = LIVE.lock();
            self.status = self.child.try_wait()?;
            if self.status.is_some() {
                live.remove_group(self.child.id());
            }
        }
        Ok(self.status)
    }

    /// Waits for the end of the program. `None` if it still runs at `deadline`.
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

/// Ends all running programs, because this process is about to end. No program can be started after this call.
pub fn end_all() {
    let mut live = LIVE.lock();
    live.is_ending = true;
    end_groups(&live.ids);
}

/// Ends process groups: first with SIGTERM, so that a program can end its children, then with SIGKILL. The caller must
/// wait for the leaders of the groups.
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

/// The signals that end this process, and whether this module handles them.
#[cfg(unix)]
struct EndSignals {
    are_watched: bool,
    /// The signals that this module does not handle, because another part of the process does.
    of_others: Vec<std::ffi::c_int>,
}

/// Leaves these signals to another part of this process, which may end the process.
#[cfg(unix)]
pub fn leave_signals(kinds: &[SignalKind]) {
    LIVE.lock().signals.of_others.extend(kinds.iter().map(SignalKind::as_raw_value));
}

/// Ends the programs when a signal ends this process. The programs have their own groups, so only this process receives
/// the signal. If the signals cannot be handled, programs are started anyway.
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
                    // The lock is still held here, so that no caller takes the end of a killed program for an answer.
                    // The exit code is the one that a shell would return.
                    std::process::exit(128 + number);
                }
            }
        });
    }
    std::thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
}
