//! Ends every entry point with a status and an output, and never with a panic.

use std::panic::{AssertUnwindSafe, catch_unwind};

use nudge::Result;

use crate::error::{NUDGE_OK, nudge_code, nudge_error, nudge_status};

/// True makes every entry point panic; only a test sets it.
#[cfg(feature = "test-clock")]
pub(crate) static PANIC: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

/// Runs `body`. Returns `None` when `body` panicked.
fn caught<T>(body: impl FnOnce() -> T) -> Option<T> {
    let guarded = || {
        #[cfg(feature = "test-clock")]
        assert!(!PANIC.load(std::sync::atomic::Ordering::Relaxed), "as the test asks");
        body()
    };
    catch_unwind(AssertUnwindSafe(guarded))
        // The payload of the panic is not read, because it may contain text of the caller. The drop of the payload may
        // panic again.
        .map_err(|payload| drop(catch_unwind(AssertUnwindSafe(|| drop(payload)))))
        .ok()
}

/// Runs `body` and returns the status of the call. Writes an error to `error`, unless that pointer is NULL. `body` must
/// write its outputs last, after every step that can fail.
pub(crate) fn answer(error: *mut *mut nudge_error, body: impl FnOnce() -> Result<()>) -> nudge_status {
    // Refuses the call without running `body`, because the error cannot be written through a pointer that is not
    // aligned.
    if !error.is_aligned() {
        return nudge_code::NUDGE_E_INVALID as nudge_status;
    }
    let refusal = match caught(body) {
        Some(Ok(())) => return NUDGE_OK,
        Some(Err(refusal)) => nudge_error::new(refusal),
        None => nudge_error::panicked(),
    };
    let code = refusal.code();
    if !error.is_null() {
        // SAFETY: the pointer is not NULL and is aligned, and the header requires that it points to room for one
        // pointer.
        unsafe { error.write(Box::into_raw(Box::new(refusal))) };
    }
    code
}

/// Runs an accessor and returns its value. Returns `empty` after a panic.
pub(crate) fn quietly<T>(empty: T, body: impl FnOnce() -> T) -> T {
    caught(body).unwrap_or(empty)
}

/// Frees a handle. Ignores NULL and a pointer that is not aligned.
///
/// # Safety
///
/// Any other `handle` must come from `Box::into_raw` and must not be used again.
pub(crate) unsafe fn released<T>(handle: *mut T) {
    if !handle.is_null() && handle.is_aligned() {
        // SAFETY: the caller obeys the rules of this function.
        let owned = unsafe { Box::from_raw(handle) };
        quietly((), || drop(owned));
    }
}
