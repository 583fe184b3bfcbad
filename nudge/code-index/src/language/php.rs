//! Reads PHP.

use tree_sitter::Node as Syntax;

use crate::extract::{FrameKind, TreeWalk, end_byte, start_byte};
use crate::facts::{BindingTarget, Expr, ExprId, NO_NODE, NameId, NodeKind, flag};

use super::common::{call, lower_typed, note_node};
use super::{LanguageSpec, SyntaxShape, Visit};

pub(super) const SPEC: LanguageSpec = LanguageSpec {
    parser: || tree_sitter_php::LANGUAGE_PHP.into(),
    visits: VISITS,
    shapes: SHAPES,
    branches: &[
        "if_statement",
        "else_if_clause",
        "for_statement",
        "foreach_statement",
        "while_statement",
        "do_statement",
        "case_statement",
        "catch_clause",
        "conditional_expression",
    ],
    comments: &["comment"],
    leaves: &[],
    heads: &[],
};

const VISITS: &[(&str, Visit)] = &[
    ("namespace_definition", visit_namespace),
    ("namespace_use_clause", use_),
    ("class_declaration", visit_class),
    ("interface_declaration", visit_class),
    ("trait_declaration", visit_class),
    ("enum_declaration", visit_class),
    ("function_definition", visit_function),
    ("method_declaration", visit_function),
    ("anonymous_class", super::common::open_nameless),
    ("anonymous_function", visit_anonymous),
    ("arrow_function", visit_anonymous),
    ("property_declaration", visit_property),
    ("assignment_expression", visit_assignment),
    ("foreach_statement", loop_),
    ("catch_clause", visit_catch),
    ("function_call_expression", call),
    ("member_call_expression", visit_invocation),
    ("nullsafe_member_call_expression", visit_invocation),
    ("scoped_call_expression", visit_invocation),
    ("object_creation_expression", new),
];

const SHAPES: &[(&str, SyntaxShape)] = &[
    ("name", SyntaxShape::Name),
    ("named_type", SyntaxShape::Pass("")),
    ("optional_type", SyntaxShape::Pass("")),
    ("variable_name", SyntaxShape::Own(lower_variable)),
    ("member_access_expression", SyntaxShape::Member("object", "name")),
    ("member_call_expression", SyntaxShape::Invoke("object", "name")),
    ("nullsafe_member_call_expression", SyntaxShape::Invoke("object", "name")),
    ("scoped_call_expression", SyntaxShape::Invoke("scope", "name")),
    ("function_call_expression", SyntaxShape::Call("function")),
    ("object_creation_expression", SyntaxShape::Of("")),
    ("parenthesized_expression", SyntaxShape::Pass("")),
    ("relative_scope", SyntaxShape::Own(lower_scope)),
    ("primitive_type", SyntaxShape::Literal("mixed")),
    ("string", SyntaxShape::Literal("string")),
    ("encapsed_string", SyntaxShape::Literal("string")),
    ("integer", SyntaxShape::Literal("int")),
    ("null", SyntaxShape::Null),
];

const DOCS: &[&str] = &["/**"];

/// Lowers a variable. Names of variables keep their `$`, so they never equal names of functions and classes.
fn lower_variable(walk: &mut TreeWalk<'_>, node: Syntax<'_>) -> ExprId {
    if walk.node_text(node) == "$this" {
        return walk.add_expr(Expr::This);
    }
    let name = walk.name_of(node);
    if name.is_none() { ExprId::NONE } else { walk.add_expr(Expr::Name(name)) }
}

fn lower_scope(walk: &mut TreeWalk<'_>, node: Syntax<'_>) -> ExprId {
    match walk.node_text(node) {
        "parent" => walk.add_expr(Expr::Super),
        _ => walk.add_expr(Expr::SelfType),
    }
}

fn visit_namespace(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    if let Some(name) = node.child_by_field_name("name") {
        let name = walk.node_text(name).replace('\\', ".");
        walk.facts.package = walk.names.intern_made(&name);
    }
}

fn use_(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let Some(path) = node.named_child(0) else { return };
    let module = walk.node_text(path).trim_start_matches('\\').replace('\\', ".");
    let last = module.rsplit_once('.').map_or(&*module, |(_, last)| last);
    let alias = node.child_by_field_name("alias").map_or(last, |alias| walk.node_text(alias));
    walk.add_import(&module, "", alias, node, false);
}

fn visit_class(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let kind = if node.kind() == "interface_declaration" { NodeKind::Trait } else { NodeKind::Class };
    let Some(name) = node.child_by_field_name("name") else { return };
    let Some(number) = note_node(walk, node, name, kind, (true, 0), DOCS) else { return };
    let mut bases = Vec::new();
    let mut cursor = node.walk();
    for part in node.named_children(&mut cursor) {
        if matches!(part.kind(), "base_clause" | "class_interface_clause") {
            let mut inner = part.walk();
            for base in part.named_children(&mut inner).take(16) {
                bases.push(walk.lower_expr(base));
            }
        }
    }
    walk.set_bases(number, bases);
    walk.open_frame(node, FrameKind::Class(number));
}

