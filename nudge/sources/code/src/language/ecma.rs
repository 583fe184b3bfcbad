//! JavaScript and TypeScript.

mod bind;
mod modules;
mod shapes;

use tree_sitter::Node as Syntax;

use crate::extract::{Draft, Open, Walk, start};
use crate::facts::{Expr, ExprId, Kind, NO_NODE, Name, flag};

use super::{Shape, Spec, Visit};

pub(super) const JAVASCRIPT: Spec = Spec {
    parser: || tree_sitter_javascript::LANGUAGE.into(),
    visits: VISITS,
    shapes: shapes::SHAPES,
    branches: BRANCHES,
    comments: COMMENTS,
    leaves: LEAVES,
    heads: &["member_expression"],
};

pub(super) const TYPESCRIPT: Spec =
    Spec { parser: || tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(), ..JAVASCRIPT };

pub(super) const TSX: Spec = Spec { parser: || tree_sitter_typescript::LANGUAGE_TSX.into(), ..JAVASCRIPT };

const COMMENTS: &[&str] = &["comment"];

const BRANCHES: &[&str] = &[
    "if_statement",
    "for_statement",
    "for_in_statement",
    "while_statement",
    "do_statement",
    "switch_case",
    "catch_clause",
    "ternary_expression",
];

const LEAVES: &[&str] =
    &["accessibility_modifier", "import_statement", "nested_type_identifier", "regex", "string", "type_arguments"];

const VISITS: &[(&str, Visit)] = &[
    ("function_declaration", function),
    ("generator_function_declaration", function),
    ("function_signature", function),
    ("class_declaration", class),
    ("abstract_class_declaration", class),
    ("class", class),
    ("interface_declaration", class),
    ("enum_declaration", class),
    ("type_alias_declaration", alias),
    ("internal_module", namespace),
    ("module", namespace),
    ("method_definition", method),
    ("method_signature", method),
    ("abstract_method_signature", method),
    ("property_signature", property),
    ("public_field_definition", property),
    ("field_definition", property),
    ("pair", pair),
    ("object", object),
    ("object_type", object),
    ("arrow_function", anonymous),
    ("function_expression", anonymous),
    ("generator_function", anonymous),
    ("function_type", type_scope),
    ("statement_block", block),
    ("if_statement", bind::narrowed),
    ("for_statement", block),
    ("for_in_statement", bind::for_in),
    ("catch_clause", bind::catch),
    ("variable_declarator", bind::variable),
    ("assignment_expression", bind::assignment),
    ("augmented_assignment_expression", bind::assignment),
    ("return_statement", returned),
    ("call_expression", call),
    ("new_expression", new),
    ("decorator", decorator),
    ("import_statement", modules::import),
    ("export_statement", modules::export),
];

fn doc(walk: &mut Walk<'_>, row: usize) -> Option<String> {
    let mut comments = walk.comments_before(row);
    // A comment that is no JSDoc is about the code, not about its use.
    comments.retain(|comment| comment.starts_with("/**"));
    let last = comments.pop()?;
    crate::extract::text::doc(&crate::doc::uncomment(&[last]))
}

fn block(walk: &mut Walk<'_>, node: Syntax<'_>) {
    walk.open(node, Open::Block);
}

/// A type of a function: its parameters are no one's.
fn type_scope(walk: &mut Walk<'_>, node: Syntax<'_>) {
    walk.open(node, Open::Function(NO_NODE));
}

fn note<'t>(
    walk: &mut Walk<'_>,
    name: Name,
    whole: Syntax<'t>,
    inner: Syntax<'t>,
    kind: Kind,
    bare: bool,
) -> Option<u32> {
    if name.is_none() {
        return None;
    }
    let body = walk.get(inner, "body");
    let (mut flags, row) = walk.exported(whole);
    if body.is_none() && matches!(kind, Kind::Function | Kind::Method) {
        flags |= flag::BODILESS;
    }
    let head = walk.src.get(inner.start_byte()..inner.start_byte() + 5).unwrap_or_default();
    if head == "async" {
        flags |= flag::ASYNC;
    }
    let doc = doc(walk, row);
    let number = walk.node(Draft { kind, name, whole, body, flags, doc, bare });
    bind::type_params(walk, inner);
    Some(number)
}

fn function(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let Some(name) = walk.get(node, "name") else { return };
    let name = walk.name_of(name);
    let Some(number) = note(walk, name, node, node, Kind::Function, true) else { return };
    walk.facts.nodes[number as usize].flags |= flag::OWN_THIS;
    inside(walk, node, number);
}

