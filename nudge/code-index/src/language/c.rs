//! Reads C, and the part of C++ that is C with classes.

use tree_sitter::Node as Syntax;

use crate::extract::{FrameKind, NodeDraft, TreeWalk, start_byte};
use crate::facts::{ExprId, NodeKind, flag};

use super::common::{call, lower_typed, open_block, read_doc};
use super::{LanguageSpec, SyntaxShape, Visit};

pub(super) const SPEC: LanguageSpec = LanguageSpec {
    parser: || tree_sitter_c::LANGUAGE.into(),
    visits: VISITS,
    shapes: SHAPES,
    branches: &[
        "if_statement",
        "for_statement",
        "for_range_loop",
        "while_statement",
        "do_statement",
        "case_statement",
        "conditional_expression",
        "catch_clause",
    ],
    comments: &["comment"],
    leaves: &[],
    heads: &["field_expression"],
};

#[cfg(feature = "code-all")]
pub(super) const CPP: LanguageSpec = LanguageSpec { parser: || tree_sitter_cpp::LANGUAGE.into(), ..SPEC };

const VISITS: &[(&str, Visit)] = &[
    ("preproc_include", visit_include),
    ("preproc_function_def", macro_),
    ("function_definition", visit_function),
    ("declaration", visit_declaration),
    ("struct_specifier", visit_class),
    ("union_specifier", visit_class),
    ("enum_specifier", visit_class),
    ("class_specifier", visit_class),
    ("namespace_definition", visit_namespace),
    ("type_definition", type_),
    ("field_declaration", visit_field),
    ("compound_statement", open_block),
    ("for_statement", open_block),
    ("for_range_loop", visit_range_loop),
    ("lambda_expression", visit_lambda),
    ("call_expression", call),
    ("new_expression", new),
];

const SHAPES: &[(&str, SyntaxShape)] = &[
    ("identifier", SyntaxShape::Name),
    ("type_identifier", SyntaxShape::Name),
    ("field_identifier", SyntaxShape::Name),
    ("namespace_identifier", SyntaxShape::Name),
    ("field_expression", SyntaxShape::Member("argument", "field")),
    ("qualified_identifier", SyntaxShape::Static("scope", "name")),
    ("call_expression", SyntaxShape::Call("function")),
    ("new_expression", SyntaxShape::Of("type")),
    ("parenthesized_expression", SyntaxShape::Pass("")),
    ("pointer_expression", SyntaxShape::Pass("argument")),
    ("subscript_expression", SyntaxShape::Item("argument")),
    ("cast_expression", SyntaxShape::Of("type")),
    ("compound_literal_expression", SyntaxShape::Of("type")),
    ("type_descriptor", SyntaxShape::Pass("type")),
    ("struct_specifier", SyntaxShape::Pass("name")),
    ("union_specifier", SyntaxShape::Pass("name")),
    ("enum_specifier", SyntaxShape::Pass("name")),
    ("class_specifier", SyntaxShape::Pass("name")),
    ("this", SyntaxShape::This),
    ("null", SyntaxShape::Null),
    ("primitive_type", SyntaxShape::Literal("int")),
    ("sized_type_specifier", SyntaxShape::Literal("int")),
    ("number_literal", SyntaxShape::Literal("int")),
    ("string_literal", SyntaxShape::Literal("char")),
];

const DOCS: &[&str] = &["/*", "//"];

fn visit_include(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    if let Some(path) = node.child_by_field_name("path") {
        let path = walk.node_text(path).trim_matches(['"', '<', '>']);
        walk.add_import(path, "*", "", node, true);
    }
}

fn macro_(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let Some(name) = node.child_by_field_name("name") else { return };
    let name = walk.name_of(name);
    if !name.is_none() {
        let doc = read_doc(walk, node, DOCS);
        let body = node.child_by_field_name("value");
        walk.add_node(NodeDraft { kind: NodeKind::Macro, name, whole: node, body, flags: 0, doc, bare: true });
    }
}

