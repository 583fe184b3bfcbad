//! The environment, as Python has it.
//!
//! Python changes the one of C too, which must not be read meanwhile: who reads it without the
//! interpreter's lock reads what another thread is freeing.

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
        // What is no text of the system's is in no environment: it is in what somebody put in its place.
        if let (Ok(name), Ok(value)) = (name.extract(), value.extract()) {
            out.insert(name, value);
        }
    }
    Ok(out)
}
