//! Binds names to values in JavaScript and TypeScript.

use tree_sitter::Node as Syntax;

use crate::doc::DeclaredParam;
use crate::extract::{FrameKind, NodeDraft, TreeWalk, end_byte, start_byte};
use crate::facts::{BindingTarget, Expr, ExprId, NameId, NodeKind, flag};
use crate::language::common::{list_places, make_part};

/// The methods that call a function with each of their items.
const HANDS_ITEM: &[&str] =
    &["map", "forEach", "filter", "find", "some", "every", "flatMap", "findIndex", "findLast", "then"];

/// Binds the type parameters of `<T extends Bound>`.
pub(super) fn type_params(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let Some(list) = walk.child_by_field(node, "type_parameters") else { return };
    let mut cursor = list.walk();
    for (param, number) in list.named_children(&mut cursor).filter(|param| param.kind() == "type_parameter").zip(0..) {
        let Some(name) = walk.child_by_field(param, "name") else { continue };
        let bound = walk.child_by_field(param, "constraint").map_or(ExprId::NONE, |bound| walk.lower_expr(bound));
        let bounds = if bound.is_none() { bound } else { walk.add_args(&[bound]) };
        let name = walk.name_of(name);
        walk.add_binding(
            name,
            start_byte(node),
            end_byte(node),
            start_byte(node),
            BindingTarget::TypeParam(bounds, number),
        );
    }
}

/// Narrows the type of a name: inside `if (x instanceof T)`, `x` is a `T`.
pub(super) fn narrow_by_instanceof(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let Some(body) = walk.child_by_field(node, "consequence") else { return };
    let mut todo: Vec<Syntax<'_>> =
        walk.child_by_field(node, "condition").and_then(|held| held.named_child(0)).into_iter().collect();
    for _ in 0..16 {
        let Some(condition) = todo.pop().filter(|condition| condition.kind() == "binary_expression") else { break };
        let (Some(left), Some(right)) =
            (walk.child_by_field(condition, "left"), walk.child_by_field(condition, "right"))
        else {
            break;
        };
        match walk.child_by_field(condition, "operator").map(|operator| walk.node_text(operator)) {
            Some("&&") => todo.extend([right, left]),
            Some("instanceof") if left.kind() == "identifier" => {
                let ty = walk.lower_expr(right);
                let value = walk.add_value_of(ty);
                let name = walk.name_of(left);
                walk.add_binding(name, start_byte(body), end_byte(body), start_byte(body), BindingTarget::Value(value));
            }
            _ => {}
        }
    }
}

/// Binds the parameters of a function, and returns their names.
pub(super) fn bind_params(walk: &mut TreeWalk<'_>, node: Syntax<'_>, number: u32) -> Vec<NameId> {
    let (from, to) = (start_byte(node), end_byte(node));
    let hint = walk.hints.remove(&node.id()).unwrap_or(ExprId::NONE);
    if let Some(single) = walk.child_by_field(node, "parameter") {
        let name = walk.name_of(single);
        walk.add_binding(name, from, to, from.saturating_sub(1), BindingTarget::Value(hint));
        return vec![name];
    }
    let Some(list) = walk.child_by_field(node, "parameters") else { return Vec::new() };
    let mut names = Vec::new();
    let mut cursor = list.walk();
    for (param, place) in list.named_children(&mut cursor).zip(0..) {
        let pattern_ = match param.kind() {
            "required_parameter" | "optional_parameter" => walk.child_by_field(param, "pattern"),
            "comment" => None,
            _ => Some(param),
        };
        let Some(left) = pattern_ else { continue };
        let mut value = ExprId::NONE;
        if let Some(ty) = walk.child_by_field(param, "type") {
            let ty = walk.lower_expr(ty);
            value = walk.add_value_of(ty);
        } else if let Some(default) = walk.child_by_field(param, "value") {
            value = walk.lower_expr(default);
        } else if place == 0 {
            value = hint;
        }
        if left.kind() == "identifier" {
            let name = walk.name_of(left);
            names.push(name);
            let offset = if place == 0 && value == hint { from.saturating_sub(1) } else { from };
            walk.add_binding(name, from, to, offset, BindingTarget::Param(value, number));
            own_property(walk, param, name, value);
        } else {
            bind_pattern(walk, left, value, (from, to), from);
        }
    }
    names
}

