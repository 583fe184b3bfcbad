//! The typed functions that change hints: `set`, `bump` and `delete`.

use std::collections::BTreeMap;

use nudge::{Os, Result, Service};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use crate::context::systems;
use crate::input::{
    GrowingParams, alive, flag, hand_over, invalid, named, optional, optional_place, read, unknown, unused,
};
use crate::{
    answer, nudge_context, nudge_error, nudge_pairs, nudge_result, nudge_status, nudge_store, nudge_str, nudge_strs,
    nudge_value_type,
};

/// The shells for which a command may be written.
#[repr(C)]
#[derive(Clone, Copy)]
pub enum nudge_shell {
    /// bash.
    NUDGE_SHELL_BASH = 1,
    /// sh.
    NUDGE_SHELL_SH = 2,
    /// `PowerShell`.
    NUDGE_SHELL_POWERSHELL = 3,
    /// cmd.
    NUDGE_SHELL_CMD = 4,
    /// zsh.
    NUDGE_SHELL_ZSH = 5,
    /// fish.
    NUDGE_SHELL_FISH = 6,
}

/// The languages of templates.
#[repr(C)]
#[derive(Clone, Copy)]
pub enum nudge_format {
    /// Mustache.
    NUDGE_FORMAT_MUSTACHE = 1,
    /// Handlebars.
    NUDGE_FORMAT_HANDLEBARS = 2,
    /// Jinja.
    NUDGE_FORMAT_JINJA = 3,
    /// `${name}`.
    NUDGE_FORMAT_INTERPOLATE = 4,
}

/// Says whether a value is a secret.
#[repr(C)]
#[derive(Clone, Copy)]
pub enum nudge_sensitivity {
    /// A secret: hidden wherever users look, and never written to disk.
    NUDGE_SENSITIVITY_SECRET = 1,
    /// An ordinary value.
    NUDGE_SENSITIVITY_NORMAL = 2,
}

/// The origin of a hint.
#[repr(C)]
#[derive(Clone, Copy)]
pub enum nudge_source {
    /// A user.
    NUDGE_SOURCE_USER = 1,
    /// A coding agent.
    NUDGE_SOURCE_AGENT = 2,
    /// The output of a tool.
    NUDGE_SOURCE_TOOL_OUTPUT = 3,
    /// An import.
    NUDGE_SOURCE_FILE_IMPORT = 4,
}

// The names in JSON, in the order of the enumeration above.
const SHELLS: [&str; 6] = ["bash", "sh", "powershell", "cmd", "zsh", "fish"];
const FORMATS: [&str; 4] = ["mustache", "handlebars", "jinja", "interpolate"];
const SENSITIVITIES: [&str; 2] = ["secret", "normal"];
const SOURCES: [&str; 4] = ["user", "agent", "tool-output", "file-import"];

/// The conditions of a hint. All given conditions must hold. An empty scope applies everywhere.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct nudge_scope {
    /// `sizeof(nudge_scope)`.
    pub struct_size: usize,
    /// Folders, as globs: `*` stands for characters within a name, `**` also across folders. `dir/**` matches `dir` and
    /// everything below it. At most 16 globs of 512 bytes.
    pub cwd_glob: nudge_strs,
    /// Repositories, in any spelling.
    pub repo: nudge_strs,
    /// Branches, as globs: `hotfix/*`. At most 16 globs of 512 bytes.
    pub branch: nudge_strs,
    /// Bits of `nudge_os`; 0 for every system.
    pub os: u32,
    /// Must be 0.
    pub reserved: u32,
    /// Environment variables that must be set.
    pub env_required: nudge_strs,
    /// Environment variables, each with a value that it must have. If a name occurs several times, any of its values is
    /// enough.
    pub env_match: nudge_pairs,
}

// SAFETY: the struct has only integers and pointers after `struct_size`.
unsafe impl GrowingParams for nudge_scope {
    const NAME: &str = "nudge_scope";
}

