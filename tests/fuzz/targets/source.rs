//! Extracts the definitions and calls of a file and resolves the calls. The first byte selects the language.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use nudge_code_index::{CodeIndex, extract};

/// File names, one for each language.
const FILES: [&str; 12] = [
    "tests/test_a.py",
    "src/lib.rs",
    "a.test.js",
    "a.ts",
    "a.tsx",
    "a_test.go",
    "ATest.java",
    "a.c",
    "a.cpp",
    "a_spec.rb",
    "a.cs",
    "a.php",
];

fuzz_target!(|bytes: &[u8]| {
    let Some((first, text)) = bytes.split_first() else { return };
    let path = FILES[usize::from(*first) % FILES.len()];
    let Ok(facts) = extract(path, text) else { return };
    for view in facts.nodes() {
        let span = view.node().span;
        assert!(span.byte <= span.end && span.end as usize <= text.len() && span.line <= span.end_line);
        assert!(view.signature().len() <= 300 && view.doc().unwrap_or_default().len() <= 2_000);
    }
    let mut index = CodeIndex::new();
    index.put_file(path, Arc::new(facts));
    index.list_calls(path);
    for found in index.nodes() {
        index.find_callers(found.id, 20, true);
        index.find_tests(found.id, 5);
    }
});
