//! Generates types in Python and TypeScript for the methods of the sources, from the method tables.
//!
//! A program calls a source's methods as `store.SOURCE.verb(...)`. Their types are generated: a new source needs its
//! line in the binary's list of sources and `UPDATE=1 cargo test -p nudge-tests --test typegen`, which writes
//!
//! - `bindings/python/python/nudge/_sources.pyi`: a class for each source, and `Sources`, which `Store` inherits;
//! - `bindings/node/sources.d.ts`: an interface for each source and for the params of each method, and `Sources`, which
//!   `Store` extends;
//! - `nudge/docs/openrpc.json` and `nudge/docs/schemas/`: all methods of a server.
//!
//! `NUDGE_TYPEGEN_OUT` names a folder for the same files with the demo source. The checks of both bindings compile
//! `tests/demo/use.py` and `tests/demo/use.mts` with them.

#[path = "typegen/openrpc.rs"]
mod openrpc;
#[path = "typegen/python.rs"]
mod python;
#[path = "typegen/schema.rs"]
mod schema;
#[path = "typegen/sentences.rs"]
mod sentences;
#[path = "typegen/typescript.rs"]
mod typescript;

use std::fs;
use std::path::{Path, PathBuf};

use nudge_core::source::SourceSpec;
use schema::{Kind, Namespace, Param, Verb};

/// The generated files; the paths are relative to the root of the repository.
const PYTHON: &str = "bindings/python/python/nudge/_sources.pyi";
const TYPESCRIPT: &str = "bindings/node/sources.d.ts";
const OPENRPC: &str = "nudge/docs/openrpc.json";
const SCHEMAS: &str = "nudge/docs/schemas";

/// The command that writes these files.
const HOW: &str = "UPDATE=1 cargo test -p nudge-tests --test typegen";

fn namespaces(sources: &[&SourceSpec]) -> Vec<Namespace> {
    sources.iter().filter_map(|source| Namespace::of(source)).collect()
}

/// Adds the demo source, and a source with one method. Its params have every kind and names that Python reserves.
fn with_demo() -> Vec<Namespace> {
    let words = || Kind::Words(vec!["fast".into(), "slow".into()]);
    let kinds = [
        ("from", Kind::Text),
        ("pace", words()),
        ("count", Kind::Integer),
        ("share", Kind::Number),
        ("paces", Kind::List(Box::new(words()))),
        ("by_name", Kind::Map(Box::new(Kind::Any(vec![Kind::Text, Kind::Truth])))),
        ("context", Kind::Context),
        ("data", Kind::Json),
    ];
    let params = kinds.map(|(name, kind)| Param {
        is_required: false,
        description: "Ends \"\"\" and */ no comment.".into(),
        name: name.into(),
        kind,
    });
    let verb = Verb { name: "import".into(), description: "Takes all.", params: params.into() };
    let mut all = namespaces(&[&nudge::SOURCE, &nudge_demo::SOURCE]);
    all.push(Namespace { name: "kinds", guide: "Every kind of param.", verbs: vec![verb] });
    all
}

/// Promise: see `test_a_source_is_an_attribute_and_its_verbs_are_methods`.
#[test]
fn the_types_in_the_tree_are_those_of_the_sources() {
    let sources = namespaces(nudge_app::sources::list_sources());
    is_in_the_tree(PYTHON, &python::stubs(&sources));
    is_in_the_tree(TYPESCRIPT, &typescript::declarations(&sources));
}

/// Promise: see `the_pages_list_every_item`.
#[test]
fn the_files_for_programs_are_those_of_the_methods() {
    let methods = nudge_server::methods::list_methods();
    is_in_the_tree(OPENRPC, &openrpc::document(&methods));
    let schemas = openrpc::schemas(&methods);
    for (name, schema) in &schemas {
        is_in_the_tree(&format!("{SCHEMAS}/{name}"), schema);
    }
    for entry in fs::read_dir(tree().join(SCHEMAS)).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(schemas.iter().any(|(known, _)| *known == name), "{SCHEMAS}/{name} is of no method; remove it");
    }
}

fn tree() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Checks that a file has this text. With `UPDATE=1` writes the file.
fn is_in_the_tree(name: &str, wanted: &str) {
    let path = tree().join(name);
    if std::env::var_os("UPDATE").is_some_and(|set| set == "1") {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, wanted).unwrap();
    }
    assert_eq!(fs::read_to_string(&path).unwrap_or_default(), wanted, "{name} is old; {HOW} writes it anew");
}

#[test]
fn a_source_has_a_class_with_typed_methods() {
    let (python, typescript) = (python::stubs(&with_demo()), typescript::declarations(&with_demo()));
    for part in [
        "class DemoSource:\n",
        "    def add(\n        self,\n        *,\n        name: str,\n        text: str,\n        \
         tags: Sequence[str] | None = None,\n        urgent: bool | None = None,\n    ) -> dict[str, Any]:\n",
        "        \"\"\"Keeps a note.\n",
        "    def list(self) -> dict[str, Any]:\n",
        "class Sources(NativeStore):\n",
        "    def demo(self) -> DemoSource: ...\n",
        "    def import_(\n        self,\n        *,\n        from_: str | None = None,\n",
        "        pace: Literal[\"fast\", \"slow\"] | None = None,\n",
        "        by_name: Mapping[str, str | bool] | None = None,\n        context: ContextLike | None = None,\n",
    ] {
        assert!(python.contains(part), "{part}\nis not in\n{python}");
    }
    for part in [
        "export interface DemoAddParams {\n  /** What it is called. */\n  readonly name: string\n",
        "  readonly tags?: readonly string[] | null\n",
        "  add(params: DemoAddParams): Answer\n",
        "  list(): Answer\n",
        "export interface Sources {\n",
        "  readonly demo: DemoSource\n",
        "  readonly from?: string | null\n",
        "  readonly paces?: readonly ('fast' | 'slow')[] | null\n",
        "  readonly context?: ContextLike\n",
        "  import(params?: KindsImportParams | null): Answer\n",
    ] {
        assert!(typescript.contains(part), "{part}\nis not in\n{typescript}");
    }
    if let Some(out) = std::env::var_os("NUDGE_TYPEGEN_OUT").map(PathBuf::from) {
        fs::create_dir_all(&out).unwrap();
        fs::write(out.join("_sources.pyi"), python).unwrap();
        fs::write(out.join("sources.d.ts"), typescript).unwrap();
    }
}
