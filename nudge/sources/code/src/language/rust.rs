//! Rust.

mod attributes;
mod bind;
mod macros;
mod uses;

use tree_sitter::Node as Syntax;

use crate::doc::Param;
use crate::extract::{Draft, Open, Walk, end, start};
use crate::facts::{Bound, Expr, ExprId, Kind, Name, flag};

use super::{Shape, Spec, Visit};
use attributes::{doc, flags};

pub(super) const SPEC: Spec = Spec {
    parser: || tree_sitter_rust::LANGUAGE.into(),
    visits: VISITS,
    shapes: SHAPES,
    branches: &["if_expression", "for_expression", "while_expression", "match_arm", "try_expression"],
    comments: &["line_comment", "block_comment"],
    leaves: LEAVES,
    heads: &["await_expression", "field_expression", "try_expression"],
};

const LEAVES: &[&str] = &[
    "abstract_type",
    "array_type",
    "associated_type",
    "bounded_type",
    "char_literal",
    "dynamic_type",
    "extern_crate_declaration",
    "field_declaration",
    "function_signature_item",
    "function_type",
    "generic_type",
    "lifetime",
    "parameters",
    "pointer_type",
    "raw_string_literal",
    "reference_type",
    "scoped_identifier",
    "scoped_type_identifier",
    "string_literal",
    "trait_bounds",
    "tuple_type",
    "type_arguments",
    "type_item",
    "type_parameters",
    "use_declaration",
    "visibility_modifier",
    "where_clause",
];

const VISITS: &[(&str, Visit)] = &[
    ("attribute_item", attributes::attribute),
    ("inner_attribute_item", attributes::inner_attribute),
    ("function_item", function),
    ("function_signature_item", function),
    ("struct_item", class),
    ("union_item", class),
    ("enum_item", class),
    ("enum_variant", variant),
    ("trait_item", class),
    ("impl_item", impl_),
    ("mod_item", module),
    ("type_item", type_),
    ("associated_type", associated),
    ("macro_definition", macros::definition),
    ("macro_invocation", macros::invocation),
    ("token_tree", macros::tokens),
    ("use_declaration", uses::use_),
    ("extern_crate_declaration", uses::extern_crate),
    ("field_declaration", field),
    ("const_item", constant),
    ("static_item", constant),
    ("block", block),
    ("let_declaration", bind::let_),
    ("let_condition", bind::condition),
    ("if_expression", bind::if_),
    ("while_expression", bind::if_),
    ("for_expression", bind::for_),
    ("match_expression", bind::match_),
    ("match_arm", bind::arm),
    ("closure_expression", bind::closure),
    ("call_expression", call),
    ("struct_expression", |_, _| ()),
];

const SHAPES: &[(&str, Shape)] = &[
    ("identifier", Shape::Name),
    ("type_identifier", Shape::Name),
    ("shorthand_field_identifier", Shape::Name),
    ("crate", Shape::Name),
    ("super", Shape::Name),
    ("metavariable", Shape::Null),
    ("self", Shape::This),
    ("scoped_identifier", Shape::Static("path", "name")),
    ("scoped_type_identifier", Shape::Static("path", "name")),
    ("field_expression", Shape::Member("value", "field")),
    ("call_expression", Shape::CallOr("function", field_called)),
    ("generic_function", Shape::Pass("function")),
    ("generic_type_with_turbofish", Shape::Pass("type")),
    ("try_expression", Shape::Inner("")),
    ("await_expression", Shape::Inner("")),
    ("parenthesized_expression", Shape::Pass("")),
    ("reference_expression", Shape::Pass("value")),
    ("unary_expression", Shape::Own(unary)),
    ("index_expression", Shape::Own(index)),
    ("struct_expression", Shape::Of("name")),
    ("type_cast_expression", Shape::Of("type")),
    ("reference_type", Shape::Pass("type")),
    ("pointer_type", Shape::Pass("type")),
    ("generic_type", Shape::Apply("type", "type_arguments")),
    ("dynamic_type", Shape::Pass("trait")),
    ("abstract_type", Shape::Pass("trait")),
    ("bounded_type", Shape::Own(bounded)),
    ("bracketed_type", Shape::Pass("")),
    ("qualified_type", Shape::Pass("type")),
    ("higher_ranked_trait_bound", Shape::Pass("type")),
    ("tuple_type", Shape::Tuple("()")),
    ("unit_type", Shape::Literal("()")),
    ("array_type", Shape::Tuple("[]")),
    ("primitive_type", Shape::Own(primitive)),
    ("function_type", Shape::Literal("fn")),
    ("string_literal", Shape::Literal("str")),
    ("raw_string_literal", Shape::Literal("str")),
    ("char_literal", Shape::Literal("char")),
    ("integer_literal", Shape::Literal("i32")),
    ("float_literal", Shape::Literal("f64")),
    ("boolean_literal", Shape::Literal("bool")),
    ("array_expression", Shape::Literal("[]")),
    ("closure_expression", Shape::Own(closure_value)),
    ("macro_invocation", Shape::Own(macros::value)),
    ("block", Shape::Own(last)),
    ("unsafe_block", Shape::Pass("")),
    ("if_expression", Shape::Own(if_value)),
    ("match_expression", Shape::Own(match_value)),
    ("else_clause", Shape::Pass("")),
    ("return_expression", Shape::Null),
    ("break_expression", Shape::Null),
    ("continue_expression", Shape::Null),
];

