//! Compares all facts of one file of each language with a stored snapshot. The test fails when a new release of a
//! grammar renames syntax that the tables use. The files are in `tests/facts`, and `UPDATE=1` writes the snapshots
//! again.

use std::fmt::Write as _;
use std::path::Path;

use crate::facts::{BindingTarget, ExprId, FileFacts, NameBinding, NameId};

use super::extract;

const FILES: [(&str, &str); 8] = [
    ("python", "py"),
    ("rust", "rs"),
    ("javascript", "test.js"),
    ("typescript", "ts"),
    ("tsx", "tsx"),
    ("go", "go"),
    ("java", "java"),
    ("c", "c"),
];
#[cfg(feature = "code-all")]
const LARGE: [(&str, &str); 4] = [("cpp", "cpp"), ("ruby", "rb"), ("c_sharp", "cs"), ("php", "php")];
#[cfg(not(feature = "code-all"))]
const LARGE: [(&str, &str); 0] = [];

#[test]
fn all_facts_of_a_file_of_each_language() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/facts");
    let mut changed = Vec::new();
    for (name, extension) in FILES.iter().chain(&LARGE) {
        let source = std::fs::read(folder.join(format!("{name}.txt"))).unwrap();
        let facts = extract(&format!("shop/test_cart.{extension}"), &source).unwrap();
        assert!(!facts.parse_errors, "{name}: the file is not valid");
        let (known, place) = (told(&facts), folder.join(format!("{name}.facts")));
        if std::env::var("UPDATE").is_ok_and(|update| update == "1") {
            std::fs::write(place, known).unwrap();
        } else if std::fs::read_to_string(place).unwrap_or_default() != known {
            changed.push(*name);
        }
    }
    assert!(changed.is_empty(), "other facts of {changed:?}: see what differs by UPDATE=1 and git diff");
}

/// Writes facts as text, with the names and expressions themselves instead of numbers.
fn told(facts: &FileFacts) -> String {
    let mut out = String::new();
    let text = |name: NameId| facts.text_of(name).to_owned();
    let _ = writeln!(out, "{:?}, package {:?}", facts.language, text(facts.package));
    for view in facts.nodes() {
        let node = view.node();
        let span = node.span;
        let params = view.params().collect::<Vec<_>>().join(" ");
        let bases = view.bases().collect::<Vec<_>>().join(" ");
        let _ = writeln!(
            out,
            "\n{:?} {} lines {}-{} bytes {}-{}\n  {}\n  owner {:?} complexity {} flags {:b} params [{params}] bases [{bases}]",
            node.kind,
            view.qual(),
            span.line,
            span.end_line,
            span.byte,
            span.end,
            view.signature(),
            node.owner,
            node.complexity,
            node.flags,
        );
        for line in view.doc().unwrap_or_default().lines() {
            let _ = writeln!(out, "  | {line}");
        }
        for drift in view.list_drift() {
            let _ = writeln!(out, "  {:?} {}", drift.rule, drift.detail);
        }
        for given in facts.gives_of(view.number()) {
            let _ = writeln!(out, "  gives {}", expr(facts, given.value));
        }
    }
    section(&mut out, "impls", &facts.impls, |block| {
        format!("{} for {} at {}-{}", expr(facts, block.tr), expr(facts, block.self_type), block.from, block.to)
    });
    section(&mut out, "calls", &facts.calls, |call| {
        let macro_ = if call.macro_ { "!" } else { "" };
        let within = facts.node_by_number(call.within.get()).map_or("-", |view| view.qual());
        let name = text(facts.called_name(call));
        format!("{}: {name}{macro_} = {} in {within}", call.line.get(), expr(facts, call.callee))
    });
    section(&mut out, "imports", &facts.imports, |import| {
        let passed = if import.reexport { " passed on" } else { "" };
        format!(
            "{} {:?} of {:?} as {:?}{passed}",
            import.line.get(),
            text(import.name),
            text(import.module),
            text(import.alias)
        )
    });
    section(&mut out, "bindings", &facts.bindings, |binding| bound(facts, &binding.into_of()));
    section(&mut out, "fields", &facts.fields, |field| {
        let owner = facts.node_by_number(field.owner.get()).map_or("-", |view| view.qual());
        format!("{owner} {} = {}", text(field.name), expr(facts, field.value))
    });
    section(&mut out, "conditions", &facts.conditions, |when| {
        format!("{}-{} {}", when.line, when.end_line, text(when.when))
    });
    section(&mut out, "loops", &facts.loops, |(from, to)| format!("{}-{}", from.get(), to.get()));
    out
}

fn section<T>(out: &mut String, title: &str, all: &[T], line: impl Fn(&T) -> String) {
    let _ = writeln!(out, "\n{title}");
    let mut lines: Vec<_> = all.iter().map(line).collect();
    if title == "bindings" || title == "fields" {
        lines.sort();
    }
    for line in lines {
        let _ = writeln!(out, "  {line}");
    }
}

fn bound(facts: &FileFacts, binding: &NameBinding) -> String {
    let NameBinding { name, from, to, value_place: offset, sure, bound } = binding;
    let to = if *to == u32::MAX { "end".to_owned() } else { to.to_string() };
    let sure = if *sure == u32::MAX { "end".to_owned() } else { sure.to_string() };
    let what = match bound {
        BindingTarget::Node(node) => format!("node {}", facts.node_by_number(*node).map_or("-", |view| view.qual())),
        BindingTarget::Import(import) => format!("import {import}"),
        BindingTarget::Value(value) => expr(facts, *value),
        BindingTarget::Param(value, owner) => {
            format!(
                "parameter {} of {}",
                expr(facts, *value),
                facts.node_by_number(*owner).map_or("-", |view| view.qual())
            )
        }
        BindingTarget::TypeParam(bounds, number) => format!("type parameter {number} {}", expr(facts, *bounds)),
    };
    format!("{} {from}-{to} at {offset} sure {sure}: {what}", facts.text_of(*name))
}

/// Writes an expression and its parts as text, with the expressions themselves instead of numbers.
fn expr(facts: &FileFacts, id: ExprId) -> String {
    let mut text = format!("{id:?}");
    for _ in 0..200 {
        let Some((from, to, number)) = numbered(&text, "ExprId(") else { break };
        let inner = facts.exprs.get(ExprId::from_number(number)).map_or("-".to_owned(), |expr| format!("{expr:?}"));
        text.replace_range(from..to, &inner);
    }
    while let Some((from, to, number)) = numbered(&text, "NameId(") {
        text.replace_range(from..to, &format!("`{}`", facts.text_of(NameId::from_number(number))));
    }
    text
}

/// Finds the first `kind(number)` in a text. Returns its range and the number.
fn numbered(text: &str, kind: &str) -> Option<(usize, usize, u32)> {
    text.match_indices(kind).find_map(|(from, _)| {
        let rest = text.get(from + kind.len()..)?;
        let end = rest.find(')')?;
        Some((from, from + kind.len() + end + 1, rest.get(..end)?.parse().ok()?))
    })
}
