//! Finds the meaning of a name at a position.

use crate::facts::{BindingTarget, CodeNode, FileFacts, NameBinding, NameId, NodeKind, NodeOwner, flag};
use crate::index::{EdgeCertainty, NodeId, module_stem, of_file};
use crate::language::CodeLanguage;

use super::eval::one_of;
use super::{CallResolver, ExprPlace, ExprValue, NameSpace};

impl CallResolver<'_> {
    /// Finds the binding of a name at a position. If several bindings may apply, returns all of them.
    pub(super) fn lookup_name(&self, site: &ExprPlace, name: NameId, space: NameSpace) -> Vec<NameBinding> {
        let Some(facts) = self.store.facts_at(site.file) else { return Vec::new() };
        let module = module_range(facts, site.byte);
        let method = method_start(facts, site.byte);
        let mut best: Vec<NameBinding> = Vec::new();
        for binding in facts.bindings_of(name) {
            let visible = binding.from <= site.byte && site.byte < binding.to;
            let barred = module.is_some_and(|(from, _)| binding.from < from)
                || method.is_some_and(|from| binding.from < from)
                    && matches!(binding.bound, BindingTarget::Value(_) | BindingTarget::Param(..));
            if !visible || barred || !binding_fits(facts, &binding, space) {
                continue;
            }
            match best.first() {
                Some(first) if (first.from, first.to) == (binding.from, binding.to) => best.push(binding),
                Some(first) if binding.from < first.from || binding.from == first.from && binding.to > first.to => {}
                _ => best = vec![binding],
            }
        }
        if best.len() > 1 {
            // Twins of a type, which are definitions for different builds, count as one type, because blocks add their
            // methods to all of them.
            let fit = if space == NameSpace::Type { best } else { self.bound_together(facts, site, best) };
            best = of_several(facts, site, fit, space);
        }
        best
    }

    /// Resolves a name without a binding, by the star imports and the folder of the file.
    pub(super) fn resolve_unbound(
        &self,
        site: &ExprPlace,
        name: &str,
        space: NameSpace,
    ) -> Option<(NodeId, EdgeCertainty)> {
        match self.unbound_value(site, name, space) {
            ExprValue::Def(id, _) => Some((id, EdgeCertainty::Imported)),
            ExprValue::Method(id, _) => Some((id, EdgeCertainty::SelfMember)),
            _ => None,
        }
    }

    pub(super) fn unbound_value(&self, site: &ExprPlace, name: &str, space: NameSpace) -> ExprValue {
        let Some(facts) = self.store.facts_at(site.file) else { return ExprValue::Unknown };
        if facts.language.implies_this()
            && let Some(member) = self.of_class_around(site, facts, name, space)
        {
            return member;
        }
        if matches!(facts.language, CodeLanguage::C | CodeLanguage::Cpp) {
            let linked = self.resolve_neighbour(site.file, name);
            if linked != ExprValue::Unknown {
                return linked;
            }
        }
        if matches!(facts.language, CodeLanguage::Java | CodeLanguage::CSharp) {
            // A name of the package takes precedence over star imports.
            let beside = self.resolve_neighbour(site.file, name);
            if beside != ExprValue::Unknown {
                return beside;
            }
        }
        // With two star imports, the name may come from either.
        let mut given = Vec::new();
        for (number, import) in (0..).zip(&facts.imports) {
            let here = import.from.get() <= site.byte && site.byte < import.to.get();
            let barred = module_range(facts, site.byte).is_some_and(|(from, _)| import.from.get() < from);
            if here && !barred && facts.text_of(import.name) == "*" && (!facts.language.is_ecma() || !import.reexport) {
                let value = self.star_of(site.file, number, name, space);
                if value != ExprValue::Unknown && !self.only_declared(&value) {
                    given.push(value);
                }
            }
        }
        if !given.is_empty() {
            return one_of(given);
        }
        match facts.language {
            CodeLanguage::Rust if space == NameSpace::Macro => self.macro_of_crate(site.file, name),
            CodeLanguage::Go | CodeLanguage::Php => self.resolve_neighbour(site.file, name),
            _ => ExprValue::Unknown,
        }
    }

    /// Returns true if a C function is only declared, without a body. The linker then decides which definition is used.
    fn only_declared(&self, value: &ExprValue) -> bool {
        let ExprValue::Def(id, _) = value else { return false };
        let Some(facts) = self.store.facts_at(id.file) else { return false };
        matches!(facts.language, CodeLanguage::C | CodeLanguage::Cpp)
            && facts.nodes.get(id.node as usize).is_some_and(|node| node.flags & flag::BODILESS != 0)
    }

    /// Finds a member of the class around a position, or of an outer class.
    fn of_class_around(&self, site: &ExprPlace, facts: &FileFacts, name: &str, space: NameSpace) -> Option<ExprValue> {
        let mut class = self.class_here(site, facts)?;
        // True after a class with an unknown base, which may have the member too. From then on, a method of an outer
        // class is not certain. A nested class is.
        let mut may_be_inherited = false;
        for _ in 0..8 {
            let this = ExprValue::Of(class, super::no_args());
            if let Some(member) = self.find_member(site, &this, name, space) {
                return Some(member).filter(|member| !may_be_inherited || matches!(member, ExprValue::Def(..)));
            }
            if facts.language == CodeLanguage::Ruby {
                return None;
            }
            may_be_inherited |= self.extends_unknown(class);
            match owner_of(self.store.facts_at(class.file)?, class.node) {
                NodeOwner::Node(outer) => class.node = outer.get(),
                _ => return None,
            }
        }
        None
    }

    /// Finds a macro of the crate. A macro is visible in its own file. It is visible in the whole crate if it is
    /// exported, or if its file is the root or a module that exports its macros.
    fn macro_of_crate(&self, file: u32, name: &str) -> ExprValue {
        let here = self.crate_roots(file);
        let named = self.nodes_named(name);
        let mut found = named.iter().map(|&(file, node)| NodeId { file, node }).filter(|id| {
            let Some(facts) = self.store.facts_at(id.file) else { return false };
            let Some(node) = facts.nodes.get(id.node as usize) else { return false };
            // A macro inside a function is visible only in that function.
            let inside = match node.owner {
                NodeOwner::Node(owner) => {
                    facts.nodes.get(owner.get() as usize).is_some_and(|owner| owner.kind != NodeKind::Module)
                }
                _ => false,
            };
            let shown = id.file == file || node.flags & flag::DEFAULT != 0 || self.passes_macros(id.file);
            node.kind == NodeKind::Macro
                && !inside
                && shown
                && self.crate_roots(id.file).iter().any(|root| here.contains(root))
        });
        match (found.next(), found.next()) {
            (Some(id), None) => ExprValue::Def(id, super::no_args()),
            _ => ExprValue::Unknown,
        }
    }

    /// Returns true if the macros of a file are visible outside of it.
    fn passes_macros(&self, file: u32) -> bool {
        let roots = self.crate_roots(file);
        let Some(path) = self.store.file_at(file).map(|file| file.path.clone()) else { return false };
        roots.contains(&file)
            || roots.iter().filter_map(|root| self.store.facts_at(*root)).any(|facts| {
                let declared = facts.imports.iter().filter(|import| facts.text_of(import.alias) == module_stem(&path));
                declared
                    .filter(|import| import.reexport)
                    .any(|import| facts.text_of(import.module).starts_with("self::"))
            })
    }
}

