//! Binds the names in patterns of Rust.

use tree_sitter::Node as Syntax;

use crate::extract::{FrameKind, TreeWalk, end_byte, start_byte};
use crate::facts::{BindingTarget, Expr, ExprId, NO_NODE};

use super::is_binding_name;
use crate::language::common::{list_places, make_part};

/// Methods of the standard library that call a closure with each of the items.
const HANDS_ITEM: &[&str] = &[
    "all",
    "any",
    "and_then",
    "filter",
    "filter_map",
    "find",
    "find_map",
    "flat_map",
    "for_each",
    "inspect",
    "is_some_and",
    "map",
    "map_or",
    "map_or_else",
    "max_by_key",
    "min_by_key",
    "partition",
    "position",
    "retain",
    "skip_while",
    "sort_by_key",
    "take_while",
    "try_for_each",
    "is_ok_and",
];

/// Binds the names of a pattern to the parts of a value.
pub(super) fn bind_pattern(walk: &mut TreeWalk<'_>, node: Syntax<'_>, value: ExprId, from: u32, to: u32, offset: u32) {
    let mut todo = vec![(node, value)];
    let mut steps = 0;
    while let Some((node, value)) = todo.pop() {
        steps += 1;
        if steps > 500 {
            return;
        }
        match node.kind() {
            "identifier" | "shorthand_field_identifier" if is_binding_name(walk.node_text(node)) => {
                let name = walk.name_of(node);
                walk.add_binding(name, from, to, offset, BindingTarget::Value(value));
            }
            "tuple_struct_pattern" => {
                let Some(ty) = walk.child_by_field(node, "type") else { continue };
                let path = walk.node_text(ty);
                let last = path.rsplit("::").next().unwrap_or(path);
                let whole = walk.lower_expr(ty);
                for (child, number) in list_places(node).into_iter().filter(|(child, _)| *child != ty) {
                    let part = match last {
                        "Some" | "Ok" | "Ready" if path == last && !value.is_none() => {
                            walk.add_expr(Expr::Inner(value))
                        }
                        "Err" | "Some" | "Ok" if path == last => ExprId::NONE,
                        _ => make_part(walk, whole, number),
                    };
                    todo.push((child, part));
                }
            }
            "struct_pattern" => {
                let ty = walk.lower_field(node, "type");
                let whole = walk.add_value_of(ty);
                let mut cursor = node.walk();
                for child in node.named_children(&mut cursor).filter(|child| child.kind() == "field_pattern") {
                    let Some(name) = walk.child_by_field(child, "name") else { continue };
                    let field = walk.name_of(name);
                    let part = if whole.is_none() { whole } else { walk.add_expr(Expr::Member(whole, field)) };
                    todo.push((walk.child_by_field(child, "pattern").unwrap_or(name), part));
                }
            }
            "tuple_pattern" => {
                for (child, number) in list_places(node) {
                    let part = make_part(walk, value, number);
                    todo.push((child, part));
                }
            }
            "slice_pattern" => {
                let mut cursor = node.walk();
                for child in node.named_children(&mut cursor) {
                    let item = if value.is_none() { value } else { walk.add_expr(Expr::Item(value)) };
                    todo.push((child, item));
                }
            }
            "match_pattern" | "ref_pattern" | "mut_pattern" | "reference_pattern" | "captured_pattern"
            | "or_pattern" => {
                let mut cursor = node.walk();
                let condition = walk.child_by_field(node, "condition");
                for child in node.named_children(&mut cursor).filter(|child| Some(*child) != condition) {
                    todo.push((child, value));
                }
            }
            _ => {}
        }
    }
}

pub(super) fn let_(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    walk.marks.clear();
    let Some(left) = walk.child_by_field(node, "pattern") else { return };
    let value = typed_or_value(walk, node);
    let to = walk.current_frame().to;
    bind_pattern(walk, left, value, end_byte(node), to, start_byte(node));
}

fn typed_or_value(walk: &mut TreeWalk<'_>, node: Syntax<'_>) -> ExprId {
    match walk.child_by_field(node, "type") {
        // In `let x: Vec<_> = ..`, the type leaves the item type open, so the value says more.
        Some(ty) => {
            let ty = walk.lower_expr(ty);
            walk.add_value_of(ty)
        }
        None => walk.lower_field(node, "value"),
    }
}

/// Handles `if let` and `while let`. The names are visible where the condition is true.
pub(super) fn bind_condition(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let Some(left) = walk.child_by_field(node, "pattern") else { return };
    let value = walk.lower_field(node, "value");
    let to = walk.current_frame().to;
    bind_pattern(walk, left, value, end_byte(node), to, start_byte(node));
}

pub(super) fn if_(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let body = walk.child_by_field(node, "consequence").or_else(|| walk.child_by_field(node, "body"));
    let to = body.map_or(end_byte(node), end_byte);
    walk.open_at(FrameKind::Block, start_byte(node), to, ExprId::NONE);
}

pub(super) fn for_(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let (Some(left), Some(body)) = (walk.child_by_field(node, "pattern"), walk.child_by_field(node, "body")) else {
        return;
    };
    let value = walk.lower_field(node, "value");
    let value = if value.is_none() { value } else { walk.add_expr(Expr::Each(value)) };
    bind_pattern(walk, left, value, start_byte(body), end_byte(body), start_byte(node));
}

pub(super) fn match_(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let value = walk.lower_field(node, "value");
    walk.open_at(FrameKind::Block, start_byte(node), end_byte(node), value);
}

pub(super) fn visit_arm(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    walk.marks.clear();
    let subject = walk.current_frame().subject;
    walk.open_frame(node, FrameKind::Block);
    if let Some(left) = walk.child_by_field(node, "pattern") {
        bind_pattern(walk, left, subject, start_byte(node), end_byte(node), start_byte(node));
    }
}

pub(super) fn visit_closure(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let hint = walk.hints.remove(&node.id()).unwrap_or(ExprId::NONE);
    let offset = start_byte(node);
    walk.open_frame(node, FrameKind::Function(NO_NODE));
    let Some(list) = walk.child_by_field(node, "parameters") else { return };
    let mut cursor = list.walk();
    for (param, place) in list.named_children(&mut cursor).zip(0..) {
        let (left, value) = match (walk.child_by_field(param, "pattern"), walk.child_by_field(param, "type")) {
            (Some(left), Some(ty)) if param.kind() == "parameter" => {
                let ty = walk.lower_expr(ty);
                (left, walk.add_value_of(ty))
            }
            _ => (param, if place == 0 { hint } else { ExprId::NONE }),
        };
        bind_pattern(walk, left, value, offset, end_byte(node), offset.saturating_sub(1));
    }
}

/// Binds the parameters of a closure that is passed to `map`, `filter`, ... to the items of the receiver.
pub(super) fn hint_closure(walk: &mut TreeWalk<'_>, node: Syntax<'_>, function: Syntax<'_>) {
    if function.kind() != "field_expression" {
        return;
    }
    let Some(method) = walk.child_by_field(function, "field") else { return };
    if !HANDS_ITEM.contains(&walk.node_text(method)) {
        return;
    }
    let Some(args) = walk.child_by_field(node, "arguments") else { return };
    let mut cursor = args.walk();
    // Takes the last closure, because an earlier one gets an error or nothing, as in `map_or_else`.
    let Some(closure) = args.named_children(&mut cursor).filter(|arg| arg.kind() == "closure_expression").last() else {
        return;
    };
    let receiver = walk.lower_field(function, "value");
    if !receiver.is_none() {
        let item = walk.add_expr(Expr::Each(receiver));
        walk.hints.insert(closure.id(), item);
    }
}
