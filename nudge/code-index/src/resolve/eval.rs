//! Evaluates expressions of the facts to values.

use std::rc::Rc;

use crate::facts::{BindingTarget, CodeNode, CompactNumber, Expr, ExprId, FileFacts, NameId, NodeKind, flag};
use crate::index::NodeId;
use crate::language::CodeLanguage;

use super::lookup::node_around;
use super::{Args, CallResolver, ExprPlace, ExprValue, NameSpace, no_args, outside};

/// Marks a string that is the path of a type only when code uses it as a type.
pub(super) const QUOTED: CompactNumber = CompactNumber::NONE;

impl CallResolver<'_> {
    /// Evaluates an expression at a position.
    pub(super) fn eval_expr(&self, site: &ExprPlace, expr: ExprId, space: NameSpace) -> ExprValue {
        self.run_with_fuel(ExprValue::Unknown, || match &site.this {
            None => {
                let key = (site.file, expr, site.byte, space);
                self.memo.answer_once(&self.memo.values, key, ExprValue::Unknown, || self.eval_here(site, expr, space))
            }
            Some(_) => self.eval_here(site, expr, space),
        })
    }

    fn eval_here(&self, site: &ExprPlace, expr: ExprId, space: NameSpace) -> ExprValue {
        let Some(facts) = self.store.facts_at(site.file) else { return ExprValue::Unknown };
        let id = expr;
        let Some(expr) = facts.exprs.get(id) else { return ExprValue::Unknown };
        match expr {
            Expr::Name(name) => self.eval_name(site, facts, name, space),
            Expr::Member(receiver, name) | Expr::Static(receiver, name) => {
                if space == NameSpace::Called && self.is_assigned(site, facts, receiver, name) {
                    return ExprValue::Unknown;
                }
                let path = matches!(expr, Expr::Static(..));
                let base = self.eval_expr(
                    site,
                    receiver,
                    if path { NameSpace::Type } else { base_space(facts, receiver, space) },
                );
                self.find_member(site, &base, facts.text_of(name), space).unwrap_or(ExprValue::Unknown)
            }
            Expr::Call(function) => {
                let callee = self.eval_expr(site, function, NameSpace::Called);
                self.call_result(&callee, facts.language)
            }
            Expr::Of(ty) => {
                if let Some(Expr::TypeOf(value)) = facts.exprs.get(ty) {
                    self.eval_expr(site, value, NameSpace::Value)
                } else {
                    let ty = self.eval_expr(site, ty, NameSpace::Type);
                    self.instance_of(&ty)
                }
            }
            Expr::Item(container) => {
                let value = self.eval_expr(site, container, NameSpace::Value);
                self.item_of(&value)
            }
            // A class can return a value of any type for a slice.
            Expr::Slice(sequence) => match self.eval_expr(site, sequence, NameSpace::Value) {
                ExprValue::Of(..) => ExprValue::Unknown,
                value => value,
            },
            Expr::Each(iterable) => {
                let value = self.eval_expr(site, iterable, NameSpace::Value);
                self.each_of(&value)
            }
            Expr::Inner(wrapper) => {
                let value = self.eval_expr(site, wrapper, NameSpace::Value);
                outside::inner_value(&value)
            }
            Expr::Enter(manager) => {
                let value = self.eval_expr(site, manager, NameSpace::Value);
                self.entered_value(&value)
            }
            Expr::Either(left, right) => {
                let left = self.held_by(self.eval_expr(site, left, space), space);
                if left == ExprValue::Unknown {
                    return left;
                }
                let right = self.held_by(self.eval_expr(site, right, space), space);
                one_of([left, right])
            }
            Expr::Apply(base, args) => self.eval_apply(site, facts, base, args, space),
            Expr::Args(..) => ExprValue::Any(self.eval_args(site, facts, id, space)),
            // Handles a path that begins with `self`, such as `self::f`.
            Expr::This if space == NameSpace::Type && facts.language == CodeLanguage::Rust => {
                ExprValue::Place(self.place_at(site.file, site.byte))
            }
            Expr::This => self.this_value(site, facts),
            Expr::SelfType => match self.this_value(site, facts) {
                ExprValue::Of(id, args) => ExprValue::Def(id, args),
                other => other,
            },
            Expr::Super => match self.class_here(site, facts) {
                Some(id) => ExprValue::Super(id),
                None => ExprValue::Unknown,
            },
            Expr::Null => ExprValue::Null,
            Expr::Literal(name) => match space {
                NameSpace::Type => ExprValue::OuterType(facts.text_of(name).into(), no_args()),
                _ => ExprValue::Outer(facts.text_of(name).into(), no_args()),
            },
            Expr::Function(given) => ExprValue::Function(site.clone(), given),
            Expr::TypeOf(value) => match self.eval_expr(site, value, NameSpace::Value) {
                ExprValue::Of(id, args) => ExprValue::Def(id, args),
                ExprValue::Outer(name, args) => ExprValue::OuterType(name, args),
                ExprValue::OfAny(all) => ExprValue::Any(all),
                other @ ExprValue::Null => other,
                _ => ExprValue::Unknown,
            },
            Expr::Part(quoted, QUOTED) if space == NameSpace::Type => self.eval_expr(site, quoted, space),
            Expr::Part(_, QUOTED) => ExprValue::Outer("str".into(), no_args()),
            Expr::Part(whole, number) => self.eval_part(site, whole, number.get()),
        }
    }

    fn eval_name(&self, site: &ExprPlace, facts: &FileFacts, name: NameId, space: NameSpace) -> ExprValue {
        let hits = self.lookup_name(site, name, space);
        if hits.is_empty() {
            return self.eval_unbound(site, facts, name, space);
        }
        let values = hits.iter().map(|hit| match hit.bound {
            BindingTarget::Node(node) => self.definition_value(NodeId { file: site.file, node }),
            BindingTarget::Import(number) => self.resolve_import(site.file, number, space),
            BindingTarget::Value(value) => {
                let inner = ExprPlace { file: site.file, byte: hit.value_place, this: site.this.clone() };
                self.eval_expr(
                    &inner,
                    value,
                    if facts.language == CodeLanguage::Python { space } else { NameSpace::Value },
                )
            }
            BindingTarget::Param(value, node) if value.is_none() => {
                self.fixture_value(site.file, node, facts.text_of(name))
            }
            BindingTarget::Param(value, _) => {
                let inner = ExprPlace { file: site.file, byte: hit.value_place, this: site.this.clone() };
                self.eval_expr(&inner, value, NameSpace::Value)
            }
            BindingTarget::TypeParam(bounds, number) => self.type_param(site, facts, hit.from, number, bounds),
        });
        one_of(values)
    }

    /// Evaluates a name for which the file has no binding.
    fn eval_unbound(&self, site: &ExprPlace, facts: &FileFacts, name: NameId, space: NameSpace) -> ExprValue {
        let text = facts.text_of(name);
        match self.unbound_value(site, text, space) {
            ExprValue::Unknown => {}
            value => return value,
        }
        if facts.language == CodeLanguage::Rust
            && let Some(place) = self.path_head(site, text)
        {
            return place;
        }
        if outside::is_known_name(facts.language, text) {
            return ExprValue::OuterType(text.into(), no_args());
        }
        ExprValue::Unknown
    }

    /// Returns the value of a definition. A module inside a file is a module, and any other node stands for itself.
    pub(super) fn definition_value(&self, id: NodeId) -> ExprValue {
        match self.node_kind(id) {
            Some(NodeKind::Module) => ExprValue::Place(super::ModulePlace { file: id.file, module: Some(id.node) }),
            Some(_) => ExprValue::Def(id, no_args()),
            None => ExprValue::Unknown,
        }
    }

    /// Evaluates a type parameter. The value is the type argument, or else the bounds.
    fn type_param(&self, site: &ExprPlace, facts: &FileFacts, from: u32, number: u32, bounds: ExprId) -> ExprValue {
        if let Some(ExprValue::Of(id, args) | ExprValue::Def(id, args)) = site.this.as_deref()
            && id.file == site.file
            && let Some(node) = facts.nodes.get(id.node as usize)
            && (node.span.byte == from || impl_begins(facts, from))
            && let Some(arg) = args.get(number as usize)
        {
            return match arg {
                ExprValue::Of(id, args) => ExprValue::Def(*id, args.clone()),
                ExprValue::Outer(name, args) => ExprValue::OuterType(name.clone(), args.clone()),
                other => other.clone(),
            };
        }
        if bounds.is_none() {
            return ExprValue::Unknown;
        }
        let inner = ExprPlace { file: site.file, byte: from, this: None };
        ExprValue::Any(self.eval_args(&inner, facts, bounds, NameSpace::Type))
    }

    /// Evaluates the expressions of a list of arguments.
    pub(super) fn eval_args(&self, site: &ExprPlace, facts: &FileFacts, list: ExprId, space: NameSpace) -> Args {
        let mut out = Vec::new();
        let mut next = list;
        while let Some(Expr::Args(arg, rest)) = facts.exprs.get(next) {
            if out.len() >= 8 {
                break;
            }
            out.push(self.eval_expr(site, arg, space));
            next = rest;
        }
        out.into()
    }

    fn eval_apply(
        &self,
        site: &ExprPlace,
        facts: &FileFacts,
        base: ExprId,
        args: ExprId,
        space: NameSpace,
    ) -> ExprValue {
        let value = self.eval_expr(site, base, space);
        match value {
            ExprValue::Of(..) | ExprValue::Outer(..)
                if facts.language == CodeLanguage::Python && !is_tuple(facts, base) =>
            {
                self.item_of(&value)
            }
            ExprValue::Def(id, _) => ExprValue::Def(id, self.eval_args(site, facts, args, NameSpace::Type)),
            ExprValue::OuterType(name, _) => {
                ExprValue::OuterType(name, self.eval_args(site, facts, args, NameSpace::Type))
            }
            // The type is a tuple or an array.
            ExprValue::Outer(name, _) => ExprValue::Outer(name, self.eval_args(site, facts, args, space)),
            other => other,
        }
    }

    fn eval_part(&self, site: &ExprPlace, whole: ExprId, number: u32) -> ExprValue {
        match self.eval_expr(site, whole, NameSpace::Value) {
            ExprValue::Outer(_, args) | ExprValue::OuterType(_, args) => match args.get(number as usize) {
                Some(value) => self.instance_of(value),
                None => ExprValue::Unknown,
            },
            variant @ ExprValue::Def(id, _) if self.node_kind(id) == Some(NodeKind::Variant) => {
                self.find_member(site, &variant, &number.to_string(), NameSpace::Value).unwrap_or(ExprValue::Unknown)
            }
            class @ ExprValue::Def(id, _) if self.node_kind(id) == Some(NodeKind::Class) => {
                let value = self.instance_of(&class);
                self.find_member(site, &value, &number.to_string(), NameSpace::Value).unwrap_or(ExprValue::Unknown)
            }
            _ => ExprValue::Unknown,
        }
    }

    /// Returns a value whose type is `ty`.
    pub(super) fn instance_of(&self, ty: &ExprValue) -> ExprValue {
        match ty {
            ExprValue::Def(id, args) => match self.node_kind(*id) {
                Some(NodeKind::Class | NodeKind::Trait) => ExprValue::Of(*id, args.clone()),
                Some(NodeKind::Variant) => self.enum_of(*id),
                Some(NodeKind::Type) => self.run_with_fuel(ExprValue::Unknown, || self.alias_value(*id, args)),
                _ => ExprValue::Unknown,
            },
            ExprValue::OuterType(name, args) => match outside::wrapper_kind(name) {
                outside::WrapperKind::First => args.first().map_or(ExprValue::Unknown, |arg| self.instance_of(arg)),
                outside::WrapperKind::TypeItself => args.first().cloned().unwrap_or(ExprValue::Unknown),
                outside::WrapperKind::One => one_of(args.iter().map(|arg| self.instance_of(arg))),
                outside::WrapperKind::No => ExprValue::Outer(name.clone(), args.clone()),
            },
            ExprValue::Any(all) => ExprValue::OfAny(all.clone()),
            ExprValue::Null
            | ExprValue::Of(..)
            | ExprValue::Outer(..)
            | ExprValue::OfAny(..)
            | ExprValue::Function(..) => ty.clone(),
            _ => ExprValue::Unknown,
        }
    }

    /// Returns the type for which an alias stands.
    fn alias_value(&self, id: NodeId, args: &Args) -> ExprValue {
        let Some(facts) = self.store.facts_at(id.file) else { return ExprValue::Unknown };
        let Some(given) = facts.gives_of(id.node).first() else {
            // The alias has members of its own, so the value is an instance of the alias.
            return ExprValue::Of(id, args.clone());
        };
        let this = Rc::new(ExprValue::Def(id, args.clone()));
        let value = self.eval_expr(
            &ExprPlace { file: id.file, byte: given.value_place.get(), this: Some(this) },
            given.value,
            NameSpace::Value,
        );
        match value {
            ExprValue::Unknown if facts.fields.iter().any(|field| field.owner.get() == id.node) => {
                ExprValue::Of(id, args.clone())
            }
            other => other,
        }
    }

    /// Returns the value of `self` at a position.
    pub(super) fn this_value(&self, site: &ExprPlace, facts: &FileFacts) -> ExprValue {
        let own = facts.language.is_ecma().then(|| this_around(facts, site.byte)).flatten();
        if own.is_some_and(|own| own.kind == NodeKind::Function) {
            return ExprValue::Unknown;
        }
        let is_class = own.is_some_and(|own| own.kind == NodeKind::Method && own.flags & flag::STATIC != 0);
        let make_value = |id, args| if is_class { ExprValue::Def(id, args) } else { ExprValue::Of(id, args) };
        if let Some(this) = &site.this {
            match &**this {
                ExprValue::Of(..) | ExprValue::OfAny(..) if !is_class => return (**this).clone(),
                ExprValue::Def(id, args) if self.node_kind(*id) != Some(NodeKind::Type) => {
                    return make_value(*id, args.clone());
                }
                _ => {}
            }
        }
        self.class_here(site, facts).map_or(ExprValue::Unknown, |id| make_value(id, no_args()))
    }

    /// Returns the result of a call of this callee.
    pub(super) fn call_result(&self, callee: &ExprValue, language: CodeLanguage) -> ExprValue {
        self.run_with_fuel(ExprValue::Unknown, || match callee {
            ExprValue::Def(id, args) => match self.node_kind(*id) {
                Some(NodeKind::Class) => ExprValue::Of(*id, args.clone()),
                Some(NodeKind::Variant) => self.enum_of(*id),
                Some(NodeKind::Function | NodeKind::Method) => self.returned_value(*id, None),
                Some(NodeKind::Constant) => {
                    let value = self.constant_value(*id);
                    self.call_result(&value, language)
                }
                Some(NodeKind::Type) => self.instance_of(callee),
                _ => ExprValue::Unknown,
            },
            ExprValue::Method(id, this) => self.returned_value(*id, Some(this)),
            ExprValue::Of(..) if language == CodeLanguage::Python => {
                self.special_result(callee, "__call__").unwrap_or(ExprValue::Unknown)
            }
            ExprValue::Super(id) => ExprValue::Super(*id),
            ExprValue::Giving(value) => (**value).clone(),
            ExprValue::Function(site, given) => self.eval_expr(site, *given, NameSpace::Value),
            ExprValue::OuterType(name, args) => match &**name {
                "Some" => ExprValue::Outer("Option".into(), args.clone()),
                "Ok" | "Err" => ExprValue::Outer("Result".into(), no_args()),
                _ => ExprValue::Outer(name.clone(), args.clone()),
            },
            ExprValue::Outer(..) => ExprValue::Outer("?".into(), no_args()),
            _ => ExprValue::Unknown,
        })
    }

    /// Returns the value that a function returns.
    pub(super) fn returned_value(&self, id: NodeId, this: Option<&Rc<ExprValue>>) -> ExprValue {
        let Some(facts) = self.store.facts_at(id.file) else { return ExprValue::Unknown };
        let Some(node) = facts.nodes.get(id.node as usize) else { return ExprValue::Unknown };
        let values = facts.gives_of(id.node).iter().map(|given| {
            let site = ExprPlace { file: id.file, byte: given.value_place.get(), this: this.cloned() };
            self.eval_expr(&site, given.value, NameSpace::Value)
        });
        let annotated = node.flags & flag::ANNOTATED != 0;
        let value = one_of(values);
        let python = facts.language == CodeLanguage::Python;
        if python && node.flags & flag::YIELDS_ONE != 0 {
            let inner =
                if annotated && node.flags & flag::GENERATOR != 0 { outside::inner_value(&value) } else { value };
            let fixture = node.flags & flag::FIXTURE != 0;
            return if fixture { inner } else { ExprValue::Outer("ContextManager".into(), Rc::from([inner])) };
        }
        if python && !annotated && node.flags & flag::GENERATOR != 0 {
            return ExprValue::Outer("generator".into(), no_args());
        }
        if node.flags & flag::ASYNC != 0 && !(facts.language.is_ecma() && annotated) {
            return ExprValue::Outer("Future".into(), Rc::from([value]));
        }
        value
    }

    /// Returns the value of a constant. Returns any other value unchanged.
    fn held_by(&self, value: ExprValue, space: NameSpace) -> ExprValue {
        match value {
            ExprValue::Def(id, _) if space == NameSpace::Value && self.node_kind(id) == Some(NodeKind::Constant) => {
                self.run_with_fuel(ExprValue::Unknown, || self.constant_value(id))
            }
            value => value,
        }
    }

    /// Returns the value of a constant.
    pub(super) fn constant_value(&self, id: NodeId) -> ExprValue {
        let Some(facts) = self.store.facts_at(id.file) else { return ExprValue::Unknown };
        one_of(facts.gives_of(id.node).iter().map(|given| {
            let site = ExprPlace::new(id.file, given.value_place.get());
            self.eval_expr(&site, given.value, NameSpace::Value)
        }))
    }

    /// Returns an item of a container, as an index or a key gives it.
    fn item_of(&self, container: &ExprValue) -> ExprValue {
        match container {
            ExprValue::Of(..) => self.special_result(container, "__getitem__").unwrap_or(ExprValue::Unknown),
            _ => self.eval_held(outside::item_value(container)),
        }
    }

    /// Returns the item of a container that a loop gives.
    fn each_of(&self, iterable: &ExprValue) -> ExprValue {
        match iterable {
            ExprValue::Of(..) => match self.special_result(iterable, "__iter__") {
                Some(all) => self.eval_held(outside::each_value(&all)),
                None => self.item_of(iterable),
            },
            _ => self.eval_held(outside::each_value(iterable)),
        }
    }

    /// Returns the result of a special method, which Python itself calls.
    fn special_result(&self, object: &ExprValue, name: &str) -> Option<ExprValue> {
        match self.find_member(&ExprPlace::new(0, 0), object, name, NameSpace::Value)? {
            method @ ExprValue::Method(..) => Some(self.call_result(&method, CodeLanguage::Python)),
            _ => None,
        }
    }

    fn eval_held(&self, value: ExprValue) -> ExprValue {
        match value {
            ExprValue::Def(..) | ExprValue::OuterType(..) | ExprValue::Any(..) => self.instance_of(&value),
            value => value,
        }
    }

    /// Returns the value that a `with` statement binds. It is the result of entering the manager, mostly the manager
    /// itself.
    fn entered_value(&self, manager: &ExprValue) -> ExprValue {
        match manager {
            ExprValue::Of(..) => {
                let given = ["__enter__", "__aenter__"].into_iter().filter_map(|name| {
                    Some(match self.special_result(manager, name)? {
                        ExprValue::Outer(name, args) if &*name == "Future" => {
                            args.first().cloned().unwrap_or(ExprValue::Unknown)
                        }
                        value => value,
                    })
                });
                // Either `with` or `async with` may be meant, so the value must be the same for both methods.
                one_of(given)
            }
            ExprValue::Outer(name, args) if &**name == "ContextManager" => {
                args.first().cloned().unwrap_or(ExprValue::Unknown)
            }
            ExprValue::Outer(..) => ExprValue::Outer("?".into(), no_args()),
            _ => ExprValue::Unknown,
        }
    }
}

