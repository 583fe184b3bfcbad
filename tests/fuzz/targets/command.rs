//! Parses two command lines as a hook sees them, and compares them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nudge_core::shell;

fuzz_target!(|text: &str| {
    let (one, other) = text.split_once('\n').unwrap_or((text, text));
    let (Some(one), Some(other)) = (shell::parse(one), shell::parse(other)) else { return };
    assert_eq!(one.is_same(&other), other.is_same(&one));
    // Compares in both directions: command A may work in place of command B although B does not work in place of A.
    let _ = (one.is_near(&other), other.is_near(&one));
    one.heads().chain(other.heads()).for_each(|command| {
        command.arguments();
    });
});
