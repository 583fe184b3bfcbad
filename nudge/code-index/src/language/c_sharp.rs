//! Reads C#.

use tree_sitter::Node as Syntax;

use crate::extract::{FrameKind, TreeWalk, start_byte};
use crate::facts::{ExprId, NO_NODE, NodeKind, flag};

use super::common::{call, lower_typed, note_node, open_block};
use super::{LanguageSpec, SyntaxShape, Visit};

pub(super) const SPEC: LanguageSpec = LanguageSpec {
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
    ("using_directive", visit_using),
    ("namespace_declaration", visit_namespace),
    ("file_scoped_namespace_declaration", visit_namespace),
    ("class_declaration", visit_class),
    ("interface_declaration", visit_class),
    ("struct_declaration", visit_class),
    ("record_declaration", visit_class),
    ("enum_declaration", visit_class),
    ("method_declaration", visit_method),
    ("constructor_declaration", visit_method),
    ("local_function_statement", visit_method),
    ("property_declaration", visit_property),
    ("variable_declaration", visit_variable),
    ("foreach_statement", loop_),
    ("lambda_expression", visit_lambda),
    ("block", open_block),
    ("for_statement", open_block),
    ("using_statement", open_block),
    ("invocation_expression", call),
    ("object_creation_expression", new),
];

const SHAPES: &[(&str, SyntaxShape)] = &[
    ("identifier", SyntaxShape::Name),
    ("qualified_name", SyntaxShape::Member("qualifier", "name")),
    ("generic_name", SyntaxShape::Pass("")),
    ("member_access_expression", SyntaxShape::Member("expression", "name")),
    ("invocation_expression", SyntaxShape::Call("function")),
    ("object_creation_expression", SyntaxShape::Of("type")),
    ("cast_expression", SyntaxShape::Of("type")),
    ("await_expression", SyntaxShape::Inner("")),
    ("parenthesized_expression", SyntaxShape::Pass("")),
    ("nullable_type", SyntaxShape::Pass("type")),
    ("array_type", SyntaxShape::Tuple("[]")),
    ("this", SyntaxShape::This),
    ("base", SyntaxShape::Super),
    ("null_literal", SyntaxShape::Null),
    ("predefined_type", SyntaxShape::Literal("object")),
    ("string_literal", SyntaxShape::Literal("string")),
    ("integer_literal", SyntaxShape::Literal("int")),
];

const DOCS: &[&str] = &["///", "/**"];

fn visit_using(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let mut cursor = node.walk();
    if let Some(name) = node.named_children(&mut cursor).last() {
        let module = walk.node_text(name);
        walk.add_import(module, "*", "", node, false);
    }
}

fn visit_namespace(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    if let Some(name) = node.child_by_field_name("name") {
        walk.facts.package = walk.name_of(name);
    }
}

fn visit_class(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let kind = if node.kind() == "interface_declaration" { NodeKind::Trait } else { NodeKind::Class };
    let Some(name) = node.child_by_field_name("name") else { return };
    let Some(number) = note_node(walk, node, name, kind, (true, 0), DOCS) else { return };
    let mut cursor = node.walk();
    if let Some(list) = node.named_children(&mut cursor).find(|child| child.kind() == "base_list") {
        let mut inner = list.walk();
        let bases: Vec<ExprId> = list.named_children(&mut inner).take(16).map(|base| walk.lower_expr(base)).collect();
        walk.set_bases(number, bases);
    }
    walk.open_frame(node, FrameKind::Class(number));
}

fn visit_method(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let Some(name) = node.child_by_field_name("name") else { return };
    let own = matches!(walk.owner_frame().what, FrameKind::Class(_));
    let head = walk.text_between(node.start_byte(), name.start_byte());
    let marked = ["[Fact", "[Theory", "[Test", "[TestMethod"].iter().any(|mark| head.contains(mark));
    let kind = if own { NodeKind::Method } else { NodeKind::Function };
    let flags = if marked { flag::TEST } else { 0 };
    let Some(number) = note_node(walk, node, name, kind, (!own, flags), DOCS) else { return };
    super::common::note_result(
        walk,
        node,
        number,
        if node.kind() == "method_declaration" { "returns" } else { "type" },
    );
    super::common::note_params(walk, node, node.child_by_field_name("parameters"), number, |param| {
        param.child_by_field_name("name")
    });
    walk.open_frame(node, FrameKind::Function(number));
}

fn visit_property(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    if let (FrameKind::Class(owner), Some(name)) = (walk.owner_frame().what, node.child_by_field_name("name")) {
        let value = lower_typed(walk, node.child_by_field_name("type"), None);
        let name = walk.name_of(name);
        walk.add_field(owner, name, value, start_byte(node));
    }
}

/// Notes a field in a class. In a block, binds a local variable.
fn visit_variable(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let ty = node.child_by_field_name("type");
    let mut cursor = node.walk();
    for declarator in node.named_children(&mut cursor).filter(|child| child.kind() == "variable_declarator") {
        let Some(name) = declarator.child_by_field_name("name") else { continue };
        let mut inner = declarator.walk();
        let value = declarator.named_children(&mut inner).filter(|child| *child != name).last();
        let value = lower_typed(walk, ty, value);
        let name = walk.name_of(name);
        match walk.owner_frame().what {
            FrameKind::Class(owner) => walk.add_field(owner, name, value, start_byte(node)),
            _ => super::common::bind_value(walk, name, value, node),
        }
    }
}

fn loop_(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    walk.open_frame(node, FrameKind::Block);
    if let Some(left) = node.child_by_field_name("left").filter(|left| left.kind() == "identifier") {
        let value = lower_typed(walk, node.child_by_field_name("type"), None);
        let name = walk.name_of(left);
        super::common::bind_in(walk, name, value, node);
    }
}

fn visit_lambda(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    walk.open_frame(node, FrameKind::Function(NO_NODE));
    let Some(list) = node.child_by_field_name("parameters") else { return };
    let mut cursor = list.walk();
    let params: Vec<Syntax<'_>> =
        if list.named_child_count() == 0 { vec![list] } else { list.named_children(&mut cursor).collect() };
    for param in params {
        let name = walk.name_of(param.child_by_field_name("name").unwrap_or(param));
        super::common::bind_in(walk, name, ExprId::NONE, node);
    }
}

fn new(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    if let Some(ty) = node.child_by_field_name("type") {
        walk.call_of(ty, false);
    }
}