/// `x[i]` is one of those that `x` holds, `x[1..]` some of them.
fn index(walk: &mut Walk<'_>, node: Syntax<'_>) -> ExprId {
    let value = walk.lower_field(node, "");
    let range = node.named_child(1).is_some_and(|index| index.kind() == "range_expression");
    if value.is_none() {
        return value;
    }
    walk.expr(if range { Expr::Slice(value) } else { Expr::Item(value) })
}

/// Lowers `*x` to the value that `x` refers to; `**x` is unknown: it most often gives a value of another type.
fn unary(walk: &mut Walk<'_>, node: Syntax<'_>) -> ExprId {
    if walk.text(node).starts_with("**") { ExprId::NONE } else { walk.lower_field(node, "") }
}

fn primitive(walk: &mut Walk<'_>, node: Syntax<'_>) -> ExprId {
    let text = walk.text(node);
    walk.literal(text)
}

/// Each of the bounds may give a method.
fn bounded(walk: &mut Walk<'_>, node: Syntax<'_>) -> ExprId {
    walk.lower_all(node)
}

fn closure_value(walk: &mut Walk<'_>, node: Syntax<'_>) -> ExprId {
    let given = if let Some(ty) = walk.get(node, "return_type") {
        let ty = walk.lower(ty);
        walk.of(ty)
    } else {
        walk.lower_field(node, "body")
    };
    walk.expr(Expr::Function(given))
}

/// Lowers a block to its last expression.
fn last(walk: &mut Walk<'_>, node: Syntax<'_>) -> ExprId {
    let count = node.named_child_count();
    let last = count.checked_sub(1).and_then(|at| node.named_child(u32::try_from(at).unwrap_or(u32::MAX)));
    match last {
        // A longer block may bind the names in it, and the place that asks for the value does not see them.
        Some(last) if count == 1 => walk.lower(last),
        _ => ExprId::NONE,
    }
}

fn if_value(walk: &mut Walk<'_>, node: Syntax<'_>) -> ExprId {
    let (Some(yes), Some(no)) = (walk.get(node, "consequence"), walk.get(node, "alternative")) else {
        return ExprId::NONE;
    };
    let (yes, no) = (walk.lower(yes), walk.lower(no));
    walk.either(yes, no)
}

fn match_value(walk: &mut Walk<'_>, node: Syntax<'_>) -> ExprId {
    let Some(body) = walk.get(node, "body") else { return ExprId::NONE };
    let mut out = ExprId::NONE;
    let mut cursor = body.walk();
    for arm in body.named_children(&mut cursor).filter(|arm| arm.kind() == "match_arm").take(8) {
        let value = walk.lower_field(arm, "value");
        if value.is_none() {
            // `Ok(x) => x` takes the value inside the matched value.
            return if takes_out(walk, body) { inner_of_match(walk, node) } else { value };
        }
        out = if out.is_none() { value } else { walk.either(out, value) };
    }
    if takes_out(walk, body) { inner_of_match(walk, node) } else { out }
}

fn inner_of_match(walk: &mut Walk<'_>, node: Syntax<'_>) -> ExprId {
    let value = walk.lower_field(node, "value");
    if value.is_none() { value } else { walk.expr(Expr::Inner(value)) }
}

/// Returns true if the first or second arm is `Ok(x) => x` or `Some(x) => x`.
fn takes_out(walk: &Walk<'_>, body: Syntax<'_>) -> bool {
    let mut cursor = body.walk();
    body.named_children(&mut cursor).filter(|arm| arm.kind() == "match_arm").take(2).any(|arm| {
        let (Some(pattern), Some(value)) = (walk.get(arm, "pattern"), walk.get(arm, "value")) else {
            return false;
        };
        let (pattern, value) = (walk.text(pattern), walk.text(value));
        ["Some", "Ok"].iter().any(|variant| {
            pattern
                .strip_prefix(variant)
                .and_then(|rest| rest.strip_prefix('('))
                .and_then(|rest| rest.strip_suffix(')'))
                .is_some_and(|name| name.trim_start_matches("mut ") == value)
        })
    })
}

