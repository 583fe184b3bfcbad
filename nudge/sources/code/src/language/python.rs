//! Python.

mod bind;

use tree_sitter::Node as Syntax;

use crate::doc::Param;
use crate::extract::{Draft, Open, Walk, end, start};
use crate::facts::{Bound, Expr, ExprId, Kind, NO_NODE, Name, Number, flag};

use super::{Shape, Spec, Visit};

pub(super) const SPEC: Spec = Spec {
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
    ("decorated_definition", decorated),
    ("function_definition", function),
    ("class_definition", class),
    ("assignment", bind::assignment),
    ("augmented_assignment", bind::augmented),
    ("named_expression", bind::walrus),
    ("global_statement", bind::global),
    ("nonlocal_statement", bind::nonlocal),
    ("type_alias_statement", bind::type_alias),
    ("import_statement", import),
    ("import_from_statement", import),
    ("call", call),
    ("decorator", decorator),
    ("for_statement", bind::loop_),
    ("while_statement", bind::again),
    ("for_in_clause", bind::comprehension),
    ("block", bind::block),
    ("list_comprehension", block),
    ("set_comprehension", block),
    ("dictionary_comprehension", block),
    ("generator_expression", block),
    ("lambda", lambda),
    ("with_item", bind::with_item),
    ("except_clause", bind::except),
    ("if_statement", bind::narrowed),
    ("case_pattern", bind::case_pattern),
    ("return_statement", returned),
    ("yield", yielded),
    ("string", formatted),
];

const SHAPES: &[(&str, Shape)] = &[
    ("identifier", Shape::Name),
    ("attribute", Shape::Member("object", "attribute")),
    ("call", Shape::CallOr("function", call_value)),
    ("await", Shape::Inner("")),
    ("parenthesized_expression", Shape::Pass("")),
    ("type", Shape::Pass("")),
    ("generic_type", Shape::Own(generic)),
    ("subscript", Shape::Own(subscript)),
    ("union_type", Shape::Own(union)),
    ("binary_operator", Shape::Own(union)),
    ("conditional_expression", Shape::Own(conditional)),
    ("boolean_operator", Shape::Own(or)),
    ("named_expression", Shape::Pass("value")),
    ("none", Shape::Null),
    ("string", Shape::Own(string)),
    ("concatenated_string", Shape::Literal("str")),
    ("integer", Shape::Literal("int")),
    ("float", Shape::Literal("float")),
    ("true", Shape::Literal("bool")),
    ("false", Shape::Literal("bool")),
    ("list", Shape::Literal("list")),
    ("list_comprehension", Shape::Literal("list")),
    ("dictionary", Shape::Literal("dict")),
    ("dictionary_comprehension", Shape::Literal("dict")),
    ("set", Shape::Literal("set")),
    ("generator_expression", Shape::Literal("generator")),
    ("comparison_operator", Shape::Literal("bool")),
    ("not_operator", Shape::Literal("bool")),
    ("lambda", Shape::Literal("function")),
    ("ellipsis", Shape::Literal("ellipsis")),
    ("tuple", Shape::Tuple("tuple")),
];

/// Lowers calls with a special meaning: `super()`, and `cast(T, x)`, which is a `T`.
fn call_value(walk: &mut Walk<'_>, node: Syntax<'_>) -> ExprId {
    let Some(function) = walk.get(node, "function") else { return ExprId::NONE };
    if function.kind() == "identifier" {
        match walk.text(function) {
            "super" => return walk.expr(Expr::Super),
            "cast" => {
                let ty = walk.get(node, "arguments").and_then(|args| args.named_child(0));
                let ty = ty.map_or(ExprId::NONE, |ty| annotation(walk, ty));
                return walk.of(ty);
            }
            _ => {}
        }
    }
    if function.kind() == "attribute"
        && walk.get(function, "attribute").is_some_and(|name| walk.text(name) == "cast")
        && let Some(ty) = walk.get(node, "arguments").and_then(|args| args.named_child(0))
    {
        let ty = annotation(walk, ty);
        return walk.of(ty);
    }
    ExprId::NONE
}