/// Notes the result and parameters of a function, and opens its frame.
fn inside(walk: &mut Walk<'_>, node: Syntax<'_>, number: u32) {
    if let Some(ty) = walk.get(node, "return_type") {
        let ty = walk.lower(ty);
        let value = walk.of(ty);
        walk.facts.nodes[number as usize].flags |= flag::ANNOTATED;
        walk.gives(number, value, start(node));
    } else if let Some(body) = walk.get(node, "body").filter(|body| body.kind() != "statement_block") {
        let value = walk.lower(body);
        walk.gives(number, value, start(body));
    }
    let names = bind::params(walk, node, number);
    walk.set_params(number, names);
    bind::documented(walk, node, number);
    walk.open(node, Open::Function(number));
}

fn anonymous(walk: &mut Walk<'_>, node: Syntax<'_>) {
    if let Some(number) = walk.named.remove(&node.id()) {
        bind::type_params(walk, node);
        inside(walk, node, number);
        return;
    }
    bind::type_params(walk, node);
    bind::params(walk, node, NO_NODE);
    walk.open(node, Open::Function(NO_NODE));
}

fn class(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let (number, kind) = if let Some(number) = walk.named.remove(&node.id()) {
        (number, Kind::Class)
    } else {
        let kind = if node.kind() == "interface_declaration" { Kind::Trait } else { Kind::Class };
        let name = walk.get(node, "name").map_or(Name::NONE, |name| walk.name_of(name));
        let Some(number) = note(walk, name, node, node, kind, node.kind() != "class") else {
            walk.open(node, Open::Function(NO_NODE));
            return;
        };
        (number, kind)
    };
    let mut bases = Vec::new();
    let mut cursor = node.walk();
    for child in node.named_children(&mut cursor) {
        match child.kind() {
            "class_heritage" | "extends_type_clause" => heritage(walk, child, &mut bases),
            _ => {}
        }
    }
    walk.set_bases(number, bases);
    let _ = kind;
    walk.open(node, Open::Class(number));
}

fn heritage(walk: &mut Walk<'_>, node: Syntax<'_>, bases: &mut Vec<ExprId>) {
    let mut cursor = node.walk();
    for child in node.named_children(&mut cursor).take(16) {
        match child.kind() {
            "extends_clause" => {
                let of = walk.lower_field(child, "value");
                let mut inner = child.walk();
                let args = child.named_children(&mut inner).find(|child| child.kind() == "type_arguments");
                let args = args.map_or(ExprId::NONE, |args| walk.lower_all(args));
                bases.push(if of.is_none() || args.is_none() { of } else { walk.expr(Expr::Apply(of, args)) });
            }
            "implements_clause" => {
                let mut inner = child.walk();
                for ty in child.named_children(&mut inner).take(16) {
                    bases.push(walk.lower(ty));
                }
            }
            _ => bases.push(walk.lower(child)),
        }
    }
}

fn alias(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let (Some(name), Some(value)) = (walk.get(node, "name"), walk.get(node, "value")) else {
        return;
    };
    let name = walk.name_of(name);
    let Some(number) = note(walk, name, node, node, Kind::Type, true) else { return };
    if value.kind() == "object_type" {
        walk.named.insert(value.id(), number);
        return;
    }
    let ty = walk.lower(value);
    let given = walk.of(ty);
    walk.gives(number, given, start(value));
    if value.kind() == "intersection_type" {
        let mut cursor = value.walk();
        for part in value.named_children(&mut cursor).filter(|part| part.kind() == "object_type") {
            walk.named.insert(part.id(), number);
        }
    }
}

fn namespace(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let Some(name) = walk.get(node, "name").filter(|name| name.kind() == "identifier") else {
        walk.open(node, Open::Block);
        return;
    };
    let name = walk.name_of(name);
    if let Some(number) = note(walk, name, node, node, Kind::Module, true) {
        walk.open(node, Open::Module(number));
    }
}

/// An object or the type of one: its members are those of the name that it was given.
fn object(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let what = walk.named.remove(&node.id()).map_or(Open::Function(NO_NODE), Open::Class);
    walk.open(node, what);
}

fn key(walk: &mut Walk<'_>, node: Syntax<'_>, field: &str) -> Name {
    match walk.get(node, field) {
        Some(key) if matches!(key.kind(), "property_identifier" | "private_property_identifier") => walk.name_of(key),
        Some(key) if key.kind() == "string" => {
            let text = walk.text(key).trim_matches(['"', '\'']);
            let plain = !text.is_empty() && text.len() < 100 && text.chars().all(|c| c.is_alphanumeric() || c == '_');
            if plain { walk.names.name(text) } else { Name::NONE }
        }
        _ => Name::NONE,
    }
}

