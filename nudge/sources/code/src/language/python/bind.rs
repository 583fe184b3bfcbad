//! Binds names to values.

use tree_sitter::Node as Syntax;

use crate::extract::{Open, Walk, end, start};
use crate::facts::{Bound, Expr, ExprId, Name, flag};
use crate::language::common::{part, places};

use super::{annotation, member};

/// Returns the range where a name bound here can be seen: all of the function.
fn scope(walk: &Walk<'_>) -> (u32, u32) {
    let owner = walk.owner();
    (owner.from, owner.to)
}

/// Opens a branch, a loop, or the body of a `with`: bindings in it are sure only up to its end. The bodies of functions
/// and classes are opened elsewhere.
pub(super) fn block(walk: &mut Walk<'_>, node: Syntax<'_>) {
    if !walk.is_opened_by_parent() {
        walk.open(node, Open::Block);
    }
}

/// The end of the branch that this place is in.
fn branch(walk: &Walk<'_>) -> Option<u32> {
    let frame = walk.frame();
    (frame.what == Open::Block).then_some(frame.to)
}

/// Binds a function or class at its place, as the module runs. Members of a class are not seen without it.
pub(super) fn definition(walk: &mut Walk<'_>, name: Name, node: Syntax<'_>, number: u32) {
    let branch = branch(walk);
    if branch.is_some()
        && let Some(noted) = walk.facts.nodes.get_mut(number as usize)
    {
        noted.flags |= flag::CONDITIONAL;
    }
    let (from, to) = scope(walk);
    if !matches!(walk.owner().what, Open::Class(_)) {
        walk.bind_until(name, from, to, start(node), branch.unwrap_or(to), Bound::Node(number));
    }
}

/// An import, which [`Walk::import`] has just bound: where it stands, too, and of two in branches it may be either.
pub(super) fn imported(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let branch = branch(walk);
    if let Some(binding) = walk.facts.bindings.last_mut() {
        binding.at = start(node).into();
        binding.sure = branch.map_or(binding.to, Into::into);
    }
}

fn bind(walk: &mut Walk<'_>, name: Syntax<'_>, value: ExprId, statement: Syntax<'_>) {
    let name = walk.name_of(name);
    let (from, to) = scope(walk);
    // A loop may go through nothing.
    let sure = if statement.kind() == "for_statement" { end(statement) } else { branch(walk).unwrap_or(to) };
    walk.bind_until(name, from, to, start(statement), sure, Bound::Value(value));
}

/// Binds the left side of an assignment; names within it to the parts of the value.
fn bind_all(walk: &mut Walk<'_>, left: Syntax<'_>, value: ExprId, statement: Syntax<'_>) {
    let mut todo = vec![(left, value)];
    let mut steps = 0;
    while let Some((left, value)) = todo.pop() {
        steps += 1;
        if steps > 200 {
            return;
        }
        match left.kind() {
            "identifier" => bind(walk, left, value, statement),
            "pattern_list" | "tuple_pattern" | "list_pattern" => {
                for (child, place) in places(left) {
                    let part = part(walk, value, place);
                    todo.push((child, part));
                }
            }
            "list_splat_pattern" | "as_pattern_target" | "parenthesized_expression" => {
                if let Some(child) = left.named_child(0) {
                    let value = if left.kind() == "list_splat_pattern" { ExprId::NONE } else { value };
                    todo.push((child, value));
                }
            }
            "attribute" => attribute(walk, left, value, statement),
            _ => {}
        }
    }
}

/// `global f`: something else is going to have the name, whenever the function runs.
pub(super) fn global(walk: &mut Walk<'_>, node: Syntax<'_>) {
    bound_outside(walk, node, (0, u32::MAX));
}

/// `nonlocal f`: the same of the function around this one.
pub(super) fn nonlocal(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let mut around = walk.frames.iter().rev().filter(|frame| matches!(frame.what, Open::Function(_)));
    if let Some(outer) = around.nth(1) {
        let scope = (outer.from, outer.to);
        bound_outside(walk, node, scope);
    }
}

/// Names that a function binds outside of itself: they may be anything there, and in it until it binds them.
fn bound_outside(walk: &mut Walk<'_>, node: Syntax<'_>, outside: (u32, u32)) {
    let here = scope(walk);
    let mut cursor = node.walk();
    for name in node.named_children(&mut cursor) {
        let name = walk.name_of(name);
        for (from, to) in [outside, here] {
            walk.bind_until(name, from, to, start(node), 0, Bound::Value(ExprId::NONE));
        }
    }
}

/// `self.x = ..` in a method is a field. `a.x = ..` binds `a.x`: calling that is not calling the member of a class.
fn attribute(walk: &mut Walk<'_>, left: Syntax<'_>, value: ExprId, statement: Syntax<'_>) {
    let (Some(object), Some(name)) = (walk.get(left, "object"), walk.get(left, "attribute")) else {
        return;
    };
    if !matches!(walk.text(object), "self" | "cls") {
        if object.kind() == "identifier" {
            let name = walk.names.made(&member(walk.text(object), walk.text(name)));
            let (from, to) = scope(walk);
            walk.bind(name, from, to, start(statement), Bound::Value(ExprId::NONE));
        }
        return;
    }
    if let Some(Open::Class(class)) = walk.class_around() {
        let name = walk.name_of(name);
        walk.field(class, name, value, start(statement));
    }
}

