//! The typed functions that find hints: `get`, views and matches.

use std::sync::{Arc, OnceLock};

use nudge::{Context, HintValue, MatchExplain, Nudge, View};
use nudge_client::{FoundHint, Store};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::input::{GrowingParams, alive, hand_over, optional, place, read, seen};
use crate::{answer, nudge_context, nudge_error, nudge_status, nudge_store, nudge_str, quietly, released};

/// The key to look up.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct nudge_get_params {
    /// `sizeof(nudge_get_params)`.
    pub struct_size: usize,
    /// The component.
    pub component: nudge_str,
    /// The key.
    pub key: nudge_str,
    /// The context of the caller; NULL for an unknown context.
    pub context: *const nudge_context,
}

// SAFETY: the struct has only integers and pointers after `struct_size`.
unsafe impl GrowingParams for nudge_get_params {
    const NAME: &str = "nudge_get_params";
}

/// A store, seen from one context: the fastest way to look up hints repeatedly. It outlives the store's handle, sees
/// every change of the store, and any number of threads may use it. Free it with `nudge_view_free`.
pub struct nudge_view(ViewBackend);

// The handle is already a separate allocation, so the large variant needs no other box.
#[allow(clippy::large_enum_variant)]
enum ViewBackend {
    /// A view remembers for each scope whether it fits the context.
    Own(View<Arc<Nudge>>, Arc<Store>),
    Session(Arc<Store>, Context),
}

/// A hint that fits, in the state in which it was found. It never changes, and any thread may read it. Free it with
/// `nudge_match_free`.
pub struct nudge_match {
    found: FoundHint,
    // The accessors render these two fields on first use.
    reasons: OnceLock<Vec<String>>,
    json: OnceLock<Option<Box<RawValue>>>,
}

/// The terms of a score; their sum is the score.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct nudge_parts {
    /// Uses, of which old ones count less: 0 to 0.30.
    pub frecency: f64,
    /// The priority: 0.02 to 0.20.
    pub priority: f64,
    /// The confidence: 0 to 0.20.
    pub confidence: f64,
    /// The number of given fields in the scope: 0 to 0.20.
    pub scope_specificity: f64,
    /// The age since the last set: 0 to 0.10.
    pub recency: f64,
    /// An open file that belongs to the component: at most 0.05.
    pub files_open: f64,
}

/// The types of a value.
#[repr(C)]
#[derive(Clone, Copy)]
pub enum nudge_value_type {
    /// A plain string.
    NUDGE_VALUE_TEXT = 0,
    /// A command line.
    NUDGE_VALUE_COMMAND = 1,
    /// An absolute path.
    NUDGE_VALUE_PATH = 2,
    /// A text with holes.
    NUDGE_VALUE_TEMPLATE = 3,
    /// JSON.
    NUDGE_VALUE_JSON = 4,
}

impl nudge_match {
    fn new(found: FoundHint) -> Self {
        Self { found, reasons: OnceLock::new(), json: OnceLock::new() }
    }

    fn reasons(&self) -> &[String] {
        self.reasons.get_or_init(|| self.found.reasons())
    }

    fn json(&self) -> Option<&RawValue> {
        #[derive(Serialize)]
        struct MatchJson {
            hint: Box<RawValue>,
            match_explain: MatchExplain,
        }
        let json = self.json.get_or_init(|| {
            let (score, parts, reasons) = (self.found.score(), self.found.parts(), self.reasons().to_vec());
            let match_explain = MatchExplain { matched: true, score, parts, reasons };
            serde_json::value::to_raw_value(&MatchJson { hint: self.found.hint().ok()?, match_explain }).ok()
        });
        json.as_deref()
    }
}

/// Finds the best hint of a key that fits the context.
///
/// Fails with `NUDGE_E_NOT_FOUND` when no hint fits; the error's data say why (`near_misses`, `missing_context`).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_get(
    store: *const nudge_store,
    params: *const nudge_get_params,
    out: *mut *mut nudge_match,
    error: *mut *mut nudge_error,
) -> nudge_status {
    answer(error, || {
        // SAFETY: the header requires valid arguments.
        let store = unsafe { alive(store, "store") }?;
        // SAFETY: the header requires valid arguments.
        let params = unsafe { read(params) }?;
        // SAFETY: the header requires valid arguments.
        let component = unsafe { params.component.text("component") }?;
        // SAFETY: the header requires valid arguments.
        let key = unsafe { params.key.text("key") }?;
        // SAFETY: the header requires valid arguments.
        let context = unsafe { optional(params.context, "context") }?;
        let out = place(out, "out")?;
        let found = match context {
            Some(context) => store.0.find(component, key, &context.0)?,
            None => store.0.find(component, key, &Context::default())?,
        };
        // SAFETY: `place` has checked `out`.
        unsafe { hand_over(out, nudge_match::new(found)) };
        Ok(())
    })
}

/// Binds a store to a context. NULL stands for an empty context.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_view_new(
    store: *const nudge_store,
    context: *const nudge_context,
    out: *mut *mut nudge_view,
    error: *mut *mut nudge_error,
) -> nudge_status {
    answer(error, || {
        // SAFETY: the header requires valid arguments.
        let store = Arc::clone(&unsafe { alive(store, "store") }?.0);
        // SAFETY: the header requires valid arguments.
        let context =
            unsafe { optional(context, "context") }?.map_or_else(Context::default, |context| context.0.clone());
        let out = place(out, "out")?;
        let seen = match store.as_nudge().cloned() {
            Some(own) => ViewBackend::Own(View::new(own, context), store),
            None => ViewBackend::Session(store, context),
        };
        // SAFETY: `place` has checked `out`.
        unsafe { hand_over(out, nudge_view(seen)) };
        Ok(())
    })
}

