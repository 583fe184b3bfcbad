//! Reads Java.

use tree_sitter::Node as Syntax;

use crate::doc::DeclaredParam;
use crate::extract::{FrameKind, TreeWalk, end_byte, start_byte};
use crate::facts::{BindingTarget, Expr, ExprId, NO_NODE, NameId, NodeKind, flag};

use super::common::{lower_typed, note_node, open_block};
use super::{LanguageSpec, SyntaxShape, Visit};

pub(super) const SPEC: LanguageSpec = LanguageSpec {
    parser: || tree_sitter_java::LANGUAGE.into(),
    visits: VISITS,
    shapes: SHAPES,
    branches: &[
        "if_statement",
        "for_statement",
        "enhanced_for_statement",
        "while_statement",
        "do_statement",
        "switch_label",
        "catch_clause",
        "ternary_expression",
    ],
    comments: &["line_comment", "block_comment"],
    leaves: &[],
    heads: &["field_access"],
};

const VISITS: &[(&str, Visit)] = &[
    ("package_declaration", visit_package),
    ("import_declaration", visit_import),
    ("class_declaration", visit_class),
    ("interface_declaration", visit_class),
    ("enum_declaration", visit_class),
    ("record_declaration", visit_class),
    ("annotation_type_declaration", visit_class),
    ("method_declaration", visit_method),
    ("constructor_declaration", visit_method),
    ("field_declaration", visit_field),
    ("enum_constant", visit_constant),
    ("local_variable_declaration", visit_local),
    ("enhanced_for_statement", loop_),
    ("resource", visit_resource),
    ("catch_clause", open_block),
    ("catch_formal_parameter", visit_catch),
    ("lambda_expression", visit_lambda),
    ("class_body", visit_body),
    ("block", open_block),
    ("constructor_body", open_block),
    ("for_statement", open_block),
    ("switch_block_statement_group", open_block),
    ("method_invocation", call),
    ("object_creation_expression", new),
];

const SHAPES: &[(&str, SyntaxShape)] = &[
    ("identifier", SyntaxShape::Name),
    ("type_identifier", SyntaxShape::Name),
    ("scoped_identifier", SyntaxShape::Member("scope", "name")),
    ("scoped_type_identifier", SyntaxShape::Own(lower_scoped)),
    ("field_access", SyntaxShape::Member("object", "field")),
    ("method_invocation", SyntaxShape::Invoke("object", "name")),
    ("object_creation_expression", SyntaxShape::Of("type")),
    ("cast_expression", SyntaxShape::Of("type")),
    ("parenthesized_expression", SyntaxShape::Pass("")),
    ("array_access", SyntaxShape::Item("array")),
    ("generic_type", SyntaxShape::Own(lower_generic)),
    ("array_type", SyntaxShape::Tuple("[]")),
    ("ternary_expression", SyntaxShape::Either("consequence", "alternative")),
    ("this", SyntaxShape::This),
    ("super", SyntaxShape::Super),
    ("null_literal", SyntaxShape::Null),
    ("void_type", SyntaxShape::Null),
    ("string_literal", SyntaxShape::Literal("String")),
    ("decimal_integer_literal", SyntaxShape::Literal("int")),
    ("integral_type", SyntaxShape::Literal("int")),
    ("floating_point_type", SyntaxShape::Literal("double")),
    ("boolean_type", SyntaxShape::Literal("boolean")),
    ("lambda_expression", SyntaxShape::Literal("function")),
    ("method_reference", SyntaxShape::Literal("function")),
];

const DOCS: &[&str] = &["/**"];

fn lower_scoped(walk: &mut TreeWalk<'_>, node: Syntax<'_>) -> ExprId {
    let (Some(object), Some(name)) = (node.named_child(0), node.named_child(1)) else { return ExprId::NONE };
    let object = walk.lower_expr(object);
    let name = walk.name_of(name);
    if object.is_none() { object } else { walk.add_expr(Expr::Member(object, name)) }
}

fn lower_generic(walk: &mut TreeWalk<'_>, node: Syntax<'_>) -> ExprId {
    let object = walk.lower_field(node, "");
    let args = node.named_child(1).map_or(ExprId::NONE, |args| walk.lower_all(args));
    if object.is_none() { object } else { walk.add_expr(Expr::Apply(object, args)) }
}

fn visit_package(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let mut cursor = node.walk();
    if let Some(name) = node.named_children(&mut cursor).find(|child| child.kind().ends_with("identifier")) {
        walk.facts.package = walk.name_of(name);
    }
}

