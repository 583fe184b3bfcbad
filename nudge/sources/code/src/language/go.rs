//! Go.

use tree_sitter::Node as Syntax;

use crate::extract::{Draft, Open, Walk, end, start};
use crate::facts::{Bound, Expr, ExprId, Kind, NO_NODE, Name, flag};

use super::common::{block, call, doc, note};
use super::{Shape, Spec, Visit};

pub(super) const SPEC: Spec = Spec {
    parser: || tree_sitter_go::LANGUAGE.into(),
    visits: VISITS,
    shapes: SHAPES,
    branches: &["if_statement", "for_statement", "expression_case", "type_case", "communication_case"],
    comments: &["comment"],
    leaves: &[],
    heads: &["selector_expression"],
};

const VISITS: &[(&str, Visit)] = &[
    ("package_clause", package),
    ("import_spec", import),
    ("function_declaration", function),
    ("method_declaration", method),
    ("type_spec", type_),
    ("type_alias", type_),
    ("field_declaration", field),
    ("method_elem", method_elem),
    ("var_spec", variable),
    ("const_spec", variable),
    ("short_var_declaration", short),
    ("range_clause", range),
    ("type_switch_statement", type_switch),
    ("func_literal", literal),
    ("call_expression", call),
    ("block", block),
    ("if_statement", block),
    ("for_statement", block),
    ("expression_switch_statement", block),
    ("expression_case", block),
    ("type_case", block),
    ("default_case", block),
    ("communication_case", block),
];

const SHAPES: &[(&str, Shape)] = &[
    ("identifier", Shape::Name),
    ("type_identifier", Shape::Name),
    ("package_identifier", Shape::Name),
    ("field_identifier", Shape::Name),
    ("selector_expression", Shape::Member("operand", "field")),
    ("qualified_type", Shape::Member("package", "name")),
    ("call_expression", Shape::Call("function")),
    ("parenthesized_expression", Shape::Pass("")),
    ("unary_expression", Shape::Own(unary)),
    ("slice_expression", Shape::Pass("operand")),
    ("composite_literal", Shape::Of("type")),
    ("type_assertion_expression", Shape::Of("type")),
    ("type_conversion_expression", Shape::Of("type")),
    ("index_expression", Shape::Item("operand")),
    ("pointer_type", Shape::Pass("")),
    ("generic_type", Shape::Apply("type", "type_arguments")),
    ("slice_type", Shape::Tuple("[]")),
    ("array_type", Shape::Literal("array")),
    ("map_type", Shape::Tuple("Map")),
    ("parameter_list", Shape::Own(results)),
    ("type_elem", Shape::Pass("")),
    ("func_literal", Shape::Literal("func")),
    ("function_type", Shape::Literal("func")),
    ("channel_type", Shape::Tuple("chan")),
    ("interpreted_string_literal", Shape::Literal("string")),
    ("raw_string_literal", Shape::Literal("string")),
    ("int_literal", Shape::Literal("int")),
    ("nil", Shape::Null),
];

const DOCS: &[&str] = &["//", "/*"];

/// The results of a function: one, or as many as it has.
fn results(walk: &mut Walk<'_>, node: Syntax<'_>) -> ExprId {
    let mut cursor = node.walk();
    let mut types: Vec<ExprId> = Vec::new();
    for one in node.named_children(&mut cursor).take(6) {
        let ty = walk.lower_field(one, "type");
        let mut names = one.walk();
        let many = one.children_by_field_name("name", &mut names).filter(Syntax::is_named).count();
        types.extend(std::iter::repeat_n(ty, many.max(1)));
    }
    let args = walk.args(&types);
    let of = walk.literal("()");
    walk.expr(Expr::Apply(of, args))
}

fn package(walk: &mut Walk<'_>, node: Syntax<'_>) {
    if let Some(name) = node.named_child(0) {
        walk.facts.package = walk.name_of(name);
    }
}

fn import(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let Some(path) = node.child_by_field_name("path") else { return };
    let path = walk.text(path).trim_matches(['"', '`']);
    // The folder's name, or the part before its version.
    let mut parts = path.rsplit('/');
    let last = parts.next().unwrap_or(path);
    let version =
        last.strip_prefix('v').is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()));
    let last = if version { parts.next().unwrap_or(last) } else { last };
    let alias = node.child_by_field_name("name").map_or(last, |name| walk.text(name));
    match alias {
        "." => walk.import(path, "*", "", node, false),
        "_" => walk.import(path, "", "", node, false),
        alias => walk.import(path, "", alias, node, false),
    }
}

