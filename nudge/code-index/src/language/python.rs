//! Reads Python.

mod bind;

use tree_sitter::Node as Syntax;

use crate::doc::DeclaredParam;
use crate::extract::{FrameKind, NodeDraft, TreeWalk, end_byte, start_byte};
use crate::facts::{BindingTarget, CompactNumber, Expr, ExprId, NO_NODE, NameId, NodeKind, flag};

use super::{LanguageSpec, SyntaxShape, Visit};

pub(super) const SPEC: LanguageSpec = LanguageSpec {
    parser: || tree_sitter_python::LANGUAGE.into(),
    visits: VISITS,
    shapes: SHAPES,
    branches: &[
        "if_statement",
        "elif_clause",
        "for_statement",
        "while_statement",
        "except_clause",
        "conditional_expression",
        "case_clause",
        "assert_statement",
        "for_in_clause",
        "if_clause",
    ],
    comments: &["comment"],
    leaves: LEAVES,
    heads: &["attribute"],
};

const LEAVES: &[&str] =
    &["dotted_name", "future_import_statement", "import_from_statement", "import_statement", "type"];

const VISITS: &[(&str, Visit)] = &[
    ("decorated_definition", visit_decorated),
    ("function_definition", visit_function),
    ("class_definition", visit_class),
    ("assignment", bind::visit_assignment),
    ("augmented_assignment", bind::visit_augmented),
    ("named_expression", bind::visit_walrus),
    ("global_statement", bind::visit_global),
    ("nonlocal_statement", bind::visit_nonlocal),
    ("type_alias_statement", bind::type_alias),
    ("import_statement", visit_import),
    ("import_from_statement", visit_import),
    ("call", call),
    ("decorator", visit_decorator),
    ("for_statement", bind::loop_),
    ("while_statement", bind::note_loop),
    ("for_in_clause", bind::visit_comprehension),
    ("block", bind::open_branch),
    ("list_comprehension", open_block),
    ("set_comprehension", open_block),
    ("dictionary_comprehension", open_block),
    ("generator_expression", open_block),
    ("lambda", visit_lambda),
    ("with_item", bind::with_item),
    ("except_clause", bind::visit_except),
    ("if_statement", bind::narrow_by_isinstance),
    ("case_pattern", bind::case_pattern),
    ("return_statement", visit_return),
    ("yield", visit_yield),
    ("string", visit_string),
];

const SHAPES: &[(&str, SyntaxShape)] = &[
    ("identifier", SyntaxShape::Name),
    ("attribute", SyntaxShape::Member("object", "attribute")),
    ("call", SyntaxShape::CallOr("function", call_value)),
    ("await", SyntaxShape::Inner("")),
    ("parenthesized_expression", SyntaxShape::Pass("")),
    ("type", SyntaxShape::Pass("")),
    ("generic_type", SyntaxShape::Own(lower_generic)),
    ("subscript", SyntaxShape::Own(lower_subscript)),
    ("union_type", SyntaxShape::Own(lower_union)),
    ("binary_operator", SyntaxShape::Own(lower_union)),
    ("conditional_expression", SyntaxShape::Own(lower_conditional)),
    ("boolean_operator", SyntaxShape::Own(lower_or)),
    ("named_expression", SyntaxShape::Pass("value")),
    ("none", SyntaxShape::Null),
    ("string", SyntaxShape::Own(lower_string)),
    ("concatenated_string", SyntaxShape::Literal("str")),
    ("integer", SyntaxShape::Literal("int")),
    ("float", SyntaxShape::Literal("float")),
    ("true", SyntaxShape::Literal("bool")),
    ("false", SyntaxShape::Literal("bool")),
    ("list", SyntaxShape::Literal("list")),
    ("list_comprehension", SyntaxShape::Literal("list")),
    ("dictionary", SyntaxShape::Literal("dict")),
    ("dictionary_comprehension", SyntaxShape::Literal("dict")),
    ("set", SyntaxShape::Literal("set")),
    ("generator_expression", SyntaxShape::Literal("generator")),
    ("comparison_operator", SyntaxShape::Literal("bool")),
    ("not_operator", SyntaxShape::Literal("bool")),
    ("lambda", SyntaxShape::Literal("function")),
    ("ellipsis", SyntaxShape::Literal("ellipsis")),
    ("tuple", SyntaxShape::Tuple("tuple")),
];

