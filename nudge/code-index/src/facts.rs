//! Defines the facts of a file. They depend only on the path and the bytes of the file.
//!
//! A table stores each string of the file once, and all other facts refer to strings by number. So a node with its
//! calls takes a few hundred bytes, and needs no allocation of its own.

mod expr;
mod names;
mod number;
mod view;

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::language::CodeLanguage;

pub(crate) use expr::{Expr, ExprId, ExprMaker, ExprTable};
pub(crate) use names::{NameId, NameInterner, NameTable};
pub(crate) use number::{CompactNumber, to_number};
pub use view::NodeView;

/// The first 16 bytes of a BLAKE3 hash.
pub type Hash = [u8; 16];

/// Returns the hash of bytes.
pub fn hash(bytes: &[u8]) -> Hash {
    let mut out = Hash::default();
    out.copy_from_slice(&blake3::hash(bytes).as_bytes()[..16]);
    out
}

/// The facts of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileFacts {
    /// The language with which the file was read.
    pub language: CodeLanguage,
    /// The hash of the file's bytes.
    pub hash: Hash,
    /// True when parts of the file are invalid. The facts of the other parts are still correct.
    pub parse_errors: bool,
    /// The hash of the text outside all nodes.
    pub rest: Hash,
    /// The `package` of a Java file, or the namespace of a C# or PHP file.
    pub(crate) package: NameId,
    pub(crate) names: NameTable,
    pub(crate) exprs: ExprTable,
    pub(crate) nodes: Vec<CodeNode>,
    /// The numbers of the nodes, sorted by name. Nodes with the same name are in the order of the file.
    pub(crate) named: Vec<CompactNumber>,
    /// The names of the parameters of all nodes, one node after another.
    pub(crate) params: Vec<NameId>,
    /// The base types of all nodes, one node after another.
    pub(crate) bases: Vec<ExprId>,
    pub(crate) drifts: Vec<(u32, DocDrift)>,
    pub(crate) impls: Vec<ImplBlock>,
    pub(crate) calls: Vec<CallFact>,
    pub(crate) imports: Vec<ImportFact>,
    /// The bindings, sorted by name.
    pub(crate) bindings: Vec<NameBinding<CompactNumber>>,
    /// The fields, sorted by name.
    pub(crate) fields: Vec<FieldFact>,
    /// The results of functions, sorted by node.
    pub(crate) gives: Vec<ResultFact>,
    /// The conditions for builds (`cfg`), in the order of the file.
    pub(crate) conditions: Vec<BuildCondition>,
    /// The start and the end of each loop, for languages that bind names at run time.
    pub(crate) loops: Vec<(CompactNumber, CompactNumber)>,
}

/// The kind of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeKind {
    /// A function that belongs to no class.
    Function,
    /// A function that belongs to a class, trait or type.
    Method,
    /// A class, struct, enum or record.
    Class,
    /// A trait, an interface or a protocol.
    Trait,
    /// A type alias.
    Type,
    /// A module or namespace inside a file.
    Module,
    /// A macro.
    Macro,
    /// A variant of an enum that contains values.
    Variant,
    /// A constant of a file whose value is the result of a call.
    Constant,
}

/// The range of a node in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeSpan {
    /// The line of the node's name, from 1. Decorators are on earlier lines.
    pub line: u32,
    /// The last line of the node, from 1.
    pub end_line: u32,
    /// The offset of the first byte, including decorators.
    pub byte: u32,
    /// The offset after the last byte.
    pub end: u32,
}

/// A part of the code that has a name, such as a function or a class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeNode {
    /// The kind of the node.
    pub kind: NodeKind,
    /// The range of the node in its file.
    pub span: NodeSpan,
    /// The hash of the node's bytes.
    pub hash: Hash,
    /// The complexity: 1, plus 1 for each branch and each boolean operator.
    pub complexity: u32,
    pub(crate) flags: u16,
    /// A hash of the parameters. Equal parameters have equal hashes; 0 means no parameters.
    pub(crate) takes: u32,
    pub(crate) name: NameId,
    pub(crate) qual: NameId,
    pub(crate) signature: NameId,
    pub(crate) doc: NameId,
    pub(crate) prose: NameId,
    pub(crate) owner: NodeOwner,
    pub(crate) params: (CompactNumber, CompactNumber),
    pub(crate) bases: (CompactNumber, CompactNumber),
}

