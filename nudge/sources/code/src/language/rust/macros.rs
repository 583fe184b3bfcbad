//! Macros: their definitions, and the calls that stand among the tokens of their arguments.

use tree_sitter::Node as Syntax;

use crate::extract::{Draft, Walk};
use crate::facts::{Expr, ExprId, Kind, flag};

pub(super) fn definition(walk: &mut Walk<'_>, node: Syntax<'_>) {
    walk.skip = true;
    let exported = walk.marks.iter().any(|mark| mark.contains("macro_export"));
    let Some(name) = node.child_by_field_name("name") else { return };
    let name = walk.name_of(name);
    if name.is_none() {
        return;
    }
    let mut flags = super::flags(walk, node);
    if exported {
        flags |= flag::DEFAULT;
    }
    let doc = super::doc(walk, node);
    walk.node(&Draft { kind: Kind::Macro, name, whole: node, body: node.named_child(1), flags, doc, bare: true });
}

pub(super) fn invocation(walk: &mut Walk<'_>, node: Syntax<'_>) {
    if let Some(macro_) = node.child_by_field_name("macro") {
        walk.call_of(macro_, true);
    }
}

/// What a macro gives, for those whose name says it.
pub(super) fn value<'a>(walk: &mut Walk<'a>, node: Syntax<'_>) -> ExprId {
    let name = node.child_by_field_name("macro").map_or("", |name| walk.text(name));
    match name {
        "format" | "concat" | "stringify" | "env" => walk.literal("str"),
        "vec" => walk.literal("Vec"),
        "panic" | "unreachable" | "todo" | "unimplemented" | "bail" => walk.expr(Expr::Null),
        _ => ExprId::NONE,
    }
}

/// Calls among tokens: names, dots and parentheses are what they are elsewhere.
pub(super) fn tokens(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let mut cursor = node.walk();
    let mut chain = ExprId::NONE;
    let mut last: Option<Syntax<'_>> = None;
    let mut joint = Joint::None;
    for token in node.children(&mut cursor) {
        match token.kind() {
            "identifier" | "self" | "super" | "crate" => {
                let this = token.kind() == "self" && joint == Joint::None;
                let own = walk.text(token) == "Self";
                let name = walk.name_of(token);
                chain = match joint {
                    Joint::Dot if !chain.is_none() => walk.expr(Expr::Member(chain, name)),
                    Joint::Path if !chain.is_none() => walk.expr(Expr::Static(chain, name)),
                    Joint::Dot | Joint::Path => ExprId::NONE,
                    Joint::None if this => walk.expr(Expr::This),
                    Joint::None if own => walk.expr(Expr::SelfType),
                    Joint::None => walk.expr(Expr::Name(name)),
                };
                last = Some(token);
                joint = Joint::None;
            }
            "token_tree" => {
                let call = walk.text(token).starts_with('(');
                if let (true, Some(at), Joint::None, false) = (call, last, joint, chain.is_none()) {
                    let name = walk.name_of(at);
                    walk.call(name, chain, at, false);
                    chain = walk.expr(Expr::Call(chain));
                } else {
                    chain = ExprId::NONE;
                }
                last = None;
                joint = Joint::None;
            }
            "." => joint = Joint::Dot,
            "::" => joint = Joint::Path,
            "?" if !chain.is_none() => chain = walk.expr(Expr::Inner(chain)),
            "!" if last.is_some() && joint == Joint::None => {
                if let Some(at) = last.take() {
                    let name = walk.name_of(at);
                    walk.call(name, chain, at, true);
                }
                chain = ExprId::NONE;
            }
            _ => {
                chain = ExprId::NONE;
                last = None;
                joint = Joint::None;
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Joint {
    None,
    Dot,
    Path,
}