/// Compares the documentation of a function with its signature.
pub(super) fn check_function_doc(walk: &mut TreeWalk<'_>, node: Syntax<'_>, number: u32) {
    let Some(list) = walk.child_by_field(node, "parameters") else { return };
    let (mut params, mut open) = (Vec::new(), false);
    let mut cursor = list.walk();
    for param in list.named_children(&mut cursor).filter(|param| param.kind() != "comment") {
        let left =
            walk.child_by_field(param, "pattern").or_else(|| walk.child_by_field(param, "left")).unwrap_or(param);
        open |= left.kind() != "identifier";
        let default = walk.child_by_field(param, "value").or_else(|| walk.child_by_field(param, "right"));
        params.push(DeclaredParam { name: walk.node_text(left), default: default.map(|value| walk.node_text(value)) });
    }
    let returns = walk.child_by_field(node, "return_type").map_or("", |ty| walk.node_text(ty));
    walk.check_doc(number, &params, open, matches!(returns.trim_start_matches(':').trim(), "void" | "undefined"));
}

/// Adds a field for a parameter such as `private x: X` of a constructor.
fn own_property(walk: &mut TreeWalk<'_>, param: Syntax<'_>, name: NameId, value: ExprId) {
    let mut cursor = param.walk();
    let modified = param
        .children(&mut cursor)
        .take(3)
        .any(|child| matches!(child.kind(), "accessibility_modifier" | "override_modifier" | "readonly"));
    if let (true, Some(FrameKind::Class(class))) = (modified, walk.class_around()) {
        walk.add_field(class, name, value, start_byte(param));
    }
}

/// Binds the names of a pattern to the parts of a value.
pub(super) fn bind_pattern(
    walk: &mut TreeWalk<'_>,
    node: Syntax<'_>,
    value: ExprId,
    (from, to): (u32, u32),
    offset: u32,
) {
    let mut todo = vec![(node, value)];
    let mut steps = 0;
    while let Some((node, value)) = todo.pop() {
        steps += 1;
        if steps > 500 {
            return;
        }
        match node.kind() {
            "identifier" => {
                let name = walk.name_of(node);
                walk.add_binding(name, from, to, offset, BindingTarget::Value(value));
            }
            "shorthand_property_identifier_pattern" => {
                let name = walk.name_of(node);
                let value = lower_member(walk, value, name);
                walk.add_binding(name, from, to, offset, BindingTarget::Value(value));
            }
            "pair_pattern" => {
                let key = super::read_key(walk, node, "key");
                let value = lower_member(walk, value, key);
                if let Some(child) = walk.child_by_field(node, "value") {
                    todo.push((child, value));
                }
            }
            "array_pattern" => {
                for (child, place) in list_places(node) {
                    let part = make_part(walk, value, place);
                    todo.push((child, part));
                }
            }
            "assignment_pattern" | "object_assignment_pattern" => {
                if let Some(left) = walk.child_by_field(node, "left") {
                    todo.push((left, value));
                }
            }
            "object_pattern" => {
                let mut cursor = node.walk();
                todo.extend(node.named_children(&mut cursor).map(|child| (child, value)));
            }
            "rest_pattern" => {
                if let Some(child) = node.named_child(0) {
                    todo.push((child, ExprId::NONE));
                }
            }
            _ => {}
        }
    }
}

fn lower_member(walk: &mut TreeWalk<'_>, value: ExprId, name: NameId) -> ExprId {
    if value.is_none() || name.is_none() { ExprId::NONE } else { walk.add_expr(Expr::Member(value, name)) }
}

