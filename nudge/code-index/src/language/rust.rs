//! Reads Rust.

mod attributes;
mod bind;
mod macros;
mod uses;

use tree_sitter::Node as Syntax;

use crate::doc::DeclaredParam;
use crate::extract::{FrameKind, NodeDraft, TreeWalk, end_byte, start_byte};
use crate::facts::{BindingTarget, Expr, ExprId, NameId, NodeKind, flag, to_number};

use super::{LanguageSpec, SyntaxShape, Visit};
use attributes::{read_doc, read_flags};

pub(super) const SPEC: LanguageSpec = LanguageSpec {
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
    ("attribute_item", attributes::visit_attribute),
    ("inner_attribute_item", attributes::inner_attribute),
    ("function_item", visit_function),
    ("function_signature_item", visit_function),
    ("struct_item", visit_class),
    ("union_item", visit_class),
    ("enum_item", visit_class),
    ("enum_variant", visit_variant),
    ("trait_item", visit_class),
    ("impl_item", impl_),
    ("mod_item", visit_module),
    ("type_item", type_),
    ("associated_type", visit_associated_type),
    ("macro_definition", macros::visit_definition),
    ("macro_invocation", macros::visit_invocation),
    ("token_tree", macros::visit_tokens),
    ("use_declaration", uses::use_),
    ("extern_crate_declaration", uses::extern_crate),
    ("field_declaration", visit_field),
    ("const_item", visit_constant),
    ("static_item", visit_constant),
    ("block", open_block),
    ("let_declaration", bind::let_),
    ("let_condition", bind::bind_condition),
    ("if_expression", bind::if_),
    ("while_expression", bind::if_),
    ("for_expression", bind::for_),
    ("match_expression", bind::match_),
    ("match_arm", bind::visit_arm),
    ("closure_expression", bind::visit_closure),
    ("call_expression", call),
    ("struct_expression", |_, _| ()),
];

const SHAPES: &[(&str, SyntaxShape)] = &[
    ("identifier", SyntaxShape::Name),
    ("type_identifier", SyntaxShape::Name),
    ("shorthand_field_identifier", SyntaxShape::Name),
    ("crate", SyntaxShape::Name),
    ("super", SyntaxShape::Name),
    ("metavariable", SyntaxShape::Null),
    ("self", SyntaxShape::This),
    ("scoped_identifier", SyntaxShape::Static("path", "name")),
    ("scoped_type_identifier", SyntaxShape::Static("path", "name")),
    ("field_expression", SyntaxShape::Member("value", "field")),
    ("call_expression", SyntaxShape::CallOr("function", field_called)),
    ("generic_function", SyntaxShape::Pass("function")),
    ("generic_type_with_turbofish", SyntaxShape::Pass("type")),
    ("try_expression", SyntaxShape::Inner("")),
    ("await_expression", SyntaxShape::Inner("")),
    ("parenthesized_expression", SyntaxShape::Pass("")),
    ("reference_expression", SyntaxShape::Pass("value")),
    ("unary_expression", SyntaxShape::Own(lower_unary)),
    ("index_expression", SyntaxShape::Own(index)),
    ("struct_expression", SyntaxShape::Of("name")),
    ("type_cast_expression", SyntaxShape::Of("type")),
    ("reference_type", SyntaxShape::Pass("type")),
    ("pointer_type", SyntaxShape::Pass("type")),
    ("generic_type", SyntaxShape::Apply("type", "type_arguments")),
    ("dynamic_type", SyntaxShape::Pass("trait")),
    ("abstract_type", SyntaxShape::Pass("trait")),
    ("bounded_type", SyntaxShape::Own(lower_bounds)),
    ("bracketed_type", SyntaxShape::Pass("")),
    ("qualified_type", SyntaxShape::Pass("type")),
    ("higher_ranked_trait_bound", SyntaxShape::Pass("type")),
    ("tuple_type", SyntaxShape::Tuple("()")),
    ("unit_type", SyntaxShape::Literal("()")),
    ("array_type", SyntaxShape::Tuple("[]")),
    ("primitive_type", SyntaxShape::Own(lower_primitive)),
    ("function_type", SyntaxShape::Literal("fn")),
    ("string_literal", SyntaxShape::Literal("str")),
    ("raw_string_literal", SyntaxShape::Literal("str")),
    ("char_literal", SyntaxShape::Literal("char")),
    ("integer_literal", SyntaxShape::Literal("i32")),
    ("float_literal", SyntaxShape::Literal("f64")),
    ("boolean_literal", SyntaxShape::Literal("bool")),
    ("array_expression", SyntaxShape::Literal("[]")),
    ("closure_expression", SyntaxShape::Own(closure_value)),
    ("macro_invocation", SyntaxShape::Own(macros::lower_macro)),
    ("block", SyntaxShape::Own(lower_block)),
    ("unsafe_block", SyntaxShape::Pass("")),
    ("if_expression", SyntaxShape::Own(if_value)),
    ("match_expression", SyntaxShape::Own(match_value)),
    ("else_clause", SyntaxShape::Pass("")),
    ("return_expression", SyntaxShape::Null),
    ("break_expression", SyntaxShape::Null),
    ("continue_expression", SyntaxShape::Null),
];