/// Lowers calls with a special meaning, such as `super()`. A call of `cast(T, x)` is a value of the type `T`.
fn call_value(walk: &mut TreeWalk<'_>, node: Syntax<'_>) -> ExprId {
    let Some(function) = walk.child_by_field(node, "function") else { return ExprId::NONE };
    if function.kind() == "identifier" {
        match walk.node_text(function) {
            "super" => return walk.add_expr(Expr::Super),
            "cast" => {
                let ty = walk.child_by_field(node, "arguments").and_then(|args| args.named_child(0));
                let ty = ty.map_or(ExprId::NONE, |ty| lower_annotation(walk, ty));
                return walk.add_value_of(ty);
            }
            _ => {}
        }
    }
    if function.kind() == "attribute"
        && walk.child_by_field(function, "attribute").is_some_and(|name| walk.node_text(name) == "cast")
        && let Some(ty) = walk.child_by_field(node, "arguments").and_then(|args| args.named_child(0))
    {
        let ty = lower_annotation(walk, ty);
        return walk.add_value_of(ty);
    }
    ExprId::NONE
}

fn lower_generic(walk: &mut TreeWalk<'_>, node: Syntax<'_>) -> ExprId {
    let Some(object) = node.named_child(0) else { return ExprId::NONE };
    let object = walk.lower_expr(object);
    let args = node.named_child(1).map_or(ExprId::NONE, |args| walk.lower_all(args));
    walk.add_expr(Expr::Apply(object, args))
}

/// Lowers `x[..]`. The syntax is a type with arguments, or an item of a value. Both get the same expression, because
/// only the use shows which one it is.
fn lower_subscript(walk: &mut TreeWalk<'_>, node: Syntax<'_>) -> ExprId {
    let object = walk.lower_field(node, "value");
    if object.is_none() {
        return object;
    }
    let mut cursor = node.walk();
    if node.children_by_field_name("subscript", &mut cursor).any(|arg| arg.kind() == "slice") {
        return walk.add_expr(Expr::Slice(object));
    }
    let args: Vec<ExprId> =
        node.children_by_field_name("subscript", &mut cursor).take(4).map(|arg| walk.lower_expr(arg)).collect();
    let args = walk.add_args(&args);
    walk.add_expr(Expr::Apply(object, args))
}

fn lower_union(walk: &mut TreeWalk<'_>, node: Syntax<'_>) -> ExprId {
    if node.kind() == "binary_operator"
        && walk.child_by_field(node, "operator").is_none_or(|operator| walk.node_text(operator) != "|")
    {
        return ExprId::NONE;
    }
    let (Some(left), Some(right)) = (node.named_child(0), node.named_child(1)) else { return ExprId::NONE };
    let (left, right) = (walk.lower_expr(left), walk.lower_expr(right));
    walk.add_either(left, right)
}

fn lower_conditional(walk: &mut TreeWalk<'_>, node: Syntax<'_>) -> ExprId {
    let (Some(left), Some(right)) = (node.named_child(0), node.named_child(2)) else { return ExprId::NONE };
    let (left, right) = (walk.lower_expr(left), walk.lower_expr(right));
    walk.add_either(left, right)
}

fn lower_or(walk: &mut TreeWalk<'_>, node: Syntax<'_>) -> ExprId {
    let and = walk.child_by_field(node, "operator").is_some_and(|operator| walk.node_text(operator) == "and");
    let (left, right) = (walk.lower_field(node, "left"), walk.lower_field(node, "right"));
    if and { right } else { walk.add_either(left, right) }
}

