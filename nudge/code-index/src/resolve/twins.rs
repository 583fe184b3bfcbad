//! Handles twins, which are definitions of one name for different builds. A use certainly means one twin if the
//! conditions around the use exclude all others.

use crate::facts::{BindingTarget, FileFacts, NameBinding};
use crate::index::{NodeId, module_stem};
use crate::language::CodeLanguage;

use super::{CallResolver, ExprPlace, ModulePlace};

/// Largest number of modules around a file whose conditions are read, and largest number of conditions that are
/// compared.
const MODULES_MAX: usize = 16;
const CONDITIONS_MAX: usize = 64;
/// The keys of `cfg` that have exactly one value in a build.
const ONE_VALUE: [&str; 5] = ["target_os", "target_arch", "target_env", "target_endian", "target_pointer_width"];
/// The systems on which `unix` is true.
const UNIX: [&str; 10] =
    ["android", "dragonfly", "freebsd", "illumos", "ios", "linux", "macos", "netbsd", "openbsd", "solaris"];

impl CallResolver<'_> {
    /// Keeps the bindings that can exist in the same build as the code at the position.
    pub(super) fn bound_together(
        &self,
        facts: &FileFacts,
        site: &ExprPlace,
        all: Vec<NameBinding>,
    ) -> Vec<NameBinding> {
        if all.len() < 2 || facts.language != CodeLanguage::Rust || facts.conditions.is_empty() {
            return all;
        }
        let here = self.conditions_at(site.file, site.byte);
        let (mut kept, mut left) = (Vec::new(), all);
        left.retain(|binding| {
            let there = match binding.bound {
                BindingTarget::Node(node) => {
                    conditions_around(facts, facts.nodes.get(node as usize).map_or(0, |node| node.span.byte))
                }
                BindingTarget::Import(import) => {
                    at_line(facts, facts.imports.get(import as usize).map_or(0, |i| i.line.get()))
                }
                _ => Vec::new(),
            };
            let fits = !are_exclusive(&here, &there);
            if fits {
                kept.push(*binding);
            }
            !fits
        });
        // If all bindings are excluded, either the code or this rule is wrong, so all of them stay.
        if kept.is_empty() { left } else { kept }
    }

    /// Returns the node that can exist in the same build as the code at the position, if there is only one.
    pub(super) fn only_twin(&self, file: u32, byte: u32, all: &[NodeId]) -> Option<NodeId> {
        let here = self.conditions_at(file, byte);
        let mut fit = all.iter().filter(|id| {
            let byte =
                self.store.facts_at(id.file).and_then(|facts| facts.nodes.get(id.node as usize)).map(|n| n.span.byte);
            byte.is_some_and(|byte| !are_exclusive(&here, &self.conditions_at(id.file, byte)))
        });
        fit.next().copied().filter(|_| fit.next().is_none())
    }

    /// Lists the conditions for the code at a position. They include the conditions of the modules around the file.
    fn conditions_at(&self, file: u32, byte: u32) -> Vec<String> {
        let Some(facts) = self.store.facts_at(file) else { return Vec::new() };
        let mut out = conditions_around(facts, byte);
        let mut place = ModulePlace { file, module: None };
        for _ in 0..MODULES_MAX {
            let (Some(here), Some(parent)) = (self.store.file_at(place.file), self.rust_parent(place)) else { break };
            let Some(facts) = self.store.facts_at(parent.file) else { break };
            let name = module_stem(&here.path);
            let is_it = |alias, module: &str| facts.text_of(alias) == name && module.starts_with("self::");
            if let Some(declared) = facts.imports.iter().find(|i| is_it(i.alias, facts.text_of(i.module))) {
                out.extend(at_line(facts, declared.line.get()));
            }
            place = ModulePlace { file: parent.file, module: None };
        }
        out.truncate(CONDITIONS_MAX);
        out
    }
}

fn conditions_around(facts: &FileFacts, byte: u32) -> Vec<String> {
    let holds = facts.conditions.iter().filter(|when| when.from <= byte && byte < when.to);
    holds.flat_map(|when| split_conjuncts(facts.text_of(when.when))).collect()
}

fn at_line(facts: &FileFacts, line: u32) -> Vec<String> {
    let holds = facts.conditions.iter().filter(|when| when.line <= line && line <= when.end_line);
    holds.flat_map(|when| split_conjuncts(facts.text_of(when.when))).collect()
}

/// Returns true if two lists of conditions cannot be true together.
fn are_exclusive(conditions: &[String], other: &[String]) -> bool {
    conditions.iter().any(|a| other.iter().any(|b| cannot_both_hold(a, b)))
}

