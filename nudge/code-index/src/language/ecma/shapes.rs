//! Lowers expressions and types of JavaScript and TypeScript.

use tree_sitter::Node as Syntax;

use crate::extract::TreeWalk;
use crate::facts::{Expr, ExprId};

use super::SyntaxShape;

pub(super) const SHAPES: &[(&str, SyntaxShape)] = &[
    ("identifier", SyntaxShape::Name),
    ("type_identifier", SyntaxShape::Name),
    ("property_identifier", SyntaxShape::Name),
    ("private_property_identifier", SyntaxShape::Name),
    ("shorthand_property_identifier", SyntaxShape::Name),
    ("member_expression", SyntaxShape::Member("object", "property")),
    ("nested_identifier", SyntaxShape::Member("object", "property")),
    ("nested_type_identifier", SyntaxShape::Member("module", "name")),
    ("subscript_expression", SyntaxShape::Item("object")),
    ("call_expression", SyntaxShape::Call("function")),
    ("new_expression", SyntaxShape::Of("constructor")),
    ("await_expression", SyntaxShape::Inner("")),
    ("parenthesized_expression", SyntaxShape::Pass("")),
    ("non_null_expression", SyntaxShape::Pass("")),
    ("instantiation_expression", SyntaxShape::Pass("")),
    ("as_expression", SyntaxShape::Own(lower_cast)),
    ("satisfies_expression", SyntaxShape::Pass("")),
    ("ternary_expression", SyntaxShape::Either("consequence", "alternative")),
    ("binary_expression", SyntaxShape::Own(lower_binary)),
    ("assignment_expression", SyntaxShape::Pass("right")),
    ("arrow_function", SyntaxShape::Own(function_value)),
    ("function_expression", SyntaxShape::Own(function_value)),
    ("object", SyntaxShape::Own(object_value)),
    ("class", SyntaxShape::Own(object_value)),
    ("this", SyntaxShape::This),
    ("this_type", SyntaxShape::This),
    ("super", SyntaxShape::Super),
    ("null", SyntaxShape::Null),
    ("undefined", SyntaxShape::Null),
    ("string", SyntaxShape::Literal("String")),
    ("template_string", SyntaxShape::Literal("String")),
    ("number", SyntaxShape::Literal("Number")),
    ("true", SyntaxShape::Literal("Boolean")),
    ("false", SyntaxShape::Literal("Boolean")),
    ("array", SyntaxShape::Literal("Array")),
    ("regex", SyntaxShape::Literal("RegExp")),
    ("type_annotation", SyntaxShape::Pass("")),
    ("parenthesized_type", SyntaxShape::Pass("")),
    ("readonly_type", SyntaxShape::Pass("")),
    ("constraint", SyntaxShape::Pass("")),
    ("default_type", SyntaxShape::Pass("")),
    ("generic_type", SyntaxShape::Apply("name", "type_arguments")),
    ("union_type", SyntaxShape::Own(lower_union)),
    ("intersection_type", SyntaxShape::Own(lower_intersection)),
    ("array_type", SyntaxShape::Tuple("Array")),
    ("tuple_type", SyntaxShape::Tuple("tuple")),
    ("predefined_type", SyntaxShape::Own(lower_predefined)),
    ("literal_type", SyntaxShape::Own(literal_type)),
    ("template_literal_type", SyntaxShape::Literal("String")),
    ("lookup_type", SyntaxShape::Own(lower_lookup)),
    ("type_query", SyntaxShape::Own(typeof_)),
    ("function_type", SyntaxShape::Own(function_type)),
    ("object_type", SyntaxShape::Own(object_value)),
    ("type_predicate", SyntaxShape::Literal("Boolean")),
];

fn lower_cast(walk: &mut TreeWalk<'_>, node: Syntax<'_>) -> ExprId {
    let (Some(value), Some(ty)) = (node.named_child(0), node.named_child(1)) else {
        // The cast `x as const` has no syntax node for a type.
        return walk.lower_field(node, "");
    };
    // The type of the cast counts, even if it is `any`: the author says that the value's own type is wrong.
    let _ = value;
    let ty = walk.lower_expr(ty);
    walk.add_value_of(ty)
}

