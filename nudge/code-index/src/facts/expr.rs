//! Represents the expressions that can decide the target of a call.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use serde::{Deserialize, Serialize};

use super::names::{NameId, NameTable};
use super::number::{CompactNumber, to_number};

/// The number of an expression of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct ExprId(CompactNumber);

impl ExprId {
    /// An expression with an unknown value.
    pub const NONE: Self = Self(CompactNumber::NONE);

    #[cfg(test)]
    pub fn from_number(number: u32) -> Self {
        Self(CompactNumber::new(number))
    }

    pub fn is_none(self) -> bool {
        self == Self::NONE
    }
}

/// An expression or type, reduced to the parts that decide the target of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Expr {
    /// A name.
    Name(NameId),
    /// `x.name`: a member of a value.
    Member(ExprId, NameId),
    /// `x::name`: a member of a type or module.
    Static(ExprId, NameId),
    /// `x(..)`: the result of a call.
    Call(ExprId),
    /// A value of this type, by an annotation, `new T`, or `T { .. }`.
    Of(ExprId),
    /// An item of a container, by an index or key.
    Item(ExprId),
    /// A part of a container, which is a container of the same type: `x[1:]`.
    Slice(ExprId),
    /// The items of a container in a loop. A map gives its keys, or pairs of key and value.
    Each(ExprId),
    /// The value inside another one: `await x`, `x?`, `Some(x) = ..`.
    Inner(ExprId),
    /// The value that a `with` statement binds.
    Enter(ExprId),
    /// Either of two values. The code decides at run time which one.
    Either(ExprId, ExprId),
    /// A type with type arguments.
    Apply(ExprId, ExprId),
    /// An argument, and the list of the arguments after it.
    Args(ExprId, ExprId),
    /// `self`, `this`
    This,
    /// The class or type that contains the expression: `cls`, `Self`.
    SelfType,
    /// `super`: the bases of the class around the expression.
    Super,
    /// `None`, `null`
    Null,
    /// A number, a string or a list. It is a value of a type from outside the index, with the name of that type.
    Literal(NameId),
    /// A function without a name. The expression is its result.
    Function(ExprId),
    /// The type of a value.
    TypeOf(ExprId),
    /// The part of a tuple at a position.
    Part(ExprId, CompactNumber),
}

/// The expressions of a file. Each different expression is stored once.
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

    /// Returns the dotted path that an expression writes; empty if the expression is no path.
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

/// Collects the expressions of a file during extraction.
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