/// Returns true if two conditions cannot be true together. Then each alternative of one contradicts each alternative of
/// the other.
fn cannot_both_hold(condition: &str, other: &str) -> bool {
    let (ones, others) = (split_alternatives(condition), split_alternatives(other));
    ones.iter().all(|a| others.iter().all(|b| a.iter().any(|a| b.iter().any(|b| contradict(a, b)))))
}

fn contradict(atom: &str, other: &str) -> bool {
    let negated =
        |a: &str, b: &str| arguments_of(a, "not").is_some_and(|inner| inner == b || implied(b) == Some(inner));
    let family = |a: &str| implied(a).unwrap_or(if a == "unix" || a == "windows" { a } else { "" }).to_owned();
    if negated(atom, other) || negated(other, atom) {
        return true;
    }
    if let (Some((key, value)), Some((other_key, other_value))) = (atom.split_once('='), other.split_once('=')) {
        return key == other_key && value != other_value && ONE_VALUE.contains(&key);
    }
    let (system, other) = (family(atom), family(other));
    !system.is_empty() && !other.is_empty() && system != other
}

/// Returns the condition that a system implies, such as `unix` for `linux`; `None` if it implies none.
fn implied(atom: &str) -> Option<&'static str> {
    let (key, value) = atom.split_once('=')?;
    let value = value.trim_matches('"');
    match (key, value) {
        ("target_os" | "target_family", "windows") => Some("windows"),
        ("target_family", "unix") => Some("unix"),
        ("target_os", system) if UNIX.contains(&system) => Some("unix"),
        _ => None,
    }
}

/// Splits a condition into the parts that must all be true: `all(a, not(any(b, c)))` gives `a`, `not(b)` and `not(c)`.
fn split_conjuncts(text: &str) -> Vec<String> {
    let mut ahead = vec![text.split_whitespace().collect::<String>()];
    let mut out = Vec::new();
    while let Some(text) = ahead.pop() {
        if out.len() + ahead.len() > CONDITIONS_MAX {
            break;
        }
        if let Some(all) = arguments_of(&text, "all") {
            ahead.extend(split_arguments(all));
        } else if let Some(any) = arguments_of(&text, "not").and_then(|inner| arguments_of(inner, "any")) {
            ahead.extend(split_arguments(any).map(|part| format!("not({part})")));
        } else if let Some(twice) = arguments_of(&text, "not").and_then(|inner| arguments_of(inner, "not")) {
            ahead.push(twice.to_owned());
        } else {
            out.push(text);
        }
    }
    out
}

/// Splits a condition into alternatives: `any(a, all(b, c))` gives `a`, and `b` with `c`.
fn split_alternatives(text: &str) -> Vec<Vec<String>> {
    match arguments_of(text, "any") {
        Some(any) => split_arguments(any).map(|part| split_conjuncts(&part)).collect(),
        None => vec![vec![text.to_owned()]],
    }
}

/// Returns the text between the parentheses of `name(..)`; `None` for any other text.
fn arguments_of<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.strip_prefix(name)?.strip_prefix('(')?.strip_suffix(')')
}

/// Splits a list of arguments at its commas, but not inside parentheses.
fn split_arguments(text: &str) -> impl Iterator<Item = String> {
    let (mut out, mut depth) = (vec![String::new()], 0_usize);
    for c in text.chars().take(4_000) {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        match out.last_mut() {
            Some(part) if c != ',' || depth > 0 => part.push(c),
            _ => out.push(String::new()),
        }
    }
    out.into_iter().filter(|part| !part.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exclude(condition: &str, other: &str) -> bool {
        are_exclusive(&split_conjuncts(condition), &split_conjuncts(other))
            && are_exclusive(&split_conjuncts(other), &split_conjuncts(condition))
    }

    #[test]
    fn what_cannot_hold_together() {
        for (condition, other) in [
            ("unix", "windows"),
            ("unix", "not(unix)"),
            ("feature = \"a\"", "not(feature = \"a\")"),
            ("all(unix, test)", "not(test)"),
            ("target_os = \"linux\"", "target_os = \"macos\""),
            ("target_os = \"linux\"", "windows"),
            ("target_os = \"linux\"", "not(unix)"),
            ("target_os = \"linux\"", "not(any(windows, target_os = \"linux\"))"),
            ("any(target_os = \"linux\", target_os = \"macos\")", "windows"),
            ("not(not(unix))", "target_family = \"windows\""),
        ] {
            assert!(exclude(condition, other), "{condition} and {other}");
        }
        for (condition, other) in [
            ("unix", "test"),
            ("feature = \"a\"", "feature = \"b\""),
            ("unix", "target_os = \"linux\""),
            ("any(unix, test)", "windows"),
            ("not(unix)", "not(windows)"),
            ("", "unix"),
            ("any(", "not("),
        ] {
            assert!(!exclude(condition, other), "{condition} and {other}");
        }
    }
}
