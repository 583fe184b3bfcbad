//! Adapts to the system's limits on this process, or tells the user how to raise them.

#[cfg(unix)]
use nudge::Error;
use nudge::Result;

/// The least open files with which a session serves its callers: databases with their logs, the local channel, ports,
/// and some connections. The number was tried with a session of all sources.
#[cfg(unix)]
const MIN_DESCRIPTORS: u64 = 64;

/// The most threads that a session has at once without a long call: those of the sources, the watcher of folders,
/// stdin, the keeper, the watchdog.
#[cfg(unix)]
const MIN_THREADS: usize = 16;
/// The limit of processes above which the threads need no test.
#[cfg(unix)]
const PLENTY_OF_PROCESSES: u64 = 1_024;

/// Turns a write beyond the limit of a file's size (`ulimit -f`) into an error, which the server can report. By
/// default, the signal for such a write ends the process.
pub fn survive_file_size_limit() {
    #[cfg(unix)]
    {
        let signal = rustix::process::Signal::XFSZ.as_raw();
        // Any handler is enough. If none can be set, the signal ends the process as before.
        let _ = signal_hook::flag::register(signal, std::sync::Arc::default());
    }
}

/// Raises the limit of open files to the needs of a session, as far as the system allows it.
///
/// # Errors
/// `E_UNAVAILABLE` when the limit stays too low for a session.
pub fn require_descriptors() -> Result<()> {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

        let limit = getrlimit(Resource::Nofile);
        if let Some(current) = limit.current.filter(|most| *most < MIN_DESCRIPTORS) {
            let may_be_raised = limit.maximum.is_none_or(|most| most >= MIN_DESCRIPTORS);
            let raised = Rlimit { current: Some(MIN_DESCRIPTORS), maximum: limit.maximum };
            if !may_be_raised || setrlimit(Resource::Nofile, raised).is_err() {
                return Err(Error::unavailable(format!(
                    "A session needs {MIN_DESCRIPTORS} open files at least, and the limit here is {current}; raise it (`ulimit -n`)."
                )));
            }
        }
    }
    Ok(())
}

/// Tests if a session can have the threads that it needs, if the system's limit of a user's processes is low.
///
/// # Errors
/// `E_UNAVAILABLE` when it cannot have them.
pub fn require_threads() -> Result<()> {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, getrlimit};

        let limit = getrlimit(Resource::Nproc).current;
        if let Some(limit) = limit.filter(|limit| *limit <= PLENTY_OF_PROCESSES)
            && !can_start_threads()
        {
            return Err(Error::unavailable(format!(
                "A session needs {MIN_THREADS} threads at least, and this user may have {limit} processes and threads in \
                 all; raise the limit (`ulimit -u`)."
            )));
        }
    }
    Ok(())
}

/// Returns true if this process can have as many threads at once as a session needs.
#[cfg(unix)]
fn can_start_threads() -> bool {
    let gate = parking_lot::Mutex::new(());
    std::thread::scope(|scope| {
        let _closed = gate.lock();
        let start = || std::thread::Builder::new().spawn_scoped(scope, || drop(gate.lock()));
        (0..MIN_THREADS).all(|_| start().is_ok())
    })
}