/// Returns those of several bindings in the same scope that may apply.
fn of_several(facts: &FileFacts, site: &ExprPlace, mut all: Vec<NameBinding>, space: NameSpace) -> Vec<NameBinding> {
    all.sort_by_key(|binding| binding.value_place.max(node_start(facts, binding)));
    if facts.language == CodeLanguage::Python {
        return follow_flow(facts, site, all);
    }
    if facts.language.is_ecma() {
        if let Some(anew) =
            all.iter().find(|b| b.sure == 0 && matches!(b.bound, BindingTarget::Value(value) if value.is_none()))
        {
            return vec![*anew];
        }
        // Overloads count as one function. A definition takes precedence over a plain value with the same name.
        let nodes: Vec<NameBinding> =
            all.iter().filter(|b| matches!(b.bound, BindingTarget::Node(_))).copied().collect();
        return nodes.first().or(all.last()).copied().into_iter().collect();
    }
    if space == NameSpace::Type && all.iter().all(|b| matches!(b.bound, BindingTarget::Node(_))) {
        // The definitions are twins for different builds. Blocks add their methods to all of them, so the first one is
        // enough.
        all.truncate(1);
    }
    all
}

/// Returns the range of the innermost module inside a file. Returns `None` for languages in which a module can use
/// outer names.
pub(super) fn module_range(facts: &FileFacts, byte: u32) -> Option<(u32, u32)> {
    if facts.language != CodeLanguage::Rust {
        return None;
    }
    let modules = facts.nodes.iter().filter(|node| node.kind == NodeKind::Module);
    modules
        .filter(|node| node.span.byte <= byte && byte < node.span.end)
        .max_by_key(|node| node.span.byte)
        .map(|node| (node.span.byte, node.span.end))
}

/// Returns the start of the method around a position. Returns `None` for languages in which a method can use outer
/// variables.
fn method_start(facts: &FileFacts, byte: u32) -> Option<u32> {
    if !matches!(facts.language, CodeLanguage::Ruby | CodeLanguage::Php) {
        return None;
    }
    let is_method = |node: &CodeNode| matches!(node.kind, NodeKind::Function | NodeKind::Method);
    let node = |number: u32| facts.nodes.get(number as usize);
    node_around(facts, byte, |number| node(number).is_some_and(is_method)).and_then(node).map(|node| node.span.byte)
}

fn node_start(facts: &FileFacts, binding: &NameBinding) -> u32 {
    match binding.bound {
        BindingTarget::Node(node) => facts.nodes.get(node as usize).map_or(0, |node| node.span.byte),
        BindingTarget::Import(import) => facts.imports.get(import as usize).map_or(0, |import| import.line.get()),
        _ => binding.value_place,
    }
}