fn generic(walk: &mut Walk<'_>, node: Syntax<'_>) -> ExprId {
    let Some(of) = node.named_child(0) else { return ExprId::NONE };
    let of = walk.lower(of);
    let args = node.named_child(1).map_or(ExprId::NONE, |args| walk.lower_all(args));
    walk.expr(Expr::Apply(of, args))
}

/// Lowers `x[..]`: a type with arguments, or an item of a value. Only its use tells which, so both are the same here.
fn subscript(walk: &mut Walk<'_>, node: Syntax<'_>) -> ExprId {
    let of = walk.lower_field(node, "value");
    if of.is_none() {
        return of;
    }
    let mut cursor = node.walk();
    if node.children_by_field_name("subscript", &mut cursor).any(|arg| arg.kind() == "slice") {
        return walk.expr(Expr::Slice(of));
    }
    let args: Vec<ExprId> =
        node.children_by_field_name("subscript", &mut cursor).take(4).map(|arg| walk.lower(arg)).collect();
    let args = walk.args(&args);
    walk.expr(Expr::Apply(of, args))
}

fn union(walk: &mut Walk<'_>, node: Syntax<'_>) -> ExprId {
    if node.kind() == "binary_operator" && walk.get(node, "operator").is_none_or(|operator| walk.text(operator) != "|")
    {
        return ExprId::NONE;
    }
    let (Some(left), Some(right)) = (node.named_child(0), node.named_child(1)) else { return ExprId::NONE };
    let (left, right) = (walk.lower(left), walk.lower(right));
    walk.either(left, right)
}

fn conditional(walk: &mut Walk<'_>, node: Syntax<'_>) -> ExprId {
    let (Some(left), Some(right)) = (node.named_child(0), node.named_child(2)) else { return ExprId::NONE };
    let (left, right) = (walk.lower(left), walk.lower(right));
    walk.either(left, right)
}

fn or(walk: &mut Walk<'_>, node: Syntax<'_>) -> ExprId {
    let and = walk.get(node, "operator").is_some_and(|operator| walk.text(operator) == "and");
    let (left, right) = (walk.lower_field(node, "left"), walk.lower_field(node, "right"));
    if and { right } else { walk.either(left, right) }
}

/// A string is a type where a type is expected: `"Flask"`, `t.Optional["Flask"]`, `"Flask | None"`.
fn string(walk: &mut Walk<'_>, node: Syntax<'_>) -> ExprId {
    let text = walk.text(node).trim_matches(['"', '\'']);
    let types = |text: &str| text.split(['|', '.']).all(|part| is_name(part.trim()));
    if text.len() > 100 || !text.contains(char::is_uppercase) || !types(text) {
        return walk.literal("str");
    }
    let mut out = ExprId::NONE;
    for path in text.split('|').map(str::trim) {
        let mut parts = path.split('.');
        let first = walk.names.made(parts.next().unwrap_or_default());
        let mut one = walk.expr(if path == "None" { Expr::Null } else { Expr::Name(first) });
        for part in parts {
            let name = walk.names.made(part);
            one = walk.expr(Expr::Member(one, name));
        }
        out = if out.is_none() { one } else { walk.either(out, one) };
    }
    // As a value it is a string.
    walk.expr(Expr::Part(out, QUOTED))
}

/// The name under which an assigned member of something is bound.
pub(crate) fn member(of: &str, name: &str) -> String {
    format!("{of}.{name}")
}

/// The number of the part that marks a type in quotes.
pub(crate) const QUOTED: Number = Number::NONE;

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.chars().all(|c| c == '_' || c.is_alphanumeric())
        && !text.starts_with(|c: char| c.is_numeric())
}

fn annotation(walk: &mut Walk<'_>, node: Syntax<'_>) -> ExprId {
    walk.lower(node)
}

fn block(walk: &mut Walk<'_>, node: Syntax<'_>) {
    walk.open(node, Open::Block);
}

fn decorated(walk: &mut Walk<'_>, node: Syntax<'_>) {
    walk.marked_from = Some(start(node));
    walk.marks.clear();
    let mut cursor = node.walk();
    for child in node.named_children(&mut cursor) {
        if child.kind() == "decorator" {
            let text = walk.text(child);
            walk.marks.push(text);
        }
    }
}

