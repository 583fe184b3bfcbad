//! Compares the first sentence about each method in rustdoc, Python's `help`, the TypeScript declarations and the C
//! header. People write the sentence in Rust, and the others must equal it. (The descriptions in the method tables are
//! for models, and say when to call a method.)

use std::fs;

use crate::tree;

/// A method of the hints with its names in Rust, Python and TypeScript. C has functions for some of the methods.
struct Names {
    rust: &'static str,
    python: &'static str,
    typescript: String,
}

fn names(method: &str) -> Names {
    let verb = method.trim_start_matches("nudge.").trim_end_matches("_hint");
    let mut typescript = String::new();
    let mut parts = verb.split('_');
    typescript.push_str(parts.next().unwrap());
    parts.for_each(|part| typescript.extend([&part[..1].to_uppercase(), &part[1..]]));
    let names: &(&str, &str, &str) = RENAMED.iter().find(|(known, ..)| *known == verb).unwrap_or(&("", "", ""));
    let leaked: &'static str = Box::leak(verb.to_owned().into_boxed_str());
    let or = |name: &'static str| if name.is_empty() { leaked } else { name };
    Names { rust: or(names.1), python: or(names.2), typescript }
}

/// The methods with another name in Rust or Python: the method, its name in Rust, its name in Python.
const RENAMED: [(&str, &str, &str); 2] =
    [("list_components", "components", "list_components"), ("import", "", "import_")];

/// Returns the first sentence of a comment on one line, without the parts that each language writes in its own way.
fn first(comment: &str) -> String {
    let words: Vec<_> =
        comment.split_whitespace().filter(|word| !["//", "///", "*", "/**", "*/"].contains(word)).collect();
    let text = words.join(" ").replace("{@link Store.", "`").replace('}', "`");
    let text = text.split(" (semantics section").enumerate().map(|(index, part)| match index {
        0 => part,
        _ => part.split_once(')').map_or(part, |(_, rest)| rest),
    });
    let text = text.collect::<String>();
    text.split_inclusive(". ").next().unwrap_or_default().trim().to_owned()
}

/// Returns the comment above the first line that begins with `begins`, in Rust, TypeScript or C.
fn before(text: &str, begins: &str) -> Option<String> {
    let lines: Vec<_> = text.lines().collect();
    let index = lines.iter().position(|line| line.trim_start().starts_with(begins))?;
    let is_comment = |line: &&str| {
        let line = line.trim_start();
        ["//", "/**", "*"].iter().any(|mark| line.starts_with(mark)) || line.starts_with("#[")
    };
    let begin = lines[..index].iter().rposition(|line| !is_comment(line)).map_or(0, |above| above + 1);
    let comment = lines[begin..index].iter().filter(|line| !line.trim_start().starts_with("#["));
    Some(comment.map(|line| line.replace("/**", "").replace("*/", "")).collect::<Vec<_>>().join("\n"))
}

/// Returns the docstring of a Python function.
fn docstring(text: &str, name: &str) -> Option<String> {
    let body = text.split_once(&format!("    def {name}("))?.1;
    let doc = body.split("\"\"\"").nth(1)?;
    Some(doc.split("\n\n").next()?.to_owned())
}

fn read(name: &str) -> String {
    fs::read_to_string(tree().join(name)).unwrap()
}

fn folder(name: &str) -> String {
    let mut all = String::new();
    for entry in fs::read_dir(tree().join(name)).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.extension().is_some_and(|ext| ext == "rs") {
            all += &fs::read_to_string(entry).unwrap();
        }
    }
    all
}

/// Promise (code and documents): rustdoc, Python, TypeScript and the C header describe a method with the same
/// sentence.
#[test]
fn every_language_says_the_same_of_a_method() {
    let rust = read("nudge/src/cache.rs") + &folder("nudge/src/method");
    let python =
        ["_store.py", "_telling.py"].map(|file| read(&format!("bindings/python/python/nudge/{file}"))).concat();
    let native = read("bindings/python/src/store.rs");
    let typescript = read("bindings/node/index.d.ts");
    let header = read("include/nudge.h");
    let mut others = Vec::new();
    for method in nudge::methods() {
        let names = names(method.name);
        let wanted = first(&before(&rust, &format!("pub fn {}(&self", names.rust)).unwrap_or_default());
        assert!(wanted.ends_with('.'), "{}: Rust says `{wanted}`", method.name);
        let in_python = docstring(&python, names.python).or_else(|| before(&native, &format!("fn {}(", names.python)));
        let in_typescript = before(&typescript, &format!("{}(", names.typescript));
        let in_c = before(&header, &format!("nudge_status nudge_{}(", names.rust));
        let all = [
            ("Python", in_python.or(Some(String::new()))),
            ("TypeScript", in_typescript.or(Some(String::new()))),
            ("C", in_c),
        ];
        for (language, text) in all {
            if let Some(said) = text.map(|text| first(&text)).filter(|said| *said != wanted) {
                others.push(format!("{} in {language}: `{said}`, in Rust: `{wanted}`", method.name));
            }
        }
    }
    assert!(others.is_empty(), "{}", others.join("\n"));
}
