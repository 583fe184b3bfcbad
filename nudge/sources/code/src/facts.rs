//! The facts of a file: a pure function of its path and bytes.
//!
//! Strings stand once in a table of the file, and everything else refers to them by number, so that a node with its
//! calls takes a few hundred bytes and no allocation of its own.

mod expr;
mod names;
mod number;
mod view;

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::language::Language;

pub(crate) use expr::{Expr, ExprId, ExprMaker, Exprs};
pub(crate) use names::{Interner, Name, Names};
pub(crate) use number::Number;
pub use view::NodeView;

/// The first 16 bytes of a BLAKE3 hash.
pub type Hash = [u8; 16];

/// Hashes some bytes.
pub(crate) fn hash(bytes: &[u8]) -> Hash {
    let mut out = Hash::default();
    out.copy_from_slice(&blake3::hash(bytes).as_bytes()[..16]);
    out
}

/// The facts of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileFacts {
    /// The language it was read as.
    pub language: Language,
    /// The hash of its bytes.
    pub hash: Hash,
    /// Is true when parts of it are not valid; the facts of the rest stand.
    pub parse_errors: bool,
    /// The hash of the text outside all nodes.
    pub(crate) rest: Hash,
    /// Java's `package`, the namespace of C# and PHP.
    pub(crate) package: Name,
    pub(crate) names: Names,
    pub(crate) exprs: Exprs,
    pub(crate) nodes: Vec<Node>,
    /// The numbers of the nodes by their names, those of one name in the order of the file.
    pub(crate) named: Vec<Number>,
    /// Names of parameters, node after node.
    pub(crate) params: Vec<Name>,
    /// Bases, node after node: types.
    pub(crate) bases: Vec<ExprId>,
    pub(crate) drifts: Vec<(u32, Drift)>,
    pub(crate) impls: Vec<Impl>,
    pub(crate) calls: Vec<Call>,
    pub(crate) imports: Vec<Import>,
    /// By name.
    pub(crate) bindings: Vec<Binding<Number>>,
    /// By name.
    pub(crate) fields: Vec<Field>,
    /// By node.
    pub(crate) gives: Vec<Given>,
    /// In the order of the file.
    pub(crate) conditions: Vec<Condition>,
    /// The start and end of loops, for languages that bind names as they run.
    pub(crate) loops: Vec<(Number, Number)>,
}

/// The kind of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A function that belongs to no class.
    Function,
    /// A function of a class, trait or type.
    Method,
    /// A class, struct, enum or record.
    Class,
    /// A trait, interface or protocol.
    Trait,
    /// A name for a type.
    Type,
    /// A module or namespace inside a file.
    Module,
    /// A macro.
    Macro,
    /// A variant of an enum that holds something.
    Variant,
    /// A constant of a file that holds the result of a call.
    Constant,
}

/// The place of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// The line of its name, from 1; decorators stand before it.
    pub line: u32,
    /// The last line.
    pub end_line: u32,
    /// The first byte, decorators included.
    pub byte: u32,
    /// The byte after its end.
    pub end: u32,
}

/// A part of the code that has a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// The kind of the node.
    pub kind: Kind,
    /// The place of the node.
    pub span: Span,
    /// The hash of its bytes.
    pub hash: Hash,
    /// Counts 1, plus 1 for each branch and each boolean operator.
    pub complexity: u32,
    pub(crate) flags: u16,
    /// A hash of the parameters: equal parameters, equal number. 0 for none.
    pub(crate) takes: u32,
    pub(crate) name: Name,
    pub(crate) qual: Name,
    pub(crate) signature: Name,
    pub(crate) doc: Name,
    pub(crate) owner: Owner,
    pub(crate) params: (Number, Number),
    pub(crate) bases: (Number, Number),
}

/// Flags that are true of a node besides its kind.
pub(crate) mod flag {
    /// A test.
    pub const TEST: u16 = 1;
    /// Read like a field, though it is a function.
    pub const PROPERTY: u16 = 2;
    /// Makes a value that tests ask for by the name of a parameter.
    pub const FIXTURE: u16 = 4;
    /// Gives the value it yields, once: a context manager, a fixture.
    pub const YIELDS_ONE: u16 = 8;
    /// A generator.
    pub const GENERATOR: u16 = 16;
    /// Without a body: a declaration, a signature of an interface, an overload.
    pub const BODILESS: u16 = 32;
    /// Only there for some platforms, features or builds.
    pub const CONDITIONAL: u16 = 64;
    /// Exported by a module of ECMAScript, or static in C (then not exported).
    pub const STATIC: u16 = 128;
    /// Wrapped by a decorator whose result is not known.
    pub const DECORATED: u16 = 256;
    /// Async: its value must be awaited.
    pub const ASYNC: u16 = 512;
    /// The default export of its file.
    pub const DEFAULT: u16 = 1024;
    /// Declares the type of its result.
    pub const ANNOTATED: u16 = 2048;
    /// A function of ECMAScript that has a `this` of its own: no arrow, no method.
    pub const OWN_THIS: u16 = 4096;
    /// A class of Java that extends another: its first base. The others are interfaces.
    pub const EXTENDS: u16 = 8192;
}