/// A hint to store. A field that is 0, NULL or not given is left out.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct nudge_set_params {
    /// `sizeof(nudge_set_params)`.
    pub struct_size: usize,
    /// A service, module or folder name, at most 256 bytes.
    pub component: nudge_str,
    /// The key, such as `build`, at most 256 bytes.
    pub key: nudge_str,
    /// The value's text: the string, the command, the path, the template's body, or JSON. At most 64 KiB.
    pub value: nudge_str,
    /// A value of `nudge_value_type`.
    pub value_type: u32,
    /// For a command: one of `nudge_shell`.
    pub shell: u32,
    /// For a path: bits of `nudge_os`.
    pub path_os: u32,
    /// For a template: one of `nudge_format`; required.
    pub format: u32,
    /// For a template: values for holes that a caller leaves open.
    pub defaults: nudge_pairs,
    /// The reason why the hint is useful, at most 2 KiB.
    pub reason: nudge_str,
    /// At most 32 tags of 1 to 64 bytes.
    pub tags: nudge_strs,
    /// From 1 to 10; 0 stands for 5.
    pub priority: u32,
    /// A value of `nudge_sensitivity`. A secret value passes the secret guard and is hidden.
    pub sensitivity: u32,
    /// From 0 to 1; NULL stands for 0.5.
    pub confidence: *const f64,
    /// `session`, or a duration such as `PT2H` that starts with the last set.
    pub ttl: nudge_str,
    /// The scope. With NULL, the hint applies everywhere.
    pub scope: *const nudge_scope,
    /// The author, free text such as `agent:codex`, at most 256 bytes.
    pub added_by: nudge_str,
    /// A value of `nudge_source`.
    pub source: u32,
    /// 1 if the secret guard's finding is a false alarm.
    pub allow_secret: u32,
    /// Refuses the call unless the stored hint has this version. 0 means that no hint may be stored yet.
    pub if_match_version: *const u64,
    /// The variant to update; its scope stays. The empty text names the variant without a scope.
    pub variant: nudge_str,
}

// SAFETY: the struct has only integers and pointers after `struct_size`.
unsafe impl GrowingParams for nudge_set_params {
    const NAME: &str = "nudge_set_params";
}

/// The hint that was used with success.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct nudge_bump_params {
    /// `sizeof(nudge_bump_params)`.
    pub struct_size: usize,
    /// The component.
    pub component: nudge_str,
    /// The key.
    pub key: nudge_str,
    /// The context with which `nudge_get` was called. A key with several variants needs this or `variant`.
    pub context: *const nudge_context,
    /// The variant to bump, whatever the context. The empty text names the variant without a scope.
    pub variant: nudge_str,
    /// The number of uses to add, from 1 to 1,000; 0 stands for 1.
    pub delta: u64,
}

// SAFETY: the struct has only integers and pointers after `struct_size`.
unsafe impl GrowingParams for nudge_bump_params {
    const NAME: &str = "nudge_bump_params";
}

/// The hint to delete.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct nudge_delete_params {
    /// `sizeof(nudge_delete_params)`.
    pub struct_size: usize,
    /// The component.
    pub component: nudge_str,
    /// The key.
    pub key: nudge_str,
    /// The variant to delete. The empty text names the variant without a scope.
    pub variant: nudge_str,
    /// 1 deletes every variant. A key with several variants needs this or `variant`.
    pub all: u32,
    /// Must be 0.
    pub reserved: u32,
}

// SAFETY: the struct has only integers and pointers after `struct_size`.
unsafe impl GrowingParams for nudge_delete_params {
    const NAME: &str = "nudge_delete_params";
}

/// The params of `nudge.set_hint`.
#[derive(Serialize)]
struct SetHintParams<'a> {
    component: &'a str,
    key: &'a str,
    value: SetHintValue<'a>,
    meta: SetHintMeta<'a>,
    if_match_version: Option<u64>,
    variant: Option<&'a str>,
    allow_secret: bool,
}

