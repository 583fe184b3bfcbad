//! Represents expressions, as far as they decide the target of a call.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use serde::{Deserialize, Serialize};

use super::names::{NameId, NameTable};
use super::number::{CompactNumber, to_number};

/// An expression of the file, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct ExprId(CompactNumber);

impl ExprId {
    /// The expression whose value is unknown.
    pub const NONE: Self = Self(CompactNumber::NONE);

    #[cfg(test)]
    pub fn from_number(number: u32) -> Self {
        Self(CompactNumber::new(number))
    }

    pub fn is_none(self) -> bool {
        self == Self::NONE
    }
}

/// The part of a value or type that matters for calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Expr {
    /// A name.
    Name(NameId),
    /// `of.name`: a member of a value.
    Member(ExprId, NameId),
    /// `of::name`: a member of a type or module.
    Static(ExprId, NameId),
    /// `of(..)`: the result of a call.
    Call(ExprId),
    /// A value of this type: an annotation, `new T`, `T { .. }`.
    Of(ExprId),
    /// An item of a container: an index.
    Item(ExprId),
    /// A part of a container, in a container of the same type: `x[1:]`.
    Slice(ExprId),
    /// The items of a loop, one by one; a map gives its keys, or pairs.
    Each(ExprId),
    /// The value inside: `await x`, `x?`, `Some(x) = ..`.
    Inner(ExprId),
    /// The value that `with` binds.
    Enter(ExprId),
    /// Either of two values.
    Either(ExprId, ExprId),
    /// A type with type arguments.
    Apply(ExprId, ExprId),
    /// An argument, and the list of the next ones.
    Args(ExprId, ExprId),
    /// `self`, `this`
    This,
    /// The class or type around the expression: `cls`, `Self`.
    SelfType,
    /// `super`: the bases of the class.
    Super,
    /// `None`, `null`
    Null,
    /// A number, a string, a list: a value of a type from outside, by that type's name.
    Literal(NameId),
    /// A function without a name, by its result.
    Function(ExprId),
    /// The type of a value.
    TypeOf(ExprId),
    /// A part of a tuple.
    Part(ExprId, CompactNumber),
}

/// The expressions of a file; each is stored once.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct ExprTable(Vec<Expr>);

impl ExprTable {
    pub fn get(&self, id: ExprId) -> Option<Expr> {
        self.0.get(id.0.get() as usize).copied()
    }

    /// Iterates over all expressions.
    pub fn iter(&self) -> impl Iterator<Item = Expr> {
        self.0.iter().copied()
    }

    pub fn memory_bytes(&self) -> usize {
        self.0.capacity() * size_of::<Expr>()
    }

    /// Returns a dotted path as written; empty for anything else.
    pub fn dotted_path(&self, id: ExprId, names: &NameTable) -> String {
        let mut parts = Vec::new();
        let mut current = id;
        while parts.len() < 32 {
            match self.get(current) {
                Some(Expr::Name(name)) => {
                    parts.push(("", names.get(name)));
                    break;
                }
                Some(Expr::Member(inner, name)) => {
                    parts.push((".", names.get(name)));
                    current = inner;
                }
                Some(Expr::Static(inner, name)) => {
                    parts.push(("::", names.get(name)));
                    current = inner;
                }
                Some(Expr::Apply(inner, _) | Expr::Of(inner)) => current = inner,
                Some(Expr::SelfType) => {
                    parts.push(("", "Self"));
                    break;
                }
                _ => break,
            }
        }
        parts.iter().rev().flat_map(|(sep, name)| [*sep, *name]).collect()
    }
}

/// Collects the expressions of a file while it is read.
#[derive(Default)]
pub(crate) struct ExprMaker {
    exprs: ExprTable,
    seen: HashMap<Expr, ExprId, FixedState>,
}

impl ExprMaker {
    pub fn add_expr(&mut self, expr: Expr) -> ExprId {
        let exprs = &mut self.exprs.0;
        *self.seen.entry(expr).or_insert_with(|| {
            exprs.push(expr);
            ExprId(CompactNumber::new(to_number(exprs.len() - 1)))
        })
    }

    pub fn get(&self, id: ExprId) -> Option<Expr> {
        self.exprs.get(id)
    }

    pub fn into_table(self) -> ExprTable {
        let mut exprs = self.exprs;
        exprs.0.shrink_to_fit();
        exprs
    }
}