/// Flags that describe a node beyond its kind.
pub(crate) mod flag {
    /// The node is a test.
    pub const TEST: u16 = 1;
    /// The node is a function that code reads like a field.
    pub const PROPERTY: u16 = 2;
    /// The node is a fixture. A test gets its value through a parameter with the fixture's name.
    pub const FIXTURE: u16 = 4;
    /// The node yields its value once, like a context manager or a fixture.
    pub const YIELDS_ONE: u16 = 8;
    /// The node is a generator.
    pub const GENERATOR: u16 = 16;
    /// The node has no body, like a declaration, a method of an interface, or an overload.
    pub const BODILESS: u16 = 32;
    /// The node exists only on some platforms, with some features, or in some builds.
    pub const CONDITIONAL: u16 = 64;
    /// In ECMAScript, the node is exported by its module. In C, the node is `static` and so not exported.
    pub const STATIC: u16 = 128;
    /// A decorator with an unknown result wraps the node.
    pub const DECORATED: u16 = 256;
    /// The node is async, so callers must await its value.
    pub const ASYNC: u16 = 512;
    /// The node is the default export of its file.
    pub const DEFAULT: u16 = 1024;
    /// The node declares the type of its result.
    pub const ANNOTATED: u16 = 2048;
    /// The node is an ECMAScript function with its own `this`. Arrow functions and methods are not.
    pub const OWN_THIS: u16 = 4096;
    /// The node is a Java class that extends another class. The first base is that class, and the other bases are
    /// interfaces.
    pub const EXTENDS: u16 = 8192;
}

/// The owner of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum NodeOwner {
    File,
    Node(CompactNumber),
    Impl(CompactNumber),
}

/// A block that adds methods to a type, such as an `impl` block of Rust. For a Go method, it stands for the receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ImplBlock {
    /// The type to which the block adds methods.
    pub self_type: ExprId,
    /// The trait that the block implements, or none.
    pub tr: ExprId,
    pub from: u32,
    pub to: u32,
}

/// A call in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CallFact {
    /// The innermost node that contains the call, or none.
    pub within: CompactNumber,
    /// The expression that is called: a name, or a member of another expression.
    pub callee: ExprId,
    /// The offset of the called name.
    pub byte: CompactNumber,
    pub line: CompactNumber,
    pub macro_: bool,
}

/// Stands for "no node" as the number of a node.
pub(crate) const NO_NODE: u32 = u32::MAX;

/// A name that the file imports from another file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ImportFact {
    /// The module as the file writes it, with separators.
    pub module: NameId,
    /// The imported name. It is none for the module itself, and `*` for all names of the module.
    pub name: NameId,
    /// The name under which this file uses the import.
    pub alias: NameId,
    pub line: CompactNumber,
    /// The start of the range in which the name is visible; `to` is the end.
    pub from: CompactNumber,
    pub to: CompactNumber,
    /// True when this file also exports the imported name.
    pub reexport: bool,
}

/// The meaning of a name within a range of the file. The facts store it with [`CompactNumber`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NameBinding<N = u32> {
    pub name: NameId,
    /// The start of the range in which the binding applies; `to` is the end.
    pub from: N,
    pub to: N,
    /// The offset at which the value is evaluated.
    pub value_place: N,
    /// The offset up to which the binding is certain, unless a later binding of the name follows.
    pub sure: N,
    pub bound: BindingTarget<N>,
}

/// The thing that a name means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum BindingTarget<N = u32> {
    /// A node of this file.
    Node(N),
    /// An import of this file.
    Import(N),
    /// A value.
    Value(ExprId),
    /// The parameter of a function.
    Param(ExprId, N),
    /// A type parameter, with its bounds and its position in the list.
    TypeParam(ExprId, N),
}

