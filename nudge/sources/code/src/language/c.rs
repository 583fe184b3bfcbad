//! C, and C++ as far as it is written like that and with classes.

use tree_sitter::Node as Syntax;

use crate::extract::{Draft, Open, Walk, start};
use crate::facts::{ExprId, Kind, flag};

use super::common::{block, call, doc, typed};
use super::{Shape, Spec, Visit};

pub(super) const SPEC: Spec = Spec {
    parser: || tree_sitter_c::LANGUAGE.into(),
    visits: VISITS,
    shapes: SHAPES,
    branches: &[
        "if_statement",
        "for_statement",
        "for_range_loop",
        "while_statement",
        "do_statement",
        "case_statement",
        "conditional_expression",
        "catch_clause",
    ],
    comments: &["comment"],
    leaves: &[],
    heads: &["field_expression"],
};

#[cfg(feature = "code-all")]
pub(super) const CPP: Spec = Spec { parser: || tree_sitter_cpp::LANGUAGE.into(), ..SPEC };

const VISITS: &[(&str, Visit)] = &[
    ("preproc_include", include),
    ("preproc_function_def", macro_),
    ("function_definition", function),
    ("declaration", declaration),
    ("struct_specifier", class),
    ("union_specifier", class),
    ("enum_specifier", class),
    ("class_specifier", class),
    ("namespace_definition", namespace),
    ("type_definition", type_),
    ("field_declaration", field),
    ("compound_statement", block),
    ("for_statement", block),
    ("for_range_loop", range),
    ("lambda_expression", lambda),
    ("call_expression", call),
    ("new_expression", new),
];

const SHAPES: &[(&str, Shape)] = &[
    ("identifier", Shape::Name),
    ("type_identifier", Shape::Name),
    ("field_identifier", Shape::Name),
    ("namespace_identifier", Shape::Name),
    ("field_expression", Shape::Member("argument", "field")),
    ("qualified_identifier", Shape::Static("scope", "name")),
    ("call_expression", Shape::Call("function")),
    ("new_expression", Shape::Of("type")),
    ("parenthesized_expression", Shape::Pass("")),
    ("pointer_expression", Shape::Pass("argument")),
    ("subscript_expression", Shape::Item("argument")),
    ("cast_expression", Shape::Of("type")),
    ("compound_literal_expression", Shape::Of("type")),
    ("type_descriptor", Shape::Pass("type")),
    ("struct_specifier", Shape::Pass("name")),
    ("union_specifier", Shape::Pass("name")),
    ("enum_specifier", Shape::Pass("name")),
    ("class_specifier", Shape::Pass("name")),
    ("this", Shape::This),
    ("null", Shape::Null),
    ("primitive_type", Shape::Literal("int")),
    ("sized_type_specifier", Shape::Literal("int")),
    ("number_literal", Shape::Literal("int")),
    ("string_literal", Shape::Literal("char")),
];

const DOCS: &[&str] = &["/*", "//"];

fn include(walk: &mut Walk<'_>, node: Syntax<'_>) {
    if let Some(path) = node.child_by_field_name("path") {
        let path = walk.text(path).trim_matches(['"', '<', '>']);
        walk.import(path, "*", "", node, true);
    }
}

fn macro_(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let Some(name) = node.child_by_field_name("name") else { return };
    let name = walk.name_of(name);
    if !name.is_none() {
        let doc = doc(walk, node, DOCS);
        let body = node.child_by_field_name("value");
        walk.node(Draft { kind: Kind::Macro, name, whole: node, body, flags: 0, doc, bare: true });
    }
}

