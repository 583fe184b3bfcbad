//! Reads and checks the texts, lists and structs that C programs pass.

use std::ffi::{CStr, c_char};
use std::mem::MaybeUninit;

use nudge::{Error, Result};

use crate::quietly;

/// UTF-8 text of `len` bytes. It need not end in NUL and may contain NUL. `{NULL, 0}` is "not given".
#[repr(C)]
#[derive(Clone, Copy)]
pub struct nudge_str {
    /// The first byte.
    pub ptr: *const c_char,
    /// The number of bytes.
    pub len: usize,
}

/// A list of texts; `{NULL, 0}` is the empty list.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct nudge_strs {
    /// The first text.
    pub ptr: *const nudge_str,
    /// The number of texts.
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

/// A list of names with values; `{NULL, 0}` is the empty list.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct nudge_pairs {
    /// The first pair.
    pub ptr: *const nudge_pair,
    /// The number of pairs.
    pub len: usize,
}

/// Returns the text of a C string that ends in NUL; "not given" for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_cstr(text: *const c_char) -> nudge_str {
    if text.is_null() {
        return nudge_str::NONE;
    }
    // SAFETY: the caller passes a string that ends in NUL.
    let len = unsafe { CStr::from_ptr(text) }.count_bytes();
    quietly(nudge_str::NONE, || nudge_str { ptr: text, len })
}

impl nudge_str {
    pub(crate) const NONE: Self = Self { ptr: std::ptr::null(), len: 0 };

    /// Makes a text for C. The text is valid as long as `text` lives.
    pub(crate) fn of(text: &str) -> Self {
        Self { ptr: text.as_ptr().cast(), len: text.len() }
    }

    /// Returns the text. Returns `None` when the text is not given.
    ///
    /// # Safety
    ///
    /// `ptr` must be NULL or point to `len` bytes that do not change during `'a`.
    pub(crate) unsafe fn given<'a>(self, name: &str) -> Result<Option<&'a str>> {
        // SAFETY: the caller obeys the rules of this function.
        let Some(bytes) = (unsafe { slice(self.ptr.cast::<u8>(), self.len, name) })? else { return Ok(None) };
        if bytes.is_ascii() {
            // SAFETY: ASCII is UTF-8. Most names are ASCII, and this check takes a third of the time of a check for
            // UTF-8.
            return Ok(Some(unsafe { std::str::from_utf8_unchecked(bytes) }));
        }
        let text = std::str::from_utf8(bytes);
        text.map(Some).map_err(|_| invalid(format!("`{name}` is not UTF-8; convert it first.")))
    }

    /// Returns the text. Refuses a text that is not given.
    ///
    /// # Safety
    ///
    /// The rules of [`given`](Self::given) apply.
    pub(crate) unsafe fn text<'a>(self, name: &str) -> Result<&'a str> {
        // SAFETY: the caller obeys the rules of this function.
        unsafe { self.given(name) }?.ok_or_else(|| invalid(format!("`{name}` is NULL; it is required.")))
    }
}

impl nudge_strs {
    /// Returns the texts of the list.
    ///
    /// # Safety
    ///
    /// `ptr` must be NULL or point to `len` texts that obey [`nudge_str::given`].
    pub(crate) unsafe fn texts<'a>(self, name: &str) -> Result<Vec<&'a str>> {
        // SAFETY: the caller obeys the rules of this function.
        let list = unsafe { slice(self.ptr, self.len, name) }?.unwrap_or_default();
        // SAFETY: the caller obeys the rules of this function.
        list.iter().map(|text| unsafe { text.text(name) }).collect()
    }
}

impl nudge_pairs {
    /// Returns the pairs of the list.
    ///
    /// # Safety
    ///
    /// `ptr` must be NULL or point to `len` pairs whose texts obey [`nudge_str::given`].
    pub(crate) unsafe fn pairs<'a>(self, name: &str) -> Result<Vec<(&'a str, Option<&'a str>)>> {
        // SAFETY: the caller obeys the rules of this function.
        let list = unsafe { slice(self.ptr, self.len, name) }?.unwrap_or_default();
        let pair = |pair: &nudge_pair| {
            // SAFETY: the caller obeys the rules of this function.
            let text = unsafe { pair.name.text(name) }?;
            // SAFETY: the caller obeys the rules of this function.
            Ok((text, unsafe { pair.value.given(name) }?))
        };
        list.iter().map(pair).collect()
    }
}

/// Makes a slice from a C list. Returns `None` for `{NULL, 0}`.
///
/// # Safety
///
/// `ptr` must be NULL or point to `len` elements that do not change during `'a`.
unsafe fn slice<'a, T>(ptr: *const T, len: usize, name: &str) -> Result<Option<&'a [T]>> {
    match (ptr.is_null(), len) {
        (true, 0) => return Ok(None),
        (true, _) => return Err(invalid(format!("`{name}` is NULL and yet has a length."))),
        // An empty text or list may have any pointer.
        (false, 0) => return Ok(Some(&[])),
        _ => {}
    }
    if len > isize::MAX as usize / size_of::<T>() {
        return Err(invalid(format!("`{name}` has a length that nothing has.")));
    }
    if !ptr.is_aligned() {
        return Err(not_aligned(name));
    }
    // SAFETY: the pointer is not NULL and is aligned, and the length is possible. The caller promises the rest.
    Ok(Some(unsafe { std::slice::from_raw_parts(ptr, len) }))
}

