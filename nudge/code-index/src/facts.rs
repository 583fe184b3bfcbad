//! Holds the facts of a file: a pure function of its path and bytes.
//!
//! A table of the file stores each string once, and all other facts refer to strings by number. So a node with its
//! calls takes a few hundred bytes and no allocation of its own.

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

/// Hashes bytes.
pub fn hash(bytes: &[u8]) -> Hash {
    let mut out = Hash::default();
    out.copy_from_slice(&blake3::hash(bytes).as_bytes()[..16]);
    out
}

/// The facts of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileFacts {
    /// The language by which the file was read.
    pub language: CodeLanguage,
    /// The hash of its bytes.
    pub hash: Hash,
    /// Is true when parts of the file are invalid; the facts of the other parts are still good.
    pub parse_errors: bool,
    /// The hash of the text outside all nodes.
    pub rest: Hash,
    /// The `package` of Java, or the namespace of C# and PHP.
    pub(crate) package: NameId,
    pub(crate) names: NameTable,
    pub(crate) exprs: ExprTable,
    pub(crate) nodes: Vec<CodeNode>,
    /// The numbers of the nodes, sorted by name; nodes with one name are in the order of the file.
    pub(crate) named: Vec<CompactNumber>,
    /// The names of parameters, node after node.
    pub(crate) params: Vec<NameId>,
    /// The types that are bases, node after node.
    pub(crate) bases: Vec<ExprId>,
    pub(crate) drifts: Vec<(u32, DocDrift)>,
    pub(crate) impls: Vec<ImplBlock>,
    pub(crate) calls: Vec<CallFact>,
    pub(crate) imports: Vec<ImportFact>,
    /// The bindings, sorted by name.
    pub(crate) bindings: Vec<NameBinding<CompactNumber>>,
    /// The fields, sorted by name.
    pub(crate) fields: Vec<FieldFact>,
    /// The results, sorted by node.
    pub(crate) gives: Vec<ResultFact>,
    /// The build conditions, in the order of the file.
    pub(crate) conditions: Vec<BuildCondition>,
    /// The start and end of loops, for languages that bind names at run time.
    pub(crate) loops: Vec<(CompactNumber, CompactNumber)>,
}

/// The kind of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeKind {
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
    /// A variant of an enum that holds a value.
    Variant,
    /// A constant of a file that holds the result of a call.
    Constant,
}

/// The place of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeSpan {
    /// The line of its name, from 1; decorators are before it.
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
pub struct CodeNode {
    /// The kind of the node.
    pub kind: NodeKind,
    /// The place of the node.
    pub span: NodeSpan,
    /// The hash of its bytes.
    pub hash: Hash,
    /// Counts 1, plus 1 for each branch and each boolean operator.
    pub complexity: u32,
    pub(crate) flags: u16,
    /// A hash of the parameters: equal for equal parameters, 0 for none.
    pub(crate) takes: u32,
    pub(crate) name: NameId,
    pub(crate) qual: NameId,
    pub(crate) signature: NameId,
    pub(crate) doc: NameId,
    pub(crate) owner: NodeOwner,
    pub(crate) params: (CompactNumber, CompactNumber),
    pub(crate) bases: (CompactNumber, CompactNumber),
}

/// Flags of a node besides its kind.
pub(crate) mod flag {
    /// A test.
    pub const TEST: u16 = 1;
    /// A function that is read like a field.
    pub const PROPERTY: u16 = 2;
    /// A fixture: tests get its value by the name of a parameter.
    pub const FIXTURE: u16 = 4;
    /// Yields its value once: a context manager, a fixture.
    pub const YIELDS_ONE: u16 = 8;
    /// A generator.
    pub const GENERATOR: u16 = 16;
    /// Has no body: a declaration, a signature of an interface, an overload.
    pub const BODILESS: u16 = 32;
    /// Exists only for some platforms, features or builds.
    pub const CONDITIONAL: u16 = 64;
    /// Exported by a module of ECMAScript, or `static` in C (then not exported).
    pub const STATIC: u16 = 128;
    /// Wrapped by a decorator with an unknown result.
    pub const DECORATED: u16 = 256;
    /// Async: callers must await its value.
    pub const ASYNC: u16 = 512;
    /// The default export of its file.
    pub const DEFAULT: u16 = 1024;
    /// Declares its result type.
    pub const ANNOTATED: u16 = 2048;
    /// A function of ECMAScript that has its own `this`: neither an arrow function nor a method.
    pub const OWN_THIS: u16 = 4096;
    /// A class of Java that extends another one: the first base is that class, the others are interfaces.
    pub const EXTENDS: u16 = 8192;
}

/// The owner of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum NodeOwner {
    File,
    Node(CompactNumber),
    Impl(CompactNumber),
}

/// A block that adds methods to a type that is defined elsewhere: Rust's `impl`, the receiver of a method of Go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ImplBlock {
    /// The type.
    pub self_type: ExprId,
    /// The trait, or none.
    pub tr: ExprId,
    pub from: u32,
    pub to: u32,
}

/// A call in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CallFact {
    /// The node around the call, or none.
    pub within: CompactNumber,
    /// The callee: a name, or a member of something.
    pub callee: ExprId,
    /// The position of the name.
    pub byte: CompactNumber,
    pub line: CompactNumber,
    pub macro_: bool,
}

