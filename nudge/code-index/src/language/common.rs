//! Provides functions that several languages with braces use.

use tree_sitter::Node as Syntax;

use crate::extract::{FrameKind, NodeDraft, TreeWalk, end_byte, start_byte};
use crate::facts::{BindingTarget, Expr, ExprId, ImplBlock, NameId, NodeKind, flag, to_number};

/// Returns the documentation from the comments directly before a node. Attributes of the node may be between them and
/// the node.
pub(super) fn read_doc(walk: &mut TreeWalk<'_>, node: Syntax<'_>, wanted: &[&str]) -> Option<String> {
    let mut comments = walk.comments_before(node.start_position().row);
    comments.retain(|comment| wanted.iter().any(|start| comment.starts_with(start)));
    crate::extract::text::clean_doc(&crate::doc::strip_comment_marks(&comments))
}

/// Makes the expression for one part of a value. The part is unknown if the value or the position is unknown.
pub(super) fn make_part(walk: &mut TreeWalk<'_>, value: ExprId, place: Option<u32>) -> ExprId {
    match place {
        Some(place) if !value.is_none() => walk.add_expr(Expr::Part(value, place.into())),
        _ => ExprId::NONE,
    }
}

/// Lists the patterns in a tuple or array pattern, each with its position. The position is unknown after `..` or
/// `*rest`. The function counts commas and not syntax nodes, because a hole and `_` are not nodes, and a comment is
/// one.
pub(super) fn list_places(node: Syntax<'_>) -> Vec<(Syntax<'_>, Option<u32>)> {
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

/// Adds a node to the facts. `name` is the syntax node of its name.
pub(super) fn note_node(
    walk: &mut TreeWalk<'_>,
    node: Syntax<'_>,
    name: Syntax<'_>,
    kind: NodeKind,
    (bare, flags): (bool, u16),
    docs: &[&str],
) -> Option<u32> {
    let name = walk.name_of(name);
    if name.is_none() {
        return None;
    }
    let doc = read_doc(walk, node, docs);
    let body = walk.child_by_field(node, "body");
    let bodiless = body.is_none() && matches!(kind, NodeKind::Function | NodeKind::Method);
    let flags = flags | if bodiless { flag::BODILESS } else { 0 };
    Some(walk.add_node(NodeDraft { kind, name, whole: node, body, flags, doc, bare }))
}

/// Opens a class without a name. Inside it, `this` and unqualified names must not mean things of the surrounding code,
/// so their types are unknown.
pub(super) fn open_nameless(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let number = to_number(walk.facts.impls.len());
    walk.facts.impls.push(ImplBlock {
        self_type: ExprId::NONE,
        tr: ExprId::NONE,
        from: start_byte(node),
        to: end_byte(node),
    });
    walk.open_frame(node, FrameKind::Impl(number));
}

/// Notes the result of a function by the type in a field of its syntax.
pub(super) fn note_result(walk: &mut TreeWalk<'_>, node: Syntax<'_>, number: u32, field: &str) {
    if let Some(ty) = walk.child_by_field(node, field) {
        let ty = walk.lower_expr(ty);
        let value = walk.add_value_of(ty);
        walk.add_result(number, value, start_byte(node));
        if let Some(noted) = walk.facts.nodes.get_mut(number as usize) {
            noted.flags |= flag::ANNOTATED;
        }
    }
}

/// Notes the parameters of a function. `name_of` finds the name of each parameter, and the field `type` has its type.
pub(super) fn note_params(
    walk: &mut TreeWalk<'_>,
    node: Syntax<'_>,
    list: Option<Syntax<'_>>,
    number: u32,
    name_of: fn(Syntax<'_>) -> Option<Syntax<'_>>,
) {
    let mut names: Vec<NameId> = Vec::new();
    if let Some(list) = list {
        let mut cursor = list.walk();
        for param in list.named_children(&mut cursor) {
            let Some(name) = name_of(param) else { continue };
            let value = lower_typed(walk, param.child_by_field_name("type"), None);
            let name = walk.name_of(name);
            names.push(name);
            walk.add_binding(
                name,
                start_byte(node),
                end_byte(node),
                start_byte(node),
                BindingTarget::Param(value, number),
            );
        }
    }
    walk.set_params(number, names);
}

/// Binds a name in the innermost frame. In a function, the name is visible only after its declaration.
pub(super) fn bind_value(walk: &mut TreeWalk<'_>, name: NameId, value: ExprId, site: Syntax<'_>) {
    let frame = walk.current_frame();
    let from =
        if matches!(frame.what, FrameKind::Block | FrameKind::Function(_)) { end_byte(site) } else { frame.from };
    walk.add_binding(name, from, frame.to, start_byte(site), BindingTarget::Value(value));
}

/// Binds a name that is visible inside the syntax node `scope`.
pub(super) fn bind_in(walk: &mut TreeWalk<'_>, name: NameId, value: ExprId, scope: Syntax<'_>) {
    walk.add_binding(name, start_byte(scope), end_byte(scope), start_byte(scope), BindingTarget::Value(value));
}

pub(super) fn open_block(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    walk.open_frame(node, FrameKind::Block);
}

/// Notes a call. The field `function` has the callee.
pub(super) fn call(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    if let Some(function) = walk.child_by_field(node, "function") {
        walk.call_of(function, false);
    }
}

/// Returns a value of the type `ty`. If the type is `var` or `auto`, returns the value of the expression `value`.
pub(super) fn lower_typed(walk: &mut TreeWalk<'_>, ty: Option<Syntax<'_>>, value: Option<Syntax<'_>>) -> ExprId {
    match ty.filter(|ty| !matches!(walk.node_text(*ty), "var" | "auto")) {
        Some(ty) => {
            let ty = walk.lower_expr(ty);
            walk.add_value_of(ty)
        }
        None => value.map_or(ExprId::NONE, |value| walk.lower_expr(value)),
    }
}