/// Finds the declarator of the function in a declaration, below pointers and parentheses.
fn find_function_declarator(node: Syntax<'_>) -> Option<Syntax<'_>> {
    let mut current = node.child_by_field_name("declarator")?;
    for _ in 0..16 {
        if current.kind() == "function_declarator" {
            return Some(current);
        }
        current = current.child_by_field_name("declarator").or_else(|| current.named_child(0))?;
    }
    None
}

/// Finds the name that a declarator declares.
fn name_in(node: Syntax<'_>) -> Option<Syntax<'_>> {
    let mut current = node;
    for _ in 0..16 {
        match current.kind() {
            "identifier"
            | "field_identifier"
            | "type_identifier"
            | "qualified_identifier"
            | "destructor_name"
            | "operator_name" => return Some(current),
            _ => current = current.child_by_field_name("declarator").or_else(|| current.named_child(0))?,
        }
    }
    None
}

fn visit_function(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let Some(head) = find_function_declarator(node) else { return };
    let Some(name) = head.child_by_field_name("declarator").and_then(name_in) else { return };
    let fixed = walk.node_text(node).starts_with("static");
    note_function(walk, node, head, name, if fixed { flag::STATIC } else { 0 });
}

fn note_function(walk: &mut TreeWalk<'_>, node: Syntax<'_>, head: Syntax<'_>, name: Syntax<'_>, flags: u16) {
    let body = node.child_by_field_name("body");
    let mut name = name;
    if name.kind() == "qualified_identifier" {
        // Handles a method outside its class, such as `void T::f() {}`.
        let owner = walk.lower_field(name, "scope");
        let block = walk.impl_block(owner, ExprId::NONE, node);
        walk.open_frame(node, FrameKind::Impl(block));
        for _ in 0..8 {
            match name.child_by_field_name("name") {
                Some(inner) => name = inner,
                None => break,
            }
        }
    }
    let method = matches!(walk.owner_frame().what, FrameKind::Class(_) | FrameKind::Impl(_));
    let doc = read_doc(walk, node, DOCS);
    let name = walk.name_of(name);
    if name.is_none() {
        return;
    }
    let kind = if method { NodeKind::Method } else { NodeKind::Function };
    let flags = flags | if body.is_none() { flag::BODILESS } else { 0 };
    let number = walk.add_node(NodeDraft { kind, name, whole: node, body, flags, doc, bare: !method });
    super::common::note_result(walk, node, number, "type");
    super::common::note_params(walk, node, head.child_by_field_name("parameters"), number, |param| {
        param.child_by_field_name("declarator").and_then(name_in)
    });
    walk.open_frame(node, FrameKind::Function(number));
}

fn visit_declaration(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    if let Some(head) = find_function_declarator(node)
        && !matches!(walk.owner_frame().what, FrameKind::Function(_))
    {
        if let Some(name) = head.child_by_field_name("declarator").filter(|name| name.kind() == "identifier") {
            note_function(walk, node, head, name, 0);
        }
        return;
    }
    let ty = node.child_by_field_name("type");
    let mut cursor = node.walk();
    for declarator in node.children_by_field_name("declarator", &mut cursor) {
        if let Some(name) = name_in(declarator) {
            let value = lower_typed(walk, ty, declarator.child_by_field_name("value"));
            let name = walk.name_of(name);
            super::common::bind_value(walk, name, value, node);
        }
    }
}

/// Handles a loop over a range, such as `for (auto& x : xs)`.
fn visit_range_loop(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    walk.open_frame(node, FrameKind::Block);
    if let Some(name) = node.child_by_field_name("declarator").and_then(name_in) {
        let value = lower_typed(walk, node.child_by_field_name("type"), None);
        let name = walk.name_of(name);
        super::common::bind_in(walk, name, value, node);
    }
}

fn visit_lambda(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    walk.open_frame(node, FrameKind::Block);
    let list = node.child_by_field_name("declarator").and_then(|head| head.child_by_field_name("parameters"));
    let Some(list) = list else { return };
    let mut cursor = list.walk();
    for param in list.named_children(&mut cursor) {
        if let Some(name) = param.child_by_field_name("declarator").and_then(name_in) {
            let value = lower_typed(walk, param.child_by_field_name("type"), None);
            let name = walk.name_of(name);
            super::common::bind_in(walk, name, value, node);
        }
    }
}

fn visit_class(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    // Without a body, the syntax only mentions a class and does not define it.
    let (Some(name), Some(body)) = (node.child_by_field_name("name"), node.child_by_field_name("body")) else { return };
    let name = walk.name_of(name);
    if name.is_none() {
        return;
    }
    let doc = read_doc(walk, node, DOCS);
    let draft = NodeDraft { kind: NodeKind::Class, name, whole: node, body: Some(body), flags: 0, doc, bare: true };
    let number = walk.add_node(draft);
    let mut cursor = node.walk();
    if let Some(list) = node.named_children(&mut cursor).find(|child| child.kind() == "base_class_clause") {
        let mut inner = list.walk();
        let bases: Vec<ExprId> = list.named_children(&mut inner).take(16).map(|base| walk.lower_expr(base)).collect();
        walk.set_bases(number, bases);
    }
    walk.open_frame(node, FrameKind::Class(number));
}

fn visit_namespace(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let (Some(name), body) = (node.child_by_field_name("name"), node.child_by_field_name("body")) else { return };
    let name = walk.name_of(name);
    if !name.is_none() {
        let number = walk.add_node(NodeDraft {
            kind: NodeKind::Module,
            name,
            whole: node,
            body,
            flags: 0,
            doc: None,
            bare: true,
        });
        walk.open_frame(node, FrameKind::Module(number));
    }
}

fn type_(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let Some(name) = node.child_by_field_name("declarator").and_then(name_in) else { return };
    let ty = node.child_by_field_name("type");
    let name = walk.name_of(name);
    let same = ty.and_then(|ty| ty.child_by_field_name("name")).is_some_and(|inner| walk.name_of(inner) == name);
    if name.is_none() || same {
        return;
    }
    let doc = read_doc(walk, node, DOCS);
    let draft = NodeDraft { kind: NodeKind::Type, name, whole: node, body: None, flags: 0, doc, bare: true };
    let number = walk.add_node(draft);
    let value = lower_typed(walk, ty, None);
    walk.add_result(number, value, start_byte(node));
    // If the struct has no name, its members are members of this type alias.
    if ty.is_some_and(|ty| ty.child_by_field_name("body").is_some() && ty.child_by_field_name("name").is_none()) {
        walk.open_frame(node, FrameKind::Class(number));
    }
}

fn visit_field(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let FrameKind::Class(owner) = walk.owner_frame().what else { return };
    if let Some(head) = find_function_declarator(node) {
        if let Some(name) = head.child_by_field_name("declarator").filter(|name| name.kind() == "field_identifier") {
            note_function(walk, node, head, name, 0);
        }
        return;
    }
    let value = lower_typed(walk, node.child_by_field_name("type"), None);
    let mut cursor = node.walk();
    for declarator in node.children_by_field_name("declarator", &mut cursor) {
        if let Some(name) = name_in(declarator) {
            let name = walk.name_of(name);
            walk.add_field(owner, name, value, start_byte(node));
        }
    }
}

fn new(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    if let Some(ty) = node.child_by_field_name("type") {
        walk.call_of(ty, false);
    }
}
