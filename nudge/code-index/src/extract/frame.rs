//! Defines the frames: the parts of the code that contain the current node of a walk.

use crate::facts::ExprId;

/// A part of the code that contains the current node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WalkFrame {
    /// The depth in the syntax tree at which the walk opened the frame.
    pub depth: u32,
    pub what: FrameKind,
    /// The start of the range in which names of the frame are visible; `to` is the end.
    pub from: u32,
    pub to: u32,
    /// The value with which the arms of a match are compared.
    pub subject: ExprId,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameKind {
    File,
    Block,
    /// A function, with the number of its node; `NO_NODE` if it has no name.
    Function(u32),
    /// A node that has members. Code can use their names only through the node.
    Class(u32),
    Module(u32),
    Impl(u32),
}
