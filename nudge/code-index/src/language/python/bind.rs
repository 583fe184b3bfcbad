//! Binds names to values in Python.

use tree_sitter::Node as Syntax;

use crate::extract::{FrameKind, TreeWalk, end_byte, start_byte};
use crate::facts::{BindingTarget, Expr, ExprId, NameId, flag};
use crate::language::common::{list_places, make_part};

use super::{lower_annotation, member_name};

/// Returns the range in which a name that is bound here is visible. The range is the whole function.
fn name_range(walk: &TreeWalk<'_>) -> (u32, u32) {
    let owner = walk.owner_frame();
    (owner.from, owner.to)
}

/// Opens a frame for a branch, a loop, or the body of a `with`. Bindings inside are certain only up to the end of the
/// frame. Other functions open the frames for the bodies of functions and classes.
pub(super) fn open_branch(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    if !walk.is_opened_by_parent() {
        walk.open_frame(node, FrameKind::Block);
    }
}

/// Returns the end of the branch that contains the current position; `None` outside of a branch.
fn branch_end(walk: &TreeWalk<'_>) -> Option<u32> {
    let frame = walk.current_frame();
    (frame.what == FrameKind::Block).then_some(frame.to)
}

/// Binds a function or class from its definition to the end of the range, because Python binds names at run time.
/// Members of a class are visible only through the class.
pub(super) fn bind_definition(walk: &mut TreeWalk<'_>, name: NameId, node: Syntax<'_>, number: u32) {
    let branch = branch_end(walk);
    if branch.is_some()
        && let Some(noted) = walk.facts.nodes.get_mut(number as usize)
    {
        noted.flags |= flag::CONDITIONAL;
    }
    let (from, to) = name_range(walk);
    if !matches!(walk.owner_frame().what, FrameKind::Class(_)) {
        walk.bind_until(name, from, to, start_byte(node), branch.unwrap_or(to), BindingTarget::Node(number));
    }
}

/// Corrects the binding that [`TreeWalk::add_import`] has just made: sets its position, and ends its certainty with the
/// branch. Another branch may import the same name.
pub(super) fn place_import(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let branch = branch_end(walk);
    if let Some(binding) = walk.facts.bindings.last_mut() {
        binding.value_place = start_byte(node).into();
        binding.sure = branch.map_or(binding.to, Into::into);
    }
}

fn bind_name(walk: &mut TreeWalk<'_>, name: Syntax<'_>, value: ExprId, statement: Syntax<'_>) {
    let name = walk.name_of(name);
    let (from, to) = name_range(walk);
    // The body of a loop may never run, so the name is certain only inside the body.
    let sure = if statement.kind() == "for_statement" { end_byte(statement) } else { branch_end(walk).unwrap_or(to) };
    walk.bind_until(name, from, to, start_byte(statement), sure, BindingTarget::Value(value));
}

/// Binds the names on the left side of an assignment. Names in a pattern get the parts of the value.
fn bind_all(walk: &mut TreeWalk<'_>, left: Syntax<'_>, value: ExprId, statement: Syntax<'_>) {
    let mut todo = vec![(left, value)];
    let mut steps = 0;
    while let Some((left, value)) = todo.pop() {
        steps += 1;
        if steps > 200 {
            return;
        }
        match left.kind() {
            "identifier" => bind_name(walk, left, value, statement),
            "pattern_list" | "tuple_pattern" | "list_pattern" => {
                for (child, place) in list_places(left) {
                    let part = make_part(walk, value, place);
                    todo.push((child, part));
                }
            }
            "list_splat_pattern" | "as_pattern_target" | "parenthesized_expression" => {
                if let Some(child) = left.named_child(0) {
                    let value = if left.kind() == "list_splat_pattern" { ExprId::NONE } else { value };
                    todo.push((child, value));
                }
            }
            "attribute" => assign_attribute(walk, left, value, statement),
            _ => {}
        }
    }
}

/// Handles `global f`: outside the function, `f` may get an unknown value at any time.
pub(super) fn visit_global(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    bound_outside(walk, node, (0, u32::MAX));
}

/// Handles `nonlocal f`: in the function around this one, `f` may get an unknown value at any time.
pub(super) fn visit_nonlocal(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let mut around = walk.frames.iter().rev().filter(|frame| matches!(frame.what, FrameKind::Function(_)));
    if let Some(outer) = around.nth(1) {
        let scope = (outer.from, outer.to);
        bound_outside(walk, node, scope);
    }
}

/// Makes names unknown that a function assigns outside of itself. They are unknown in the outer range, and in the
/// function until it binds them.
fn bound_outside(walk: &mut TreeWalk<'_>, node: Syntax<'_>, outside: (u32, u32)) {
    let here = name_range(walk);
    let mut cursor = node.walk();
    for name in node.named_children(&mut cursor) {
        let name = walk.name_of(name);
        for (from, to) in [outside, here] {
            walk.bind_until(name, from, to, start_byte(node), 0, BindingTarget::Value(ExprId::NONE));
        }
    }
}

/// Handles an assignment of an attribute. `self.x = ..` in a method adds a field. `a.x = ..` binds the name `a.x`, so
/// that a call of `a.x` does not mean the member of the class.
fn assign_attribute(walk: &mut TreeWalk<'_>, left: Syntax<'_>, value: ExprId, statement: Syntax<'_>) {
    let (Some(object), Some(name)) = (walk.child_by_field(left, "object"), walk.child_by_field(left, "attribute"))
    else {
        return;
    };
    if !matches!(walk.node_text(object), "self" | "cls") {
        if object.kind() == "identifier" {
            let name = walk.names.intern_made(&member_name(walk.node_text(object), walk.node_text(name)));
            let (from, to) = name_range(walk);
            walk.add_binding(name, from, to, start_byte(statement), BindingTarget::Value(ExprId::NONE));
        }
        return;
    }
    if let Some(FrameKind::Class(class)) = walk.class_around() {
        let name = walk.name_of(name);
        walk.add_field(class, name, value, start_byte(statement));
    }
}

