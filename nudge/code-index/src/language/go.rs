//! Reads Go.

use tree_sitter::Node as Syntax;

use crate::extract::{FrameKind, NodeDraft, TreeWalk, end_byte, start_byte};
use crate::facts::{BindingTarget, Expr, ExprId, NO_NODE, NameId, NodeKind, flag};

use super::common::{call, note_node, open_block, read_doc};
use super::{LanguageSpec, SyntaxShape, Visit};

pub(super) const SPEC: LanguageSpec = LanguageSpec {
    parser: || tree_sitter_go::LANGUAGE.into(),
    visits: VISITS,
    shapes: SHAPES,
    branches: &["if_statement", "for_statement", "expression_case", "type_case", "communication_case"],
    comments: &["comment"],
    leaves: &[],
    heads: &["selector_expression"],
};

const VISITS: &[(&str, Visit)] = &[
    ("package_clause", visit_package),
    ("import_spec", visit_import),
    ("function_declaration", visit_function),
    ("method_declaration", visit_method),
    ("type_spec", type_),
    ("type_alias", type_),
    ("field_declaration", visit_field),
    ("method_elem", method_elem),
    ("var_spec", visit_variable),
    ("const_spec", visit_variable),
    ("short_var_declaration", visit_short_var),
    ("range_clause", visit_range),
    ("type_switch_statement", type_switch),
    ("func_literal", visit_literal),
    ("call_expression", call),
    ("block", open_block),
    ("if_statement", open_block),
    ("for_statement", open_block),
    ("expression_switch_statement", open_block),
    ("expression_case", open_block),
    ("type_case", open_block),
    ("default_case", open_block),
    ("communication_case", open_block),
];

const SHAPES: &[(&str, SyntaxShape)] = &[
    ("identifier", SyntaxShape::Name),
    ("type_identifier", SyntaxShape::Name),
    ("package_identifier", SyntaxShape::Name),
    ("field_identifier", SyntaxShape::Name),
    ("selector_expression", SyntaxShape::Member("operand", "field")),
    ("qualified_type", SyntaxShape::Member("package", "name")),
    ("call_expression", SyntaxShape::Call("function")),
    ("parenthesized_expression", SyntaxShape::Pass("")),
    ("unary_expression", SyntaxShape::Own(lower_unary)),
    ("slice_expression", SyntaxShape::Pass("operand")),
    ("composite_literal", SyntaxShape::Of("type")),
    ("type_assertion_expression", SyntaxShape::Of("type")),
    ("type_conversion_expression", SyntaxShape::Of("type")),
    ("index_expression", SyntaxShape::Item("operand")),
    ("pointer_type", SyntaxShape::Pass("")),
    ("generic_type", SyntaxShape::Apply("type", "type_arguments")),
    ("slice_type", SyntaxShape::Tuple("[]")),
    ("array_type", SyntaxShape::Literal("array")),
    ("map_type", SyntaxShape::Tuple("Map")),
    ("parameter_list", SyntaxShape::Own(lower_results)),
    ("type_elem", SyntaxShape::Pass("")),
    ("func_literal", SyntaxShape::Literal("func")),
    ("function_type", SyntaxShape::Literal("func")),
    ("channel_type", SyntaxShape::Tuple("chan")),
    ("interpreted_string_literal", SyntaxShape::Literal("string")),
    ("raw_string_literal", SyntaxShape::Literal("string")),
    ("int_literal", SyntaxShape::Literal("int")),
    ("nil", SyntaxShape::Null),
];

const DOCS: &[&str] = &["//", "/*"];

/// Lowers the results of a function to one value, or to a tuple.
fn lower_results(walk: &mut TreeWalk<'_>, node: Syntax<'_>) -> ExprId {
    let mut cursor = node.walk();
    let mut types: Vec<ExprId> = Vec::new();
    for parameter in node.named_children(&mut cursor).take(6) {
        let ty = walk.lower_field(parameter, "type");
        let mut names = parameter.walk();
        let many = parameter.children_by_field_name("name", &mut names).filter(Syntax::is_named).count();
        types.extend(std::iter::repeat_n(ty, many.max(1)));
    }
    let args = walk.add_args(&types);
    let unit = walk.add_literal("()");
    walk.add_expr(Expr::Apply(unit, args))
}

fn visit_package(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    if let Some(name) = node.named_child(0) {
        walk.facts.package = walk.name_of(name);
    }
}

fn visit_import(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let Some(path) = node.child_by_field_name("path") else { return };
    let path = walk.node_text(path).trim_matches(['"', '`']);
    // The name of a package is the last part of its path, or the part before a version.
    let mut parts = path.rsplit('/');
    let last = parts.next().unwrap_or(path);
    let version =
        last.strip_prefix('v').is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()));
    let last = if version { parts.next().unwrap_or(last) } else { last };
    let alias = node.child_by_field_name("name").map_or(last, |name| walk.node_text(name));
    match alias {
        "." => walk.add_import(path, "*", "", node, false),
        "_" => walk.add_import(path, "", "", node, false),
        alias => walk.add_import(path, "", alias, node, false),
    }
}

