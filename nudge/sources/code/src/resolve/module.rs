//! Modules: the meaning of imports, and the names that a file exports.

use crate::facts::{Binding, Bound, FileFacts, Import};
use crate::index::{NodeId, of_file};
use crate::language::Language;

use super::eval::one_of;
use super::lookup::{kind_fits, left_in_the_end, without_overloads};
use super::{At, Place, Resolver, Space, Val, no_args};

impl Resolver<'_> {
    /// Resolves an import.
    pub(super) fn imported(&self, file: u32, number: u32, space: Space) -> Val {
        self.deeper(Val::Unknown, || {
            let Some(here) = self.store.file(file) else { return Val::Unknown };
            let facts = &here.facts;
            let Some(import) = facts.imports.get(number as usize) else { return Val::Unknown };
            let (module, name) = (facts.text(import.module), facts.text(import.name));
            let outside = || {
                let last = if name.is_empty() { module.rsplit(['.', ':', '/']).next().unwrap_or(module) } else { name };
                Val::OuterType(last.into(), no_args())
            };
            if facts.language == Language::Rust {
                return self.rust_import(file, import, space).unwrap_or_else(outside);
            }
            if facts.language == Language::Python && name.is_empty() && module.contains('.') {
                // `import a.b` binds `a`, `import a.b as c` binds the whole.
                let first = module.split('.').next().unwrap_or(module);
                let path = if facts.text(import.alias) == first { first } else { module };
                return self.module_value(file, path).unwrap_or_else(outside);
            }
            let Some(target) = self.module_value(file, module) else { return outside() };
            if name.is_empty() {
                return target;
            }
            match &target {
                Val::Place(place) => {
                    let found = self.exported(*place, name, space, Some(file));
                    match found {
                        Val::Unknown => self.submodule(place.file, name).unwrap_or(Val::Unknown),
                        found => found,
                    }
                }
                Val::Folder(folder) => self.python_module(&format!("{folder}/{name}")).unwrap_or(Val::Unknown),
                // `import static a.B.c`
                Val::Def(..) => {
                    self.member(&At::new(file, import.from.get()), &target, name, space).unwrap_or(Val::Unknown)
                }
                _ => Val::Unknown,
            }
        })
    }

    /// Resolves a name by a star import.
    pub(super) fn star_of(&self, file: u32, number: u32, name: &str, space: Space) -> Val {
        self.deeper(Val::Unknown, || {
            let Some(facts) = self.store.facts(file) else { return Val::Unknown };
            let Some(import) = facts.imports.get(number as usize) else { return Val::Unknown };
            if matches!(facts.language, Language::Java | Language::CSharp) {
                let path = format!("{}.{name}", facts.text(import.module));
                return self.class_of_package(facts.language, &path).unwrap_or(Val::Unknown);
            }
            let target = if facts.language == Language::Rust {
                self.rust_path(file, facts.text(import.module), import.from.get(), Space::Type)
            } else {
                self.module_value(file, facts.text(import.module))
            };
            match target {
                Some(Val::Place(place))
                    if place.file != file || place.module.is_some() || facts.language == Language::Rust =>
                {
                    self.exported(place, name, space, Some(file))
                }
                // `use Enum::*`
                Some(class @ Val::Def(..)) => {
                    self.member(&At::new(file, import.from.get()), &class, name, space).unwrap_or(Val::Unknown)
                }
                _ => Val::Unknown,
            }
        })
    }

    /// Resolves a name of a module: its own definition, or one it passes on.
    pub(super) fn exported(&self, place: Place, name: &str, space: Space, asker: Option<u32>) -> Val {
        let inside = self.language(place.file) == Some(Language::Rust) && self.same_crate(asker, place.file);
        let key = (place, name.into(), space, inside);
        self.deeper(Val::Unknown, || {
            self.memo.once(&self.memo.exports, key, Val::Unknown, || self.find_export(place, name, space, inside))
        })
    }

    fn find_export(&self, place: Place, name: &str, space: Space, inside: bool) -> Val {
        let Some(facts) = self.store.facts(place.file) else { return Val::Unknown };
        let range = match place.module.map(|module| facts.nodes.get(module as usize)) {
            Some(Some(node)) => Some((node.span.byte, node.span.end)),
            Some(None) => return Val::Unknown,
            None => None,
        };
        // Bindings seen in all of the module, but no further in.
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
        let stars = passed.filter(|(_, import)| (import.reexport || inside) && facts.text(import.name) == "*");
        let mut named = named.map(|(number, import)| self.imported_export(place.file, number, import, space));
        if let Some(value) = named.find(|value| *value != Val::Unknown) {
            return value;
        }
        // Two star imports mean one or the other.
        let starred: Vec<Val> = stars
            .map(|(number, _)| self.star_of(place.file, number, name, space))
            .filter(|value| *value != Val::Unknown)
            .collect();
        if !starred.is_empty() {
            return one_of(starred);
        }
        self.submodule_of(place, name).unwrap_or(Val::Unknown)
    }

    /// Returns the value that a module itself binds to a name, if it does.
    fn own_export(
        &self,
        file: u32,
        facts: &FileFacts,
        bindings: impl Iterator<Item = Binding>,
        space: Space,
    ) -> Option<Val> {
        let (rust, python) = (facts.language == Language::Rust, facts.language == Language::Python);
        let fits = |node: u32| facts.nodes.get(node as usize).is_some_and(|n| kind_fits(facts.language, n.kind, space));
        let mut bindings: Vec<Binding> = bindings.collect();
        if python && bindings.iter().all(|b| matches!(b.bound, Bound::Node(_))) {
            bindings = left_in_the_end(without_overloads(facts, bindings));
        }
        let mut values: Vec<Val> = bindings
            .iter()
            .filter_map(|b| match b.bound {
                Bound::Node(node) if python || fits(node) => Some(self.definition(NodeId { file, node })),
                // ECMAScript does not pass imports on unless it says so.
                Bound::Import(number) if !facts.language.is_ecma() => Some(self.imported(file, number, space)),
                Bound::Value(value) if python || matches!(space, Space::Value | Space::Called) => {
                    Some(self.eval(&At::new(file, b.at), value, Space::Value))
                }
                _ => None,
            })
            .collect();
        let defined = values.iter().all(|value| matches!(value, Val::Def(id, _) if !rust || id.file == file));
        if values.len() > 1 && defined && !python && (!rust || space == Space::Type) {
            // Overloads, twins for different builds.
            return Some(values.swap_remove(0));
        }
        if rust && values.len() > 1 {
            values.retain(|value| *value != Val::Unknown && !matches!(value, Val::OuterType(..)));
        }
        if values.is_empty() {
            return None;
        }
        Some(one_of(values)).filter(|value| *value != Val::Unknown || !rust)
    }

    /// Resolves `export { a as b }`: in this file if it names no other.
    fn imported_export(&self, file: u32, number: u32, import: &Import, space: Space) -> Val {
        let Some(facts) = self.store.facts(file) else { return Val::Unknown };
        if facts.language.is_ecma() && facts.text(import.module).is_empty() {
            let at = At::new(file, u32::MAX - 1);
            let hits = self.lookup(&at, import.name, space);
            return one_of(hits.iter().map(|hit| match hit.bound {
                Bound::Node(node) => self.definition(NodeId { file, node }),
                Bound::Import(number) => self.imported(file, number, space),
                Bound::Value(value) => self.eval(&At::new(file, hit.at), value, Space::Value),
                _ => Val::Unknown,
            }));
        }
        self.imported(file, number, space)
    }

    /// `export default function f`
    fn default_export(&self, file: u32, name: &str) -> Option<Val> {
        let facts = self.store.facts(file)?;
        if name != "default" || !facts.language.is_ecma() {
            return None;
        }
        let node = facts.nodes.iter().position(|node| node.flags & crate::facts::flag::DEFAULT != 0)?;
        Some(self.definition(NodeId { file, node: u32::try_from(node).ok()? }))
    }

    /// A module below another one.
    fn submodule_of(&self, place: Place, name: &str) -> Option<Val> {
        match self.language(place.file)? {
            Language::Python if place.module.is_none() => self.submodule(place.file, name),
            Language::Rust => self.rust_child(place, name),
            _ => None,
        }
    }

    /// A module of the package that a file is the `__init__.py` of.
    fn submodule(&self, file: u32, name: &str) -> Option<Val> {
        let path = &self.store.file(file)?.path;
        let folder = path.strip_suffix("__init__.py").or_else(|| path.strip_suffix("__init__.pyi"))?;
        self.python_module(&format!("{folder}{name}"))
    }

    /// The module that a file means by a name of one.
    pub fn module_value(&self, file: u32, module: &str) -> Option<Val> {
        match self.language(file)? {
            Language::Python => self.python_import(file, module),
            language if language.is_ecma() => self.ecma_module(file, module).map(Self::place_of),
            Language::Go => self.go_package(file, module),
            language @ (Language::Java | Language::Php) => self.class_of_package(language, module),
            Language::C | Language::Cpp => self.included(file, module).map(Self::place_of),
            _ => None,
        }
    }
}