/// Notes a node and the parameters of its type.
fn note(walk: &mut Walk<'_>, node: Syntax<'_>, kind: Kind, bare: bool) -> Option<u32> {
    let name = walk.get(node, "name")?;
    let name = walk.name_of(name);
    if name.is_none() {
        return None;
    }
    let body = walk.get(node, "body");
    let mut flags = flags(walk, node);
    if body.is_none() && matches!(kind, Kind::Function | Kind::Method) {
        flags |= flag::BODILESS;
    }
    let doc = doc(walk, node);
    let number = walk.node(Draft { kind, name, whole: node, body, flags, doc, bare });
    type_params(walk, node);
    Some(number)
}

/// `<T: Bound>` and `where T: Bound`.
fn type_params(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let mut params: Vec<(Name, ExprId)> = Vec::new();
    let mut cursor = node.walk();
    for part in node.named_children(&mut cursor) {
        let (kind, field) = match part.kind() {
            "type_parameters" => ("type_parameter", "name"),
            "where_clause" => ("where_predicate", "left"),
            _ => continue,
        };
        let mut inner = part.walk();
        for param in part.named_children(&mut inner).filter(|param| param.kind() == kind).take(32) {
            let Some(name) = walk.get(param, field).filter(|name| name.kind() == "type_identifier") else {
                continue;
            };
            let name = walk.name_of(name);
            let bounds = walk.get(param, "bounds").map_or(ExprId::NONE, |bounds| walk.lower_all(bounds));
            match params.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) if !bounds.is_none() => *known = bounds,
                Some(_) => {}
                None => params.push((name, bounds)),
            }
        }
    }
    for ((name, bounds), number) in params.into_iter().zip(0..) {
        walk.bind(name, start(node), end(node), start(node), Bound::TypeParam(bounds, number));
    }
}

fn function(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let method = matches!(walk.owner().what, Open::Class(_) | Open::Impl(_));
    let Some(number) = note(walk, node, if method { Kind::Method } else { Kind::Function }, !method) else { return };
    let value = match walk.get(node, "return_type") {
        Some(ty) => {
            let ty = walk.lower(ty);
            walk.of(ty)
        }
        None => walk.literal("()"),
    };
    let is_async = node.named_child(0).is_some_and(|first| first.kind() == "function_modifiers")
        || node.named_child(1).is_some_and(|second| second.kind() == "function_modifiers");
    if is_async && walk.text(node).split("fn ").next().is_some_and(|head| head.contains("async")) {
        walk.facts.nodes[number as usize].flags |= flag::ASYNC;
    }
    walk.gives(number, value, start(node));
    let (mut names, mut listed, mut open) = (Vec::new(), Vec::new(), false);
    if let Some(list) = walk.get(node, "parameters") {
        let mut cursor = list.walk();
        for param in list.named_children(&mut cursor) {
            let (Some(pattern), Some(ty)) = (walk.get(param, "pattern"), walk.get(param, "type")) else {
                continue;
            };
            let ty = walk.lower(ty);
            let value = walk.of(ty);
            let plain =
                if pattern.kind() == "mut_pattern" { pattern.named_child(1).unwrap_or(pattern) } else { pattern };
            if plain.kind() == "identifier" {
                names.push(walk.name_of(plain));
                let text = walk.text(plain);
                listed.push(text);
            } else {
                open = true;
            }
            bind::pattern(walk, pattern, value, start(node), end(node), start(node));
        }
    }
    let params: Vec<Param<'_>> = listed.into_iter().map(|name| Param { name, default: None }).collect();
    walk.check_doc(number, &params, open, false);
    walk.set_params(number, names);
    walk.open(node, Open::Function(number));
}

fn class(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let kind = if node.kind() == "trait_item" { Kind::Trait } else { Kind::Class };
    let Some(number) = note(walk, node, kind, true) else { return };
    if let Some(bounds) = walk.get(node, "bounds") {
        let mut cursor = bounds.walk();
        let bases: Vec<ExprId> = bounds.named_children(&mut cursor).map(|bound| walk.lower(bound)).collect();
        walk.set_bases(number, bases);
    }
    walk.open(node, Open::Class(number));
    tuple_fields(walk, node, number);
}

/// The fields of `struct P(A, B)` are `0` and `1`.
fn tuple_fields(walk: &mut Walk<'_>, node: Syntax<'_>, owner: u32) {
    let Some(body) = walk.get(node, "body").filter(|body| body.kind() == "ordered_field_declaration_list") else {
        return;
    };
    let mut cursor = body.walk();
    let types: Vec<Syntax<'_>> = body.children_by_field_name("type", &mut cursor).take(64).collect();
    for (ty, number) in types.into_iter().zip(0..) {
        let ty = walk.lower(ty);
        let value = walk.of(ty);
        let name = walk.names.made(&format!("{number}"));
        walk.field(owner, name, value, start(node));
    }
}

