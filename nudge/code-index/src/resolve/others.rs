//! Resolves names of Go, Java and C. In Go a package is a folder, in Java a class is a file, and in C a header declares
//! functions.

use crate::facts::{NodeKind, flag};
use crate::index::{ManifestFile, NodeId};
use crate::language::CodeLanguage;

use super::paths::{folder_of, join_path, normalize_path};
use super::{CallResolver, ExprValue, no_args};

/// Returns true if the folder `tests` has the tests of the folder `main` in the layout of Maven and Gradle. For
/// example, `x/src/test/java/a` has the tests of `x/src/main/java/a`.
fn is_tested_from(tests: &str, main: &str) -> bool {
    let parts = |folder: &str| {
        let start = if folder.starts_with("src/") { 0 } else { folder.find("/src/")? + 1 };
        let (set, rest) = folder.get(start + "src/".len()..)?.split_once('/')?;
        Some((folder.get(..start)?.to_owned(), set.to_owned(), rest.to_owned()))
    };
    match (parts(tests), parts(main)) {
        (Some((project, set, rest)), Some((main_project, main, below))) => {
            project == main_project && rest == below && main == "main" && set != "main"
        }
        _ => false,
    }
}

impl CallResolver<'_> {
    /// Resolves a name through the other files of the package, or through the headers that a file includes.
    pub(super) fn resolve_neighbour(&self, file: u32, name: &str) -> ExprValue {
        let Some(here) = self.store.file_at(file) else { return ExprValue::Unknown };
        let language = here.facts.language;
        let folder = folder_of(&here.path);
        let mut found: Vec<NodeId> = Vec::new();
        for (slot, node) in self.store.nodes_named(name) {
            let Some(other) = self.store.file_at(slot) else { continue };
            let Some(noted) = other.facts.nodes.get(node as usize) else { continue };
            let top = noted.owner == crate::facts::NodeOwner::File && noted.kind != NodeKind::Method;
            let near = match language {
                CodeLanguage::Go => {
                    folder_of(&other.path) == folder
                        && other.facts.text_of(other.facts.package) == here.facts.text_of(here.facts.package)
                }
                CodeLanguage::Java => {
                    folder_of(&other.path) == folder
                        || is_tested_from(folder, folder_of(&other.path))
                            && other.facts.text_of(other.facts.package) == here.facts.text_of(here.facts.package)
                }
                CodeLanguage::CSharp | CodeLanguage::Php => {
                    other.facts.text_of(other.facts.package) == here.facts.text_of(here.facts.package)
                }
                _ => false,
            };
            if top && near && other.facts.language == language {
                found.push(NodeId { file: slot, node });
            }
        }
        if matches!(language, CodeLanguage::C | CodeLanguage::Cpp) {
            return self.resolve_linked(file, name);
        }
        match found.as_slice() {
            [id] => ExprValue::Def(*id, no_args()),
            _ => ExprValue::Unknown,
        }
    }

    /// Resolves a C function. An included header must declare or define it, and exactly one file must define it.
    fn resolve_linked(&self, file: u32, name: &str) -> ExprValue {
        let declared = self.list_headers(file).into_iter().any(|header| {
            self.store.facts_at(header).is_some_and(|facts| {
                let name = facts.names.find(name);
                facts.nodes.iter().any(|node| Some(node.name) == name)
            })
        });
        if !declared {
            return ExprValue::Unknown;
        }
        let mut defined: Vec<NodeId> = Vec::new();
        for (slot, node) in self.store.nodes_named(name) {
            let Some(facts) = self.store.facts_at(slot) else { continue };
            let Some(noted) = facts.nodes.get(node as usize) else { continue };
            let c = matches!(facts.language, CodeLanguage::C | CodeLanguage::Cpp);
            if c && noted.flags & (flag::BODILESS | flag::STATIC) == 0 && noted.owner == crate::facts::NodeOwner::File {
                defined.push(NodeId { file: slot, node });
            }
        }
        match defined.as_slice() {
            [id] => ExprValue::Def(*id, no_args()),
            _ => ExprValue::Unknown,
        }
    }

    /// Lists the headers that a file includes, directly or through other headers.
    fn list_headers(&self, file: u32) -> Vec<u32> {
        let mut out: Vec<u32> = Vec::new();
        let mut todo = vec![file];
        while let Some(next) = todo.pop() {
            if out.len() > 64 {
                break;
            }
            let Some(facts) = self.store.facts_at(next) else { continue };
            for import in &facts.imports {
                if let Some(header) = self.find_include(next, facts.text_of(import.module))
                    && !out.contains(&header)
                {
                    out.push(header);
                    todo.push(header);
                }
            }
        }
        out
    }

    /// Finds the file that an `#include` means. It is beside the including file, or is the only file whose path ends in
    /// the same way.
    pub(super) fn find_include(&self, file: u32, path: &str) -> Option<u32> {
        let here = &self.store.file_at(file)?.path;
        if let Some(found) = normalize_path(folder_of(here), path).and_then(|path| self.store.slot_of(&path)) {
            return Some(found);
        }
        let end = format!("/{path}");
        let mut all = self.store.with_stem(crate::index::module_stem(path)).into_iter().filter(|slot| {
            self.store.file_at(*slot).is_some_and(|file| &*file.path == path || file.path.ends_with(&end))
        });
        let first = all.next()?;
        all.next().is_none().then_some(first)
    }

    /// Resolves a Go package by its path, which is the path of the module and a folder in it.
    pub(super) fn go_package(&self, file: u32, path: &str) -> Option<ExprValue> {
        let here = &self.store.file_at(file)?.path;
        let mut folder = folder_of(here);
        loop {
            if let Some(ManifestFile::Go(module)) = self.store.manifests.get(join_path(folder, "go.mod").as_str()) {
                let rest = path.strip_prefix(module.as_str())?;
                let below = if rest.is_empty() { "" } else { rest.strip_prefix('/')? };
                let target = if below.is_empty() { folder.to_owned() } else { join_path(folder, below) };
                return Some(ExprValue::Folder(target.as_str().into()));
            }
            if folder.is_empty() {
                return None;
            }
            folder = folder_of(folder);
        }
    }

    /// Finds a name in the folder of a Go package.
    pub(super) fn in_go_package(&self, folder: &str, name: &str) -> ExprValue {
        let mut found = self.store.nodes_named(name).into_iter().filter(|(slot, node)| {
            self.store.file_at(*slot).is_some_and(|file| {
                folder_of(&file.path) == folder
                    && file.facts.language == CodeLanguage::Go
                    && !file.path.ends_with("_test.go")
                    && file
                        .facts
                        .nodes
                        .get(*node as usize)
                        .is_some_and(|node| node.owner == crate::facts::NodeOwner::File)
            })
        });
        match (found.next(), found.next()) {
            (Some((file, node)), None) => ExprValue::Def(NodeId { file, node }, no_args()),
            _ => ExprValue::Unknown,
        }
    }

    /// Finds a class by its full name, for languages whose files state their package.
    pub(super) fn class_of_package(&self, language: CodeLanguage, path: &str) -> Option<ExprValue> {
        let (package, class) = path.rsplit_once('.')?;
        let mut found = self.store.nodes_named(class).into_iter().filter(|(slot, node)| {
            self.store.facts_at(*slot).is_some_and(|facts| {
                facts.language == language
                    && facts.text_of(facts.package) == package
                    && facts.nodes.get(*node as usize).is_some_and(|node| node.owner == crate::facts::NodeOwner::File)
            })
        });
        match (found.next(), found.next()) {
            (Some((file, node)), None) => Some(ExprValue::Def(NodeId { file, node }, no_args())),
            _ => None,
        }
    }
}
