//! Lays out what a start runs side by side. Of twenty megabytes of code a start runs less than two, which would lie
//! scattered over nearly all pages; each page that is touched costs time, and memory of every session.
//!
//! `order/functions` has the names, those that a start runs first, and `order/record` writes it. A linker script moves
//! them to the front, for any linker that knows GNU's; whether this one does is tried out, and without it everything
//! works the same, only larger. Constants have no names that last from build to build, so they lie crate by crate: first
//! those of the crate with the most of these functions, last those of crates with none, as are the tables of grammars.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=order/functions");
    let is_linux = env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux");
    let is_for_use = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let Some(out) = env::var_os("OUT_DIR").map(PathBuf::from).filter(|_| is_linux && is_for_use) else { return };
    let Ok(functions) = fs::read_to_string("order/functions") else { return };
    let script = out.join("order.ld");
    if fs::write(&script, ordering(&functions)).is_err() {
        return;
    }
    let order = format!("-Wl,-T,{}", script.display());
    if links(&out, &order) {
        println!("cargo:rustc-link-arg-bin=nudge={order}");
    }
    // At a fixed address nothing has to be set at a start; else two hundred pages are written, in each process.
    println!("cargo:rerun-if-env-changed=NUDGE_PIE");
    // A static program is linked otherwise: it would be told its addresses by nobody.
    let is_gnu = env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|target_env| target_env == "gnu");
    let is_static =
        env::var("CARGO_CFG_TARGET_FEATURE").is_ok_and(|all| all.split(',').any(|feature| feature == "crt-static"));
    if is_gnu && !is_static && env::var_os("NUDGE_PIE").is_none() && links(&out, "-no-pie") {
        println!("cargo:rustc-link-arg-bin=nudge=-no-pie");
    }
}

/// A script that puts these functions before the rest of the code, and constants in the order of their crates.
fn ordering(functions: &str) -> String {
    let mut script = String::from("SECTIONS {\n  .text.first : {\n");
    for name in functions.lines() {
        // What is called once or when something grows counts as unlikely.
        let _ = writeln!(script, "    *(.text.{name} .text.unlikely.{name})");
    }
    script += "  }\n} INSERT BEFORE .text;\n";
    for (section, place) in [(".rodata", "BEFORE .gcc_except_table"), (".data.rel.ro", "AFTER .init_array")] {
        let _ = writeln!(script, "SECTIONS {{\n  {section} : {{");
        for name in crates(functions) {
            // The file of a crate's code has its name in the middle.
            let _ = writeln!(script, "    *.{name}-*({section} {section}.*)");
        }
        let _ = writeln!(script, "    *({section} {section}.*)\n  }}\n}} INSERT {place};");
    }
    script
}

/// The crates that functions are of, that of the most first. In a mangled name a crate stands as `Cs*_4tokio`: a mark,
/// the length of what follows, and its name.
fn crates(functions: &str) -> Vec<&str> {
    let mut counts = BTreeMap::<&str, usize>::new();
    for function in functions.lines() {
        for part in function.split("Cs*_").skip(1) {
            let name = part.trim_start_matches(|c: char| c.is_ascii_digit());
            let length = part[..part.len() - name.len()].parse().unwrap_or_default();
            *counts.entry(name.get(..length).unwrap_or_default()).or_default() += 1;
        }
    }
    counts.remove("");
    let mut crates: Vec<_> = counts.into_iter().collect();
    crates.sort_by_key(|&(_, count)| Reverse(count));
    crates.into_iter().map(|(name, _)| name).collect()
}

/// Whether a program can be linked with this argument, by the compiler, the flags and the linker of this build.
fn links(out: &Path, arg: &str) -> bool {
    let source = out.join("trial.rs");
    if fs::write(&source, "fn main() {}\n").is_err() {
        return false;
    }
    let mut rustc = Command::new(env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned()));
    rustc.arg("--target").args(env::var("TARGET")).arg("-o").arg(out.join("trial")).arg(&source);
    if let Ok(flags) = env::var("CARGO_ENCODED_RUSTFLAGS") {
        rustc.args(flags.split('\x1f').filter(|flag| !flag.is_empty()));
    }
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        rustc.arg("-C").arg(format!("linker={linker}"));
    }
    rustc.arg("-C").arg(format!("link-arg={arg}"));
    rustc.output().is_ok_and(|output| output.status.success())
}