fn function(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let Some(name) = node.child_by_field_name("name") else { return };
    let text = walk.text(name);
    let is_test = walk.path.ends_with("_test.go")
        && ["Test", "Benchmark", "Fuzz", "Example"].iter().any(|start| text.starts_with(start));
    let flags = if is_test { flag::TEST } else { 0 };
    let Some(number) = note(walk, node, name, Kind::Function, (text != "init" && text != "_", flags), DOCS) else {
        return;
    };
    inside(walk, node, number);
}

fn method(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let (Some(name), Some(receiver)) = (node.child_by_field_name("name"), node.child_by_field_name("receiver")) else {
        return;
    };
    let Some(param) = receiver.named_child(0) else { return };
    let of = walk.lower_field(param, "type");
    let block = walk.impl_block(of, ExprId::NONE, node);
    walk.open(node, Open::Impl(block));
    let Some(number) = note(walk, node, name, Kind::Method, (false, 0), DOCS) else { return };
    if let Some(this) = param.child_by_field_name("name") {
        let this = walk.name_of(this);
        let value = walk.expr(Expr::This);
        walk.bind(this, start(node), end(node), start(node), Bound::Value(value));
    }
    inside(walk, node, number);
}

fn inside(walk: &mut Walk<'_>, node: Syntax<'_>, number: u32) {
    super::common::gives(walk, node, number, "result");
    let names = params(walk, node, number);
    walk.set_params(number, names);
    walk.open(node, Open::Function(number));
}

fn params(walk: &mut Walk<'_>, node: Syntax<'_>, number: u32) -> Vec<Name> {
    let mut out = Vec::new();
    if let Some(list) = node.child_by_field_name("type_parameters") {
        let mut cursor = list.walk();
        for (param, place) in list.named_children(&mut cursor).zip(0..) {
            let bound = walk.lower_field(param, "type");
            let bounds = walk.args(&[bound]);
            if let Some(name) = param.child_by_field_name("name") {
                let name = walk.name_of(name);
                walk.bind(name, start(node), end(node), start(node), Bound::TypeParam(bounds, place));
            }
        }
    }
    for field in ["parameters", "result"] {
        let Some(list) = node.child_by_field_name(field).filter(|list| list.kind() == "parameter_list") else {
            continue;
        };
        let mut cursor = list.walk();
        for param in list.named_children(&mut cursor) {
            let ty = walk.lower_field(param, "type");
            let value = if param.kind() == "parameter_declaration" { walk.of(ty) } else { walk.literal("[]") };
            let mut inner = param.walk();
            for name in param.children_by_field_name("name", &mut inner) {
                let name = walk.name_of(name);
                if field == "parameters" {
                    out.push(name);
                }
                walk.bind(name, start(node), end(node), start(node), Bound::Param(value, number));
            }
        }
    }
    out
}

/// `<-c` takes from a channel; `*p` and `&x` are of the same type here.
fn unary(walk: &mut Walk<'_>, node: Syntax<'_>) -> ExprId {
    let value = walk.lower_field(node, "operand");
    let takes = node.child_by_field_name("operator").is_some_and(|operator| walk.text(operator) == "<-");
    if takes && !value.is_none() { walk.expr(Expr::Item(value)) } else { value }
}

fn literal(walk: &mut Walk<'_>, node: Syntax<'_>) {
    params(walk, node, NO_NODE);
    walk.open(node, Open::Function(NO_NODE));
}

fn type_(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let (Some(name), Some(ty)) = (node.child_by_field_name("name"), node.child_by_field_name("type")) else { return };
    let kind = match ty.kind() {
        "struct_type" => Kind::Class,
        "interface_type" => Kind::Trait,
        // A type of its own, with methods of its own.
        _ if node.kind() == "type_spec" => Kind::Class,
        _ => Kind::Type,
    };
    let name = walk.name_of(name);
    if name.is_none() {
        return;
    }
    let doc = doc(walk, node.parent().filter(|parent| parent.named_child_count() == 1).unwrap_or(node), DOCS);
    let number = walk.node(Draft { kind, name, whole: node, body: Some(ty), flags: 0, doc, bare: true });
    if kind == Kind::Type {
        let lowered = walk.lower(ty);
        let value = walk.of(lowered);
        walk.gives(number, value, start(node));
    }
    embedded(walk, ty, number);
    walk.open(node, Open::Class(number));
}

