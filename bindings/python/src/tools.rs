//! Offers the tools of MCP to programs that call a model themselves.

use nudge_client::{ToolAnswer, Tools};
use pyo3::prelude::*;

use crate::context::read;
use crate::errors::{argument, raise};
use crate::json;
use crate::store::NativeStore;

/// The base class of `Tools`.
#[pyclass(frozen, subclass, module = "nudge._nudge")]
pub struct NativeTools(Tools);

#[pymethods]
impl NativeTools {
    #[new]
    fn new(py: Python<'_>, store: &NativeStore) -> PyResult<Self> {
        let tools = store.0.detached(py, Tools::of)?;
        tools.map(Self).map_err(|error| raise(py, &error))
    }

    /// The names of the tools.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.0.names()
    }

    /// The definitions for the `tools` of Anthropic's `messages.create`.
    fn anthropic<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::parse(py, &self.0.anthropic().to_string())
    }

    /// The definitions for the `tools` of OpenAI's `chat.completions.create`.
    fn openai<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::parse(py, &self.0.openai().to_string())
    }

    /// The definitions for the `tools` of OpenAI's `responses.create`.
    fn responses<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::parse(py, &self.0.responses().to_string())
    }

    /// Calls a tool. Returns its text, and true if the text is an error.
    fn _call(
        &self,
        py: Python<'_>,
        store: &NativeStore,
        context: Option<&Bound<'_, PyAny>>,
        name: &Bound<'_, PyAny>,
        arguments: &str,
    ) -> PyResult<(String, bool)> {
        let context = read(py, context)?;
        let (name, context) = (argument(name, "name")?, &*context);
        let answer = store.0.detached(py, |store| self.0.call(store, context, name, arguments))?;
        let ToolAnswer { text, is_error } = answer;
        Ok((text, is_error))
    }

    /// Answers a model's tool call in the form of the model's provider. Returns None when the model uses none of these
    /// tools.
    fn _answer<'py>(
        &self,
        py: Python<'py>,
        store: &NativeStore,
        context: Option<&Bound<'_, PyAny>>,
        said: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let context = read(py, context)?;
        let said = json::write(said)?;
        let context = &*context;
        let answer = store.0.detached(py, |store| self.0.answer(store, context, &said))?;
        answer.map(|answer| json::parse(py, &answer.to_string())).transpose()
    }
}
