//! Checks that `include/nudge.h` is what cbindgen makes from the sources.

use std::fs;
use std::path::Path;

const HEADER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../include/nudge.h");

fn generated() -> String {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(dir.join("cbindgen.toml")).unwrap();
    let bindings = cbindgen::Builder::new().with_config(config).with_crate(dir).generate().unwrap();
    let mut text = Vec::new();
    bindings.write(&mut text);
    String::from_utf8(text).unwrap()
}

#[test]
fn the_header_is_what_the_sources_say() {
    let wanted = generated();
    if std::env::var_os("BLESS").is_some() {
        fs::write(HEADER, &wanted).unwrap();
    }
    let found = fs::read_to_string(HEADER).unwrap_or_default();
    assert!(found == wanted, "run `BLESS=1 cargo test -p nudge-capi --test header`");
}
