//! Converts Python objects to JSON and back.

use nudge::Error;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple, PyType};
use serde_json::value::RawValue;

use crate::errors::{invalid, raise, text};

/// The most levels of nesting that the core reads, counted from the params.
const MAX_DEPTH: usize = 64;

/// Parses JSON text with Python's own parser, which keeps integers of any size.
pub fn parse<'py>(py: Python<'py>, json: &str) -> PyResult<Bound<'py, PyAny>> {
    static LOADS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    LOADS.import(py, "json", "loads")?.call1((json,))
}

/// Reads the params of a call: an object, JSON text, or None for no params.
pub fn params(py: Python<'_>, value: Option<&Bound<'_, PyAny>>) -> PyResult<Box<RawValue>> {
    let json = match value {
        None => "{}".to_owned(),
        Some(value) => match value.cast::<PyString>() {
            Ok(json) => text(json)?.to_owned(),
            Err(_) => write(value)?,
        },
    };
    RawValue::from_string(json).map_err(|_| invalid(py, "`params` is no JSON text; pass a dict, or valid JSON."))
}

/// Writes a value as JSON. The value may be None, a bool, an int, a float, a str, a path, a list, a tuple, an instance
/// of a dataclass, or a mapping with string keys.
///
/// # Errors
/// `InvalidError` for any other value; any error that a mapping of the caller raises.
pub fn write(value: &Bound<'_, PyAny>) -> PyResult<String> {
    let mut out = Vec::new();
    put(value, &mut out, 1)?;
    // All parts of the output come from a `str`, so the output is UTF-8.
    String::from_utf8(out).map_err(|_| invalid(value.py(), "The value cannot be written as JSON."))
}

fn put(value: &Bound<'_, PyAny>, out: &mut Vec<u8>, depth: usize) -> PyResult<()> {
    let py = value.py();
    if value.is_none() {
        out.extend_from_slice(b"null");
    } else if let Ok(string) = value.cast::<PyString>() {
        put_text(string, out)?;
    } else if let Ok(truth) = value.cast::<PyBool>() {
        out.extend_from_slice(if truth.is_true() { b"true" } else { b"false" });
    } else if value.is_instance_of::<PyInt>() {
        put_int(value, out)?;
    } else if let Ok(number) = value.cast::<PyFloat>() {
        let number = number.value();
        if !number.is_finite() {
            return Err(invalid(py, "NaN and infinity have no place in JSON."));
        }
        serialized(&number, out);
    } else if depth > MAX_DEPTH {
        return Err(invalid(py, "The JSON is nested too deeply; 64 levels counted from `params` are the most."));
    } else if let Ok(list) = value.cast::<PyList>() {
        put_list(list.iter(), out, depth)?;
    } else if let Ok(tuple) = value.cast::<PyTuple>() {
        put_list(tuple.iter(), out, depth)?;
    } else if let Ok(mapping) = value.cast::<PyMapping>() {
        put_mapping(mapping, out, depth)?;
    } else if let Some(fields) = dataclass_fields(value)? {
        let fields: Vec<_> = fields.keys().into_iter().collect();
        put_object(
            fields.into_iter().map(|name| Ok((name.clone(), value.getattr(name.cast::<PyString>()?)?))),
            out,
            depth,
        )?;
    } else if let Some(path) = path(value)? {
        put_text(&path, out)?;
    } else {
        let kind = value.get_type().name().map_or_else(|_| "this type".into(), |name| name.to_string());
        return Err(invalid(
            py,
            format!("A value of type {kind} has no place in JSON; pass dicts, lists, strings, numbers."),
        ));
    }
    Ok(())
}

fn put_int(value: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> PyResult<()> {
    if let Ok(number) = value.extract::<i64>() {
        serialized(&number, out);
    } else if let Ok(number) = value.extract::<u64>() {
        serialized(&number, out);
    } else {
        return Err(invalid(value.py(), "An integer is too large; 2^53 - 1 is the most."));
    }
    Ok(())
}

fn put_text(string: &Bound<'_, PyString>, out: &mut Vec<u8>) -> PyResult<()> {
    serialized(text(string)?, out);
    Ok(())
}

fn put_list<'py>(items: impl Iterator<Item = Bound<'py, PyAny>>, out: &mut Vec<u8>, depth: usize) -> PyResult<()> {
    out.push(b'[');
    for (index, item) in items.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        put(&item, out, depth + 1)?;
    }
    out.push(b']');
    Ok(())
}

fn put_mapping(mapping: &Bound<'_, PyMapping>, out: &mut Vec<u8>, depth: usize) -> PyResult<()> {
    // Copies the items to a list first, because a dict may change while its values are written.
    let items = mapping.items()?;
    put_object(items.iter().map(|item| item.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()), out, depth)
}

fn put_object<'py>(
    items: impl Iterator<Item = PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)>>,
    out: &mut Vec<u8>,
    depth: usize,
) -> PyResult<()> {
    out.push(b'{');
    for (index, item) in items.enumerate() {
        let (name, value) = item?;
        if index > 0 {
            out.push(b',');
        }
        let name =
            name.cast::<PyString>().map_err(|_| invalid(value.py(), "The keys of a JSON object must be strings."))?;
        put_text(name, out)?;
        out.push(b':');
        put(&value, out, depth + 1)?;
    }
    out.push(b'}');
    Ok(())
}

/// Returns the fields of an instance of a dataclass. Returns `None` for any other value.
pub fn dataclass_fields<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyDict>>> {
    if value.is_instance_of::<PyType>() {
        return Ok(None);
    }
    let fields = value.getattr_opt(pyo3::intern!(value.py(), "__dataclass_fields__"))?;
    Ok(fields.and_then(|fields| fields.cast_into::<PyDict>().ok()))
}

/// Returns the text of a path object. Returns `None` for any other value.
pub fn path<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyString>>> {
    if value.is_instance_of::<PyType>() {
        return Ok(None);
    }
    let Some(fspath) = value.getattr_opt(pyo3::intern!(value.py(), "__fspath__"))? else { return Ok(None) };
    Ok(fspath.call0()?.cast_into::<PyString>().ok())
}

fn serialized(value: &(impl serde::Serialize + ?Sized), out: &mut Vec<u8>) {
    // Strings and finite numbers can always be serialized, and a `Vec` accepts every write.
    let _ = serde_json::to_writer(out, value);
}

/// Converts a result to Python objects, or an error to an exception.
pub fn answer(py: Python<'_>, result: Result<Box<RawValue>, Error>) -> PyResult<Bound<'_, PyAny>> {
    match result {
        Ok(result) => parse(py, result.get()),
        Err(error) => Err(raise(py, &error)),
    }
}
