//! C#.

use tree_sitter::Node as Syntax;

use crate::extract::{Open, Walk, start};
use crate::facts::{ExprId, Kind, NO_NODE, flag};

use super::common::{block, call, note, typed};
use super::{Shape, Spec, Visit};

pub(super) const SPEC: Spec = Spec {
    parser: || tree_sitter_c_sharp::LANGUAGE.into(),
    visits: VISITS,
    shapes: SHAPES,
    branches: &[
        "if_statement",
        "for_statement",
        "foreach_statement",
        "while_statement",
        "do_statement",
        "switch_section",
        "switch_expression_arm",
        "catch_clause",
        "conditional_expression",
    ],
    comments: &["comment"],
    leaves: &[],
    heads: &[],
};

const VISITS: &[(&str, Visit)] = &[
    ("using_directive", using),
    ("namespace_declaration", namespace),
    ("file_scoped_namespace_declaration", namespace),
    ("class_declaration", class),
    ("interface_declaration", class),
    ("struct_declaration", class),
    ("record_declaration", class),
    ("enum_declaration", class),
    ("method_declaration", method),
    ("constructor_declaration", method),
    ("local_function_statement", method),
    ("property_declaration", property),
    ("variable_declaration", variable),
    ("foreach_statement", loop_),
    ("lambda_expression", lambda),
    ("block", block),
    ("for_statement", block),
    ("using_statement", block),
    ("invocation_expression", call),
    ("object_creation_expression", new),
];

const SHAPES: &[(&str, Shape)] = &[
    ("identifier", Shape::Name),
    ("qualified_name", Shape::Member("qualifier", "name")),
    ("generic_name", Shape::Pass("")),
    ("member_access_expression", Shape::Member("expression", "name")),
    ("invocation_expression", Shape::Call("function")),
    ("object_creation_expression", Shape::Of("type")),
    ("cast_expression", Shape::Of("type")),
    ("await_expression", Shape::Inner("")),
    ("parenthesized_expression", Shape::Pass("")),
    ("nullable_type", Shape::Pass("type")),
    ("array_type", Shape::Tuple("[]")),
    ("this", Shape::This),
    ("base", Shape::Super),
    ("null_literal", Shape::Null),
    ("predefined_type", Shape::Literal("object")),
    ("string_literal", Shape::Literal("string")),
    ("integer_literal", Shape::Literal("int")),
];

const DOCS: &[&str] = &["///", "/**"];

fn using(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let mut cursor = node.walk();
    if let Some(name) = node.named_children(&mut cursor).last() {
        let module = walk.text(name);
        walk.import(module, "*", "", node, false);
    }
}

fn namespace(walk: &mut Walk<'_>, node: Syntax<'_>) {
    if let Some(name) = node.child_by_field_name("name") {
        walk.facts.package = walk.name_of(name);
    }
}

fn class(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let kind = if node.kind() == "interface_declaration" { Kind::Trait } else { Kind::Class };
    let Some(name) = node.child_by_field_name("name") else { return };
    let Some(number) = note(walk, node, name, kind, (true, 0), DOCS) else { return };
    let mut cursor = node.walk();
    if let Some(list) = node.named_children(&mut cursor).find(|child| child.kind() == "base_list") {
        let mut inner = list.walk();
        let bases: Vec<ExprId> = list.named_children(&mut inner).take(16).map(|base| walk.lower(base)).collect();
        walk.set_bases(number, bases);
    }
    walk.open(node, Open::Class(number));
}

fn method(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let Some(name) = node.child_by_field_name("name") else { return };
    let own = matches!(walk.owner().what, Open::Class(_));
    let head = walk.src.get(node.start_byte()..name.start_byte()).unwrap_or_default();
    let marked = ["[Fact", "[Theory", "[Test", "[TestMethod"].iter().any(|mark| head.contains(mark));
    let kind = if own { Kind::Method } else { Kind::Function };
    let flags = if marked { flag::TEST } else { 0 };
    let Some(number) = note(walk, node, name, kind, (!own, flags), DOCS) else { return };
    super::common::gives(walk, node, number, if node.kind() == "method_declaration" { "returns" } else { "type" });
    super::common::params(walk, node, node.child_by_field_name("parameters"), number, |param| {
        param.child_by_field_name("name")
    });
    walk.open(node, Open::Function(number));
}

fn property(walk: &mut Walk<'_>, node: Syntax<'_>) {
    if let (Open::Class(owner), Some(name)) = (walk.owner().what, node.child_by_field_name("name")) {
        let value = typed(walk, node.child_by_field_name("type"), None);
        let name = walk.name_of(name);
        walk.field(owner, name, value, start(node));
    }
}

/// A field of a class, or a name in a block.
fn variable(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let ty = node.child_by_field_name("type");
    let mut cursor = node.walk();
    for one in node.named_children(&mut cursor).filter(|child| child.kind() == "variable_declarator") {
        let Some(name) = one.child_by_field_name("name") else { continue };
        let mut inner = one.walk();
        let value = one.named_children(&mut inner).filter(|child| *child != name).last();
        let value = typed(walk, ty, value);
        let name = walk.name_of(name);
        match walk.owner().what {
            Open::Class(owner) => walk.field(owner, name, value, start(node)),
            _ => super::common::bind(walk, name, value, node),
        }
    }
}

fn loop_(walk: &mut Walk<'_>, node: Syntax<'_>) {
    walk.open(node, Open::Block);
    if let Some(left) = node.child_by_field_name("left").filter(|left| left.kind() == "identifier") {
        let value = typed(walk, node.child_by_field_name("type"), None);
        let name = walk.name_of(left);
        super::common::bind_in(walk, name, value, node);
    }
}

fn lambda(walk: &mut Walk<'_>, node: Syntax<'_>) {
    walk.open(node, Open::Function(NO_NODE));
    let Some(list) = node.child_by_field_name("parameters") else { return };
    let mut cursor = list.walk();
    let params: Vec<Syntax<'_>> =
        if list.named_child_count() == 0 { vec![list] } else { list.named_children(&mut cursor).collect() };
    for param in params {
        let name = walk.name_of(param.child_by_field_name("name").unwrap_or(param));
        super::common::bind_in(walk, name, ExprId::NONE, node);
    }
}

fn new(walk: &mut Walk<'_>, node: Syntax<'_>) {
    if let Some(ty) = node.child_by_field_name("type") {
        walk.call_of(ty, false);
    }
}
