//! Defines the fields of a node that the search reads.

use nudge_code_index::NodeView;

/// The most bytes of a documentation that are read. The beginning says what a node is for.
const DOC_BYTES: usize = 600;

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
    /// Returns the weight of a word in the field. A word in the name counts as much as three in the signature.
    pub fn weight(self) -> f64 {
        match self {
            Self::Name => 3.0,
            Self::Owner => 1.5,
            Self::Signature | Self::Doc | Self::Prose => 1.0,
            Self::Called => 0.4,
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
    let doc = view.doc().unwrap_or_default();
    take(NodeField::Doc, &doc[..doc.floor_char_boundary(DOC_BYTES)]);
    take(NodeField::Prose, view.prose());
}
