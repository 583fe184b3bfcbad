//! Waits for a session without the interpreter's lock. Ctrl-C is noticed meanwhile, and a caller that waits for another
//! thread may give up.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nudge_client::GiveUp;
use pyo3::prelude::*;

thread_local! {
    /// The error of a signal handler while this thread waited.
    static RAISED: Cell<Option<PyErr>> = const { Cell::new(None) };
    /// Becomes true when the one for whom this thread calls gives up.
    static GIVEN_UP: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// Returns a connection's check while it waits.
pub fn give_up() -> GiveUp {
    Arc::new(|| {
        let given_up = GIVEN_UP.with_borrow(|flag| flag.as_ref().is_some_and(|flag| flag.load(Ordering::Acquire)));
        // Only the main thread notices signals. When the interpreter is ending, the call gives up.
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

/// Works without the interpreter's lock; raises errors of signal handlers that ran meanwhile.
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    let done = py.detach(work);
    match RAISED.take() {
        Some(raised) => Err(raised),
        // A signal that came with the answer.
        None => py.check_signals().map(|()| done),
    }
}

/// Makes calls for a caller that may give them up from another thread.
#[pyclass(frozen, module = "nudge._nudge")]
pub struct Patience(Arc<AtomicBool>);

#[pymethods]
impl Patience {
    #[new]
    fn new() -> Self {
        Self(Arc::default())
    }

    /// Calls a function; its calls of a session are given up after `end`.
    fn call<'py>(&self, function: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let before = GIVEN_UP.replace(Some(Arc::clone(&self.0)));
        let done = function.call0();
        GIVEN_UP.set(before);
        done
    }

    /// Gives up the calls that wait, within 50 ms.
    fn end(&self) {
        self.0.store(true, Ordering::Release);
    }
}
