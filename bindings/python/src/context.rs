//! Makes contexts from the objects that Python programs pass.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::LazyLock;

use nudge::{Context, ContextSpec, Os};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyDictMethods, PyList, PyListMethods, PyMapping, PyString, PyTuple, PyTupleMethods, PyType};

use crate::environ::variables;
use crate::errors::{invalid, raise, text};
use crate::json::path;

/// The context in which every field is unknown.
static NOWHERE: LazyLock<Context> = LazyLock::new(Context::default);

/// The context of a caller. A context is checked once and never changes, so it can be used any number of times.
///
/// Every field may be left out. A hint does not fit if its scope asks for a missing field. `cwd` is an absolute folder.
/// `os` is `linux`, `darwin` (or `macos`) or `windows`. `env` maps at most 256 names to values; `Context.detect()`
/// takes the whole environment. `files_open` lists paths; hints rank higher if their component is a part of one of
/// these paths.
///
/// Raises `InvalidError` for values that are not valid in a context. Every `context` argument also accepts a dict or
/// another mapping, but refuses a mapping with an unknown field.
///
/// >>> here = nudge.Context(cwd="/work/http-proxy", branch="dev", os="linux")
/// >>> here
/// Context(cwd='/work/http-proxy', branch='dev', os='linux')
#[pyclass(frozen, name = "Context", module = "nudge")]
pub struct PyContext(pub Context);

#[pymethods]
impl PyContext {
    #[new]
    #[pyo3(signature = (*, cwd=None, repo=None, branch=None, os=None, env=None, files_open=None))]
    fn new<'py>(
        py: Python<'py>,
        cwd: Option<&Bound<'py, PyAny>>,
        repo: Option<&Bound<'py, PyAny>>,
        branch: Option<&Bound<'py, PyAny>>,
        os: Option<&Bound<'py, PyAny>>,
        env: Option<&Bound<'py, PyAny>>,
        files_open: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Self> {
        let fields = [cwd, repo, branch, os, env, files_open];
        let mut count = 0;
        let spec = spec(py, |_| {
            count += 1;
            Ok(fields[count - 1].cloned())
        })?;
        Ok(Self(built(py, spec)?))
    }

    /// Detects the context of this process. Uses the folder `cwd`, or else the folder of the process. Reads repository
    /// and branch from git's files, and adds the system and the whole environment. A running session gets only the
    /// variables that scopes mention.
    ///
    /// Raises `InvalidError` for a relative `cwd`.
    ///
    /// >>> nudge.Context.detect("/").cwd
    /// '/'
    #[classmethod]
    #[pyo3(signature = (cwd=None))]
    fn detect(class: &Bound<'_, PyType>, cwd: Option<PathBuf>) -> PyResult<Self> {
        let py = class.py();
        let vars = variables(py)?;
        let found = py.detach(|| nudge_client::detect_from(cwd.as_deref(), &vars));
        found.map(Self).map_err(|error| raise(py, &error))
    }

    /// The folder in normal form, or None.
    #[getter]
    fn cwd(&self) -> Option<&str> {
        self.0.cwd()
    }

    /// The repository in canonical form, or None.
    #[getter]
    fn repo(&self) -> Option<String> {
        self.0.repo()
    }

    /// The branch, or None.
    #[getter]
    fn branch(&self) -> Option<&str> {
        self.0.branch()
    }

    /// `linux`, `darwin`, `windows`, or None.
    #[getter]
    fn os(&self) -> Option<&'static str> {
        self.0.os().map(Os::as_str)
    }

    /// The open files.
    #[getter]
    fn files_open<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.files_open())
    }

    /// The value of an environment variable in this context, or None.
    ///
    /// >>> nudge.Context(env={"CI": "1"}).getenv("CI")
    /// '1'
    fn getenv(&self, name: &Bound<'_, PyString>) -> PyResult<Option<String>> {
        Ok(self.0.env(text(name)?).map(str::to_owned))
    }

    /// Shows the context without its environment, which may contain secrets, and without the open files.
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let fields = [("cwd", self.0.cwd()), ("branch", self.0.branch()), ("os", self.os())];
        let repo = self.0.repo();
        let mut shown = Vec::new();
        for (name, value) in fields.into_iter().chain([("repo", repo.as_deref())]) {
            if let Some(value) = value {
                shown.push(format!("{name}={}", PyString::new(py, value).repr()?));
            }
        }
        Ok(format!("Context({})", shown.join(", ")))
    }

    fn __copy__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __deepcopy__(this: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        this
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("a Context cannot be pickled, it may hold the whole environment; send its fields"))
    }
}

