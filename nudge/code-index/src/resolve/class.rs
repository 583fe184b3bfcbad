//! Finds the members of classes, of their bases, of modules, and of values from outside the index.

use std::rc::Rc;

use crate::facts::{ExprId, FileFacts, NameId, NodeKind, NodeOwner, flag};
use crate::index::NodeId;
use crate::language::CodeLanguage;

use super::lookup::node_around;
use super::{CallResolver, ClassMember, ExprPlace, ExprValue, ModulePlace, NameSpace, eval::one_of, outside};

/// A query for a member of a class.
pub(super) struct MemberQuery<'a> {
    pub name: &'a str,
    pub space: NameSpace,
    /// True for a member of the class itself, and false for a member of an instance.
    pub of_type: bool,
    /// The file and the offset of the code that uses the member.
    pub from: Option<(u32, u32)>,
}

/// Largest number of levels of bases that a search goes up.
const BASES_MAX: u32 = 8;

impl CallResolver<'_> {
    /// Finds a member of a value or of a module; `None` if there is none.
    pub(super) fn find_member(
        &self,
        site: &ExprPlace,
        base: &ExprValue,
        name: &str,
        space: NameSpace,
    ) -> Option<ExprValue> {
        self.run_with_fuel(None, || match base {
            ExprValue::Place(place)
                if name == "super" && self.file_language(place.file) == Some(CodeLanguage::Rust) =>
            {
                self.rust_parent(*place).map(ExprValue::Place)
            }
            ExprValue::Place(place) => Some(self.resolve_export(*place, name, space, Some(site.file))),
            ExprValue::Folder(folder) => Some(self.in_folder(folder, name)),
            ExprValue::Def(id, _) if self.node_kind(*id) == Some(NodeKind::Constant) => {
                if let Some(member) = self
                    .own_member(*id, &MemberQuery { name, space, of_type: false, from: Some((site.file, site.byte)) })
                {
                    return Some(self.take_member(member, base, space));
                }
                let value = self.constant_value(*id);
                self.find_member(site, &value, name, space)
            }
            ExprValue::Def(id, _) if self.node_kind(*id) == Some(NodeKind::Type) => match self.instance_of(base) {
                ExprValue::Unknown => None,
                ExprValue::Of(class, _) if class == *id => self.of_class(site, *id, base, name, space),
                ExprValue::Of(class, args) => self.find_member(site, &ExprValue::Def(class, args), name, space),
                ExprValue::Outer(type_name, args) => {
                    self.find_member(site, &ExprValue::OuterType(type_name, args), name, space)
                }
                other => self.find_member(site, &other, name, space),
            },
            ExprValue::Def(id, args) if name == "new" && self.file_language(id.file) == Some(CodeLanguage::Ruby) => {
                Some(ExprValue::Giving(Rc::new(ExprValue::Of(*id, args.clone()))))
            }
            ExprValue::Def(id, _) | ExprValue::Of(id, _) => match self.node_kind(*id)? {
                NodeKind::Function | NodeKind::Method => None,
                _ => self.of_class(site, *id, base, name, space),
            },
            ExprValue::Super(id) => {
                let this = Rc::new(ExprValue::Of(*id, super::no_args()));
                let member = self.of_bases(
                    *id,
                    &MemberQuery { name, space, of_type: false, from: Some((site.file, site.byte)) },
                    BASES_MAX,
                )?;
                Some(self.take_member(member, &this, space))
            }
            ExprValue::Any(all) | ExprValue::OfAny(all) => {
                let value = matches!(base, ExprValue::OfAny(_));
                all.iter().find_map(|alternative| {
                    let resolved = if value { self.instance_of(alternative) } else { alternative.clone() };
                    self.find_member(site, &resolved, name, space)
                })
            }
            ExprValue::Outer(type_name, args) => {
                outside::member_value(self.file_language(site.file)?, type_name, args, name)
                    .or_else(|| Some(ExprValue::OuterType("?".into(), super::no_args())))
            }
            ExprValue::OuterType(_, _) => Some(ExprValue::OuterType(name.into(), super::no_args())),
            _ => None,
        })
    }

    fn of_class(
        &self,
        site: &ExprPlace,
        id: NodeId,
        base: &ExprValue,
        name: &str,
        space: NameSpace,
    ) -> Option<ExprValue> {
        let from = Some((site.file, site.byte));
        let member = self.class_member(
            id,
            &MemberQuery { name, space, of_type: matches!(base, ExprValue::Def(..)), from },
            BASES_MAX,
        )?;
        Some(self.take_member(member, base, space))
    }

    /// Returns the value that code gets when it reads a member from a value or class.
    fn take_member(&self, member: ClassMember, base: &ExprValue, space: NameSpace) -> ExprValue {
        match member {
            ClassMember::Unclear => ExprValue::Unknown,
            ClassMember::Node(id) => {
                let Some(node) = self.store.facts_at(id.file).and_then(|facts| facts.nodes.get(id.node as usize))
                else {
                    return ExprValue::Unknown;
                };
                match node.kind {
                    NodeKind::Method | NodeKind::Function if node.flags & flag::PROPERTY != 0 => {
                        self.returned_value(id, Some(&Rc::new(base.clone())))
                    }
                    NodeKind::Method | NodeKind::Function => ExprValue::Method(id, Rc::new(base.clone())),
                    _ => self.definition_value(id),
                }
            }
            ClassMember::Field(file, name, owner) => {
                let Some(facts) = self.store.facts_at(file) else { return ExprValue::Unknown };
                let fields = facts.fields_of(name).iter().filter(|field| field.owner.get() == owner);
                let value = one_of(fields.map(|field| {
                    let site = ExprPlace { file, byte: field.value_place.get(), this: Some(Rc::new(base.clone())) };
                    self.eval_expr(&site, field.value, NameSpace::Value)
                }));
                match value {
                    // The target of the call is the field, because the field may get another function. Only the result
                    // of the call is known.
                    ExprValue::Def(..) | ExprValue::Method(..) if space == NameSpace::Called => {
                        ExprValue::Giving(Rc::new(self.call_result(&value, facts.language)))
                    }
                    value => value,
                }
            }
        }
    }

    fn class_member(&self, id: NodeId, asked: &MemberQuery<'_>, left: u32) -> Option<ClassMember> {
        self.run_with_fuel(None, || {
            if let Some(member) = self.own_member(id, asked) {
                return Some(if self.is_overloaded(id, member, asked, left) { ClassMember::Unclear } else { member });
            }
            if self.file_language(id.file)? == CodeLanguage::Rust || self.file_language(id.file)? == CodeLanguage::Go {
                match self.implemented(id, asked.name) {
                    super::rust::MethodMatch::One(id) => return Some(ClassMember::Node(id)),
                    super::rust::MethodMatch::Several => return self.twin_method(id, asked).map(ClassMember::Node),
                    super::rust::MethodMatch::None => {}
                }
            }
            self.of_bases(id, asked, left)
        })
    }

    /// Finds a member that the body of the class itself defines.
    pub(super) fn own_member(&self, id: NodeId, asked: &MemberQuery<'_>) -> Option<ClassMember> {
        let facts = self.store.facts_at(id.file)?;
        let name = facts.names.find(asked.name)?;
        let own = facts.nodes_of(name).filter(|(_, node)| node.owner == NodeOwner::Node(id.node.into()));
        let mut found = own.filter(|(_, node)| {
            // A definition inside a method is not a member. A static member belongs to the class and not to its
            // instances.
            let fits = !facts.language.is_ecma() || (node.flags & flag::STATIC != 0) == asked.of_type;
            node.kind != NodeKind::Function && (fits || node.flags & flag::STATIC == 0)
        });
        let first = found.next();
        // If a field and a method may have the same name, a call means the method.
        let called = facts.language.has_overloads() && asked.space == NameSpace::Called;
        let field = facts.fields_of(name).iter().find(|field| field.owner.get() == id.node && !called);
        match (first, field) {
            (None, None) => None,
            // In an instance, an assigned field hides the method of the class, so the target is unclear.
            (Some((_, node)), Some(_))
                if (facts.language == CodeLanguage::Python || facts.language.is_ecma())
                    && node.kind == NodeKind::Method
                    && node.flags & flag::PROPERTY == 0 =>
            {
                Some(ClassMember::Unclear)
            }
            (Some((number, node)), _) => {
                let mut chosen = number;
                if facts.language == CodeLanguage::Python && node.flags & flag::PROPERTY == 0 {
                    // An overload precedes the function that it declares. Twins, which are definitions for different
                    // builds, have different conditions.
                    let all: Vec<_> = std::iter::once((number, node)).chain(found).collect();
                    let sure = all.iter().rposition(|(_, node)| node.flags & flag::CONDITIONAL == 0);
                    let left = &all[sure.unwrap_or(0)..];
                    let [(only, _)] = left else { return Some(ClassMember::Unclear) };
                    chosen = *only;
                } else if facts.language.has_overloads() && found.next().is_some() {
                    // Only the arguments decide which overload is called.
                    return Some(ClassMember::Unclear);
                }
                Some(ClassMember::Node(NodeId { file: id.file, node: chosen }))
            }
            (None, Some(field)) => Some(ClassMember::Field(id.file, name, field.owner.get())),
        }
    }

    /// Returns true if a base has a method with the same name and another number of parameters. The arguments then
    /// decide the target.
    fn is_overloaded(&self, id: NodeId, member: ClassMember, asked: &MemberQuery<'_>, left: u32) -> bool {
        let params = |id: NodeId| {
            let (from, to) = self.store.facts_at(id.file)?.nodes.get(id.node as usize)?.params;
            Some(to.get().saturating_sub(from.get()))
        };
        matches!(self.file_language(id.file), Some(CodeLanguage::Java | CodeLanguage::CSharp))
            && asked.space == NameSpace::Called
            && match (member, self.of_bases(id, asked, left)) {
                (ClassMember::Node(own), Some(ClassMember::Node(base))) => params(own) != params(base),
                (_, Some(ClassMember::Unclear)) => true,
                _ => false,
            }
    }

    /// Returns true if a class extends an unknown class, which may have any member. The unknown interfaces of a Java
    /// class do not count, because code hardly ever calls their members by a bare name.
    pub(super) fn extends_unknown(&self, id: NodeId) -> bool {
        let mut id = id;
        for _ in 0..BASES_MAX {
            let Some(facts) = self.store.facts_at(id.file) else { return false };
            let extends = facts.nodes.get(id.node as usize).is_some_and(|node| node.flags & flag::EXTENDS != 0);
            let java = facts.language == CodeLanguage::Java;
            match self.list_bases(id).into_iter().next() {
                _ if java && !extends => return false,
                None => return false,
                Some(ExprValue::Def(base, _) | ExprValue::Of(base, _)) if base != id => id = base,
                Some(_) => return true,
            }
        }
        true
    }

    fn of_bases(&self, id: NodeId, asked: &MemberQuery<'_>, left: u32) -> Option<ClassMember> {
        if self.file_language(id.file)? == CodeLanguage::Python {
            return self.find_inherited(id, asked);
        }
        let left = left.checked_sub(1)?;
        self.list_bases(id).into_iter().find_map(|base| match base {
            ExprValue::Def(base, _) | ExprValue::Of(base, _) if base != id => self.class_member(base, asked, left),
            _ => None,
        })
    }

    /// Lists the bases of a class. A TypeScript interface has the bases of all its declarations.
    pub(super) fn list_bases(&self, id: NodeId) -> Vec<ExprValue> {
        let Some(facts) = self.store.facts_at(id.file) else { return Vec::new() };
        let Some(node) = facts.nodes.get(id.node as usize) else { return Vec::new() };
        let site = ExprPlace::new(id.file, node.span.byte);
        let bases = facts.bases_of(node);
        bases.iter().map(|base| self.resolve_base(&site, *base)).collect()
    }

    fn resolve_base(&self, site: &ExprPlace, base: ExprId) -> ExprValue {
        let value = self.eval_expr(site, base, NameSpace::Type);
        match value {
            ExprValue::Unknown => self.eval_expr(site, base, NameSpace::Value),
            ExprValue::Def(id, _) if self.node_kind(id) == Some(NodeKind::Type) => self.instance_of(&value),
            ExprValue::Def(id, _) if self.node_kind(id) == Some(NodeKind::Constant) => self.constant_value(id),
            other => other,
        }
    }

    /// Returns the class that contains a position. In a block of methods, returns the type of the block.
    pub(super) fn class_here(&self, site: &ExprPlace, facts: &FileFacts) -> Option<NodeId> {
        let holds = |number: u32| {
            facts.nodes.get(number as usize).is_some_and(|node| match node.kind {
                NodeKind::Class | NodeKind::Trait => true,
                // In ECMAScript, an object with methods counts as a class.
                NodeKind::Constant | NodeKind::Type => facts.language.is_ecma(),
                _ => false,
            })
        };
        let class = node_around(facts, site.byte, holds);
        let block =
            (facts.impls.iter()).filter(|block| block.from <= site.byte && site.byte < block.to).max_by_key(|b| b.from);
        let start = class.and_then(|class| facts.nodes.get(class as usize)).map(|node| node.span.byte);
        match block {
            Some(block) if start.is_none_or(|start| start < block.from) => {
                let here = ExprPlace::new(site.file, block.from);
                match self.eval_expr(&here, block.self_type, NameSpace::Type) {
                    ExprValue::Def(id, _) => Some(id),
                    _ => None,
                }
            }
            _ => class.map(|node| NodeId { file: site.file, node }),
        }
    }

    /// Returns the enum that has the variant.
    pub(super) fn enum_of(&self, id: NodeId) -> ExprValue {
        match self.store.facts_at(id.file).map(|facts| super::lookup::owner_of(facts, id.node)) {
            Some(NodeOwner::Node(node)) => ExprValue::Of(NodeId { file: id.file, node: node.get() }, super::no_args()),
            _ => ExprValue::Unknown,
        }
    }

    /// Returns the value of a pytest fixture, for a parameter with the name of the fixture.
    pub(super) fn fixture_value(&self, file: u32, node: u32, name: &str) -> ExprValue {
        match self.fixture_node(file, node, name) {
            Some(id) => self.returned_value(id, None),
            None => ExprValue::Unknown,
        }
    }

    /// Finds the fixture that a parameter of a test or fixture names. It is in the same file, or in a `conftest.py` of
    /// a folder around it.
    pub fn fixture_node(&self, file: u32, node: u32, name: &str) -> Option<NodeId> {
        let here = self.store.file_at(file)?;
        let asks = here.facts.nodes.get(node as usize)?;
        if here.facts.language != CodeLanguage::Python || asks.flags & (flag::TEST | flag::FIXTURE) == 0 {
            return None;
        }
        let same = asks.name == here.facts.names.find(name).unwrap_or(NameId::NONE);
        let own = self.fixture_of(file, name).filter(|_| !same);
        own.or_else(|| {
            let mut folder = here.path.rsplit_once('/').map_or("", |(folder, _)| folder);
            loop {
                let path = if folder.is_empty() { "conftest.py".to_owned() } else { format!("{folder}/conftest.py") };
                if let Some(found) =
                    self.store.slot_of(&path).filter(|f| *f != file).and_then(|f| self.fixture_of(f, name))
                {
                    return Some(found);
                }
                if folder.is_empty() {
                    return None;
                }
                folder = folder.rsplit_once('/').map_or("", |(folder, _)| folder);
            }
        })
    }

    fn fixture_of(&self, file: u32, name: &str) -> Option<NodeId> {
        let facts = self.store.facts_at(file)?;
        let name = facts.names.find(name)?;
        let mut all = facts.nodes_of(name).filter(|(_, node)| node.flags & flag::FIXTURE != 0);
        let (node, _) = all.next()?;
        all.next().is_none().then_some(NodeId { file, node })
    }

    /// Finds a name in the folder of a Python package.
    fn in_folder(&self, folder: &str, name: &str) -> ExprValue {
        match self.python_module(&format!("{folder}/{name}")) {
            Some(value) => value,
            None => self.in_go_package(folder, name),
        }
    }

    pub(super) fn place_of(file: u32) -> ExprValue {
        ExprValue::Place(ModulePlace { file, module: None })
    }
}
