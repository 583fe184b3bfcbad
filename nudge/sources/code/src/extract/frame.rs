//! What is open around the place of a walk.

use crate::facts::ExprId;

/// One thing that the place of the walk is in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    /// How deep in the tree it was opened.
    pub depth: u32,
    pub what: Open,
    /// Where names that are bound in it can be seen.
    pub from: u32,
    pub to: u32,
    /// What the arms of a match look at.
    pub subject: ExprId,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Open {
    File,
    Block,
    /// A function; without a number one that has no name.
    Function(u32),
    /// What has members: their names are not seen without it.
    Class(u32),
    Module(u32),
    Impl(u32),
}