/// Lowers an index expression. `x[i]` is an item of `x`, and `x[1..]` is a slice of `x`.
fn index(walk: &mut TreeWalk<'_>, node: Syntax<'_>) -> ExprId {
    let value = walk.lower_field(node, "");
    let range = node.named_child(1).is_some_and(|index| index.kind() == "range_expression");
    if value.is_none() {
        return value;
    }
    walk.add_expr(if range { Expr::Slice(value) } else { Expr::Item(value) })
}

/// Lowers `*x` to the value `x`, because a reference counts as its target. `**x` is unknown, because it mostly has
/// another type.
fn lower_unary(walk: &mut TreeWalk<'_>, node: Syntax<'_>) -> ExprId {
    if walk.node_text(node).starts_with("**") { ExprId::NONE } else { walk.lower_field(node, "") }
}

fn lower_primitive(walk: &mut TreeWalk<'_>, node: Syntax<'_>) -> ExprId {
    let text = walk.node_text(node);
    walk.add_literal(text)
}

/// Lowers the bounds of a type. Any of them may have the called method.
fn lower_bounds(walk: &mut TreeWalk<'_>, node: Syntax<'_>) -> ExprId {
    walk.lower_all(node)
}

fn closure_value(walk: &mut TreeWalk<'_>, node: Syntax<'_>) -> ExprId {
    let given = if let Some(ty) = walk.child_by_field(node, "return_type") {
        let ty = walk.lower_expr(ty);
        walk.add_value_of(ty)
    } else {
        walk.lower_field(node, "body")
    };
    walk.add_expr(Expr::Function(given))
}

/// Lowers a block to its last expression.
fn lower_block(walk: &mut TreeWalk<'_>, node: Syntax<'_>) -> ExprId {
    let count = node.named_child_count();
    let last = count.checked_sub(1).and_then(|index| node.named_child(to_number(index)));
    match last {
        // If the block has other statements, they may bind names that are not visible where the value of the block is
        // evaluated.
        Some(last) if count == 1 => walk.lower_expr(last),
        _ => ExprId::NONE,
    }
}

fn if_value(walk: &mut TreeWalk<'_>, node: Syntax<'_>) -> ExprId {
    let (Some(yes), Some(no)) = (walk.child_by_field(node, "consequence"), walk.child_by_field(node, "alternative"))
    else {
        return ExprId::NONE;
    };
    let (yes, no) = (walk.lower_expr(yes), walk.lower_expr(no));
    walk.add_either(yes, no)
}