fn visit_import(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let text = walk.node_text(node).trim_start_matches("import").trim().trim_end_matches(';').trim();
    let (fixed, path) = text.strip_prefix("static ").map_or((false, text), |path| (true, path.trim()));
    if let Some(module) = path.strip_suffix(".*") {
        walk.add_import(module, "*", "", node, false);
    } else {
        let (module, name) = path.rsplit_once('.').unwrap_or(("", path));
        if fixed {
            walk.add_import(module, name, name, node, false);
        } else {
            walk.add_import(path, "", name, node, false);
        }
    }
}

fn read_modifiers<'a>(walk: &TreeWalk<'a>, node: Syntax<'_>) -> &'a str {
    node.named_child(0).filter(|first| first.kind() == "modifiers").map_or("", |first| walk.node_text(first))
}

fn visit_class(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let kind = if node.kind() == "interface_declaration" { NodeKind::Trait } else { NodeKind::Class };
    let Some(name) = node.child_by_field_name("name") else { return };
    let Some(number) = note_node(walk, node, name, kind, (true, 0), DOCS) else { return };
    let mut bases = Vec::new();
    let mut cursor = node.walk();
    for part in node.named_children(&mut cursor) {
        match part.kind() {
            "superclass" => {
                bases.push(walk.lower_field(part, ""));
                walk.facts.nodes[number as usize].flags |= flag::EXTENDS;
            }
            "super_interfaces" | "extends_interfaces" => {
                if let Some(list) = part.named_child(0) {
                    let mut inner = list.walk();
                    for ty in list.named_children(&mut inner).take(16) {
                        bases.push(walk.lower_expr(ty));
                    }
                }
            }
            _ => {}
        }
    }
    walk.set_bases(number, bases);
    type_params(walk, node);
    walk.open_frame(node, FrameKind::Class(number));
    if node.kind() == "record_declaration" {
        for (name, value) in read_params(walk, node) {
            walk.add_field(number, name, value, start_byte(node));
        }
    }
    if let Some(body) = node.child_by_field_name("body") {
        walk.named.insert(body.id(), number);
    }
}

fn visit_body(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    if walk.named.remove(&node.id()).is_none() {
        super::common::open_nameless(walk, node);
    }
}

fn type_params(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let Some(list) = node.child_by_field_name("type_parameters") else { return };
    let mut cursor = list.walk();
    for (param, place) in list.named_children(&mut cursor).zip(0..) {
        let bound = param.named_child(1).and_then(|bound| bound.named_child(0));
        let bounds = bound.map_or(ExprId::NONE, |bound| {
            let bound = walk.lower_expr(bound);
            walk.add_args(&[bound])
        });
        if let Some(name) = param.named_child(0) {
            let name = walk.name_of(name);
            walk.add_binding(
                name,
                start_byte(node),
                end_byte(node),
                start_byte(node),
                BindingTarget::TypeParam(bounds, place),
            );
        }
    }
}

fn read_params(walk: &mut TreeWalk<'_>, node: Syntax<'_>) -> Vec<(NameId, ExprId)> {
    let mut out = Vec::new();
    let Some(list) = node.child_by_field_name("parameters") else { return out };
    let mut cursor = list.walk();
    for param in list.named_children(&mut cursor) {
        if param.kind() == "spread_parameter" {
            let mut inner = param.walk();
            let declared = param.named_children(&mut inner).find(|child| child.kind() == "variable_declarator");
            if let Some(name) = declared.and_then(|declared| declared.child_by_field_name("name")) {
                let value = walk.add_literal("[]");
                out.push((walk.name_of(name), value));
            }
        } else if let Some(name) = param.child_by_field_name("name") {
            let value = lower_typed(walk, param.child_by_field_name("type"), None);
            out.push((walk.name_of(name), value));
        }
    }
    out
}

fn visit_method(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let Some(name) = node.child_by_field_name("name") else { return };
    if !matches!(walk.owner_frame().what, FrameKind::Class(_)) {
        walk.open_frame(node, FrameKind::Function(NO_NODE));
        return;
    }
    let marks = read_modifiers(walk, node);
    let test = ["@Test", "@ParameterizedTest", "@RepeatedTest"]
        .iter()
        .any(|mark| marks.split_whitespace().any(|word| word.split('(').next() == Some(mark)));
    let flags = if test { flag::TEST } else { 0 } | if marks.contains("static") { flag::STATIC } else { 0 };
    let Some(number) = note_node(walk, node, name, NodeKind::Method, (false, flags), DOCS) else { return };
    super::common::note_result(walk, node, number, "type");
    type_params(walk, node);
    let params = read_params(walk, node);
    for (name, value) in &params {
        walk.add_binding(
            *name,
            start_byte(node),
            end_byte(node),
            start_byte(node),
            BindingTarget::Param(*value, number),
        );
    }
    walk.set_params(number, params.into_iter().map(|(name, _)| name));
    check_method_doc(walk, node, number);
    walk.open_frame(node, FrameKind::Function(number));
}

