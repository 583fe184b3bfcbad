//! Java.

use tree_sitter::Node as Syntax;

use crate::doc::Param;
use crate::extract::{Open, Walk, end, start};
use crate::facts::{Bound, Expr, ExprId, Kind, NO_NODE, Name, flag};

use super::common::{block, note, typed};
use super::{Shape, Spec, Visit};

pub(super) const SPEC: Spec = Spec {
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
    ("package_declaration", package),
    ("import_declaration", import),
    ("class_declaration", class),
    ("interface_declaration", class),
    ("enum_declaration", class),
    ("record_declaration", class),
    ("annotation_type_declaration", class),
    ("method_declaration", method),
    ("constructor_declaration", method),
    ("field_declaration", field),
    ("enum_constant", constant),
    ("local_variable_declaration", local),
    ("enhanced_for_statement", loop_),
    ("resource", resource),
    ("catch_clause", block),
    ("catch_formal_parameter", caught),
    ("lambda_expression", lambda),
    ("class_body", body),
    ("block", block),
    ("constructor_body", block),
    ("for_statement", block),
    ("switch_block_statement_group", block),
    ("method_invocation", call),
    ("object_creation_expression", new),
];

const SHAPES: &[(&str, Shape)] = &[
    ("identifier", Shape::Name),
    ("type_identifier", Shape::Name),
    ("scoped_identifier", Shape::Member("scope", "name")),
    ("scoped_type_identifier", Shape::Own(scoped)),
    ("field_access", Shape::Member("object", "field")),
    ("method_invocation", Shape::Invoke("object", "name")),
    ("object_creation_expression", Shape::Of("type")),
    ("cast_expression", Shape::Of("type")),
    ("parenthesized_expression", Shape::Pass("")),
    ("array_access", Shape::Item("array")),
    ("generic_type", Shape::Own(generic)),
    ("array_type", Shape::Tuple("[]")),
    ("ternary_expression", Shape::Either("consequence", "alternative")),
    ("this", Shape::This),
    ("super", Shape::Super),
    ("null_literal", Shape::Null),
    ("void_type", Shape::Null),
    ("string_literal", Shape::Literal("String")),
    ("decimal_integer_literal", Shape::Literal("int")),
    ("integral_type", Shape::Literal("int")),
    ("floating_point_type", Shape::Literal("double")),
    ("boolean_type", Shape::Literal("boolean")),
    ("lambda_expression", Shape::Literal("function")),
    ("method_reference", Shape::Literal("function")),
];

const DOCS: &[&str] = &["/**"];

fn scoped(walk: &mut Walk<'_>, node: Syntax<'_>) -> ExprId {
    let (Some(of), Some(name)) = (node.named_child(0), node.named_child(1)) else { return ExprId::NONE };
    let of = walk.lower(of);
    let name = walk.name_of(name);
    if of.is_none() { of } else { walk.expr(Expr::Member(of, name)) }
}

fn generic(walk: &mut Walk<'_>, node: Syntax<'_>) -> ExprId {
    let of = walk.lower_field(node, "");
    let args = node.named_child(1).map_or(ExprId::NONE, |args| walk.lower_all(args));
    if of.is_none() { of } else { walk.expr(Expr::Apply(of, args)) }
}

fn package(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let mut cursor = node.walk();
    if let Some(name) = node.named_children(&mut cursor).find(|child| child.kind().ends_with("identifier")) {
        walk.facts.package = walk.name_of(name);
    }
}

fn import(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let text = walk.text(node).trim_start_matches("import").trim().trim_end_matches(';').trim();
    let (fixed, path) = text.strip_prefix("static ").map_or((false, text), |path| (true, path.trim()));
    if let Some(module) = path.strip_suffix(".*") {
        walk.import(module, "*", "", node, false);
    } else {
        let (module, name) = path.rsplit_once('.').unwrap_or(("", path));
        if fixed {
            walk.import(module, name, name, node, false);
        } else {
            walk.import(path, "", name, node, false);
        }
    }
}

