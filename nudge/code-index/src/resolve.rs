//! Finds the target of a call by rules that are certain. Without such a rule, the call has no target.
//!
//! The resolver evaluates an expression at its position. It finds names by the bindings around the position, and
//! members by their class or module. An expression has no value if it leads out of the index or is ambiguous. It is not
//! enough that only one node has the called name: such an edge is [`EdgeCertainty::Likely`], and is not returned as
//! certain.

mod class;
mod eval;
mod likely;
mod lookup;
mod memo;
mod module;
mod order;
mod others;
mod outside;
mod paths;
mod rust;
mod twins;

use std::cell::Cell;
use std::rc::Rc;

use crate::facts::{BindingTarget, CallFact, Expr, ExprId, FileFacts, NameId, NodeKind};
use crate::index::{EdgeCertainty, FileStore, NodeId};
use crate::language::CodeLanguage;

/// Largest number of steps in one query. Only hostile code needs more.
const FUEL: u32 = 20_000;
/// Largest depth of nested queries.
const DEPTH_MAX: u32 = 48;

/// A module: a whole file, or a module that is written inside a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ModulePlace {
    pub file: u32,
    pub module: Option<u32>,
}

/// The value of an expression, as far as the index knows it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ExprValue {
    /// The value is unknown.
    Unknown,
    /// The value of the language that means nothing, such as `None` or `null`.
    Null,
    Place(ModulePlace),
    /// A folder that contains modules.
    Folder(Rc<str>),
    /// A class, function or constant itself, with its type arguments.
    Def(NodeId, Args),
    /// A method with its receiver.
    Method(NodeId, Rc<ExprValue>),
    /// An instance of a class, with the type arguments.
    Of(NodeId, Args),
    /// The bases of this class, which `super` means.
    Super(NodeId),
    /// The name of a type, function or module from outside the index, with type arguments.
    OuterType(Rc<str>, Args),
    /// A value from outside the index. It has the name of its type, and type arguments.
    Outer(Rc<str>, Args),
    /// A function without a name. The expression is its result.
    Function(ExprPlace, ExprId),
    /// A function from outside the index that returns this value.
    Giving(Rc<ExprValue>),
    /// A type that is all of these types. `OfAny` is a value of such a type.
    Any(Args),
    OfAny(Args),
}

pub(crate) type Args = Rc<[ExprValue]>;

/// The position of an expression. `this` is the value of `self`, if it is known more exactly than the position says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ExprPlace {
    pub file: u32,
    pub byte: u32,
    pub this: Option<Rc<ExprValue>>,
}

impl ExprPlace {
    pub fn new(file: u32, byte: u32) -> Self {
        Self { file, byte, this: None }
    }
}

/// The kind of name that a lookup wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum NameSpace {
    Value,
    /// A value that code calls.
    Called,
    Type,
    Macro,
}

pub(crate) struct CallResolver<'a> {
    pub store: &'a FileStore,
    fuel: Cell<u32>,
    depth: Cell<u32>,
    memo: memo::ResolverMemo,
}

/// A member of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClassMember {
    Node(NodeId),
    /// A field: its file, its name, and the number of the node that owns it.
    Field(u32, NameId, u32),
    /// Several members have the name, so the target is unclear.
    Unclear,
}

impl<'a> CallResolver<'a> {
    pub fn new(store: &'a FileStore) -> Self {
        Self { store, fuel: Cell::new(FUEL), depth: Cell::new(0), memo: memo::ResolverMemo::default() }
    }

    /// Begins a new query with a full number of steps.
    pub fn reset(&self) {
        self.fuel.set(FUEL);
        self.depth.set(0);
    }

    /// Finds the target of a call; `None` if no rule makes it certain.
    pub fn call(&self, file: u32, call: &CallFact) -> Option<(NodeId, EdgeCertainty)> {
        self.reset();
        let facts = self.store.facts_at(file)?;
        let site = ExprPlace::new(file, call.byte.get());
        let (node, how) = match facts.exprs.get(call.callee)? {
            Expr::Name(name) => self.resolve_bare(&site, facts, name, call)?,
            Expr::SelfType => match self.eval_expr(&site, call.callee, NameSpace::Type) {
                ExprValue::Def(id, _) => (id, EdgeCertainty::SelfMember),
                _ => return None,
            },
            Expr::Member(receiver, name) => self.member_call(&site, facts, receiver, name, false)?,
            Expr::Static(receiver, name) if call.macro_ => {
                match self.exported_macro(&self.eval_expr(&site, receiver, NameSpace::Type), facts.text_of(name))? {
                    ExprValue::Def(id, _) => {
                        (id, if id.file == file { EdgeCertainty::Local } else { EdgeCertainty::Imported })
                    }
                    _ => return None,
                }
            }
            Expr::Static(receiver, name) => self.member_call(&site, facts, receiver, name, true)?,
            _ => return None,
        };
        let kind = self.node_kind(node)?;
        if facts.language == CodeLanguage::Rust && (kind == NodeKind::Macro) != call.macro_ {
            return None;
        }
        (kind != NodeKind::Module).then_some((node, how))
    }

