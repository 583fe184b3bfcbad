//! From syntax to the expressions that are kept.

use tree_sitter::Node as Syntax;

use crate::facts::{Expr, ExprId, NameId};
use crate::language::{CodeLanguage, SyntaxShape};

use super::walk::TreeWalk;

/// A longer chain of calls says nothing.
const CHAIN_MAX: usize = 64;
/// Types within types, alternatives within alternatives.
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
    /// A child by field, the first named child for `""`.
    pub fn find_child<'t>(&self, node: Syntax<'t>, field: &str) -> Option<Syntax<'t>> {
        if field.is_empty() {
            let mut at = node.named_child(0)?;
            while self.grammar.row_of(at).comment {
                at = at.next_named_sibling()?;
            }
            return Some(at);
        }
        self.child_by_field(node, field)
    }

    /// A child by field.
    pub fn child_by_field<'t>(&self, node: Syntax<'t>, field: &str) -> Option<Syntax<'t>> {
        node.child_by_field_id(*self.grammar.fields.get(field)?)
    }

    pub fn lower_field(&mut self, node: Syntax<'_>, field: &str) -> ExprId {
        match self.find_child(node, field) {
            Some(child) => self.lower_expr(child),
            None => ExprId::NONE,
        }
    }

    /// Lowers an expression or type. Goes down the side of the receivers, then up again.
    pub fn lower_expr(&mut self, node: Syntax<'_>) -> ExprId {
        let mut at = node;
        let mut steps = Vec::new();
        let mut value = loop {
            if steps.len() > CHAIN_MAX {
                return ExprId::NONE;
            }
            let Some(shape) = self.grammar.row_of(at).shape else { return ExprId::NONE };
            let (next, step) = match shape {
                SyntaxShape::Member(of, name) => {
                    let name = self.find_child(at, name).map_or(NameId::NONE, |name| self.name_of(name));
                    (of, Some(LowerStep::Member(name)))
                }
                SyntaxShape::Static(of, name) => {
                    let name = self.find_child(at, name).map_or(NameId::NONE, |name| self.name_of(name));
                    (of, Some(LowerStep::Static(name)))
                }
                SyntaxShape::Invoke(of, name) => {
                    let Some(method) = self.find_child(at, name) else { return ExprId::NONE };
                    let name = self.name_of(method);
                    steps.push(LowerStep::Call);
                    if self.find_child(at, of).is_none() {
                        break self.add_expr(Expr::Name(name));
                    }
                    (of, Some(LowerStep::Member(name)))
                }
                SyntaxShape::CallOr(of, own) => {
                    let other = own(self, at);
                    if !other.is_none() {
                        break other;
                    }
                    (of, Some(LowerStep::Call))
                }
                SyntaxShape::Call(of) => (of, Some(LowerStep::Call)),
                SyntaxShape::Of(of) => (of, Some(LowerStep::Of)),
                SyntaxShape::Inner(of) => (of, Some(LowerStep::Inner)),
                SyntaxShape::Item(of) => (of, Some(LowerStep::Item)),
                SyntaxShape::Pass(of) => (of, None),
                SyntaxShape::Apply(of, args) => {
                    let args = self.find_child(at, args).map_or(ExprId::NONE, |args| self.lower_all(args));
                    (of, Some(LowerStep::Apply(args)))
                }
                leaf => break self.lower_leaf(at, leaf),
            };
            steps.extend(step);
            let Some(child) = self.find_child(at, next) else {
                // A path that begins with its separator.
                match steps.pop() {
                    Some(LowerStep::Static(name)) => break self.add_expr(Expr::Name(name)),
                    _ => return ExprId::NONE,
                }
            };
            at = child;
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

    fn lower_leaf(&mut self, at: Syntax<'_>, shape: SyntaxShape) -> ExprId {
        match shape {
            SyntaxShape::Name if self.language == CodeLanguage::Rust && self.node_text(at) == "Self" => {
                self.add_expr(Expr::SelfType)
            }
            SyntaxShape::Name => {
                let name = self.name_of(at);
                if name.is_none() { ExprId::NONE } else { self.add_expr(Expr::Name(name)) }
            }
            SyntaxShape::Null => self.add_expr(Expr::Null),
            SyntaxShape::This => self.add_expr(Expr::This),
            SyntaxShape::Super => self.add_expr(Expr::Super),
            SyntaxShape::Literal(name) => self.add_literal(name),
            SyntaxShape::Tuple(name) => {
                let args = self.lower_all(at);
                let of = self.add_literal(name);
                self.add_expr(Expr::Apply(of, args))
            }
            SyntaxShape::Either(left, right) => {
                let (Some(left), Some(right)) = (self.find_child(at, left), self.find_child(at, right)) else {
                    return ExprId::NONE;
                };
                self.run_nested(|walk| {
                    let (left, right) = (walk.lower_expr(left), walk.lower_expr(right));
                    walk.add_either(left, right)
                })
            }
            SyntaxShape::Own(lower) => self.run_nested(|walk| lower(walk, at)),
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

    /// Runs a step that may recurse, at most as deep as sensible code does.
    pub fn run_nested(&mut self, run: impl FnOnce(&mut Self) -> ExprId) -> ExprId {
        if self.nesting >= NESTING_MAX {
            return ExprId::NONE;
        }
        self.nesting += 1;
        let out = run(self);
        self.nesting -= 1;
        out
    }

    /// The named children as arguments.
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

    /// Notes a call of the given callee, with the place of its name.
    pub fn call_of(&mut self, callee: Syntax<'_>, macro_: bool) {
        let mut at = callee;
        for _ in 0..16 {
            let name = match self.grammar.row_of(at).shape {
                Some(SyntaxShape::Name) => Some(at),
                Some(SyntaxShape::Member(_, name) | SyntaxShape::Static(_, name)) => self.find_child(at, name),
                Some(SyntaxShape::Pass(of) | SyntaxShape::Apply(of, _)) => match self.find_child(at, of) {
                    Some(child) => {
                        at = child;
                        continue;
                    }
                    None => None,
                },
                _ => None,
            };
            if let Some(name) = name {
                let callee = self.lower_expr(at);
                let text = self.name_of(name);
                self.call(text, callee, name, macro_);
            }
            return;
        }
    }
}