/// A struct that a C program fills in. A later version of the library may append fields to it.
///
/// # Safety
///
/// The struct must be `repr(C)` and begin with `struct_size: usize`. A value of only zero bytes must be valid and mean
/// "nothing is given".
pub(crate) unsafe trait GrowingParams: Copy {
    /// The struct's name in error messages.
    const NAME: &str;
}

/// The largest accepted `struct_size`; no version of any struct is longer.
const MOST_BYTES: usize = 4096;

/// Reads a struct of a program that may be newer than this library: additional bytes at its end must be zero.
///
/// # Safety
///
/// `given` must be NULL or point to `struct_size` bytes.
pub(crate) unsafe fn read<T: GrowingParams>(given: *const T) -> Result<T> {
    let name = T::NAME;
    let out_of_line = given.is_null() || !given.is_aligned();
    if out_of_line {
        return Err(invalid(format!("The {name} is NULL or not aligned.")));
    }
    // SAFETY: every struct with this trait begins with its size.
    let size = unsafe { given.cast::<usize>().read() };
    if !(size_of::<T>()..=MOST_BYTES).contains(&size) {
        return Err(invalid(format!("Set `struct_size` of the {name} to its sizeof.")));
    }
    // SAFETY: the caller promises that the struct has `size` bytes.
    let rest = unsafe { std::slice::from_raw_parts(given.cast::<u8>(), size) };
    if rest[size_of::<T>()..].iter().any(|&byte| byte != 0) {
        return Err(invalid(format!("The {name} has fields that this library does not know; upgrade it.")));
    }
    let mut out = MaybeUninit::<T>::uninit();
    // SAFETY: the check above shows that the input is at least as long as `T`, and `T` is plain data.
    unsafe { std::ptr::copy_nonoverlapping(given, out.as_mut_ptr(), 1) };
    // SAFETY: the line above has written the whole value.
    Ok(unsafe { out.assume_init() })
}

/// Borrows a handle. Returns `None` when the pointer is NULL or not aligned.
///
/// # Safety
///
/// `handle` must be NULL, not aligned, or alive for `'a`.
pub(crate) unsafe fn seen<'a, T>(handle: *const T) -> Option<&'a T> {
    // SAFETY: the pointer is aligned; the caller promises the rest.
    if handle.is_aligned() { unsafe { handle.as_ref() } } else { None }
}

/// Borrows a handle or number that the caller may leave out. Refuses a pointer that is not aligned.
///
/// # Safety
///
/// The rules of [`seen`] apply.
pub(crate) unsafe fn optional<'a, T>(pointer: *const T, name: &str) -> Result<Option<&'a T>> {
    if !pointer.is_aligned() {
        return Err(not_aligned(name));
    }
    // SAFETY: the pointer is aligned; the caller promises the rest.
    Ok(unsafe { pointer.as_ref() })
}

/// Borrows a handle that the caller must pass. Refuses NULL and a pointer that is not aligned.
///
/// # Safety
///
/// The rules of [`seen`] apply.
pub(crate) unsafe fn alive<'a, T>(handle: *const T, name: &str) -> Result<&'a T> {
    // SAFETY: the caller obeys the rules of this function.
    unsafe { optional(handle, name) }?.ok_or_else(|| invalid(format!("The {name} is NULL.")))
}

/// Checks the pointer to an output. Refuses NULL and a pointer that is not aligned.
pub(crate) fn place<T>(out: *mut T, name: &str) -> Result<*mut T> {
    if out.is_null() {
        return Err(invalid(format!("`{name}` is NULL; it says where the result goes.")));
    }
    optional_place(out, name)
}

/// Checks the pointer to an output that the caller may leave out with NULL.
pub(crate) fn optional_place<T>(out: *mut T, name: &str) -> Result<*mut T> {
    if out.is_aligned() { Ok(out) } else { Err(not_aligned(name)) }
}

fn not_aligned(name: &str) -> Error {
    invalid(format!("`{name}` is not aligned."))
}

/// Moves `value` into a new handle, and writes the handle to `out`. Does nothing if `out` is NULL.
///
/// # Safety
///
/// [`place`] or [`optional_place`] must have checked `out`.
pub(crate) unsafe fn hand_over<T>(out: *mut *mut T, value: T) {
    if !out.is_null() {
        // SAFETY: the caller obeys the rules of this function.
        unsafe { out.write(Box::into_raw(Box::new(value))) };
    }
}

/// Returns the name for a number of an enumeration. The numbers begin with 1; 0 means "not given".
pub(crate) fn named(number: u32, names: &[&'static str], field: &str) -> Result<Option<&'static str>> {
    match number {
        0 => Ok(None),
        _ => names.get(number as usize - 1).copied().map(Some).ok_or_else(|| unknown(field)),
    }
}

/// Reads a flag, which is 0 or 1.
pub(crate) fn flag(number: u32, field: &str) -> Result<bool> {
    if number > 1 { Err(unknown(field)) } else { Ok(number == 1) }
}

/// Refuses any value except 0 in a field that has no meaning yet.
pub(crate) fn unused(reserved: u32) -> Result<()> {
    if reserved == 0 { Ok(()) } else { Err(unknown("reserved")) }
}

pub(crate) fn unknown(field: &str) -> Error {
    invalid(format!("`{field}` has none of the values that nudge.h lists for it."))
}

pub(crate) fn invalid(message: impl Into<String>) -> Error {
    Error::invalid(message)
}
