//! Lists standard types that wrap other types, and their methods that return the wrapped ones.

use std::rc::Rc;

use crate::language::CodeLanguage;

use super::{Args, ExprValue};

/// The way in which a type from outside the index wraps another type.
pub(super) enum WrapperKind {
    /// The type contains a value of its first argument: `Box<T>`, `Optional[T]`.
    First,
    /// The type is the first argument itself: `type[T]`.
    TypeItself,
    /// The type contains a value of its only argument that does not mean nothing: `Union[T, None]`.
    One,
    No,
}

/// Returns true if the pointer types of Rust's standard library have a method with this name. Such a method takes
/// precedence over one of the inner value.
pub(super) fn is_of_pointers(method: &str) -> bool {
    matches!(method, "clone" | "as_ref" | "as_mut" | "borrow" | "borrow_mut" | "deref" | "deref_mut" | "clone_from")
}

pub(super) fn wrapper_kind(name: &str) -> WrapperKind {
    match name {
        "Box" | "Arc" | "Rc" | "Ref" | "RefMut" | "MutexGuard" | "RwLockReadGuard" | "RwLockWriteGuard" | "Cow"
        | "Pin" | "ManuallyDrop" | "Optional" | "Annotated" | "ClassVar" | "Final" | "Required" | "NotRequired"
        | "Readonly" | "Partial" | "NonNullable" | "NoInfer" | "LazyLock" | "Lazy" | "TypeGuard" => WrapperKind::First,
        "type" | "Type" => WrapperKind::TypeItself,
        "Union" => WrapperKind::One,
        _ => WrapperKind::No,
    }
}

/// Returns true for names from outside the index that code can use without an import.
pub(super) fn is_known_name(language: CodeLanguage, name: &str) -> bool {
    match language {
        CodeLanguage::Rust => RUST.contains(&name),
        CodeLanguage::Python => PYTHON.contains(&name),
        _ => language.is_ecma() && ECMA.contains(&name),
    }
}

#[rustfmt::skip]
const RUST: &[&str] = &[
    "AsRef", "Box", "Clone", "Copy", "Default", "Drop", "Err", "Fn", "FnMut", "FnOnce", "From", "Into", "IntoIterator",
    "Iterator", "None", "Ok", "Option", "Result", "Send", "Some", "String", "Sync", "ToString", "Vec", "alloc", "bool",
    "char", "core", "i32", "i64", "std", "str", "u16", "u32", "u64", "u8", "usize",
];

#[rustfmt::skip]
const PYTHON: &[&str] = &[
    "BaseException", "Exception", "KeyError", "LookupError", "OSError", "RuntimeError", "TypeError", "ValueError", "bool",
    "bytearray", "bytes", "dict", "enumerate", "filter", "float", "frozenset", "getattr", "int", "isinstance", "iter",
    "len", "list", "map", "memoryview", "object", "open", "print", "property", "range", "repr", "reversed", "set",
    "sorted", "str", "tuple", "type", "zip",
];

#[rustfmt::skip]
const ECMA: &[&str] = &[
    "Array", "AsyncIterable", "Boolean", "Date", "Error", "Function", "Iterable", "IterableIterator", "JSON", "Map", "Math",
    "NoInfer", "NonNullable", "Number", "Object", "Partial", "Promise", "ReadonlyArray", "ReadonlyMap", "ReadonlySet",
    "Readonly", "Record", "RegExp", "Required", "Set", "String", "Symbol", "TypeError", "URL", "Uint8Array", "WeakMap",
    "WeakSet", "console", "globalThis",
];

/// Returns the value inside a wrapper, such as a result or a promise.
pub(super) fn inner_value(value: &ExprValue) -> ExprValue {
    match value {
        ExprValue::Outer(name, args) => match &**name {
            "Option" | "Result" | "Promise" | "PromiseLike" | "Future" | "Awaitable" | "Coroutine" | "Poll"
            | "LockResult" | "Iterator" | "Generator" | "AsyncIterator" | "AsyncGenerator" | "Iterable"
            | "ContextManager" => {
                // The result of a `Coroutine` is the last type argument. For all other types it is the first.
                let index = if &**name == "Coroutine" { args.len().saturating_sub(1) } else { 0 };
                args.get(index).map_or_else(|| ExprValue::Outer("?".into(), Rc::from([])), as_value)
            }
            _ => ExprValue::Outer("?".into(), Rc::from([])),
        },
        other => other.clone(),
    }
}

/// Returns the item that a loop over a value from outside the index gives.
pub(super) fn each_value(value: &ExprValue) -> ExprValue {
    match value {
        ExprValue::Outer(name, args) => match &**name {
            "dict" | "Dict" | "Mapping" | "MutableMapping" | "defaultdict" | "OrderedDict" => {
                args.first().map_or(ExprValue::Unknown, as_value)
            }
            "HashMap" | "BTreeMap" | "Map" => ExprValue::Outer("tuple".into(), args.clone()),
            _ => item_value(value),
        },
        _ => ExprValue::Unknown,
    }
}

