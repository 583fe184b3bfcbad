//! Statuses and error objects.

use std::sync::OnceLock;

use nudge::Error;

use crate::input::seen;
use crate::{nudge_str, quietly, released};

/// The result of a call: `NUDGE_OK`, or a code of `nudge_code`. A server that is newer than the library may send
/// another code, with that server's reason in the error.
pub type nudge_status = i32;

/// Success.
pub(crate) const NUDGE_OK: nudge_status = nudge_code::NUDGE_OK as nudge_status;

/// The codes of Nudge's error model, and one for a defect of the library.
#[repr(C)]
#[derive(Clone, Copy)]
pub enum nudge_code {
    /// Done.
    NUDGE_OK = 0,
    /// A type, size, range or schema rule is broken; a pointer is NULL; a text is not UTF-8.
    NUDGE_E_INVALID = 40001,
    /// The secret guard refused a text.
    NUDGE_E_SECRET_REJECTED = 40002,
    /// An illegal glob, or a path that could escape.
    NUDGE_E_SCOPE_INVALID = 40003,
    /// No such component, key or variant, or none fits the context.
    NUDGE_E_NOT_FOUND = 40401,
    /// `if_match_version` differs from the stored version.
    NUDGE_E_CONFLICT = 40901,
    /// A limit of the store is reached.
    NUDGE_E_QUOTA = 42901,
    /// The session's server, or its journal, cannot be reached.
    NUDGE_E_UNAVAILABLE = 50301,
    /// There is no such method.
    NUDGE_E_UNKNOWN_METHOD = -32601,
    /// The params of a method are no JSON object. The reason is `E_INVALID`.
    NUDGE_E_PARAMS_NOT_OBJECT = -32602,
    /// The library panicked, which is a defect. The effect of the call is unknown.
    NUDGE_E_INTERNAL = -32603,
}

/// Why a call was refused. Immutable, may be read by any thread; free it with `nudge_error_free`.
pub struct nudge_error {
    error: Option<Error>,
    data: OnceLock<String>,
}

impl nudge_error {
    pub(crate) fn new(error: Error) -> Self {
        Self { error: Some(error), data: OnceLock::new() }
    }

    pub(crate) fn panicked() -> Self {
        Self { error: None, data: OnceLock::new() }
    }

    pub(crate) fn code(&self) -> nudge_status {
        self.error.as_ref().map_or(nudge_code::NUDGE_E_INTERNAL as nudge_status, Error::code)
    }

    fn reason(&self) -> &str {
        self.error.as_ref().map_or("E_INTERNAL", Error::reason)
    }

    fn message(&self) -> &str {
        const INTERNAL: &str = "The library failed in a way that is a defect of its own; please report it.";
        self.error.as_ref().map_or(INTERNAL, Error::message)
    }

    fn data(&self) -> &str {
        self.data.get_or_init(|| match &self.error {
            Some(error) => serde_json::to_string(error.data()).expect("a map of values is JSON"),
            None => r#"{"reason":"E_INTERNAL"}"#.into(),
        })
    }
}

/// Returns the code of the call; 0 for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_error_code(error: *const nudge_error) -> nudge_status {
    // SAFETY: NULL or alive, as the header says.
    let error = unsafe { seen(error) };
    quietly(NUDGE_OK, || error.map_or(NUDGE_OK, nudge_error::code))
}

/// Returns the stable name, such as `E_NOT_FOUND`; lives as long as the error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_error_reason(error: *const nudge_error) -> nudge_str {
    // SAFETY: NULL or alive, as the header says.
    let error = unsafe { seen(error) };
    quietly(nudge_str::NONE, || error.map_or(nudge_str::NONE, |error| nudge_str::of(error.reason())))
}

/// Returns a plain sentence that says what to do and holds no secret. It lives as long as the error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_error_message(error: *const nudge_error) -> nudge_str {
    // SAFETY: NULL or alive, as the header says.
    let error = unsafe { seen(error) };
    quietly(nudge_str::NONE, || error.map_or(nudge_str::NONE, |error| nudge_str::of(error.message())))
}

/// Returns details for a program as a JSON object: `reason`, and the fields of the kind (`near_misses` and
/// `missing_context`, `current_version`, `limit` and `max`, `rule` and `path`). It lives as long as the error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_error_data(error: *const nudge_error) -> nudge_str {
    // SAFETY: NULL or alive, as the header says.
    let error = unsafe { seen(error) };
    quietly(nudge_str::NONE, || error.map_or(nudge_str::NONE, |error| nudge_str::of(error.data())))
}

/// Frees an error; NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_error_free(error: *mut nudge_error) {
    // SAFETY: NULL or ours and used no more, as the header says.
    unsafe { released(error) }
}
