//! Members: of classes and their bases, of modules, and of values from outside.

use std::rc::Rc;

use crate::facts::{ExprId, FileFacts, Kind, Name, Owner, flag};
use crate::index::NodeId;
use crate::language::Language;

use super::lookup::around;
use super::{At, Member, Place, Resolver, Space, Val, eval::one_of, outside};

/// A question for a member.
pub(super) struct Asked<'a> {
    pub name: &'a str,
    pub space: Space,
    /// Is true for the class itself, not a value of it.
    pub of_type: bool,
    /// The file and the byte where it is asked for.
    pub from: Option<(u32, u32)>,
}

/// Bases of bases.
const BASES_MAX: u32 = 8;

impl Resolver<'_> {
    /// A member of something.
    pub(super) fn member(&self, at: &At, base: &Val, name: &str, space: Space) -> Option<Val> {
        self.deeper(None, || match base {
            Val::Place(place) if name == "super" && self.language(place.file) == Some(Language::Rust) => {
                self.rust_parent(*place).map(Val::Place)
            }
            Val::Place(place) => Some(self.exported(*place, name, space, Some(at.file))),
            Val::Folder(folder) => Some(self.in_folder(folder, name)),
            Val::Def(id, _) if self.kind(*id) == Some(Kind::Constant) => {
                if let Some(member) =
                    self.own_member(*id, &Asked { name, space, of_type: false, from: Some((at.file, at.byte)) })
                {
                    return Some(self.taken(member, base, space));
                }
                let value = self.constant(*id);
                self.member(at, &value, name, space)
            }
            Val::Def(id, _) if self.kind(*id) == Some(Kind::Type) => match self.instance(base) {
                Val::Unknown => None,
                Val::Of(of, _) if of == *id => self.of_class(at, *id, base, name, space),
                Val::Of(of, args) => self.member(at, &Val::Def(of, args), name, space),
                Val::Outer(of, args) => self.member(at, &Val::OuterType(of, args), name, space),
                other => self.member(at, &other, name, space),
            },
            Val::Def(id, args) if name == "new" && self.language(id.file) == Some(Language::Ruby) => {
                Some(Val::Giving(Rc::new(Val::Of(*id, args.clone()))))
            }
            Val::Def(id, _) | Val::Of(id, _) => match self.kind(*id)? {
                Kind::Function | Kind::Method => None,
                _ => self.of_class(at, *id, base, name, space),
            },
            Val::Super(id) => {
                let this = Rc::new(Val::Of(*id, super::no_args()));
                let member = self.of_bases(
                    *id,
                    &Asked { name, space, of_type: false, from: Some((at.file, at.byte)) },
                    BASES_MAX,
                )?;
                Some(self.taken(member, &this, space))
            }
            Val::Any(all) | Val::OfAny(all) => {
                let value = matches!(base, Val::OfAny(_));
                all.iter().find_map(|one| {
                    let one = if value { self.instance(one) } else { one.clone() };
                    self.member(at, &one, name, space)
                })
            }
            Val::Outer(of, args) => outside::member(self.language(at.file)?, of, args, name)
                .or_else(|| Some(Val::OuterType("?".into(), super::no_args()))),
            Val::OuterType(_, _) => Some(Val::OuterType(name.into(), super::no_args())),
            _ => None,
        })
    }

    fn of_class(&self, at: &At, id: NodeId, base: &Val, name: &str, space: Space) -> Option<Val> {
        let from = Some((at.file, at.byte));
        let member =
            self.class_member(id, &Asked { name, space, of_type: matches!(base, Val::Def(..)), from }, BASES_MAX)?;
        Some(self.taken(member, base, space))
    }

    /// A member as it is got from a value or class.
    fn taken(&self, member: Member, base: &Val, space: Space) -> Val {
        match member {
            Member::Unclear => Val::Unknown,
            Member::Node(id) => {
                let Some(node) = self.store.facts(id.file).and_then(|facts| facts.nodes.get(id.node as usize)) else {
                    return Val::Unknown;
                };
                match node.kind {
                    Kind::Method | Kind::Function if node.flags & flag::PROPERTY != 0 => {
                        self.returned(id, Some(&Rc::new(base.clone())))
                    }
                    Kind::Method | Kind::Function => Val::Method(id, Rc::new(base.clone())),
                    _ => self.definition(id),
                }
            }
            Member::Field(file, name, owner) => {
                let Some(facts) = self.store.facts(file) else { return Val::Unknown };
                let fields = facts.fields_of(name).iter().filter(|field| field.owner.get() == owner);
                let value = one_of(fields.map(|field| {
                    let at = At { file, byte: field.at.get(), this: Some(Rc::new(base.clone())) };
                    self.eval(&at, field.value, Space::Value)
                }));
                match value {
                    // The call is of the field; the function that it holds may change.
                    Val::Def(..) | Val::Method(..) if space == Space::Called => {
                        Val::Giving(Rc::new(self.result(&value, facts.language)))
                    }
                    value => value,
                }
            }
        }
    }

    fn class_member(&self, id: NodeId, asked: &Asked<'_>, left: u32) -> Option<Member> {
        self.deeper(None, || {
            if let Some(member) = self.own_member(id, asked) {
                return Some(if self.is_overloaded(id, member, asked, left) { Member::Unclear } else { member });
            }
            if self.language(id.file)? == Language::Rust || self.language(id.file)? == Language::Go {
                match self.implemented(id, asked.name) {
                    super::rust::Found::One(id) => return Some(Member::Node(id)),
                    super::rust::Found::Several => return self.twin_method(id, asked).map(Member::Node),
                    super::rust::Found::None => {}
                }
            }
            self.of_bases(id, asked, left)
        })
    }

    /// A member of the class's own body.
    pub(super) fn own_member(&self, id: NodeId, asked: &Asked<'_>) -> Option<Member> {
        let facts = self.store.facts(id.file)?;
        let name = facts.names.find(asked.name)?;
        let own = facts.nodes_of(name).filter(|(_, node)| node.owner == Owner::Node(id.node.into()));
        let mut found = own.filter(|(_, node)| {
            // A definition in a method is not a member; a static member belongs to the class alone.
            let fits = !facts.language.is_ecma() || (node.flags & flag::STATIC != 0) == asked.of_type;
            node.kind != Kind::Function && (fits || node.flags & flag::STATIC == 0)
        });
        let first = found.next();
        // If a field and a method may share a name, a call means the method.
        let called = facts.language.overloads() && asked.space == Space::Called;
        let field = facts.fields_of(name).iter().find(|field| field.owner.get() == id.node && !called);
        match (first, field) {
            (None, None) => None,
            // A value has its own member: an assigned member comes before one of the class.
            (Some((_, node)), Some(_))
                if (facts.language == Language::Python || facts.language.is_ecma())
                    && node.kind == Kind::Method
                    && node.flags & flag::PROPERTY == 0 =>
            {
                Some(Member::Unclear)
            }
            (Some((number, node)), _) => {
                let mut chosen = number;
                if facts.language == Language::Python && node.flags & flag::PROPERTY == 0 {
                    // Overloads come before the function they declare, twins in other branches beside it.
                    let all: Vec<_> = std::iter::once((number, node)).chain(found).collect();
                    let sure = all.iter().rposition(|(_, node)| node.flags & flag::CONDITIONAL == 0);
                    let left = &all[sure.unwrap_or(0)..];
                    let [(one, _)] = left else { return Some(Member::Unclear) };
                    chosen = *one;
                } else if facts.language.overloads() && found.next().is_some() {
                    // The arguments decide which of them is called.
                    return Some(Member::Unclear);
                }
                Some(Member::Node(NodeId { file: id.file, node: chosen }))
            }
            (None, Some(field)) => Some(Member::Field(id.file, name, field.owner.get())),
        }
    }

    /// Returns true if a base has a method of the name with another number of parameters: then the arguments decide.
    fn is_overloaded(&self, id: NodeId, member: Member, asked: &Asked<'_>, left: u32) -> bool {
        let params = |id: NodeId| {
            let (from, to) = self.store.facts(id.file)?.nodes.get(id.node as usize)?.params;
            Some(to.get().saturating_sub(from.get()))
        };
        matches!(self.language(id.file), Some(Language::Java | Language::CSharp))
            && asked.space == Space::Called
            && match (member, self.of_bases(id, asked, left)) {
                (Member::Node(own), Some(Member::Node(base))) => params(own) != params(base),
                (_, Some(Member::Unclear)) => true,
                _ => false,
            }
    }

    /// Returns true if a class extends an unknown class, which may have any member. Java's interfaces do not count:
    /// their members are hardly ever called by a bare name.
    pub(super) fn extends_unknown(&self, id: NodeId) -> bool {
        let mut id = id;
        for _ in 0..BASES_MAX {
            let Some(facts) = self.store.facts(id.file) else { return false };
            let extends = facts.nodes.get(id.node as usize).is_some_and(|node| node.flags & flag::EXTENDS != 0);
            let java = facts.language == Language::Java;
            match self.bases(id).into_iter().next() {
                _ if java && !extends => return false,
                None => return false,
                Some(Val::Def(base, _) | Val::Of(base, _)) if base != id => id = base,
                Some(_) => return true,
            }
        }
        true
    }

    fn of_bases(&self, id: NodeId, asked: &Asked<'_>, left: u32) -> Option<Member> {
        if self.language(id.file)? == Language::Python {
            return self.inherited(id, asked);
        }
        let left = left.checked_sub(1)?;
        self.bases(id).into_iter().find_map(|base| match base {
            Val::Def(base, _) | Val::Of(base, _) if base != id => self.class_member(base, asked, left),
            _ => None,
        })
    }

    /// The bases of a class; of an interface of TypeScript those of all its declarations.
    pub(super) fn bases(&self, id: NodeId) -> Vec<Val> {
        let Some(facts) = self.store.facts(id.file) else { return Vec::new() };
        let Some(node) = facts.nodes.get(id.node as usize) else { return Vec::new() };
        let at = At::new(id.file, node.span.byte);
        let bases = facts.bases.get(node.bases.0.get() as usize..node.bases.1.get() as usize).unwrap_or_default();
        bases.iter().map(|base| self.base(&at, *base)).collect()
    }

    fn base(&self, at: &At, base: ExprId) -> Val {
        let value = self.eval(at, base, Space::Type);
        match value {
            Val::Unknown => self.eval(at, base, Space::Value),
            Val::Def(id, _) if self.kind(id) == Some(Kind::Type) => self.instance(&value),
            Val::Def(id, _) if self.kind(id) == Some(Kind::Constant) => self.constant(id),
            other => other,
        }
    }

    /// The class, or type of the block of methods, around a place.
    pub(super) fn class_here(&self, at: &At, facts: &FileFacts) -> Option<NodeId> {
        let holds = |number: u32| {
            facts.nodes.get(number as usize).is_some_and(|node| match node.kind {
                Kind::Class | Kind::Trait => true,
                // An object with methods.
                Kind::Constant | Kind::Type => facts.language.is_ecma(),
                _ => false,
            })
        };
        let class = around(facts, at.byte, holds);
        let block =
            (facts.impls.iter()).filter(|block| block.from <= at.byte && at.byte < block.to).max_by_key(|b| b.from);
        let start = class.and_then(|class| facts.nodes.get(class as usize)).map(|node| node.span.byte);
        match block {
            Some(block) if start.is_none_or(|start| start < block.from) => {
                let here = At::new(at.file, block.from);
                match self.eval(&here, block.of, Space::Type) {
                    Val::Def(id, _) => Some(id),
                    _ => None,
                }
            }
            _ => class.map(|node| NodeId { file: at.file, node }),
        }
    }

    /// The enum of a variant.
    pub(super) fn enum_of(&self, id: NodeId) -> Val {
        match self.store.facts(id.file).map(|facts| super::lookup::owner(facts, id.node)) {
            Some(Owner::Node(node)) => Val::Of(NodeId { file: id.file, node: node.get() }, super::no_args()),
            _ => Val::Unknown,
        }
    }

    /// Returns the value of a pytest fixture, for a parameter of its name.
    pub(super) fn fixture(&self, file: u32, node: u32, name: &str) -> Val {
        match self.fixture_node(file, node, name) {
            Some(id) => self.returned(id, None),
            None => Val::Unknown,
        }
    }

    /// The fixture that a parameter of a test or fixture asks for: of the file, or of a `conftest.py` around it.
    pub fn fixture_node(&self, file: u32, node: u32, name: &str) -> Option<NodeId> {
        let here = self.store.file(file)?;
        let asks = here.facts.nodes.get(node as usize)?;
        if here.facts.language != Language::Python || asks.flags & (flag::TEST | flag::FIXTURE) == 0 {
            return None;
        }
        let same = asks.name == here.facts.names.find(name).unwrap_or(Name::NONE);
        let own = self.fixture_of(file, name).filter(|_| !same);
        own.or_else(|| {
            let mut folder = here.path.rsplit_once('/').map_or("", |(folder, _)| folder);
            loop {
                let path = if folder.is_empty() { "conftest.py".to_owned() } else { format!("{folder}/conftest.py") };
                if let Some(found) =
                    self.store.slot(&path).filter(|f| *f != file).and_then(|f| self.fixture_of(f, name))
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
        let facts = self.store.facts(file)?;
        let name = facts.names.find(name)?;
        let mut all = facts.nodes_of(name).filter(|(_, node)| node.flags & flag::FIXTURE != 0);
        let (node, _) = all.next()?;
        all.next().is_none().then_some(NodeId { file, node })
    }

    /// Finds a name in the folder of a package.
    fn in_folder(&self, folder: &str, name: &str) -> Val {
        match self.python_module(&format!("{folder}/{name}")) {
            Some(value) => value,
            None => self.in_go_package(folder, name),
        }
    }

    pub(super) fn place_of(file: u32) -> Val {
        Val::Place(Place { file, module: None })
    }
}
