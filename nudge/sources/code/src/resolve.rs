//! Finds the target of a call: by rules that are certain, or not at all.
//!
//! An expression is evaluated at its place: its names by the bindings around it, its members by their class or module.
//! An expression that leads out of the index or is ambiguous has no value. A call is never resolved because there is
//! only one node of its name (that is [`How::Likely`], and kept apart).

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

use crate::facts::{Bound, Call, Expr, ExprId, FileFacts, Kind, Name};
use crate::index::{How, NodeId, Store};
use crate::language::Language;

/// Steps of one question: more is taken only by code that is made to take more.
const FUEL: u32 = 20_000;
/// Questions within questions.
const DEPTH_MAX: u32 = 48;

/// A module: a file, or one inside a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub file: u32,
    pub module: Option<u32>,
}

/// The known value of an expression.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Val {
    /// Nothing is known.
    Unknown,
    /// Nothing: `None`, `null`.
    Null,
    Place(Place),
    /// A folder that holds modules.
    Folder(Rc<str>),
    /// A class, function or constant itself, with the arguments of its type.
    Def(NodeId, Args),
    /// A method with its receiver.
    Method(NodeId, Rc<Val>),
    /// A value of a class.
    Of(NodeId, Args),
    /// The bases of a class, as `super`.
    Super(NodeId),
    /// A type, function or module from outside, by its name.
    OuterType(Rc<str>, Args),
    /// A value from outside.
    Outer(Rc<str>, Args),
    /// A function without a name, by its result.
    Function(At, ExprId),
    /// A function from outside that gives this.
    Giving(Rc<Val>),
    /// A type that is all of these, or a value of one.
    Any(Args),
    OfAny(Args),
}

pub(crate) type Args = Rc<[Val]>;

/// The place of an expression, and the value of `self` there if it is known better than by the place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct At {
    pub file: u32,
    pub byte: u32,
    pub this: Option<Rc<Val>>,
}

impl At {
    pub fn new(file: u32, byte: u32) -> Self {
        Self { file, byte, this: None }
    }
}

/// The kind of names that a question means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Space {
    Value,
    /// A value that is called.
    Called,
    Type,
    Macro,
}

pub(crate) struct Resolver<'a> {
    pub store: &'a Store,
    fuel: Cell<u32>,
    depth: Cell<u32>,
    memo: memo::Memo,
}

/// A member of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Member {
    Node(NodeId),
    /// The number of a field of the file.
    Field(u32, Name, u32),
    /// There are several of that name.
    Unclear,
}

impl<'a> Resolver<'a> {
    pub fn new(store: &'a Store) -> Self {
        Self { store, fuel: Cell::new(FUEL), depth: Cell::new(0), memo: memo::Memo::default() }
    }

    /// Begins a new question.
    pub fn reset(&self) {
        self.fuel.set(FUEL);
        self.depth.set(0);
    }

    /// Finds the node that a call calls.
    pub fn call(&self, file: u32, call: &Call) -> Option<(NodeId, How)> {
        self.reset();
        let facts = self.store.facts(file)?;
        let at = At::new(file, call.byte.get());
        let (node, how) = match facts.exprs.get(call.callee)? {
            Expr::Name(name) => self.bare(&at, facts, name, call)?,
            Expr::SelfType => match self.eval(&at, call.callee, Space::Type) {
                Val::Def(id, _) => (id, How::SelfMember),
                _ => return None,
            },
            Expr::Member(of, name) => self.member_call(&at, facts, of, name, false)?,
            Expr::Static(of, name) if call.macro_ => {
                match self.exported_macro(&self.eval(&at, of, Space::Type), facts.text(name))? {
                    Val::Def(id, _) => (id, if id.file == file { How::Local } else { How::Imported }),
                    _ => return None,
                }
            }
            Expr::Static(of, name) => self.member_call(&at, facts, of, name, true)?,
            _ => return None,
        };
        let kind = self.kind(node)?;
        if facts.language == Language::Rust && (kind == Kind::Macro) != call.macro_ {
            return None;
        }
        (kind != Kind::Module).then_some((node, how))
    }

