//! Combines a grammar with the tables that say how to read its syntax. The number of a syntax kind is the index into
//! the tables.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use tree_sitter::{Language as Parser, Node};

use crate::extract::TreeWalk;

/// A function that the walk calls at a node of the syntax tree.
pub(crate) type Visit = for<'a> fn(&mut TreeWalk<'a>, Node<'_>);

/// The way in which a syntax kind becomes an expression or type. The strings are names of fields; `""` is the first
/// named child.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SyntaxShape {
    Name,
    Member(&'static str, &'static str),
    Static(&'static str, &'static str),
    Call(&'static str),
    /// A call, or another expression if the function lowers it to one.
    CallOr(&'static str, Lower),
    /// A method call. The first string is the field of the object, which may be missing, and the second is the field of
    /// the name.
    Invoke(&'static str, &'static str),
    /// A value of the type in this field.
    Of(&'static str),
    Inner(&'static str),
    Item(&'static str),
    /// The value in this field, unchanged.
    Pass(&'static str),
    /// A type in one field, with type arguments in another.
    Apply(&'static str, &'static str),
    /// Either of two values, which are in these fields.
    Either(&'static str, &'static str),
    /// A tuple of all named children.
    Tuple(&'static str),
    Null,
    This,
    Super,
    Literal(&'static str),
    /// A function of the language lowers the syntax.
    Own(Lower),
}

/// A function that lowers a syntax node to an expression.
pub(crate) type Lower = for<'a> fn(&mut TreeWalk<'a>, Node<'_>) -> crate::facts::ExprId;

/// The tables of a language.
pub(crate) struct LanguageSpec {
    pub parser: fn() -> Parser,
    pub visits: &'static [(&'static str, Visit)],
    pub shapes: &'static [(&'static str, SyntaxShape)],
    /// The syntax kinds that increase the complexity.
    pub branches: &'static [&'static str],
    /// The syntax kinds that are comments.
    pub comments: &'static [&'static str],
    /// The syntax kinds that the walk does not enter, because they contain nothing that it visits.
    pub leaves: &'static [&'static str],
    /// The syntax kinds of which the walk enters only the first child. The other children are a dot and a name.
    pub heads: &'static [&'static str],
}

/// A language with its tables, ready for use.
pub(crate) struct Grammar {
    pub parser: Parser,
    pub rows: Vec<SyntaxRow>,
    /// The numbers of the fields, by name. The map is needed because the parser compares all names one after another.
    pub fields: HashMap<String, u16, FixedState>,
}

/// The entry of the tables for one syntax kind.
#[derive(Clone, Copy, Default)]
pub(crate) struct SyntaxRow {
    pub visit: Option<Visit>,
    pub shape: Option<SyntaxShape>,
    pub branch: bool,
    pub comment: bool,
    /// True for a string, but not for its parts.
    pub string: bool,
    pub inside: WalkExtent,
}

/// Says which children of a syntax node the walk visits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum WalkExtent {
    #[default]
    All,
    /// Only the first child.
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
                row.string = is_string(kind);
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
        const NONE: SyntaxRow = SyntaxRow {
            visit: None,
            shape: None,
            branch: false,
            comment: false,
            string: false,
            inside: WalkExtent::All,
        };
        self.rows.get(usize::from(node.kind_id())).unwrap_or(&NONE)
    }
}

/// Returns true for the kind of a whole string. All grammars have `string` in the names of strings and of their parts.
fn is_string(kind: &str) -> bool {
    let is_part = ["content", "fragment", "start", "end", "interpolation"].iter().any(|part| kind.ends_with(part));
    kind.contains("string") && !is_part && !kind.starts_with("concatenated")
}