/// Stands for "no node" where the number of a node is expected.
pub(crate) const NO_NODE: u32 = u32::MAX;

/// A name that the file imports from another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ImportFact {
    /// The module as written, with its path separators.
    pub module: NameId,
    /// The imported name; none for the module itself, `*` for all names.
    pub name: NameId,
    /// The name by which this file uses it.
    pub alias: NameId,
    pub line: CompactNumber,
    /// The start of the range in which the name is visible.
    pub from: CompactNumber,
    pub to: CompactNumber,
    /// Is true when this file exports the name in turn.
    pub reexport: bool,
}

/// The meaning of a name between two bytes of the file. The facts store it with [`CompactNumber`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NameBinding<N = u32> {
    pub name: NameId,
    /// The start of the range in which the binding holds.
    pub from: N,
    pub to: N,
    /// The position at which its value is evaluated.
    pub value_place: N,
    /// Up to this byte, the end of the block, the name has no other meaning unless a later binding follows.
    pub sure: N,
    pub bound: BindingTarget<N>,
}

/// The meaning of a name.
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
    /// A parameter of a type, with its bounds and its position in the list.
    TypeParam(ExprId, N),
}

impl<N: Copy> NameBinding<N> {
    /// Converts the binding to another number type.
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
    /// The condition, as written.
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
    /// The class that has the field.
    pub owner: CompactNumber,
    pub value: ExprId,
    /// The position of the value.
    pub value_place: CompactNumber,
}

/// The result of a function, the meaning of a type alias, or the value of a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ResultFact {
    pub node: CompactNumber,
    pub value: ExprId,
    pub value_place: CompactNumber,
}

/// A contradiction between a documentation and the documented code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocDrift {
    /// The rule it breaks.
    pub rule: DriftRule,
    /// The contradiction, in words.
    pub detail: String,
}

/// Rules that find wrong or incomplete documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum DriftRule {
    /// The documentation lists a parameter that the signature lacks.
    R1,
    /// The documentation lists some parameters, but not all.
    R2,
    /// The documentation states another default than the signature.
    R3,
    /// The documentation lists a result or an error that the function does not have.
    R4,
    /// The documentation names in code quotes a parameter that was removed while the server watched.
    #[serde(rename = "R1'")]
    R1Since,
}

impl DriftRule {
    /// Returns true if the documentation is wrong, and false if it is only incomplete.
    pub fn is_outdated(self) -> bool {
        matches!(self, Self::R1 | Self::R1Since | Self::R3)
    }
}

impl FileFacts {
    /// Makes the facts of a file without nodes.
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

    /// Returns true if there is no node.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns a node by its number in the file.
    pub fn node_by_number(&self, number: u32) -> Option<NodeView<'_>> {
        self.nodes.get(number as usize).map(|node| NodeView::new(self, node, number))
    }

    /// Returns the nodes in the order of the file.
    pub fn nodes(&self) -> impl Iterator<Item = NodeView<'_>> {
        self.nodes.iter().zip(0..).map(|(node, number)| NodeView::new(self, node, number))
    }

    /// Returns the number of calls.
    pub fn count_calls(&self) -> usize {
        self.calls.len()
    }

    /// Empties signatures and documentation in which `secret` finds a secret.
    pub fn withhold_secrets(&mut self, secret: impl Fn(&str) -> bool) {
        let Self { nodes, names, drifts, .. } = self;
        let mut gone = HashSet::default();
        for text in nodes.iter_mut().flat_map(|node| [&mut node.signature, &mut node.doc]) {
            if secret(names.get(*text)) {
                gone.insert(std::mem::replace(text, NameId::NONE));
            }
        }
        drifts.retain(|(_, drift)| !secret(&drift.detail));
        names.clear_names(&gone);
    }

    /// Returns the bytes that the facts take in memory.
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

    /// Returns the base types of a node; none when cached facts are damaged.
    pub(crate) fn bases_of(&self, node: &CodeNode) -> &[ExprId] {
        let (from, to) = node.bases;
        self.bases.get(from.get() as usize..to.get() as usize).unwrap_or_default()
    }

    /// Returns the nodes of a name with their numbers, in the order of the file.
    pub(crate) fn nodes_of(&self, name: NameId) -> impl Iterator<Item = (u32, &CodeNode)> {
        let node = |number: &CompactNumber| self.nodes.get(number.get() as usize);
        let from = self.named.partition_point(|number| node(number).is_some_and(|node| node.name < name));
        self.named[from..]
            .iter()
            .map_while(move |number| Some((number.get(), node(number).filter(|node| node.name == name)?)))
    }

    /// Returns the name that a call calls; none for `Self(..)`.
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

    /// Returns the fields of a name.
    pub(crate) fn fields_of(&self, name: NameId) -> &[FieldFact] {
        let from = self.fields.partition_point(|b| b.name < name);
        let len = self.fields[from..].partition_point(|b| b.name == name);
        &self.fields[from..from + len]
    }

    /// Returns the results of a node.
    pub(crate) fn gives_of(&self, node: u32) -> &[ResultFact] {
        let from = self.gives.partition_point(|b| b.node.get() < node);
        let len = self.gives[from..].partition_point(|b| b.node.get() == node);
        &self.gives[from..from + len]
    }

    /// Returns the names by which the file may call a definition of this name: the name itself, and import aliases of
    /// it.
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