    fn bare(&self, at: &At, facts: &FileFacts, name: Name, call: &Call) -> Option<(NodeId, How)> {
        let space = if call.macro_ { Space::Macro } else { Space::Called };
        let hits = self.lookup(at, name, space);
        let mut found = None;
        for hit in &hits {
            let one = match hit.bound {
                Bound::Node(node) => Some((NodeId { file: at.file, node }, How::Local)),
                Bound::Import(number) => match self.imported(at.file, number, space) {
                    Val::Def(id, _) | Val::Method(id, _) => Some((id, How::Imported)),
                    _ => None,
                },
                // A local binding hides the outer node of that name.
                _ => None,
            };
            match (found, one) {
                (None, Some(one)) => found = Some(one),
                (Some((a, _)), Some((b, _))) if a == b => {}
                _ => return None,
            }
        }
        if found.is_none() && hits.is_empty() {
            found = self.unbound(at, facts.text(name), space);
        }
        found.filter(|(id, _)| self.fits_call(*id))
    }

    /// A macro is no function, a type without values cannot be called.
    fn fits_call(&self, id: NodeId) -> bool {
        self.kind(id).is_some_and(|kind| kind != Kind::Module && kind != Kind::Type)
    }

    fn member_call(&self, at: &At, facts: &FileFacts, of: ExprId, name: Name, path: bool) -> Option<(NodeId, How)> {
        if self.is_assigned(at, facts, of, name) {
            return None;
        }
        let space = if path { Space::Type } else { Space::Value };
        let base = self.eval(at, of, space);
        let how = match &base {
            Val::Place(place) if place.file == at.file => How::Local,
            Val::Place(_) | Val::Folder(_) => How::Imported,
            Val::Super(_) => How::SelfMember,
            _ if self.is_this(at, facts, of) => How::SelfMember,
            _ => How::Typed,
        };
        let found = self.member(at, &base, facts.text(name), Space::Called)?;
        if !path
            && facts.language == Language::Rust
            && outside::is_of_pointers(facts.text(name))
            && matches!(base, Val::Of(..))
            && !self.is_plain(at, facts, of)
        {
            return None;
        }
        if path
            && facts.language == Language::Rust
            && let (Val::Def(class, _), Val::Method(method, _)) = (&base, &found)
            && self.kind(*class) == Some(Kind::Trait)
            && self.has_bodies(*method)
            && how != How::SelfMember
        {
            return None;
        }
        match found {
            Val::Def(id, _) | Val::Method(id, _) => Some((id, how)),
            _ => None,
        }
        .filter(|(id, _)| self.fits_call(*id))
    }

    /// Returns true if an assignment in sight replaces a member of a name: `a.f = ..`.
    fn is_assigned(&self, at: &At, facts: &FileFacts, of: ExprId, name: Name) -> bool {
        let Some(Expr::Name(of)) = facts.exprs.get(of) else { return false };
        facts.language == Language::Python
            && facts
                .names
                .find(&crate::language::member(facts.text(of), facts.text(name)))
                .is_some_and(|member| !self.lookup(at, member, Space::Value).is_empty())
    }

    /// Returns true if an expression is `self` or stands for the class around it.
    fn is_this(&self, at: &At, facts: &FileFacts, of: ExprId) -> bool {
        match facts.exprs.get(of) {
            Some(Expr::This | Expr::SelfType | Expr::Super) => true,
            Some(Expr::Name(name)) => self.lookup(at, name, Space::Value).first().is_some_and(|hit| match hit.bound {
                Bound::Value(value) => matches!(facts.exprs.get(value), Some(Expr::This | Expr::SelfType)),
                _ => false,
            }),
            _ => false,
        }
    }

    /// All nodes of a name.
    fn nodes_named(&self, name: &str) -> Rc<[(u32, u32)]> {
        if let Some(found) = self.memo.named.borrow().get(name) {
            return found.clone();
        }
        let found: Rc<[(u32, u32)]> = self.store.nodes_named(name).into();
        self.memo.named.borrow_mut().insert(name.into(), found.clone());
        found
    }

    pub fn kind(&self, id: NodeId) -> Option<Kind> {
        Some(self.store.facts(id.file)?.nodes.get(id.node as usize)?.kind)
    }

    fn language(&self, file: u32) -> Option<Language> {
        Some(self.store.facts(file)?.language)
    }

    /// Runs a question within a question, if there is still fuel.
    fn deeper<T>(&self, otherwise: T, run: impl FnOnce() -> T) -> T {
        let (fuel, depth) = (self.fuel.get(), self.depth.get());
        if fuel == 0 || depth >= DEPTH_MAX {
            self.memo.cut();
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