/// Returns an item of a value from outside the index, as an index or a key gives it.
pub(super) fn item_value(value: &ExprValue) -> ExprValue {
    match value {
        ExprValue::Outer(name, args) => match &**name {
            "tuple" | "()" | "?" => ExprValue::Outer("?".into(), Rc::from([])),
            "dict" | "Dict" | "Mapping" | "MutableMapping" | "defaultdict" | "HashMap" | "BTreeMap" | "Map"
            | "Record" | "OrderedDict" => args.get(1).map_or(ExprValue::Unknown, as_value),
            _ => args.first().map_or(ExprValue::Outer("?".into(), Rc::from([])), as_value),
        },
        _ => ExprValue::Unknown,
    }
}

fn as_value(ty: &ExprValue) -> ExprValue {
    match ty {
        ExprValue::OuterType(name, args) => match wrapper_kind(name) {
            WrapperKind::First => args.first().map_or(ExprValue::Unknown, as_value),
            _ => ExprValue::Outer(name.clone(), args.clone()),
        },
        ExprValue::Def(id, args) => ExprValue::Of(*id, args.clone()),
        ExprValue::Any(all) => ExprValue::OfAny(all.clone()),
        other => other.clone(),
    }
}

/// Resolves a method of a value from outside the index, if the method returns inner values.
pub(super) fn member_value(language: CodeLanguage, type_name: &str, args: &Args, name: &str) -> Option<ExprValue> {
    let keep = |name: &str| Some(ExprValue::OuterType(name.into(), args.clone()));
    let first = || args.first().cloned();
    match language {
        CodeLanguage::Rust => match name {
            "unwrap" | "expect" | "unwrap_or" | "unwrap_or_default" | "unwrap_or_else" | "into_inner" | "borrow"
            | "borrow_mut" | "load" | "get_ref" | "deref" => function_result(&first()?),
            "ok" | "next" | "first" | "last" | "get" | "get_mut" | "pop" | "nth" | "find" | "first_mut"
            | "last_mut" | "peek" | "next_back" | "pop_front" | "pop_back" | "front" | "back" | "min_by_key"
            | "max_by_key" | "remove"
                if type_name != "HashMap" && type_name != "BTreeMap" =>
            {
                keep("Option")
            }
            "get" | "get_mut" | "remove" => {
                Some(ExprValue::OuterType("Option".into(), Rc::from([args.get(1)?.clone()])))
            }
            "values" | "values_mut" | "into_values" => {
                Some(ExprValue::OuterType("Vec".into(), Rc::from([args.get(1)?.clone()])))
            }
            "lock" | "read" | "write" | "try_lock" => keep("LockResult"),
            "map_err" | "as_ref" | "as_mut" | "as_deref" | "as_deref_mut" | "clone" | "cloned" | "copied" | "ok_or"
            | "ok_or_else" | "iter" | "iter_mut" | "into_iter" | "rev" | "skip" | "take" | "filter" | "peekable"
            | "by_ref" | "or_else" | "or" | "drain" | "skip_while" | "take_while" | "chain" | "to_vec" | "as_slice"
            | "fuse" | "step_by" | "inspect" | "context" | "with_context" | "windows" | "to_owned" | "collect" => {
                keep(type_name)
            }
            _ => None,
        },
        CodeLanguage::Python => match name {
            "get" | "pop" | "setdefault" | "popleft" | "__getitem__" => {
                function_result(&item_value(&ExprValue::Outer(type_name.into(), args.clone())))
            }
            "values" => Some(ExprValue::OuterType("list".into(), Rc::from([args.get(1)?.clone()]))),
            "items" => {
                let pair = ExprValue::OuterType("tuple".into(), args.clone());
                Some(ExprValue::OuterType("list".into(), Rc::from([pair])))
            }
            "keys" | "copy" => keep(type_name),
            _ => None,
        },
        _ if language.is_ecma() => match name {
            "values" if type_name == "Map" => {
                Some(ExprValue::OuterType("Iterable".into(), Rc::from([args.get(1)?.clone()])))
            }
            "find" | "pop" | "shift" | "at" | "get" => {
                function_result(&item_value(&ExprValue::Outer(type_name.into(), args.clone())))
            }
            "filter" | "slice" | "concat" | "reverse" | "sort" | "catch" | "finally" | "values" | "toSorted" => {
                keep(type_name)
            }
            _ => None,
        },
        _ => None,
    }
}

/// Returns the result of a function from outside the index. A call of a type returns a value of that type.
fn function_result(value: &ExprValue) -> Option<ExprValue> {
    match as_value(value) {
        ExprValue::Of(id, args) => Some(ExprValue::Giving(Rc::new(ExprValue::Of(id, args)))),
        ExprValue::Unknown => None,
        other => Some(ExprValue::Giving(Rc::new(other))),
    }
}
