//! Types of the standard libraries that hold others, and methods that pass those on.

use std::rc::Rc;

use crate::language::Language;

use super::{Args, Val};

/// The way in which a type from outside wraps another.
pub(super) enum Through {
    /// It is a value of its first argument: `Box<T>`, `Optional[T]`.
    First,
    /// The first argument itself: `type[T]`.
    TypeItself,
    /// It is a value of one argument, the rest being nothing: `Union[T, None]`.
    One,
    No,
}

/// Returns true if the pointers of Rust's standard library have their own method of this name, which comes before the
/// inner value's.
pub(super) fn is_of_pointers(method: &str) -> bool {
    matches!(method, "clone" | "as_ref" | "as_mut" | "borrow" | "borrow_mut" | "deref" | "deref_mut" | "clone_from")
}

pub(super) fn transparent(name: &str) -> Through {
    match name {
        "Box" | "Arc" | "Rc" | "Ref" | "RefMut" | "MutexGuard" | "RwLockReadGuard" | "RwLockWriteGuard" | "Cow"
        | "Pin" | "ManuallyDrop" | "Optional" | "Annotated" | "ClassVar" | "Final" | "Required" | "NotRequired"
        | "Readonly" | "Partial" | "NonNullable" | "NoInfer" | "LazyLock" | "Lazy" | "TypeGuard" => Through::First,
        "type" | "Type" => Through::TypeItself,
        "Union" => Through::One,
        _ => Through::No,
    }
}

/// Names that stand for something from outside without an import.
pub(super) fn known(language: Language, name: &str) -> bool {
    match language {
        Language::Rust => RUST.contains(&name),
        Language::Python => PYTHON.contains(&name),
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

/// Returns the value inside a value that has to be opened: a result, a promise.
pub(super) fn inner(of: &Val) -> Val {
    match of {
        Val::Outer(name, args) => match &**name {
            "Option" | "Result" | "Promise" | "PromiseLike" | "Future" | "Awaitable" | "Coroutine" | "Poll"
            | "LockResult" | "Iterator" | "Generator" | "AsyncIterator" | "AsyncGenerator" | "Iterable"
            | "ContextManager" => {
                // A coroutine names its result last, all others first.
                let at = if &**name == "Coroutine" { args.len().saturating_sub(1) } else { 0 };
                args.get(at).map_or_else(|| Val::Outer("?".into(), Rc::from([])), as_value)
            }
            _ => Val::Outer("?".into(), Rc::from([])),
        },
        other => other.clone(),
    }
}

/// Returns an item of a loop over a value from outside.
pub(super) fn each(of: &Val) -> Val {
    match of {
        Val::Outer(name, args) => match &**name {
            "dict" | "Dict" | "Mapping" | "MutableMapping" | "defaultdict" | "OrderedDict" => {
                args.first().map_or(Val::Unknown, as_value)
            }
            "HashMap" | "BTreeMap" | "Map" => Val::Outer("tuple".into(), args.clone()),
            _ => item(of),
        },
        _ => Val::Unknown,
    }
}

/// Returns an item of a value from outside, by its index or key.
pub(super) fn item(of: &Val) -> Val {
    match of {
        Val::Outer(name, args) => match &**name {
            "tuple" | "()" | "?" => Val::Outer("?".into(), Rc::from([])),
            "dict" | "Dict" | "Mapping" | "MutableMapping" | "defaultdict" | "HashMap" | "BTreeMap" | "Map"
            | "Record" | "OrderedDict" => args.get(1).map_or(Val::Unknown, as_value),
            _ => args.first().map_or(Val::Outer("?".into(), Rc::from([])), as_value),
        },
        _ => Val::Unknown,
    }
}

fn as_value(ty: &Val) -> Val {
    match ty {
        Val::OuterType(name, args) => match transparent(name) {
            Through::First => args.first().map_or(Val::Unknown, as_value),
            _ => Val::Outer(name.clone(), args.clone()),
        },
        Val::Def(id, args) => Val::Of(*id, args.clone()),
        Val::Any(all) => Val::OfAny(all.clone()),
        other => other.clone(),
    }
}

/// Resolves a method of a value from outside, as far as it passes on the inner values.
pub(super) fn member(language: Language, of: &str, args: &Args, name: &str) -> Option<Val> {
    let keep = |name: &str| Some(Val::OuterType(name.into(), args.clone()));
    let first = || args.first().cloned();
    match language {
        Language::Rust => match name {
            "unwrap" | "expect" | "unwrap_or" | "unwrap_or_default" | "unwrap_or_else" | "into_inner" | "borrow"
            | "borrow_mut" | "load" | "get_ref" | "deref" => given(&first()?),
            "ok" | "next" | "first" | "last" | "get" | "get_mut" | "pop" | "nth" | "find" | "first_mut"
            | "last_mut" | "peek" | "next_back" | "pop_front" | "pop_back" | "front" | "back" | "min_by_key"
            | "max_by_key" | "remove"
                if of != "HashMap" && of != "BTreeMap" =>
            {
                keep("Option")
            }
            "get" | "get_mut" | "remove" => Some(Val::OuterType("Option".into(), Rc::from([args.get(1)?.clone()]))),
            "values" | "values_mut" | "into_values" => {
                Some(Val::OuterType("Vec".into(), Rc::from([args.get(1)?.clone()])))
            }
            "lock" | "read" | "write" | "try_lock" => keep("LockResult"),
            "map_err" | "as_ref" | "as_mut" | "as_deref" | "as_deref_mut" | "clone" | "cloned" | "copied" | "ok_or"
            | "ok_or_else" | "iter" | "iter_mut" | "into_iter" | "rev" | "skip" | "take" | "filter" | "peekable"
            | "by_ref" | "or_else" | "or" | "drain" | "skip_while" | "take_while" | "chain" | "to_vec" | "as_slice"
            | "fuse" | "step_by" | "inspect" | "context" | "with_context" | "windows" | "to_owned" | "collect" => {
                keep(of)
            }
            _ => None,
        },
        Language::Python => match name {
            "get" | "pop" | "setdefault" | "popleft" | "__getitem__" => {
                given(&item(&Val::Outer(of.into(), args.clone())))
            }
            "values" => Some(Val::OuterType("list".into(), Rc::from([args.get(1)?.clone()]))),
            "items" => {
                let pair = Val::OuterType("tuple".into(), args.clone());
                Some(Val::OuterType("list".into(), Rc::from([pair])))
            }
            "keys" | "copy" => keep(of),
            _ => None,
        },
        _ if language.is_ecma() => match name {
            "values" if of == "Map" => Some(Val::OuterType("Iterable".into(), Rc::from([args.get(1)?.clone()]))),
            "find" | "pop" | "shift" | "at" | "get" => given(&item(&Val::Outer(of.into(), args.clone()))),
            "filter" | "slice" | "concat" | "reverse" | "sort" | "catch" | "finally" | "values" | "toSorted" => {
                keep(of)
            }
            _ => None,
        },
        _ => None,
    }
}

/// A function that gives a value: calling the type is a value of it.
fn given(value: &Val) -> Option<Val> {
    match as_value(value) {
        Val::Of(id, args) => Some(Val::Giving(Rc::new(Val::Of(id, args)))),
        Val::Unknown => None,
        other => Some(Val::Giving(Rc::new(other))),
    }
}
