//! Reads the lines before a Rust node: attributes, build conditions in attributes, and documentation.

use tree_sitter::Node as Syntax;

use crate::extract::TreeWalk;
use crate::facts::flag;

pub(super) fn visit_attribute(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    let text = walk.node_text(node);
    if walk.marks.len() > 64 {
        walk.marks.clear();
    }
    if walk.marks.is_empty() {
        walk.marked_row = node.start_position().row;
    }
    walk.marks.push(text);
    if let Some(when) = parse_cfg(text, "#[") {
        let mut next = node.next_named_sibling();
        while let Some(item) =
            next.filter(|next| matches!(next.kind(), "attribute_item" | "line_comment" | "block_comment"))
        {
            next = item.next_named_sibling();
        }
        if let Some(item) = next {
            walk.add_condition(when, item);
        }
    }
}

/// Handles `#![cfg(..)]`, which applies to the whole block or file that contains it.
pub(super) fn inner_attribute(walk: &mut TreeWalk<'_>, node: Syntax<'_>) {
    if let (Some(when), Some(parent)) = (parse_cfg(walk.node_text(node), "#!["), node.parent()) {
        walk.add_condition(when, parent);
    }
}

/// Returns the condition in `cfg(..)`; `None` for another attribute.
fn parse_cfg<'t>(attribute: &'t str, opened: &str) -> Option<&'t str> {
    let inner = attribute.strip_prefix(opened)?.trim_end().strip_suffix(']')?.trim();
    inner.strip_prefix("cfg")?.trim_start().strip_prefix('(')?.strip_suffix(')')
}

/// Returns the flags that the attributes of the next node set.
pub(super) fn read_flags(walk: &mut TreeWalk<'_>, node: Syntax<'_>) -> u16 {
    let mut flags = 0;
    // Drops attributes that belong to earlier syntax, which was not a node.
    if !follows_a_mark(walk, node) {
        walk.marks.clear();
    }
    for mark in &walk.marks {
        let inner = mark.trim_start_matches("#[").trim_end_matches(']');
        let path = inner.split_once(['(', '=']).map_or(inner, |(path, _)| path).trim();
        match path.rsplit_once("::").map_or(path, |(_, name)| name) {
            "test" | "rstest" | "test_case" | "quickcheck" | "bench" => flags |= flag::TEST,
            "cfg" if !inner.contains("test") => flags |= flag::CONDITIONAL,
            _ => {}
        }
    }
    flags
}

fn follows_a_mark(walk: &TreeWalk<'_>, node: Syntax<'_>) -> bool {
    walk.text_between(0, node.start_byte()).trim_end().ends_with(']')
}

pub(super) fn read_doc(walk: &mut TreeWalk<'_>, node: Syntax<'_>) -> Option<String> {
    // The documentation comes before the attributes. Attributes of earlier syntax may still be stored, so the function
    // checks that one ends directly before the node.
    let is_marked = !walk.marks.is_empty() && follows_a_mark(walk, node);
    let row = if is_marked { walk.marked_row } else { node.start_position().row };
    let mut comments = walk.comments_before(row);
    comments.retain(|comment| comment.starts_with("///") || comment.starts_with("/**"));
    crate::extract::text::clean_doc(&crate::doc::strip_comment_marks(&comments))
}
