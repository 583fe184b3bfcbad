//! Visitors that the languages with braces share.

use tree_sitter::Node as Syntax;

use crate::extract::{Draft, Open, Walk, end, start};
use crate::facts::{Bound, Expr, ExprId, Impl, Kind, Name, flag};

/// Comments right before a node, marks of its own between them.
pub(super) fn doc(walk: &mut Walk<'_>, node: Syntax<'_>, wanted: &[&str]) -> Option<String> {
    let mut comments = walk.comments_before(node.start_position().row);
    comments.retain(|comment| wanted.iter().any(|start| comment.starts_with(start)));
    crate::extract::text::doc(&crate::doc::uncomment(&comments))
}

/// The part of a value at a place, as far as both are known.
pub(super) fn part(walk: &mut Walk<'_>, value: ExprId, place: Option<u32>) -> ExprId {
    match place {
        Some(place) if !value.is_none() => walk.expr(Expr::Part(value, place.into())),
        _ => ExprId::NONE,
    }
}

/// The patterns within that of a tuple or an array, each with its place, which is not known from `..` or `*rest` on. Commas are
/// counted and not nodes, since a hole and `_` are no nodes, and a comment is one.
pub(super) fn places(node: Syntax<'_>) -> Vec<(Syntax<'_>, Option<u32>)> {
    let mut cursor = node.walk();
    let mut place = Some(0);
    let mut out = Vec::new();
    for child in node.children(&mut cursor) {
        match child.kind() {
            "," => place = place.map(|place| place + 1),
            "remaining_field_pattern" => place = None,
            "rest_pattern" | "list_splat_pattern" => {
                place = None;
                out.push((child, place));
            }
            _ if child.is_named() => out.push((child, place)),
            _ => {}
        }
    }
    out
}

/// Notes a node by the name in a field.
pub(super) fn note(
    walk: &mut Walk<'_>,
    node: Syntax<'_>,
    name: Syntax<'_>,
    kind: Kind,
    (bare, flags): (bool, u16),
    docs: &[&str],
) -> Option<u32> {
    let name = walk.name_of(name);
    if name.is_none() {
        return None;
    }
    let doc = doc(walk, node, docs);
    let body = walk.get(node, "body");
    let bodiless = body.is_none() && matches!(kind, Kind::Function | Kind::Method);
    let flags = flags | if bodiless { flag::BODILESS } else { 0 };
    Some(walk.node(Draft { kind, name, whole: node, body, flags, doc, bare }))
}

/// Opens a class without a name. It hides the code around it: `this` and bare names in it are of an unknown type.
pub(super) fn nameless(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let number = u32::try_from(walk.facts.impls.len()).unwrap_or(u32::MAX);
    walk.facts.impls.push(Impl { of: ExprId::NONE, tr: ExprId::NONE, from: start(node), to: end(node) });
    walk.open(node, Open::Impl(number));
}

/// Notes the result of a function, by the type in a field.
pub(super) fn gives(walk: &mut Walk<'_>, node: Syntax<'_>, number: u32, field: &str) {
    if let Some(ty) = walk.get(node, field) {
        let ty = walk.lower(ty);
        let value = walk.of(ty);
        walk.gives(number, value, start(node));
        if let Some(noted) = walk.facts.nodes.get_mut(number as usize) {
            noted.flags |= flag::ANNOTATED;
        }
    }
}

/// Notes the parameters of a function, each by the name that `name_of` finds in it, with the type in `type`.
pub(super) fn params(
    walk: &mut Walk<'_>,
    node: Syntax<'_>,
    list: Option<Syntax<'_>>,
    number: u32,
    name_of: fn(Syntax<'_>) -> Option<Syntax<'_>>,
) {
    let mut names: Vec<Name> = Vec::new();
    if let Some(list) = list {
        let mut cursor = list.walk();
        for param in list.named_children(&mut cursor) {
            let Some(name) = name_of(param) else { continue };
            let value = typed(walk, param.child_by_field_name("type"), None);
            let name = walk.name_of(name);
            names.push(name);
            walk.bind(name, start(node), end(node), start(node), Bound::Param(value, number));
        }
    }
    walk.set_params(number, names);
}

/// Binds a name in the innermost frame: in a function from its declaration on.
pub(super) fn bind(walk: &mut Walk<'_>, name: Name, value: ExprId, at: Syntax<'_>) {
    let frame = walk.frame();
    let from = if matches!(frame.what, Open::Block | Open::Function(_)) { end(at) } else { frame.from };
    walk.bind(name, from, frame.to, start(at), Bound::Value(value));
}

/// Binds a name within a node.
pub(super) fn bind_in(walk: &mut Walk<'_>, name: Name, value: ExprId, scope: Syntax<'_>) {
    walk.bind(name, start(scope), end(scope), start(scope), Bound::Value(value));
}

pub(super) fn block(walk: &mut Walk<'_>, node: Syntax<'_>) {
    walk.open(node, Open::Block);
}

/// Notes a call of the node in `function`.
pub(super) fn call(walk: &mut Walk<'_>, node: Syntax<'_>) {
    if let Some(function) = walk.get(node, "function") {
        walk.call_of(function, false);
    }
}

/// A value of the type in `type`, unless that says `var`.
pub(super) fn typed(walk: &mut Walk<'_>, ty: Option<Syntax<'_>>, value: Option<Syntax<'_>>) -> ExprId {
    match ty.filter(|ty| !matches!(walk.text(*ty), "var" | "auto")) {
        Some(ty) => {
            let ty = walk.lower(ty);
            walk.of(ty)
        }
        None => value.map_or(ExprId::NONE, |value| walk.lower(value)),
    }
}