/// Lowers a string at a position where a type is expected: `"Flask"`, `t.Optional["Flask"]`, `"Flask | None"`.
fn lower_string(walk: &mut TreeWalk<'_>, node: Syntax<'_>) -> ExprId {
    let text = walk.node_text(node).trim_matches(['"', '\'']);
    let types = |text: &str| text.split(['|', '.']).all(|part| is_name(part.trim()));
    if text.len() > 100 || !text.contains(char::is_uppercase) || !types(text) {
        return walk.add_literal("str");
    }
    let mut out = ExprId::NONE;
    for path in text.split('|').map(str::trim) {
        let mut parts = path.split('.');
        let first = walk.names.intern_made(parts.next().expect("a split text has a first part"));
        let mut chain = walk.add_expr(if path == "None" { Expr::Null } else { Expr::Name(first) });
        for part in parts {
            let name = walk.names.intern_made(part);
            chain = walk.add_expr(Expr::Member(chain, name));
        }
        out = if out.is_none() { chain } else { walk.add_either(out, chain) };
    }
    // Marks the type as quoted, because the same expression is a string when it is used as a value.
    walk.add_expr(Expr::Part(out, QUOTED))
}

/// Returns the name under which an assigned attribute `name` of `owner` is bound.
pub(crate) fn member_name(owner: &str, name: &str) -> String {
    format!("{owner}.{name}")
}

/// The part number that marks a type in quotes.
pub(crate) const QUOTED: CompactNumber = CompactNumber::NONE;

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.chars().all(|c| c == '_' || c.is_alphanumeric())
        && !text.starts_with(|c: char| c.is_numeric())
}

fn lower_annotation(walk: &mut TreeWalk<'_>, node: Syntax<'_>) -> ExprId {
    walk.lower_expr(node)
}

fn open_block(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    walk.open_frame(node, FrameKind::Block);
}

fn visit_decorated(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    walk.marked_from = Some(start_byte(node));
    walk.marks.clear();
    let mut cursor = node.walk();
    for child in node.named_children(&mut cursor) {
        if child.kind() == "decorator" {
            let text = walk.node_text(child);
            walk.marks.push(text);
        }
    }
}

/// Visits a string. Only a formatted string contains code.
fn visit_string(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let text = walk.node_text(node);
    let prefix = text.split_once(['"', '\'']).map_or(text, |(prefix, _)| prefix);
    walk.skip = !prefix.contains(['f', 'F', 't', 'T']);
}

/// Returns the flags that the decorators of a node set.
fn read_flags(marks: &[&str]) -> u16 {
    let mut flags = 0;
    for mark in marks {
        let path = mark.trim_start_matches('@');
        let path = path.split_once('(').map_or(path, |(path, _)| path).trim();
        let last = path.rsplit_once('.').map_or(path, |(_, last)| last);
        flags |= match last {
            "property" | "cached_property" | "setter" | "deleter" | "getter" => flag::PROPERTY,
            "staticmethod" => flag::STATIC,
            "classmethod" | "abstractmethod" | "wraps" | "override" | "final" => 0,
            "contextmanager" | "asynccontextmanager" => flag::YIELDS_ONE,
            "fixture" => flag::FIXTURE | flag::YIELDS_ONE,
            "overload" => flag::BODILESS,
            _ => flag::DECORATED,
        };
    }
    flags
}

fn visit_function(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let (Some(name), Some(body)) = (walk.child_by_field(node, "name"), walk.child_by_field(node, "body")) else {
        return;
    };
    let method = matches!(walk.owner_frame().what, FrameKind::Class(_));
    let name = walk.name_of(name);
    if name.is_none() {
        return;
    }
    let text = walk.names.get(name);
    let text_is_new = text == "__new__";
    let mut flags = read_flags(&walk.marks);
    if walk.child_by_field(node, "return_type").is_some() {
        flags |= flag::ANNOTATED;
    }
    if text.starts_with("test") && flags & flag::FIXTURE == 0 && crate::extract::is_test_path(walk.path) {
        flags |= flag::TEST;
    }
    if node.child(0).is_some_and(|first| first.kind() == "async") {
        flags |= flag::ASYNC;
    }
    let draft = NodeDraft {
        kind: if method { NodeKind::Method } else { NodeKind::Function },
        name,
        whole: node,
        body: Some(body),
        flags,
        doc: read_docstring(walk, body),
        bare: false,
    };
    let of_class = walk.marks.iter().any(|mark| mark.trim_end() == "@classmethod") || text_is_new;
    let first = match (method && flags & flag::STATIC == 0, of_class) {
        (false, _) => ExprId::NONE,
        (true, true) => walk.add_expr(Expr::SelfType),
        (true, false) => walk.add_expr(Expr::This),
    };
    let returns = walk.child_by_field(node, "return_type").map_or(ExprId::NONE, |ty| lower_annotation(walk, ty));
    let number = walk.add_node(draft);
    bind::bind_definition(walk, name, node, number);
    if !returns.is_none() {
        let value = walk.add_value_of(returns);
        walk.add_result(number, value, start_byte(node));
    }
    let names = bind_params(walk, node, number, first);
    walk.set_params(number, names);
    check_docstring(walk, node, number);
    walk.open_frame(node, FrameKind::Function(number));
}

