//! Writes type stubs for Python, in the format of its formatter.

use std::fmt::Write as _;

use crate::HOW;
use crate::schema::{Kind, Namespace, Param, Verb, wrapped};

const WIDTH: usize = 120;
const KEYWORDS: &[&str] = &[
    "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif", "else", "except",
    "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise",
    "return", "try", "while", "with", "yield",
];

/// Makes the text of `_sources.pyi`.
pub fn stubs(sources: &[Namespace]) -> String {
    let mut body = String::new();
    for source in sources {
        class(source, &mut body);
    }
    body += "class Sources(NativeStore):\n    \"\"\"What `Store` inherits: the sources besides the hints.\"\"\"\n";
    for (index, source) in sources.iter().enumerate() {
        // The formatter adds an empty line after a docstring.
        body += if index == 0 { "\n" } else { "" };
        let _ = write!(body, "    @property\n    def {}(self) -> {}: ...\n", attribute(source.name), source.class());
    }
    let mut head = format!("# Generated from the method tables; {HOW} writes it anew.\n");
    head += "\"\"\"The sources as `Store` has them.\"\"\"\n\n";
    // Searches each name in the form in which code uses it, because a description may contain the bare word.
    let imports = |from: &str, names: &[(&str, &str)]| {
        let used: Vec<_> = names.iter().filter(|(_, mark)| body.contains(mark)).map(|(name, _)| *name).collect();
        if used.is_empty() { String::new() } else { format!("from {from} import {}\n", used.join(", ")) }
    };
    let of_typing = [("Any", "dict[str, Any]"), ("Literal", "Literal["), ("type_check_only", "@type_check_only")];
    let standard = imports("collections.abc", &[("Mapping", "Mapping["), ("Sequence", "Sequence[")])
        + &imports("typing", &of_typing);
    if !standard.is_empty() {
        head += &(standard + "\n");
    }
    head += &imports("nudge._nudge", &[("NativeStore", "(NativeStore)")]);
    head += &imports("nudge._types", &[("ContextLike", ": ContextLike")]);
    format!("{head}\n__all__ = [\"Sources\"]\n\n{body}")
}

fn class(source: &Namespace, out: &mut String) {
    let _ = writeln!(out, "@type_check_only\nclass {}:", source.class());
    docstring(source.guide, &[], 4, out);
    for verb in &source.verbs {
        *out += "\n";
        method(verb, out);
    }
    *out += "\n";
}

fn method(verb: &Verb, out: &mut String) {
    let name = attribute(&verb.name);
    if verb.params.is_empty() {
        let _ = writeln!(out, "    def {name}(self) -> dict[str, Any]:");
    } else {
        let _ = writeln!(out, "    def {name}(\n        self,\n        *,");
        for Param { name, is_required, kind, .. } in &verb.params {
            let optional = if *is_required { "" } else { " | None = None" };
            let line = format!("        {}: {}{optional},", attribute(name), annotation(kind));
            // Breaks the line where the formatter would break it.
            let line =
                if line.len() > WIDTH { line.replace(" | None = None", "\n        | None = None") } else { line };
            let _ = writeln!(out, "{line}");
        }
        *out += "    ) -> dict[str, Any]:\n";
    }
    docstring(verb.description, &verb.params, 8, out);
}

fn docstring(text: &str, params: &[Param], indent: usize, out: &mut String) {
    let margin = " ".repeat(indent);
    let mut lines = wrapped(text, WIDTH - indent - 6);
    let described = params.iter().filter(|param| !param.description.is_empty());
    let described: Vec<_> = described
        .flat_map(|param| wrapped(&format!("`{}`: {}", attribute(&param.name), param.description), WIDTH - indent))
        .collect();
    if !described.is_empty() {
        lines.push(String::new());
        lines.extend(described);
    }
    let is_one = lines.len() == 1;
    let text = lines.join(&format!("\n{margin}")).replace('\\', "\\\\").replace("\"\"\"", "\\\"\\\"\\\"");
    let text = text.replace(&format!("\n{margin}\n"), "\n\n");
    let end = if is_one { String::new() } else { format!("\n{margin}") };
    let _ = writeln!(out, "{margin}\"\"\"{text}{end}\"\"\"");
}

fn annotation(kind: &Kind) -> String {
    match kind {
        Kind::Text => "str".into(),
        Kind::Words(words) => format!("Literal[{}]", quoted(words)),
        Kind::Integer => "int".into(),
        Kind::Number => "float".into(),
        Kind::Truth => "bool".into(),
        Kind::List(items) => format!("Sequence[{}]", annotation(items)),
        Kind::Map(values) => format!("Mapping[str, {}]", annotation(values)),
        Kind::Any(kinds) => kinds.iter().map(annotation).collect::<Vec<_>>().join(" | "),
        Kind::Context => "ContextLike".into(),
        Kind::Json => "Any".into(),
    }
}

fn quoted(words: &[String]) -> String {
    words.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(", ")
}

/// Returns a name as a Python attribute or option, in the form that `nudge._namespaces` makes.
fn attribute(name: &str) -> String {
    let name = name.replace(['.', '-'], "_");
    if KEYWORDS.contains(&name.as_str()) { name + "_" } else { name }
}