/// Finds the node that decides the value of `this` at an offset of ECMAScript. In a static method, `this` is the class.
/// Each function that is not an arrow function has its own `this`.
fn this_around(facts: &FileFacts, byte: u32) -> Option<&CodeNode> {
    let says = |node: &CodeNode| match node.kind {
        NodeKind::Function => node.flags & flag::OWN_THIS != 0,
        kind => {
            matches!(kind, NodeKind::Method | NodeKind::Class | NodeKind::Trait | NodeKind::Constant | NodeKind::Type)
        }
    };
    let node = |number: u32| facts.nodes.get(number as usize);
    node_around(facts, byte, |number| node(number).is_some_and(says)).and_then(node)
}

/// Returns the value if all known values are equal. The `None` of the language does not count.
pub(super) fn one_of(values: impl IntoIterator<Item = ExprValue>) -> ExprValue {
    let mut found: Option<ExprValue> = None;
    let mut null = false;
    for value in values {
        match value {
            ExprValue::Null => null = true,
            ExprValue::Unknown => return ExprValue::Unknown,
            value => match &found {
                Some(before) if *before != value => return ExprValue::Unknown,
                _ => found = Some(value),
            },
        }
    }
    found.unwrap_or(if null { ExprValue::Null } else { ExprValue::Unknown })
}

/// Returns the kind of name that a lookup of the left side of a dot wants.
fn base_space(facts: &FileFacts, receiver: ExprId, space: NameSpace) -> NameSpace {
    // In an ECMAScript type, such as `ns.Type`, the left side may also be a type.
    match facts.exprs.get(receiver) {
        Some(Expr::Name(_) | Expr::Member(..)) if facts.language.is_ecma() && space == NameSpace::Type => {
            NameSpace::Type
        }
        _ => NameSpace::Value,
    }
}

/// Returns true if the expression is the beginning of a tuple, which Python can write without a name.
fn is_tuple(facts: &FileFacts, expr: ExprId) -> bool {
    matches!(facts.exprs.get(expr), Some(Expr::Literal(name)) if facts.text_of(name) == "tuple")
}

/// Returns true if a block of methods begins at the offset.
fn impl_begins(facts: &FileFacts, from: u32) -> bool {
    facts.impls.iter().any(|block| block.from == from)
}
