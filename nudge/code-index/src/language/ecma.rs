//! Reads JavaScript and TypeScript.

mod bind;
mod modules;
mod shapes;

use tree_sitter::Node as Syntax;

use crate::extract::{FrameKind, NodeDraft, TreeWalk, start_byte};
use crate::facts::{Expr, ExprId, NO_NODE, NameId, NodeKind, flag};

use super::{LanguageSpec, SyntaxShape, Visit};

pub(super) const JAVASCRIPT: LanguageSpec = LanguageSpec {
    parser: || tree_sitter_javascript::LANGUAGE.into(),
    visits: VISITS,
    shapes: shapes::SHAPES,
    branches: BRANCHES,
    comments: COMMENTS,
    leaves: LEAVES,
    heads: &["member_expression"],
};

pub(super) const TYPESCRIPT: LanguageSpec =
    LanguageSpec { parser: || tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(), ..JAVASCRIPT };

pub(super) const TSX: LanguageSpec =
    LanguageSpec { parser: || tree_sitter_typescript::LANGUAGE_TSX.into(), ..JAVASCRIPT };

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
    ("function_declaration", visit_function),
    ("generator_function_declaration", visit_function),
    ("function_signature", visit_function),
    ("class_declaration", visit_class),
    ("abstract_class_declaration", visit_class),
    ("class", visit_class),
    ("interface_declaration", visit_class),
    ("enum_declaration", visit_class),
    ("type_alias_declaration", visit_alias),
    ("internal_module", visit_namespace),
    ("module", visit_namespace),
    ("method_definition", visit_method),
    ("method_signature", visit_method),
    ("abstract_method_signature", visit_method),
    ("property_signature", visit_property),
    ("public_field_definition", visit_property),
    ("field_definition", visit_property),
    ("pair", visit_pair),
    ("object", visit_object),
    ("object_type", visit_object),
    ("arrow_function", visit_anonymous),
    ("function_expression", visit_anonymous),
    ("generator_function", visit_anonymous),
    ("function_type", type_scope),
    ("statement_block", open_block),
    ("if_statement", bind::narrow_by_instanceof),
    ("for_statement", open_block),
    ("for_in_statement", bind::for_in),
    ("catch_clause", bind::visit_catch),
    ("variable_declarator", bind::visit_variable),
    ("assignment_expression", bind::visit_assignment),
    ("augmented_assignment_expression", bind::visit_assignment),
    ("return_statement", visit_return),
    ("call_expression", call),
    ("new_expression", new),
    ("decorator", visit_decorator),
    ("import_statement", modules::visit_import),
    ("export_statement", modules::visit_export),
];

fn read_doc(walk: &mut TreeWalk<'_>, row: usize) -> Option<String> {
    let mut comments = walk.comments_before(row);
    // Keeps only JSDoc comments. Other comments describe the code and not its use.
    comments.retain(|comment| comment.starts_with("/**"));
    let last = comments.pop()?;
    crate::extract::text::clean_doc(&crate::doc::strip_comment_marks(&[last]))
}

fn open_block(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    walk.open_frame(node, FrameKind::Block);
}

/// Opens a frame for the type of a function. The parameters in it belong to no node.
fn type_scope(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    walk.open_frame(node, FrameKind::Function(NO_NODE));
}

fn note_node<'t>(
    walk: &mut TreeWalk<'_>,
    name: NameId,
    whole: Syntax<'t>,
    inner: Syntax<'t>,
    kind: NodeKind,
    bare: bool,
) -> Option<u32> {
    if name.is_none() {
        return None;
    }
    let body = walk.child_by_field(inner, "body");
    let (mut flags, row) = walk.take_export(whole);
    if body.is_none() && matches!(kind, NodeKind::Function | NodeKind::Method) {
        flags |= flag::BODILESS;
    }
    if walk.node_text(inner).starts_with("async") {
        flags |= flag::ASYNC;
    }
    let doc = read_doc(walk, row);
    let number = walk.add_node(NodeDraft { kind, name, whole, body, flags, doc, bare });
    bind::type_params(walk, inner);
    Some(number)
}

fn visit_function(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let Some(name) = walk.child_by_field(node, "name") else { return };
    let name = walk.name_of(name);
    let Some(number) = note_node(walk, name, node, node, NodeKind::Function, true) else { return };
    walk.facts.nodes[number as usize].flags |= flag::OWN_THIS;
    open_function(walk, node, number);
}

