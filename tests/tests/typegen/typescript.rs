//! Writes type declarations for TypeScript.

use std::fmt::Write as _;

use crate::HOW;
use crate::schema::{Kind, Namespace, Param, Verb, capitalized, wrapped};

const WIDTH: usize = 120;

/// Makes the text of `sources.d.ts`.
pub fn declarations(sources: &[Namespace]) -> String {
    let mut body = String::new();
    for source in sources {
        for verb in source.verbs.iter().filter(|verb| !verb.params.is_empty()) {
            params(source, verb, &mut body);
        }
        comment(source.guide, "", &mut body);
        let _ = writeln!(body, "export interface {} {{", source.class());
        for verb in &source.verbs {
            comment(verb.description, "  ", &mut body);
            let _ = writeln!(body, "  {}({}): Answer", method(&verb.name), argument(source, verb));
        }
        body += "}\n\n";
    }
    comment("What a connected store has besides the hints: a source by its name.", "", &mut body);
    body += "export interface Sources {\n";
    for source in sources {
        comment(source.guide, "  ", &mut body);
        let _ = writeln!(body, "  readonly {}: {}", source.name, source.class());
    }
    body += "}\n";
    let mut head = format!("// Generated from the method tables; {HOW} writes it anew.\n");
    let imported: Vec<_> = ["ContextLike", "Json"].into_iter().filter(|name| body.contains(name)).collect();
    if !imported.is_empty() {
        let _ = writeln!(head, "import type {{ {} }} from './index.js'", imported.join(", "));
    }
    head += "\n";
    if !sources.is_empty() {
        comment("What a method of a source answers.", "", &mut head);
        head += "export type Answer = { readonly [name: string]: any }\n\n";
    }
    head + &body
}

fn params(source: &Namespace, verb: &Verb, out: &mut String) {
    comment(&format!("Params of `{}.{}`.", source.name, method(&verb.name)), "", out);
    let _ = writeln!(out, "export interface {} {{", params_name(source, verb));
    for Param { name, description, is_required, kind } in &verb.params {
        // A context gets no comment, because its type has one.
        if !description.is_empty() && !matches!(kind, Kind::Context) {
            comment(description, "  ", out);
        }
        // The names stay as they are in the JSON params.
        let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let name = if plain { name.clone() } else { format!("'{name}'") };
        let (mark, null) = if *is_required { ("", "") } else { ("?", " | null") };
        let null = if matches!(kind, Kind::Context) { "" } else { null };
        let _ = writeln!(out, "  readonly {name}{mark}: {}{null}", annotation(kind));
    }
    *out += "}\n\n";
}

fn argument(source: &Namespace, verb: &Verb) -> String {
    match &verb.params[..] {
        [] => String::new(),
        params if params.iter().any(|param| param.is_required) => format!("params: {}", params_name(source, verb)),
        _ => format!("params?: {} | null", params_name(source, verb)),
    }
}

fn params_name(source: &Namespace, verb: &Verb) -> String {
    format!("{}{}Params", capitalized(source.name), capitalized(&verb.name))
}

/// Changes `add_many` to `addMany`, the form of a store's methods.
fn method(verb: &str) -> String {
    let name = capitalized(verb);
    name.get(..1).map(|first| first.to_ascii_lowercase() + &name[1..]).unwrap_or_default()
}

fn annotation(kind: &Kind) -> String {
    match kind {
        Kind::Text => "string".into(),
        Kind::Words(words) => words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" | "),
        Kind::Integer | Kind::Number => "number".into(),
        Kind::Truth => "boolean".into(),
        Kind::List(items) => match &**items {
            Kind::Words(_) | Kind::Any(_) => format!("readonly ({})[]", annotation(items)),
            items => format!("readonly {}[]", annotation(items)),
        },
        Kind::Map(values) => format!("{{ readonly [name: string]: {} }}", annotation(values)),
        Kind::Any(kinds) => kinds.iter().map(annotation).collect::<Vec<_>>().join(" | "),
        Kind::Context => "ContextLike".into(),
        Kind::Json => "Json".into(),
    }
}

fn comment(text: &str, margin: &str, out: &mut String) {
    let lines = wrapped(&text.replace("*/", "*\\/"), WIDTH - margin.len() - 7);
    if let [only] = &lines[..] {
        let _ = writeln!(out, "{margin}/** {only} */");
        return;
    }
    let _ = writeln!(out, "{margin}/**");
    for line in lines {
        let _ = writeln!(out, "{margin} * {line}");
    }
    let _ = writeln!(out, "{margin} */");
}