fn visit_function(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let Some(name) = node.child_by_field_name("name") else { return };
    let class = matches!(walk.owner_frame().what, FrameKind::Class(_));
    if node.kind() == "method_declaration" && !class {
        return visit_anonymous(walk, node);
    }
    let kind = if class { NodeKind::Method } else { NodeKind::Function };
    let tests = crate::extract::is_test_path(walk.path) || walk.path.ends_with("Test.php");
    let flags = if tests && walk.node_text(name).starts_with("test") { flag::TEST } else { 0 };
    let Some(number) = note_node(walk, node, name, kind, (!class, flags), DOCS) else { return };
    super::common::note_result(walk, node, number, "return_type");
    let names = bind_params(walk, node, number);
    walk.set_params(number, names);
    walk.open_frame(node, FrameKind::Function(number));
}

fn visit_anonymous(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    bind_params(walk, node, NO_NODE);
    walk.open_frame(node, FrameKind::Function(NO_NODE));
}

fn bind_params(walk: &mut TreeWalk<'_>, node: Syntax<'_>, number: u32) -> Vec<NameId> {
    let mut names = Vec::new();
    let Some(list) = node.child_by_field_name("parameters") else { return names };
    let mut cursor = list.walk();
    for param in list.named_children(&mut cursor) {
        let Some(name) = param.child_by_field_name("name") else { continue };
        let value = lower_typed(walk, param.child_by_field_name("type"), None);
        if let (Some(FrameKind::Class(class)), "property_promotion_parameter") = (walk.class_around(), param.kind()) {
            let field = walk.names.name(walk.node_text(name).trim_start_matches('$'));
            walk.add_field(class, field, value, start_byte(param));
        }
        let name = walk.name_of(name);
        names.push(name);
        walk.add_binding(name, start_byte(node), end_byte(node), start_byte(node), BindingTarget::Param(value, number));
    }
    names
}

fn visit_property(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let FrameKind::Class(owner) = walk.owner_frame().what else { return };
    let value = lower_typed(walk, node.child_by_field_name("type"), None);
    let mut cursor = node.walk();
    for element in node.named_children(&mut cursor).filter(|child| child.kind() == "property_element") {
        if let Some(name) = element.child_by_field_name("name") {
            let name = walk.names.name(walk.node_text(name).trim_start_matches('$'));
            walk.add_field(owner, name, value, start_byte(node));
        }
    }
}

/// Binds the variable of `$x = ..` in the whole function. A variable that is assigned twice may have either value.
fn visit_assignment(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let (Some(left), Some(right)) = (node.child_by_field_name("left"), node.child_by_field_name("right")) else {
        return;
    };
    if left.kind() == "variable_name" {
        let value = walk.lower_expr(right);
        bind_variable(walk, left, value, node);
    } else if left.kind() == "list_literal" {
        let mut cursor = left.walk();
        for part in left.named_children(&mut cursor).filter(|part| part.kind() == "variable_name") {
            bind_variable(walk, part, ExprId::NONE, node);
        }
    }
}

/// Binds a variable, which is visible in the whole function around it.
fn bind_variable(walk: &mut TreeWalk<'_>, variable: Syntax<'_>, value: ExprId, site: Syntax<'_>) {
    let name = walk.name_of(variable);
    let owner = walk.owner_frame();
    walk.add_binding(name, owner.from, owner.to, start_byte(site), BindingTarget::Value(value));
}

fn loop_(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let Some(taken) = node.named_child(1) else { return };
    let mut cursor = taken.walk();
    let parts: Vec<Syntax<'_>> = if taken.kind() == "variable_name" {
        vec![taken]
    } else {
        taken.named_children(&mut cursor).filter(|part| part.kind() == "variable_name").collect()
    };
    for part in parts {
        bind_variable(walk, part, ExprId::NONE, node);
    }
}

fn visit_catch(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    if let Some(variable) = node.child_by_field_name("name") {
        let value = lower_typed(walk, node.child_by_field_name("type"), None);
        bind_variable(walk, variable, value, node);
    }
}

fn visit_invocation(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let Some(name) = node.child_by_field_name("name").filter(|name| name.kind() == "name") else { return };
    let value = walk.lower_expr(node);
    if let Some(Expr::Call(callee)) = walk.exprs.get(value) {
        let text = walk.name_of(name);
        walk.call(text, callee, name, false);
    }
}

fn new(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    if let Some(ty) = node.named_child(0).filter(|ty| ty.kind() == "name") {
        walk.call_of(ty, false);
    }
}
