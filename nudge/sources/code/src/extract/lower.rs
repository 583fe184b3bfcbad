//! From syntax to the expressions that are kept.

use tree_sitter::Node as Syntax;

use crate::facts::{Expr, ExprId, Name};
use crate::language::{Language, Shape};

use super::walk::Walk;

/// A longer chain of calls says nothing.
const CHAIN_MAX: usize = 64;
/// Types within types, alternatives within alternatives.
const NESTING_MAX: u32 = 6;
const ARGS_MAX: usize = 6;

enum Step {
    Member(Name),
    Static(Name),
    Call,
    Of,
    Inner,
    Item,
    Apply(ExprId),
}

impl Walk<'_> {
    /// A child by field, the first named child for `""`.
    pub fn child<'t>(&self, node: Syntax<'t>, field: &str) -> Option<Syntax<'t>> {
        if field.is_empty() {
            let mut at = node.named_child(0)?;
            while self.grammar.row(at).comment {
                at = at.next_named_sibling()?;
            }
            return Some(at);
        }
        self.get(node, field)
    }

    /// A child by field.
    pub fn get<'t>(&self, node: Syntax<'t>, field: &str) -> Option<Syntax<'t>> {
        node.child_by_field_id(*self.grammar.fields.get(field)?)
    }

    pub fn lower_field(&mut self, node: Syntax<'_>, field: &str) -> ExprId {
        match self.child(node, field) {
            Some(child) => self.lower(child),
            None => ExprId::NONE,
        }
    }

    /// Lowers an expression or type. Goes down the side of the receivers, then up again.
    pub fn lower(&mut self, node: Syntax<'_>) -> ExprId {
        let mut at = node;
        let mut steps = Vec::new();
        let mut value = loop {
            if steps.len() > CHAIN_MAX {
                return ExprId::NONE;
            }
            let Some(shape) = self.grammar.row(at).shape else { return ExprId::NONE };
            let (next, step) = match shape {
                Shape::Member(of, name) => {
                    let name = self.child(at, name).map_or(Name::NONE, |name| self.name_of(name));
                    (of, Some(Step::Member(name)))
                }
                Shape::Static(of, name) => {
                    let name = self.child(at, name).map_or(Name::NONE, |name| self.name_of(name));
                    (of, Some(Step::Static(name)))
                }
                Shape::Invoke(of, name) => {
                    let Some(method) = self.child(at, name) else { return ExprId::NONE };
                    let name = self.name_of(method);
                    steps.push(Step::Call);
                    if self.child(at, of).is_none() {
                        break self.expr(Expr::Name(name));
                    }
                    (of, Some(Step::Member(name)))
                }
                Shape::CallOr(of, own) => {
                    let other = own(self, at);
                    if !other.is_none() {
                        break other;
                    }
                    (of, Some(Step::Call))
                }
                Shape::Call(of) => (of, Some(Step::Call)),
                Shape::Of(of) => (of, Some(Step::Of)),
                Shape::Inner(of) => (of, Some(Step::Inner)),
                Shape::Item(of) => (of, Some(Step::Item)),
                Shape::Pass(of) => (of, None),
                Shape::Apply(of, args) => {
                    let args = self.child(at, args).map_or(ExprId::NONE, |args| self.lower_all(args));
                    (of, Some(Step::Apply(args)))
                }
                leaf => break self.leaf(at, leaf),
            };
            steps.extend(step);
            let Some(child) = self.child(at, next) else {
                // A path that begins with its separator.
                match steps.pop() {
                    Some(Step::Static(name)) => break self.expr(Expr::Name(name)),
                    _ => return ExprId::NONE,
                }
            };
            at = child;
        };
        while let Some(step) = steps.pop() {
            if value.is_none() {
                return value;
            }
            value = self.expr(match step {
                Step::Member(name) => Expr::Member(value, name),
                Step::Static(name) => Expr::Static(value, name),
                Step::Call => Expr::Call(value),
                Step::Of => Expr::Of(value),
                Step::Inner => Expr::Inner(value),
                Step::Item => Expr::Item(value),
                Step::Apply(args) => Expr::Apply(value, args),
            });
        }
        value
    }

    fn leaf(&mut self, at: Syntax<'_>, shape: Shape) -> ExprId {
        match shape {
            Shape::Name if self.language == Language::Rust && self.text(at) == "Self" => self.expr(Expr::SelfType),
            Shape::Name => {
                let name = self.name_of(at);
                if name.is_none() { ExprId::NONE } else { self.expr(Expr::Name(name)) }
            }
            Shape::Null => self.expr(Expr::Null),
            Shape::This => self.expr(Expr::This),
            Shape::Super => self.expr(Expr::Super),
            Shape::Literal(name) => self.literal(name),
            Shape::Tuple(name) => {
                let args = self.lower_all(at);
                let of = self.literal(name);
                self.expr(Expr::Apply(of, args))
            }
            Shape::Either(left, right) => {
                let (Some(left), Some(right)) = (self.child(at, left), self.child(at, right)) else {
                    return ExprId::NONE;
                };
                self.deeper(|walk| {
                    let (left, right) = (walk.lower(left), walk.lower(right));
                    walk.either(left, right)
                })
            }
            Shape::Own(lower) => self.deeper(|walk| lower(walk, at)),
            _ => ExprId::NONE,
        }
    }

    pub fn literal(&mut self, name: &str) -> ExprId {
        let name = self.names.made(name);
        self.expr(Expr::Literal(name))
    }

    pub fn either(&mut self, left: ExprId, right: ExprId) -> ExprId {
        if left == right { left } else { self.expr(Expr::Either(left, right)) }
    }

    /// Runs a step that may recurse, at most as deep as sensible code does.
    pub fn deeper(&mut self, run: impl FnOnce(&mut Self) -> ExprId) -> ExprId {
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
        self.deeper(|walk| {
            let mut cursor = node.walk();
            let mut all = Vec::new();
            for child in node.named_children(&mut cursor).take(ARGS_MAX) {
                if child.kind() != "lifetime" && !walk.grammar.row(child).comment {
                    all.push(walk.lower(child));
                }
            }
            walk.args(&all)
        })
    }

    pub fn args(&mut self, all: &[ExprId]) -> ExprId {
        all.iter().rev().fold(ExprId::NONE, |next, arg| self.expr(Expr::Args(*arg, next)))
    }

    /// Notes a call of the given callee, with the place of its name.
    pub fn call_of(&mut self, callee: Syntax<'_>, macro_: bool) {
        let mut at = callee;
        for _ in 0..16 {
            let name = match self.grammar.row(at).shape {
                Some(Shape::Name) => Some(at),
                Some(Shape::Member(_, name) | Shape::Static(_, name)) => self.child(at, name),
                Some(Shape::Pass(of) | Shape::Apply(of, _)) => match self.child(at, of) {
                    Some(child) => {
                        at = child;
                        continue;
                    }
                    None => None,
                },
                _ => None,
            };
            if let Some(name) = name {
                let callee = self.lower(at);
                let text = self.name_of(name);
                self.call(text, callee, name, macro_);
            }
            return;
        }
    }
}
