//! Imports and exports.

use tree_sitter::Node as Syntax;

use crate::extract::{Walk, end};
use crate::facts::flag;

fn unquoted<'a>(walk: &Walk<'a>, node: Syntax<'_>) -> &'a str {
    walk.text(node).trim_matches(['"', '\'', '`'])
}

pub(super) fn import(walk: &mut Walk<'_>, node: Syntax<'_>) {
    walk.skip = true;
    let Some(source) = walk.get(node, "source") else {
        let mut cursor = node.walk();
        let clause = node.named_children(&mut cursor).find(|child| child.kind() == "import_require_clause");
        if let Some(clause) = clause
            && let (Some(name), Some(source)) = (clause.named_child(0), walk.get(clause, "source"))
        {
            walk.import(unquoted(walk, source), "", walk.text(name), node, false);
        }
        return;
    };
    let module = unquoted(walk, source);
    let mut cursor = node.walk();
    let Some(clause) = node.named_children(&mut cursor).find(|child| child.kind() == "import_clause") else {
        walk.import(module, "", "", node, false);
        return;
    };
    let mut cursor = clause.walk();
    for part in clause.named_children(&mut cursor) {
        match part.kind() {
            "identifier" => walk.import(module, "default", walk.text(part), node, false),
            "namespace_import" => {
                if let Some(name) = part.named_child(0) {
                    walk.import(module, "", walk.text(name), node, false);
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

fn specifier_of(walk: &mut Walk<'_>, specifier: Syntax<'_>, module: &str, at: Syntax<'_>, reexport: bool) {
    let Some(name) = walk.get(specifier, "name") else { return };
    let name = unquoted(walk, name);
    let alias = walk.get(specifier, "alias").map_or(name, |alias| unquoted(walk, alias));
    if reexport {
        passed_on(walk, module, name, alias, at);
    } else {
        walk.import(module, name, alias, at, false);
    }
}

/// A re-exported name is no name of the file itself.
fn passed_on(walk: &mut Walk<'_>, module: &str, name: &str, alias: &str, at: Syntax<'_>) {
    walk.import(module, name, alias, at, true);
    // The import that was just noted is for those that import this file.
    walk.facts.bindings.pop_if(|binding| matches!(binding.bound, crate::facts::Bound::Import(_)) && !alias.is_empty());
}

pub(super) fn export(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let mut cursor = node.walk();
    let default = node.children(&mut cursor).take(3).any(|child| child.kind() == "default");
    let flags = if default { flag::DEFAULT } else { 0 };
    walk.exported = (flags, node.start_position().row, end(node));
    let source = walk.get(node, "source");
    let module = source.map_or("", |source| unquoted(walk, source));
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
                    let alias = unquoted(walk, name);
                    passed_on(walk, module, "", alias, node);
                }
            }
            "identifier" if default => passed_on(walk, "", walk.text(part), "default", node),
            _ => {}
        }
    }
    if source.is_some() && !any {
        walk.import(module, "*", "", node, true);
    }
    if source.is_some() || any {
        walk.exported = (0, 0, 0);
        walk.skip = true;
    }
}

/// The module of `require("..")`.
pub(super) fn required<'a>(walk: &Walk<'a>, value: Syntax<'_>) -> Option<&'a str> {
    if value.kind() != "call_expression" || walk.text(walk.get(value, "function")?) != "require" {
        return None;
    }
    let source = walk.get(value, "arguments")?.named_child(0)?;
    (source.kind() == "string").then(|| unquoted(walk, source))
}

/// `const { a, b: c } = require("..")`
pub(super) fn destructured(walk: &mut Walk<'_>, pattern: Syntax<'_>, module: &str, at: Syntax<'_>) {
    let mut cursor = pattern.walk();
    for part in pattern.named_children(&mut cursor) {
        match part.kind() {
            "shorthand_property_identifier_pattern" => {
                let name = walk.text(part);
                walk.import(module, name, name, at, false);
            }
            "pair_pattern" => {
                if let (Some(key), Some(value)) = (walk.get(part, "key"), walk.get(part, "value"))
                    && value.kind() == "identifier"
                {
                    walk.import(module, walk.text(key), walk.text(value), at, false);
                }
            }
            _ => {}
        }
    }
}
