//! Holds the frames around the current node of a walk.

use crate::facts::ExprId;

/// A part of the code around the current node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WalkFrame {
    /// The depth in the tree at which the frame was opened.
    pub depth: u32,
    pub what: FrameKind,
    /// The start of the range in which its names are visible.
    pub from: u32,
    pub to: u32,
    /// The value that the arms of a match are compared with.
    pub subject: ExprId,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameKind {
    File,
    Block,
    /// A function; the number is `NO_NODE` when it has no name.
    Function(u32),
    /// A node with members, whose names are visible only through it.
    Class(u32),
    Module(u32),
    Impl(u32),
}
