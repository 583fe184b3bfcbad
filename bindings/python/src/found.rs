//! The result of `get`.

use nudge::HintValue;
use nudge_client::FoundHint;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use serde_json::value::to_raw_value;

use crate::errors::{invalid, raise};
use crate::json::parse;

/// The most characters of a value that `repr` shows.
const MAX_SHOWN: usize = 200;

/// A hint that fits, with the reasons. It cannot be changed. The texts are rendered on first use.
///
/// >>> with nudge.Store() as store:
/// ...     _ = store.set("api", "build", "make api", priority=9)
/// ...     found = store.get("api", "build")
/// >>> found
/// Match(component='api', key='build', value='make api', score=0.3800)
/// >>> found.text
/// 'make api'
/// >>> found.reasons
/// ('no scope: applies everywhere', 'priority 9/10')
/// >>> round(found.parts["priority"], 4)
/// 0.18
#[pyclass(frozen, name = "Match", module = "nudge")]
pub struct PyMatch(pub FoundHint);

#[pymethods]
impl PyMatch {
    /// The component.
    #[getter]
    fn component<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        PyString::new(py, self.0.component())
    }

    /// The key.
    #[getter]
    fn key<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        PyString::new(py, self.0.key())
    }

    /// The value: a str, or a dict with its `type`. A secret value is complete, too.
    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.0.value() {
            HintValue::Text(text) => Ok(PyString::new(py, text).into_any()),
            value => parse(py, written(py, value)?.get()),
        }
    }

    /// The value's text: the str, or the `cmd`, `abs`, `body` or compact JSON `data` of the dict.
    #[getter]
    fn text<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        PyString::new(py, self.0.text())
    }

    /// The score, from 0 to 1; a higher score is better.
    #[getter]
    fn score(&self) -> f64 {
        self.0.score()
    }

    /// The terms of the score, by name.
    #[getter]
    fn parts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let out = PyDict::new(py);
        for (name, part) in self.0.parts().iter() {
            out.set_item(name, part)?;
        }
        Ok(out)
    }

    /// The reasons for the match and the score.
    #[getter]
    fn reasons<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.reasons())
    }

    /// The whole hint, as `nudge.get_hint` returns it.
    #[getter]
    fn hint<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        parse(py, self.0.hint().map_err(|error| raise(py, &error))?.get())
    }

    /// The digest of the hint's scope; `""` when the hint applies everywhere.
    #[getter]
    fn variant<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        PyString::new(py, self.0.variant())
    }

    /// The number of times that the hint was set, for `if_match_version`.
    #[getter]
    fn version(&self) -> u64 {
        self.0.version()
    }

    /// Returns the answer of `nudge.get_hint`: `hint` and `match_explain`. Numbers have four decimals.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let explain = nudge::MatchExplain {
            matched: true,
            score: self.0.score(),
            parts: self.0.parts(),
            reasons: self.0.reasons(),
        };
        let out = PyDict::new(py);
        out.set_item("hint", self.hint(py)?)?;
        out.set_item("match_explain", parse(py, written(py, &explain)?.get())?)?;
        Ok(out)
    }

    /// Hides a secret value, and cuts a long value.
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let text = |text: &str| PyString::new(py, text).repr();
        let value = if self.0.is_secret() { text("[secret]")? } else { self.value(py)?.repr()? };
        let value = value.to_str()?;
        let shown: String = value.chars().take(MAX_SHOWN).collect();
        let rest = if shown.len() < value.len() { "..." } else { "" };
        let (component, key) = (text(self.0.component())?, text(self.0.key())?);
        Ok(format!("Match(component={component}, key={key}, value={shown}{rest}, score={:.4})", self.0.score()))
    }

    fn __copy__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __deepcopy__(this: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        this
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("a Match cannot be pickled; send match.to_dict()"))
    }
}

fn written(py: Python<'_>, value: &impl serde::Serialize) -> PyResult<Box<serde_json::value::RawValue>> {
    to_raw_value(value).map_err(|_| invalid(py, "The hint cannot be written as JSON."))
}
