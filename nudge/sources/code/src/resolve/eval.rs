//! Evaluates expressions.

use std::rc::Rc;

use crate::facts::{Bound, Expr, ExprId, FileFacts, Kind, Name, Node, Number, flag};
use crate::index::NodeId;
use crate::language::Language;

use super::lookup::around;
use super::{Args, At, Resolver, Space, Val, no_args, outside};

/// Marks a string that is a path only as a type.
pub(super) const QUOTED: Number = Number::NONE;

impl Resolver<'_> {
    /// Evaluates an expression at a place.
    pub(super) fn eval(&self, at: &At, expr: ExprId, space: Space) -> Val {
        self.deeper(Val::Unknown, || match &at.this {
            None => {
                let key = (at.file, expr, at.byte, space);
                self.memo.once(&self.memo.values, key, Val::Unknown, || self.eval_here(at, expr, space))
            }
            Some(_) => self.eval_here(at, expr, space),
        })
    }

    fn eval_here(&self, at: &At, expr: ExprId, space: Space) -> Val {
        let Some(facts) = self.store.facts(at.file) else { return Val::Unknown };
        let id = expr;
        let Some(expr) = facts.exprs.get(id) else { return Val::Unknown };
        match expr {
            Expr::Name(name) => self.named(at, facts, name, space),
            Expr::Member(of, name) | Expr::Static(of, name) => {
                if space == Space::Called && self.is_assigned(at, facts, of, name) {
                    return Val::Unknown;
                }
                let path = matches!(expr, Expr::Static(..));
                let base = self.eval(at, of, if path { Space::Type } else { base_space(facts, of, space) });
                self.member(at, &base, facts.text(name), space).unwrap_or(Val::Unknown)
            }
            Expr::Call(of) => {
                let callee = self.eval(at, of, Space::Called);
                self.result(&callee, facts.language)
            }
            Expr::Of(ty) => {
                if let Some(Expr::TypeOf(value)) = facts.exprs.get(ty) {
                    self.eval(at, value, Space::Value)
                } else {
                    let ty = self.eval(at, ty, Space::Type);
                    self.instance(&ty)
                }
            }
            Expr::Item(of) => {
                let of = self.eval(at, of, Space::Value);
                self.item(&of)
            }
            // A class may return anything for a slice.
            Expr::Slice(of) => match self.eval(at, of, Space::Value) {
                Val::Of(..) => Val::Unknown,
                of => of,
            },
            Expr::Each(of) => {
                let of = self.eval(at, of, Space::Value);
                self.each(&of)
            }
            Expr::Inner(of) => {
                let of = self.eval(at, of, Space::Value);
                outside::inner(&of)
            }
            Expr::Enter(of) => {
                let of = self.eval(at, of, Space::Value);
                self.entered(&of)
            }
            Expr::Either(left, right) => {
                let left = self.held_by(self.eval(at, left, space), space);
                if left == Val::Unknown {
                    return left;
                }
                let right = self.held_by(self.eval(at, right, space), space);
                one_of([left, right])
            }
            Expr::Apply(of, args) => self.applied(at, facts, of, args, space),
            Expr::Args(..) => Val::Any(self.args(at, facts, id, space)),
            // `self::f`
            Expr::This if space == Space::Type && facts.language == Language::Rust => {
                Val::Place(self.place_at(at.file, at.byte))
            }
            Expr::This => self.this(at, facts),
            Expr::SelfType => match self.this(at, facts) {
                Val::Of(id, args) => Val::Def(id, args),
                other => other,
            },
            Expr::Super => match self.class_here(at, facts) {
                Some(id) => Val::Super(id),
                None => Val::Unknown,
            },
            Expr::Null => Val::Null,
            Expr::Literal(name) => match space {
                Space::Type => Val::OuterType(facts.text(name).into(), no_args()),
                _ => Val::Outer(facts.text(name).into(), no_args()),
            },
            Expr::Function(given) => Val::Function(at.clone(), given),
            Expr::TypeOf(value) => match self.eval(at, value, Space::Value) {
                Val::Of(id, args) => Val::Def(id, args),
                Val::Outer(name, args) => Val::OuterType(name, args),
                Val::OfAny(all) => Val::Any(all),
                other @ Val::Null => other,
                _ => Val::Unknown,
            },
            Expr::Part(of, QUOTED) if space == Space::Type => self.eval(at, of, space),
            Expr::Part(_, QUOTED) => Val::Outer("str".into(), no_args()),
            Expr::Part(of, number) => self.part(at, of, number.get()),
        }
    }

    fn named(&self, at: &At, facts: &FileFacts, name: Name, space: Space) -> Val {
        let hits = self.lookup(at, name, space);
        if hits.is_empty() {
            return self.nowhere(at, facts, name, space);
        }
        let values = hits.iter().map(|hit| match hit.bound {
            Bound::Node(node) => self.definition(NodeId { file: at.file, node }),
            Bound::Import(number) => self.imported(at.file, number, space),
            Bound::Value(value) => {
                let inner = At { file: at.file, byte: hit.at, this: at.this.clone() };
                self.eval(&inner, value, if facts.language == Language::Python { space } else { Space::Value })
            }
            Bound::Param(value, node) if value.is_none() => self.fixture(at.file, node, facts.text(name)),
            Bound::Param(value, _) => {
                let inner = At { file: at.file, byte: hit.at, this: at.this.clone() };
                self.eval(&inner, value, Space::Value)
            }
            Bound::TypeParam(bounds, number) => self.type_param(at, facts, hit.from, number, bounds),
        });
        one_of(values)
    }

    /// A name that nothing in the file binds.
    fn nowhere(&self, at: &At, facts: &FileFacts, name: Name, space: Space) -> Val {
        let text = facts.text(name);
        match self.unbound_value(at, text, space) {
            Val::Unknown => {}
            value => return value,
        }
        if facts.language == Language::Rust
            && let Some(place) = self.path_head(at, text)
        {
            return place;
        }
        if outside::known(facts.language, text) {
            return Val::OuterType(text.into(), no_args());
        }
        Val::Unknown
    }

    /// A module inside a file is one; all else is itself.
    pub(super) fn definition(&self, id: NodeId) -> Val {
        match self.kind(id) {
            Some(Kind::Module) => Val::Place(super::Place { file: id.file, module: Some(id.node) }),
            Some(_) => Val::Def(id, no_args()),
            None => Val::Unknown,
        }
    }

    /// Evaluates a type parameter: its argument, or its bounds.
    fn type_param(&self, at: &At, facts: &FileFacts, from: u32, number: u32, bounds: ExprId) -> Val {
        if let Some(Val::Of(id, args) | Val::Def(id, args)) = at.this.as_deref()
            && id.file == at.file
            && let Some(node) = facts.nodes.get(id.node as usize)
            && (node.span.byte == from || impl_begins(facts, from))
            && let Some(arg) = args.get(number as usize)
        {
            return match arg {
                Val::Of(id, args) => Val::Def(*id, args.clone()),
                Val::Outer(name, args) => Val::OuterType(name.clone(), args.clone()),
                other => other.clone(),
            };
        }
        if bounds.is_none() {
            return Val::Unknown;
        }
        let inner = At { file: at.file, byte: from, this: None };
        Val::Any(self.args(&inner, facts, bounds, Space::Type))
    }

    /// The values of a list of arguments.
    pub(super) fn args(&self, at: &At, facts: &FileFacts, list: ExprId, space: Space) -> Args {
        let mut out = Vec::new();
        let mut next = list;
        while let Some(Expr::Args(arg, rest)) = facts.exprs.get(next) {
            if out.len() >= 8 {
                break;
            }
            out.push(self.eval(at, arg, space));
            next = rest;
        }
        out.into()
    }

    fn applied(&self, at: &At, facts: &FileFacts, of: ExprId, args: ExprId, space: Space) -> Val {
        let value = self.eval(at, of, space);
        match value {
            Val::Of(..) | Val::Outer(..) if facts.language == Language::Python && !is_tuple(facts, of) => {
                self.item(&value)
            }
            Val::Def(id, _) => Val::Def(id, self.args(at, facts, args, Space::Type)),
            Val::OuterType(name, _) => Val::OuterType(name, self.args(at, facts, args, Space::Type)),
            // A tuple, an array.
            Val::Outer(name, _) => Val::Outer(name, self.args(at, facts, args, space)),
            other => other,
        }
    }

    fn part(&self, at: &At, of: ExprId, number: u32) -> Val {
        match self.eval(at, of, Space::Value) {
            Val::Outer(_, args) | Val::OuterType(_, args) => match args.get(number as usize) {
                Some(value) => self.instance(value),
                None => Val::Unknown,
            },
            variant @ Val::Def(id, _) if self.kind(id) == Some(Kind::Variant) => {
                self.member(at, &variant, &number.to_string(), Space::Value).unwrap_or(Val::Unknown)
            }
            class @ Val::Def(id, _) if self.kind(id) == Some(Kind::Class) => {
                let value = self.instance(&class);
                self.member(at, &value, &number.to_string(), Space::Value).unwrap_or(Val::Unknown)
            }
            _ => Val::Unknown,
        }
    }

    /// A value of a type.
    pub(super) fn instance(&self, ty: &Val) -> Val {
        match ty {
            Val::Def(id, args) => match self.kind(*id) {
                Some(Kind::Class | Kind::Trait) => Val::Of(*id, args.clone()),
                Some(Kind::Variant) => self.enum_of(*id),
                Some(Kind::Type) => self.deeper(Val::Unknown, || self.alias(*id, args)),
                _ => Val::Unknown,
            },
            Val::OuterType(name, args) => match outside::transparent(name) {
                outside::Through::First => args.first().map_or(Val::Unknown, |arg| self.instance(arg)),
                outside::Through::TypeItself => args.first().cloned().unwrap_or(Val::Unknown),
                outside::Through::One => one_of(args.iter().map(|arg| self.instance(arg))),
                outside::Through::No => Val::Outer(name.clone(), args.clone()),
            },
            Val::Any(all) => Val::OfAny(all.clone()),
            Val::Null | Val::Of(..) | Val::Outer(..) | Val::OfAny(..) | Val::Function(..) => ty.clone(),
            _ => Val::Unknown,
        }
    }

    /// Returns the type that an alias stands for.
    fn alias(&self, id: NodeId, args: &Args) -> Val {
        let Some(facts) = self.store.facts(id.file) else { return Val::Unknown };
        let Some(given) = facts.gives_of(id.node).first() else {
            // It has members of its own.
            return Val::Of(id, args.clone());
        };
        let this = Rc::new(Val::Def(id, args.clone()));
        let value = self.eval(&At { file: id.file, byte: given.at.get(), this: Some(this) }, given.value, Space::Value);
        match value {
            Val::Unknown if facts.fields.iter().any(|field| field.owner.get() == id.node) => Val::Of(id, args.clone()),
            other => other,
        }
    }

    /// Returns the value of `self` at a place.
    pub(super) fn this(&self, at: &At, facts: &FileFacts) -> Val {
        let own = facts.language.is_ecma().then(|| this_around(facts, at.byte)).flatten();
        if own.is_some_and(|own| own.kind == Kind::Function) {
            return Val::Unknown;
        }
        let is_class = own.is_some_and(|own| own.kind == Kind::Method && own.flags & flag::STATIC != 0);
        let of = |id, args| if is_class { Val::Def(id, args) } else { Val::Of(id, args) };
        if let Some(this) = &at.this {
            match &**this {
                Val::Of(..) | Val::OfAny(..) if !is_class => return (**this).clone(),
                Val::Def(id, args) if self.kind(*id) != Some(Kind::Type) => return of(*id, args.clone()),
                _ => {}
            }
        }
        self.class_here(at, facts).map_or(Val::Unknown, |id| of(id, no_args()))
    }

    /// Returns the result of a call.
    pub(super) fn result(&self, callee: &Val, language: Language) -> Val {
        self.deeper(Val::Unknown, || match callee {
            Val::Def(id, args) => match self.kind(*id) {
                Some(Kind::Class) => Val::Of(*id, args.clone()),
                Some(Kind::Variant) => self.enum_of(*id),
                Some(Kind::Function | Kind::Method) => self.returned(*id, None),
                Some(Kind::Constant) => {
                    let value = self.constant(*id);
                    self.result(&value, language)
                }
                Some(Kind::Type) => self.instance(callee),
                _ => Val::Unknown,
            },
            Val::Method(id, this) => self.returned(*id, Some(this)),
            Val::Of(..) if language == Language::Python => self.special(callee, "__call__").unwrap_or(Val::Unknown),
            Val::Super(id) => Val::Super(*id),
            Val::Giving(value) => (**value).clone(),
            Val::Function(at, given) => self.eval(at, *given, Space::Value),
            Val::OuterType(name, args) => match &**name {
                "Some" => Val::Outer("Option".into(), args.clone()),
                "Ok" | "Err" => Val::Outer("Result".into(), no_args()),
                _ => Val::Outer(name.clone(), args.clone()),
            },
            Val::Outer(..) => Val::Outer("?".into(), no_args()),
            _ => Val::Unknown,
        })
    }

    /// Returns the result of a function.
    pub(super) fn returned(&self, id: NodeId, this: Option<&Rc<Val>>) -> Val {
        let Some(facts) = self.store.facts(id.file) else { return Val::Unknown };
        let Some(node) = facts.nodes.get(id.node as usize) else { return Val::Unknown };
        let values = facts.gives_of(id.node).iter().map(|given| {
            let at = At { file: id.file, byte: given.at.get(), this: this.cloned() };
            self.eval(&at, given.value, Space::Value)
        });
        let annotated = node.flags & flag::ANNOTATED != 0;
        let value = one_of(values);
        let python = facts.language == Language::Python;
        if python && node.flags & flag::YIELDS_ONE != 0 {
            let inner = if annotated && node.flags & flag::GENERATOR != 0 { outside::inner(&value) } else { value };
            let fixture = node.flags & flag::FIXTURE != 0;
            return if fixture { inner } else { Val::Outer("ContextManager".into(), Rc::from([inner])) };
        }
        if python && !annotated && node.flags & flag::GENERATOR != 0 {
            return Val::Outer("generator".into(), no_args());
        }
        if node.flags & flag::ASYNC != 0 && !(facts.language.is_ecma() && annotated) {
            return Val::Outer("Future".into(), Rc::from([value]));
        }
        value
    }

    /// A value that is named by a constant.
    fn held_by(&self, value: Val, space: Space) -> Val {
        match value {
            Val::Def(id, _) if space == Space::Value && self.kind(id) == Some(Kind::Constant) => {
                self.deeper(Val::Unknown, || self.constant(id))
            }
            value => value,
        }
    }

    /// Returns the value of a constant.
    pub(super) fn constant(&self, id: NodeId) -> Val {
        let Some(facts) = self.store.facts(id.file) else { return Val::Unknown };
        one_of(facts.gives_of(id.node).iter().map(|given| {
            let at = At::new(id.file, given.at.get());
            self.eval(&at, given.value, Space::Value)
        }))
    }

    /// Returns an item of a container, by its index or key.
    fn item(&self, of: &Val) -> Val {
        match of {
            Val::Of(..) => self.special(of, "__getitem__").unwrap_or(Val::Unknown),
            _ => self.held(outside::item(of)),
        }
    }

    /// Returns an item of a loop.
    fn each(&self, of: &Val) -> Val {
        match of {
            Val::Of(..) => match self.special(of, "__iter__") {
                Some(all) => self.held(outside::each(&all)),
                None => self.item(of),
            },
            _ => self.held(outside::each(of)),
        }
    }

    /// Returns the result of a method that Python calls by itself.
    fn special(&self, of: &Val, name: &str) -> Option<Val> {
        match self.member(&At::new(0, 0), of, name, Space::Value)? {
            method @ Val::Method(..) => Some(self.result(&method, Language::Python)),
            _ => None,
        }
    }

    fn held(&self, value: Val) -> Val {
        match value {
            Val::Def(..) | Val::OuterType(..) | Val::Any(..) => self.instance(&value),
            value => value,
        }
    }

    /// Returns the value that `with` binds: the result of entering, most often the value itself.
    fn entered(&self, of: &Val) -> Val {
        match of {
            Val::Of(..) => {
                let given = ["__enter__", "__aenter__"].into_iter().filter_map(|name| {
                    Some(match self.special(of, name)? {
                        Val::Outer(name, args) if &*name == "Future" => args.first().cloned().unwrap_or(Val::Unknown),
                        value => value,
                    })
                });
                // An `async` before the `with` decides which of the two is called.
                one_of(given)
            }
            Val::Outer(name, args) if &**name == "ContextManager" => args.first().cloned().unwrap_or(Val::Unknown),
            Val::Outer(..) => Val::Outer("?".into(), no_args()),
            _ => Val::Unknown,
        }
    }
}

