//! Reads `use` and `extern crate`.

use tree_sitter::Node as Syntax;

use crate::extract::TreeWalk;

pub(super) fn extern_crate(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    walk.marks.clear();
    let Some(name) = walk.child_by_field(node, "name") else { return };
    let name = walk.node_text(name);
    let alias = walk.child_by_field(node, "alias").map_or(name, |alias| walk.node_text(alias));
    walk.add_import(&format!("::{name}"), "", alias, node, false);
}

pub(super) fn use_(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    walk.marks.clear();
    let Some(argument) = walk.child_by_field(node, "argument") else { return };
    let reexport = node.named_child(0).is_some_and(|first| first.kind() == "visibility_modifier");
    let mut todo = vec![(argument, String::new())];
    let mut steps = 0;
    while let Some((part, before)) = todo.pop() {
        steps += 1;
        if steps > 2_000 || before.len() > 500 {
            return;
        }
        let join = |path: &str| {
            let path: String = path.split_whitespace().collect();
            if before.is_empty() { path } else { format!("{before}::{path}") }
        };
        match part.kind() {
            "scoped_use_list" => {
                let path =
                    walk.child_by_field(part, "path").map_or_else(|| before.clone(), |path| join(walk.node_text(path)));
                if let Some(list) = walk.child_by_field(part, "list") {
                    todo.push((list, path));
                }
            }
            "use_list" => {
                let mut cursor = part.walk();
                todo.extend(part.named_children(&mut cursor).map(|child| (child, before.clone())));
            }
            "use_wildcard" => {
                let path = part.named_child(0).map_or_else(|| before.clone(), |path| join(walk.node_text(path)));
                walk.add_import(&path, "*", "", part, reexport);
            }
            "use_as_clause" => {
                if let (Some(path), Some(alias)) =
                    (walk.child_by_field(part, "path"), walk.child_by_field(part, "alias"))
                {
                    let (path, alias) = (join(walk.node_text(path)), walk.node_text(alias));
                    note_use(walk, &path, alias, part, reexport);
                }
            }
            "identifier" | "scoped_identifier" | "self" | "crate" | "super" => {
                let path = join(walk.node_text(part));
                let path = path.strip_suffix("::self").unwrap_or(&path);
                let alias = path.rsplit_once("::").map_or(path, |(_, name)| name).to_owned();
                note_use(walk, path, &alias, part, reexport);
            }
            _ => {}
        }
    }
}

fn note_use(walk: &mut TreeWalk<'_>, path: &str, alias: &str, site: Syntax<'_>, reexport: bool) {
    let path = path.strip_suffix("::self").unwrap_or(path);
    match path.rsplit_once("::") {
        Some((module, name)) if !module.is_empty() => walk.add_import(module, name, alias, site, reexport),
        _ => walk.add_import(path, "", alias, site, reexport),
    }
}
