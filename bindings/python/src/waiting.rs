//! Waits for a session without the interpreter's lock. The wait also ends at Ctrl-C, and when the caller on another
//! thread no longer waits.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nudge_client::GiveUp;
use pyo3::prelude::*;

thread_local! {
    /// The error that a signal handler raised while this thread waited.
    static RAISED: Cell<Option<PyErr>> = const { Cell::new(None) };
    /// The flag of the call on this thread; true when its caller no longer waits.
    static GIVEN_UP: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// Returns the check that a connection makes while it waits. The check returns true to give the call up.
pub fn give_up() -> GiveUp {
    Arc::new(|| {
        let given_up = GIVEN_UP.with_borrow(|flag| flag.as_ref().is_some_and(|flag| flag.load(Ordering::Acquire)));
        // Only the main thread gets signals. The call is also given up when the interpreter ends.
        given_up
            || Python::try_attach(|py| match py.check_signals() {
                Ok(()) => false,
                Err(raised) => {
                    RAISED.set(Some(raised));
                    true
                }
            })
            .unwrap_or(true)
    })
}

/// Runs `work` without the interpreter's lock. Then raises the error of a signal handler that ran during the work.
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    let done = py.detach(work);
    match RAISED.take() {
        Some(raised) => Err(raised),
        // Reports a signal that came together with the answer.
        None => py.check_signals().map(|()| done),
    }
}

/// Makes calls for a caller on another thread, which may give the calls up.
#[pyclass(frozen, module = "nudge._nudge")]
pub struct Patience(Arc<AtomicBool>);

#[pymethods]
impl Patience {
    #[new]
    fn new() -> Self {
        Self(Arc::default())
    }

    /// Calls a function. After `end`, its calls of a session are given up.
    fn call<'py>(&self, function: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let before = GIVEN_UP.replace(Some(Arc::clone(&self.0)));
        let done = function.call0();
        GIVEN_UP.set(before);
        done
    }

    /// Gives up the waiting calls within 50 ms.
    fn end(&self) {
        self.0.store(true, Ordering::Release);
    }
}
