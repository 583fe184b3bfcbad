//! Macros: their definitions, and the calls that stand among the tokens of their arguments.

use tree_sitter::Node as Syntax;

use crate::extract::{Draft, Walk, end, start};
use crate::facts::{Bound, Expr, ExprId, Kind, Name, flag};

pub(super) fn definition(walk: &mut Walk<'_>, node: Syntax<'_>) {
    walk.skip = true;
    let exported = walk.marks.iter().any(|mark| mark.contains("macro_export"));
    let Some(name) = walk.get(node, "name") else { return };
    let name = walk.name_of(name);
    if name.is_none() {
        return;
    }
    let mut flags = super::flags(walk, node);
    if exported {
        flags |= flag::DEFAULT;
    }
    let doc = super::doc(walk, node);
    walk.node(Draft { kind: Kind::Macro, name, whole: node, body: node.named_child(1), flags, doc, bare: true });
}

pub(super) fn invocation(walk: &mut Walk<'_>, node: Syntax<'_>) {
    if let Some(macro_) = walk.get(node, "macro") {
        walk.call_of(macro_, true);
    }
}

/// Lowers a macro whose name tells its result.
pub(super) fn value(walk: &mut Walk<'_>, node: Syntax<'_>) -> ExprId {
    let name = walk.get(node, "macro").map_or("", |name| walk.text(name));
    match name {
        "format" | "concat" | "stringify" | "env" => walk.literal("str"),
        "vec" => walk.literal("Vec"),
        "panic" | "unreachable" | "todo" | "unimplemented" | "bail" => walk.expr(Expr::Null),
        _ => ExprId::NONE,
    }
}

/// Notes calls among tokens: names, dots and parentheses mean the same as elsewhere, and so do `let x = ..` and `|x:
/// T|`.
pub(super) fn tokens(walk: &mut Walk<'_>, node: Syntax<'_>) {
    let mut cursor = node.walk();
    let mut chain = Chain { value: ExprId::NONE, last: None, joint: Joint::None };
    let mut binder = Binder::default();
    for token in node.children(&mut cursor) {
        binder.before(walk, token, chain.value, end(node));
        chain.next(walk, token);
    }
}

/// An expression, as far as tokens tell.
struct Chain<'t> {
    value: ExprId,
    /// The name that a call would be of.
    last: Option<Syntax<'t>>,
    joint: Joint,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Joint {
    None,
    Dot,
    Path,
}

impl<'t> Chain<'t> {
    fn next(&mut self, walk: &mut Walk<'_>, token: Syntax<'t>) {
        match token.kind() {
            "identifier" | "self" | "super" | "crate" | "primitive_type" => self.name(walk, token),
            "token_tree" => self.tree(walk, token),
            "." => self.joint = Joint::Dot,
            "::" => self.joint = Joint::Path,
            "?" if !self.value.is_none() => self.value = walk.expr(Expr::Inner(self.value)),
            "!" if self.last.is_some() && self.joint == Joint::None => {
                if let Some(at) = self.last.take() {
                    let name = walk.name_of(at);
                    walk.call(name, self.value, at, true);
                }
                self.value = ExprId::NONE;
            }
            _ => *self = Self { value: ExprId::NONE, last: None, joint: Joint::None },
        }
    }

    fn name(&mut self, walk: &mut Walk<'_>, token: Syntax<'t>) {
        let text = walk.text(token);
        let name = walk.name_of(token);
        self.value = match self.joint {
            Joint::Dot if !self.value.is_none() => walk.expr(Expr::Member(self.value, name)),
            Joint::Path if !self.value.is_none() => walk.expr(Expr::Static(self.value, name)),
            Joint::Dot | Joint::Path => ExprId::NONE,
            Joint::None if text == "self" => walk.expr(Expr::This),
            Joint::None if text == "Self" => walk.expr(Expr::SelfType),
            Joint::None => walk.expr(Expr::Name(name)),
        };
        self.last = Some(token);
        self.joint = Joint::None;
    }

    fn tree(&mut self, walk: &mut Walk<'_>, token: Syntax<'t>) {
        let text = walk.text(token);
        let called = self.last.filter(|_| self.joint == Joint::None && !self.value.is_none());
        self.value = match called {
            Some(at) if text.starts_with('(') => {
                let name = walk.name_of(at);
                walk.call(name, self.value, at, false);
                walk.expr(Expr::Call(self.value))
            }
            // `T { .. }`
            Some(at) if text.starts_with('{') && walk.text(at).starts_with(char::is_uppercase) => {
                walk.expr(Expr::Of(self.value))
            }
            _ => ExprId::NONE,
        };
        self.last = None;
        self.joint = Joint::None;
    }
}

/// Binds names among tokens.
#[derive(Default)]
struct Binder {
    state: Binding,
    /// Is true between the bars of a closure.
    params: bool,
    /// Is true after a value: a bar is then an operator.
    value: bool,
}

#[derive(Default, Clone, Copy)]
enum Binding {
    #[default]
    None,
    Let,
    /// A name, where it stands, and whether its type or its value follows.
    Name(Name, u32, Follows),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Follows {
    Open,
    Type,
    Value,
}

impl Binder {
    /// Looks at a token, with the value of the chain before it.
    fn before(&mut self, walk: &mut Walk<'_>, token: Syntax<'_>, chain: ExprId, to: u32) {
        let kind = token.kind();
        match (self.state, kind) {
            (_, "let") => self.state = Binding::Let,
            (Binding::Let | Binding::None, "identifier") if self.params || matches!(self.state, Binding::Let) => {
                let name = walk.name_of(token);
                self.state = Binding::Name(name, start(token), Follows::Open);
            }
            (Binding::Let, "mutable_specifier" | "mut") => {}
            (Binding::Let, _) => self.state = Binding::None,
            (Binding::Name(name, at, Follows::Open), ":") => self.state = Binding::Name(name, at, Follows::Type),
            (Binding::Name(name, at, Follows::Open), "=") => self.state = Binding::Name(name, at, Follows::Value),
            (Binding::Name(name, at, Follows::Type), "," | "|" | "=" | ";") => {
                let value = walk.of(chain);
                self.bind(walk, name, at, value, (token, to));
            }
            (Binding::Name(name, at, Follows::Value), ";") => self.bind(walk, name, at, chain, (token, to)),
            (Binding::Name(name, at, Follows::Open), "," | "|" | ";") => {
                self.bind(walk, name, at, ExprId::NONE, (token, to));
            }
            _ => {}
        }
        if kind == "|" {
            self.params = !self.params && !self.value;
        }
        self.value = matches!(kind, "identifier" | "token_tree" | "self" | "integer_literal");
    }

    fn bind(&mut self, walk: &mut Walk<'_>, name: Name, at: u32, value: ExprId, (token, to): (Syntax<'_>, u32)) {
        walk.bind(name, end(token), to, at, Bound::Value(value));
        self.state = Binding::None;
    }
}
