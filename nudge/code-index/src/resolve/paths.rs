//! Finds the files of Python and ECMAScript modules.

use crate::index::{ManifestFile, module_stem};

use super::{CallResolver, ExprPlace, ExprValue, NameSpace};

/// Largest number of TypeScript configurations in a chain in which each extends the next.
const EXTENDS_MAX: u32 = 5;
/// The files that an import with an extension may mean, in TypeScript's order. For example, `./x.js` means `x.ts` if
/// that exists.
const WRITTEN: &[(&str, &[&str])] = &[
    (".d.ts", &[".ts", ".tsx", ".d.ts"]),
    (".d.mts", &[".mts", ".d.mts"]),
    (".d.cts", &[".cts", ".d.cts"]),
    (".js", &[".ts", ".tsx", ".d.ts", ".js", ".jsx"]),
    (".mjs", &[".mts", ".d.mts", ".mjs"]),
    (".cjs", &[".cts", ".d.cts", ".cjs"]),
    (".jsx", &[".tsx", ".d.ts", ".jsx"]),
    (".ts", &[".ts"]),
    (".tsx", &[".tsx"]),
    (".mts", &[".mts"]),
    (".cts", &[".cts"]),
];
/// The suffixes of files that an import without an extension may mean.
#[rustfmt::skip]
const UNWRITTEN: &[&str] = &[
    ".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs", ".d.ts", "/index.ts", "/index.tsx", "/index.mts",
    "/index.js", "/index.jsx", "/index.d.ts",
];