/// The function in a declarator, under pointers and parentheses.
fn declarator(node: Syntax<'_>) -> Option<Syntax<'_>> {
    let mut at = node.child_by_field_name("declarator")?;
    for _ in 0..16 {
        if at.kind() == "function_declarator" {
            return Some(at);
        }
        at = at.child_by_field_name("declarator").or_else(|| at.named_child(0))?;
    }
    None
}

/// The name in a declarator.
fn name_in(node: Syntax<'_>) -> Option<Syntax<'_>> {
    let mut at = node;
    for _ in 0..16 {
        match at.kind() {
            "identifier"
            | "field_identifier"
            | "type_identifier"
            | "qualified_identifier"
            | "destructor_name"
            | "operator_name" => return Some(at),
            _ => at = at.child_by_field_name("declarator").or_else(|| at.named_child(0))?,
        }
    }
    None
}

fn function(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let Some(head) = declarator(node) else { return };
    let Some(name) = head.child_by_field_name("declarator").and_then(name_in) else { return };
    let fixed = walk.text(node).starts_with("static");
    noted(walk, node, head, name, if fixed { flag::STATIC } else { 0 });
}

fn noted(walk: &mut Walk<'_>, node: Syntax<'_>, head: Syntax<'_>, name: Syntax<'_>, flags: u16) {
    let body = node.child_by_field_name("body");
    let mut name = name;
    if name.kind() == "qualified_identifier" {
        // `void T::f() {}`
        let of = walk.lower_field(name, "scope");
        let block = walk.impl_block(of, ExprId::NONE, node);
        walk.open(node, Open::Impl(block));
        for _ in 0..8 {
            match name.child_by_field_name("name") {
                Some(inner) => name = inner,
                None => break,
            }
        }
    }
    let method = matches!(walk.owner().what, Open::Class(_) | Open::Impl(_));
    let doc = doc(walk, node, DOCS);
    let name = walk.name_of(name);
    if name.is_none() {
        return;
    }
    let kind = if method { Kind::Method } else { Kind::Function };
    let flags = flags | if body.is_none() { flag::BODILESS } else { 0 };
    let number = walk.node(Draft { kind, name, whole: node, body, flags, doc, bare: !method });
    super::common::gives(walk, node, number, "type");
    super::common::params(walk, node, head.child_by_field_name("parameters"), number, |param| {
        param.child_by_field_name("declarator").and_then(name_in)
    });
    walk.open(node, Open::Function(number));
}

fn declaration(walk: &mut Walk<'_>, node: Syntax<'_>) {
    if let Some(head) = declarator(node)
        && !matches!(walk.owner().what, Open::Function(_))
    {
        if let Some(name) = head.child_by_field_name("declarator").filter(|name| name.kind() == "identifier") {
            noted(walk, node, head, name, 0);
        }
        return;
    }
    let ty = node.child_by_field_name("type");
    let mut cursor = node.walk();
    for one in node.children_by_field_name("declarator", &mut cursor) {
        if let Some(name) = name_in(one) {
            let value = typed(walk, ty, one.child_by_field_name("value"));
            let name = walk.name_of(name);
            super::common::bind(walk, name, value, node);
        }
    }
}

/// `for (auto& x : xs)`
fn range(walk: &mut Walk<'_>, node: Syntax<'_>) {
    walk.open(node, Open::Block);
    if let Some(name) = node.child_by_field_name("declarator").and_then(name_in) {
        let value = typed(walk, node.child_by_field_name("type"), None);
        let name = walk.name_of(name);
        super::common::bind_in(walk, name, value, node);
    }
}

fn lambda(walk: &mut Walk<'_>, node: Syntax<'_>) {
    walk.open(node, Open::Block);
    let list = node.child_by_field_name("declarator").and_then(|head| head.child_by_field_name("parameters"));
    let Some(list) = list else { return };
    let mut cursor = list.walk();
    for param in list.named_children(&mut cursor) {
        if let Some(name) = param.child_by_field_name("declarator").and_then(name_in) {
            let value = typed(walk, param.child_by_field_name("type"), None);
            let name = walk.name_of(name);
            super::common::bind_in(walk, name, value, node);
        }
    }
}

fn class(walk: &mut Walk<'_>, node: Syntax<'_>) {
    // Without a body it only names one.
    let (Some(name), Some(body)) = (node.child_by_field_name("name"), node.child_by_field_name("body")) else { return };
    let name = walk.name_of(name);
    if name.is_none() {
        return;
    }
    let doc = doc(walk, node, DOCS);
    let draft = Draft { kind: Kind::Class, name, whole: node, body: Some(body), flags: 0, doc, bare: true };
    let number = walk.node(draft);
    let mut cursor = node.walk();
    if let Some(list) = node.named_children(&mut cursor).find(|child| child.kind() == "base_class_clause") {
        let mut inner = list.walk();
        let bases: Vec<ExprId> = list.named_children(&mut inner).take(16).map(|base| walk.lower(base)).collect();
        walk.set_bases(number, bases);
    }
    walk.open(node, Open::Class(number));
}

fn namespace(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let (Some(name), body) = (node.child_by_field_name("name"), node.child_by_field_name("body")) else { return };
    let name = walk.name_of(name);
    if !name.is_none() {
        let number = walk.node(Draft { kind: Kind::Module, name, whole: node, body, flags: 0, doc: None, bare: true });
        walk.open(node, Open::Module(number));
    }
}

fn type_(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let Some(name) = node.child_by_field_name("declarator").and_then(name_in) else { return };
    let ty = node.child_by_field_name("type");
    let name = walk.name_of(name);
    let same = ty.and_then(|ty| ty.child_by_field_name("name")).is_some_and(|inner| walk.name_of(inner) == name);
    if name.is_none() || same {
        return;
    }
    let doc = doc(walk, node, DOCS);
    let draft = Draft { kind: Kind::Type, name, whole: node, body: None, flags: 0, doc, bare: true };
    let number = walk.node(draft);
    let value = typed(walk, ty, None);
    walk.gives(number, value, start(node));
    // A struct without a name has its members under this one.
    if ty.is_some_and(|ty| ty.child_by_field_name("body").is_some() && ty.child_by_field_name("name").is_none()) {
        walk.open(node, Open::Class(number));
    }
}

fn field(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let Open::Class(owner) = walk.owner().what else { return };
    if let Some(head) = declarator(node) {
        if let Some(name) = head.child_by_field_name("declarator").filter(|name| name.kind() == "field_identifier") {
            noted(walk, node, head, name, 0);
        }
        return;
    }
    let value = typed(walk, node.child_by_field_name("type"), None);
    let mut cursor = node.walk();
    for one in node.children_by_field_name("declarator", &mut cursor) {
        if let Some(name) = name_in(one) {
            let name = walk.name_of(name);
            walk.field(owner, name, value, start(node));
        }
    }
}

fn new(walk: &mut Walk<'_>, node: Syntax<'_>) {
    if let Some(ty) = node.child_by_field_name("type") {
        walk.call_of(ty, false);
    }
}