impl<N: Copy> NameBinding<N> {
    /// Converts the numbers of the binding to another type.
    pub fn into_of<M: From<N>>(self) -> NameBinding<M> {
        let Self { name, from, to, value_place: offset, sure, bound } = self;
        let bound = match bound {
            BindingTarget::Node(node) => BindingTarget::Node(node.into()),
            BindingTarget::Import(import) => BindingTarget::Import(import.into()),
            BindingTarget::Value(value) => BindingTarget::Value(value),
            BindingTarget::Param(value, owner) => BindingTarget::Param(value, owner.into()),
            BindingTarget::TypeParam(bounds, place) => BindingTarget::TypeParam(bounds, place.into()),
        };
        NameBinding { name, from: from.into(), to: to.into(), value_place: offset.into(), sure: sure.into(), bound }
    }
}

/// A part of the file that exists only in some builds: the code after Rust's `#[cfg(..)]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BuildCondition {
    /// The condition, as the source writes it.
    pub when: NameId,
    pub from: u32,
    pub to: u32,
    pub line: u32,
    pub end_line: u32,
}

/// A field of a class, struct or interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FieldFact {
    pub name: NameId,
    /// The class, struct or interface that has the field.
    pub owner: CompactNumber,
    pub value: ExprId,
    /// The offset at which the value is evaluated.
    pub value_place: CompactNumber,
}

/// The result of a function, the meaning of a type alias, or the value of a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ResultFact {
    pub node: CompactNumber,
    pub value: ExprId,
    pub value_place: CompactNumber,
}

/// A contradiction between a documentation and its code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocDrift {
    /// The rule that the documentation breaks.
    pub rule: DriftRule,
    /// The contradiction, as a text for people.
    pub detail: String,
}

/// The rules that find wrong or incomplete documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum DriftRule {
    /// The documentation lists a parameter that the signature lacks.
    R1,
    /// The documentation lists some parameters, but not all.
    R2,
    /// The documentation states another default than the signature.
    R3,
    /// The documentation lists a result or an error that the function does not produce.
    R4,
    /// The documentation names, in code quotes, a parameter that was removed after the server had read the file.
    #[serde(rename = "R1'")]
    R1Since,
}

impl DriftRule {
    /// Returns true if breaking this rule means that the documentation is wrong, and false if it is only incomplete.
    pub fn is_outdated(self) -> bool {
        matches!(self, Self::R1 | Self::R1Since | Self::R3)
    }
}

impl FileFacts {
    /// Makes the facts of a file that has no nodes yet.
    pub fn new(language: CodeLanguage, hash: Hash, parse_errors: bool) -> Self {
        Self {
            language,
            hash,
            parse_errors,
            rest: Hash::default(),
            package: NameId::NONE,
            names: NameTable::default(),
            exprs: ExprTable::default(),
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

    /// Returns the number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns true if the file has no nodes.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns the node with this number in the file; `None` if there is none.
    pub fn node_by_number(&self, number: u32) -> Option<NodeView<'_>> {
        self.nodes.get(number as usize).map(|node| NodeView::new(self, node, number))
    }

    /// Returns all nodes, in the order of the file.
    pub fn nodes(&self) -> impl Iterator<Item = NodeView<'_>> {
        self.nodes.iter().zip(0..).map(|(node, number)| NodeView::new(self, node, number))
    }

    /// Returns the names that the code of each node calls, as the file writes them: the number of the node, and the name.
    pub fn called_names(&self) -> impl Iterator<Item = (u32, &str)> {
        self.calls.iter().filter_map(|call| {
            let (Expr::Name(name) | Expr::Member(_, name) | Expr::Static(_, name)) = self.exprs.get(call.callee)?
            else {
                return None;
            };
            Some((call.within.get(), self.text_of(name)))
        })
    }

    /// Returns the number of calls in the file.
    pub fn count_calls(&self) -> usize {
        self.calls.len()
    }

