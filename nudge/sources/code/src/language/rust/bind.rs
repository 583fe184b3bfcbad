//! Binds the names of patterns.

use tree_sitter::Node as Syntax;

use crate::extract::{Open, Walk, end, start};
use crate::facts::{Bound, Expr, ExprId, NO_NODE};

use super::binds;
use crate::language::common::{part, places};

/// Methods of the standard library that hand their items, one by one, to a closure.
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
pub(super) fn pattern(walk: &mut Walk<'_>, node: Syntax<'_>, value: ExprId, from: u32, to: u32, at: u32) {
    let mut todo = vec![(node, value)];
    let mut steps = 0;
    while let Some((node, value)) = todo.pop() {
        steps += 1;
        if steps > 500 {
            return;
        }
        match node.kind() {
            "identifier" | "shorthand_field_identifier" if binds(walk.text(node)) => {
                let name = walk.name_of(node);
                walk.bind(name, from, to, at, Bound::Value(value));
            }
            "tuple_struct_pattern" => {
                let Some(ty) = walk.get(node, "type") else { continue };
                let path = walk.text(ty);
                let last = path.rsplit("::").next().unwrap_or(path);
                let whole = walk.lower(ty);
                for (child, number) in places(node).into_iter().filter(|(child, _)| *child != ty) {
                    let part = match last {
                        "Some" | "Ok" | "Ready" if path == last && !value.is_none() => walk.expr(Expr::Inner(value)),
                        "Err" | "Some" | "Ok" if path == last => ExprId::NONE,
                        _ => part(walk, whole, number),
                    };
                    todo.push((child, part));
                }
            }
            "struct_pattern" => {
                let ty = walk.lower_field(node, "type");
                let whole = walk.of(ty);
                let mut cursor = node.walk();
                for child in node.named_children(&mut cursor).filter(|child| child.kind() == "field_pattern") {
                    let Some(name) = walk.get(child, "name") else { continue };
                    let field = walk.name_of(name);
                    let part = if whole.is_none() { whole } else { walk.expr(Expr::Member(whole, field)) };
                    todo.push((walk.get(child, "pattern").unwrap_or(name), part));
                }
            }
            "tuple_pattern" => {
                for (child, number) in places(node) {
                    let part = part(walk, value, number);
                    todo.push((child, part));
                }
            }
            "slice_pattern" => {
                let mut cursor = node.walk();
                for child in node.named_children(&mut cursor) {
                    let item = if value.is_none() { value } else { walk.expr(Expr::Item(value)) };
                    todo.push((child, item));
                }
            }
            "match_pattern" | "ref_pattern" | "mut_pattern" | "reference_pattern" | "captured_pattern"
            | "or_pattern" => {
                let mut cursor = node.walk();
                let condition = walk.get(node, "condition");
                for child in node.named_children(&mut cursor).filter(|child| Some(*child) != condition) {
                    todo.push((child, value));
                }
            }
            _ => {}
        }
    }
}

pub(super) fn let_(walk: &mut Walk<'_>, node: Syntax<'_>) {
    walk.marks.clear();
    let Some(left) = walk.get(node, "pattern") else { return };
    let value = typed_or_value(walk, node);
    let to = walk.frame().to;
    pattern(walk, left, value, end(node), to, start(node));
}

fn typed_or_value(walk: &mut Walk<'_>, node: Syntax<'_>) -> ExprId {
    match walk.get(node, "type") {
        // `let x: Vec<_> = ..` leaves the item type open: the value would tell more.
        Some(ty) => {
            let ty = walk.lower(ty);
            walk.of(ty)
        }
        None => walk.lower_field(node, "value"),
    }
}

/// `if let` and `while let`: names are seen where the condition holds.
pub(super) fn condition(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let Some(left) = walk.get(node, "pattern") else { return };
    let value = walk.lower_field(node, "value");
    let to = walk.frame().to;
    pattern(walk, left, value, end(node), to, start(node));
}

pub(super) fn if_(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let body = walk.get(node, "consequence").or_else(|| walk.get(node, "body"));
    let to = body.map_or(end(node), end);
    walk.open_at(Open::Block, start(node), to, ExprId::NONE);
}

pub(super) fn for_(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let (Some(left), Some(body)) = (walk.get(node, "pattern"), walk.get(node, "body")) else {
        return;
    };
    let value = walk.lower_field(node, "value");
    let value = if value.is_none() { value } else { walk.expr(Expr::Each(value)) };
    pattern(walk, left, value, start(body), end(body), start(node));
}

pub(super) fn match_(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let value = walk.lower_field(node, "value");
    walk.open_at(Open::Block, start(node), end(node), value);
}

pub(super) fn arm(walk: &mut Walk<'_>, node: Syntax<'_>) {
    walk.marks.clear();
    let subject = walk.frame().subject;
    walk.open(node, Open::Block);
    if let Some(left) = walk.get(node, "pattern") {
        pattern(walk, left, subject, start(node), end(node), start(node));
    }
}

pub(super) fn closure(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let hint = walk.hints.remove(&node.id()).unwrap_or(ExprId::NONE);
    let at = start(node);
    walk.open(node, Open::Function(NO_NODE));
    let Some(list) = walk.get(node, "parameters") else { return };
    let mut cursor = list.walk();
    for (param, place) in list.named_children(&mut cursor).zip(0..) {
        let (left, value) = match (walk.get(param, "pattern"), walk.get(param, "type")) {
            (Some(left), Some(ty)) if param.kind() == "parameter" => {
                let ty = walk.lower(ty);
                (left, walk.of(ty))
            }
            _ => (param, if place == 0 { hint } else { ExprId::NONE }),
        };
        pattern(walk, left, value, at, end(node), at.saturating_sub(1));
    }
}

/// Gives a closure that is passed to `map`, `filter`, ... the items of the receiver as values.
pub(super) fn hints(walk: &mut Walk<'_>, node: Syntax<'_>, function: Syntax<'_>) {
    if function.kind() != "field_expression" {
        return;
    }
    let Some(method) = walk.get(function, "field") else { return };
    if !HANDS_ITEM.contains(&walk.text(method)) {
        return;
    }
    let Some(args) = walk.get(node, "arguments") else { return };
    let mut cursor = args.walk();
    // An argument before it takes an error, or nothing: `map_or_else`.
    let Some(closure) = args.named_children(&mut cursor).filter(|arg| arg.kind() == "closure_expression").last() else {
        return;
    };
    let receiver = walk.lower_field(function, "value");
    if !receiver.is_none() {
        let item = walk.expr(Expr::Each(receiver));
        walk.hints.insert(closure.id(), item);
    }
}