/// Returns true if a binding is of the kind that the lookup wants.
fn binding_fits(facts: &FileFacts, binding: &NameBinding, space: NameSpace) -> bool {
    if facts.language == CodeLanguage::Python {
        return true;
    }
    match binding.bound {
        BindingTarget::Import(_) => true,
        BindingTarget::TypeParam(..) => space == NameSpace::Type,
        BindingTarget::Value(_) | BindingTarget::Param(..) => matches!(space, NameSpace::Value | NameSpace::Called),
        BindingTarget::Node(node) => {
            facts.nodes.get(node as usize).is_some_and(|node| kind_fits(facts.language, node.kind, space))
        }
    }
}

pub(super) fn kind_fits(language: CodeLanguage, kind: NodeKind, space: NameSpace) -> bool {
    match space {
        NameSpace::Macro => kind == NodeKind::Macro,
        NameSpace::Type => match kind {
            NodeKind::Class | NodeKind::Trait | NodeKind::Type | NodeKind::Module => true,
            NodeKind::Function | NodeKind::Constant => language == CodeLanguage::Python,
            _ => false,
        },
        NameSpace::Value | NameSpace::Called => match kind {
            NodeKind::Macro => matches!(language, CodeLanguage::C | CodeLanguage::Cpp),
            NodeKind::Trait | NodeKind::Type => !language.is_ecma(),
            _ => true,
        },
    }
}

/// Follows Python's rule that names are bound at run time. Keeps the last certain binding, and all possible bindings
/// after it.
fn follow_flow(facts: &FileFacts, site: &ExprPlace, all: Vec<NameBinding>) -> Vec<NameBinding> {
    let Some(first) = all.first() else { return all };
    let of_file = of_file(first.from, first.to);
    let runs_later = facts.nodes.iter().any(|node| {
        node.kind != NodeKind::Class
            && node.span.byte <= site.byte
            && site.byte < node.span.end
            && (of_file || node.span.byte > first.from)
    });
    if all.iter().all(|binding| matches!(binding.bound, BindingTarget::Node(_))) {
        let whole = without_overloads(facts, all);
        return if runs_later { left_in_the_end(whole) } else { bound_before(facts, site.byte, whole) };
    }
    if of_file && runs_later { all } else { bound_before(facts, site.byte, all) }
}

/// Keeps the bindings that may apply when a statement runs. If none comes before the statement, keeps all of them.
fn bound_before(facts: &FileFacts, byte: u32, all: Vec<NameBinding>) -> Vec<NameBinding> {
    let sure =
        all.iter().rposition(|b| b.value_place < byte && byte < b.sure || matches!(b.bound, BindingTarget::Param(..)));
    // A loop that began after the certain binding may have run later bindings in its body already.
    let begun = all.first().map_or(0, |b| b.from);
    let since = sure.and_then(|sure| all.get(sure)).map_or(begun, |b| b.value_place.max(begun));
    let around = facts.loops.iter().map(|(from, to)| (from.get(), to.get()));
    let again = around.filter(|(from, to)| since <= *from && *from <= byte && byte < *to).map(|(_, to)| to).max();
    let until = again.unwrap_or(byte);
    let before: Vec<NameBinding> =
        all.iter().skip(sure.unwrap_or(0)).filter(|b| b.value_place < until).copied().collect();
    if sure.is_none() && (before.is_empty() || all.iter().any(|b| !matches!(b.bound, BindingTarget::Node(_)))) {
        return all;
    }
    before
}

/// Keeps the bindings that may apply after a module or function has run: the last unconditional one, and all later
/// ones.
pub(super) fn left_in_the_end(mut all: Vec<NameBinding>) -> Vec<NameBinding> {
    let sure = all.iter().rposition(|binding| binding.sure == binding.to);
    all.split_off(sure.unwrap_or(0))
}

/// Removes definitions that only declare an overload.
pub(super) fn without_overloads(facts: &FileFacts, mut all: Vec<NameBinding>) -> Vec<NameBinding> {
    let is_whole = |binding: &NameBinding| match binding.bound {
        BindingTarget::Node(node) => {
            facts.nodes.get(node as usize).is_some_and(|node| node.flags & flag::BODILESS == 0)
        }
        _ => true,
    };
    if all.iter().any(is_whole) {
        all.retain(is_whole);
    } else {
        // In a stub file, all definitions are overloads, so the last one stays.
        all.drain(..all.len().saturating_sub(1));
    }
    all
}

/// Finds the innermost node around an offset for which `wanted` returns true.
pub(super) fn node_around(facts: &FileFacts, byte: u32, wanted: impl Fn(u32) -> bool) -> Option<u32> {
    let inner = (0..).zip(&facts.nodes).filter(|(_, node)| node.span.byte <= byte && byte < node.span.end);
    inner.filter(|(number, _)| wanted(*number)).max_by_key(|(_, node)| node.span.byte).map(|(number, _)| number)
}

/// Returns the owner of a node.
pub(super) fn owner_of(facts: &FileFacts, node: u32) -> NodeOwner {
    facts.nodes.get(node as usize).map_or(NodeOwner::File, |node| node.owner)
}
