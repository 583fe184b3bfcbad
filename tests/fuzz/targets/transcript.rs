//! Reads the transcript of a client session.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nudge_capture::transcript;

fuzz_target!(|bytes: &[u8]| {
    let _ = transcript::read(bytes);
});
