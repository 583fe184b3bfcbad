//! Resolves crates and paths of Rust, and the methods that `impl` blocks add to a type.

use crate::facts::{BindingTarget, Expr, ExprId, FileFacts, ImportFact, NodeKind, NodeOwner};
use crate::index::{CargoManifest, ManifestFile, NodeId, last_name};
use crate::language::CodeLanguage;

use super::class::MemberQuery;
use super::outside::{WrapperKind, wrapper_kind};
use super::paths::{folder_of, join_path, normalize_path};
use super::{CallResolver, ExprPlace, ExprValue, ModulePlace, NameSpace};

/// The result of a search for a method in `impl` blocks.
#[derive(Clone, Copy)]
pub(super) enum MethodMatch {
    None,
    One(NodeId),
    Several,
}

impl CallResolver<'_> {
    /// Resolves the name that a `use` statement binds.
    pub(super) fn rust_import(&self, file: u32, import: &ImportFact, space: NameSpace) -> Option<ExprValue> {
        let facts = self.store.facts_at(file)?;
        let (module, name) = (facts.text_of(import.module), facts.text_of(import.name));
        if let Some(path) = module.strip_prefix('#') {
            let folder = folder_of(&self.store.file_at(file)?.path);
            return self.store.slot_of(&normalize_path(folder, path)?).map(Self::place_of);
        }
        if name.is_empty()
            && let Some(child) = module.strip_prefix("self::")
        {
            // Handles a module in another file: `mod child;`.
            return self.rust_child(self.place_at(file, import.from.get()), child);
        }
        if name.is_empty() {
            return self.rust_path(file, module, import.from.get(), space);
        }
        let base = self.rust_path(file, module, import.from.get(), NameSpace::Type)?;
        let value = self.find_member(&ExprPlace::new(file, import.from.get()), &base, name, space)?;
        if space == NameSpace::Macro && value == ExprValue::Unknown {
            return self.exported_macro(&base, name);
        }
        Some(value)
    }

    /// Finds a macro that `#[macro_export]` places at the root of its crate.
    pub(super) fn exported_macro(&self, base: &ExprValue, name: &str) -> Option<ExprValue> {
        let ExprValue::Place(place) = base else { return None };
        let roots = self.crate_roots(place.file);
        let named = self.nodes_named(name);
        let mut all = named.iter().copied().filter(|(slot, node)| {
            self.node_kind(NodeId { file: *slot, node: *node }) == Some(NodeKind::Macro)
                && self.crate_roots(*slot).iter().any(|root| roots.contains(root))
        });
        match (all.next(), all.next()) {
            (Some((file, node)), None) => Some(ExprValue::Def(NodeId { file, node }, super::no_args())),
            _ => None,
        }
    }

    /// Resolves a path that a file contains. The offset `byte` decides the module of the file.
    pub(super) fn rust_path(&self, file: u32, path: &str, byte: u32, space: NameSpace) -> Option<ExprValue> {
        let extern_ = path.starts_with("::");
        let mut parts = path.trim_start_matches("::").split("::");
        let first = parts.next()?;
        let site = ExprPlace::new(file, byte);
        let mut value = if extern_ { self.extern_crate(file, first) } else { self.path_head(&site, first) };
        if value.is_none() && !extern_ {
            // The first name may be one of this module, such as another import or an enum.
            let here = self.place_at(file, byte);
            value = Some(self.resolve_export(here, first, NameSpace::Type, Some(file)))
                .filter(|value| *value != ExprValue::Unknown);
        }
        let mut value = value?;
        for part in parts {
            if part == "self" {
                continue;
            }
            value =
                self.find_member(&site, &value, part, if space == NameSpace::Macro { NameSpace::Type } else { space })?;
        }
        Some(value)
    }

    /// Returns the innermost module around an offset.
    pub(super) fn place_at(&self, file: u32, byte: u32) -> ModulePlace {
        let module = self.store.facts_at(file).and_then(|facts| {
            super::lookup::node_around(facts, byte, |node| {
                facts.nodes.get(node as usize).is_some_and(|n| n.kind == NodeKind::Module)
            })
        });
        ModulePlace { file, module }
    }

    /// Resolves the first name of a path, if it is a keyword such as `crate` or the name of a crate.
    pub(super) fn path_head(&self, site: &ExprPlace, first: &str) -> Option<ExprValue> {
        let here = self.place_at(site.file, site.byte);
        match first {
            "crate" | "$crate" => self.crate_roots(site.file).first().map(|root| Self::place_of(*root)),
            "self" => Some(ExprValue::Place(here)),
            "super" => self.rust_parent(here).map(ExprValue::Place),
            _ => self.extern_crate(site.file, first),
        }
    }

    /// Finds the library of a crate in the index, by the name that code of the file uses.
    fn extern_crate(&self, file: u32, name: &str) -> Option<ExprValue> {
        if matches!(name, "std" | "core" | "alloc") {
            return None;
        }
        let key = (self.crate_roots(file).first().copied().unwrap_or(file), name.into());
        if let Some(value) = self.memo.externs.borrow().get(&key) {
            return value.clone();
        }
        let value = self.find_crate(file, name);
        self.memo.externs.borrow_mut().insert(key, value.clone());
        value
    }

    fn find_crate(&self, file: u32, name: &str) -> Option<ExprValue> {
        let own = self.cargo_of(file).map(|(_, cargo)| cargo);
        let package = own.and_then(|cargo| cargo.package_of_alias(name));
        for (path, manifest) in &self.store.manifests {
            let ManifestFile::Cargo(cargo) = manifest else { continue };
            if cargo.package.name.is_empty() {
                continue;
            }
            let fits = package.map_or_else(|| cargo.lib_name() == name, |package| cargo.package.name == package);
            if fits {
                let folder = folder_of(path);
                let lib = normalize_path(folder, cargo.lib.path.as_deref().unwrap_or("src/lib.rs"))?;
                if let Some(root) = self.store.slot_of(&lib) {
                    return Some(Self::place_of(root));
                }
            }
        }
        None
    }

    /// Returns the manifest of the crate to which a file belongs, with its folder.
    fn cargo_of(&self, file: u32) -> Option<(&str, &CargoManifest)> {
        let mut folder = folder_of(&self.store.file_at(file)?.path);
        loop {
            if let Some((path, ManifestFile::Cargo(cargo))) =
                self.store.manifests.get_key_value(join_path(folder, "Cargo.toml").as_str())
                && !cargo.package.name.is_empty()
            {
                return Some((folder_of(path), cargo));
            }
            if folder.is_empty() {
                return None;
            }
            folder = folder_of(folder);
        }
    }

    /// Returns the root files of the crate to which a file belongs, nearest first.
    pub(super) fn crate_roots(&self, file: u32) -> std::rc::Rc<[u32]> {
        if let Some(roots) = self.memo.roots.borrow().get(&file) {
            return roots.clone();
        }
        let roots: std::rc::Rc<[u32]> = self.find_roots(file).into();
        self.memo.roots.borrow_mut().insert(file, roots.clone());
        roots
    }

    fn find_roots(&self, file: u32) -> Vec<u32> {
        let Some(here) = self.store.file_at(file) else { return Vec::new() };
        let mut roots: Vec<u32> = Vec::new();
        if let Some((folder, cargo)) = self.cargo_of(file) {
            let mut paths: Vec<String> = vec![cargo.lib.path.clone().unwrap_or_else(|| "src/lib.rs".into())];
            paths.push("src/main.rs".into());
            let targets = [&cargo.bin, &cargo.test, &cargo.example, &cargo.bench];
            paths.extend(targets.into_iter().flatten().filter_map(|target| target.path.clone()));
            roots.extend(paths.iter().filter_map(|path| self.store.slot_of(&normalize_path(folder, path)?)));
            // In these folders, each file is a crate, and so is each folder with a `main.rs`.
            for own in ["src/bin", "tests", "examples", "benches"] {
                let under = join_path(folder, own);
                if let Some(rest) = here.path.strip_prefix(&under).and_then(|rest| rest.strip_prefix('/')) {
                    match rest.split_once('/') {
                        None if !roots.iter().any(|root| *root == file || self.declares_beside(*root, file)) => {
                            roots = vec![file];
                        }
                        Some((sub, _)) => {
                            roots.extend(self.store.slot_of(&format!("{under}/{sub}/main.rs")));
                            let declared = |root: &str| self.store.slot_of(&format!("{under}/{root}.rs"));
                            roots.extend(declared("main").or_else(|| declared("lib")));
                        }
                        None => {}
                    }
                }
            }
        }
        if roots.contains(&file) {
            return vec![file];
        }
        let depth = |root: &u32| {
            let folder = self.store.file_at(*root).map_or("", |file| folder_of(&file.path));
            let inside = folder.is_empty() || here.path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
            inside.then_some(folder.len())
        };
        let deepest = roots.iter().filter_map(depth).max();
        roots.retain(|root| depth(root).is_some() && depth(root) == deepest);
        if roots.is_empty() {
            roots.extend(self.conventional_root(&here.path));
        }
        // If the package has a library and a program, the root that declares the module comes first.
        if roots.len() > 1 {
            let first =
                here.path.strip_prefix(folder_of(&self.store.file_at(roots[0]).map_or("".into(), |f| f.path.clone())));
            let module = first.map(|rest| rest.trim_start_matches('/')).and_then(|rest| rest.split(['/', '.']).next());
            if let Some(module) = module {
                roots.sort_by_key(|root| !self.declares_module(*root, module));
            }
        }
        roots
    }

    /// Returns true if the file contains `mod name;`.
    fn declares_module(&self, file: u32, name: &str) -> bool {
        let Some(facts) = self.store.facts_at(file) else { return false };
        facts
            .imports
            .iter()
            .any(|import| facts.text_of(import.alias) == name && facts.text_of(import.module).starts_with("self::"))
    }

    /// Returns true if `file` is in the folder of `root` and `root` declares it as a module.
    fn declares_beside(&self, root: u32, file: u32) -> bool {
        let (Some(root_file), Some(file)) = (self.store.file_at(root), self.store.file_at(file)) else { return false };
        folder_of(&root_file.path) == folder_of(&file.path)
            && self.declares_module(root, crate::index::module_stem(&file.path))
    }

    /// Finds the root of a crate without a manifest: the nearest `lib.rs` or `main.rs` in a folder above.
    fn conventional_root(&self, path: &str) -> Option<u32> {
        let mut folder = folder_of(path);
        loop {
            for name in ["lib.rs", "main.rs"] {
                if let Some(root) = self.store.slot_of(&join_path(folder, name)) {
                    return Some(root);
                }
            }
            if folder.is_empty() {
                return None;
            }
            folder = folder_of(folder);
        }
    }

    pub(super) fn same_crate(&self, asker: Option<u32>, file: u32) -> bool {
        asker.is_some_and(|asker| self.crate_roots(asker).first() == self.crate_roots(file).first())
    }

    /// Returns the folder that contains the files of a module's child modules.
    fn children_folder(&self, place: ModulePlace) -> Option<String> {
        let file = self.store.file_at(place.file)?;
        let path: &str = &file.path;
        let name = path.rsplit('/').next().unwrap_or(path);
        let root = name == "mod.rs" || self.crate_roots(place.file).contains(&place.file);
        let mut folder = if root { folder_of(path).to_owned() } else { path.strip_suffix(".rs")?.to_owned() };
        if let Some(module) = place.module {
            let qual = file.facts.text_of(file.facts.nodes.get(module as usize)?.qual);
            for part in qual.split('.') {
                folder = join_path(&folder, part);
            }
        }
        Some(folder)
    }

    /// Finds a child module that has its own file.
    pub(super) fn rust_child(&self, place: ModulePlace, name: &str) -> Option<ExprValue> {
        let folder = self.children_folder(place)?;
        let file = self.store.slot_of(&join_path(&folder, &format!("{name}.rs")));
        file.or_else(|| self.store.slot_of(&join_path(&folder, &format!("{name}/mod.rs")))).map(Self::place_of)
    }

    pub(super) fn rust_parent(&self, place: ModulePlace) -> Option<ModulePlace> {
        let file = self.store.file_at(place.file)?;
        if let Some(module) = place.module {
            let parent = match super::lookup::owner_of(&file.facts, module) {
                NodeOwner::Node(node) => Some(node.get()),
                _ => None,
            };
            return Some(ModulePlace { file: place.file, module: parent });
        }
        let roots = self.crate_roots(place.file);
        if roots.contains(&place.file) {
            return None;
        }
        let path: &str = &file.path;
        let folder = if path.ends_with("/mod.rs") { folder_of(folder_of(path)) } else { folder_of(path) };
        let root =
            roots.iter().find(|root| self.store.file_at(**root).is_some_and(|root| folder_of(&root.path) == folder));
        let parent = root.copied().or_else(|| self.store.slot_of(&format!("{folder}.rs")));
        let parent = parent.or_else(|| self.store.slot_of(&join_path(folder, "mod.rs")))?;
        Some(ModulePlace { file: parent, module: None })
    }

    /// Finds a method of a type, in the type's own blocks or in those of a trait that it implements.
    pub(super) fn implemented(&self, id: NodeId, name: &str) -> MethodMatch {
        self.memo.answer_once(&self.memo.methods, (id, name.into()), MethodMatch::None, || self.find_method(id, name))
    }

    fn find_method(&self, id: NodeId, name: &str) -> MethodMatch {
        match self.methods_of(id, name) {
            (own, of_trait) if own.is_empty() && of_trait.is_empty() => self.by_trait(id, name),
            (own, of_trait) => match if own.is_empty() { of_trait } else { own }.as_slice() {
                [method] => MethodMatch::One(*method),
                _ => MethodMatch::Several,
            },
        }
    }

    /// Lists the methods with this name that blocks add to a type: those of own blocks, and those of traits.
    fn methods_of(&self, id: NodeId, name: &str) -> (Vec<NodeId>, Vec<NodeId>) {
        let (mut own, mut of_trait) = (Vec::new(), Vec::new());
        for &(slot, node) in self.nodes_named(name).iter() {
            let Some(facts) = self.store.facts_at(slot) else { continue };
            let NodeOwner::Impl(block) = super::lookup::owner_of(facts, node) else { continue };
            let Some(block) = facts.impls.get(block.get() as usize) else { continue };
            if self.is_type(slot, facts, block.self_type, block.from, id) {
                let list = if block.tr.is_none() { &mut own } else { &mut of_trait };
                list.push(NodeId { file: slot, node });
            }
        }
        (own, of_trait)
    }

    /// Returns the method that can exist in the same build as the call, if there is only one.
    pub(super) fn twin_method(&self, id: NodeId, asked: &MemberQuery<'_>) -> Option<NodeId> {
        let (file, byte) = asked.from.filter(|_| self.file_language(id.file) == Some(CodeLanguage::Rust))?;
        let (own, of_trait) = self.methods_of(id, asked.name);
        self.only_twin(file, byte, if own.is_empty() { &of_trait } else { &own })
    }

    /// Returns true if a value certainly has the type itself and is not a pointer to it.
    pub(super) fn is_plain(&self, site: &ExprPlace, facts: &FileFacts, value: ExprId) -> bool {
        let all_plain = |facts: &FileFacts, file: u32, values: &[(u32, ExprId)]| {
            !values.is_empty()
                && values.iter().all(|(byte, value)| self.is_plain(&ExprPlace::new(file, *byte), facts, *value))
        };
        self.run_with_fuel(false, || match facts.exprs.get(value) {
            Some(Expr::This | Expr::SelfType) => true,
            Some(Expr::Of(ty)) => match last_name(facts, ty) {
                Some(name) => !matches!(wrapper_kind(facts.text_of(name)), WrapperKind::First),
                None => matches!(facts.exprs.get(ty), Some(Expr::SelfType)),
            },
            Some(Expr::Name(name)) => {
                let hits = self.lookup_name(site, name, NameSpace::Value);
                !hits.is_empty()
                    && hits.iter().all(|hit| match hit.bound {
                        BindingTarget::Param(value, _) | BindingTarget::Value(value) => {
                            all_plain(facts, site.file, &[(hit.value_place, value)])
                        }
                        BindingTarget::Node(_) => true,
                        _ => false,
                    })
            }
            Some(Expr::Member(receiver, name)) => {
                let ExprValue::Of(class, _) = self.eval_expr(site, receiver, NameSpace::Value) else { return false };
                let Some(there) = self.store.facts_at(class.file) else { return false };
                let Some(name) = there.names.find(facts.text_of(name)) else { return false };
                let fields = there.fields_of(name).iter().filter(|field| field.owner.get() == class.node);
                let fields: Vec<_> = fields.map(|field| (field.value_place.get(), field.value)).collect();
                all_plain(there, class.file, &fields)
            }
            Some(Expr::Call(function)) => match self.eval_expr(site, function, NameSpace::Called) {
                ExprValue::Def(id, _) if self.node_kind(id) == Some(NodeKind::Class) => true,
                ExprValue::Def(id, _) | ExprValue::Method(id, _) => self.store.facts_at(id.file).is_some_and(|there| {
                    let given: Vec<_> =
                        there.gives_of(id.node).iter().map(|given| (given.value_place.get(), given.value)).collect();
                    all_plain(there, id.file, &given)
                }),
                _ => false,
            },
            _ => false,
        })
    }

    /// Returns true if implementations override a method of a trait. A call of `Trait::method(x)` may then mean any of
    /// them.
    pub(super) fn has_bodies(&self, method: NodeId) -> bool {
        let Some(facts) = self.store.facts_at(method.file) else { return false };
        let Some(node) = facts.nodes.get(method.node as usize) else { return false };
        let NodeOwner::Node(owner) = node.owner else { return false };
        let tr = NodeId { file: method.file, node: owner.get() };
        self.node_kind(tr) == Some(NodeKind::Trait)
            && self.nodes_named(facts.text_of(node.name)).iter().any(|&(slot, node)| {
                let Some(facts) = self.store.facts_at(slot) else { return false };
                let NodeOwner::Impl(block) = super::lookup::owner_of(facts, node) else { return false };
                let Some(block) = facts.impls.get(block.get() as usize) else { return false };
                matches!(self.eval_expr(&ExprPlace::new(slot, block.from), block.tr, NameSpace::Type), ExprValue::Def(id, _) if id == tr)
            })
    }

    /// Finds a method that is defined in one of the traits themselves.
    fn by_trait(&self, id: NodeId, name: &str) -> MethodMatch {
        let mut found: Option<NodeId> = None;
        let traits: Vec<NodeId> = self
            .nodes_named(name)
            .iter()
            .filter_map(|&(slot, node)| match super::lookup::owner_of(self.store.facts_at(slot)?, node) {
                NodeOwner::Node(owner) => Some(NodeId { file: slot, node: owner.get() }),
                _ => None,
            })
            .filter(|owner| self.node_kind(*owner) == Some(NodeKind::Trait))
            .collect();
        if traits.is_empty() {
            return MethodMatch::None;
        }
        for tr in self.traits_of(id) {
            if traits.contains(&tr)
                && let Some(super::ClassMember::Node(method)) =
                    self.own_member(tr, &MemberQuery { name, space: NameSpace::Called, of_type: false, from: None })
            {
                if found.is_some_and(|found| found != method) {
                    return MethodMatch::Several;
                }
                found = Some(method);
            }
        }
        found.map_or(MethodMatch::None, MethodMatch::One)
    }

    /// Lists the traits of the index that a type implements.
    fn traits_of(&self, id: NodeId) -> Vec<NodeId> {
        let Some(facts) = self.store.facts_at(id.file) else { return Vec::new() };
        let Some(node) = facts.nodes.get(id.node as usize) else { return Vec::new() };
        let mut out = Vec::new();
        for slot in self.store.implementing(facts.text_of(node.name)) {
            let Some(facts) = self.store.facts_at(slot) else { continue };
            for block in facts.impls.iter().filter(|block| !block.tr.is_none()) {
                if self.is_type(slot, facts, block.self_type, block.from, id)
                    && let ExprValue::Def(tr, _) =
                        self.eval_expr(&ExprPlace::new(slot, block.from), block.tr, NameSpace::Type)
                    && !out.contains(&tr)
                {
                    out.push(tr);
                }
            }
        }
        out
    }

    /// Returns true if a block is for the type `id`. Compares the names first, because that is fast.
    fn is_type(&self, file: u32, facts: &FileFacts, ty: ExprId, byte: u32, id: NodeId) -> bool {
        let Some(theirs) = self.store.facts_at(id.file) else { return false };
        let Some(node) = theirs.nodes.get(id.node as usize) else { return false };
        let Some(last) = last_name(facts, ty) else { return false };
        if facts.text_of(last) != theirs.text_of(node.name) {
            return false;
        }
        matches!(self.eval_expr(&ExprPlace::new(file, byte), ty, NameSpace::Type), ExprValue::Def(found, _) if found == id)
    }
}