/// Finds the node that decides `this` at a byte of ECMAScript: in a static method it is the class, and a function that
/// is no arrow has its own.
fn this_around(facts: &FileFacts, byte: u32) -> Option<&Node> {
    let says = |node: &Node| match node.kind {
        Kind::Function => node.flags & flag::OWN_THIS != 0,
        kind => matches!(kind, Kind::Method | Kind::Class | Kind::Trait | Kind::Constant | Kind::Type),
    };
    let node = |number: u32| facts.nodes.get(number as usize);
    around(facts, byte, |number| node(number).is_some_and(says)).and_then(node)
}

/// The one value that all of them are, `None` aside.
pub(super) fn one_of(values: impl IntoIterator<Item = Val>) -> Val {
    let mut found: Option<Val> = None;
    let mut null = false;
    for value in values {
        match value {
            Val::Null => null = true,
            Val::Unknown => return Val::Unknown,
            value => match &found {
                Some(before) if *before != value => return Val::Unknown,
                _ => found = Some(value),
            },
        }
    }
    found.unwrap_or(if null { Val::Null } else { Val::Unknown })
}

/// In which space the left side of a dot is.
fn base_space(facts: &FileFacts, of: ExprId, space: Space) -> Space {
    // `ns.Type` in a type begins with a name of the values.
    match facts.exprs.get(of) {
        Some(Expr::Name(_) | Expr::Member(..)) if facts.language.is_ecma() && space == Space::Type => Space::Type,
        _ => Space::Value,
    }
}

/// Returns true if an expression begins a tuple of values, which Python writes without a name.
fn is_tuple(facts: &FileFacts, of: ExprId) -> bool {
    matches!(facts.exprs.get(of), Some(Expr::Literal(name)) if facts.text(name) == "tuple")
}

/// Returns true if a block of methods begins at a place.
fn impl_begins(facts: &FileFacts, from: u32) -> bool {
    facts.impls.iter().any(|block| block.from == from)
}
