//! Reads the environment from Python's `os.environ`.
//!
//! Python also changes C's environment. Rust must not read that one: without the interpreter's lock, it may read memory
//! that another thread frees.

use std::collections::HashMap;
use std::ffi::OsString;

use pyo3::prelude::*;
use pyo3::types::PyList;

/// Copies `os.environ`.
pub fn variables(py: Python<'_>) -> PyResult<HashMap<OsString, OsString>> {
    let environ = py.import("os")?.getattr("environ")?;
    // Copies the names first: other threads may delete some of them during the loop.
    let names = py.get_type::<PyList>().call1((&environ,))?.cast_into::<PyList>()?;
    let mut out = HashMap::with_capacity(names.len());
    for name in names {
        let value = environ.call_method1("get", (&name,))?;
        // The environment holds only text; a program may have put other objects into `os.environ`.
        if let (Ok(name), Ok(value)) = (name.extract(), value.extract()) {
            out.insert(name, value);
        }
    }
    Ok(out)
}
