//! Lowers syntax to the expressions that the facts store.

use tree_sitter::Node as Syntax;

use crate::facts::{Expr, ExprId, NameId};
use crate::language::{CodeLanguage, SyntaxShape};

use super::walk::TreeWalk;

/// Largest number of calls in a chain. The value of a longer chain is unknown.
const CHAIN_MAX: usize = 64;
/// Largest depth of nested types or alternatives.
const NESTING_MAX: u32 = 6;
const ARGS_MAX: usize = 6;

enum LowerStep {
    Member(NameId),
    Static(NameId),
    Call,
    Of,
    Inner,
    Item,
    Apply(ExprId),
}

impl TreeWalk<'_> {
    /// Finds a child by the name of its field. The name `""` means the first named child.
    pub fn find_child<'t>(&self, node: Syntax<'t>, field: &str) -> Option<Syntax<'t>> {
        if field.is_empty() {
            let mut child = node.named_child(0)?;
            while self.grammar.row_of(child).comment {
                child = child.next_named_sibling()?;
            }
            return Some(child);
        }
        self.child_by_field(node, field)
    }

    /// Finds a child by the name of its field.
    pub fn child_by_field<'t>(&self, node: Syntax<'t>, field: &str) -> Option<Syntax<'t>> {
        node.child_by_field_id(*self.grammar.fields.get(field)?)
    }

    pub fn lower_field(&mut self, node: Syntax<'_>, field: &str) -> ExprId {
        match self.find_child(node, field) {
            Some(child) => self.lower_expr(child),
            None => ExprId::NONE,
        }
    }

    /// Lowers an expression or type. Goes down along the receivers, and builds the expression on the way back.
    pub fn lower_expr(&mut self, node: Syntax<'_>) -> ExprId {
        let mut target = node;
        let mut steps = Vec::new();
        let mut value = loop {
            if steps.len() > CHAIN_MAX {
                return ExprId::NONE;
            }
            let Some(shape) = self.grammar.row_of(target).shape else { return ExprId::NONE };
            let (next, step) = match shape {
                SyntaxShape::Member(inner, name) => {
                    let name = self.find_child(target, name).map_or(NameId::NONE, |name| self.name_of(name));
                    (inner, Some(LowerStep::Member(name)))
                }
                SyntaxShape::Static(inner, name) => {
                    let name = self.find_child(target, name).map_or(NameId::NONE, |name| self.name_of(name));
                    (inner, Some(LowerStep::Static(name)))
                }
                SyntaxShape::Invoke(inner, name) => {
                    let Some(method) = self.find_child(target, name) else { return ExprId::NONE };
                    let name = self.name_of(method);
                    steps.push(LowerStep::Call);
                    if self.find_child(target, inner).is_none() {
                        break self.add_expr(Expr::Name(name));
                    }
                    (inner, Some(LowerStep::Member(name)))
                }
                SyntaxShape::CallOr(inner, own) => {
                    let other = own(self, target);
                    if !other.is_none() {
                        break other;
                    }
                    (inner, Some(LowerStep::Call))
                }
                SyntaxShape::Call(inner) => (inner, Some(LowerStep::Call)),
                SyntaxShape::Of(inner) => (inner, Some(LowerStep::Of)),
                SyntaxShape::Inner(inner) => (inner, Some(LowerStep::Inner)),
                SyntaxShape::Item(inner) => (inner, Some(LowerStep::Item)),
                SyntaxShape::Pass(inner) => (inner, None),
                SyntaxShape::Apply(inner, args) => {
                    let args = self.find_child(target, args).map_or(ExprId::NONE, |args| self.lower_all(args));
                    (inner, Some(LowerStep::Apply(args)))
                }
                leaf => break self.lower_leaf(target, leaf),
            };
            steps.extend(step);
            let Some(child) = self.find_child(target, next) else {
                // The path begins with its separator, as in `::name`.
                match steps.pop() {
                    Some(LowerStep::Static(name)) => break self.add_expr(Expr::Name(name)),
                    _ => return ExprId::NONE,
                }
            };
            target = child;
        };
        while let Some(step) = steps.pop() {
            if value.is_none() {
                return value;
            }
            value = self.add_expr(match step {
                LowerStep::Member(name) => Expr::Member(value, name),
                LowerStep::Static(name) => Expr::Static(value, name),
                LowerStep::Call => Expr::Call(value),
                LowerStep::Of => Expr::Of(value),
                LowerStep::Inner => Expr::Inner(value),
                LowerStep::Item => Expr::Item(value),
                LowerStep::Apply(args) => Expr::Apply(value, args),
            });
        }
        value
    }

    fn lower_leaf(&mut self, leaf: Syntax<'_>, shape: SyntaxShape) -> ExprId {
        match shape {
            SyntaxShape::Name if self.language == CodeLanguage::Rust && self.node_text(leaf) == "Self" => {
                self.add_expr(Expr::SelfType)
            }
            SyntaxShape::Name => {
                let name = self.name_of(leaf);
                if name.is_none() { ExprId::NONE } else { self.add_expr(Expr::Name(name)) }
            }
            SyntaxShape::Null => self.add_expr(Expr::Null),
            SyntaxShape::This => self.add_expr(Expr::This),
            SyntaxShape::Super => self.add_expr(Expr::Super),
            SyntaxShape::Literal(name) => self.add_literal(name),
            SyntaxShape::Tuple(name) => {
                let args = self.lower_all(leaf);
                let base = self.add_literal(name);
                self.add_expr(Expr::Apply(base, args))
            }
            SyntaxShape::Either(left, right) => {
                let (Some(left), Some(right)) = (self.find_child(leaf, left), self.find_child(leaf, right)) else {
                    return ExprId::NONE;
                };
                self.run_nested(|walk| {
                    let (left, right) = (walk.lower_expr(left), walk.lower_expr(right));
                    walk.add_either(left, right)
                })
            }
            SyntaxShape::Own(lower) => self.run_nested(|walk| lower(walk, leaf)),
            _ => ExprId::NONE,
        }
    }

    pub fn add_literal(&mut self, name: &str) -> ExprId {
        let name = self.names.intern_made(name);
        self.add_expr(Expr::Literal(name))
    }

    pub fn add_either(&mut self, left: ExprId, right: ExprId) -> ExprId {
        if left == right { left } else { self.add_expr(Expr::Either(left, right)) }
    }

    /// Runs a step that may recurse. If the nesting is deeper than `NESTING_MAX`, the value is unknown.
    pub fn run_nested(&mut self, run: impl FnOnce(&mut Self) -> ExprId) -> ExprId {
        if self.nesting >= NESTING_MAX {
            return ExprId::NONE;
        }
        self.nesting += 1;
        let out = run(self);
        self.nesting -= 1;
        out
    }

    /// Lowers the named children of a node as a list of arguments.
    pub fn lower_all(&mut self, node: Syntax<'_>) -> ExprId {
        self.run_nested(|walk| {
            let mut cursor = node.walk();
            let mut all = Vec::new();
            for child in node.named_children(&mut cursor).take(ARGS_MAX) {
                if child.kind() != "lifetime" && !walk.grammar.row_of(child).comment {
                    all.push(walk.lower_expr(child));
                }
            }
            walk.add_args(&all)
        })
    }

    pub fn add_args(&mut self, all: &[ExprId]) -> ExprId {
        all.iter().rev().fold(ExprId::NONE, |next, arg| self.add_expr(Expr::Args(*arg, next)))
    }

    /// Notes a call of `callee`, at the position of the called name.
    pub fn call_of(&mut self, callee: Syntax<'_>, macro_: bool) {
        let mut current = callee;
        for _ in 0..16 {
            let name = match self.grammar.row_of(current).shape {
                Some(SyntaxShape::Name) => Some(current),
                Some(SyntaxShape::Member(_, name) | SyntaxShape::Static(_, name)) => self.find_child(current, name),
                Some(SyntaxShape::Pass(field) | SyntaxShape::Apply(field, _)) => {
                    match self.find_child(current, field) {
                        Some(child) => {
                            current = child;
                            continue;
                        }
                        None => None,
                    }
                }
                _ => None,
            };
            if let Some(name) = name {
                let callee = self.lower_expr(current);
                let text = self.name_of(name);
                self.call(text, callee, name, macro_);
            }
            return;
        }
    }
}