fn modifiers<'a>(walk: &Walk<'a>, node: Syntax<'_>) -> &'a str {
    node.named_child(0).filter(|first| first.kind() == "modifiers").map_or("", |first| walk.text(first))
}

fn class(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let kind = if node.kind() == "interface_declaration" { Kind::Trait } else { Kind::Class };
    let Some(name) = node.child_by_field_name("name") else { return };
    let Some(number) = note(walk, node, name, kind, (true, 0), DOCS) else { return };
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
                        bases.push(walk.lower(ty));
                    }
                }
            }
            _ => {}
        }
    }
    walk.set_bases(number, bases);
    type_params(walk, node);
    walk.open(node, Open::Class(number));
    if node.kind() == "record_declaration" {
        for (name, value) in parameters(walk, node) {
            walk.field(number, name, value, start(node));
        }
    }
    if let Some(body) = node.child_by_field_name("body") {
        walk.named.insert(body.id(), number);
    }
}

fn body(walk: &mut Walk<'_>, node: Syntax<'_>) {
    if walk.named.remove(&node.id()).is_none() {
        super::common::nameless(walk, node);
    }
}

fn type_params(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let Some(list) = node.child_by_field_name("type_parameters") else { return };
    let mut cursor = list.walk();
    for (param, place) in list.named_children(&mut cursor).zip(0..) {
        let bound = param.named_child(1).and_then(|bound| bound.named_child(0));
        let bounds = bound.map_or(ExprId::NONE, |bound| {
            let bound = walk.lower(bound);
            walk.args(&[bound])
        });
        if let Some(name) = param.named_child(0) {
            let name = walk.name_of(name);
            walk.bind(name, start(node), end(node), start(node), Bound::TypeParam(bounds, place));
        }
    }
}

fn parameters(walk: &mut Walk<'_>, node: Syntax<'_>) -> Vec<(Name, ExprId)> {
    let mut out = Vec::new();
    let Some(list) = node.child_by_field_name("parameters") else { return out };
    let mut cursor = list.walk();
    for param in list.named_children(&mut cursor) {
        if param.kind() == "spread_parameter" {
            let mut inner = param.walk();
            let declared = param.named_children(&mut inner).find(|child| child.kind() == "variable_declarator");
            if let Some(name) = declared.and_then(|declared| declared.child_by_field_name("name")) {
                let value = walk.literal("[]");
                out.push((walk.name_of(name), value));
            }
        } else if let Some(name) = param.child_by_field_name("name") {
            let value = typed(walk, param.child_by_field_name("type"), None);
            out.push((walk.name_of(name), value));
        }
    }
    out
}

fn method(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let Some(name) = node.child_by_field_name("name") else { return };
    if !matches!(walk.owner().what, Open::Class(_)) {
        walk.open(node, Open::Function(NO_NODE));
        return;
    }
    let marks = modifiers(walk, node);
    let test = ["@Test", "@ParameterizedTest", "@RepeatedTest"]
        .iter()
        .any(|mark| marks.split_whitespace().any(|word| word.split('(').next() == Some(mark)));
    let flags = if test { flag::TEST } else { 0 } | if marks.contains("static") { flag::STATIC } else { 0 };
    let Some(number) = note(walk, node, name, Kind::Method, (false, flags), DOCS) else { return };
    super::common::gives(walk, node, number, "type");
    type_params(walk, node);
    let params = parameters(walk, node);
    for (name, value) in &params {
        walk.bind(*name, start(node), end(node), start(node), Bound::Param(*value, number));
    }
    walk.set_params(number, params.into_iter().map(|(name, _)| name));
    documented(walk, node, number);
    walk.open(node, Open::Function(number));
}

