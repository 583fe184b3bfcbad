//! Ruby.

use tree_sitter::Node as Syntax;

use crate::extract::{Open, Walk, end, start};
use crate::facts::{Bound, Expr, ExprId, Kind, NO_NODE, Name, flag};

use super::common::note;
use super::{Shape, Spec, Visit};

pub(super) const SPEC: Spec = Spec {
    parser: || tree_sitter_ruby::LANGUAGE.into(),
    visits: VISITS,
    shapes: SHAPES,
    branches: &["if", "elsif", "unless", "while", "until", "for", "when", "rescue", "conditional", "if_modifier"],
    comments: &["comment"],
    leaves: &[],
    heads: &[],
};

const VISITS: &[(&str, Visit)] = &[
    ("module", module),
    ("class", class),
    ("method", method),
    ("singleton_method", method),
    ("assignment", assignment),
    ("call", call),
    ("block", block),
    ("do_block", block),
    ("lambda", block),
];

const SHAPES: &[(&str, Shape)] = &[
    ("identifier", Shape::Name),
    ("constant", Shape::Name),
    ("call", Shape::Invoke("receiver", "method")),
    ("self", Shape::This),
    ("nil", Shape::Null),
    ("instance_variable", Shape::Own(instance)),
    ("string", Shape::Literal("String")),
    ("integer", Shape::Literal("Integer")),
    ("array", Shape::Literal("Array")),
    ("hash", Shape::Literal("Hash")),
];

/// `@x` is a field of the class around.
fn instance(walk: &mut Walk<'_>, node: Syntax<'_>) -> ExprId {
    let this = walk.expr(Expr::This);
    let name = walk.name_of(node);
    if name.is_none() { ExprId::NONE } else { walk.expr(Expr::Member(this, name)) }
}

fn module(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let Some(name) = node.child_by_field_name("name").filter(|name| name.kind() == "constant") else { return };
    if let Some(number) = note(walk, node, name, Kind::Module, (true, 0), &["#"]) {
        walk.open(node, Open::Module(number));
    }
}

fn class(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let Some(name) = node.child_by_field_name("name").filter(|name| name.kind() == "constant") else { return };
    let Some(number) = note(walk, node, name, Kind::Class, (true, 0), &["#"]) else { return };
    if let Some(base) = node.child_by_field_name("superclass").and_then(|base| base.named_child(0)) {
        let base = walk.lower(base);
        walk.set_bases(number, [base]);
    }
    walk.open(node, Open::Class(number));
}

fn method(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let Some(name) = node.child_by_field_name("name") else { return };
    let class = matches!(walk.owner().what, Open::Class(_));
    let tests = crate::extract::is_test_path(walk.path) && walk.text(name).starts_with("test_");
    let kind = if class { Kind::Method } else { Kind::Function };
    let flags = if tests { flag::TEST } else { 0 };
    let Some(number) = note(walk, node, name, kind, (!class, flags), &["#"]) else { return };
    let names = params(walk, node, number);
    walk.set_params(number, names);
    walk.open(node, Open::Function(number));
}

fn params(walk: &mut Walk<'_>, node: Syntax<'_>, number: u32) -> Vec<Name> {
    let mut names = Vec::new();
    let Some(list) = node.child_by_field_name("parameters") else { return names };
    let mut cursor = list.walk();
    for param in list.named_children(&mut cursor) {
        let name = param.child_by_field_name("name").unwrap_or(param);
        if name.kind() == "identifier" {
            let name = walk.name_of(name);
            names.push(name);
            walk.bind(name, start(node), end(node), start(node), Bound::Param(ExprId::NONE, number));
        }
    }
    names
}

fn block(walk: &mut Walk<'_>, node: Syntax<'_>) {
    params(walk, node, NO_NODE);
    walk.open(node, Open::Function(NO_NODE));
}

fn assignment(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let (Some(left), Some(right)) = (node.child_by_field_name("left"), node.child_by_field_name("right")) else {
        return;
    };
    let value = walk.lower(right);
    match (left.kind(), walk.class_around()) {
        ("identifier", _) => {
            let name = walk.name_of(left);
            let owner = walk.owner();
            walk.bind(name, owner.from, owner.to, start(node), Bound::Value(value));
        }
        ("instance_variable", Some(Open::Class(class))) => {
            let name = walk.name_of(left);
            walk.field(class, name, value, start(node));
        }
        _ => {}
    }
}

fn call(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let Some(name) = node.child_by_field_name("method").filter(|name| name.kind() == "identifier") else { return };
    let value = walk.lower(node);
    if let Some(Expr::Call(callee)) = walk.exprs.get(value) {
        let text = walk.name_of(name);
        walk.call(text, callee, name, false);
    }
}
