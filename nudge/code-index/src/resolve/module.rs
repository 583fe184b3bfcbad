//! Resolves imports and the names that a file exports.

use crate::facts::{BindingTarget, FileFacts, ImportFact, NameBinding};
use crate::index::{NodeId, of_file};
use crate::language::CodeLanguage;

use super::eval::one_of;
use super::lookup::{kind_fits, left_in_the_end, without_overloads};
use super::{CallResolver, ExprPlace, ExprValue, ModulePlace, NameSpace, no_args};

impl CallResolver<'_> {
    /// Resolves an import to the value that it binds.
    pub(super) fn resolve_import(&self, file: u32, number: u32, space: NameSpace) -> ExprValue {
        self.run_with_fuel(ExprValue::Unknown, || {
            let Some(here) = self.store.file_at(file) else { return ExprValue::Unknown };
            let facts = &here.facts;
            let Some(import) = facts.imports.get(number as usize) else { return ExprValue::Unknown };
            let (module, name) = (facts.text_of(import.module), facts.text_of(import.name));
            let outside = || {
                let last = if name.is_empty() { module.rsplit(['.', ':', '/']).next().unwrap_or(module) } else { name };
                ExprValue::OuterType(last.into(), no_args())
            };
            if facts.language == CodeLanguage::Rust {
                return self.rust_import(file, import, space).unwrap_or_else(outside);
            }
            if facts.language == CodeLanguage::Python && name.is_empty() && module.contains('.') {
                // The statement `import a.b` binds `a`, and `import a.b as c` binds the whole module to `c`.
                let first = module.split('.').next().unwrap_or(module);
                let path = if facts.text_of(import.alias) == first { first } else { module };
                return self.module_value(file, path).unwrap_or_else(outside);
            }
            let Some(target) = self.module_value(file, module) else { return outside() };
            if name.is_empty() {
                return target;
            }
            match &target {
                ExprValue::Place(place) => {
                    let found = self.resolve_export(*place, name, space, Some(file));
                    match found {
                        ExprValue::Unknown => self.find_submodule(place.file, name).unwrap_or(ExprValue::Unknown),
                        found => found,
                    }
                }
                ExprValue::Folder(folder) => {
                    self.python_module(&format!("{folder}/{name}")).unwrap_or(ExprValue::Unknown)
                }
                // Handles a static import of Java, such as `import static a.B.c`.
                ExprValue::Def(..) => self
                    .find_member(&ExprPlace::new(file, import.from.get()), &target, name, space)
                    .unwrap_or(ExprValue::Unknown),
                _ => ExprValue::Unknown,
            }
        })
    }

    /// Resolves a name through a star import.
    pub(super) fn star_of(&self, file: u32, number: u32, name: &str, space: NameSpace) -> ExprValue {
        self.run_with_fuel(ExprValue::Unknown, || {
            let Some(facts) = self.store.facts_at(file) else { return ExprValue::Unknown };
            let Some(import) = facts.imports.get(number as usize) else { return ExprValue::Unknown };
            if matches!(facts.language, CodeLanguage::Java | CodeLanguage::CSharp) {
                let path = format!("{}.{name}", facts.text_of(import.module));
                return self.class_of_package(facts.language, &path).unwrap_or(ExprValue::Unknown);
            }
            let target = if facts.language == CodeLanguage::Rust {
                self.rust_path(file, facts.text_of(import.module), import.from.get(), NameSpace::Type)
            } else {
                self.module_value(file, facts.text_of(import.module))
            };
            match target {
                Some(ExprValue::Place(place))
                    if place.file != file || place.module.is_some() || facts.language == CodeLanguage::Rust =>
                {
                    self.resolve_export(place, name, space, Some(file))
                }
                // Handles a star import of an enum, such as `use Enum::*`.
                Some(class @ ExprValue::Def(..)) => self
                    .find_member(&ExprPlace::new(file, import.from.get()), &class, name, space)
                    .unwrap_or(ExprValue::Unknown),
                _ => ExprValue::Unknown,
            }
        })
    }

    /// Resolves a name that a module exports: its own definition, or a name that it re-exports.
    pub(super) fn resolve_export(
        &self,
        place: ModulePlace,
        name: &str,
        space: NameSpace,
        asker: Option<u32>,
    ) -> ExprValue {
        let inside = self.file_language(place.file) == Some(CodeLanguage::Rust) && self.same_crate(asker, place.file);
        let key = (place, name.into(), space, inside);
        self.run_with_fuel(ExprValue::Unknown, || {
            self.memo.answer_once(&self.memo.exports, key, ExprValue::Unknown, || {
                self.find_export(place, name, space, inside)
            })
        })
    }

    fn find_export(&self, place: ModulePlace, name: &str, space: NameSpace, inside: bool) -> ExprValue {
        let Some(facts) = self.store.facts_at(place.file) else { return ExprValue::Unknown };
        let range = match place.module.map(|module| facts.nodes.get(module as usize)) {
            Some(Some(node)) => Some((node.span.byte, node.span.end)),
            Some(None) => return ExprValue::Unknown,
            None => None,
        };
        // Takes only bindings that are visible in the whole module, and not those of inner scopes.
        let here = |from: u32, to: u32| match range {
            Some((start, end)) => from >= start && to == end,
            None => of_file(from, to),
        };
        let id = facts.names.find(name);
        if let Some(id) = id {
            let own = facts.bindings_of(id).filter(|b| here(b.from, b.to));
            let value = self.own_export(place.file, facts, own, space);
            if let Some(value) = value {
                return value;
            }
        }
        if let Some(value) = self.default_export(place.file, name) {
            return value;
        }
        let passed = (0..).zip(&facts.imports).filter(|(_, import)| here(import.from.get(), import.to.get()));
        let named = passed.clone().filter(|(_, import)| import.reexport && Some(import.alias) == id);
        let stars = passed.filter(|(_, import)| (import.reexport || inside) && facts.text_of(import.name) == "*");
        let mut named = named.map(|(number, import)| self.imported_export(place.file, number, import, space));
        if let Some(value) = named.find(|value| *value != ExprValue::Unknown) {
            return value;
        }
        // With two star imports, the name may come from either.
        let starred: Vec<ExprValue> = stars
            .map(|(number, _)| self.star_of(place.file, number, name, space))
            .filter(|value| *value != ExprValue::Unknown)
            .collect();
        if !starred.is_empty() {
            return one_of(starred);
        }
        self.submodule_of(place, name).unwrap_or(ExprValue::Unknown)
    }

    /// Returns the value to which a module itself binds a name; `None` if it does not.
    fn own_export(
        &self,
        file: u32,
        facts: &FileFacts,
        bindings: impl Iterator<Item = NameBinding>,
        space: NameSpace,
    ) -> Option<ExprValue> {
        let (rust, python) = (facts.language == CodeLanguage::Rust, facts.language == CodeLanguage::Python);
        let fits = |node: u32| facts.nodes.get(node as usize).is_some_and(|n| kind_fits(facts.language, n.kind, space));
        let mut bindings: Vec<NameBinding> = bindings.collect();
        if python && bindings.iter().all(|b| matches!(b.bound, BindingTarget::Node(_))) {
            bindings = left_in_the_end(without_overloads(facts, bindings));
        }
        let mut values: Vec<ExprValue> = bindings
            .iter()
            .filter_map(|b| match b.bound {
                BindingTarget::Node(node) if python || fits(node) => Some(self.definition_value(NodeId { file, node })),
                // In ECMAScript, a module re-exports an import only by an explicit statement.
                BindingTarget::Import(number) if !facts.language.is_ecma() => {
                    Some(self.resolve_import(file, number, space))
                }
                BindingTarget::Value(value) if python || matches!(space, NameSpace::Value | NameSpace::Called) => {
                    Some(self.eval_expr(&ExprPlace::new(file, b.value_place), value, NameSpace::Value))
                }
                _ => None,
            })
            .collect();
        let defined = values.iter().all(|value| matches!(value, ExprValue::Def(id, _) if !rust || id.file == file));
        if values.len() > 1 && defined && !python && (!rust || space == NameSpace::Type) {
            // The values are overloads, or twins for different builds.
            return Some(values.swap_remove(0));
        }
        if rust && values.len() > 1 {
            values.retain(|value| *value != ExprValue::Unknown && !matches!(value, ExprValue::OuterType(..)));
        }
        if values.is_empty() {
            return None;
        }
        Some(one_of(values)).filter(|value| *value != ExprValue::Unknown || !rust)
    }

    /// Resolves `export { a as b }`. Without a module, `a` is a name of this file.
    fn imported_export(&self, file: u32, number: u32, import: &ImportFact, space: NameSpace) -> ExprValue {
        let Some(facts) = self.store.facts_at(file) else { return ExprValue::Unknown };
        if facts.language.is_ecma() && facts.text_of(import.module).is_empty() {
            let site = ExprPlace::new(file, u32::MAX - 1);
            let hits = self.lookup_name(&site, import.name, space);
            return one_of(hits.iter().map(|hit| match hit.bound {
                BindingTarget::Node(node) => self.definition_value(NodeId { file, node }),
                BindingTarget::Import(number) => self.resolve_import(file, number, space),
                BindingTarget::Value(value) => {
                    self.eval_expr(&ExprPlace::new(file, hit.value_place), value, NameSpace::Value)
                }
                _ => ExprValue::Unknown,
            }));
        }
        self.resolve_import(file, number, space)
    }

    /// Finds the definition that `export default` exports, such as `export default function f`.
    fn default_export(&self, file: u32, name: &str) -> Option<ExprValue> {
        let facts = self.store.facts_at(file)?;
        if name != "default" || !facts.language.is_ecma() {
            return None;
        }
        let node = facts.nodes.iter().position(|node| node.flags & crate::facts::flag::DEFAULT != 0)?;
        Some(self.definition_value(NodeId { file, node: u32::try_from(node).ok()? }))
    }

    /// Finds a module inside another module.
    fn submodule_of(&self, place: ModulePlace, name: &str) -> Option<ExprValue> {
        match self.file_language(place.file)? {
            CodeLanguage::Python if place.module.is_none() => self.find_submodule(place.file, name),
            CodeLanguage::Rust => self.rust_child(place, name),
            _ => None,
        }
    }

    /// Finds a module of a Python package. `file` is the `__init__.py` of the package.
    fn find_submodule(&self, file: u32, name: &str) -> Option<ExprValue> {
        let path = &self.store.file_at(file)?.path;
        let folder = path.strip_suffix("__init__.py").or_else(|| path.strip_suffix("__init__.pyi"))?;
        self.python_module(&format!("{folder}{name}"))
    }

    /// Finds the module that a name means in a file.
    pub fn module_value(&self, file: u32, module: &str) -> Option<ExprValue> {
        match self.file_language(file)? {
            CodeLanguage::Python => self.python_import(file, module),
            language if language.is_ecma() => self.ecma_module(file, module).map(Self::place_of),
            CodeLanguage::Go => self.go_package(file, module),
            language @ (CodeLanguage::Java | CodeLanguage::Php) => self.class_of_package(language, module),
            CodeLanguage::C | CodeLanguage::Cpp => self.find_include(file, module).map(Self::place_of),
            _ => None,
        }
    }
}