/// Notes the result and the parameters of a function, and opens a frame for it.
fn open_function(walk: &mut TreeWalk<'_>, node: Syntax<'_>, number: u32) {
    if let Some(ty) = walk.child_by_field(node, "return_type") {
        let ty = walk.lower_expr(ty);
        let value = walk.add_value_of(ty);
        walk.facts.nodes[number as usize].flags |= flag::ANNOTATED;
        walk.add_result(number, value, start_byte(node));
    } else if let Some(body) = walk.child_by_field(node, "body").filter(|body| body.kind() != "statement_block") {
        let value = walk.lower_expr(body);
        walk.add_result(number, value, start_byte(body));
    }
    let names = bind::bind_params(walk, node, number);
    walk.set_params(number, names);
    bind::check_function_doc(walk, node, number);
    walk.open_frame(node, FrameKind::Function(number));
}

fn visit_anonymous(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    if let Some(number) = walk.named.remove(&node.id()) {
        bind::type_params(walk, node);
        open_function(walk, node, number);
        return;
    }
    bind::type_params(walk, node);
    bind::bind_params(walk, node, NO_NODE);
    walk.open_frame(node, FrameKind::Function(NO_NODE));
}

fn visit_class(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let (number, kind) = if let Some(number) = walk.named.remove(&node.id()) {
        (number, NodeKind::Class)
    } else {
        let kind = if node.kind() == "interface_declaration" { NodeKind::Trait } else { NodeKind::Class };
        let name = walk.child_by_field(node, "name").map_or(NameId::NONE, |name| walk.name_of(name));
        let Some(number) = note_node(walk, name, node, node, kind, node.kind() != "class") else {
            walk.open_frame(node, FrameKind::Function(NO_NODE));
            return;
        };
        (number, kind)
    };
    let mut bases = Vec::new();
    let mut cursor = node.walk();
    for child in node.named_children(&mut cursor) {
        match child.kind() {
            "class_heritage" | "extends_type_clause" => collect_bases(walk, child, &mut bases),
            _ => {}
        }
    }
    walk.set_bases(number, bases);
    let _ = kind;
    walk.open_frame(node, FrameKind::Class(number));
}

fn collect_bases(walk: &mut TreeWalk<'_>, node: Syntax<'_>, bases: &mut Vec<ExprId>) {
    let mut cursor = node.walk();
    for child in node.named_children(&mut cursor).take(16) {
        match child.kind() {
            "extends_clause" => {
                let class = walk.lower_field(child, "value");
                let mut inner = child.walk();
                let args = child.named_children(&mut inner).find(|child| child.kind() == "type_arguments");
                let args = args.map_or(ExprId::NONE, |args| walk.lower_all(args));
                bases.push(if class.is_none() || args.is_none() {
                    class
                } else {
                    walk.add_expr(Expr::Apply(class, args))
                });
            }
            "implements_clause" => {
                let mut inner = child.walk();
                for ty in child.named_children(&mut inner).take(16) {
                    bases.push(walk.lower_expr(ty));
                }
            }
            _ => bases.push(walk.lower_expr(child)),
        }
    }
}

fn visit_alias(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let (Some(name), Some(value)) = (walk.child_by_field(node, "name"), walk.child_by_field(node, "value")) else {
        return;
    };
    let name = walk.name_of(name);
    let Some(number) = note_node(walk, name, node, node, NodeKind::Type, true) else { return };
    if value.kind() == "object_type" {
        walk.named.insert(value.id(), number);
        return;
    }
    let ty = walk.lower_expr(value);
    let given = walk.add_value_of(ty);
    walk.add_result(number, given, start_byte(value));
    if value.kind() == "intersection_type" {
        let mut cursor = value.walk();
        for part in value.named_children(&mut cursor).filter(|part| part.kind() == "object_type") {
            walk.named.insert(part.id(), number);
        }
    }
}

fn visit_namespace(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let Some(name) = walk.child_by_field(node, "name").filter(|name| name.kind() == "identifier") else {
        walk.open_frame(node, FrameKind::Block);
        return;
    };
    let name = walk.name_of(name);
    if let Some(number) = note_node(walk, name, node, node, NodeKind::Module, true) {
        walk.open_frame(node, FrameKind::Module(number));
    }
}

/// Visits an object or an object type. The members belong to the name to which the object is assigned.
fn visit_object(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let what = walk.named.remove(&node.id()).map_or(FrameKind::Function(NO_NODE), FrameKind::Class);
    walk.open_frame(node, what);
}

fn read_key(walk: &mut TreeWalk<'_>, node: Syntax<'_>, field: &str) -> NameId {
    match walk.child_by_field(node, field) {
        Some(key) if matches!(key.kind(), "property_identifier" | "private_property_identifier") => walk.name_of(key),
        Some(key) if key.kind() == "string" => {
            let text = walk.node_text(key).trim_matches(['"', '\'']);
            let plain = !text.is_empty() && text.len() < 100 && text.chars().all(|c| c.is_alphanumeric() || c == '_');
            if plain { walk.names.name(text) } else { NameId::NONE }
        }
        _ => NameId::NONE,
    }
}