fn visit_function(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let Some(name) = node.child_by_field_name("name") else { return };
    let text = walk.node_text(name);
    let is_test = walk.path.ends_with("_test.go")
        && ["Test", "Benchmark", "Fuzz", "Example"].iter().any(|start| text.starts_with(start));
    let flags = if is_test { flag::TEST } else { 0 };
    let Some(number) = note_node(walk, node, name, NodeKind::Function, (text != "init" && text != "_", flags), DOCS)
    else {
        return;
    };
    open_function(walk, node, number);
}

fn visit_method(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let (Some(name), Some(receiver)) = (node.child_by_field_name("name"), node.child_by_field_name("receiver")) else {
        return;
    };
    let Some(param) = receiver.named_child(0) else { return };
    let owner = walk.lower_field(param, "type");
    let block = walk.impl_block(owner, ExprId::NONE, node);
    walk.open_frame(node, FrameKind::Impl(block));
    let Some(number) = note_node(walk, node, name, NodeKind::Method, (false, 0), DOCS) else { return };
    if let Some(this) = param.child_by_field_name("name") {
        let this = walk.name_of(this);
        let value = walk.add_expr(Expr::This);
        walk.add_binding(this, start_byte(node), end_byte(node), start_byte(node), BindingTarget::Value(value));
    }
    open_function(walk, node, number);
}

fn open_function(walk: &mut TreeWalk<'_>, node: Syntax<'_>, number: u32) {
    super::common::note_result(walk, node, number, "result");
    let names = bind_params(walk, node, number);
    walk.set_params(number, names);
    walk.open_frame(node, FrameKind::Function(number));
}