/// Compares the docstring of a function with its signature.
fn check_docstring(walk: &mut TreeWalk<'_>, node: Syntax<'_>, number: u32) {
    let Some(list) = walk.child_by_field(node, "parameters") else { return };
    let mut params = Vec::new();
    let mut open = false;
    let mut cursor = list.walk();
    for param in list.named_children(&mut cursor) {
        let splat = if param.kind() == "typed_parameter" { param.named_child(0).unwrap_or(param) } else { param };
        match splat.kind() {
            // The markers `*` and `/` in a list are not parameters.
            "comment" | "keyword_separator" | "positional_separator" => continue,
            "dictionary_splat_pattern" => open = true,
            _ => {}
        }
        let is_rest = splat.kind().ends_with("splat_pattern");
        let name =
            walk.child_by_field(param, "name").or_else(|| param.named_child(0).filter(|_| !is_rest)).unwrap_or(splat);
        let default = walk.child_by_field(param, "value").map(|value| walk.node_text(value));
        params.push(DeclaredParam { name: walk.node_text(name), default });
    }
    let returns = walk.child_by_field(node, "return_type").map_or("", |ty| walk.node_text(ty));
    walk.check_doc(number, &params, open, returns == "None");
}

/// Binds the parameters of a function, and returns their names.
fn bind_params(walk: &mut TreeWalk<'_>, node: Syntax<'_>, number: u32, first: ExprId) -> Vec<NameId> {
    let Some(list) = walk.child_by_field(node, "parameters") else { return Vec::new() };
    let (from, to) = (start_byte(node), end_byte(node));
    let mut names = Vec::new();
    let mut cursor = list.walk();
    for (param, place) in list.named_children(&mut cursor).zip(0..) {
        let name = match param.kind() {
            "identifier" => Some(param),
            "default_parameter" | "typed_default_parameter" => walk.child_by_field(param, "name"),
            "typed_parameter" | "list_splat_pattern" | "dictionary_splat_pattern" => param.named_child(0),
            _ => None,
        };
        let Some(mut name) = name else { continue };
        let mut splat = param.kind();
        if matches!(name.kind(), "list_splat_pattern" | "dictionary_splat_pattern") {
            splat = name.kind();
            let Some(inner) = name.named_child(0) else { continue };
            name = inner;
        }
        let splat = splat.ends_with("splat_pattern");
        let name = walk.name_of(name);
        names.push(name);
        let ty = walk.child_by_field(param, "type").map_or(ExprId::NONE, |ty| lower_annotation(walk, ty));
        let bound = if place == 0 && !first.is_none() {
            BindingTarget::Value(first)
        } else if splat {
            BindingTarget::Value(ExprId::NONE)
        } else {
            let value = walk.add_value_of(ty);
            BindingTarget::Param(value, number)
        };
        walk.add_binding(name, from, to, from, bound);
    }
    names
}

fn read_docstring(walk: &TreeWalk<'_>, body: Syntax<'_>) -> Option<String> {
    let first = walk.find_child(body, "")?;
    let string = if first.kind() == "expression_statement" { first.named_child(0)? } else { first };
    if string.kind() != "string" {
        return None;
    }
    let text = walk.node_text(string).trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let text = text.trim_matches(['"', '\'']);
    crate::extract::text::clean_doc(&crate::doc::remove_indent(text))
}

