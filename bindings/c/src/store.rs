//! Stores, and the function that calls any method.

use std::path::Path;
use std::sync::Arc;

use nudge::{Config, Result, Service};
use nudge_client::Store;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::input::{GrowingParams, alive, flag, hand_over, invalid, optional, optional_place, place, read, unknown};
use crate::{answer, nudge_context, nudge_error, nudge_result, nudge_status, nudge_str, quietly, released};

/// A store in this process, or the session that the machine's `nudge serve` processes share. Any number of threads may
/// use it at the same time. Free it with `nudge_store_free`.
pub struct nudge_store(pub(crate) Arc<Store>);

/// A switch: on, off, or the default.
#[repr(C)]
#[derive(Clone, Copy)]
pub enum nudge_switch {
    /// The default.
    NUDGE_DEFAULT = 0,
    /// On.
    NUDGE_ON = 1,
    /// Off.
    NUDGE_OFF = 2,
}

/// Limits and switches of a store. 0 and "not given" mean the default, which each comment names.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct nudge_config {
    /// `sizeof(nudge_config)`.
    pub struct_size: usize,
    /// The most components: 500.
    pub max_components: u64,
    /// The most hints of one component, with all variants: 200.
    pub max_hints_per_component: u64,
    /// The most hints: 5,000.
    pub max_hints: u64,
    /// The most bytes of all hints in an export: 24 MiB.
    pub max_bytes: u64,
    /// The most suggestions to one client session in 10 minutes: 20.
    pub suggest_max: u64,
    /// The ttl of hints that are stored without one: `session`, or a duration such as `PT2H`.
    pub default_ttl: nudge_str,
    /// A value of `nudge_switch`: on refuses texts that look like credentials. The default is on.
    pub secret_guard: u32,
    /// 1 to read settings that are not given here from the environment (`NUDGE_MAX_HINTS` and so on).
    pub from_env: u32,
}

// SAFETY: the struct has only integers and pointers after `struct_size`.
unsafe impl GrowingParams for nudge_config {
    const NAME: &str = "nudge_config";
}

impl nudge_config {
    /// # Safety
    ///
    /// The texts must be valid as the header requires.
    unsafe fn config(&self) -> Result<Config> {
        let mut config = if flag(self.from_env, "from_env")? {
            Config::from_env(|name| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()))?
        } else {
            Config::default()
        };
        for (given, field) in [
            (self.max_components, &mut config.max_components),
            (self.max_hints_per_component, &mut config.max_hints_per_component),
            (self.max_hints, &mut config.max_hints),
            (self.max_bytes, &mut config.max_bytes),
            (self.suggest_max, &mut config.suggest_max),
        ] {
            if given > 0 {
                *field = usize::try_from(given).unwrap_or(usize::MAX);
            }
        }
        match self.secret_guard {
            0 => {}
            1 | 2 => config.secret_guard = self.secret_guard == nudge_switch::NUDGE_ON as u32,
            _ => return Err(unknown("secret_guard")),
        }
        // SAFETY: the caller obeys the rules of this function.
        if let Some(ttl) = unsafe { self.default_ttl.given("default_ttl") }? {
            config.default_ttl = ttl.parse()?;
        }
        Ok(config)
    }
}

/// Makes an empty store in this process. With NULL as `config`, the store has the defaults.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_store_new(
    config: *const nudge_config,
    out: *mut *mut nudge_store,
    error: *mut *mut nudge_error,
) -> nudge_status {
    answer(error, || {
        let config = if config.is_null() {
            Config::default()
        } else {
            // SAFETY: the header requires valid arguments.
            let config = unsafe { read(config) }?;
            // SAFETY: the header requires valid arguments.
            unsafe { config.config() }?
        };
        let out = place(out, "out")?;
        // SAFETY: `place` has checked `out`.
        unsafe { hand_over(out, nudge_store(Arc::new(Store::new(config)))) };
        Ok(())
    })
}