/// Reads the context from an argument: None, a [`PyContext`], a mapping, or any object with the attributes of a
/// context.
pub fn read<'a>(py: Python<'_>, given: Option<&'a Bound<'_, PyAny>>) -> PyResult<Cow<'a, Context>> {
    let Some(given) = given else { return Ok(Cow::Borrowed(&NOWHERE)) };
    if let Ok(context) = given.cast::<PyContext>() {
        return Ok(Cow::Borrowed(&context.get().0));
    }
    let spec = if given.is_none() {
        return Ok(Cow::Borrowed(&NOWHERE));
    } else if let Ok(dict) = given.cast::<PyDict>() {
        for (name, _) in dict {
            known(&name)?;
        }
        spec(py, |name| dict.get_item(name))?
    } else if given.is_instance_of::<PyType>() {
        return Err(invalid(py, "context is a class; pass an instance of it."));
    } else if let Ok(mapping) = given.cast::<PyMapping>() {
        for name in mapping.keys()?.iter() {
            known(&name)?;
        }
        spec(py, |name| if mapping.contains(name)? { mapping.get_item(name).map(Some) } else { Ok(None) })?
    } else {
        // The object's class is not from this library, so its attributes may mean something else.
        let mut any = false;
        let spec = spec(py, |name| {
            let value = given.getattr_opt(name)?;
            any |= value.is_some();
            Ok(value)
        })?;
        if !any {
            return Err(invalid(
                py,
                "context must be a Context, a dict, or an object with cwd, repo, branch, os, env or files_open.",
            ));
        }
        spec
    };
    Ok(Cow::Owned(built(py, spec)?))
}

/// Refuses a name that is no field. Otherwise a misspelt field would lead to the answer for another context.
fn known(name: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = name.py();
    let name =
        name.cast::<PyString>().map_err(|_| invalid(py, "The fields of a context have names that are strings."))?;
    ContextSpec::check_field(text(name)?).map_err(|error| raise(py, &error))
}

fn built(py: Python<'_>, spec: ContextSpec) -> PyResult<Context> {
    spec.build().map_err(|error| raise(py, &error))
}

/// Reads the fields in the order of `Context`'s arguments.
fn spec<'py>(
    py: Python<'py>,
    mut field: impl FnMut(&Bound<'py, PyString>) -> PyResult<Option<Bound<'py, PyAny>>>,
) -> PyResult<ContextSpec> {
    let mut given = |name| field(name).map(|value| value.filter(|value| !is_absent(value)));
    let mut out = ContextSpec::default();
    if let Some(cwd) = given(intern!(py, "cwd"))? {
        out.cwd = Some(path_text(&cwd, "cwd")?);
    }
    if let Some(repo) = given(intern!(py, "repo"))? {
        out.repo = Some(field_text(&repo, "repo")?);
    }
    if let Some(branch) = given(intern!(py, "branch"))? {
        out.branch = Some(field_text(&branch, "branch")?);
    }
    if let Some(os) = given(intern!(py, "os"))? {
        out.os = Some(system(&os)?);
    }
    if let Some(env) = given(intern!(py, "env"))? {
        out.env = Some(env_field(&env)?);
    }
    if let Some(files) = given(intern!(py, "files_open"))? {
        out.files_open = paths(&files)?;
    }
    Ok(out)
}

/// Returns true for a value that means "not given": None, or an empty list or dict, as in JSON.
fn is_absent(value: &Bound<'_, PyAny>) -> bool {
    value.is_none()
        || value.cast::<PyList>().is_ok_and(PyListMethods::is_empty)
        || value.cast::<PyTuple>().is_ok_and(PyTupleMethods::is_empty)
        || value.cast::<PyDict>().is_ok_and(PyDictMethods::is_empty)
}

fn field_text(value: &Bound<'_, PyAny>, name: &str) -> PyResult<String> {
    match value.cast::<PyString>() {
        Ok(string) => Ok(text(string)?.to_owned()),
        Err(_) => Err(invalid(value.py(), format!("context.{name} must be a string."))),
    }
}

fn path_text(value: &Bound<'_, PyAny>, name: &str) -> PyResult<String> {
    match path(value)? {
        Some(path) => Ok(text(&path)?.to_owned()),
        None => field_text(value, name),
    }
}

fn system(value: &Bound<'_, PyAny>) -> PyResult<Os> {
    let name = field_text(value, "os")?;
    let name = if name == "macos" { Os::Darwin.as_str() } else { name.as_str() };
    let os = Os::ALL.into_iter().find(|os| os.as_str() == name);
    os.ok_or_else(|| invalid(value.py(), "context.os must be linux, darwin (or macos) or windows."))
}

fn env_field(value: &Bound<'_, PyAny>) -> PyResult<HashMap<String, Option<String>>> {
    let py = value.py();
    let mapping = value.cast::<PyMapping>().map_err(|_| invalid(py, "context.env must map names to values."))?;
    let items = mapping.items()?;
    let mut out = HashMap::with_capacity(items.len());
    for item in items {
        let (name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
        let value = if value.is_none() { None } else { Some(field_text(&value, "env")?) };
        out.insert(field_text(&name, "env")?, value);
    }
    Ok(out)
}

fn paths(value: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    if let Ok(list) = value.cast::<PyList>() {
        list.iter().map(|path| path_text(&path, "files_open")).collect()
    } else if let Ok(tuple) = value.cast::<PyTuple>() {
        tuple.iter().map(|path| path_text(&path, "files_open")).collect()
    } else {
        Err(invalid(value.py(), "context.files_open must be a list of paths."))
    }
}
