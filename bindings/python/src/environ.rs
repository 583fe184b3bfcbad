//! The environment, as Python has it.
//!
//! Python also changes C's environment, which must not be read meanwhile: without the interpreter's lock, a reader may
//! read memory that another thread frees.

use std::collections::HashMap;
use std::ffi::OsString;

use pyo3::prelude::*;
use pyo3::types::PyList;

/// A copy of `os.environ`.
pub fn variables(py: Python<'_>) -> PyResult<HashMap<OsString, OsString>> {
    let environ = py.import("os")?.getattr("environ")?;
    // The names at once; then other threads may delete some.
    let names = py.get_type::<PyList>().call1((&environ,))?.cast_into::<PyList>()?;
    let mut out = HashMap::with_capacity(names.len());
    for name in names {
        let value = environ.call_method1("get", (&name,))?;
        // Only text can be in the environment; other values are objects that a program has put there.
        if let (Ok(name), Ok(value)) = (name.extract(), value.extract()) {
            out.insert(name, value);
        }
    }
    Ok(out)
}
