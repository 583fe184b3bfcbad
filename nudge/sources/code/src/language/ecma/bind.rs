//! Binds names to values.

use tree_sitter::Node as Syntax;

use crate::doc::Param;
use crate::extract::{Draft, Open, Walk, end, start};
use crate::facts::{Bound, Expr, ExprId, Kind, Name, flag};
use crate::language::common::{part, places};

/// Methods that hand their items, one by one, to a function.
const HANDS_ITEM: &[&str] =
    &["map", "forEach", "filter", "find", "some", "every", "flatMap", "findIndex", "findLast", "then"];

/// `<T extends Bound>`
pub(super) fn type_params(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let Some(list) = walk.get(node, "type_parameters") else { return };
    let mut cursor = list.walk();
    for (param, number) in list.named_children(&mut cursor).filter(|param| param.kind() == "type_parameter").zip(0..) {
        let Some(name) = walk.get(param, "name") else { continue };
        let bound = walk.get(param, "constraint").map_or(ExprId::NONE, |bound| walk.lower(bound));
        let bounds = if bound.is_none() { bound } else { walk.args(&[bound]) };
        let name = walk.name_of(name);
        walk.bind(name, start(node), end(node), start(node), Bound::TypeParam(bounds, number));
    }
}

/// Narrows a name by `if (x instanceof T)`: in the code below, `x` is a `T`.
pub(super) fn narrowed(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let Some(body) = walk.get(node, "consequence") else { return };
    let mut todo: Vec<Syntax<'_>> =
        walk.get(node, "condition").and_then(|held| held.named_child(0)).into_iter().collect();
    for _ in 0..16 {
        let Some(condition) = todo.pop().filter(|condition| condition.kind() == "binary_expression") else { break };
        let (Some(left), Some(right)) = (walk.get(condition, "left"), walk.get(condition, "right")) else { break };
        match walk.get(condition, "operator").map(|operator| walk.text(operator)) {
            Some("&&") => todo.extend([right, left]),
            Some("instanceof") if left.kind() == "identifier" => {
                let ty = walk.lower(right);
                let value = walk.of(ty);
                let name = walk.name_of(left);
                walk.bind(name, start(body), end(body), start(body), Bound::Value(value));
            }
            _ => {}
        }
    }
}

/// Binds the parameters of a function, and says their names.
pub(super) fn params(walk: &mut Walk<'_>, node: Syntax<'_>, number: u32) -> Vec<Name> {
    let (from, to) = (start(node), end(node));
    let hint = walk.hints.remove(&node.id()).unwrap_or(ExprId::NONE);
    if let Some(single) = walk.get(node, "parameter") {
        let name = walk.name_of(single);
        walk.bind(name, from, to, from.saturating_sub(1), Bound::Value(hint));
        return vec![name];
    }
    let Some(list) = walk.get(node, "parameters") else { return Vec::new() };
    let mut names = Vec::new();
    let mut cursor = list.walk();
    for (param, place) in list.named_children(&mut cursor).zip(0..) {
        let pattern_ = match param.kind() {
            "required_parameter" | "optional_parameter" => walk.get(param, "pattern"),
            "comment" => None,
            _ => Some(param),
        };
        let Some(left) = pattern_ else { continue };
        let mut value = ExprId::NONE;
        if let Some(ty) = walk.get(param, "type") {
            let ty = walk.lower(ty);
            value = walk.of(ty);
        } else if let Some(default) = walk.get(param, "value") {
            value = walk.lower(default);
        } else if place == 0 {
            value = hint;
        }
        if left.kind() == "identifier" {
            let name = walk.name_of(left);
            names.push(name);
            let at = if place == 0 && value == hint { from.saturating_sub(1) } else { from };
            walk.bind(name, from, to, at, Bound::Param(value, number));
            own_property(walk, param, name, value);
        } else {
            pattern(walk, left, value, (from, to), from);
        }
    }
    names
}

/// Holds the documentation against the signature.
pub(super) fn documented(walk: &mut Walk<'_>, node: Syntax<'_>, number: u32) {
    let Some(list) = walk.get(node, "parameters") else { return };
    let (mut params, mut open) = (Vec::new(), false);
    let mut cursor = list.walk();
    for param in list.named_children(&mut cursor).filter(|param| param.kind() != "comment") {
        let left = walk.get(param, "pattern").or_else(|| walk.get(param, "left")).unwrap_or(param);
        open |= left.kind() != "identifier";
        let default = walk.get(param, "value").or_else(|| walk.get(param, "right"));
        params.push(Param { name: walk.text(left), default: default.map(|value| walk.text(value)) });
    }
    let returns = walk.get(node, "return_type").map_or("", |ty| walk.text(ty));
    walk.check_doc(number, &params, open, matches!(returns.trim_start_matches(':').trim(), "void" | "undefined"));
}