    /// Empties each signature, each documentation and the prose of each body for which `secret` returns true.
    pub fn withhold_secrets(&mut self, secret: impl Fn(&str) -> bool) {
        let Self { nodes, names, drifts, .. } = self;
        let mut gone = HashSet::default();
        for text in nodes.iter_mut().flat_map(|node| [&mut node.signature, &mut node.doc, &mut node.prose]) {
            if secret(names.get(*text)) {
                gone.insert(std::mem::replace(text, NameId::NONE));
            }
        }
        drifts.retain(|(_, drift)| !secret(&drift.detail));
        names.clear_names(&gone);
    }

    /// Returns the number of bytes that the facts take in memory.
    pub fn memory_bytes(&self) -> usize {
        fn vec_bytes<T>(v: &Vec<T>) -> usize {
            v.capacity() * size_of::<T>()
        }
        size_of::<Self>()
            + self.names.memory_bytes()
            + self.exprs.memory_bytes()
            + vec_bytes(&self.nodes)
            + vec_bytes(&self.named)
            + vec_bytes(&self.params)
            + vec_bytes(&self.bases)
            + vec_bytes(&self.drifts)
            + vec_bytes(&self.impls)
            + vec_bytes(&self.calls)
            + vec_bytes(&self.imports)
            + vec_bytes(&self.bindings)
            + vec_bytes(&self.fields)
            + vec_bytes(&self.gives)
            + vec_bytes(&self.conditions)
            + vec_bytes(&self.loops)
    }

    /// Returns the base types of a node. The result is empty when cached facts are damaged.
    pub(crate) fn bases_of(&self, node: &CodeNode) -> &[ExprId] {
        let (from, to) = node.bases;
        self.bases.get(from.get() as usize..to.get() as usize).unwrap_or_default()
    }

    /// Returns the nodes with this name, with their numbers, in the order of the file.
    pub(crate) fn nodes_of(&self, name: NameId) -> impl Iterator<Item = (u32, &CodeNode)> {
        let node = |number: &CompactNumber| self.nodes.get(number.get() as usize);
        let from = self.named.partition_point(|number| node(number).is_some_and(|node| node.name < name));
        self.named[from..]
            .iter()
            .map_while(move |number| Some((number.get(), node(number).filter(|node| node.name == name)?)))
    }

    /// Returns the name that a call calls; none for a call of `Self(..)`.
    pub(crate) fn called_name(&self, call: &CallFact) -> NameId {
        match self.exprs.get(call.callee) {
            Some(Expr::Name(name) | Expr::Member(_, name) | Expr::Static(_, name)) => name,
            _ => NameId::NONE,
        }
    }

    /// Returns the bindings of a name, in the order of the file.
    pub(crate) fn bindings_of(&self, name: NameId) -> impl Iterator<Item = NameBinding> {
        let from = self.bindings.partition_point(|b| b.name < name);
        self.bindings[from..].iter().take_while(move |b| b.name == name).map(|b| b.into_of())
    }

    /// Returns the fields with this name.
    pub(crate) fn fields_of(&self, name: NameId) -> &[FieldFact] {
        let from = self.fields.partition_point(|b| b.name < name);
        let len = self.fields[from..].partition_point(|b| b.name == name);
        &self.fields[from..from + len]
    }

    /// Returns the results of a node, which may have several.
    pub(crate) fn gives_of(&self, node: u32) -> &[ResultFact] {
        let from = self.gives.partition_point(|b| b.node.get() < node);
        let len = self.gives[from..].partition_point(|b| b.node.get() == node);
        &self.gives[from..from + len]
    }

    /// Returns the names by which the file may call a definition with this name: the name itself, and the aliases of
    /// its imports.
    pub(crate) fn names_for(&self, name: &str) -> Vec<NameId> {
        let own = self.names.find(name);
        let default = if self.language.is_ecma() { self.names.find("default") } else { None };
        let mut out: Vec<NameId> = own.into_iter().collect();
        let renamed =
            self.imports.iter().filter(|i| i.name != i.alias && (Some(i.name) == own || Some(i.name) == default));
        out.extend(renamed.map(|import| import.alias).filter(|alias| !alias.is_none()));
        out
    }

    /// Returns the text of a name.
    pub(crate) fn text_of(&self, name: NameId) -> &str {
        self.names.get(name)
    }
}