fn bind_params(walk: &mut TreeWalk<'_>, node: Syntax<'_>, number: u32) -> Vec<NameId> {
    let mut out = Vec::new();
    if let Some(list) = node.child_by_field_name("type_parameters") {
        let mut cursor = list.walk();
        for (param, place) in list.named_children(&mut cursor).zip(0..) {
            let bound = walk.lower_field(param, "type");
            let bounds = walk.add_args(&[bound]);
            if let Some(name) = param.child_by_field_name("name") {
                let name = walk.name_of(name);
                walk.add_binding(
                    name,
                    start_byte(node),
                    end_byte(node),
                    start_byte(node),
                    BindingTarget::TypeParam(bounds, place),
                );
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
            let value =
                if param.kind() == "parameter_declaration" { walk.add_value_of(ty) } else { walk.add_literal("[]") };
            let mut inner = param.walk();
            for name in param.children_by_field_name("name", &mut inner) {
                let name = walk.name_of(name);
                if field == "parameters" {
                    out.push(name);
                }
                walk.add_binding(
                    name,
                    start_byte(node),
                    end_byte(node),
                    start_byte(node),
                    BindingTarget::Param(value, number),
                );
            }
        }
    }
    out
}

/// Lowers unary operators. `<-c` takes an item from a channel. `*p` and `&x` count as values of the same type.
fn lower_unary(walk: &mut TreeWalk<'_>, node: Syntax<'_>) -> ExprId {
    let value = walk.lower_field(node, "operand");
    let takes = node.child_by_field_name("operator").is_some_and(|operator| walk.node_text(operator) == "<-");
    if takes && !value.is_none() { walk.add_expr(Expr::Item(value)) } else { value }
}

fn visit_literal(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    bind_params(walk, node, NO_NODE);
    walk.open_frame(node, FrameKind::Function(NO_NODE));
}

fn type_(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let (Some(name), Some(ty)) = (node.child_by_field_name("name"), node.child_by_field_name("type")) else { return };
    let kind = match ty.kind() {
        "struct_type" => NodeKind::Class,
        "interface_type" => NodeKind::Trait,
        // A `type` declaration makes a new type, which can have methods of its own.
        _ if node.kind() == "type_spec" => NodeKind::Class,
        _ => NodeKind::Type,
    };
    let name = walk.name_of(name);
    if name.is_none() {
        return;
    }
    let doc = read_doc(walk, node.parent().filter(|parent| parent.named_child_count() == 1).unwrap_or(node), DOCS);
    let number = walk.add_node(NodeDraft { kind, name, whole: node, body: Some(ty), flags: 0, doc, bare: true });
    if kind == NodeKind::Type {
        let lowered = walk.lower_expr(ty);
        let value = walk.add_value_of(lowered);
        walk.add_result(number, value, start_byte(node));
    }
    note_embedded(walk, ty, number);
    walk.open_frame(node, FrameKind::Class(number));
}

/// Notes the type that a struct or interface embeds. Methods of the embedded type become methods of the outer type.
fn note_embedded(walk: &mut TreeWalk<'_>, ty: Syntax<'_>, number: u32) {
    let list = if ty.kind() == "struct_type" { ty.named_child(0) } else { Some(ty) };
    let Some(list) = list.filter(|_| matches!(ty.kind(), "struct_type" | "interface_type")) else { return };
    let mut cursor = list.walk();
    let mut bases = Vec::new();
    for part in list.named_children(&mut cursor).take(200) {
        match part.kind() {
            "field_declaration" if part.child_by_field_name("name").is_none() => {
                bases.push(walk.lower_field(part, "type"));
            }
            "type_elem" => bases.push(walk.lower_expr(part)),
            _ => {}
        }
    }
    walk.set_bases(number, bases);
}

fn visit_field(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let FrameKind::Class(owner) = walk.owner_frame().what else { return };
    let ty = walk.lower_field(node, "type");
    let value = walk.add_value_of(ty);
    let mut cursor = node.walk();
    let mut names: Vec<NameId> = Vec::new();
    for name in node.children_by_field_name("name", &mut cursor) {
        names.push(walk.name_of(name));
    }
    if names.is_empty() {
        let last = walk.path_of(ty);
        names.push(walk.names.intern_made(&last));
    }
    for name in names {
        walk.add_field(owner, name, value, start_byte(node));
    }
}

fn method_elem(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let (Some(name), FrameKind::Class(_)) = (node.child_by_field_name("name"), walk.owner_frame().what) else { return };
    if let Some(number) = note_node(walk, node, name, NodeKind::Method, (false, 0), DOCS) {
        super::common::note_result(walk, node, number, "result");
    }
}

fn visit_variable(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let value = super::common::lower_typed(walk, node.child_by_field_name("type"), None);
    let values = node.child_by_field_name("value").map(|list| walk.lower_all(list));
    let mut cursor = node.walk();
    for (name, place) in node.children_by_field_name("name", &mut cursor).filter(tree_sitter::Node::is_named).zip(0..) {
        let value = match values {
            Some(values) if value.is_none() => pick_nth(walk, values, place),
            _ => value,
        };
        let name = walk.name_of(name);
        super::common::bind_value(walk, name, value, node);
    }
}

fn pick_nth(walk: &TreeWalk<'_>, list: ExprId, place: usize) -> ExprId {
    let mut current = list;
    for _ in 0..place {
        match walk.exprs.get(current) {
            Some(Expr::Args(_, next)) => current = next,
            _ => return ExprId::NONE,
        }
    }
    match walk.exprs.get(current) {
        Some(Expr::Args(value, _)) => value,
        _ => ExprId::NONE,
    }
}

/// Binds the names on the left side of `a, err := f()`.
fn visit_short_var(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let (Some(left), Some(right)) = (node.child_by_field_name("left"), node.child_by_field_name("right")) else {
        return;
    };
    let is_spread = right.named_child_count() == 1 && left.named_child_count() > 1;
    let values = walk.lower_all(right);
    let frame = walk.current_frame();
    let mut cursor = left.walk();
    for (name, place) in left.named_children(&mut cursor).zip(0_u32..) {
        // Here the second name gets a flag that says whether there is a value.
        let asks = matches!(
            right.named_child(0).map(|call| call.kind()),
            Some("type_assertion_expression" | "index_expression")
        );
        let value = if is_spread {
            let whole = pick_nth(walk, values, 0);
            if whole.is_none() || asks && place == 0 { whole } else { walk.add_expr(Expr::Part(whole, place.into())) }
        } else {
            pick_nth(walk, values, place as usize)
        };
        let name = walk.name_of(name);
        walk.add_binding(name, end_byte(node), frame.to, start_byte(node), BindingTarget::Value(value));
    }
}

fn visit_range(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let (Some(left), Some(right)) = (node.child_by_field_name("left"), node.child_by_field_name("right")) else {
        return;
    };
    let value = walk.lower_expr(right);
    let mut cursor = left.walk();
    for (name, place) in left.named_children(&mut cursor).zip(0..) {
        let value = match (place, value.is_none()) {
            (1, false) => walk.add_expr(Expr::Item(value)),
            _ => ExprId::NONE,
        };
        let name = walk.name_of(name);
        super::common::bind_value(walk, name, value, node);
    }
}

fn type_switch(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    if let Some(alias) = node.child_by_field_name("alias").and_then(|alias| alias.named_child(0)) {
        let name = walk.name_of(alias);
        super::common::bind_in(walk, name, ExprId::NONE, node);
        let mut cursor = node.walk();
        for case in node.named_children(&mut cursor).filter(|case| case.kind() == "type_case") {
            let mut types = case.walk();
            let types: Vec<Syntax<'_>> =
                case.children_by_field_name("type", &mut types).filter(Syntax::is_named).collect();
            if let [single] = types.as_slice() {
                let ty = walk.lower_expr(*single);
                let value = walk.add_value_of(ty);
                walk.add_binding(name, start_byte(case), end_byte(case), start_byte(case), BindingTarget::Value(value));
            }
        }
    }
}
