//! Reads macros of Rust: their definitions, and the calls among the tokens of their arguments.

use tree_sitter::Node as Syntax;

use crate::extract::{NodeDraft, TreeWalk, end_byte, start_byte};
use crate::facts::{BindingTarget, Expr, ExprId, NameId, NodeKind, flag};

pub(super) fn visit_definition(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    walk.skip = true;
    let exported = walk.marks.iter().any(|mark| mark.contains("macro_export"));
    let Some(name) = walk.child_by_field(node, "name") else { return };
    let name = walk.name_of(name);
    if name.is_none() {
        return;
    }
    let mut flags = super::read_flags(walk, node);
    if exported {
        flags |= flag::DEFAULT;
    }
    let doc = super::read_doc(walk, node);
    walk.add_node(NodeDraft {
        kind: NodeKind::Macro,
        name,
        whole: node,
        body: node.named_child(1),
        flags,
        doc,
        bare: true,
    });
}

pub(super) fn visit_invocation(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    if let Some(macro_) = walk.child_by_field(node, "macro") {
        walk.call_of(macro_, true);
    }
}

/// Lowers a call of a macro, if the name of the macro decides the result.
pub(super) fn lower_macro(walk: &mut TreeWalk<'_>, node: Syntax<'_>) -> ExprId {
    let name = walk.child_by_field(node, "macro").map_or("", |name| walk.node_text(name));
    match name {
        "format" | "concat" | "stringify" | "env" => walk.add_literal("str"),
        "vec" => walk.add_literal("Vec"),
        "panic" | "unreachable" | "todo" | "unimplemented" | "bail" => walk.add_expr(Expr::Null),
        _ => ExprId::NONE,
    }
}

/// Notes the calls among the tokens of a macro. Names, dots, parentheses, `let x = ..` and `|x: T|` count as in other
/// code.
pub(super) fn visit_tokens(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let mut cursor = node.walk();
    let mut chain = TokenChain { value: ExprId::NONE, last: None, joint: ChainJoint::None };
    let mut binder = TokenBinder::default();
    for token in node.children(&mut cursor) {
        binder.take_token(walk, token, chain.value, end_byte(node));
        chain.next(walk, token);
    }
}

/// The expression that the tokens so far have formed.
struct TokenChain<'t> {
    value: ExprId,
    /// The name that is called if `(` follows.
    last: Option<Syntax<'t>>,
    joint: ChainJoint,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ChainJoint {
    None,
    Dot,
    Path,
}

impl<'t> TokenChain<'t> {
    fn next(&mut self, walk: &mut TreeWalk<'_>, token: Syntax<'t>) {
        match token.kind() {
            "identifier" | "self" | "super" | "crate" | "primitive_type" => self.name(walk, token),
            "token_tree" => self.add_tree(walk, token),
            "." => self.joint = ChainJoint::Dot,
            "::" => self.joint = ChainJoint::Path,
            "?" if !self.value.is_none() => self.value = walk.add_expr(Expr::Inner(self.value)),
            "!" if self.last.is_some() && self.joint == ChainJoint::None => {
                if let Some(callee) = self.last.take() {
                    let name = walk.name_of(callee);
                    walk.call(name, self.value, callee, true);
                }
                self.value = ExprId::NONE;
            }
            _ => *self = Self { value: ExprId::NONE, last: None, joint: ChainJoint::None },
        }
    }

    fn name(&mut self, walk: &mut TreeWalk<'_>, token: Syntax<'t>) {
        let text = walk.node_text(token);
        let name = walk.name_of(token);
        self.value = match self.joint {
            ChainJoint::Dot if !self.value.is_none() => walk.add_expr(Expr::Member(self.value, name)),
            ChainJoint::Path if !self.value.is_none() => walk.add_expr(Expr::Static(self.value, name)),
            ChainJoint::Dot | ChainJoint::Path => ExprId::NONE,
            ChainJoint::None if text == "self" => walk.add_expr(Expr::This),
            ChainJoint::None if text == "Self" => walk.add_expr(Expr::SelfType),
            ChainJoint::None => walk.add_expr(Expr::Name(name)),
        };
        self.last = Some(token);
        self.joint = ChainJoint::None;
    }

    fn add_tree(&mut self, walk: &mut TreeWalk<'_>, token: Syntax<'t>) {
        let text = walk.node_text(token);
        let called = self.last.filter(|_| self.joint == ChainJoint::None && !self.value.is_none());
        self.value = match called {
            Some(function) if text.starts_with('(') => {
                let name = walk.name_of(function);
                walk.call(name, self.value, function, false);
                walk.add_expr(Expr::Call(self.value))
            }
            // Handles a struct expression, such as `T { .. }`.
            Some(ty) if text.starts_with('{') && walk.node_text(ty).starts_with(char::is_uppercase) => {
                walk.add_expr(Expr::Of(self.value))
            }
            _ => ExprId::NONE,
        };
        self.last = None;
        self.joint = ChainJoint::None;
    }
}

/// Binds the names that tokens declare.
#[derive(Default)]
struct TokenBinder {
    state: BinderState,
    /// True between the two bars around the parameters of a closure.
    params: bool,
    /// True after a value. A bar is then an operator.
    value: bool,
}

#[derive(Default, Clone, Copy)]
enum BinderState {
    #[default]
    None,
    Let,
    /// A name and its position. The type or the value of the name follows.
    Name(NameId, u32, NextPart),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum NextPart {
    Open,
    Type,
    Value,
}

impl TokenBinder {
    /// Reads a token. `chain` is the value of the expression before it.
    fn take_token(&mut self, walk: &mut TreeWalk<'_>, token: Syntax<'_>, chain: ExprId, to: u32) {
        let kind = token.kind();
        match (self.state, kind) {
            (_, "let") => self.state = BinderState::Let,
            (BinderState::Let | BinderState::None, "identifier")
                if self.params || matches!(self.state, BinderState::Let) =>
            {
                let name = walk.name_of(token);
                self.state = BinderState::Name(name, start_byte(token), NextPart::Open);
            }
            (BinderState::Let, "mutable_specifier" | "mut") => {}
            (BinderState::Let, _) => self.state = BinderState::None,
            (BinderState::Name(name, offset, NextPart::Open), ":") => {
                self.state = BinderState::Name(name, offset, NextPart::Type);
            }
            (BinderState::Name(name, offset, NextPart::Open), "=") => {
                self.state = BinderState::Name(name, offset, NextPart::Value);
            }
            (BinderState::Name(name, offset, NextPart::Type), "," | "|" | "=" | ";") => {
                let value = walk.add_value_of(chain);
                self.bind_name(walk, name, offset, value, (token, to));
            }
            (BinderState::Name(name, offset, NextPart::Value), ";") => {
                self.bind_name(walk, name, offset, chain, (token, to));
            }
            (BinderState::Name(name, offset, NextPart::Open), "," | "|" | ";") => {
                self.bind_name(walk, name, offset, ExprId::NONE, (token, to));
            }
            _ => {}
        }
        if kind == "|" {
            self.params = !self.params && !self.value;
        }
        self.value = matches!(kind, "identifier" | "token_tree" | "self" | "integer_literal");
    }

    fn bind_name(
        &mut self,
        walk: &mut TreeWalk<'_>,
        name: NameId,
        offset: u32,
        value: ExprId,
        (token, to): (Syntax<'_>, u32),
    ) {
        walk.add_binding(name, end_byte(token), to, offset, BindingTarget::Value(value));
        self.state = BinderState::None;
    }
}