/// Holds the documentation against the signature. A parameter of a type is documented as `<T>`.
fn documented(walk: &mut Walk<'_>, node: Syntax<'_>, number: u32) {
    let Some(list) = node.child_by_field_name("parameters") else { return };
    let mut cursor = list.walk();
    let mut params = Vec::new();
    for param in list.named_children(&mut cursor) {
        let name = param.child_by_field_name("name").or_else(|| {
            let mut inner = param.walk();
            param.named_children(&mut inner).find_map(|child| child.child_by_field_name("name"))
        });
        params.extend(name.map(|name| Param { name: walk.text(name), default: None }));
    }
    let nothing = node.child_by_field_name("type").is_some_and(|ty| ty.kind() == "void_type");
    walk.check_doc(number, &params, false, nothing);
}

fn declared(walk: &mut Walk<'_>, node: Syntax<'_>) -> Vec<(Name, ExprId)> {
    let ty = node.child_by_field_name("type");
    let mut out = Vec::new();
    let mut cursor = node.walk();
    for one in node.children_by_field_name("declarator", &mut cursor) {
        if let Some(name) = one.child_by_field_name("name") {
            let value = typed(walk, ty, one.child_by_field_name("value"));
            out.push((walk.name_of(name), value));
        }
    }
    out
}

fn field(walk: &mut Walk<'_>, node: Syntax<'_>) {
    if let Open::Class(owner) = walk.owner().what {
        for (name, value) in declared(walk, node) {
            walk.field(owner, name, value, start(node));
        }
    }
}

/// Visits a value of an enum.
fn constant(walk: &mut Walk<'_>, node: Syntax<'_>) {
    if let (Open::Class(owner), Some(name)) = (walk.owner().what, node.child_by_field_name("name")) {
        let ty = walk.expr(Expr::SelfType);
        let (name, value) = (walk.name_of(name), walk.of(ty));
        walk.field(owner, name, value, start(node));
    }
}

fn local(walk: &mut Walk<'_>, node: Syntax<'_>) {
    for (name, value) in declared(walk, node) {
        super::common::bind(walk, name, value, node);
    }
}

fn loop_(walk: &mut Walk<'_>, node: Syntax<'_>) {
    walk.open(node, Open::Block);
    let Some(name) = node.child_by_field_name("name") else { return };
    let mut value = typed(walk, node.child_by_field_name("type"), None);
    if value.is_none() {
        let whole = walk.lower_field(node, "value");
        value = if whole.is_none() { whole } else { walk.expr(Expr::Item(whole)) };
    }
    let name = walk.name_of(name);
    super::common::bind_in(walk, name, value, node);
}

fn resource(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let Some(name) = node.child_by_field_name("name") else { return };
    let value = typed(walk, node.child_by_field_name("type"), node.child_by_field_name("value"));
    let name = walk.name_of(name);
    super::common::bind(walk, name, value, node);
}

fn caught(walk: &mut Walk<'_>, node: Syntax<'_>) {
    if let Some(name) = node.child_by_field_name("name") {
        let name = walk.name_of(name);
        super::common::bind(walk, name, ExprId::NONE, node);
    }
}

fn lambda(walk: &mut Walk<'_>, node: Syntax<'_>) {
    walk.open(node, Open::Function(NO_NODE));
    let Some(list) = node.child_by_field_name("parameters") else { return };
    if list.kind() == "identifier" {
        let name = walk.name_of(list);
        super::common::bind_in(walk, name, ExprId::NONE, node);
        return;
    }
    let mut cursor = list.walk();
    for param in list.named_children(&mut cursor) {
        let name = param.child_by_field_name("name").unwrap_or(param);
        let value = typed(walk, param.child_by_field_name("type"), None);
        let name = walk.name_of(name);
        super::common::bind_in(walk, name, value, node);
    }
}

fn call(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let Some(name) = node.child_by_field_name("name") else { return };
    let value = walk.lower(node);
    if let Some(Expr::Call(callee)) = walk.exprs.get(value) {
        let text = walk.name_of(name);
        walk.call(text, callee, name, false);
    }
}

fn new(walk: &mut Walk<'_>, node: Syntax<'_>) {
    if let Some(ty) = node.child_by_field_name("type") {
        walk.call_of(ty, false);
    }
}
