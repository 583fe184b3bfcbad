//! Hashes the parameters of a function as its callers see them, and hashes the text of a file outside all nodes.

use std::collections::VecDeque;

use tree_sitter::Node as Syntax;

use crate::facts::{CodeNode, Hash};
use crate::language::{CodeLanguage, Grammar};

/// Largest number of parts of a declaration that are searched for the parameters.
const MAX_SEARCHED: usize = 64;
/// The fields that contain the default of a parameter. The second list has the fields that contain its type.
const DEFAULTS: [&str; 3] = ["value", "default_value", "right"];
const ANNOTATIONS: [&str; 2] = ["type", "return_type"];

/// Returns a hash of a declaration's parameters; 0 if it has none. The hash changes when an existing call may no longer
/// fit. It covers the names, the order and the kinds of the parameters, and whether they have defaults. It covers their
/// types if the language checks them. It covers neither the layout nor the values of the defaults.
pub(super) fn hash_params(
    src: &str,
    (language, grammar): (CodeLanguage, &Grammar),
    whole: Syntax<'_>,
    body: Option<Syntax<'_>>,
) -> u32 {
    let Some(list) = find_params(whole, body) else { return 0 };
    let mut hasher = blake3::Hasher::new();
    let mut cursor = list.walk();
    loop {
        let node = cursor.node();
        let is_field = |names: &[&str]| cursor.field_name().is_some_and(|field| names.contains(&field));
        let annotation = !language.types_must_fit()
            && (is_field(&ANNOTATIONS) || node.kind() == ":" && language == CodeLanguage::Python);
        let passed_over = annotation || is_field(&DEFAULTS) || node.kind() == "," || grammar.row_of(node).comment;
        if !passed_over && node.child_count() == 0 {
            hasher.update(src.as_bytes().get(node.byte_range()).unwrap_or_default());
            hasher.update(&[0]);
        }
        if !passed_over && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                let mut number = [0; 4];
                number.copy_from_slice(&hasher.finalize().as_bytes()[..4]);
                return u32::from_le_bytes(number).max(1);
            }
        }
    }
}

/// Finds the first list of parameters of a declaration that is outside its body.
fn find_params<'t>(whole: Syntax<'t>, body: Option<Syntax<'t>>) -> Option<Syntax<'t>> {
    let mut ahead = VecDeque::from([whole]);
    for _ in 0..MAX_SEARCHED {
        let node = ahead.pop_front()?;
        if let Some(list) = node.child_by_field_name("parameters").or_else(|| node.child_by_field_name("parameter")) {
            return Some(list);
        }
        let mut cursor = node.walk();
        ahead.extend(node.named_children(&mut cursor).take(MAX_SEARCHED).filter(|child| Some(*child) != body));
    }
    None
}

/// Returns the hash of the text outside all nodes.
pub(super) fn hash_rest(src: &str, nodes: &[CodeNode]) -> Hash {
    let mut hasher = blake3::Hasher::new();
    let mut offset = 0;
    for span in nodes.iter().map(|node| node.span).filter(|span| span.byte < span.end) {
        // A node inside the previous one has no text before it.
        if let Some(between) = src.as_bytes().get(offset..span.byte as usize) {
            hasher.update(between);
        }
        offset = offset.max(span.end as usize);
    }
    hasher.update(&src.as_bytes()[offset.min(src.len())..]);
    crate::facts::hash(hasher.finalize().as_bytes())
}

#[cfg(test)]
mod tests {
    fn takes(path: &str, text: &str) -> u32 {
        let facts = crate::extract(path, text.as_bytes()).unwrap();
        facts.nodes().find(|node| node.name() == "f").unwrap().params_hash()
    }

    #[test]
    fn what_callers_see_of_parameters() {
        for (path, first, other, is_same) in [
            ("a.ts", "function f(a: string, b?: X) {}", "function f(\n  a: number, // a\n  b?: Y,\n) {}", true),
            ("a.ts", "function f(a, b) {}", "function f(a, b = 1) {}", false),
            ("a.ts", "const f = (a = 1) => a;", "const f = (a = 2): number => a;", true),
            ("a.ts", "const f = a => a;", "const f = (a, b) => a;", false),
            ("a.rs", "fn f(a: u8, b: u8) {}", "pub fn f(\n    a: u8,\n    b: u8,\n) -> u8 { 1 }", true),
            ("a.rs", "fn f(a: u8) {}", "fn f(a: &str) {}", false),
            ("a.rs", "fn f() { |a: u8| a; }", "fn f() { |b: u8| b; }", true),
            ("a.go", "package a\nfunc f(a int) {}", "package a\nfunc f(a int) error { return nil }", true),
            ("a.go", "package a\nfunc f(a int) {}", "package a\nfunc f(a ...int) {}", false),
            ("A.java", "class A { void f(int a) {} }", "class A { int f( int a ) { return 1; } }", true),
            ("A.java", "class A { void f(int a) {} }", "class A { void f(long a) {} }", false),
            ("a.c", "int f(int a) { return 1; }", "int\nf(int a)\n{ return 2; }", true),
            ("a.c", "int f(int a) { return 1; }", "int f(int a, int b) { return 1; }", false),
        ] {
            assert_eq!(takes(path, first) == takes(path, other), is_same, "{first} and {other}");
        }
    }
}
