//! Walks over a syntax tree: keeps the frames around the current node, and notes facts.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use tree_sitter::Node as Syntax;

use crate::doc::{DeclaredFunction, DeclaredParam};
use crate::facts::{
    BindingTarget, BuildCondition, CallFact, CodeNode, CompactNumber, Expr, ExprId, ExprMaker, FieldFact, FileFacts,
    ImplBlock, ImportFact, NO_NODE, NameBinding, NameId, NameInterner, NodeKind, NodeOwner, ResultFact, to_number,
};
use crate::language::{CodeLanguage, Grammar, WalkExtent};

use super::Skip;
use super::frame::{FrameKind, WalkFrame};

/// Largest depth of a syntax tree that is read. People do not write deeper code.
const DEPTH_MAX: u32 = 1_000;
const NODES_MAX: usize = 20_000;

/// A comment that may be the documentation of the next node.
#[derive(Debug, Clone, Copy)]
struct DocComment {
    from: usize,
    to: usize,
    row: usize,
    end_row: usize,
}

pub(crate) struct TreeWalk<'a> {
    pub src: &'a str,
    pub path: &'a str,
    pub language: CodeLanguage,
    pub grammar: &'static Grammar,
    pub names: NameInterner<'a>,
    pub exprs: ExprMaker,
    pub facts: FileFacts,
    pub frames: Vec<WalkFrame>,
    /// The marks, which are attributes and decorators, before the next node.
    pub marks: Vec<&'a str>,
    /// The offset of the first mark, if the mark belongs to the next node.
    pub marked_from: Option<u32>,
    /// The row of the first mark. It is valid only while there are marks.
    pub marked_row: usize,
    /// The values of the parameters of functions without a name, by the id of the function in the syntax tree.
    pub hints: HashMap<usize, ExprId, FixedState>,
    /// The node after which an assigned value is named, by the id of the value in the syntax tree.
    pub named: HashMap<usize, u32, FixedState>,
    /// The flags that an `export` gives to the node in it, and the row and the end of the `export`.
    pub exported: (u16, usize, u32),
    pub nesting: u32,
    /// True when the walk must not enter the current syntax node.
    pub skip: bool,
    /// The names that the code assigns again: name, offset and value.
    pub anew: Vec<(NameId, u32, ExprId)>,
    comments: Vec<DocComment>,
    /// The words of comments and messages in the functions, by the number of the node.
    prose: HashMap<u32, String, FixedState>,
    /// The complete documentation of the last node, before it is cut.
    doc: String,
    twins: HashMap<NameId, u32, FixedState>,
    depth: u32,
}

/// A node whose facts the walk is collecting.
pub(crate) struct NodeDraft<'t> {
    pub kind: NodeKind,
    pub name: NameId,
    /// The syntax node of the whole definition.
    pub whole: Syntax<'t>,
    pub body: Option<Syntax<'t>>,
    pub flags: u16,
    pub doc: Option<String>,
    /// True when code can use the name without the name of the owner.
    pub bare: bool,
}

impl<'a> TreeWalk<'a> {
    pub fn new(path: &'a str, src: &'a str, grammar: &'static Grammar, facts: FileFacts) -> Self {
        let file = WalkFrame { depth: 0, what: FrameKind::File, from: 0, to: u32::MAX, subject: ExprId::NONE };
        Self {
            src,
            path,
            language: facts.language,
            grammar,
            names: NameInterner::default(),
            exprs: ExprMaker::default(),
            facts,
            frames: vec![file],
            marks: Vec::new(),
            marked_from: None,
            marked_row: 0,
            hints: HashMap::default(),
            named: HashMap::default(),
            exported: (0, 0, 0),
            nesting: 0,
            skip: false,
            anew: Vec::new(),
            comments: Vec::new(),
            prose: HashMap::default(),
            doc: String::new(),
            twins: HashMap::default(),
            depth: 0,
        }
    }