/// Notes that a pattern, an operator or a loop assigns names. Their new value is unknown.
fn mark_assigned(walk: &mut TreeWalk<'_>, left: Syntax<'_>, offset: u32) {
    let mut todo = vec![left];
    for _ in 0..200 {
        let Some(node) = todo.pop() else { return };
        match node.kind() {
            "identifier" | "shorthand_property_identifier_pattern" => {
                let name = walk.name_of(node);
                walk.anew.push((name, offset, ExprId::NONE));
            }
            "pair_pattern" => todo.extend(walk.child_by_field(node, "value")),
            "assignment_pattern" | "object_assignment_pattern" => todo.extend(walk.child_by_field(node, "left")),
            "array_pattern" | "object_pattern" | "rest_pattern" => {
                let mut cursor = node.walk();
                todo.extend(node.named_children(&mut cursor));
            }
            _ => {}
        }
    }
}

pub(super) fn for_in(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    walk.open_frame(node, FrameKind::Block);
    let Some(left) = walk.child_by_field(node, "left") else { return };
    if walk.child_by_field(node, "kind").is_none() {
        return mark_assigned(walk, left, start_byte(node));
    }
    let value = walk.lower_field(node, "right");
    let is_for_of = walk.child_by_field(node, "operator").is_some_and(|operator| walk.node_text(operator) == "of");
    let value = match (is_for_of, value.is_none()) {
        (_, true) => value,
        (true, false) => walk.add_expr(Expr::Each(value)),
        (false, false) => walk.add_literal("String"),
    };
    bind_pattern(walk, left, value, (start_byte(node), end_byte(node)), start_byte(node));
}

pub(super) fn visit_catch(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    walk.open_frame(node, FrameKind::Block);
    if let Some(left) = walk.child_by_field(node, "parameter") {
        bind_pattern(walk, left, ExprId::NONE, (start_byte(node), end_byte(node)), start_byte(node));
    }
}

/// Adds `const x = ..` as a node if the value is a function, a class, or an object with members. At the top level of a
/// file, the result of a call makes a node too.
pub(super) fn visit_variable(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let Some(left) = walk.child_by_field(node, "name") else { return };
    let value = walk.child_by_field(node, "value");
    let ty = walk.child_by_field(node, "type");
    let frame = walk.current_frame();
    let hoisted = node.prev_sibling().is_some_and(|before| before.kind() == "var");
    let (from, to) = if hoisted { (walk.owner_frame().from, walk.owner_frame().to) } else { (frame.from, frame.to) };
    if left.kind() != "identifier" {
        if let Some(module) = value.and_then(|value| super::modules::find_require(walk, value)) {
            super::modules::import_destructured(walk, left, module, node);
            return;
        }
        let given = value.map_or(ExprId::NONE, |value| walk.lower_expr(value));
        bind_pattern(walk, left, given, (from, to), start_byte(node));
        return;
    }
    let name = walk.name_of(left);
    if let Some(module) = value.and_then(|value| super::modules::find_require(walk, value)) {
        walk.add_import(module, "", walk.node_text(left), node, false);
        return;
    }
    let inner = value.map(unwrap_value);
    match inner.map_or("", |value| value.kind()) {
        "arrow_function" | "function_expression" | "generator_function" => {
            declare_value(walk, node, inner, name, NodeKind::Function);
        }
        "class" => declare_value(walk, node, inner, name, NodeKind::Class),
        kind => {
            let given = match (ty, inner) {
                (Some(ty), _) => {
                    let ty = walk.lower_expr(ty);
                    walk.add_value_of(ty)
                }
                (None, Some(value)) => walk.lower_expr(value),
                (None, None) => ExprId::NONE,
            };
            let top = matches!(walk.owner_frame().what, FrameKind::File | FrameKind::Module(_))
                && matches!(frame.what, FrameKind::File | FrameKind::Module(_));
            let callable = matches!(kind, "call_expression" | "new_expression" | "object" | "as_expression")
                || walk.exprs.get(given).is_some_and(|given| matches!(given, Expr::Of(_)))
                || (matches!(kind, "identifier" | "member_expression") && !given.is_none());
            if kind == "object" && ty.is_none() {
                declare_value(walk, node, inner, name, NodeKind::Constant);
            } else if top && callable {
                if let Some(number) = super::note_node(walk, name, node, node, NodeKind::Constant, true) {
                    walk.add_result(number, given, start_byte(node));
                    if ty.is_some() {
                        walk.facts.nodes[number as usize].flags |= flag::ANNOTATED;
                    }
                }
            } else {
                // A declared type applies in the whole range.
                let sure = if ty.is_some() { to } else { from };
                walk.bind_until(name, from, to, start_byte(node), sure, BindingTarget::Value(given));
            }
        }
    }
}