/// Compares the documentation of a method with its signature. In Javadoc, `@param <T>` is a type parameter and so not
/// one of `params`.
fn check_method_doc(walk: &mut TreeWalk<'_>, node: Syntax<'_>, number: u32) {
    let Some(list) = node.child_by_field_name("parameters") else { return };
    let mut cursor = list.walk();
    let mut params = Vec::new();
    for param in list.named_children(&mut cursor) {
        let name = param.child_by_field_name("name").or_else(|| {
            let mut inner = param.walk();
            param.named_children(&mut inner).find_map(|child| child.child_by_field_name("name"))
        });
        params.extend(name.map(|name| DeclaredParam { name: walk.node_text(name), default: None }));
    }
    let nothing = node.child_by_field_name("type").is_some_and(|ty| ty.kind() == "void_type");
    walk.check_doc(number, &params, false, nothing);
}

fn read_declared(walk: &mut TreeWalk<'_>, node: Syntax<'_>) -> Vec<(NameId, ExprId)> {
    let ty = node.child_by_field_name("type");
    let mut out = Vec::new();
    let mut cursor = node.walk();
    for declarator in node.children_by_field_name("declarator", &mut cursor) {
        if let Some(name) = declarator.child_by_field_name("name") {
            let value = lower_typed(walk, ty, declarator.child_by_field_name("value"));
            out.push((walk.name_of(name), value));
        }
    }
    out
}

fn visit_field(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    if let FrameKind::Class(owner) = walk.owner_frame().what {
        for (name, value) in read_declared(walk, node) {
            walk.add_field(owner, name, value, start_byte(node));
        }
    }
}

/// Visits a constant of an enum.
fn visit_constant(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    if let (FrameKind::Class(owner), Some(name)) = (walk.owner_frame().what, node.child_by_field_name("name")) {
        let ty = walk.add_expr(Expr::SelfType);
        let (name, value) = (walk.name_of(name), walk.add_value_of(ty));
        walk.add_field(owner, name, value, start_byte(node));
    }
}

fn visit_local(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    for (name, value) in read_declared(walk, node) {
        super::common::bind_value(walk, name, value, node);
    }
}

fn loop_(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    walk.open_frame(node, FrameKind::Block);
    let Some(name) = node.child_by_field_name("name") else { return };
    let mut value = lower_typed(walk, node.child_by_field_name("type"), None);
    if value.is_none() {
        let whole = walk.lower_field(node, "value");
        value = if whole.is_none() { whole } else { walk.add_expr(Expr::Item(whole)) };
    }
    let name = walk.name_of(name);
    super::common::bind_in(walk, name, value, node);
}

fn visit_resource(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let Some(name) = node.child_by_field_name("name") else { return };
    let value = lower_typed(walk, node.child_by_field_name("type"), node.child_by_field_name("value"));
    let name = walk.name_of(name);
    super::common::bind_value(walk, name, value, node);
}

fn visit_catch(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    if let Some(name) = node.child_by_field_name("name") {
        let name = walk.name_of(name);
        super::common::bind_value(walk, name, ExprId::NONE, node);
    }
}

fn visit_lambda(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    walk.open_frame(node, FrameKind::Function(NO_NODE));
    let Some(list) = node.child_by_field_name("parameters") else { return };
    if list.kind() == "identifier" {
        let name = walk.name_of(list);
        super::common::bind_in(walk, name, ExprId::NONE, node);
        return;
    }
    let mut cursor = list.walk();
    for param in list.named_children(&mut cursor) {
        let name = param.child_by_field_name("name").unwrap_or(param);
        let value = lower_typed(walk, param.child_by_field_name("type"), None);
        let name = walk.name_of(name);
        super::common::bind_in(walk, name, value, node);
    }
}

fn call(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let Some(name) = node.child_by_field_name("name") else { return };
    let value = walk.lower_expr(node);
    if let Some(Expr::Call(callee)) = walk.exprs.get(value) {
        let text = walk.name_of(name);
        walk.call(text, callee, name, false);
    }
}

fn new(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    if let Some(ty) = node.child_by_field_name("type") {
        walk.call_of(ty, false);
    }
}