fn lower_binary(walk: &mut TreeWalk<'_>, node: Syntax<'_>) -> ExprId {
    match walk.child_by_field(node, "operator").map_or("", |operator| walk.node_text(operator)) {
        "||" | "??" => {
            let (left, right) = (walk.lower_field(node, "left"), walk.lower_field(node, "right"));
            walk.add_either(left, right)
        }
        "&&" => walk.lower_field(node, "right"),
        "===" | "!==" | "==" | "!=" | "<" | ">" | "<=" | ">=" | "instanceof" | "in" => walk.add_literal("Boolean"),
        _ => walk.add_literal("Number"),
    }
}

/// Lowers a function without a name to its result. The result is known if it is declared, or if the body is a single
/// expression.
fn function_value(walk: &mut TreeWalk<'_>, node: Syntax<'_>) -> ExprId {
    let given = match (walk.child_by_field(node, "return_type"), walk.child_by_field(node, "body")) {
        (Some(ty), _) => {
            let ty = walk.lower_expr(ty);
            walk.add_value_of(ty)
        }
        (None, Some(body)) if body.kind() != "statement_block" => walk.lower_expr(body),
        _ => ExprId::NONE,
    };
    walk.add_expr(Expr::Function(given))
}

fn function_type(walk: &mut TreeWalk<'_>, node: Syntax<'_>) -> ExprId {
    let ty = walk.lower_field(node, "return_type");
    let given = walk.add_value_of(ty);
    walk.add_expr(Expr::Function(given))
}

/// Lowers an object, class or type without a name. The value is unknown here; it is known only if it is assigned to a
/// name.
fn object_value(walk: &mut TreeWalk<'_>, node: Syntax<'_>) -> ExprId {
    let _ = (walk, node);
    ExprId::NONE
}

fn lower_union(walk: &mut TreeWalk<'_>, node: Syntax<'_>) -> ExprId {
    let (Some(left), Some(right)) = (node.named_child(0), node.named_child(1)) else {
        return walk.lower_field(node, "");
    };
    let (left, right) = (walk.lower_expr(left), walk.lower_expr(right));
    walk.add_either(left, right)
}

/// Lowers an intersection of types, which has the members of all of them.
fn lower_intersection(walk: &mut TreeWalk<'_>, node: Syntax<'_>) -> ExprId {
    walk.lower_all(node)
}

fn lower_predefined(walk: &mut TreeWalk<'_>, node: Syntax<'_>) -> ExprId {
    match walk.node_text(node) {
        "any" | "unknown" | "object" => ExprId::NONE,
        "string" => walk.add_literal("String"),
        "number" => walk.add_literal("Number"),
        "boolean" => walk.add_literal("Boolean"),
        "void" | "undefined" | "never" => walk.add_expr(Expr::Null),
        text => walk.add_literal(text),
    }
}

fn literal_type(walk: &mut TreeWalk<'_>, node: Syntax<'_>) -> ExprId {
    match node.named_child(0) {
        Some(child) => walk.lower_expr(child),
        None => walk.add_expr(Expr::Null),
    }
}

/// Lowers the type `T["x"]`, which is the type of the member `x`.
fn lower_lookup(walk: &mut TreeWalk<'_>, node: Syntax<'_>) -> ExprId {
    let (Some(object), Some(key)) = (node.named_child(0), node.named_child(1)) else { return ExprId::NONE };
    let key = walk.node_text(key).trim_matches(['"', '\'']);
    let object = walk.lower_expr(object);
    if object.is_none() || key.is_empty() || key.len() > 100 {
        return ExprId::NONE;
    }
    let name = walk.names.name(key);
    let instance = walk.add_expr(Expr::Of(object));
    let member = walk.add_expr(Expr::Member(instance, name));
    walk.add_expr(Expr::TypeOf(member))
}

fn typeof_(walk: &mut TreeWalk<'_>, node: Syntax<'_>) -> ExprId {
    let value = walk.lower_field(node, "");
    if value.is_none() { value } else { walk.add_expr(Expr::TypeOf(value)) }
}
