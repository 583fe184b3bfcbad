//! Lowers expressions and types.

use tree_sitter::Node as Syntax;

use crate::extract::Walk;
use crate::facts::{Expr, ExprId};

use super::Shape;

pub(super) const SHAPES: &[(&str, Shape)] = &[
    ("identifier", Shape::Name),
    ("type_identifier", Shape::Name),
    ("property_identifier", Shape::Name),
    ("private_property_identifier", Shape::Name),
    ("shorthand_property_identifier", Shape::Name),
    ("member_expression", Shape::Member("object", "property")),
    ("nested_identifier", Shape::Member("object", "property")),
    ("nested_type_identifier", Shape::Member("module", "name")),
    ("subscript_expression", Shape::Item("object")),
    ("call_expression", Shape::Call("function")),
    ("new_expression", Shape::Of("constructor")),
    ("await_expression", Shape::Inner("")),
    ("parenthesized_expression", Shape::Pass("")),
    ("non_null_expression", Shape::Pass("")),
    ("instantiation_expression", Shape::Pass("")),
    ("as_expression", Shape::Own(cast)),
    ("satisfies_expression", Shape::Pass("")),
    ("ternary_expression", Shape::Either("consequence", "alternative")),
    ("binary_expression", Shape::Own(binary)),
    ("assignment_expression", Shape::Pass("right")),
    ("arrow_function", Shape::Own(function_value)),
    ("function_expression", Shape::Own(function_value)),
    ("object", Shape::Own(object_value)),
    ("class", Shape::Own(object_value)),
    ("this", Shape::This),
    ("this_type", Shape::This),
    ("super", Shape::Super),
    ("null", Shape::Null),
    ("undefined", Shape::Null),
    ("string", Shape::Literal("String")),
    ("template_string", Shape::Literal("String")),
    ("number", Shape::Literal("Number")),
    ("true", Shape::Literal("Boolean")),
    ("false", Shape::Literal("Boolean")),
    ("array", Shape::Literal("Array")),
    ("regex", Shape::Literal("RegExp")),
    ("type_annotation", Shape::Pass("")),
    ("parenthesized_type", Shape::Pass("")),
    ("readonly_type", Shape::Pass("")),
    ("constraint", Shape::Pass("")),
    ("default_type", Shape::Pass("")),
    ("generic_type", Shape::Apply("name", "type_arguments")),
    ("union_type", Shape::Own(union)),
    ("intersection_type", Shape::Own(intersection)),
    ("array_type", Shape::Tuple("Array")),
    ("tuple_type", Shape::Tuple("tuple")),
    ("predefined_type", Shape::Own(predefined)),
    ("literal_type", Shape::Own(literal_type)),
    ("template_literal_type", Shape::Literal("String")),
    ("lookup_type", Shape::Own(lookup)),
    ("type_query", Shape::Own(typeof_)),
    ("function_type", Shape::Own(function_type)),
    ("object_type", Shape::Own(object_value)),
    ("type_predicate", Shape::Literal("Boolean")),
];

fn cast(walk: &mut Walk<'_>, node: Syntax<'_>) -> ExprId {
    let (Some(value), Some(ty)) = (node.named_child(0), node.named_child(1)) else {
        // `x as const`
        return walk.lower_field(node, "");
    };
    // `as any` says less than the value does, but it says that the value is not to be trusted.
    let _ = value;
    let ty = walk.lower(ty);
    walk.of(ty)
}

fn binary(walk: &mut Walk<'_>, node: Syntax<'_>) -> ExprId {
    match walk.get(node, "operator").map_or("", |operator| walk.text(operator)) {
        "||" | "??" => {
            let (left, right) = (walk.lower_field(node, "left"), walk.lower_field(node, "right"));
            walk.either(left, right)
        }
        "&&" => walk.lower_field(node, "right"),
        "===" | "!==" | "==" | "!=" | "<" | ">" | "<=" | ">=" | "instanceof" | "in" => walk.literal("Boolean"),
        _ => walk.literal("Number"),
    }
}

/// Lowers a function without a name: its result, if it is one expression or declared.
fn function_value(walk: &mut Walk<'_>, node: Syntax<'_>) -> ExprId {
    let given = match (walk.get(node, "return_type"), walk.get(node, "body")) {
        (Some(ty), _) => {
            let ty = walk.lower(ty);
            walk.of(ty)
        }
        (None, Some(body)) if body.kind() != "statement_block" => walk.lower(body),
        _ => ExprId::NONE,
    };
    walk.expr(Expr::Function(given))
}

fn function_type(walk: &mut Walk<'_>, node: Syntax<'_>) -> ExprId {
    let ty = walk.lower_field(node, "return_type");
    let given = walk.of(ty);
    walk.expr(Expr::Function(given))
}

/// An object, class or type without a name is known if it was given one.
fn object_value(walk: &mut Walk<'_>, node: Syntax<'_>) -> ExprId {
    let _ = (walk, node);
    ExprId::NONE
}

fn union(walk: &mut Walk<'_>, node: Syntax<'_>) -> ExprId {
    let (Some(left), Some(right)) = (node.named_child(0), node.named_child(1)) else {
        return walk.lower_field(node, "");
    };
    let (left, right) = (walk.lower(left), walk.lower(right));
    walk.either(left, right)
}

/// Each part gives members.
fn intersection(walk: &mut Walk<'_>, node: Syntax<'_>) -> ExprId {
    walk.lower_all(node)
}

fn predefined(walk: &mut Walk<'_>, node: Syntax<'_>) -> ExprId {
    match walk.text(node) {
        "any" | "unknown" | "object" => ExprId::NONE,
        "string" => walk.literal("String"),
        "number" => walk.literal("Number"),
        "boolean" => walk.literal("Boolean"),
        "void" | "undefined" | "never" => walk.expr(Expr::Null),
        text => walk.literal(text),
    }
}

fn literal_type(walk: &mut Walk<'_>, node: Syntax<'_>) -> ExprId {
    match node.named_child(0) {
        Some(child) => walk.lower(child),
        None => walk.expr(Expr::Null),
    }
}

/// `T["x"]`
fn lookup(walk: &mut Walk<'_>, node: Syntax<'_>) -> ExprId {
    let (Some(of), Some(key)) = (node.named_child(0), node.named_child(1)) else { return ExprId::NONE };
    let key = walk.text(key).trim_matches(['"', '\'']);
    let of = walk.lower(of);
    if of.is_none() || key.is_empty() || key.len() > 100 {
        return ExprId::NONE;
    }
    let name = walk.names.name(key);
    let of = walk.expr(Expr::Of(of));
    let member = walk.expr(Expr::Member(of, name));
    walk.expr(Expr::TypeOf(member))
}

fn typeof_(walk: &mut Walk<'_>, node: Syntax<'_>) -> ExprId {
    let value = walk.lower_field(node, "");
    if value.is_none() { value } else { walk.expr(Expr::TypeOf(value)) }
}