    fn resolve_bare(
        &self,
        site: &ExprPlace,
        facts: &FileFacts,
        name: NameId,
        call: &CallFact,
    ) -> Option<(NodeId, EdgeCertainty)> {
        let space = if call.macro_ { NameSpace::Macro } else { NameSpace::Called };
        let hits = self.lookup_name(site, name, space);
        let mut found = None;
        for hit in &hits {
            let target = match hit.bound {
                BindingTarget::Node(node) => Some((NodeId { file: site.file, node }, EdgeCertainty::Local)),
                BindingTarget::Import(number) => match self.resolve_import(site.file, number, space) {
                    ExprValue::Def(id, _) | ExprValue::Method(id, _) => Some((id, EdgeCertainty::Imported)),
                    _ => None,
                },
                // The local binding hides the outer node that has the same name.
                _ => None,
            };
            match (found, target) {
                (None, Some(target)) => found = Some(target),
                (Some((a, _)), Some((b, _))) if a == b => {}
                _ => return None,
            }
        }
        if found.is_none() && hits.is_empty() {
            found = self.resolve_unbound(site, facts.text_of(name), space);
        }
        found.filter(|(id, _)| self.fits_call(*id))
    }

    /// Returns true if a call can have this node as its target. For example, a macro is not a function, and a type
    /// without values cannot be called.
    fn fits_call(&self, id: NodeId) -> bool {
        self.node_kind(id).is_some_and(|kind| kind != NodeKind::Module && kind != NodeKind::Type)
    }

    fn member_call(
        &self,
        site: &ExprPlace,
        facts: &FileFacts,
        receiver: ExprId,
        name: NameId,
        path: bool,
    ) -> Option<(NodeId, EdgeCertainty)> {
        if self.is_assigned(site, facts, receiver, name) {
            return None;
        }
        let space = if path { NameSpace::Type } else { NameSpace::Value };
        let base = self.eval_expr(site, receiver, space);
        let how = match &base {
            ExprValue::Place(place) if place.file == site.file => EdgeCertainty::Local,
            ExprValue::Place(_) | ExprValue::Folder(_) => EdgeCertainty::Imported,
            ExprValue::Super(_) => EdgeCertainty::SelfMember,
            _ if self.is_this(site, facts, receiver) => EdgeCertainty::SelfMember,
            _ => EdgeCertainty::Typed,
        };
        let found = self.find_member(site, &base, facts.text_of(name), NameSpace::Called)?;
        if !path
            && facts.language == CodeLanguage::Rust
            && outside::is_of_pointers(facts.text_of(name))
            && matches!(base, ExprValue::Of(..))
            && !self.is_plain(site, facts, receiver)
        {
            return None;
        }
        if path
            && facts.language == CodeLanguage::Rust
            && let (ExprValue::Def(class, _), ExprValue::Method(method, _)) = (&base, &found)
            && self.node_kind(*class) == Some(NodeKind::Trait)
            && self.has_bodies(*method)
            && how != EdgeCertainty::SelfMember
        {
            return None;
        }
        match found {
            ExprValue::Def(id, _) | ExprValue::Method(id, _) => Some((id, how)),
            _ => None,
        }
        .filter(|(id, _)| self.fits_call(*id))
    }

    /// Returns true if a visible assignment, such as `a.f = ..`, replaces the member `name` of the receiver.
    fn is_assigned(&self, site: &ExprPlace, facts: &FileFacts, receiver: ExprId, name: NameId) -> bool {
        let Some(Expr::Name(variable)) = facts.exprs.get(receiver) else { return false };
        facts.language == CodeLanguage::Python
            && facts
                .names
                .find(&crate::language::member_name(facts.text_of(variable), facts.text_of(name)))
                .is_some_and(|member| !self.lookup_name(site, member, NameSpace::Value).is_empty())
    }

    /// Returns true if the expression is `self`, or means the class around it.
    fn is_this(&self, site: &ExprPlace, facts: &FileFacts, expr: ExprId) -> bool {
        match facts.exprs.get(expr) {
            Some(Expr::This | Expr::SelfType | Expr::Super) => true,
            Some(Expr::Name(name)) => {
                self.lookup_name(site, name, NameSpace::Value).first().is_some_and(|hit| match hit.bound {
                    BindingTarget::Value(value) => matches!(facts.exprs.get(value), Some(Expr::This | Expr::SelfType)),
                    _ => false,
                })
            }
            _ => false,
        }
    }

    /// Returns all nodes with this name, as pairs of file and node number.
    fn nodes_named(&self, name: &str) -> Rc<[(u32, u32)]> {
        if let Some(found) = self.memo.named.borrow().get(name) {
            return found.clone();
        }
        let found: Rc<[(u32, u32)]> = self.store.nodes_named(name).into();
        self.memo.named.borrow_mut().insert(name.into(), found.clone());
        found
    }

    pub fn node_kind(&self, id: NodeId) -> Option<NodeKind> {
        Some(self.store.facts_at(id.file)?.nodes.get(id.node as usize)?.kind)
    }

    fn file_language(&self, file: u32) -> Option<CodeLanguage> {
        Some(self.store.facts_at(file)?.language)
    }

    /// Runs a nested query if steps are left. Otherwise returns `otherwise`.
    fn run_with_fuel<T>(&self, otherwise: T, run: impl FnOnce() -> T) -> T {
        let (fuel, depth) = (self.fuel.get(), self.depth.get());
        if fuel == 0 || depth >= DEPTH_MAX {
            self.memo.note_cut();
            return otherwise;
        }
        self.fuel.set(fuel - 1);
        self.depth.set(depth + 1);
        let out = run();
        self.depth.set(depth);
        out
    }
}

fn no_args() -> Args {
    Rc::from([])
}