/// Notes the type that a struct or interface embeds: it gives its methods.
fn embedded(walk: &mut Walk<'_>, ty: Syntax<'_>, number: u32) {
    let list = if ty.kind() == "struct_type" { ty.named_child(0) } else { Some(ty) };
    let Some(list) = list.filter(|_| matches!(ty.kind(), "struct_type" | "interface_type")) else { return };
    let mut cursor = list.walk();
    let mut bases = Vec::new();
    for part in list.named_children(&mut cursor).take(200) {
        match part.kind() {
            "field_declaration" if part.child_by_field_name("name").is_none() => {
                bases.push(walk.lower_field(part, "type"));
            }
            "type_elem" => bases.push(walk.lower(part)),
            _ => {}
        }
    }
    walk.set_bases(number, bases);
}

fn field(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let Open::Class(owner) = walk.owner().what else { return };
    let ty = walk.lower_field(node, "type");
    let value = walk.of(ty);
    let mut cursor = node.walk();
    let mut names: Vec<Name> = Vec::new();
    for name in node.children_by_field_name("name", &mut cursor) {
        names.push(walk.name_of(name));
    }
    if names.is_empty() {
        let last = walk.path_of(ty);
        names.push(walk.names.made(&last));
    }
    for name in names {
        walk.field(owner, name, value, start(node));
    }
}

fn method_elem(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let (Some(name), Open::Class(_)) = (node.child_by_field_name("name"), walk.owner().what) else { return };
    if let Some(number) = note(walk, node, name, Kind::Method, (false, 0), DOCS) {
        super::common::gives(walk, node, number, "result");
    }
}

fn variable(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let value = super::common::typed(walk, node.child_by_field_name("type"), None);
    let values = node.child_by_field_name("value").map(|list| walk.lower_all(list));
    let mut cursor = node.walk();
    for (name, place) in node.children_by_field_name("name", &mut cursor).filter(tree_sitter::Node::is_named).zip(0..) {
        let value = match values {
            Some(values) if value.is_none() => nth(walk, values, place),
            _ => value,
        };
        let name = walk.name_of(name);
        super::common::bind(walk, name, value, node);
    }
}

fn nth(walk: &Walk<'_>, list: ExprId, place: usize) -> ExprId {
    let mut at = list;
    for _ in 0..place {
        match walk.exprs.get(at) {
            Some(Expr::Args(_, next)) => at = next,
            _ => return ExprId::NONE,
        }
    }
    match walk.exprs.get(at) {
        Some(Expr::Args(value, _)) => value,
        _ => ExprId::NONE,
    }
}

/// `a, err := f()`
fn short(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let (Some(left), Some(right)) = (node.child_by_field_name("left"), node.child_by_field_name("right")) else {
        return;
    };
    let one = right.named_child_count() == 1 && left.named_child_count() > 1;
    let values = walk.lower_all(right);
    let frame = walk.frame();
    let mut cursor = left.walk();
    for (name, place) in left.named_children(&mut cursor).zip(0_u32..) {
        // The second says whether there is one.
        let asks =
            matches!(right.named_child(0).map(|of| of.kind()), Some("type_assertion_expression" | "index_expression"));
        let value = if one {
            let whole = nth(walk, values, 0);
            if whole.is_none() || asks && place == 0 { whole } else { walk.expr(Expr::Part(whole, place.into())) }
        } else {
            nth(walk, values, place as usize)
        };
        let name = walk.name_of(name);
        walk.bind(name, end(node), frame.to, start(node), Bound::Value(value));
    }
}

fn range(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let (Some(left), Some(right)) = (node.child_by_field_name("left"), node.child_by_field_name("right")) else {
        return;
    };
    let value = walk.lower(right);
    let mut cursor = left.walk();
    for (name, place) in left.named_children(&mut cursor).zip(0..) {
        let value = match (place, value.is_none()) {
            (1, false) => walk.expr(Expr::Item(value)),
            _ => ExprId::NONE,
        };
        let name = walk.name_of(name);
        super::common::bind(walk, name, value, node);
    }
}

fn type_switch(walk: &mut Walk<'_>, node: Syntax<'_>) {
    if let Some(alias) = node.child_by_field_name("alias").and_then(|alias| alias.named_child(0)) {
        let name = walk.name_of(alias);
        super::common::bind_in(walk, name, ExprId::NONE, node);
        let mut cursor = node.walk();
        for case in node.named_children(&mut cursor).filter(|case| case.kind() == "type_case") {
            let mut types = case.walk();
            let types: Vec<Syntax<'_>> =
                case.children_by_field_name("type", &mut types).filter(Syntax::is_named).collect();
            if let [one] = types.as_slice() {
                let ty = walk.lower(*one);
                let value = walk.of(ty);
                walk.bind(name, start(case), end(case), start(case), Bound::Value(value));
            }
        }
    }
}
