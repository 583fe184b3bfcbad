//! `use` and `extern crate`.

use tree_sitter::Node as Syntax;

use crate::extract::Walk;

pub(super) fn extern_crate(walk: &mut Walk<'_>, node: Syntax<'_>) {
    walk.marks.clear();
    let Some(name) = walk.get(node, "name") else { return };
    let name = walk.text(name);
    let alias = walk.get(node, "alias").map_or(name, |alias| walk.text(alias));
    walk.import(&format!("::{name}"), "", alias, node, false);
}

pub(super) fn use_(walk: &mut Walk<'_>, node: Syntax<'_>) {
    walk.marks.clear();
    let Some(argument) = walk.get(node, "argument") else { return };
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
                let path = walk.get(part, "path").map_or_else(|| before.clone(), |path| join(walk.text(path)));
                if let Some(list) = walk.get(part, "list") {
                    todo.push((list, path));
                }
            }
            "use_list" => {
                let mut cursor = part.walk();
                todo.extend(part.named_children(&mut cursor).map(|child| (child, before.clone())));
            }
            "use_wildcard" => {
                let path = part.named_child(0).map_or_else(|| before.clone(), |path| join(walk.text(path)));
                walk.import(&path, "*", "", part, reexport);
            }
            "use_as_clause" => {
                if let (Some(path), Some(alias)) = (walk.get(part, "path"), walk.get(part, "alias")) {
                    let (path, alias) = (join(walk.text(path)), walk.text(alias));
                    used(walk, &path, alias, part, reexport);
                }
            }
            "identifier" | "scoped_identifier" | "self" | "crate" | "super" => {
                let path = join(walk.text(part));
                let path = path.strip_suffix("::self").unwrap_or(&path);
                let alias = path.rsplit("::").next().unwrap_or_default().to_owned();
                used(walk, path, &alias, part, reexport);
            }
            _ => {}
        }
    }
}

fn used(walk: &mut Walk<'_>, path: &str, alias: &str, at: Syntax<'_>, reexport: bool) {
    let path = path.strip_suffix("::self").unwrap_or(path);
    match path.rsplit_once("::") {
        Some((module, name)) if !module.is_empty() => walk.import(module, name, alias, at, reexport),
        _ => walk.import(path, "", alias, at, reexport),
    }
}
