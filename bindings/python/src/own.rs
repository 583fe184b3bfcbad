//! Makes a store of this process from its options.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};

use nudge::Config;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};

use crate::environ::variables;
use crate::errors::{argument, invalid, raise};
use crate::store::Backend;

/// Makes an empty store in this process. `options` are the fields of `Config`; None means "not given".
#[pyfunction]
pub fn own(options: &Bound<'_, PyDict>, from_env: bool) -> PyResult<Backend> {
    let py = options.py();
    let refuse = |error: nudge::Error| raise(py, &error);
    let mut config = if from_env { of_environment(&variables(py)?).map_err(refuse)? } else { Config::default() };
    for (name, value) in options {
        let name = argument(&name, "name")?.to_owned();
        if value.is_none() {
            continue;
        }
        match name.as_str() {
            "max_components" => config.max_components = count(&name, &value)?,
            "max_hints_per_component" => config.max_hints_per_component = count(&name, &value)?,
            "max_hints" => config.max_hints = count(&name, &value)?,
            "max_bytes" => config.max_bytes = count(&name, &value)?,
            "suggest_max" => config.suggest_max = count(&name, &value)?,
            "secret_guard" => {
                let truth = value.cast::<PyBool>().map_err(|_| invalid(py, "secret_guard must be True or False."))?;
                config.secret_guard = truth.is_true();
            }
            "default_ttl" => config.default_ttl = argument(&value, &name)?.parse().map_err(refuse)?,
            _ => return Err(invalid(py, format!("There is no option {name}."))),
        }
    }
    Ok(Backend::own(config))
}

fn of_environment(vars: &HashMap<OsString, OsString>) -> Result<Config, nudge::Error> {
    Config::from_env(|name| vars.get(OsStr::new(name))?.to_str().map(str::to_owned))
}

fn count(name: &str, value: &Bound<'_, PyAny>) -> PyResult<usize> {
    let number = if value.is_instance_of::<PyBool>() { None } else { value.extract::<usize>().ok() };
    number.ok_or_else(|| invalid(value.py(), format!("{name} must be a whole number, 0 or more.")))
}
