//! Reads texts, lists and structs that come from C, with care.

use std::ffi::{CStr, c_char};
use std::mem::MaybeUninit;

use nudge::{Error, Result};

use crate::quietly;

/// UTF-8 text of `len` bytes, which need not end in NUL and may hold it. `{NULL, 0}` is "not given".
#[repr(C)]
#[derive(Clone, Copy)]
pub struct nudge_str {
    /// The first byte.
    pub ptr: *const c_char,
    /// How many bytes.
    pub len: usize,
}

/// A list of texts; `{NULL, 0}` is the empty one.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct nudge_strs {
    /// The first text.
    pub ptr: *const nudge_str,
    /// How many texts.
    pub len: usize,
}

/// A name with a value.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct nudge_pair {
    /// The name.
    pub name: nudge_str,
    /// The value.
    pub value: nudge_str,
}

/// A list of names with values; `{NULL, 0}` is the empty one.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct nudge_pairs {
    /// The first pair.
    pub ptr: *const nudge_pair,
    /// How many pairs.
    pub len: usize,
}

/// The text of a C string that ends in NUL; "not given" for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_cstr(text: *const c_char) -> nudge_str {
    if text.is_null() {
        return nudge_str::NONE;
    }
    // SAFETY: a string that ends in NUL, as C has them.
    let len = unsafe { CStr::from_ptr(text) }.count_bytes();
    quietly(nudge_str::NONE, || nudge_str { ptr: text, len })
}

impl nudge_str {
    pub(crate) const NONE: Self = Self { ptr: std::ptr::null(), len: 0 };

    /// As long as `text` lives.
    pub(crate) fn of(text: &str) -> Self {
        Self { ptr: text.as_ptr().cast(), len: text.len() }
    }

    /// The text, or that it is not given.
    ///
    /// # Safety
    /// `ptr` is NULL or points to `len` bytes that stay as they are for `'a`.
    pub(crate) unsafe fn given<'a>(self, name: &str) -> Result<Option<&'a str>> {
        // SAFETY: the caller's promise.
        let Some(bytes) = (unsafe { slice(self.ptr.cast::<u8>(), self.len, name) })? else { return Ok(None) };
        if bytes.is_ascii() {
            // SAFETY: ASCII is UTF-8; names mostly are, and are seen to be it in a third of the time.
            return Ok(Some(unsafe { std::str::from_utf8_unchecked(bytes) }));
        }
        let text = std::str::from_utf8(bytes);
        text.map(Some).map_err(|_| invalid(format!("`{name}` is not UTF-8; convert it first.")))
    }

    /// The text.
    ///
    /// # Safety
    /// As [`given`](Self::given).
    pub(crate) unsafe fn text<'a>(self, name: &str) -> Result<&'a str> {
        // SAFETY: the caller's promise.
        unsafe { self.given(name) }?.ok_or_else(|| invalid(format!("`{name}` is NULL; it is required.")))
    }
}

impl nudge_strs {
    /// The texts.
    ///
    /// # Safety
    /// `ptr` is NULL or points to `len` texts, as [`nudge_str::given`].
    pub(crate) unsafe fn texts<'a>(self, name: &str) -> Result<Vec<&'a str>> {
        // SAFETY: the caller's promise.
        let list = unsafe { slice(self.ptr, self.len, name) }?.unwrap_or_default();
        // SAFETY: the caller's promise.
        list.iter().map(|text| unsafe { text.text(name) }).collect()
    }
}

impl nudge_pairs {
    /// The pairs.
    ///
    /// # Safety
    /// `ptr` is NULL or points to `len` pairs, as [`nudge_str::given`].
    pub(crate) unsafe fn pairs<'a>(self, name: &str) -> Result<Vec<(&'a str, Option<&'a str>)>> {
        // SAFETY: the caller's promise.
        let list = unsafe { slice(self.ptr, self.len, name) }?.unwrap_or_default();
        let pair = |pair: &nudge_pair| {
            // SAFETY: the caller's promise.
            let text = unsafe { pair.name.text(name) }?;
            // SAFETY: the caller's promise.
            Ok((text, unsafe { pair.value.given(name) }?))
        };
        list.iter().map(pair).collect()
    }
}

/// A list of C's; `None` for `{NULL, 0}`.
///
/// # Safety
/// `ptr` is NULL or points to `len` elements that stay as they are for `'a`.
unsafe fn slice<'a, T>(ptr: *const T, len: usize, name: &str) -> Result<Option<&'a [T]>> {
    match (ptr.is_null(), len) {
        (true, 0) => return Ok(None),
        (true, _) => return Err(invalid(format!("`{name}` is NULL and yet has a length."))),
        // An empty text or list may be anywhere.
        (false, 0) => return Ok(Some(&[])),
        _ => {}
    }
    if len > isize::MAX as usize / size_of::<T>() {
        return Err(invalid(format!("`{name}` has a length that nothing has.")));
    }
    if !ptr.is_aligned() {
        return Err(not_aligned(name));
    }
    // SAFETY: not NULL, aligned, of a possible length, and the caller's promise.
    Ok(Some(unsafe { std::slice::from_raw_parts(ptr, len) }))
}