/// Does the same as `nudge_get`, with the view's context.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_view_get(
    view: *const nudge_view,
    component: nudge_str,
    key: nudge_str,
    out: *mut *mut nudge_match,
    error: *mut *mut nudge_error,
) -> nudge_status {
    answer(error, || {
        // SAFETY: the header requires valid arguments.
        let view = unsafe { alive(view, "view") }?;
        // SAFETY: the header requires valid arguments.
        let component = unsafe { component.text("component") }?;
        // SAFETY: the header requires valid arguments.
        let key = unsafe { key.text("key") }?;
        let out = place(out, "out")?;
        let found = match &view.0 {
            ViewBackend::Own(view, store) => match view.get(component, key) {
                Some(found) => found.into(),
                None => store.find(component, key, view.context())?,
            },
            ViewBackend::Session(store, context) => store.find(component, key, context)?,
        };
        // SAFETY: `place` has checked `out`.
        unsafe { hand_over(out, nudge_match::new(found)) };
        Ok(())
    })
}

/// Frees a view. Ignores NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_view_free(view: *mut nudge_view) {
    // SAFETY: the header requires NULL, or a handle of this library that the caller uses no more.
    unsafe { released(view) }
}

/// Reads a value of a match; evaluates to `$empty` for NULL.
macro_rules! of_match {
    ($found:ident, $empty:expr, $get:expr) => {{
        // SAFETY: the header requires NULL or a living handle.
        let found = unsafe { seen($found) };
        quietly($empty, || found.map_or($empty, $get))
    }};
}

/// Returns the text of the value: the string, the command, the path, the template's body, or compact JSON. Returns the
/// full text even when the hint is secret. The text lives as long as the match.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_match_value(found: *const nudge_match) -> nudge_str {
    of_match!(found, nudge_str::NONE, |found| nudge_str::of(found.found.text()))
}

/// Returns the type of the value, one of `nudge_value_type`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_match_value_type(found: *const nudge_match) -> u32 {
    of_match!(found, 0, |found| value_type(found.found.value()) as u32)
}

fn value_type(value: &HintValue) -> nudge_value_type {
    match value {
        HintValue::Text(_) => nudge_value_type::NUDGE_VALUE_TEXT,
        HintValue::Command(_) => nudge_value_type::NUDGE_VALUE_COMMAND,
        HintValue::Path(_) => nudge_value_type::NUDGE_VALUE_PATH,
        HintValue::Template(_) => nudge_value_type::NUDGE_VALUE_TEMPLATE,
        HintValue::Json(_) => nudge_value_type::NUDGE_VALUE_JSON,
    }
}

/// Returns the variant of the key: twelve hex digits, or an empty text when the hint applies everywhere. The text lives
/// as long as the match.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_match_variant(found: *const nudge_match) -> nudge_str {
    of_match!(found, nudge_str::NONE, |found| nudge_str::of(found.found.variant()))
}

/// Returns 1 when the value is a secret, which must not be shown, and otherwise 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_match_is_secret(found: *const nudge_match) -> u32 {
    of_match!(found, 0, |found| u32::from(found.found.is_secret()))
}

/// Returns the version of the hint: the number of times that it was set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_match_version(found: *const nudge_match) -> u64 {
    of_match!(found, 0, |found| found.found.version())
}

/// Returns the score, from 0 to 1. A session returns only four decimals.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_match_score(found: *const nudge_match) -> f64 {
    of_match!(found, 0.0, |found| found.found.score())
}

/// Returns the terms of the score; all are 0 for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_match_parts(found: *const nudge_match) -> nudge_parts {
    const EMPTY: nudge_parts = nudge_parts {
        frecency: 0.0,
        priority: 0.0,
        confidence: 0.0,
        scope_specificity: 0.0,
        recency: 0.0,
        files_open: 0.0,
    };
    of_match!(found, EMPTY, |found| {
        let parts = found.found.parts();
        let part = |name: &str| parts.get_part(name).unwrap_or_default();
        nudge_parts {
            frecency: part("frecency"),
            priority: part("priority"),
            confidence: part("confidence"),
            scope_specificity: part("scope_specificity"),
            recency: part("recency"),
            files_open: part("files_open"),
        }
    })
}

/// Returns the number of reasons for the choice of this hint.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_match_reason_count(found: *const nudge_match) -> usize {
    of_match!(found, 0, |found| found.reasons().len())
}

/// Returns a reason, such as `branch=dev allowed`. The first has position 0; after the last one the result is "not
/// given". The text lives as long as the match.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_match_reason(found: *const nudge_match, position: usize) -> nudge_str {
    let reason =
        |found: &nudge_match| found.reasons().get(position).map_or(nudge_str::NONE, |reason| nudge_str::of(reason));
    of_match!(found, nudge_str::NONE, reason)
}

/// Returns the whole match as JSON, as `nudge.get_hint` does: `{"hint": ..., "match_explain": ...}`. The text lives as
/// long as the match.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_match_json(found: *const nudge_match) -> nudge_str {
    of_match!(found, nudge_str::NONE, |found| found.json().map_or(nudge_str::NONE, |json| nudge_str::of(json.get())))
}

/// Frees a match. Ignores NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_match_free(found: *mut nudge_match) {
    // SAFETY: the header requires NULL, or a handle of this library that the caller uses no more.
    unsafe { released(found) }
}