fn visit_class(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let (Some(name), Some(body)) = (walk.child_by_field(node, "name"), walk.child_by_field(node, "body")) else {
        return;
    };
    let name = walk.name_of(name);
    if name.is_none() {
        return;
    }
    let mut bases = Vec::new();
    if let Some(list) = walk.child_by_field(node, "superclasses") {
        let mut cursor = list.walk();
        for base in list.named_children(&mut cursor).take(16) {
            if base.kind() != "keyword_argument" {
                bases.push(walk.lower_expr(base));
            }
        }
    }
    let test = walk.names.get(name).starts_with("Test") && crate::extract::is_test_path(walk.path);
    let draft = NodeDraft {
        kind: NodeKind::Class,
        name,
        whole: node,
        body: Some(body),
        flags: if test { flag::TEST } else { 0 },
        doc: read_docstring(walk, body),
        bare: false,
    };
    let number = walk.add_node(draft);
    bind::bind_definition(walk, name, node, number);
    walk.set_bases(number, bases);
    walk.open_frame(node, FrameKind::Class(number));
}

fn visit_import(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let module = walk.child_by_field(node, "module_name").map(|module| walk.node_text(module));
    let mut cursor = node.walk();
    let names: Vec<Syntax<'_>> = node.children_by_field_name("name", &mut cursor).collect();
    if let Some(module) = module {
        let mut cursor = node.walk();
        if node.named_children(&mut cursor).any(|child| child.kind() == "wildcard_import") {
            walk.add_import(module, "*", "", node, true);
        }
    }
    for name in names {
        let (name, alias) = match (walk.child_by_field(name, "name"), walk.child_by_field(name, "alias")) {
            (Some(name), Some(alias)) => (walk.node_text(name), Some(walk.node_text(alias))),
            _ => (walk.node_text(name), None),
        };
        match (module, alias) {
            (Some(module), alias) => walk.add_import(module, name, alias.unwrap_or(name), node, true),
            (None, Some(alias)) => walk.add_import(name, "", alias, node, true),
            // The statement `import a.b` binds only `a`. The resolver finds `b` by the path of the module.
            (None, None) => walk.add_import(name, "", name.split('.').next().unwrap_or(name), node, true),
        }
        bind::place_import(walk, node);
    }
}

fn call(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    if let Some(function) = walk.child_by_field(node, "function") {
        walk.call_of(function, false);
        // A call that gets a function as an argument, such as `fixture(..)`, needs nothing here. The definition of that
        // function has the facts.
    }
}

fn visit_decorator(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    if let Some(function) = node.named_child(0)
        && function.kind() != "call"
    {
        walk.call_of(function, false);
    }
}

fn visit_lambda(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    walk.open_frame(node, FrameKind::Function(NO_NODE));
    bind_params(walk, node, NO_NODE, ExprId::NONE);
}

fn visit_return(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let FrameKind::Function(function) = walk.owner_frame().what else { return };
    if function == NO_NODE || is_annotated(walk, function) {
        return;
    }
    let value = match node.named_child(0) {
        Some(value) => walk.lower_expr(value),
        None => walk.add_expr(Expr::Null),
    };
    walk.add_result(function, value, start_byte(node));
}

fn visit_yield(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let FrameKind::Function(function) = walk.owner_frame().what else { return };
    let Some(noted) = walk.facts.nodes.get_mut(function as usize) else { return };
    noted.flags |= flag::GENERATOR;
    if noted.flags & flag::YIELDS_ONE != 0 && !is_annotated(walk, function) {
        let value = node.named_child(0).map_or(ExprId::NONE, |value| walk.lower_expr(value));
        walk.add_result(function, value, start_byte(node));
    }
}

/// Returns true if the function declares the type of its result.
fn is_annotated(walk: &TreeWalk<'_>, function: u32) -> bool {
    walk.facts.nodes.get(function as usize).is_some_and(|node| node.flags & flag::ANNOTATED != 0)
}
