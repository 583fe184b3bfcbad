//! Compares the header with the Rust definitions. The tests fail for a definition that the header does not have.

use std::collections::BTreeSet;
use std::fs;

use nudge::{Config, ContextSpec, ErrorKind};
use serde_json::Value;

fn header() -> String {
    fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../include/nudge.h")).unwrap()
}

/// Returns the lines of a struct or enumeration, without comments.
fn body(kind: &str, name: &str) -> Vec<String> {
    let header = header();
    let begin = format!("typedef {kind} {name} {{\n");
    let rest = header.split(&begin).nth(1).unwrap_or_else(|| panic!("no {kind} {name}"));
    let body = rest.split("\n}").next().unwrap();
    body.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty() && !line.starts_with("//")).collect()
}

/// Returns the fields of a struct, without those that exist only in C.
fn fields(name: &str, besides: &[&str]) -> BTreeSet<String> {
    let name_of = |line: String| line.trim_end_matches(';').rsplit([' ', '*']).next().unwrap().to_owned();
    let own =
        |field: &String| !["struct_size", "reserved"].contains(&field.as_str()) && !besides.contains(&field.as_str());
    body("struct", name).into_iter().map(name_of).filter(own).collect()
}

fn schema(method: &str) -> Value {
    let method = nudge::methods().into_iter().find(|row| row.name == method).unwrap();
    (method.params)()["properties"].clone()
}

fn names(properties: &Value) -> BTreeSet<String> {
    properties.as_object().unwrap().keys().cloned().collect()
}

#[test]
fn every_error_has_its_status() {
    let mut expected: BTreeSet<_> = ErrorKind::ALL
        .into_iter()
        .map(|kind| match kind {
            // This kind of error has the same reason as another kind, so the name of its code is an exception.
            ErrorKind::ParamsNotObject => format!("NUDGE_E_PARAMS_NOT_OBJECT = {}", kind.code()),
            _ => format!("NUDGE_{} = {}", kind.reason(), kind.code()),
        })
        .collect();
    expected.extend(["NUDGE_OK = 0".to_owned(), "NUDGE_E_INTERNAL = -32603".to_owned()]);
    let found: BTreeSet<_> =
        body("enum", "nudge_code").into_iter().map(|line| line.trim_end_matches(',').to_owned()).collect();
    assert_eq!(found, expected);
}

#[test]
fn typed_functions_are_methods() {
    let header = header();
    for method in ["nudge.get_hint", "nudge.set_hint", "nudge.bump", "nudge.delete_hint"] {
        assert!(nudge::methods().iter().any(|row| row.name == method), "{method}");
        let function = method.replace('.', "_").replace("_hint", "");
        assert!(header.contains(&format!("nudge_status {function}(")), "{function}");
    }
}

#[test]
fn params_have_the_fields_of_their_methods() {
    let set = schema("nudge.set_hint");
    let mut expected = names(&set);
    assert!(expected.remove("meta"));
    // `reach` and `context` are for programs that know where their caller works. The library cannot know this.
    assert!(expected.remove("reach") && expected.remove("context"));
    expected.extend(names(&set["meta"]["properties"]));
    let of_value = ["value_type", "shell", "path_os", "format", "defaults"];
    assert_eq!(fields("nudge_set_params", &of_value), expected);
    assert_eq!(fields("nudge_scope", &[]), names(&set["meta"]["properties"]["scope"]["properties"]));
    assert_eq!(fields("nudge_bump_params", &[]), names(&schema("nudge.bump")));
    assert_eq!(fields("nudge_delete_params", &[]), names(&schema("nudge.delete_hint")));

    let get = schema("nudge.get_hint");
    // The schema of the context only says "object", so this pattern lists the fields. A new field breaks the build
    // here.
    let ContextSpec { cwd: _, repo: _, branch: _, os: _, env: _, files_open: _ } = ContextSpec::default();
    let of_context = ["cwd", "repo", "branch", "os", "env", "files_open"].map(str::to_owned);
    assert_eq!(fields("nudge_context_params", &[]), BTreeSet::from(of_context));
    let mut expected = names(&get);
    // `nudge_get` has no `variant`. A caller who needs one uses `nudge_call`.
    assert!(expected.remove("variant"));
    assert_eq!(fields("nudge_get_params", &[]), expected);
}

#[test]
fn a_config_has_every_setting() {
    let expected: BTreeSet<_> =
        Config::ENV.iter().map(|name| name.trim_start_matches("NUDGE_").to_ascii_lowercase()).collect();
    assert_eq!(fields("nudge_config", &["from_env"]), expected);
}

#[test]
fn enumerations_have_the_names_of_the_wire() {
    let meta = schema("nudge.set_hint")["meta"]["properties"].clone();
    let listed = |choices: &Value| -> BTreeSet<String> {
        let list = choices["enum"].as_array().unwrap_or_else(|| panic!("no enum: {choices}"));
        list.iter().map(|name| name.as_str().unwrap().replace('-', "_").to_ascii_uppercase()).collect()
    };
    let found = |name: &str| -> BTreeSet<String> {
        let prefix = format!("{}_", name.to_ascii_uppercase());
        body("enum", name)
            .iter()
            .map(|line| line.split(' ').next().unwrap().trim_start_matches(&prefix).to_owned())
            .collect()
    };
    assert_eq!(found("nudge_sensitivity"), listed(&meta["sensitivity"]));
    assert_eq!(found("nudge_source"), listed(&meta["source"]));
    let systems = nudge::Os::ALL.map(|os| os.as_str().to_ascii_uppercase());
    assert_eq!(found("nudge_os"), BTreeSet::from(systems));
}

#[test]
fn the_library_is_found_by_its_abi_version() {
    let version = format!("#define NUDGE_ABI_VERSION {}", nudge_abi());
    assert!(header().contains(&version), "build.rs and NUDGE_ABI_VERSION differ");
}

/// Reads the ABI number from the library name in `build.rs`.
fn nudge_abi() -> u32 {
    let script = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/build.rs")).unwrap();
    let number = script.split("libnudge.so.").nth(1).unwrap().split('"').next().unwrap();
    assert!(script.contains(&format!("libnudge.{number}.dylib")));
    number.parse().unwrap()
}