    /// Visits each node of the syntax tree once, without recursion.
    pub fn walk_tree(&mut self, root: Syntax<'_>) -> Result<(), Skip> {
        let mut cursor = root.walk();
        // Counts for each open node the children that are not visited yet. Without the count, finding out that there is
        // no further sibling would take as long as finding one.
        let mut to_come: Vec<u32> = Vec::new();
        loop {
            let node = cursor.node();
            let row = self.grammar.row_of(node);
            self.skip = false;
            if row.comment {
                self.note_comment(node);
                self.note_prose(node);
            } else if row.string {
                self.note_prose(node);
            } else if row.branch {
                self.count_branch();
            }
            if let Some(visit) = row.visit {
                visit(self, node);
                if self.facts.nodes.len() > NODES_MAX {
                    return Err(Skip::TooManyNodes);
                }
            }
            let children = match row.inside {
                WalkExtent::All if !self.skip => node.child_count(),
                WalkExtent::First if !self.skip => node.child_count().min(1),
                _ => 0,
            };
            if children > 0 && cursor.goto_first_child() {
                to_come.push(children - 1);
                self.depth += 1;
                if self.depth > DEPTH_MAX {
                    return Err(Skip::TooDeep);
                }
                continue;
            }
            loop {
                while self.frames.len() > 1 && self.frames.last().is_some_and(|frame| frame.depth == self.depth) {
                    self.frames.pop();
                }
                if let Some(to_come) = to_come.last_mut().filter(|to_come| **to_come > 0)
                    && cursor.goto_next_sibling()
                {
                    *to_come -= 1;
                    break;
                }
                if !cursor.goto_parent() {
                    return Ok(());
                }
                to_come.pop();
                self.depth -= 1;
            }
        }
    }

    fn count_branch(&mut self) {
        let within = self.current_node();
        if let Some(node) = self.facts.nodes.get_mut(within as usize) {
            node.complexity += 1;
        }
    }

    /// Notes the words of a comment or a message in the body of a function. People describe there what the code does.
    fn note_prose(&mut self, node: Syntax<'_>) {
        let within = self.current_node();
        let Some(function) = self.facts.nodes.get(within as usize) else { return };
        if !matches!(function.kind, NodeKind::Function | NodeKind::Method) {
            return;
        }
        let text = self.node_text(node);
        // Strings may stand in strings, so of each only the beginning is read.
        let text = &text[..text.floor_char_boundary(super::text::PROSE_READ_MAX)];
        // A Python string may be the documentation, which is noted already.
        let begins_doc = self.names.get(function.doc).lines().next().is_some_and(|line| text.contains(line));
        if !begins_doc {
            super::text::add_prose(text, self.prose.entry(within).or_default());
        }
    }

    fn note_comment(&mut self, node: Syntax<'_>) {
        let (from, to) = (node.start_byte(), node.end_byte());
        let line = self.src[..from].rfind('\n').map_or(0, |newline| newline + 1);
        if !self.src[line..from].trim().is_empty() {
            return;
        }
        let end_row = node.end_position().row - usize::from(self.src[from..to].ends_with('\n'));
        let comment = DocComment { from, to, row: node.start_position().row, end_row };
        if self.comments.last().is_some_and(|last| last.end_row + 1 < comment.row) {
            self.comments.clear();
        }
        self.comments.push(comment);
    }

    /// Returns the flags of an `export` around a node, and the row of the `export`, and forgets them.
    pub fn take_export(&mut self, node: Syntax<'_>) -> (u16, usize) {
        let (flags, row, until) = std::mem::take(&mut self.exported);
        if end_byte(node) <= until { (flags, row) } else { (0, node.start_position().row) }
    }

