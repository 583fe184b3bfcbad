//! The statuses of calls, and error objects.

use std::sync::OnceLock;

use nudge::Error;

use crate::input::seen;
use crate::{nudge_str, quietly, released};

/// The status of a call: `NUDGE_OK`, or a code of `nudge_code`. A server that is newer than the library may return
/// another code; the error then contains the server's reason.
pub type nudge_status = i32;

/// The status of a successful call.
pub(crate) const NUDGE_OK: nudge_status = nudge_code::NUDGE_OK as nudge_status;

/// The codes of Nudge's error model, and a code for a defect of the library.
#[repr(C)]
#[derive(Clone, Copy)]
pub enum nudge_code {
    /// The call succeeded.
    NUDGE_OK = 0,
    /// An argument breaks a rule of type, size, range or schema, a pointer is NULL, or a text is not UTF-8.
    NUDGE_E_INVALID = 40001,
    /// The secret guard refused a text.
    NUDGE_E_SECRET_REJECTED = 40002,
    /// The glob is illegal, or the path could leave its folder.
    NUDGE_E_SCOPE_INVALID = 40003,
    /// The component, key or variant does not exist, or no variant fits the context.
    NUDGE_E_NOT_FOUND = 40401,
    /// `if_match_version` differs from the stored version.
    NUDGE_E_CONFLICT = 40901,
    /// A limit of the store is reached.
    NUDGE_E_QUOTA = 42901,
    /// The server of the session, or its journal, cannot be reached.
    NUDGE_E_UNAVAILABLE = 50301,
    /// The method does not exist.
    NUDGE_E_UNKNOWN_METHOD = -32601,
    /// The params of the method are not a JSON object. The reason is `E_INVALID`.
    NUDGE_E_PARAMS_NOT_OBJECT = -32602,
    /// The library panicked because of a defect. The effect of the call is unknown.
    NUDGE_E_INTERNAL = -32603,
}

/// The reason why a call was refused. It never changes, and any thread may read it. Free it with `nudge_error_free`.
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

/// Returns the code of the error; 0 for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_error_code(error: *const nudge_error) -> nudge_status {
    // SAFETY: the header requires NULL or a living handle.
    let error = unsafe { seen(error) };
    quietly(NUDGE_OK, || error.map_or(NUDGE_OK, nudge_error::code))
}

/// Returns the stable name of the error, such as `E_NOT_FOUND`. The text lives as long as the error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_error_reason(error: *const nudge_error) -> nudge_str {
    // SAFETY: the header requires NULL or a living handle.
    let error = unsafe { seen(error) };
    quietly(nudge_str::NONE, || error.map_or(nudge_str::NONE, |error| nudge_str::of(error.reason())))
}

/// Returns a plain sentence that says what to do. It contains no secret. The text lives as long as the error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_error_message(error: *const nudge_error) -> nudge_str {
    // SAFETY: the header requires NULL or a living handle.
    let error = unsafe { seen(error) };
    quietly(nudge_str::NONE, || error.map_or(nudge_str::NONE, |error| nudge_str::of(error.message())))
}

/// Returns details for programs as a JSON object: `reason`, and the fields of this kind of error (`near_misses` and
/// `missing_context`, `current_version`, `limit` and `max`, `rule` and `path`). The text lives as long as the error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_error_data(error: *const nudge_error) -> nudge_str {
    // SAFETY: the header requires NULL or a living handle.
    let error = unsafe { seen(error) };
    quietly(nudge_str::NONE, || error.map_or(nudge_str::NONE, |error| nudge_str::of(error.data())))
}

/// Frees an error. Ignores NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_error_free(error: *mut nudge_error) {
    // SAFETY: the header requires NULL, or a handle of this library that the caller uses no more.
    unsafe { released(error) }
}