fn match_value(walk: &mut TreeWalk<'_>, node: Syntax<'_>) -> ExprId {
    let Some(body) = walk.child_by_field(node, "body") else { return ExprId::NONE };
    let mut out = ExprId::NONE;
    let mut cursor = body.walk();
    for arm in body.named_children(&mut cursor).filter(|arm| arm.kind() == "match_arm").take(8) {
        let value = walk.lower_field(arm, "value");
        if value.is_none() {
            // An arm such as `Ok(x) => x` gives the value inside the matched value.
            return if takes_out(walk, body) { inner_of_match(walk, node) } else { value };
        }
        out = if out.is_none() { value } else { walk.add_either(out, value) };
    }
    if takes_out(walk, body) { inner_of_match(walk, node) } else { out }
}

fn inner_of_match(walk: &mut TreeWalk<'_>, node: Syntax<'_>) -> ExprId {
    let value = walk.lower_field(node, "value");
    if value.is_none() { value } else { walk.add_expr(Expr::Inner(value)) }
}

/// Returns true if the first or second arm of a match is `Ok(x) => x` or `Some(x) => x`.
fn takes_out(walk: &TreeWalk<'_>, body: Syntax<'_>) -> bool {
    let mut cursor = body.walk();
    body.named_children(&mut cursor).filter(|arm| arm.kind() == "match_arm").take(2).any(|arm| {
        let (Some(pattern), Some(value)) = (walk.child_by_field(arm, "pattern"), walk.child_by_field(arm, "value"))
        else {
            return false;
        };
        let (pattern, value) = (walk.node_text(pattern), walk.node_text(value));
        ["Some", "Ok"].iter().any(|variant| {
            pattern
                .strip_prefix(variant)
                .and_then(|rest| rest.strip_prefix('('))
                .and_then(|rest| rest.strip_suffix(')'))
                .is_some_and(|name| name.trim_start_matches("mut ") == value)
        })
    })
}

/// Notes a node and its type parameters.
fn note_node(walk: &mut TreeWalk<'_>, node: Syntax<'_>, kind: NodeKind, bare: bool) -> Option<u32> {
    let name = walk.child_by_field(node, "name")?;
    let name = walk.name_of(name);
    if name.is_none() {
        return None;
    }
    let body = walk.child_by_field(node, "body");
    let mut flags = read_flags(walk, node);
    if body.is_none() && matches!(kind, NodeKind::Function | NodeKind::Method) {
        flags |= flag::BODILESS;
    }
    let doc = read_doc(walk, node);
    let number = walk.add_node(NodeDraft { kind, name, whole: node, body, flags, doc, bare });
    type_params(walk, node);
    Some(number)
}

/// Binds the type parameters of `<T: Bound>` and `where T: Bound`.
fn type_params(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let mut params: Vec<(NameId, ExprId)> = Vec::new();
    let mut cursor = node.walk();
    for part in node.named_children(&mut cursor) {
        let (kind, field) = match part.kind() {
            "type_parameters" => ("type_parameter", "name"),
            "where_clause" => ("where_predicate", "left"),
            _ => continue,
        };
        let mut inner = part.walk();
        for param in part.named_children(&mut inner).filter(|param| param.kind() == kind).take(32) {
            let Some(name) = walk.child_by_field(param, field).filter(|name| name.kind() == "type_identifier") else {
                continue;
            };
            let name = walk.name_of(name);
            let bounds = walk.child_by_field(param, "bounds").map_or(ExprId::NONE, |bounds| walk.lower_all(bounds));
            match params.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) if !bounds.is_none() => *known = bounds,
                Some(_) => {}
                None => params.push((name, bounds)),
            }
        }
    }
    for ((name, bounds), number) in params.into_iter().zip(0..) {
        walk.add_binding(
            name,
            start_byte(node),
            end_byte(node),
            start_byte(node),
            BindingTarget::TypeParam(bounds, number),
        );
    }
}