    /// Returns the comments directly before a row, and forgets them. Marks may be between the comments and the row.
    pub fn comments_before(&mut self, row: usize) -> Vec<&'a str> {
        let comments = std::mem::take(&mut self.comments);
        let mut reach = row;
        let mut out = Vec::new();
        for comment in comments.iter().rev() {
            if comment.end_row + 1 < reach {
                break;
            }
            reach = comment.row;
            out.push(&self.src[comment.from..comment.to]);
        }
        out.reverse();
        out
    }

    pub fn node_text(&self, node: Syntax<'_>) -> &'a str {
        self.text_between(node.start_byte(), node.end_byte())
    }

    /// Returns the text between two offsets. Returns an empty text if the second offset is before the first, or if a
    /// faulty grammar gives an offset inside a character.
    pub fn text_between(&self, from: usize, to: usize) -> &'a str {
        self.src.get(from..to).unwrap_or_default()
    }

    pub fn name_of(&mut self, node: Syntax<'_>) -> NameId {
        let text = self.node_text(node);
        if text.len() > 200 || text.is_empty() { NameId::NONE } else { self.names.name(text) }
    }

    pub fn add_expr(&mut self, expr: Expr) -> ExprId {
        self.exprs.add_expr(expr)
    }

    /// Adds the expression for a value of the type `ty`.
    pub fn add_value_of(&mut self, ty: ExprId) -> ExprId {
        if ty.is_none() { ty } else { self.add_expr(Expr::Of(ty)) }
    }

    /// Opens a frame. The frame ends at the end of the syntax node.
    pub fn open_frame(&mut self, node: Syntax<'_>, what: FrameKind) {
        self.open_at(what, start_byte(node), end_byte(node), ExprId::NONE);
    }

    pub fn open_at(&mut self, what: FrameKind, from: u32, to: u32, subject: ExprId) {
        self.frames.push(WalkFrame { depth: self.depth, what, from, to, subject });
    }

    /// Returns the innermost frame.
    pub fn current_frame(&self) -> WalkFrame {
        self.frames[self.frames.len() - 1]
    }

    /// Returns true if the parent of the current syntax node has opened the innermost frame.
    pub fn is_opened_by_parent(&self) -> bool {
        self.frames.len() > 1 && self.current_frame().depth + 1 == self.depth
    }

    /// Returns the frame in which a new name is visible. In Python, a block does not limit names.
    fn name_frame(&self) -> WalkFrame {
        if self.language == CodeLanguage::Python { self.owner_frame() } else { self.current_frame() }
    }

    /// Returns the innermost frame that is not a block.
    pub fn owner_frame(&self) -> WalkFrame {
        self.frames.iter().rev().find(|frame| frame.what != FrameKind::Block).copied().unwrap_or(self.frames[0])
    }

    /// Returns the innermost class, or block of methods, that contains the current position.
    pub fn class_around(&self) -> Option<FrameKind> {
        self.frames
            .iter()
            .rev()
            .map(|frame| frame.what)
            .find(|what| matches!(what, FrameKind::Class(_) | FrameKind::Impl(_)))
    }

    /// Returns the number of the innermost node that contains the current position.
    pub fn current_node(&self) -> u32 {
        self.frames
            .iter()
            .rev()
            .find_map(|frame| match frame.what {
                FrameKind::Function(node) if node != NO_NODE => Some(node),
                FrameKind::Class(node) | FrameKind::Module(node) => Some(node),
                _ => None,
            })
            .unwrap_or(NO_NODE)
    }

    /// Returns the owner that a node at the current position has.
    pub fn owner_here(&self) -> NodeOwner {
        for frame in self.frames.iter().rev() {
            match frame.what {
                FrameKind::Function(NO_NODE) | FrameKind::Block => {}
                FrameKind::Function(node) | FrameKind::Class(node) | FrameKind::Module(node) => {
                    return NodeOwner::Node(node.into());
                }
                FrameKind::Impl(number) => return NodeOwner::Impl(number.into()),
                FrameKind::File => break,
            }
        }
        NodeOwner::File
    }

    /// Adds a node, and returns its number. The caller must open the frame of the node.
    pub fn add_node(&mut self, draft: NodeDraft<'_>) -> u32 {
        let number = u32::try_from(self.facts.nodes.len()).unwrap_or(NO_NODE);
        let owner = self.owner_here();
        let qual = self.qualify_name(owner, draft.name);
        let whole = draft.whole;
        let from = self.marked_from.take().unwrap_or_else(|| start_byte(whole)).min(start_byte(whole));
        let sig_end = draft.body.map_or(whole.end_byte(), |body| self.signature_end(whole, body));
        let signature = super::text::clean_signature(self.text_between(whole.start_byte(), sig_end));
        let bytes = self.node_text(whole).as_bytes();
        self.doc = draft.doc.unwrap_or_default();
        let doc = if self.doc.is_empty() {
            NameId::NONE
        } else {
            self.names.intern_text(&super::text::truncate_doc(&self.doc))
        };
        let node = CodeNode {
            kind: draft.kind,
            span: crate::facts::NodeSpan {
                line: line_number(whole),
                end_line: to_number(whole.end_position().row + 1),
                byte: from,
                end: end_byte(whole),
            },
            hash: crate::facts::hash(bytes),
            complexity: 1,
            flags: draft.flags,
            takes: match draft.kind {
                NodeKind::Function | NodeKind::Method => {
                    super::takes::hash_params(self.src, (self.language, self.grammar), whole, draft.body)
                }
                _ => 0,
            },
            name: draft.name,
            qual,
            signature: self.names.intern_text(&signature),
            doc,
            prose: NameId::NONE,
            owner,
            params: (CompactNumber::new(0), CompactNumber::new(0)),
            bases: (CompactNumber::new(0), CompactNumber::new(0)),
        };
        self.facts.nodes.push(node);
        self.marks.clear();
        if draft.bare {
            let WalkFrame { from, to, .. } = self.current_frame();
            self.add_binding(draft.name, from, to, from, BindingTarget::Node(number));
        }
        number
    }

    /// Returns the end of the declaration before a body. In Python, the comments at the beginning of a body stand before
    /// it in the syntax tree.
    fn signature_end(&self, whole: Syntax<'_>, body: Syntax<'_>) -> usize {
        // Goes forward, because each step back would begin at the first child again.
        let mut cursor = whole.walk();
        let before = whole.children(&mut cursor).take_while(|child| child.start_byte() < body.start_byte());
        let first_comment = before.fold(None, |first: Option<usize>, child| {
            let is_comment = self.grammar.row_of(child).comment;
            is_comment.then(|| first.unwrap_or_else(|| child.start_byte()))
        });
        first_comment.unwrap_or_else(|| body.start_byte())
    }

    /// Returns the name with the names of its owners before it. The second node with the same name gets the suffix
    /// `#2`.
    fn qualify_name(&mut self, owner: NodeOwner, name: NameId) -> NameId {
        let before = match owner {
            NodeOwner::File => String::new(),
            NodeOwner::Node(node) => self.names.get(self.facts.nodes[node.get() as usize].qual).to_owned(),
            NodeOwner::Impl(number) => self.path_of(self.facts.impls[number.get() as usize].self_type),
        };
        let mut qual = String::new();
        if let (NodeOwner::Impl(_), Some(FrameKind::Module(module))) =
            (owner, self.frames.iter().rev().map(|f| f.what).find(|what| matches!(what, FrameKind::Module(_))))
        {
            qual.push_str(self.names.get(self.facts.nodes[module as usize].qual));
            qual.push('.');
        }
        qual.push_str(&before);
        if !before.is_empty() {
            qual.push('.');
        }
        qual.push_str(self.names.get(name));
        let plain = self.names.intern_made(&qual);
        let count = self.twins.entry(plain).or_insert(0);
        *count += 1;
        if *count == 1 {
            return plain;
        }
        qual.push('#');
        qual.push_str(&count.to_string());
        self.names.intern_made(&qual)
    }

    /// Returns the last name in the path of a type.
    pub fn path_of(&self, ty: ExprId) -> String {
        let mut current = ty;
        for _ in 0..16 {
            match self.exprs.get(current) {
                Some(Expr::Name(name) | Expr::Member(_, name) | Expr::Static(_, name) | Expr::Literal(name)) => {
                    return self.names.get(name).to_owned();
                }
                Some(Expr::Apply(inner, _) | Expr::Of(inner)) => current = inner,
                _ => break,
            }
        }
        String::from("_")
    }

    pub fn add_binding(&mut self, name: NameId, from: u32, to: u32, offset: u32, bound: BindingTarget) {
        self.bind_until(name, from, to, offset, to, bound);
    }

    pub fn bind_until(&mut self, name: NameId, from: u32, to: u32, offset: u32, sure: u32, bound: BindingTarget) {
        if !name.is_none() {
            self.facts.bindings.push(NameBinding { name, from, to, value_place: offset, sure, bound }.into_of());
        }
    }

    pub fn add_field(&mut self, owner: u32, name: NameId, value: ExprId, offset: u32) {
        if !name.is_none() {
            self.facts.fields.push(FieldFact { name, owner: owner.into(), value, value_place: offset.into() });
        }
    }

    pub fn add_result(&mut self, node: u32, value: ExprId, offset: u32) {
        // With more than a few results, no result of the function is certain, so further ones are dropped.
        if node != NO_NODE && self.facts.gives.iter().rev().take(8).filter(|given| given.node.get() == node).count() < 8
        {
            self.facts.gives.push(ResultFact { node: node.into(), value, value_place: offset.into() });
        }
    }

    /// Notes that `target` exists only in builds with the condition `when`.
    pub fn add_condition(&mut self, when: &'a str, target: Syntax<'_>) {
        let when = self.names.name(when);
        let end_line = to_number(target.end_position().row + 1);
        self.facts.conditions.push(BuildCondition {
            when,
            from: start_byte(target),
            to: end_byte(target),
            line: line_number(target),
            end_line,
        });
    }

    pub fn set_params(&mut self, node: u32, names: impl IntoIterator<Item = NameId>) {
        let from = self.facts.params.len();
        self.facts.params.extend(names.into_iter().filter(|name| !name.is_none()));
        self.facts.nodes[node as usize].params = (to_number(from).into(), to_number(self.facts.params.len()).into());
    }

    /// Compares the documentation of a function with its declaration. The function must be the node that was added
    /// last.
    pub fn check_doc(&mut self, number: u32, params: &[DeclaredParam<'a>], open: bool, gives_nothing: bool) {
        let Some(node) = self.facts.nodes.get(number as usize) else { return };
        if self.doc.is_empty() {
            return;
        }
        let body = self.text_between(node.span.byte as usize, node.span.end as usize);
        let found = crate::doc::find_drift(&self.doc, &DeclaredFunction { params, open, gives_nothing, body });
        self.facts.drifts.extend(found.into_iter().map(|drift| (number, drift)));
    }

    pub fn set_bases(&mut self, node: u32, bases: impl IntoIterator<Item = ExprId>) {
        let from = self.facts.bases.len();
        self.facts.bases.extend(bases.into_iter().filter(|base| !base.is_none()));
        self.facts.nodes[node as usize].bases = (to_number(from).into(), to_number(self.facts.bases.len()).into());
    }

    pub fn impl_block(&mut self, owner: ExprId, tr: ExprId, node: Syntax<'_>) -> u32 {
        self.facts.impls.push(ImplBlock { self_type: owner, tr, from: start_byte(node), to: end_byte(node) });
        to_number(self.facts.impls.len() - 1)
    }

    pub fn add_import(&mut self, module: &str, name: &str, alias: &str, statement: Syntax<'_>, reexport: bool) {
        let WalkFrame { from, to, .. } = self.name_frame();
        let import = ImportFact {
            module: self.names.intern_made(module),
            name: if name.is_empty() { NameId::NONE } else { self.names.intern_made(name) },
            alias: if alias.is_empty() { NameId::NONE } else { self.names.intern_made(alias) },
            line: line_number(statement).into(),
            from: from.into(),
            to: to.into(),
            reexport,
        };
        self.facts.imports.push(import);
        let number = to_number(self.facts.imports.len() - 1);
        self.add_binding(import.alias, from, to, from, BindingTarget::Import(number));
    }

    /// Notes a call whose called name is the syntax node `site`.
    pub fn call(&mut self, name: NameId, callee: ExprId, site: Syntax<'_>, macro_: bool) {
        if name.is_none() || callee.is_none() {
            return;
        }
        let [within, byte, line] = [self.current_node(), start_byte(site), line_number(site)].map(CompactNumber::new);
        self.facts.calls.push(CallFact { within, callee, byte, line, macro_ });
    }

    pub fn into_facts(mut self) -> FileFacts {
        for (node, prose) in std::mem::take(&mut self.prose) {
            self.facts.nodes[node as usize].prose = self.names.intern_text(&prose);
        }
        let mut facts = self.facts;
        facts.rest = super::takes::hash_rest(self.src, &facts.nodes);
        facts.names = self.names.into_table();
        facts.exprs = self.exprs.into_table();
        facts.named = (0..to_number(facts.nodes.len())).map(CompactNumber::new).collect();
        facts.named.sort_by_key(|node| facts.nodes[node.get() as usize].name);
        facts.bindings.sort_by_key(|b| b.name);
        super::anew::mark_reassigned(&mut facts, &self.anew);
        super::unasked::drop(&mut facts);
        facts.fields.sort_by_key(|f| f.name);
        facts.gives.sort_by_key(|g| g.node);
        facts.nodes.shrink_to_fit();
        facts.calls.shrink_to_fit();
        facts.bindings.shrink_to_fit();
        facts.imports.shrink_to_fit();
        facts.fields.shrink_to_fit();
        facts.gives.shrink_to_fit();
        facts.conditions.shrink_to_fit();
        facts.loops.shrink_to_fit();
        facts.params.shrink_to_fit();
        facts.bases.shrink_to_fit();
        facts.impls.shrink_to_fit();
        facts.drifts.shrink_to_fit();
        facts
    }
}

pub(crate) fn start_byte(node: Syntax<'_>) -> u32 {
    to_number(node.start_byte())
}

pub(crate) fn end_byte(node: Syntax<'_>) -> u32 {
    to_number(node.end_byte())
}

pub(crate) fn line_number(node: Syntax<'_>) -> u32 {
    to_number(node.start_position().row + 1)
}
