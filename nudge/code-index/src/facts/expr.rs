//! Expressions, as far as they tell the target of a call.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use serde::{Deserialize, Serialize};

use super::names::{NameId, NameTable};
use super::number::{CompactNumber, to_number};

/// An expression of the file, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct ExprId(CompactNumber);

impl ExprId {
    /// An expression that says nothing.
    pub const NONE: Self = Self(CompactNumber::NONE);

    #[cfg(test)]
    pub fn from_number(number: u32) -> Self {
        Self(CompactNumber::new(number))
    }

    pub fn is_none(self) -> bool {
        self == Self::NONE
    }
}

/// An expression in place of a value or a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Expr {
    /// A name.
    Name(NameId),
    /// `of.name`
    Member(ExprId, NameId),
    /// `of::name`
    Static(ExprId, NameId),
    /// `of(..)`
    Call(ExprId),
    /// A value of this type: an annotation, `new T`, `T { .. }`.
    Of(ExprId),
    /// An item that it holds: an index.
    Item(ExprId),
    /// Some of those it holds, held the same way: `x[1:]`.
    Slice(ExprId),
    /// The items of a loop, one by one: of a map its keys, or pairs.
    Each(ExprId),
    /// The value inside: `await x`, `x?`, `Some(x) = ..`.
    Inner(ExprId),
    /// The value that `with` binds.
    Enter(ExprId),
    /// Either of two.
    Either(ExprId, ExprId),
    /// A type with its arguments.
    Apply(ExprId, ExprId),
    /// An argument, and the next ones.
    Args(ExprId, ExprId),
    /// `self`, `this`
    This,
    /// The class or type around it: `cls`, `Self`.
    SelfType,
    /// `super`, the class before this one.
    Super,
    /// `None`, `null`
    Null,
    /// A number, a string, a list: of a type from outside, by its name.
    Literal(NameId),
    /// A function without a name, and its result.
    Function(ExprId),
    /// The type of a value.
    TypeOf(ExprId),
    /// The part of a tuple.
    Part(ExprId, CompactNumber),
}

/// The expressions of a file, each once.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct ExprTable(Vec<Expr>);

impl ExprTable {
    pub fn get(&self, id: ExprId) -> Option<Expr> {
        self.0.get(id.0.get() as usize).copied()
    }

    /// All of them.
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

/// The expressions of a file while it is read.
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
