//! Nudge inside a Python process: the native half of the package `nudge`.
//!
//! The Python half (`python/nudge`) has the signatures. This half reads and writes Python objects and calls
//! [`nudge_client::Store`]. It never calls Python while it holds a lock of a store: before a call of the store it
//! copies the input from Python, and after the call it makes Python objects from the answer.

// The documentation and the signatures are written for Python.
#![allow(clippy::doc_markdown, clippy::doc_link_with_quotes, clippy::needless_pass_by_value, clippy::unused_self)]

mod context;
mod environ;
mod errors;
mod fork;
mod found;
mod json;
mod own;
mod store;
mod tools;
mod waiting;

use pyo3::prelude::*;

/// The native half of the package `nudge`.
#[pymodule]
mod _nudge {
    use nudge::ErrorKind;
    use pyo3::exceptions::PyImportError;
    use pyo3::prelude::*;
    use pyo3::sync::PyOnceLock;

    #[pymodule_export]
    use crate::context::PyContext;
    #[pymodule_export]
    use crate::fork::{after_fork_in_child, after_fork_in_parent, before_fork};
    #[pymodule_export]
    use crate::found::PyMatch;
    #[pymodule_export]
    use crate::own::own;
    #[pymodule_export]
    use crate::store::{Backend, NativeStore, NativeView, session};
    #[pymodule_export]
    use crate::tools::NativeTools;
    #[pymodule_export]
    use crate::waiting::Patience;

    /// Returns the names of the methods that every store answers, in the form for ``call``.
    ///
    /// >>> "nudge.get_hint" in nudge.methods()
    /// True
    #[pyfunction]
    fn methods() -> Vec<&'static str> {
        nudge::methods().into_iter().map(|method| method.name).collect()
    }

    /// Returns the JSON Schema of a method's params.
    #[pyfunction]
    fn params_schema<'py>(py: Python<'py>, method: &str) -> PyResult<Bound<'py, PyAny>> {
        let row = nudge::methods().into_iter().find(|row| row.name == method);
        let row = row.ok_or_else(|| crate::errors::raise(py, &nudge::unknown_method(method, &nudge::methods())))?;
        crate::json::parse(py, &(row.params)().to_string())
    }

    /// Returns every kind of error: the name of its class, its code and its reason.
    #[pyfunction]
    fn error_kinds() -> Vec<(String, i32, &'static str)> {
        ErrorKind::ALL.into_iter().map(|kind| (crate::errors::class_name(kind), kind.code(), kind.reason())).collect()
    }

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // Each interpreter has its own `sys`. The check below compares addresses; the `sys` of the first interpreter
        // stays alive here, so no other `sys` can get the same address.
        static FIRST: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
        let sys = module.py().import("sys")?;
        if !FIRST.get_or_init(module.py(), || sys.clone().unbind()).is(&sys) {
            return Err(PyImportError::new_err(
                "nudge is in use by another interpreter of this process; use it there, or in another process",
            ));
        }
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
