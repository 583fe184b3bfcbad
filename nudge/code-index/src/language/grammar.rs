//! A grammar with the tables that give its syntax a meaning, by number of kind.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use tree_sitter::{Language as Parser, Node};

use crate::extract::TreeWalk;

/// A step of the walk at a node of the tree.
pub(crate) type Visit = for<'a> fn(&mut TreeWalk<'a>, Node<'_>);

/// The meaning of a kind of syntax as an expression or type. Texts are names of fields; `""` is the first named child.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SyntaxShape {
    Name,
    Member(&'static str, &'static str),
    Static(&'static str, &'static str),
    Call(&'static str),
    /// A call, unless the function makes something else of it.
    CallOr(&'static str, Lower),
    /// Object, if any, and name of the method.
    Invoke(&'static str, &'static str),
    /// A value of the type in the field.
    Of(&'static str),
    Inner(&'static str),
    Item(&'static str),
    /// The same as the value in the field.
    Pass(&'static str),
    /// A type and, in a child, its arguments.
    Apply(&'static str, &'static str),
    /// Either of two.
    Either(&'static str, &'static str),
    /// All its named children, of which any may be meant.
    Tuple(&'static str),
    Null,
    This,
    Super,
    Literal(&'static str),
    /// By a function of its own.
    Own(Lower),
}

/// An expression of the grammar's own.
pub(crate) type Lower = for<'a> fn(&mut TreeWalk<'a>, Node<'_>) -> crate::facts::ExprId;

/// The parts that a language brings.
pub(crate) struct LanguageSpec {
    pub parser: fn() -> Parser,
    pub visits: &'static [(&'static str, Visit)],
    pub shapes: &'static [(&'static str, SyntaxShape)],
    /// Syntax that adds to the complexity.
    pub branches: &'static [&'static str],
    /// Comments.
    pub comments: &'static [&'static str],
    /// Syntax in which nothing stands that is visited: the walk does not look into it.
    pub leaves: &'static [&'static str],
    /// Syntax in which nothing is visited after its first child: the rest is a point and a name.
    pub heads: &'static [&'static str],
}

/// A language as it is used.
pub(crate) struct Grammar {
    pub parser: Parser,
    pub rows: Vec<SyntaxRow>,
    /// The numbers of the fields: the parser looks names up one by one.
    pub fields: HashMap<String, u16, FixedState>,
}

/// The tables' entry for a kind.
#[derive(Clone, Copy, Default)]
pub(crate) struct SyntaxRow {
    pub visit: Option<Visit>,
    pub shape: Option<SyntaxShape>,
    pub branch: bool,
    pub comment: bool,
    pub inside: WalkExtent,
}

/// The children of a node that the walk visits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum WalkExtent {
    #[default]
    All,
    /// The first child.
    First,
    Nothing,
}

impl Grammar {
    pub fn new(spec: &LanguageSpec) -> Self {
        let parser = (spec.parser)();
        let count = parser.node_kind_count();
        let mut rows = vec![SyntaxRow::default(); count];
        for (row, id) in rows.iter_mut().zip(0..=u16::MAX) {
            let Some(kind) = parser.node_kind_for_id(id) else { continue };
            row.shape = spec.shapes.iter().find(|(name, _)| *name == kind).map(|(_, shape)| *shape);
            if parser.node_kind_is_named(id) {
                row.visit = spec.visits.iter().find(|(name, _)| *name == kind).map(|(_, visit)| *visit);
                row.branch = spec.branches.contains(&kind);
                row.comment = spec.comments.contains(&kind);
                if row.comment || spec.leaves.contains(&kind) {
                    row.inside = WalkExtent::Nothing;
                } else if spec.heads.contains(&kind) {
                    row.inside = WalkExtent::First;
                }
            } else {
                row.branch = matches!(kind, "&&" | "||" | "??" | "and" | "or");
            }
        }
        let count = u16::try_from(parser.field_count()).expect("the ids of fields have 16 bits");
        let names = (1..=count).filter_map(|id| Some((parser.field_name_for_id(id)?.to_owned(), id)));
        let fields = names.collect();
        Self { parser, rows, fields }
    }

    pub fn row_of(&self, node: Node<'_>) -> &SyntaxRow {
        const NONE: SyntaxRow =
            SyntaxRow { visit: None, shape: None, branch: false, comment: false, inside: WalkExtent::All };
        self.rows.get(usize::from(node.kind_id())).unwrap_or(&NONE)
    }
}