fn method(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let name = key(walk, node, "name");
    let class = matches!(walk.owner().what, Open::Class(_));
    let Some(number) = (if class { note(walk, name, node, node, Kind::Method, false) } else { None }) else {
        anonymous(walk, node);
        return;
    };
    let mut cursor = node.walk();
    for child in node.children(&mut cursor).take(6) {
        walk.facts.nodes[number as usize].flags |= match child.kind() {
            "get" | "set" => flag::PROPERTY,
            "static" => flag::STATIC,
            _ => 0,
        };
    }
    inside(walk, node, number);
}

/// A field, or a method if it holds a function.
fn property(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let field = if node.kind() == "field_definition" { "property" } else { "name" };
    let name = key(walk, node, field);
    let Open::Class(owner) = walk.owner().what else { return };
    let (ty, value) = (walk.get(node, "type"), walk.get(node, "value"));
    let function = value.filter(|value| matches!(value.kind(), "arrow_function" | "function_expression"));
    if let Some(value) = function {
        if let Some(number) = note(walk, name, node, value, Kind::Method, false) {
            walk.named.insert(value.id(), number);
        }
        return;
    }
    let given = match (ty, value) {
        (Some(ty), _) => {
            let ty = walk.lower(ty);
            walk.of(ty)
        }
        (None, Some(value)) => walk.lower(value),
        (None, None) => ExprId::NONE,
    };
    if let Some(Expr::Of(ty)) = walk.exprs.get(given)
        && let Some(Expr::Function(result)) = walk.exprs.get(ty)
    {
        if let Some(number) = note(walk, name, node, node, Kind::Method, false) {
            walk.gives(number, result, start(node));
            walk.facts.nodes[number as usize].flags |= flag::ANNOTATED;
        }
        return;
    }
    walk.field(owner, name, given, start(node));
}

/// A property of an object.
fn pair(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let Open::Class(owner) = walk.owner().what else { return };
    let name = key(walk, node, "key");
    let Some(value) = walk.get(node, "value") else { return };
    if matches!(value.kind(), "arrow_function" | "function_expression" | "generator_function") {
        if let Some(number) = note(walk, name, node, value, Kind::Method, false) {
            walk.named.insert(value.id(), number);
        }
        return;
    }
    let value = walk.lower(value);
    walk.field(owner, name, value, start(node));
}

fn returned(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let Open::Function(function) = walk.owner().what else { return };
    let Some(noted) = walk.facts.nodes.get(function as usize) else { return };
    if noted.flags & flag::ANNOTATED == 0 {
        let value = match node.named_child(0) {
            Some(value) => walk.lower(value),
            None => walk.expr(Expr::Null),
        };
        walk.gives(function, value, start(node));
    }
}

fn call(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let Some(function) = walk.get(node, "function") else { return };
    walk.call_of(function, false);
    if function.kind() == "super" {
        let (name, callee) = (walk.names.made("constructor"), walk.expr(Expr::Super));
        let callee = walk.expr(Expr::Member(callee, name));
        walk.call(name, callee, function, false);
    }
    if crate::extract::is_test_path(walk.path) {
        test(walk, node, function);
    }
    bind::hints(walk, node, function);
}

/// `it("does this", () => ..)` is a test of that name.
fn test(walk: &mut Walk<'_>, node: Syntax<'_>, function: Syntax<'_>) {
    let head = walk.text(function).split(['.', '(']).next().unwrap_or_default();
    if !matches!(head, "it" | "test") {
        return;
    }
    let Some(args) = walk.get(node, "arguments") else { return };
    let (Some(title), Some(body)) = (args.named_child(0), args.named_child(1)) else { return };
    let body = match body.kind() {
        "arrow_function" | "function_expression" => body,
        _ => match args.named_child(2) {
            Some(third) if matches!(third.kind(), "arrow_function" | "function_expression") => third,
            _ => return,
        },
    };
    if !matches!(title.kind(), "string" | "template_string") {
        return;
    }
    let text: String =
        walk.text(title).trim_matches(['"', '\'', '`']).chars().filter(|c| !c.is_control()).take(120).collect();
    let name = walk.names.made(text.trim());
    if text.trim().is_empty() {
        return;
    }
    let draft =
        Draft { kind: Kind::Function, name, whole: node, body: Some(body), flags: flag::TEST, doc: None, bare: false };
    let number = walk.node(draft);
    walk.named.insert(body.id(), number);
}

fn new(walk: &mut Walk<'_>, node: Syntax<'_>) {
    if let Some(class) = walk.get(node, "constructor") {
        walk.call_of(class, false);
    }
}

fn decorator(walk: &mut Walk<'_>, node: Syntax<'_>) {
    if let Some(function) = node.named_child(0)
        && function.kind() != "call_expression"
    {
        walk.call_of(function, false);
    }
}