fn unwrap_value(value: Syntax<'_>) -> Syntax<'_> {
    let mut current = value;
    for _ in 0..4 {
        match current.kind() {
            "parenthesized_expression" | "satisfies_expression" => match current.named_child(0) {
                Some(child) => current = child,
                None => break,
            },
            "as_expression" if current.named_child_count() == 1 => match current.named_child(0) {
                Some(child) => current = child,
                None => break,
            },
            _ => break,
        }
    }
    current
}

fn declare_value(walk: &mut TreeWalk<'_>, node: Syntax<'_>, value: Option<Syntax<'_>>, name: NameId, kind: NodeKind) {
    let Some(value) = value else { return };
    if name.is_none() {
        return;
    }
    let (flags, row) = walk.take_export(node);
    let doc = super::read_doc(walk, row);
    let body = if kind == NodeKind::Constant { Some(value) } else { walk.child_by_field(value, "body") };
    let number = walk.add_node(NodeDraft { kind, name, whole: node, body, flags, doc, bare: true });
    if walk.node_text(value).starts_with("async") {
        walk.facts.nodes[number as usize].flags |= flag::ASYNC;
    }
    walk.named.insert(value.id(), number);
}

/// Handles assignments. `x = ..` changes a name, and `this.x = ..` adds a field. `exports.f = ..` and `C.prototype.f =
/// ..` have no effect here.
pub(super) fn visit_assignment(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let (Some(left), Some(right)) = (walk.child_by_field(node, "left"), walk.child_by_field(node, "right")) else {
        return;
    };
    if left.kind() == "identifier" && node.kind() == "assignment_expression" {
        if !matches!(right.kind(), "null" | "undefined") {
            let (name, value) = (walk.name_of(left), walk.lower_expr(right));
            walk.anew.push((name, start_byte(node), value));
        }
        return;
    }
    mark_assigned(walk, left, start_byte(node));
    if left.kind() != "member_expression"
        || walk.child_by_field(left, "object").is_none_or(|object| object.kind() != "this")
    {
        return;
    }
    if let (Some(FrameKind::Class(class)), Some(name)) = (walk.class_around(), walk.child_by_field(left, "property")) {
        // An assignment such as `this.f = this.f.bind(this)` does not change the method.
        let bound = walk.child_by_field(right, "function").filter(|_| right.kind() == "call_expression");
        if bound.is_some_and(|bound| walk.node_text(bound).strip_suffix(".bind") == Some(walk.node_text(left))) {
            return;
        }
        let name = walk.name_of(name);
        let value = walk.lower_expr(right);
        walk.add_field(class, name, value, start_byte(node));
    }
}

/// Binds the parameters of a function that is passed to `map`, `filter`, ... to the items of the receiver.
pub(super) fn hint_function(walk: &mut TreeWalk<'_>, node: Syntax<'_>, function: Syntax<'_>) {
    if function.kind() != "member_expression" {
        return;
    }
    let Some(method) = walk.child_by_field(function, "property") else { return };
    if !HANDS_ITEM.contains(&walk.node_text(method)) {
        return;
    }
    let Some(closure) = walk.child_by_field(node, "arguments").and_then(|args| args.named_child(0)) else { return };
    if !matches!(closure.kind(), "arrow_function" | "function_expression") {
        return;
    }
    let receiver = walk.lower_field(function, "object");
    if !receiver.is_none() {
        let inner = walk.node_text(method) == "then";
        let item = walk.add_expr(if inner { Expr::Inner(receiver) } else { Expr::Item(receiver) });
        walk.hints.insert(closure.id(), item);
    }
}