/// Only a string that is formatted holds code.
fn formatted(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let prefix = walk.text(node).split(['"', '\'']).next().unwrap_or_default();
    walk.skip = !prefix.contains(['f', 'F', 't', 'T']);
}

/// Returns the flags that decorators set.
fn flags(marks: &[&str]) -> u16 {
    let mut flags = 0;
    for mark in marks {
        let path = mark.trim_start_matches('@').split('(').next().unwrap_or_default().trim();
        let last = path.rsplit('.').next().unwrap_or_default();
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

fn function(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let (Some(name), Some(body)) = (walk.get(node, "name"), walk.get(node, "body")) else { return };
    let method = matches!(walk.owner().what, Open::Class(_));
    let name = walk.name_of(name);
    if name.is_none() {
        return;
    }
    let text = walk.names.get(name);
    let text_is_new = text == "__new__";
    let mut flags = flags(&walk.marks);
    if walk.get(node, "return_type").is_some() {
        flags |= flag::ANNOTATED;
    }
    if text.starts_with("test") && flags & flag::FIXTURE == 0 && crate::extract::is_test_path(walk.path) {
        flags |= flag::TEST;
    }
    if node.child(0).is_some_and(|first| first.kind() == "async") {
        flags |= flag::ASYNC;
    }
    let draft = Draft {
        kind: if method { Kind::Method } else { Kind::Function },
        name,
        whole: node,
        body: Some(body),
        flags,
        doc: doc(walk, body),
        bare: false,
    };
    let of_class = walk.marks.iter().any(|mark| mark.trim_end() == "@classmethod") || text_is_new;
    let first = match (method && flags & flag::STATIC == 0, of_class) {
        (false, _) => ExprId::NONE,
        (true, true) => walk.expr(Expr::SelfType),
        (true, false) => walk.expr(Expr::This),
    };
    let returns = walk.get(node, "return_type").map_or(ExprId::NONE, |ty| annotation(walk, ty));
    let number = walk.node(draft);
    bind::definition(walk, name, node, number);
    if !returns.is_none() {
        let value = walk.of(returns);
        walk.gives(number, value, start(node));
    }
    let names = params(walk, node, number, first);
    walk.set_params(number, names);
    documented(walk, node, number);
    walk.open(node, Open::Function(number));
}

/// Holds the docstring against the signature.
fn documented(walk: &mut Walk<'_>, node: Syntax<'_>, number: u32) {
    let Some(list) = walk.get(node, "parameters") else { return };
    let mut params = Vec::new();
    let mut open = false;
    let mut cursor = list.walk();
    for param in list.named_children(&mut cursor) {
        let splat = if param.kind() == "typed_parameter" { param.named_child(0).unwrap_or(param) } else { param };
        match splat.kind() {
            // `*` and `/` are no parameters.
            "comment" | "keyword_separator" | "positional_separator" => continue,
            "dictionary_splat_pattern" => open = true,
            _ => {}
        }
        let is_rest = splat.kind().ends_with("splat_pattern");
        let name = walk.get(param, "name").or_else(|| param.named_child(0).filter(|_| !is_rest)).unwrap_or(splat);
        let default = walk.get(param, "value").map(|value| walk.text(value));
        params.push(Param { name: walk.text(name), default });
    }
    let returns = walk.get(node, "return_type").map_or("", |ty| walk.text(ty));
    walk.check_doc(number, &params, open, returns == "None");
}

/// Binds the parameters, and says their names.
fn params(walk: &mut Walk<'_>, node: Syntax<'_>, number: u32, first: ExprId) -> Vec<Name> {
    let Some(list) = walk.get(node, "parameters") else { return Vec::new() };
    let (from, to) = (start(node), end(node));
    let mut names = Vec::new();
    let mut cursor = list.walk();
    for (param, place) in list.named_children(&mut cursor).zip(0..) {
        let name = match param.kind() {
            "identifier" => Some(param),
            "default_parameter" | "typed_default_parameter" => walk.get(param, "name"),
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
        let ty = walk.get(param, "type").map_or(ExprId::NONE, |ty| annotation(walk, ty));
        let bound = if place == 0 && !first.is_none() {
            Bound::Value(first)
        } else if splat {
            Bound::Value(ExprId::NONE)
        } else {
            let value = walk.of(ty);
            Bound::Param(value, number)
        };
        walk.bind(name, from, to, from, bound);
    }
    names
}

fn doc(walk: &Walk<'_>, body: Syntax<'_>) -> Option<String> {
    let first = walk.child(body, "")?;
    let string = if first.kind() == "expression_statement" { first.named_child(0)? } else { first };
    if string.kind() != "string" {
        return None;
    }
    let text = walk.text(string).trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let text = text.trim_matches(['"', '\'']);
    crate::extract::text::doc(&crate::doc::dedent(text))
}

fn class(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let (Some(name), Some(body)) = (walk.get(node, "name"), walk.get(node, "body")) else { return };
    let name = walk.name_of(name);
    if name.is_none() {
        return;
    }
    let mut bases = Vec::new();
    if let Some(list) = walk.get(node, "superclasses") {
        let mut cursor = list.walk();
        for base in list.named_children(&mut cursor).take(16) {
            if base.kind() != "keyword_argument" {
                bases.push(walk.lower(base));
            }
        }
    }
    let test = walk.names.get(name).starts_with("Test") && crate::extract::is_test_path(walk.path);
    let draft = Draft {
        kind: Kind::Class,
        name,
        whole: node,
        body: Some(body),
        flags: if test { flag::TEST } else { 0 },
        doc: doc(walk, body),
        bare: false,
    };
    let number = walk.node(draft);
    bind::definition(walk, name, node, number);
    walk.set_bases(number, bases);
    walk.open(node, Open::Class(number));
}

fn import(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let module = walk.get(node, "module_name").map(|module| walk.text(module));
    let mut cursor = node.walk();
    let names: Vec<Syntax<'_>> = node.children_by_field_name("name", &mut cursor).collect();
    if let Some(module) = module {
        let mut cursor = node.walk();
        if node.named_children(&mut cursor).any(|child| child.kind() == "wildcard_import") {
            walk.import(module, "*", "", node, true);
        }
    }
    for name in names {
        let (name, alias) = match (walk.get(name, "name"), walk.get(name, "alias")) {
            (Some(name), Some(alias)) => (walk.text(name), Some(walk.text(alias))),
            _ => (walk.text(name), None),
        };
        match (module, alias) {
            (Some(module), alias) => walk.import(module, name, alias.unwrap_or(name), node, true),
            (None, Some(alias)) => walk.import(name, "", alias, node, true),
            // `import a.b` binds `a`; names behind it are found by the paths of modules.
            (None, None) => walk.import(name, "", name.split('.').next().unwrap_or(name), node, true),
        }
        bind::imported(walk, node);
    }
}

fn call(walk: &mut Walk<'_>, node: Syntax<'_>) {
    if let Some(function) = walk.get(node, "function") {
        walk.call_of(function, false);
        // `fixture(..)` with a function as value is read where that is defined.
    }
}

fn decorator(walk: &mut Walk<'_>, node: Syntax<'_>) {
    if let Some(function) = node.named_child(0)
        && function.kind() != "call"
    {
        walk.call_of(function, false);
    }
}

fn lambda(walk: &mut Walk<'_>, node: Syntax<'_>) {
    walk.open(node, Open::Function(NO_NODE));
    params(walk, node, NO_NODE, ExprId::NONE);
}

fn returned(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let Open::Function(function) = walk.owner().what else { return };
    if function == NO_NODE || annotated(walk, function) {
        return;
    }
    let value = match node.named_child(0) {
        Some(value) => walk.lower(value),
        None => walk.expr(Expr::Null),
    };
    walk.gives(function, value, start(node));
}

fn yielded(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let Open::Function(function) = walk.owner().what else { return };
    let Some(noted) = walk.facts.nodes.get_mut(function as usize) else { return };
    noted.flags |= flag::GENERATOR;
    if noted.flags & flag::YIELDS_ONE != 0 && !annotated(walk, function) {
        let value = node.named_child(0).map_or(ExprId::NONE, |value| walk.lower(value));
        walk.gives(function, value, start(node));
    }
}

/// Returns true if the function declares the type of its result.
fn annotated(walk: &Walk<'_>, function: u32) -> bool {
    walk.facts.nodes.get(function as usize).is_some_and(|node| node.flags & flag::ANNOTATED != 0)
}