/// The owner of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Owner {
    File,
    Node(Number),
    Impl(Number),
}

/// A block that gives methods to a type that is defined elsewhere: Rust's `impl`, the receiver of a method of Go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Impl {
    /// The type.
    pub of: ExprId,
    /// The trait, or none.
    pub tr: ExprId,
    pub from: u32,
    pub to: u32,
}

/// A place where something is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Call {
    /// The node it stands in, or none.
    pub within: Number,
    /// The callee: a name, or a member of something.
    pub callee: ExprId,
    /// The place of the name.
    pub byte: Number,
    pub line: Number,
    pub macro_: bool,
}

/// In place of the number of a node.
pub(crate) const NO_NODE: u32 = u32::MAX;

/// A name that another file gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Import {
    /// As it is written, path separators and all.
    pub module: Name,
    /// The imported name: none is the module itself, `*` all.
    pub name: Name,
    /// Here called.
    pub alias: Name,
    pub line: Number,
    /// The start of the range where it holds.
    pub from: Number,
    pub to: Number,
    /// Is true when it is passed on.
    pub reexport: bool,
}

/// The meaning of a name between two bytes of the file; kept with [`Number`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Binding<N = u32> {
    pub name: Name,
    /// The start of the range where the name can be seen.
    pub from: N,
    pub to: N,
    /// The place of its value, where the value is resolved.
    pub at: N,
    /// Up to where nothing else can have been meant, if nothing follows: the end of the block.
    pub sure: N,
    pub bound: Bound<N>,
}

/// The thing that a name is bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Bound<N = u32> {
    /// A node of this file.
    Node(N),
    /// An import of this file.
    Import(N),
    /// A value.
    Value(ExprId),
    /// The parameter of a function.
    Param(ExprId, N),
    /// A parameter of a type, with its bounds and its place among them.
    TypeParam(ExprId, N),
}

impl<N: Copy> Binding<N> {
    /// The same in another kind of numbers.
    pub fn into_of<M: From<N>>(self) -> Binding<M> {
        let Self { name, from, to, at, sure, bound } = self;
        let bound = match bound {
            Bound::Node(node) => Bound::Node(node.into()),
            Bound::Import(import) => Bound::Import(import.into()),
            Bound::Value(value) => Bound::Value(value),
            Bound::Param(value, of) => Bound::Param(value, of.into()),
            Bound::TypeParam(bounds, place) => Bound::TypeParam(bounds, place.into()),
        };
        Binding { name, from: from.into(), to: to.into(), at: at.into(), sure: sure.into(), bound }
    }
}

/// A part of the file that is there only in some builds: the code after Rust's `#[cfg(..)]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Condition {
    /// As it is written.
    pub when: Name,
    pub from: u32,
    pub to: u32,
    pub line: u32,
    pub end_line: u32,
}

/// A field of a class, struct or interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Field {
    pub name: Name,
    /// The class.
    pub owner: Number,
    pub value: ExprId,
    /// The place of the value.
    pub at: Number,
}

/// The result of a function, the meaning of a type alias, or the value of a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Given {
    pub node: Number,
    pub value: ExprId,
    pub at: Number,
}

/// A contradiction between a documentation and the documented code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drift {
    /// The rule it breaks.
    pub rule: DriftRule,
    /// The contradiction, in words.
    pub detail: String,
}

/// Rules by which documentation is known not to fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum DriftRule {
    /// It documents a parameter that the signature lacks.
    R1,
    /// It documents parameters, but not all.
    R2,
    /// It states another default than the signature.
    R3,
    /// It documents a result or an error that there is not.
    R4,
    /// It names a parameter in code quotes that was taken away while somebody looked.
    #[serde(rename = "R1'")]
    R1Since,
}

impl DriftRule {
    /// Returns true if the documentation is wrong, and false if it is only incomplete.
    pub fn outdated(self) -> bool {
        matches!(self, Self::R1 | Self::R1Since | Self::R3)
    }
}

