//! Defines the fields of a node that the search reads.

use nudge_code_index::NodeView;

/// The most bytes of a documentation that are read. The beginning says what a node is for.
const DOC_BYTES: usize = 600;

/// The weight of a word in a name (`IN_NAME`), in the names of the owners (`IN_OWNER`), in the signature, the
/// documentation or the prose of the body (`IN_TEXT`), or in the name of a called function (`IN_CALL`).
const IN_NAME: f64 = 3.0;
const IN_OWNER: f64 = 1.5;
const IN_TEXT: f64 = 1.0;
const IN_CALL: f64 = 0.4;

/// A field of a node, in the order in which a reason names the fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeField {
    /// The name without its owners.
    Name,
    /// The names of the owners.
    Owner,
    /// The declaration.
    Signature,
    /// The beginning of the documentation.
    Doc,
    /// The words of comments and messages in the body.
    Prose,
    /// The name of a function that the body calls.
    Called,
}

impl NodeField {
    /// Returns the weight of a word in the field.
    pub fn weight(self) -> f64 {
        match self {
            Self::Name => IN_NAME,
            Self::Owner => IN_OWNER,
            Self::Signature | Self::Doc | Self::Prose => IN_TEXT,
            Self::Called => IN_CALL,
        }
    }

    /// Returns the words before the found words in a reason.
    pub fn label(self) -> &'static str {
        match self {
            Self::Name => "name has",
            Self::Owner => "owner has",
            Self::Signature => "signature has",
            Self::Doc => "documentation has",
            Self::Prose => "body has",
            Self::Called => "calls",
        }
    }
}

/// Calls `take` with each field of a node, but for [`NodeField::Called`], and its text.
pub fn for_each_field<'a>(view: &NodeView<'a>, mut take: impl FnMut(NodeField, &'a str)) {
    take(NodeField::Name, view.name());
    take(NodeField::Owner, view.qual().rsplit_once('.').map_or("", |(owner, _)| owner));
    take(NodeField::Signature, view.signature());
    if let Some(doc) = view.doc() {
        take(NodeField::Doc, &doc[..doc.floor_char_boundary(DOC_BYTES)]);
    }
    take(NodeField::Prose, view.prose());
}
