//! The answer of a method as JSON.

use std::sync::OnceLock;

use nudge::{Error, Result};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::input::{alive, invalid, place, seen};
use crate::{answer, nudge_error, nudge_status, nudge_str, quietly, released};

/// The answer of a method: JSON text. A caller can read its parts without a JSON library. It never changes, and any
/// thread may read it. Free it with `nudge_result_free`.
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

/// Returns the whole result as compact JSON. The text lives as long as the result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_result_json(result: *const nudge_result) -> nudge_str {
    // SAFETY: the header requires NULL or a living handle.
    let result = unsafe { seen(result) };
    quietly(nudge_str::NONE, || result.map_or(nudge_str::NONE, |result| nudge_str::of(result.json.get())))
}

/// Reads the string at a JSON pointer (RFC 6901) such as `/hints/0/hint/key`. The text lives as long as the result.
///
/// Fails with `NUDGE_E_NOT_FOUND` when there is no value, and with `NUDGE_E_INVALID` when the value is no string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_result_text(
    result: *const nudge_result,
    pointer: nudge_str,
    out: *mut nudge_str,
    error: *mut *mut nudge_error,
) -> nudge_status {
    answer(error, || {
        // SAFETY: the header requires valid arguments.
        let value = unsafe { part(result, pointer, out) }?;
        let text = value.as_str().ok_or_else(|| invalid("What stands at this pointer is no string."))?;
        // SAFETY: `part` has checked `out`.
        unsafe { out.write(nudge_str::of(text)) };
        Ok(())
    })
}

/// Reads the number at a JSON pointer as a double.
///
/// Fails with `NUDGE_E_NOT_FOUND` when there is no value, and with `NUDGE_E_INVALID` when the value is no number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_result_number(
    result: *const nudge_result,
    pointer: nudge_str,
    out: *mut f64,
    error: *mut *mut nudge_error,
) -> nudge_status {
    answer(error, || {
        // SAFETY: the header requires valid arguments.
        let value = unsafe { part(result, pointer, out) }?;
        let number = value.as_f64().ok_or_else(|| invalid("What stands at this pointer is no number."))?;
        // SAFETY: `part` has checked `out`.
        unsafe { out.write(number) };
        Ok(())
    })
}

/// Reads the number of elements of the array at a JSON pointer.
///
/// Fails with `NUDGE_E_NOT_FOUND` when there is no value, and with `NUDGE_E_INVALID` when the value is no array.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_result_count(
    result: *const nudge_result,
    pointer: nudge_str,
    out: *mut usize,
    error: *mut *mut nudge_error,
) -> nudge_status {
    answer(error, || {
        // SAFETY: the header requires valid arguments.
        let value = unsafe { part(result, pointer, out) }?;
        let list = value.as_array().ok_or_else(|| invalid("What stands at this pointer is no array."))?;
        // SAFETY: `part` has checked `out`.
        unsafe { out.write(list.len()) };
        Ok(())
    })
}

/// Frees a result. Ignores NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_result_free(result: *mut nudge_result) {
    // SAFETY: the header requires NULL, or a handle of this library that the caller uses no more.
    unsafe { released(result) }
}

/// Checks `out`, then returns the value at a JSON pointer.
///
/// # Safety
///
/// The rules of the entry points apply to all arguments.
unsafe fn part<'a, T>(result: *const nudge_result, pointer: nudge_str, out: *mut T) -> Result<&'a Value> {
    // SAFETY: the caller obeys the rules of this function.
    let result = unsafe { alive(result, "result") }?;
    // SAFETY: the caller obeys the rules of this function.
    let pointer = unsafe { pointer.text("pointer") }?;
    place(out, "out")?;
    result.at(pointer)
}