/// A struct that C fills in and that later versions may make longer.
///
/// # Safety
/// `repr(C)`, begins with `struct_size: usize`, and may be all zeroes, which says nothing.
pub(crate) unsafe trait GrowingParams: Copy {
    /// The name in messages.
    const NAME: &str;
}

/// No struct of any version is longer: a larger size was never set.
const MOST_BYTES: usize = 4096;

/// Reads such a struct, however old or new the caller is.
///
/// # Safety
/// `given` is NULL or points to `struct_size` bytes.
pub(crate) unsafe fn read<T: GrowingParams>(given: *const T) -> Result<T> {
    let name = T::NAME;
    let out_of_line = given.is_null() || !given.is_aligned();
    if out_of_line {
        return Err(invalid(format!("The {name} is NULL or not aligned.")));
    }
    // SAFETY: begins with its size.
    let size = unsafe { given.cast::<usize>().read() };
    if !(size_of::<T>()..=MOST_BYTES).contains(&size) {
        return Err(invalid(format!("Set `struct_size` of the {name} to its sizeof.")));
    }
    // SAFETY: `size` bytes, as the caller promises.
    let rest = unsafe { std::slice::from_raw_parts(given.cast::<u8>(), size) };
    if rest[size_of::<T>()..].iter().any(|&byte| byte != 0) {
        return Err(invalid(format!("The {name} has fields that this library does not know; upgrade it.")));
    }
    let mut out = MaybeUninit::<T>::uninit();
    // SAFETY: at least as long, checked above, and `T` is plain.
    unsafe { std::ptr::copy_nonoverlapping(given, out.as_mut_ptr(), 1) };
    // SAFETY: just written.
    Ok(unsafe { out.assume_init() })
}

/// A handle of ours that an accessor was given; none where it cannot be one.
///
/// # Safety
/// `handle` is NULL, not aligned, or alive for `'a`.
pub(crate) unsafe fn seen<'a, T>(handle: *const T) -> Option<&'a T> {
    // SAFETY: aligned, and else the caller's promise.
    if handle.is_aligned() { unsafe { handle.as_ref() } } else { None }
}

/// Reads an optional pointer to a handle of ours, or to a number.
///
/// # Safety
/// As [`seen`].
pub(crate) unsafe fn optional<'a, T>(pointer: *const T, name: &str) -> Result<Option<&'a T>> {
    if !pointer.is_aligned() {
        return Err(not_aligned(name));
    }
    // SAFETY: aligned, and else the caller's promise.
    Ok(unsafe { pointer.as_ref() })
}

/// A handle of ours.
///
/// # Safety
/// As [`seen`].
pub(crate) unsafe fn alive<'a, T>(handle: *const T, name: &str) -> Result<&'a T> {
    // SAFETY: the caller's promise.
    unsafe { optional(handle, name) }?.ok_or_else(|| invalid(format!("The {name} is NULL.")))
}

/// Checks an output's place.
pub(crate) fn place<T>(out: *mut T, name: &str) -> Result<*mut T> {
    if out.is_null() {
        return Err(invalid(format!("`{name}` is NULL; it says where the result goes.")));
    }
    optional_place(out, name)
}

/// Checks the place for an output that the caller may leave out.
pub(crate) fn optional_place<T>(out: *mut T, name: &str) -> Result<*mut T> {
    if out.is_aligned() { Ok(out) } else { Err(not_aligned(name)) }
}

fn not_aligned(name: &str) -> Error {
    invalid(format!("`{name}` is not aligned."))
}

/// Hands a handle over.
///
/// # Safety
/// `out` is NULL or a place for one pointer, as [`place`] and [`optional_place`] have seen.
pub(crate) unsafe fn hand_over<T>(out: *mut *mut T, value: T) {
    if !out.is_null() {
        // SAFETY: the caller's promise.
        unsafe { out.write(Box::into_raw(Box::new(value))) };
    }
}

/// Returns a name of an enumeration whose numbers begin with 1; 0 is "not given".
pub(crate) fn named(number: u32, names: &[&'static str], field: &str) -> Result<Option<&'static str>> {
    match number {
        0 => Ok(None),
        _ => names.get(number as usize - 1).copied().map(Some).ok_or_else(|| unknown(field)),
    }
}

/// A yes or no.
pub(crate) fn flag(number: u32, field: &str) -> Result<bool> {
    if number > 1 { Err(unknown(field)) } else { Ok(number == 1) }
}

/// A field without meaning yet.
pub(crate) fn unused(reserved: u32) -> Result<()> {
    if reserved == 0 { Ok(()) } else { Err(unknown("reserved")) }
}

pub(crate) fn unknown(field: &str) -> Error {
    invalid(format!("`{field}` has none of the values that nudge.h lists for it."))
}

pub(crate) fn invalid(message: impl Into<String>) -> Error {
    Error::invalid(message)
}