impl CallResolver<'_> {
    /// Resolves the dotted name of a Python module, as code in a file uses it.
    pub(super) fn python_import(&self, file: u32, module: &str) -> Option<ExprValue> {
        let here = &self.store.file_at(file)?.path;
        let dots = module.len() - module.trim_start_matches('.').len();
        let path = module.trim_start_matches('.').replace('.', "/");
        if dots > 0 {
            let mut folder = folder_of(here);
            for _ in 1..dots {
                if folder.is_empty() {
                    return None;
                }
                folder = folder_of(folder);
            }
            return self.python_module(join_path(folder, &path).trim_end_matches('/'));
        }
        // Searches from the folder of the file upwards, through folders that are not packages. Then searches all
        // package roots.
        let first = path.split_once('/').map_or(&*path, |(first, _)| first);
        let mut roots: Vec<&str> = Vec::new();
        for slot in self.store.with_stem(first) {
            let Some(other) = self.store.file_at(slot) else { continue };
            let folder = folder_of(&other.path);
            let package = other.path.ends_with("/__init__.py") || other.path.ends_with("/__init__.pyi");
            roots.push(if package { folder_of(folder) } else { folder });
        }
        roots.sort_unstable();
        roots.dedup();
        roots.retain(|root| !self.is_package(root));
        // The nearest root takes precedence.
        roots.sort_by_key(|root| std::cmp::Reverse((count_shared(here, root), usize::MAX - root.len())));
        let found = roots.iter().find_map(|root| self.python_module(&join_path(root, &path)));
        // If no root has the module, searches from the top through folders without `__init__.py`.
        found.or_else(|| self.python_module(&path))
    }

    fn is_package(&self, folder: &str) -> bool {
        !folder.is_empty()
            && ["__init__.py", "__init__.pyi"].iter().any(|init| self.store.slot_of(&join_path(folder, init)).is_some())
    }

    /// Finds a module by its path without extension. A source file takes precedence over a stub file.
    pub(super) fn python_module(&self, path: &str) -> Option<ExprValue> {
        let file = ["/__init__.py", ".py", "/__init__.pyi", ".pyi"]
            .iter()
            .find_map(|end| self.store.slot_of(format!("{path}{end}").trim_start_matches('/')));
        if let Some(file) = file {
            return Some(Self::place_of(file));
        }
        self.store.has_folder(path).then(|| ExprValue::Folder(path.into()))
    }

    /// Finds the file that an ECMAScript module name means.
    pub(super) fn ecma_module(&self, file: u32, module: &str) -> Option<u32> {
        let here = &self.store.file_at(file)?.path;
        if module.is_empty() {
            return Some(file);
        }
        let folder = folder_of(here);
        if module.starts_with('.') {
            return self.ecma_file(&normalize_path(folder, module)?);
        }
        let mut ancestor = folder;
        loop {
            for name in ["tsconfig.json", "jsconfig.json"] {
                if let Some(found) = self.by_tsconfig(join_path(ancestor, name), module) {
                    return Some(found);
                }
            }
            if ancestor.is_empty() {
                break;
            }
            ancestor = folder_of(ancestor);
        }
        self.package_file(module)
    }

    /// Resolves a module by a configuration and the configurations that it extends. The settings of the first
    /// configuration override those of the extended ones.
    fn by_tsconfig(&self, path: String, module: &str) -> Option<u32> {
        let (mut base, mut paths) = (None, None);
        let mut next = Some(path);
        for _ in 0..EXTENDS_MAX {
            let Some(path) = next.take() else { break };
            let Some(ManifestFile::Tsconfig(config)) = self.store.manifests.get(path.as_str()) else { break };
            let folder = folder_of(&path);
            base = base.or_else(|| normalize_path(folder, config.base_url()?));
            paths = paths.or_else(|| config.has_paths().then(|| (folder.to_owned(), config)));
            let extended = config.extends.as_str().filter(|extended| extended.starts_with('.'));
            next = extended.and_then(|extended| normalize_path(folder, extended)).map(|path| {
                match path.strip_suffix(".json") {
                    Some(_) => path,
                    None => path + ".json",
                }
            });
        }
        let by_paths = paths.iter().flat_map(|(folder, config)| {
            let from = base.as_deref().unwrap_or(folder);
            config.match_paths(module).into_iter().filter_map(|target| normalize_path(from, &target))
        });
        let by_base = base.iter().filter_map(|base| normalize_path(base, module));
        by_paths.chain(by_base).find_map(|path| self.ecma_file(&path))
    }

    /// Finds a file of a package in the index, by the name of the package.
    fn package_file(&self, module: &str) -> Option<u32> {
        for (path, manifest) in &self.store.manifests {
            let ManifestFile::Package(package) = manifest else { continue };
            if package.name.is_empty() {
                continue;
            }
            let Some(rest) = module.strip_prefix(package.name.as_str()) else { continue };
            let subpath = match rest.strip_prefix('/') {
                Some(rest) => format!("./{rest}"),
                None if rest.is_empty() => ".".to_owned(),
                None => continue,
            };
            let folder = folder_of(path);
            let entries = package.list_entries(&subpath);
            let found = entries.iter().find_map(|entry| self.ecma_file(&normalize_path(folder, entry)?));
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// Finds a file by the path in an import. The path has no extension, or the extension of the built file.
    fn ecma_file(&self, path: &str) -> Option<u32> {
        let with = |base: &str, ends: &[&str]| {
            ends.iter().find_map(|end| self.store.slot_of(format!("{base}{end}").trim_start_matches('/')))
        };
        let written = WRITTEN.iter().find_map(|(end, ends)| Some((path.strip_suffix(end)?, ends)));
        written.and_then(|(base, ends)| with(base, ends)).or_else(|| with(path, UNWRITTEN))
    }

    /// Lists the files that a file imports, without the packages on the way to them.
    pub fn imported_files(&self, file: u32) -> Vec<u32> {
        let Some(facts) = self.store.facts_at(file) else { return Vec::new() };
        let mut out = Vec::new();
        for number in 0..u32::try_from(facts.imports.len()).unwrap_or(0) {
            out.extend(self.import_file(file, number));
        }
        out.sort_unstable();
        out.dedup();
        out
    }

    /// Finds the file that an import means: the file of the module, or of the submodule that the import names.
    pub fn import_file(&self, file: u32, number: u32) -> Option<u32> {
        self.reset();
        let facts = self.store.facts_at(file)?;
        let import = facts.imports.get(number as usize)?;
        let (module, name) = (facts.text_of(import.module), facts.text_of(import.name));
        let value = if facts.language == crate::language::CodeLanguage::Rust {
            match self.resolve_import(file, number, NameSpace::Type) {
                ExprValue::Place(place) => return Some(place.file),
                ExprValue::Def(id, _) => return Some(id.file),
                _ => self.rust_path(file, module, import.from.get(), NameSpace::Type)?,
            }
        } else {
            self.module_value(file, module)?
        };
        match value {
            ExprValue::Place(place) => {
                // Handles imports of a submodule: `from package import module`.
                let below =
                    match self.find_member(&ExprPlace::new(file, import.from.get()), &value, name, NameSpace::Value) {
                        Some(ExprValue::Place(below))
                            if !name.is_empty() && module_stem(&self.store.file_at(below.file)?.path) == name =>
                        {
                            Some(below.file)
                        }
                        _ => None,
                    };
                Some(below.unwrap_or(place.file))
            }
            ExprValue::Folder(folder) => match self.python_module(&format!("{folder}/{name}"))? {
                ExprValue::Place(place) => Some(place.file),
                _ => None,
            },
            ExprValue::Def(id, _) => Some(id.file),
            _ => None,
        }
    }
}

pub(super) fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

pub(super) fn join_path(folder: &str, path: &str) -> String {
    if folder.is_empty() { path.to_owned() } else { format!("{folder}/{path}") }
}

/// Counts the leading folders that two paths share.
fn count_shared(path: &str, root: &str) -> usize {
    path.split('/').zip(root.split('/')).take_while(|(a, b)| a == b).count()
}

/// Resolves a path in a folder, so that the result has no `.` and `..`. Returns `None` if the path leads out of the
/// root.
pub(super) fn normalize_path(folder: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}
