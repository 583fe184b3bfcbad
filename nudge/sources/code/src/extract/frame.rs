//! The frames that are open around the place of a walk.

use crate::facts::ExprId;

/// A function, class or block that the place of the walk is in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    /// How deep in the tree it was opened.
    pub depth: u32,
    pub what: Open,
    /// The start of the range where names bound in it can be seen.
    pub from: u32,
    pub to: u32,
    /// The value that the arms of a match look at.
    pub subject: ExprId,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Open {
    File,
    Block,
    /// A function; without a number one that has no name.
    Function(u32),
    /// A node with members: their names are not seen without it.
    Class(u32),
    Module(u32),
    Impl(u32),
}
