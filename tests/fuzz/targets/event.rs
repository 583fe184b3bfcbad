//! Parses the event that a coding agent passes to a hook.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nudge_agents::event;

fuzz_target!(|text: &str| {
    let _ = event::read(text);
});