fn visit_function(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let method = matches!(walk.owner_frame().what, FrameKind::Class(_) | FrameKind::Impl(_));
    let Some(number) = note_node(walk, node, if method { NodeKind::Method } else { NodeKind::Function }, !method)
    else {
        return;
    };
    let value = match walk.child_by_field(node, "return_type") {
        Some(ty) => {
            let ty = walk.lower_expr(ty);
            walk.add_value_of(ty)
        }
        None => walk.add_literal("()"),
    };
    let is_async = node.named_child(0).is_some_and(|first| first.kind() == "function_modifiers")
        || node.named_child(1).is_some_and(|second| second.kind() == "function_modifiers");
    if is_async && walk.node_text(node).split("fn ").next().is_some_and(|head| head.contains("async")) {
        walk.facts.nodes[number as usize].flags |= flag::ASYNC;
    }
    walk.add_result(number, value, start_byte(node));
    let (mut names, mut listed, mut open) = (Vec::new(), Vec::new(), false);
    if let Some(list) = walk.child_by_field(node, "parameters") {
        let mut cursor = list.walk();
        for param in list.named_children(&mut cursor) {
            let (Some(pattern), Some(ty)) = (walk.child_by_field(param, "pattern"), walk.child_by_field(param, "type"))
            else {
                continue;
            };
            let ty = walk.lower_expr(ty);
            let value = walk.add_value_of(ty);
            let plain =
                if pattern.kind() == "mut_pattern" { pattern.named_child(1).unwrap_or(pattern) } else { pattern };
            if plain.kind() == "identifier" {
                names.push(walk.name_of(plain));
                let text = walk.node_text(plain);
                listed.push(text);
            } else {
                open = true;
            }
            bind::bind_pattern(walk, pattern, value, start_byte(node), end_byte(node), start_byte(node));
        }
    }
    let params: Vec<DeclaredParam<'_>> = listed.into_iter().map(|name| DeclaredParam { name, default: None }).collect();
    walk.check_doc(number, &params, open, false);
    walk.set_params(number, names);
    walk.open_frame(node, FrameKind::Function(number));
}

fn visit_class(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let kind = if node.kind() == "trait_item" { NodeKind::Trait } else { NodeKind::Class };
    let Some(number) = note_node(walk, node, kind, true) else { return };
    if let Some(bounds) = walk.child_by_field(node, "bounds") {
        let mut cursor = bounds.walk();
        let bases: Vec<ExprId> = bounds.named_children(&mut cursor).map(|bound| walk.lower_expr(bound)).collect();
        walk.set_bases(number, bases);
    }
    walk.open_frame(node, FrameKind::Class(number));
    tuple_fields(walk, node, number);
}

/// Notes the fields of a tuple struct: `0` and `1` for `struct P(A, B)`.
fn tuple_fields(walk: &mut TreeWalk<'_>, node: Syntax<'_>, owner: u32) {
    let Some(body) = walk.child_by_field(node, "body").filter(|body| body.kind() == "ordered_field_declaration_list")
    else {
        return;
    };
    let mut cursor = body.walk();
    let types: Vec<Syntax<'_>> = body.children_by_field_name("type", &mut cursor).take(64).collect();
    for (ty, number) in types.into_iter().zip(0..) {
        let ty = walk.lower_expr(ty);
        let value = walk.add_value_of(ty);
        let name = walk.names.intern_made(&format!("{number}"));
        walk.add_field(owner, name, value, start_byte(node));
    }
}

fn visit_variant(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let Some(body) = walk.child_by_field(node, "body") else { return };
    let tuple = body.kind() == "ordered_field_declaration_list";
    let Some(name) = walk.child_by_field(node, "name") else { return };
    let name = walk.name_of(name);
    if name.is_none() {
        return;
    }
    let doc = read_doc(walk, node);
    let draft = NodeDraft { kind: NodeKind::Variant, name, whole: node, body: None, flags: 0, doc, bare: false };
    let number = walk.add_node(draft);
    walk.open_frame(node, FrameKind::Class(number));
    if tuple {
        tuple_fields(walk, node, number);
    }
}

