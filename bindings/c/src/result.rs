//! Holds the answer of a method as JSON.

use std::sync::OnceLock;

use nudge::{Error, Result};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::input::{alive, invalid, place, seen};
use crate::{answer, nudge_error, nudge_status, nudge_str, quietly, released};

/// The answer of a method: JSON text, whose parts can be read without a JSON library. It is immutable and any thread
/// may read it; free it with `nudge_result_free`.
pub struct nudge_result {
    json: Box<RawValue>,
    read: OnceLock<Value>,
}

impl nudge_result {
    pub(crate) fn new(json: Box<RawValue>) -> Self {
        Self { json, read: OnceLock::new() }
    }

    /// Returns the value at a JSON pointer.
    fn at(&self, pointer: &str) -> Result<&Value> {
        let value = self.read.get_or_init(|| serde_json::from_str(self.json.get()).expect("an answer is JSON"));
        let missing = || Error::not_found("The result has nothing at this pointer; print it whole.");
        value.pointer(pointer).ok_or_else(missing)
    }
}

/// The whole result as compact JSON. Lives as long as the result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_result_json(result: *const nudge_result) -> nudge_str {
    // SAFETY: NULL or alive, as the header says.
    let result = unsafe { seen(result) };
    quietly(nudge_str::NONE, || result.map_or(nudge_str::NONE, |result| nudge_str::of(result.json.get())))
}

/// The string at a JSON pointer (RFC 6901) such as `/hints/0/hint/key`. Lives as long as the result.
///
/// `NUDGE_E_NOT_FOUND` when nothing is there, `NUDGE_E_INVALID` when it is no string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_result_text(
    result: *const nudge_result,
    pointer: nudge_str,
    out: *mut nudge_str,
    error: *mut *mut nudge_error,
) -> nudge_status {
    answer(error, || {
        // SAFETY: as the header says.
        let value = unsafe { part(result, pointer, out) }?;
        let text = value.as_str().ok_or_else(|| invalid("What stands at this pointer is no string."))?;
        // SAFETY: `part` has checked `out`.
        unsafe { out.write(nudge_str::of(text)) };
        Ok(())
    })
}

/// The number at a JSON pointer, as a double.
///
/// `NUDGE_E_NOT_FOUND` when nothing is there, `NUDGE_E_INVALID` when it is no number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_result_number(
    result: *const nudge_result,
    pointer: nudge_str,
    out: *mut f64,
    error: *mut *mut nudge_error,
) -> nudge_status {
    answer(error, || {
        // SAFETY: as the header says.
        let value = unsafe { part(result, pointer, out) }?;
        let number = value.as_f64().ok_or_else(|| invalid("What stands at this pointer is no number."))?;
        // SAFETY: `part` has checked `out`.
        unsafe { out.write(number) };
        Ok(())
    })
}

/// How many elements the array at a JSON pointer has.
///
/// `NUDGE_E_NOT_FOUND` when nothing is there, `NUDGE_E_INVALID` when it is no array.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_result_count(
    result: *const nudge_result,
    pointer: nudge_str,
    out: *mut usize,
    error: *mut *mut nudge_error,
) -> nudge_status {
    answer(error, || {
        // SAFETY: as the header says.
        let value = unsafe { part(result, pointer, out) }?;
        let list = value.as_array().ok_or_else(|| invalid("What stands at this pointer is no array."))?;
        // SAFETY: `part` has checked `out`.
        unsafe { out.write(list.len()) };
        Ok(())
    })
}

/// Frees a result; NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_result_free(result: *mut nudge_result) {
    // SAFETY: NULL or ours and used no more, as the header says.
    unsafe { released(result) }
}

/// Returns the value at a JSON pointer, after it has checked `out`.
///
/// # Safety
///
/// The rules of the entry points apply.
unsafe fn part<'a, T>(result: *const nudge_result, pointer: nudge_str, out: *mut T) -> Result<&'a Value> {
    // SAFETY: the caller's promise.
    let result = unsafe { alive(result, "result") }?;
    // SAFETY: the caller's promise.
    let pointer = unsafe { pointer.text("pointer") }?;
    place(out, "out")?;
    result.at(pointer)
}