pub(super) fn visit_assignment(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let Some(left) = walk.child_by_field(node, "left") else { return };
    let right = walk.child_by_field(node, "right");
    let value = if let Some(ty) = walk.child_by_field(node, "type") {
        let ty = lower_annotation(walk, ty);
        walk.add_value_of(ty)
    } else if let Some(right) = right {
        if right.kind() == "expression_list" {
            let args = walk.lower_all(right);
            let tuple = walk.add_literal("tuple");
            walk.add_expr(Expr::Apply(tuple, args))
        } else {
            walk.lower_expr(right)
        }
    } else {
        return;
    };
    if let FrameKind::Class(class) = walk.owner_frame().what {
        if left.kind() == "identifier" {
            let name = walk.name_of(left);
            walk.add_field(class, name, value, start_byte(node));
        }
        return;
    }
    bind_all(walk, left, value, node);
}

/// Binds `x` of `x += y` to an unknown value, because the class of `x` decides the result.
pub(super) fn visit_augmented(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    if let Some(left) = walk.child_by_field(node, "left").filter(|left| left.kind() == "identifier") {
        bind_name(walk, left, ExprId::NONE, node);
    }
}

pub(super) fn visit_walrus(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let value = walk.lower_field(node, "value");
    if let Some(name) = walk.child_by_field(node, "name") {
        bind_name(walk, name, value, node);
    }
}

pub(super) fn type_alias(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    if let (Some(name), Some(value)) = (node.named_child(0), node.named_child(1)) {
        let value = walk.lower_expr(value);
        if let Some(name) = name.named_child(0) {
            bind_name(walk, name, value, node);
        }
    }
}

/// Notes a loop. A name that is bound at the end of the loop is still bound when the loop starts again.
pub(super) fn note_loop(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    walk.facts.loops.push((start_byte(node).into(), end_byte(node).into()));
}

pub(super) fn loop_(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    note_loop(walk, node);
    let (Some(left), Some(right)) = (walk.child_by_field(node, "left"), walk.child_by_field(node, "right")) else {
        return;
    };
    let value = walk.lower_expr(right);
    let value = if value.is_none() { value } else { walk.add_expr(Expr::Each(value)) };
    bind_all(walk, left, value, node);
}

pub(super) fn visit_comprehension(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let (Some(left), Some(right)) = (walk.child_by_field(node, "left"), walk.child_by_field(node, "right")) else {
        return;
    };
    let value = walk.lower_expr(right);
    let value = if value.is_none() { value } else { walk.add_expr(Expr::Each(value)) };
    let (from, to) = (walk.current_frame().from, walk.current_frame().to);
    let mut todo = vec![(left, value)];
    for _ in 0..100 {
        let Some((left, value)) = todo.pop() else { return };
        if left.kind() == "identifier" {
            let name = walk.name_of(left);
            walk.add_binding(name, from, to, start_byte(node), BindingTarget::Value(value));
        } else {
            for (child, place) in list_places(left) {
                let part = make_part(walk, value, place);
                todo.push((child, part));
            }
        }
    }
}

pub(super) fn with_item(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let Some(pattern) = walk.child_by_field(node, "value").filter(|value| value.kind() == "as_pattern") else { return };
    let (Some(value), Some(alias)) = (pattern.named_child(0), walk.child_by_field(pattern, "alias")) else { return };
    let value = walk.lower_expr(value);
    let value = if value.is_none() { value } else { walk.add_expr(Expr::Enter(value)) };
    // The name is visible in the whole function. It is certain in the body of the `with` statement and after it.
    bind_all(walk, alias, value, node);
}

pub(super) fn visit_except(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let mut cursor = node.walk();
    let Some(pattern) = node.named_children(&mut cursor).find(|child| child.kind() == "as_pattern") else { return };
    let (Some(ty), Some(alias)) = (pattern.named_child(0), walk.child_by_field(pattern, "alias")) else { return };
    let ty = walk.lower_expr(ty);
    let value = walk.add_value_of(ty);
    if let Some(name) = alias.named_child(0) {
        let name = walk.name_of(name);
        walk.add_binding(name, start_byte(node), end_byte(node), start_byte(node), BindingTarget::Value(value));
    }
}

/// Narrows the type of a name: inside `if isinstance(x, T)`, `x` is a `T`.
pub(super) fn narrow_by_isinstance(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let (Some(condition), Some(body)) =
        (walk.child_by_field(node, "condition"), walk.child_by_field(node, "consequence"))
    else {
        return;
    };
    if condition.kind() != "call"
        || walk.child_by_field(condition, "function").is_none_or(|function| walk.node_text(function) != "isinstance")
    {
        return;
    }
    let Some(args) = walk.child_by_field(condition, "arguments") else { return };
    if let (Some(name), Some(ty)) = (args.named_child(0), args.named_child(1))
        && name.kind() == "identifier"
        && ty.kind() != "tuple"
    {
        let ty = walk.lower_expr(ty);
        let value = walk.add_value_of(ty);
        let name = walk.name_of(name);
        walk.add_binding(name, start_byte(body), end_byte(body), start_byte(body), BindingTarget::Value(value));
    }
}

/// Binds the name in a `case` pattern to an unknown value.
pub(super) fn case_pattern(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    if let Some(name) =
        node.named_child(0).filter(|child| child.kind() == "dotted_name" && child.named_child_count() == 1)
    {
        bind_name(walk, name, ExprId::NONE, node);
    }
}
