//! The frames around the place of a walk.

use crate::facts::ExprId;

/// A part of the code around the place of a walk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WalkFrame {
    /// How deep in the tree it was opened.
    pub depth: u32,
    pub what: FrameKind,
    /// Start of the range in which its names are seen.
    pub from: u32,
    pub to: u32,
    /// The value that the arms of a match look at.
    pub subject: ExprId,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameKind {
    File,
    Block,
    /// A function; without a number one that has no name.
    Function(u32),
    /// A node with members: their names are not seen without it.
    Class(u32),
    Module(u32),
    Impl(u32),
}