/// The field `meta` of these params; null means "not given".
#[derive(Serialize)]
struct SetHintMeta<'a> {
    reason: Option<&'a str>,
    tags: Vec<&'a str>,
    priority: Option<u32>,
    confidence: Option<f64>,
    ttl: Option<&'a str>,
    sensitivity: Option<&'static str>,
    scope: Option<SetHintScope<'a>>,
    source: Option<&'static str>,
    added_by: Option<&'a str>,
}

#[derive(Serialize)]
struct SetHintScope<'a> {
    cwd_glob: Vec<&'a str>,
    repo: Vec<&'a str>,
    branch: Vec<&'a str>,
    os: Vec<Os>,
    env_required: Vec<&'a str>,
    env_match: BTreeMap<&'a str, Vec<&'a str>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum SetHintValue<'a> {
    Text(&'a str),
    Other(TypedValue<'a>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum TypedValue<'a> {
    Command { cmd: &'a str, shell: Option<&'static str> },
    Path { abs: &'a str, os: Vec<Os> },
    Template { body: &'a str, format: Option<&'static str>, defaults: BTreeMap<&'a str, &'a str> },
    Json { data: &'a RawValue },
}

impl nudge_set_params {
    /// # Safety
    ///
    /// The texts and lists must be valid as the header requires.
    unsafe fn read<'a>(&self) -> Result<SetHintParams<'a>> {
        // SAFETY: the caller obeys the rules of this function.
        let component = unsafe { self.component.text("component") }?;
        // SAFETY: the caller obeys the rules of this function.
        let key = unsafe { self.key.text("key") }?;
        // SAFETY: the caller obeys the rules of this function.
        let value = unsafe { self.value() }?;
        // SAFETY: the caller obeys the rules of this function.
        let meta = unsafe { self.meta() }?;
        // SAFETY: the caller obeys the rules of this function.
        let if_match_version = unsafe { optional(self.if_match_version, "if_match_version") }?.copied();
        // SAFETY: the caller obeys the rules of this function.
        let variant = unsafe { self.variant.given("variant") }?;
        let allow_secret = flag(self.allow_secret, "allow_secret")?;
        Ok(SetHintParams { component, key, value, meta, if_match_version, variant, allow_secret })
    }

    /// # Safety
    ///
    /// The rules of [`read`](Self::read) apply.
    unsafe fn value<'a>(&self) -> Result<SetHintValue<'a>> {
        // SAFETY: the caller obeys the rules of this function.
        let text = unsafe { self.value.text("value") }?;
        // SAFETY: the caller obeys the rules of this function.
        let defaults = unsafe { self.defaults.pairs("defaults") }?;
        let shell = named(self.shell, &SHELLS, "shell")?;
        let os = systems(self.path_os, "path_os")?;
        let format = named(self.format, &FORMATS, "format")?;
        let (command, path, template, json) = (
            nudge_value_type::NUDGE_VALUE_COMMAND as u32,
            nudge_value_type::NUDGE_VALUE_PATH as u32,
            nudge_value_type::NUDGE_VALUE_TEMPLATE as u32,
            nudge_value_type::NUDGE_VALUE_JSON as u32,
        );
        for (given, field, expected) in [
            (shell.is_some(), "shell", command),
            (!os.is_empty(), "path_os", path),
            (format.is_some(), "format", template),
            (!defaults.is_empty(), "defaults", template),
        ] {
            if given && self.value_type != expected {
                return Err(invalid(format!("A value of this type has no `{field}`.")));
            }
        }
        Ok(SetHintValue::Other(match self.value_type {
            0 => return Ok(SetHintValue::Text(text)),
            kind if kind == command => TypedValue::Command { cmd: text, shell },
            kind if kind == path => TypedValue::Path { abs: text, os },
            kind if kind == template => {
                let unset = || invalid("A value in `defaults` is NULL; leave the name out.");
                let pair = |(name, value): (_, Option<_>)| Ok((name, value.ok_or_else(unset)?));
                TypedValue::Template {
                    body: text,
                    format,
                    defaults: defaults.into_iter().map(pair).collect::<Result<_>>()?,
                }
            }
            kind if kind == json => {
                let data = serde_json::from_str(text).map_err(|_| invalid("`value` is no JSON."))?;
                TypedValue::Json { data }
            }
            _ => return Err(unknown("value_type")),
        }))
    }

    /// # Safety
    ///
    /// The rules of [`read`](Self::read) apply.
    unsafe fn meta<'a>(&self) -> Result<SetHintMeta<'a>> {
        // SAFETY: the caller obeys the rules of this function.
        let confidence = unsafe { optional(self.confidence, "confidence") }?.copied();
        if confidence.is_some_and(|confidence| !confidence.is_finite()) {
            return Err(invalid("`confidence` must be a number from 0 to 1."));
        }
        // SAFETY: the caller obeys the rules of this function.
        let reason = unsafe { self.reason.given("reason") }?;
        // SAFETY: the caller obeys the rules of this function.
        let tags = unsafe { self.tags.texts("tags") }?;
        // SAFETY: the caller obeys the rules of this function.
        let ttl = unsafe { self.ttl.given("ttl") }?;
        // SAFETY: the caller obeys the rules of this function.
        let added_by = unsafe { self.added_by.given("added_by") }?;
        let scope = if self.scope.is_null() {
            None
        } else {
            // SAFETY: the caller obeys the rules of this function.
            let scope = unsafe { read(self.scope) }?;
            // SAFETY: the caller obeys the rules of this function.
            Some(unsafe { scope.read() }?)
        };
        Ok(SetHintMeta {
            reason,
            tags,
            priority: Some(self.priority).filter(|&priority| priority > 0),
            confidence,
            ttl,
            sensitivity: named(self.sensitivity, &SENSITIVITIES, "sensitivity")?,
            scope,
            source: named(self.source, &SOURCES, "source")?,
            added_by,
        })
    }
}

impl nudge_scope {
    /// # Safety
    ///
    /// The lists must be valid as the header requires.
    unsafe fn read<'a>(&self) -> Result<SetHintScope<'a>> {
        unused(self.reserved)?;
        // SAFETY: the caller obeys the rules of this function.
        let pairs = unsafe { self.env_match.pairs("env_match") }?;
        let mut env_match = BTreeMap::<_, Vec<_>>::new();
        for (name, value) in pairs {
            let value = value.ok_or_else(|| invalid("A value in `env_match` is NULL; use `env_required`."))?;
            env_match.entry(name).or_default().push(value);
        }
        Ok(SetHintScope {
            // SAFETY: the caller obeys the rules of this function.
            cwd_glob: unsafe { self.cwd_glob.texts("cwd_glob") }?,
            // SAFETY: the caller obeys the rules of this function.
            repo: unsafe { self.repo.texts("repo") }?,
            // SAFETY: the caller obeys the rules of this function.
            branch: unsafe { self.branch.texts("branch") }?,
            os: systems(self.os, "os")?,
            // SAFETY: the caller obeys the rules of this function.
            env_required: unsafe { self.env_required.texts("env_required") }?,
            env_match,
        })
    }
}

/// Stores a hint, or updates the variant with an equal scope.
///
/// `out` may be NULL. The result is that of `nudge.set_hint`: `{"hint", "variants"}`, and `"previous"` if the call
/// replaced another value. The call can fail, in this order, with `NUDGE_E_INVALID`, `NUDGE_E_SCOPE_INVALID`,
/// `NUDGE_E_SECRET_REJECTED`, `NUDGE_E_NOT_FOUND` (unknown `variant`), `NUDGE_E_CONFLICT` or `NUDGE_E_QUOTA`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_set(
    store: *const nudge_store,
    params: *const nudge_set_params,
    out: *mut *mut nudge_result,
    error: *mut *mut nudge_error,
) -> nudge_status {
    answer(error, || {
        // SAFETY: the header requires valid arguments.
        let store = unsafe { alive(store, "store") }?;
        let out = optional_place(out, "out")?;
        // SAFETY: the header requires valid arguments.
        let params = unsafe { read(params) }?;
        // SAFETY: the header requires valid arguments.
        let params = unsafe { params.read() }?;
        let params = to_raw_value(&params).map_err(|_| invalid("The params cannot be written as JSON."))?;
        let result = store.0.call("nudge.set_hint", &params)?;
        // SAFETY: `optional_place` has checked `out`.
        unsafe { hand_over(out, nudge_result::new(result)) };
        Ok(())
    })
}

/// Counts a use of a hint, so that the hint ranks higher later.
///
/// `out` may be NULL. The result is that of `nudge.bump`: `{"hint"}`. Fails with `NUDGE_E_NOT_FOUND`, and with
/// `NUDGE_E_INVALID` when the key has several variants and neither `context` nor `variant` is given.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_bump(
    store: *const nudge_store,
    params: *const nudge_bump_params,
    out: *mut *mut nudge_result,
    error: *mut *mut nudge_error,
) -> nudge_status {
    answer(error, || {
        // SAFETY: the header requires valid arguments.
        let store = unsafe { alive(store, "store") }?;
        let out = optional_place(out, "out")?;
        // SAFETY: the header requires valid arguments.
        let params = unsafe { read(params) }?;
        // SAFETY: the header requires valid arguments.
        let mut fields = unsafe { names(params.component, params.key, params.variant) }?;
        if params.delta > 0 {
            fields.insert("delta".into(), params.delta.into());
        }
        // SAFETY: the header requires valid arguments.
        let context = unsafe { optional(params.context, "context") }?;
        let context = context.map(|context| context.0.clone()).unwrap_or_default();
        let result = store.0.call_in(&context, "nudge.bump", &fields)?;
        // SAFETY: `optional_place` has checked `out`.
        unsafe { hand_over(out, nudge_result::new(result)) };
        Ok(())
    })
}

/// Deletes a hint, one of its variants, or all its variants.
///
/// `out` may be NULL. The result is that of `nudge.delete_hint`: `{"deleted", "previous", "deleted_count"}`. Fails with
/// `NUDGE_E_NOT_FOUND`, and with `NUDGE_E_INVALID` when the key has several variants and neither `variant` nor `all` is
/// given.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_delete(
    store: *const nudge_store,
    params: *const nudge_delete_params,
    out: *mut *mut nudge_result,
    error: *mut *mut nudge_error,
) -> nudge_status {
    answer(error, || {
        // SAFETY: the header requires valid arguments.
        let store = unsafe { alive(store, "store") }?;
        let out = optional_place(out, "out")?;
        // SAFETY: the header requires valid arguments.
        let params = unsafe { read(params) }?;
        // SAFETY: the header requires valid arguments.
        let mut fields = unsafe { names(params.component, params.key, params.variant) }?;
        unused(params.reserved)?;
        if flag(params.all, "all")? {
            fields.insert("all".into(), true.into());
        }
        let fields = to_raw_value(&fields).map_err(|_| invalid("The params cannot be written as JSON."))?;
        let result = store.0.call("nudge.delete_hint", &fields)?;
        // SAFETY: `optional_place` has checked `out`.
        unsafe { hand_over(out, nudge_result::new(result)) };
        Ok(())
    })
}

/// Builds the params that name a hint: component, key and variant.
///
/// # Safety
///
/// The texts must be valid as the header requires.
unsafe fn names(component: nudge_str, key: nudge_str, variant: nudge_str) -> Result<Map<String, Value>> {
    let mut fields = Map::new();
    // SAFETY: the caller obeys the rules of this function.
    fields.insert("component".into(), unsafe { component.text("component") }?.into());
    // SAFETY: the caller obeys the rules of this function.
    fields.insert("key".into(), unsafe { key.text("key") }?.into());
    // SAFETY: the caller obeys the rules of this function.
    if let Some(variant) = unsafe { variant.given("variant") }? {
        fields.insert("variant".into(), variant.into());
    }
    Ok(fields)
}
