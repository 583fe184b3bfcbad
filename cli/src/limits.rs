//! Adapts the process to the system's limits, or tells the user how to raise them.

#[cfg(unix)]
use nudge::Error;
use nudge::Result;

/// The least number of open files with which a session can serve its callers. The files are databases with their logs,
/// the local channel, ports, and some connections. The number comes from tries with a session of all sources.
#[cfg(unix)]
const MIN_DESCRIPTORS: u64 = 64;

/// The most threads that a session without a long call has at the same time: the threads of the sources, the watcher of
/// folders, stdin, the keeper, and the watchdog.
#[cfg(unix)]
const MIN_THREADS: usize = 16;
/// If the limit of processes is above this number, the threads need no test.
#[cfg(unix)]
const PLENTY_OF_PROCESSES: u64 = 1_024;

/// Makes a write beyond the limit of a file's size (`ulimit -f`) return an error, which the server can report. By
/// default, a signal would end the process.
pub fn survive_file_size_limit() {
    #[cfg(unix)]
    {
        let signal = rustix::process::Signal::XFSZ.as_raw();
        // Any handler is enough. If none can be set, the signal still ends the process.
        let _ = signal_hook::flag::register(signal, std::sync::Arc::default());
    }
}

/// Raises the limit of open files to the needs of a session, if the system allows it.
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

/// Tests whether a session can have the threads that it needs. Tests this only if the system's limit of processes is
/// low.
///
/// # Errors
/// `E_UNAVAILABLE` when a session cannot have the threads.
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

/// Returns true if this process can start as many threads as a session needs at the same time.
#[cfg(unix)]
fn can_start_threads() -> bool {
    let gate = parking_lot::Mutex::new(());
    std::thread::scope(|scope| {
        let _closed = gate.lock();
        let start = || std::thread::Builder::new().spawn_scoped(scope, || drop(gate.lock()));
        (0..MIN_THREADS).all(|_| start().is_ok())
    })
}
