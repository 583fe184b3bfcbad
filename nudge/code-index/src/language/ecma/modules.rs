//! Reads imports and exports of JavaScript and TypeScript.

use tree_sitter::Node as Syntax;

use crate::extract::{TreeWalk, end_byte};
use crate::facts::flag;

fn strip_quotes<'a>(walk: &TreeWalk<'a>, node: Syntax<'_>) -> &'a str {
    walk.node_text(node).trim_matches(['"', '\'', '`'])
}

pub(super) fn visit_import(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    walk.skip = true;
    let Some(source) = walk.child_by_field(node, "source") else {
        let mut cursor = node.walk();
        let clause = node.named_children(&mut cursor).find(|child| child.kind() == "import_require_clause");
        if let Some(clause) = clause
            && let (Some(name), Some(source)) = (clause.named_child(0), walk.child_by_field(clause, "source"))
        {
            walk.add_import(strip_quotes(walk, source), "", walk.node_text(name), node, false);
        }
        return;
    };
    let module = strip_quotes(walk, source);
    let mut cursor = node.walk();
    let Some(clause) = node.named_children(&mut cursor).find(|child| child.kind() == "import_clause") else {
        walk.add_import(module, "", "", node, false);
        return;
    };
    let mut cursor = clause.walk();
    for part in clause.named_children(&mut cursor) {
        match part.kind() {
            "identifier" => walk.add_import(module, "default", walk.node_text(part), node, false),
            "namespace_import" => {
                if let Some(name) = part.named_child(0) {
                    walk.add_import(module, "", walk.node_text(name), node, false);
                }
            }
            "named_imports" => {
                let mut inner = part.walk();
                for specifier in part.named_children(&mut inner).filter(|part| part.kind() == "import_specifier") {
                    specifier_of(walk, specifier, module, node, false);
                }
            }
            _ => {}
        }
    }
}

fn specifier_of(walk: &mut TreeWalk<'_>, specifier: Syntax<'_>, module: &str, statement: Syntax<'_>, reexport: bool) {
    let Some(name) = walk.child_by_field(specifier, "name") else { return };
    let name = strip_quotes(walk, name);
    let alias = walk.child_by_field(specifier, "alias").map_or(name, |alias| strip_quotes(walk, alias));
    if reexport {
        passed_on(walk, module, name, alias, statement);
    } else {
        walk.add_import(module, name, alias, statement, false);
    }
}

/// Notes a re-export. It binds no name in this file.
fn passed_on(walk: &mut TreeWalk<'_>, module: &str, name: &str, alias: &str, statement: Syntax<'_>) {
    walk.add_import(module, name, alias, statement, true);
    // Removes the binding that `add_import` has made, because only files that import this one see the name.
    walk.facts
        .bindings
        .pop_if(|binding| matches!(binding.bound, crate::facts::BindingTarget::Import(_)) && !alias.is_empty());
}

pub(super) fn visit_export(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let mut cursor = node.walk();
    let default = node.children(&mut cursor).take(3).any(|child| child.kind() == "default");
    let flags = if default { flag::DEFAULT } else { 0 };
    walk.exported = (flags, node.start_position().row, end_byte(node));
    let source = walk.child_by_field(node, "source");
    let module = source.map_or("", |source| strip_quotes(walk, source));
    let mut cursor = node.walk();
    let mut any = false;
    for part in node.named_children(&mut cursor) {
        match part.kind() {
            "export_clause" => {
                any = true;
                let mut inner = part.walk();
                for specifier in part.named_children(&mut inner).filter(|part| part.kind() == "export_specifier") {
                    specifier_of(walk, specifier, module, node, true);
                }
            }
            "namespace_export" => {
                any = true;
                if let Some(name) = part.named_child(0) {
                    let alias = strip_quotes(walk, name);
                    passed_on(walk, module, "", alias, node);
                }
            }
            "identifier" if default => passed_on(walk, "", walk.node_text(part), "default", node),
            _ => {}
        }
    }
    if source.is_some() && !any {
        walk.add_import(module, "*", "", node, true);
    }
    if source.is_some() || any {
        walk.exported = (0, 0, 0);
        walk.skip = true;
    }
}

/// Returns the module name in `require("..")`; `None` for any other expression.
pub(super) fn find_require<'a>(walk: &TreeWalk<'a>, value: Syntax<'_>) -> Option<&'a str> {
    if value.kind() != "call_expression" || walk.node_text(walk.child_by_field(value, "function")?) != "require" {
        return None;
    }
    let source = walk.child_by_field(value, "arguments")?.named_child(0)?;
    (source.kind() == "string").then(|| strip_quotes(walk, source))
}

/// Handles imports by a pattern: `const { a, b: c } = require("..")`.
pub(super) fn import_destructured(walk: &mut TreeWalk<'_>, pattern: Syntax<'_>, module: &str, statement: Syntax<'_>) {
    let mut cursor = pattern.walk();
    for part in pattern.named_children(&mut cursor) {
        match part.kind() {
            "shorthand_property_identifier_pattern" => {
                let name = walk.node_text(part);
                walk.add_import(module, name, name, statement, false);
            }
            "pair_pattern" => {
                if let (Some(key), Some(value)) = (walk.child_by_field(part, "key"), walk.child_by_field(part, "value"))
                    && value.kind() == "identifier"
                {
                    walk.add_import(module, walk.node_text(key), walk.node_text(value), statement, false);
                }
            }
            _ => {}
        }
    }
}
