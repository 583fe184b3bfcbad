//! Reads Ruby.

use tree_sitter::Node as Syntax;

use crate::extract::{FrameKind, TreeWalk, end_byte, start_byte};
use crate::facts::{BindingTarget, Expr, ExprId, NO_NODE, NameId, NodeKind, flag};

use super::common::note_node;
use super::{LanguageSpec, SyntaxShape, Visit};

pub(super) const SPEC: LanguageSpec = LanguageSpec {
    parser: || tree_sitter_ruby::LANGUAGE.into(),
    visits: VISITS,
    shapes: SHAPES,
    branches: &["if", "elsif", "unless", "while", "until", "for", "when", "rescue", "conditional", "if_modifier"],
    comments: &["comment"],
    leaves: &[],
    heads: &[],
};

const VISITS: &[(&str, Visit)] = &[
    ("module", visit_module),
    ("class", visit_class),
    ("method", visit_method),
    ("singleton_method", visit_method),
    ("assignment", visit_assignment),
    ("call", call),
    ("block", visit_block),
    ("do_block", visit_block),
    ("lambda", visit_block),
];

const SHAPES: &[(&str, SyntaxShape)] = &[
    ("identifier", SyntaxShape::Name),
    ("constant", SyntaxShape::Name),
    ("call", SyntaxShape::Invoke("receiver", "method")),
    ("self", SyntaxShape::This),
    ("nil", SyntaxShape::Null),
    ("instance_variable", SyntaxShape::Own(lower_instance_var)),
    ("string", SyntaxShape::Literal("String")),
    ("integer", SyntaxShape::Literal("Integer")),
    ("array", SyntaxShape::Literal("Array")),
    ("hash", SyntaxShape::Literal("Hash")),
];

/// Lowers `@x` to the field `x` of the class around it.
fn lower_instance_var(walk: &mut TreeWalk<'_>, node: Syntax<'_>) -> ExprId {
    let this = walk.add_expr(Expr::This);
    let name = walk.name_of(node);
    if name.is_none() { ExprId::NONE } else { walk.add_expr(Expr::Member(this, name)) }
}

fn visit_module(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let Some(name) = node.child_by_field_name("name").filter(|name| name.kind() == "constant") else { return };
    if let Some(number) = note_node(walk, node, name, NodeKind::Module, (true, 0), &["#"]) {
        walk.open_frame(node, FrameKind::Module(number));
    }
}

fn visit_class(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let Some(name) = node.child_by_field_name("name").filter(|name| name.kind() == "constant") else { return };
    let Some(number) = note_node(walk, node, name, NodeKind::Class, (true, 0), &["#"]) else { return };
    if let Some(base) = node.child_by_field_name("superclass").and_then(|base| base.named_child(0)) {
        let base = walk.lower_expr(base);
        walk.set_bases(number, [base]);
    }
    walk.open_frame(node, FrameKind::Class(number));
}

fn visit_method(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let Some(name) = node.child_by_field_name("name") else { return };
    let class = matches!(walk.owner_frame().what, FrameKind::Class(_));
    let tests = crate::extract::is_test_path(walk.path) && walk.node_text(name).starts_with("test_");
    let kind = if class { NodeKind::Method } else { NodeKind::Function };
    let flags = if tests { flag::TEST } else { 0 };
    let Some(number) = note_node(walk, node, name, kind, (!class, flags), &["#"]) else { return };
    let names = bind_params(walk, node, number);
    walk.set_params(number, names);
    walk.open_frame(node, FrameKind::Function(number));
}

fn bind_params(walk: &mut TreeWalk<'_>, node: Syntax<'_>, number: u32) -> Vec<NameId> {
    let mut names = Vec::new();
    let Some(list) = node.child_by_field_name("parameters") else { return names };
    let mut cursor = list.walk();
    for param in list.named_children(&mut cursor) {
        let name = param.child_by_field_name("name").unwrap_or(param);
        if name.kind() == "identifier" {
            let name = walk.name_of(name);
            names.push(name);
            walk.add_binding(
                name,
                start_byte(node),
                end_byte(node),
                start_byte(node),
                BindingTarget::Param(ExprId::NONE, number),
            );
        }
    }
    names
}

fn visit_block(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    bind_params(walk, node, NO_NODE);
    walk.open_frame(node, FrameKind::Function(NO_NODE));
}

fn visit_assignment(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let (Some(left), Some(right)) = (node.child_by_field_name("left"), node.child_by_field_name("right")) else {
        return;
    };
    let value = walk.lower_expr(right);
    match (left.kind(), walk.class_around()) {
        ("identifier", _) => {
            let name = walk.name_of(left);
            let owner = walk.owner_frame();
            walk.add_binding(name, owner.from, owner.to, start_byte(node), BindingTarget::Value(value));
        }
        ("instance_variable", Some(FrameKind::Class(class))) => {
            let name = walk.name_of(left);
            walk.add_field(class, name, value, start_byte(node));
        }
        _ => {}
    }
}

fn call(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let Some(name) = node.child_by_field_name("method").filter(|name| name.kind() == "identifier") else { return };
    let value = walk.lower_expr(node);
    if let Some(Expr::Call(callee)) = walk.exprs.get(value) {
        let text = walk.name_of(name);
        walk.call(text, callee, name, false);
    }
}