pub(super) fn assignment(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let Some(left) = walk.get(node, "left") else { return };
    let right = walk.get(node, "right");
    let value = if let Some(ty) = walk.get(node, "type") {
        let ty = annotation(walk, ty);
        walk.of(ty)
    } else if let Some(right) = right {
        if right.kind() == "expression_list" {
            let args = walk.lower_all(right);
            let of = walk.literal("tuple");
            walk.expr(Expr::Apply(of, args))
        } else {
            walk.lower(right)
        }
    } else {
        return;
    };
    if let Open::Class(class) = walk.owner().what {
        if left.kind() == "identifier" {
            let name = walk.name_of(left);
            walk.field(class, name, value, start(node));
        }
        return;
    }
    bind_all(walk, left, value, node);
}

/// Forgets the value of `x` at `x += y`: the class of `x` decides it.
pub(super) fn augmented(walk: &mut Walk<'_>, node: Syntax<'_>) {
    if let Some(left) = walk.get(node, "left").filter(|left| left.kind() == "identifier") {
        bind(walk, left, ExprId::NONE, node);
    }
}

pub(super) fn walrus(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let value = walk.lower_field(node, "value");
    if let Some(name) = walk.get(node, "name") {
        bind(walk, name, value, node);
    }
}

pub(super) fn type_alias(walk: &mut Walk<'_>, node: Syntax<'_>) {
    if let (Some(name), Some(value)) = (node.named_child(0), node.named_child(1)) {
        let value = walk.lower(value);
        if let Some(name) = name.named_child(0) {
            bind(walk, name, value, node);
        }
    }
}

/// Notes a loop: names bound at its end are bound when it begins again.
pub(super) fn again(walk: &mut Walk<'_>, node: Syntax<'_>) {
    walk.facts.loops.push((start(node).into(), end(node).into()));
}

pub(super) fn loop_(walk: &mut Walk<'_>, node: Syntax<'_>) {
    again(walk, node);
    let (Some(left), Some(right)) = (walk.get(node, "left"), walk.get(node, "right")) else {
        return;
    };
    let value = walk.lower(right);
    let value = if value.is_none() { value } else { walk.expr(Expr::Each(value)) };
    bind_all(walk, left, value, node);
}

pub(super) fn comprehension(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let (Some(left), Some(right)) = (walk.get(node, "left"), walk.get(node, "right")) else {
        return;
    };
    let value = walk.lower(right);
    let value = if value.is_none() { value } else { walk.expr(Expr::Each(value)) };
    let (from, to) = (walk.frame().from, walk.frame().to);
    let mut todo = vec![(left, value)];
    for _ in 0..100 {
        let Some((left, value)) = todo.pop() else { return };
        if left.kind() == "identifier" {
            let name = walk.name_of(left);
            walk.bind(name, from, to, start(node), Bound::Value(value));
        } else {
            for (child, place) in places(left) {
                let part = part(walk, value, place);
                todo.push((child, part));
            }
        }
    }
}

pub(super) fn with_item(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let Some(pattern) = walk.get(node, "value").filter(|value| value.kind() == "as_pattern") else { return };
    let (Some(value), Some(alias)) = (pattern.named_child(0), walk.get(pattern, "alias")) else { return };
    let value = walk.lower(value);
    let value = if value.is_none() { value } else { walk.expr(Expr::Enter(value)) };
    // Seen in all of the function, certain in the body of the statement and after it.
    bind_all(walk, alias, value, node);
}

pub(super) fn except(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let mut cursor = node.walk();
    let Some(pattern) = node.named_children(&mut cursor).find(|child| child.kind() == "as_pattern") else { return };
    let (Some(ty), Some(alias)) = (pattern.named_child(0), walk.get(pattern, "alias")) else { return };
    let ty = walk.lower(ty);
    let value = walk.of(ty);
    if let Some(name) = alias.named_child(0) {
        let name = walk.name_of(name);
        walk.bind(name, start(node), end(node), start(node), Bound::Value(value));
    }
}

/// Narrows a name by `if isinstance(x, T)`: in the code below, `x` is a `T`.
pub(super) fn narrowed(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let (Some(condition), Some(body)) = (walk.get(node, "condition"), walk.get(node, "consequence")) else {
        return;
    };
    if condition.kind() != "call"
        || walk.get(condition, "function").is_none_or(|function| walk.text(function) != "isinstance")
    {
        return;
    }
    let Some(args) = walk.get(condition, "arguments") else { return };
    if let (Some(name), Some(ty)) = (args.named_child(0), args.named_child(1))
        && name.kind() == "identifier"
        && ty.kind() != "tuple"
    {
        let ty = walk.lower(ty);
        let value = walk.of(ty);
        let name = walk.name_of(name);
        walk.bind(name, start(body), end(body), start(body), Bound::Value(value));
    }
}

/// Binds the name of a pattern; the value is not followed.
pub(super) fn case_pattern(walk: &mut Walk<'_>, node: Syntax<'_>) {
    if let Some(name) =
        node.named_child(0).filter(|child| child.kind() == "dotted_name" && child.named_child_count() == 1)
    {
        bind(walk, name, ExprId::NONE, node);
    }
}