fn variant(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let Some(body) = walk.get(node, "body") else { return };
    let tuple = body.kind() == "ordered_field_declaration_list";
    let Some(name) = walk.get(node, "name") else { return };
    let name = walk.name_of(name);
    if name.is_none() {
        return;
    }
    let doc = doc(walk, node);
    let draft = Draft { kind: Kind::Variant, name, whole: node, body: None, flags: 0, doc, bare: false };
    let number = walk.node(draft);
    walk.open(node, Open::Class(number));
    if tuple {
        tuple_fields(walk, node, number);
    }
}

fn field(walk: &mut Walk<'_>, node: Syntax<'_>) {
    walk.marks.clear();
    let (Open::Class(owner), Some(name)) = (walk.owner().what, walk.get(node, "name")) else { return };
    let ty = walk.lower_field(node, "type");
    let value = walk.of(ty);
    let name = walk.name_of(name);
    walk.field(owner, name, value, start(node));
}

fn impl_(walk: &mut Walk<'_>, node: Syntax<'_>) {
    walk.marks.clear();
    let of = walk.lower_field(node, "type");
    let tr = walk.lower_field(node, "trait");
    let number = walk.impl_block(of, tr, node);
    type_params(walk, node);
    walk.open(node, Open::Impl(number));
}

fn module(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let path = walk.marks.iter().find_map(|mark| mark.strip_prefix("#[path")).and_then(|mark| mark.split('"').nth(1));
    if walk.get(node, "body").is_some() {
        if let Some(number) = note(walk, node, Kind::Module, true) {
            walk.open(node, Open::Module(number));
        }
        return;
    }
    let macros = walk.marks.iter().any(|mark| mark.contains("macro_use"));
    walk.marks.clear();
    // A module in a file of its own: its name gives the place, or `#[path]` does. It passes on its macros.
    if let Some(name) = walk.get(node, "name") {
        let name = walk.text(name);
        let module = path.map_or_else(|| format!("self::{name}"), |path| format!("#{path}"));
        walk.import(&module, "", name, node, macros);
    }
}

fn type_(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let method = matches!(walk.owner().what, Open::Class(_) | Open::Impl(_));
    let Some(number) = note(walk, node, Kind::Type, !method) else { return };
    let ty = walk.lower_field(node, "type");
    let value = walk.of(ty);
    walk.gives(number, value, start(node));
}

/// Notes a type that the implementations of a trait choose.
fn associated(walk: &mut Walk<'_>, node: Syntax<'_>) {
    walk.marks.clear();
    let (Some(name), Open::Class(owner)) = (walk.get(node, "name"), walk.owner().what) else { return };
    let bounds = walk.get(node, "bounds").map_or(ExprId::NONE, |bounds| walk.lower_all(bounds));
    let value = walk.of(bounds);
    let name = walk.name_of(name);
    walk.field(owner, name, value, start(node));
}

fn constant(walk: &mut Walk<'_>, node: Syntax<'_>) {
    walk.marks.clear();
    let Some(name) = walk.get(node, "name") else { return };
    let ty = walk.lower_field(node, "type");
    let value = walk.of(ty);
    let name = walk.name_of(name);
    match walk.owner().what {
        Open::Class(owner) => walk.field(owner, name, value, start(node)),
        Open::Impl(_) => {}
        _ => {
            let frame = walk.frame();
            walk.bind(name, frame.from, frame.to, start(node), Bound::Value(value));
        }
    }
}

fn block(walk: &mut Walk<'_>, node: Syntax<'_>) {
    walk.open(node, Open::Block);
}

fn call(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let Some(function) = walk.get(node, "function") else { return };
    if !is_field(function) {
        walk.call_of(function, false);
    }
    bind::hints(walk, node, function);
}

/// `(self.f)` before arguments: the field, even where a method has its name.
fn is_field(function: Syntax<'_>) -> bool {
    function.kind() == "parenthesized_expression"
        && function.named_child(0).is_some_and(|inner| inner.kind() == "field_expression")
}

/// Lowers a call of a field: the result of the function that it holds is not known.
fn field_called(walk: &mut Walk<'_>, node: Syntax<'_>) -> ExprId {
    let function = walk.get(node, "function");
    if function.is_some_and(is_field) { walk.literal("?") } else { ExprId::NONE }
}

/// A name that a pattern binds: in lower case, or it is a constant.
pub(super) fn binds(text: &str) -> bool {
    text.starts_with(|c: char| c.is_lowercase() || c == '_')
}
