//! Ends every entry point: with a status, an output or nothing, never a panic.

use std::panic::{AssertUnwindSafe, catch_unwind};

use nudge::Result;

use crate::error::{NUDGE_OK, nudge_code, nudge_error, nudge_status};

/// Set by a test: every entry point panics.
#[cfg(feature = "test-clock")]
pub(crate) static PANIC: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

/// Runs `body`; `None` when it panicked.
fn caught<T>(body: impl FnOnce() -> T) -> Option<T> {
    let guarded = || {
        #[cfg(feature = "test-clock")]
        assert!(!PANIC.load(std::sync::atomic::Ordering::Relaxed), "as the test asks");
        body()
    };
    catch_unwind(AssertUnwindSafe(guarded))
        // The payload may hold text of the caller, so it is not read. Dropping it may panic too.
        .map_err(|payload| drop(catch_unwind(AssertUnwindSafe(|| drop(payload)))))
        .ok()
}

/// The status of a call; `body` writes its outputs last. A refusal goes to `error`, if there is one.
pub(crate) fn answer(error: *mut *mut nudge_error, body: impl FnOnce() -> Result<()>) -> nudge_status {
    // Nothing can be told through such a pointer, so nothing is done.
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
        // SAFETY: not NULL and aligned, so a place for one pointer, as the header says.
        unsafe { error.write(Box::into_raw(Box::new(refusal))) };
    }
    code
}

/// The value of an accessor; `empty` after a panic.
pub(crate) fn quietly<T>(empty: T, body: impl FnOnce() -> T) -> T {
    caught(body).unwrap_or(empty)
}

/// Frees a handle. NULL is ignored, and so is a pointer that is not aligned.
///
/// # Safety
/// Else `handle` came from `Box::into_raw` and is used no more.
pub(crate) unsafe fn released<T>(handle: *mut T) {
    if !handle.is_null() && handle.is_aligned() {
        // SAFETY: the caller's promise.
        let owned = unsafe { Box::from_raw(handle) };
        quietly((), || drop(owned));
    }
}