/// `constructor(private x: X)` makes a field.
fn own_property(walk: &mut Walk<'_>, param: Syntax<'_>, name: Name, value: ExprId) {
    let mut cursor = param.walk();
    let modified = param
        .children(&mut cursor)
        .take(3)
        .any(|child| matches!(child.kind(), "accessibility_modifier" | "override_modifier" | "readonly"));
    if let (true, Some(Open::Class(class))) = (modified, walk.class_around()) {
        walk.field(class, name, value, start(param));
    }
}

/// Binds the names of a pattern to the parts of a value.
pub(super) fn pattern(walk: &mut Walk<'_>, node: Syntax<'_>, value: ExprId, (from, to): (u32, u32), at: u32) {
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
                walk.bind(name, from, to, at, Bound::Value(value));
            }
            "shorthand_property_identifier_pattern" => {
                let name = walk.name_of(node);
                let value = member(walk, value, name);
                walk.bind(name, from, to, at, Bound::Value(value));
            }
            "pair_pattern" => {
                let key = super::key(walk, node, "key");
                let value = member(walk, value, key);
                if let Some(child) = walk.get(node, "value") {
                    todo.push((child, value));
                }
            }
            "array_pattern" => {
                for (child, place) in places(node) {
                    let part = part(walk, value, place);
                    todo.push((child, part));
                }
            }
            "assignment_pattern" | "object_assignment_pattern" => {
                if let Some(left) = walk.get(node, "left") {
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

fn member(walk: &mut Walk<'_>, value: ExprId, name: Name) -> ExprId {
    if value.is_none() || name.is_none() { ExprId::NONE } else { walk.expr(Expr::Member(value, name)) }
}

/// Marks names that a pattern, an operator or a loop assigns; the value is not followed.
fn assigned(walk: &mut Walk<'_>, left: Syntax<'_>, at: u32) {
    let mut todo = vec![left];
    for _ in 0..200 {
        let Some(node) = todo.pop() else { return };
        match node.kind() {
            "identifier" | "shorthand_property_identifier_pattern" => {
                let name = walk.name_of(node);
                walk.anew.push((name, at, ExprId::NONE));
            }
            "pair_pattern" => todo.extend(walk.get(node, "value")),
            "assignment_pattern" | "object_assignment_pattern" => todo.extend(walk.get(node, "left")),
            "array_pattern" | "object_pattern" | "rest_pattern" => {
                let mut cursor = node.walk();
                todo.extend(node.named_children(&mut cursor));
            }
            _ => {}
        }
    }
}

pub(super) fn for_in(walk: &mut Walk<'_>, node: Syntax<'_>) {
    walk.open(node, Open::Block);
    let Some(left) = walk.get(node, "left") else { return };
    if walk.get(node, "kind").is_none() {
        return assigned(walk, left, start(node));
    }
    let value = walk.lower_field(node, "right");
    let of = walk.get(node, "operator").is_some_and(|operator| walk.text(operator) == "of");
    let value = match (of, value.is_none()) {
        (_, true) => value,
        (true, false) => walk.expr(Expr::Each(value)),
        (false, false) => walk.literal("String"),
    };
    pattern(walk, left, value, (start(node), end(node)), start(node));
}

pub(super) fn catch(walk: &mut Walk<'_>, node: Syntax<'_>) {
    walk.open(node, Open::Block);
    if let Some(left) = walk.get(node, "parameter") {
        pattern(walk, left, ExprId::NONE, (start(node), end(node)), start(node));
    }
}

/// Notes `const x = ..` as a node if it holds a function, a class, an object with members, or the result of a call at
/// the file's top level.
pub(super) fn variable(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let Some(left) = walk.get(node, "name") else { return };
    let value = walk.get(node, "value");
    let ty = walk.get(node, "type");
    let frame = walk.frame();
    let hoisted = node.prev_sibling().is_some_and(|before| before.kind() == "var");
    let (from, to) = if hoisted { (walk.owner().from, walk.owner().to) } else { (frame.from, frame.to) };
    if left.kind() != "identifier" {
        if let Some(module) = value.and_then(|value| super::modules::required(walk, value)) {
            super::modules::destructured(walk, left, module, node);
            return;
        }
        let given = value.map_or(ExprId::NONE, |value| walk.lower(value));
        pattern(walk, left, given, (from, to), start(node));
        return;
    }
    let name = walk.name_of(left);
    if let Some(module) = value.and_then(|value| super::modules::required(walk, value)) {
        walk.import(module, "", walk.text(left), node, false);
        return;
    }
    let inner = value.map(unwrapped);
    match inner.map_or("", |value| value.kind()) {
        "arrow_function" | "function_expression" | "generator_function" => {
            declare(walk, node, inner, name, Kind::Function);
        }
        "class" => declare(walk, node, inner, name, Kind::Class),
        kind => {
            let given = match (ty, inner) {
                (Some(ty), _) => {
                    let ty = walk.lower(ty);
                    walk.of(ty)
                }
                (None, Some(value)) => walk.lower(value),
                (None, None) => ExprId::NONE,
            };
            let top = matches!(walk.owner().what, Open::File | Open::Module(_))
                && matches!(frame.what, Open::File | Open::Module(_));
            let callable = matches!(kind, "call_expression" | "new_expression" | "object" | "as_expression")
                || walk.exprs.get(given).is_some_and(|given| matches!(given, Expr::Of(_)))
                || (matches!(kind, "identifier" | "member_expression") && !given.is_none());
            if kind == "object" && ty.is_none() {
                declare(walk, node, inner, name, Kind::Constant);
            } else if top && callable {
                if let Some(number) = super::note(walk, name, node, node, Kind::Constant, true) {
                    walk.gives(number, given, start(node));
                    if ty.is_some() {
                        walk.facts.nodes[number as usize].flags |= flag::ANNOTATED;
                    }
                }
            } else {
                // A declared type is sure to stay.
                let sure = if ty.is_some() { to } else { from };
                walk.bind_until(name, from, to, start(node), sure, Bound::Value(given));
            }
        }
    }
}

fn unwrapped(value: Syntax<'_>) -> Syntax<'_> {
    let mut at = value;
    for _ in 0..4 {
        match at.kind() {
            "parenthesized_expression" | "satisfies_expression" => match at.named_child(0) {
                Some(child) => at = child,
                None => break,
            },
            "as_expression" if at.named_child_count() == 1 => match at.named_child(0) {
                Some(child) => at = child,
                None => break,
            },
            _ => break,
        }
    }
    at
}

fn declare(walk: &mut Walk<'_>, node: Syntax<'_>, value: Option<Syntax<'_>>, name: Name, kind: Kind) {
    let Some(value) = value else { return };
    if name.is_none() {
        return;
    }
    let (flags, row) = walk.exported(node);
    let doc = super::doc(walk, row);
    let body = if kind == Kind::Constant { Some(value) } else { walk.get(value, "body") };
    let number = walk.node(Draft { kind, name, whole: node, body, flags, doc, bare: true });
    if walk.text(value).starts_with("async") {
        walk.facts.nodes[number as usize].flags |= flag::ASYNC;
    }
    walk.named.insert(value.id(), number);
}

/// `x = ..` gives something else to a name, `this.x = ..` makes a field; `exports.f = ..` and `C.prototype.f = ..` are not followed.
pub(super) fn assignment(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let (Some(left), Some(right)) = (walk.get(node, "left"), walk.get(node, "right")) else {
        return;
    };
    if left.kind() == "identifier" && node.kind() == "assignment_expression" {
        if !matches!(right.kind(), "null" | "undefined") {
            let (name, value) = (walk.name_of(left), walk.lower(right));
            walk.anew.push((name, start(node), value));
        }
        return;
    }
    assigned(walk, left, start(node));
    if left.kind() != "member_expression" || walk.get(left, "object").is_none_or(|object| object.kind() != "this") {
        return;
    }
    if let (Some(Open::Class(class)), Some(name)) = (walk.class_around(), walk.get(left, "property")) {
        // `this.f = this.f.bind(this)` is the method that it was.
        let bound = walk.get(right, "function").filter(|_| right.kind() == "call_expression");
        if bound.is_some_and(|bound| walk.text(bound).strip_suffix(".bind") == Some(walk.text(left))) {
            return;
        }
        let name = walk.name_of(name);
        let value = walk.lower(right);
        walk.field(class, name, value, start(node));
    }
}

/// Gives a function that is passed to `map`, `filter`, ... the items of the receiver as values.
pub(super) fn hints(walk: &mut Walk<'_>, node: Syntax<'_>, function: Syntax<'_>) {
    if function.kind() != "member_expression" {
        return;
    }
    let Some(method) = walk.get(function, "property") else { return };
    if !HANDS_ITEM.contains(&walk.text(method)) {
        return;
    }
    let Some(closure) = walk.get(node, "arguments").and_then(|args| args.named_child(0)) else { return };
    if !matches!(closure.kind(), "arrow_function" | "function_expression") {
        return;
    }
    let receiver = walk.lower_field(function, "object");
    if !receiver.is_none() {
        let inner = walk.text(method) == "then";
        let item = walk.expr(if inner { Expr::Inner(receiver) } else { Expr::Item(receiver) });
        walk.hints.insert(closure.id(), item);
    }
}
