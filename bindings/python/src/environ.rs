//! Reads environment variables from Python's `os.environ`.
//!
//! Rust must not read the environment of the C library: Python changes it, and without the interpreter's lock Rust
//! could read memory that another thread frees.

use std::collections::HashMap;
use std::ffi::OsString;

use pyo3::prelude::*;
use pyo3::types::PyList;

/// Copies `os.environ`.
pub fn variables(py: Python<'_>) -> PyResult<HashMap<OsString, OsString>> {
    let environ = py.import("os")?.getattr("environ")?;
    // Copies the names first, because other threads may delete names during the loop.
    let names = py.get_type::<PyList>().call1((&environ,))?.cast_into::<PyList>()?;
    let mut out = HashMap::with_capacity(names.len());
    for name in names {
        let value = environ.call_method1("get", (&name,))?;
        // The environment contains only text, but a program may have put other objects into `os.environ`.
        if let (Ok(name), Ok(value)) = (name.extract(), value.extract()) {
            out.insert(name, value);
        }
    }
    Ok(out)
}
