//! PHP.

use tree_sitter::Node as Syntax;

use crate::extract::{Open, Walk, end, start};
use crate::facts::{Bound, Expr, ExprId, Kind, NO_NODE, Name, flag};

use super::common::{call, note, typed};
use super::{Shape, Spec, Visit};

pub(super) const SPEC: Spec = Spec {
    parser: || tree_sitter_php::LANGUAGE_PHP.into(),
    visits: VISITS,
    shapes: SHAPES,
    branches: &[
        "if_statement",
        "else_if_clause",
        "for_statement",
        "foreach_statement",
        "while_statement",
        "do_statement",
        "case_statement",
        "catch_clause",
        "conditional_expression",
    ],
    comments: &["comment"],
    leaves: &[],
    heads: &[],
};

const VISITS: &[(&str, Visit)] = &[
    ("namespace_definition", namespace),
    ("namespace_use_clause", use_),
    ("class_declaration", class),
    ("interface_declaration", class),
    ("trait_declaration", class),
    ("enum_declaration", class),
    ("function_definition", function),
    ("method_declaration", function),
    ("anonymous_class", super::common::nameless),
    ("anonymous_function", anonymous),
    ("arrow_function", anonymous),
    ("property_declaration", property),
    ("assignment_expression", assignment),
    ("foreach_statement", loop_),
    ("catch_clause", caught),
    ("function_call_expression", call),
    ("member_call_expression", invoked),
    ("nullsafe_member_call_expression", invoked),
    ("scoped_call_expression", invoked),
    ("object_creation_expression", new),
];

const SHAPES: &[(&str, Shape)] = &[
    ("name", Shape::Name),
    ("named_type", Shape::Pass("")),
    ("optional_type", Shape::Pass("")),
    ("variable_name", Shape::Own(variable)),
    ("member_access_expression", Shape::Member("object", "name")),
    ("member_call_expression", Shape::Invoke("object", "name")),
    ("nullsafe_member_call_expression", Shape::Invoke("object", "name")),
    ("scoped_call_expression", Shape::Invoke("scope", "name")),
    ("function_call_expression", Shape::Call("function")),
    ("object_creation_expression", Shape::Of("")),
    ("parenthesized_expression", Shape::Pass("")),
    ("relative_scope", Shape::Own(scope)),
    ("primitive_type", Shape::Literal("mixed")),
    ("string", Shape::Literal("string")),
    ("encapsed_string", Shape::Literal("string")),
    ("integer", Shape::Literal("int")),
    ("null", Shape::Null),
];

const DOCS: &[&str] = &["/**"];

/// Variables are named with their sign, functions and classes without.
fn variable(walk: &mut Walk<'_>, node: Syntax<'_>) -> ExprId {
    if walk.text(node) == "$this" {
        return walk.expr(Expr::This);
    }
    let name = walk.name_of(node);
    if name.is_none() { ExprId::NONE } else { walk.expr(Expr::Name(name)) }
}

fn scope(walk: &mut Walk<'_>, node: Syntax<'_>) -> ExprId {
    match walk.text(node) {
        "parent" => walk.expr(Expr::Super),
        _ => walk.expr(Expr::SelfType),
    }
}

fn namespace(walk: &mut Walk<'_>, node: Syntax<'_>) {
    if let Some(name) = node.child_by_field_name("name") {
        let name = walk.text(name).replace('\\', ".");
        walk.facts.package = walk.names.made(&name);
    }
}

fn use_(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let Some(path) = node.named_child(0) else { return };
    let module = walk.text(path).trim_start_matches('\\').replace('\\', ".");
    let last = module.rsplit('.').next().unwrap_or_default();
    let alias = node.child_by_field_name("alias").map_or(last, |alias| walk.text(alias));
    walk.import(&module, "", alias, node, false);
}

fn class(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let kind = if node.kind() == "interface_declaration" { Kind::Trait } else { Kind::Class };
    let Some(name) = node.child_by_field_name("name") else { return };
    let Some(number) = note(walk, node, name, kind, (true, 0), DOCS) else { return };
    let mut bases = Vec::new();
    let mut cursor = node.walk();
    for part in node.named_children(&mut cursor) {
        if matches!(part.kind(), "base_clause" | "class_interface_clause") {
            let mut inner = part.walk();
            for base in part.named_children(&mut inner).take(16) {
                bases.push(walk.lower(base));
            }
        }
    }
    walk.set_bases(number, bases);
    walk.open(node, Open::Class(number));
}

