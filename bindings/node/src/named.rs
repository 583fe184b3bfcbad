//! Maps names to stores that all threads of this process share. Worker threads of Node share no objects, so a thread
//! can find the store of another thread only by a name.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use nudge::{Config, Error, Result, Ttl};
use nudge_client::Store;
use parking_lot::Mutex;
use serde::Deserialize;

/// The most bytes of a name.
const MAX_NAME_BYTES: usize = 256;
/// The most names. A name keeps its store until a program forgets the name.
const MAX_NAMES: usize = 1024;

type Names = HashMap<String, (Arc<Store>, Config)>;

static NAMES: LazyLock<Mutex<Names>> = LazyLock::new(Mutex::default);

/// The options of `new Store()`.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct StoreOptions {
    max_components: Option<u64>,
    max_hints_per_component: Option<u64>,
    max_hints: Option<u64>,
    max_bytes: Option<u64>,
    secret_guard: Option<bool>,
    default_ttl: Option<String>,
    suggest_max: Option<u64>,
    /// The environment that gives the missing options.
    env: Option<HashMap<String, Option<String>>>,
}

/// A checked configuration, and whether the program gave any option.
pub struct StoreSettings {
    config: Config,
    given: bool,
}

impl StoreSettings {
    /// Reads settings from JSON.
    pub fn read(json: &str) -> Result<Self> {
        let given = json.trim() != "{}";
        let read: StoreOptions = serde_json::from_str(json).map_err(|_| wrong())?;
        let base = match read.env {
            None => Config::default(),
            Some(env) => Config::from_env(|name| env.get(name).cloned().flatten())?,
        };
        let count =
            |given: Option<u64>, base: usize| given.map_or(base, |given| usize::try_from(given).unwrap_or(usize::MAX));
        let config = Config {
            max_components: count(read.max_components, base.max_components),
            max_hints_per_component: count(read.max_hints_per_component, base.max_hints_per_component),
            max_hints: count(read.max_hints, base.max_hints),
            max_bytes: count(read.max_bytes, base.max_bytes),
            secret_guard: read.secret_guard.unwrap_or(base.secret_guard),
            default_ttl: read.default_ttl.map_or(Ok(base.default_ttl), |text| text.parse::<Ttl>())?,
            suggest_max: count(read.suggest_max, base.suggest_max),
        };
        Ok(Self { config, given })
    }

    /// Makes a new store with these settings.
    pub fn create(self) -> Arc<Store> {
        Store::new(self.config).into()
    }
}

/// Returns the store with this name. If there is none, makes it with `settings`.
pub fn open(name: &str, settings: &StoreSettings) -> Result<Arc<Store>> {
    if name.is_empty() || name.len() > MAX_NAME_BYTES {
        return Err(Error::invalid("The name of a store must have 1 to 256 bytes."));
    }
    let mut names = NAMES.lock();
    if let Some((store, config)) = names.get(name) {
        if settings.given && *config != settings.config {
            return Err(Error::invalid(
                "A store of this name is open with other settings; leave them out, or take another name.",
            ));
        }
        return Ok(Arc::clone(store));
    }
    if names.len() >= MAX_NAMES {
        return Err(Error::invalid("1,024 named stores are the most; forget those no longer needed."));
    }
    keep_loaded();
    let store = Arc::new(Store::new(settings.config.clone()));
    names.insert(name.to_owned(), (Arc::clone(&store), settings.config.clone()));
    Ok(store)
}

/// Forgets a name. Returns true when the name existed.
pub fn forget(name: &str) -> bool {
    NAMES.lock().remove(name).is_some()
}

/// Keeps this library loaded. Otherwise Node unloads it when the last thread that uses it ends, and the names are lost.
fn keep_loaded() {
    napi::bindgen_prelude::retain_current_module_for_unload_safety();
}

/// Makes the error for wrong options. The message does not contain the wrong values.
fn wrong() -> Error {
    Error::invalid(
        "Correct the store's options: `max_components`, `max_hints_per_component`, `max_hints`, `max_bytes` and \
         `suggest_max` are whole numbers of 0 or more, `secret_guard` is true or false, `default_ttl` a text; there \
         are no others but `name` and `from_env`.",
    )
}