impl FileFacts {
    /// The facts of a file that says nothing.
    pub(crate) fn new(language: Language, hash: Hash, parse_errors: bool) -> Self {
        Self {
            language,
            hash,
            parse_errors,
            rest: Hash::default(),
            package: Name::NONE,
            names: Names::default(),
            exprs: Exprs::default(),
            nodes: Vec::new(),
            named: Vec::new(),
            params: Vec::new(),
            bases: Vec::new(),
            drifts: Vec::new(),
            impls: Vec::new(),
            calls: Vec::new(),
            imports: Vec::new(),
            bindings: Vec::new(),
            fields: Vec::new(),
            gives: Vec::new(),
            conditions: Vec::new(),
            loops: Vec::new(),
        }
    }

    /// How many nodes it has.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns true if it has no nodes.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns a node by its number in the file.
    pub fn node(&self, number: u32) -> Option<NodeView<'_>> {
        self.nodes.get(number as usize).map(|node| NodeView::new(self, node, number))
    }

    /// Returns the nodes in the order of the file.
    pub fn nodes(&self) -> impl Iterator<Item = NodeView<'_>> {
        self.nodes.iter().zip(0..).map(|(node, number)| NodeView::new(self, node, number))
    }

    /// How many calls it makes.
    pub fn calls(&self) -> usize {
        self.calls.len()
    }

    /// Withholds signatures and documentation in which a secret is found.
    pub fn withhold(&mut self, secret: impl Fn(&str) -> bool) {
        let Self { nodes, names, drifts, .. } = self;
        let mut gone = HashSet::default();
        for text in nodes.iter_mut().flat_map(|node| [&mut node.signature, &mut node.doc]) {
            if secret(names.get(*text)) {
                gone.insert(std::mem::replace(text, Name::NONE));
            }
        }
        drifts.retain(|(_, drift)| !secret(&drift.detail));
        names.forget(&gone);
    }

    /// The bytes it takes in memory.
    pub fn memory(&self) -> usize {
        fn of<T>(v: &Vec<T>) -> usize {
            v.capacity() * size_of::<T>()
        }
        size_of::<Self>()
            + self.names.memory()
            + self.exprs.memory()
            + of(&self.nodes)
            + of(&self.named)
            + of(&self.params)
            + of(&self.bases)
            + of(&self.drifts)
            + of(&self.impls)
            + of(&self.calls)
            + of(&self.imports)
            + of(&self.bindings)
            + of(&self.fields)
            + of(&self.gives)
            + of(&self.conditions)
            + of(&self.loops)
    }

    /// The nodes of a name with their numbers, in the order of the file.
    pub(crate) fn nodes_of(&self, name: Name) -> impl Iterator<Item = (u32, &Node)> {
        let node = |number: &Number| self.nodes.get(number.get() as usize);
        let from = self.named.partition_point(|number| node(number).is_some_and(|node| node.name < name));
        let rest = self.named.get(from..).unwrap_or_default();
        rest.iter().map_while(move |number| Some((number.get(), node(number).filter(|node| node.name == name)?)))
    }

    /// The name that a call calls; none for `Self(..)`.
    pub(crate) fn called(&self, call: &Call) -> Name {
        match self.exprs.get(call.callee) {
            Some(Expr::Name(name) | Expr::Member(_, name) | Expr::Static(_, name)) => name,
            _ => Name::NONE,
        }
    }

    /// Returns the bindings of a name, in the order of the file.
    pub(crate) fn bindings_of(&self, name: Name) -> impl Iterator<Item = Binding> {
        let from = self.bindings.partition_point(|b| b.name < name);
        self.bindings[from..].iter().take_while(move |b| b.name == name).map(|b| b.into_of())
    }

    /// The fields of a name.
    pub(crate) fn fields_of(&self, name: Name) -> &[Field] {
        let from = self.fields.partition_point(|b| b.name < name);
        let len = self.fields[from..].partition_point(|b| b.name == name);
        &self.fields[from..from + len]
    }

    /// Returns the results of a node.
    pub(crate) fn gives_of(&self, node: u32) -> &[Given] {
        let from = self.gives.partition_point(|b| b.node.get() < node);
        let len = self.gives[from..].partition_point(|b| b.node.get() == node);
        &self.gives[from..from + len]
    }

    /// Returns the names by which the file may call a thing of this name: the name itself, and its import aliases.
    pub(crate) fn names_for(&self, name: &str) -> Vec<Name> {
        let own = self.names.find(name);
        let default = if self.language.is_ecma() { self.names.find("default") } else { None };
        let mut out: Vec<Name> = own.into_iter().collect();
        let renamed =
            self.imports.iter().filter(|i| i.name != i.alias && (Some(i.name) == own || Some(i.name) == default));
        out.extend(renamed.map(|import| import.alias).filter(|alias| !alias.is_none()));
        out
    }

    /// A text of the file by its name.
    pub(crate) fn text(&self, name: Name) -> &str {
        self.names.get(name)
    }
}