fn function(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let Some(name) = node.child_by_field_name("name") else { return };
    let class = matches!(walk.owner().what, Open::Class(_));
    if node.kind() == "method_declaration" && !class {
        return anonymous(walk, node);
    }
    let kind = if class { Kind::Method } else { Kind::Function };
    let tests = crate::extract::is_test_path(walk.path) || walk.path.ends_with("Test.php");
    let flags = if tests && walk.text(name).starts_with("test") { flag::TEST } else { 0 };
    let Some(number) = note(walk, node, name, kind, (!class, flags), DOCS) else { return };
    super::common::gives(walk, node, number, "return_type");
    let names = params(walk, node, number);
    walk.set_params(number, names);
    walk.open(node, Open::Function(number));
}

fn anonymous(walk: &mut Walk<'_>, node: Syntax<'_>) {
    params(walk, node, NO_NODE);
    walk.open(node, Open::Function(NO_NODE));
}

fn params(walk: &mut Walk<'_>, node: Syntax<'_>, number: u32) -> Vec<Name> {
    let mut names = Vec::new();
    let Some(list) = node.child_by_field_name("parameters") else { return names };
    let mut cursor = list.walk();
    for param in list.named_children(&mut cursor) {
        let Some(name) = param.child_by_field_name("name") else { continue };
        let value = typed(walk, param.child_by_field_name("type"), None);
        if let (Some(Open::Class(class)), "property_promotion_parameter") = (walk.class_around(), param.kind()) {
            let field = walk.names.name(walk.text(name).trim_start_matches('$'));
            walk.field(class, field, value, start(param));
        }
        let name = walk.name_of(name);
        names.push(name);
        walk.bind(name, start(node), end(node), start(node), Bound::Param(value, number));
    }
    names
}

fn property(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let Open::Class(owner) = walk.owner().what else { return };
    let value = typed(walk, node.child_by_field_name("type"), None);
    let mut cursor = node.walk();
    for one in node.named_children(&mut cursor).filter(|child| child.kind() == "property_element") {
        if let Some(name) = one.child_by_field_name("name") {
            let name = walk.names.name(walk.text(name).trim_start_matches('$'));
            walk.field(owner, name, value, start(node));
        }
    }
}

/// Binds the variable of `$x = ..` in all of the function; if it is assigned twice, it is either value.
fn assignment(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let (Some(left), Some(right)) = (node.child_by_field_name("left"), node.child_by_field_name("right")) else {
        return;
    };
    if left.kind() == "variable_name" {
        let value = walk.lower(right);
        assigned(walk, left, value, node);
    } else if left.kind() == "list_literal" {
        let mut cursor = left.walk();
        for part in left.named_children(&mut cursor).filter(|part| part.kind() == "variable_name") {
            assigned(walk, part, ExprId::NONE, node);
        }
    }
}

/// A variable is seen in all of its function.
fn assigned(walk: &mut Walk<'_>, variable: Syntax<'_>, value: ExprId, at: Syntax<'_>) {
    let name = walk.name_of(variable);
    let owner = walk.owner();
    walk.bind(name, owner.from, owner.to, start(at), Bound::Value(value));
}

fn loop_(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let Some(taken) = node.named_child(1) else { return };
    let mut cursor = taken.walk();
    let parts: Vec<Syntax<'_>> = if taken.kind() == "variable_name" {
        vec![taken]
    } else {
        taken.named_children(&mut cursor).filter(|part| part.kind() == "variable_name").collect()
    };
    for part in parts {
        assigned(walk, part, ExprId::NONE, node);
    }
}

fn caught(walk: &mut Walk<'_>, node: Syntax<'_>) {
    if let Some(variable) = node.child_by_field_name("name") {
        let value = typed(walk, node.child_by_field_name("type"), None);
        assigned(walk, variable, value, node);
    }
}

fn invoked(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let Some(name) = node.child_by_field_name("name").filter(|name| name.kind() == "name") else { return };
    let value = walk.lower(node);
    if let Some(Expr::Call(callee)) = walk.exprs.get(value) {
        let text = walk.name_of(name);
        walk.call(text, callee, name, false);
    }
}

fn new(walk: &mut Walk<'_>, node: Syntax<'_>) {
    if let Some(ty) = node.named_child(0).filter(|ty| ty.kind() == "name") {
        walk.call_of(ty, false);
    }
}