/// Opens the running session of a runtime directory: of `runtime_dir`, or else of `NUDGE_RUNTIME_DIR`, or else of the
/// default directory. `client` is the caller's name for users who later ask which client changed a hint; it may be left
/// out.
///
/// Calls on such a store block. When a server ends, they continue with the next server. A forked child process opens
/// its own connections. Fails with `NUDGE_E_UNAVAILABLE` when no `nudge serve` runs there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_connect(
    runtime_dir: nudge_str,
    client: nudge_str,
    out: *mut *mut nudge_store,
    error: *mut *mut nudge_error,
) -> nudge_status {
    answer(error, || {
        // SAFETY: the header requires valid arguments.
        let dir = unsafe { runtime_dir.given("runtime_dir") }?;
        // SAFETY: the header requires valid arguments.
        let client = unsafe { client.given("client") }?;
        let out = place(out, "out")?;
        let client = client.unwrap_or(concat!("libnudge/", env!("CARGO_PKG_VERSION")));
        let store = Store::connect(dir.map(Path::new), client)?;
        // SAFETY: `place` has checked `out`.
        unsafe { hand_over(out, nudge_store(Arc::new(store))) };
        Ok(())
    })
}

/// Frees a store. Ignores NULL. Views and matches that were made with the store stay valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_store_free(store: *mut nudge_store) {
    // SAFETY: the header requires NULL, or a handle of this library that the caller uses no more.
    unsafe { released(store) }
}

/// Calls any method by its name, such as `nudge.query`. `nudge_method_name` lists the names.
///
/// `params` is a JSON object; "not given" means `{}`. If `context` is not NULL, it becomes the `context` of the params,
/// which then must not contain another. `out` may be NULL when the caller does not need the result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_call(
    store: *const nudge_store,
    method: nudge_str,
    params: nudge_str,
    context: *const nudge_context,
    out: *mut *mut nudge_result,
    error: *mut *mut nudge_error,
) -> nudge_status {
    answer(error, || {
        // SAFETY: the header requires valid arguments.
        let store = unsafe { alive(store, "store") }?;
        // SAFETY: the header requires valid arguments.
        let method = unsafe { method.text("method") }?;
        // SAFETY: the header requires valid arguments.
        let params = unsafe { params.given("params") }?.unwrap_or("{}");
        // SAFETY: the header requires valid arguments.
        let context = unsafe { optional(context, "context") }?;
        let out = optional_place(out, "out")?;
        let params: &RawValue = serde_json::from_str(params)
            .map_err(|why| invalid(format!("`params` is no JSON at line {}, column {}.", why.line(), why.column())))?;
        let result = match context {
            None => store.0.call(method, params)?,
            Some(context) => store.0.call_raw_in(&context.0, method, without_context(params)?)?,
        };
        // SAFETY: `optional_place` has checked `out`.
        unsafe { hand_over(out, nudge_result::new(result)) };
        Ok(())
    })
}

/// Refuses params that contain a `context`, because the call already has one. The method reports other errors.
fn without_context(params: &RawValue) -> Result<&RawValue> {
    let fields = serde_json::from_str::<Map<String, Value>>(params.get());
    if fields.is_ok_and(|fields| fields.contains_key("context")) {
        return Err(invalid("Give the context once: as a handle, or in `params`."));
    }
    Ok(params)
}

/// Returns the number of methods.
#[unsafe(no_mangle)]
pub extern "C" fn nudge_method_count() -> usize {
    quietly(0, || nudge::methods().len())
}

/// Returns the name of a method, such as `nudge.get_hint`. The first has position 0; after the last one the result is
/// "not given". The text is static.
#[unsafe(no_mangle)]
pub extern "C" fn nudge_method_name(position: usize) -> nudge_str {
    quietly(nudge_str::NONE, || {
        nudge::methods().get(position).map_or(nudge_str::NONE, |method| nudge_str::of(method.name))
    })
}