fn visit_field(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    walk.marks.clear();
    let (FrameKind::Class(owner), Some(name)) = (walk.owner_frame().what, walk.child_by_field(node, "name")) else {
        return;
    };
    let ty = walk.lower_field(node, "type");
    let value = walk.add_value_of(ty);
    let name = walk.name_of(name);
    walk.add_field(owner, name, value, start_byte(node));
}

fn impl_(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    walk.marks.clear();
    let owner = walk.lower_field(node, "type");
    let tr = walk.lower_field(node, "trait");
    let number = walk.impl_block(owner, tr, node);
    type_params(walk, node);
    walk.open_frame(node, FrameKind::Impl(number));
}

fn visit_module(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let path = walk.marks.iter().find_map(|mark| mark.strip_prefix("#[path")).and_then(|mark| mark.split('"').nth(1));
    if walk.child_by_field(node, "body").is_some() {
        if let Some(number) = note_node(walk, node, NodeKind::Module, true) {
            walk.open_frame(node, FrameKind::Module(number));
        }
        return;
    }
    let macros = walk.marks.iter().any(|mark| mark.contains("macro_use"));
    walk.marks.clear();
    // A module without a body is in another file, which its name or `#[path]` gives. With `#[macro_use]`, the module
    // exports its macros to the parent.
    if let Some(name) = walk.child_by_field(node, "name") {
        let name = walk.node_text(name);
        let module = path.map_or_else(|| format!("self::{name}"), |path| format!("#{path}"));
        walk.add_import(&module, "", name, node, macros);
    }
}

fn type_(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let method = matches!(walk.owner_frame().what, FrameKind::Class(_) | FrameKind::Impl(_));
    let Some(number) = note_node(walk, node, NodeKind::Type, !method) else { return };
    let ty = walk.lower_field(node, "type");
    let value = walk.add_value_of(ty);
    walk.add_result(number, value, start_byte(node));
}

/// Adds an associated type of a trait as a field. Implementations of the trait choose the type.
fn visit_associated_type(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    walk.marks.clear();
    let (Some(name), FrameKind::Class(owner)) = (walk.child_by_field(node, "name"), walk.owner_frame().what) else {
        return;
    };
    let bounds = walk.child_by_field(node, "bounds").map_or(ExprId::NONE, |bounds| walk.lower_all(bounds));
    let value = walk.add_value_of(bounds);
    let name = walk.name_of(name);
    walk.add_field(owner, name, value, start_byte(node));
}

fn visit_constant(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    walk.marks.clear();
    let Some(name) = walk.child_by_field(node, "name") else { return };
    let ty = walk.lower_field(node, "type");
    let value = walk.add_value_of(ty);
    let name = walk.name_of(name);
    match walk.owner_frame().what {
        FrameKind::Class(owner) => walk.add_field(owner, name, value, start_byte(node)),
        FrameKind::Impl(_) => {}
        _ => {
            let frame = walk.current_frame();
            walk.add_binding(name, frame.from, frame.to, start_byte(node), BindingTarget::Value(value));
        }
    }
}

fn open_block(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    walk.open_frame(node, FrameKind::Block);
}

fn call(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let Some(function) = walk.child_by_field(node, "function") else { return };
    if !is_field(function) {
        walk.call_of(function, false);
    }
    bind::hint_closure(walk, node, function);
}

/// Returns true for `(self.f)` before arguments. It always means the field, even if a method has the same name.
fn is_field(function: Syntax<'_>) -> bool {
    function.kind() == "parenthesized_expression"
        && function.named_child(0).is_some_and(|inner| inner.kind() == "field_expression")
}

/// Lowers a call of a function that a field contains. The result of the call is unknown.
fn field_called(walk: &mut TreeWalk<'_>, node: Syntax<'_>) -> ExprId {
    let function = walk.child_by_field(node, "function");
    if function.is_some_and(is_field) { walk.add_literal("?") } else { ExprId::NONE }
}

/// Returns true if a name in a pattern binds a value. Such a name begins in lower case; other names are constants.
pub(super) fn is_binding_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_lowercase() || c == '_')
}