fn visit_method(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let name = read_key(walk, node, "name");
    let class = matches!(walk.owner_frame().what, FrameKind::Class(_));
    let Some(number) = (if class { note_node(walk, name, node, node, NodeKind::Method, false) } else { None }) else {
        visit_anonymous(walk, node);
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
    open_function(walk, node, number);
}

/// Visits a field. A field that contains a function is a method.
fn visit_property(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let field = if node.kind() == "field_definition" { "property" } else { "name" };
    let name = read_key(walk, node, field);
    let FrameKind::Class(owner) = walk.owner_frame().what else { return };
    let (ty, value) = (walk.child_by_field(node, "type"), walk.child_by_field(node, "value"));
    let function = value.filter(|value| matches!(value.kind(), "arrow_function" | "function_expression"));
    if let Some(value) = function {
        if let Some(number) = note_node(walk, name, node, value, NodeKind::Method, false) {
            walk.named.insert(value.id(), number);
        }
        return;
    }
    let given = match (ty, value) {
        (Some(ty), _) => {
            let ty = walk.lower_expr(ty);
            walk.add_value_of(ty)
        }
        (None, Some(value)) => walk.lower_expr(value),
        (None, None) => ExprId::NONE,
    };
    if let Some(Expr::Of(ty)) = walk.exprs.get(given)
        && let Some(Expr::Function(result)) = walk.exprs.get(ty)
    {
        if let Some(number) = note_node(walk, name, node, node, NodeKind::Method, false) {
            walk.add_result(number, result, start_byte(node));
            walk.facts.nodes[number as usize].flags |= flag::ANNOTATED;
        }
        return;
    }
    walk.add_field(owner, name, given, start_byte(node));
}

/// Visits a property of an object.
fn visit_pair(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let FrameKind::Class(owner) = walk.owner_frame().what else { return };
    let name = read_key(walk, node, "key");
    let Some(value) = walk.child_by_field(node, "value") else { return };
    if matches!(value.kind(), "arrow_function" | "function_expression" | "generator_function") {
        if let Some(number) = note_node(walk, name, node, value, NodeKind::Method, false) {
            walk.named.insert(value.id(), number);
        }
        return;
    }
    let value = walk.lower_expr(value);
    walk.add_field(owner, name, value, start_byte(node));
}

fn visit_return(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let FrameKind::Function(function) = walk.owner_frame().what else { return };
    let Some(noted) = walk.facts.nodes.get(function as usize) else { return };
    if noted.flags & flag::ANNOTATED == 0 {
        let value = match node.named_child(0) {
            Some(value) => walk.lower_expr(value),
            None => walk.add_expr(Expr::Null),
        };
        walk.add_result(function, value, start_byte(node));
    }
}

fn call(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let Some(function) = walk.child_by_field(node, "function") else { return };
    walk.call_of(function, false);
    if function.kind() == "super" {
        let (name, callee) = (walk.names.intern_made("constructor"), walk.add_expr(Expr::Super));
        let callee = walk.add_expr(Expr::Member(callee, name));
        walk.call(name, callee, function, false);
    }
    if crate::extract::is_test_path(walk.path) {
        test(walk, node, function);
    }
    bind::hint_function(walk, node, function);
}

/// Adds a test, which has its title as its name: `it("does this", () => ..)`.
fn test(walk: &mut TreeWalk<'_>, node: Syntax<'_>, function: Syntax<'_>) {
    let called = walk.node_text(function);
    let head = called.split_once(['.', '(']).map_or(called, |(head, _)| head);
    if !matches!(head, "it" | "test") {
        return;
    }
    let Some(args) = walk.child_by_field(node, "arguments") else { return };
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
        walk.node_text(title).trim_matches(['"', '\'', '`']).chars().filter(|c| !c.is_control()).take(120).collect();
    let name = walk.names.intern_made(text.trim());
    if text.trim().is_empty() {
        return;
    }
    let draft = NodeDraft {
        kind: NodeKind::Function,
        name,
        whole: node,
        body: Some(body),
        flags: flag::TEST,
        doc: None,
        bare: false,
    };
    let number = walk.add_node(draft);
    walk.named.insert(body.id(), number);
}

fn new(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    if let Some(class) = walk.child_by_field(node, "constructor") {
        walk.call_of(class, false);
    }
}

fn visit_decorator(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    if let Some(function) = node.named_child(0)
        && function.kind() != "call_expression"
    {
        walk.call_of(function, false);
    }
}
