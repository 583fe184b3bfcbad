//! Puts every vector through every driver; each is a test of its own, named
//! `driver::file::case`. Run a part with `cargo test -p nudge-tests --test vectors -- library::`.

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};
use nudge_tests::{drivers, format, run};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let cases = match format::load(&format::vectors_dir()) {
        Ok(cases) => cases,
        Err(e) => {
            eprintln!("vectors: {e}");
            return ExitCode::FAILURE;
        }
    };
    let cases: Vec<_> = cases.into_iter().map(|(file, case)| (file, Arc::new(case))).collect();
    let mut trials = Vec::new();
    for new_driver in drivers::all() {
        let driver = new_driver();
        for (file, case) in &cases {
            let skipped = driver.skip(case);
            let note = skipped.as_ref().map_or(String::new(), |reason| format!(" (skipped: {reason})"));
            let name = format!("{}::{file}::{}{note}", driver.name(), case.name);
            let case = Arc::clone(case);
            let trial = Trial::test(name, move || Ok(run::run(new_driver().as_mut(), &case)?));
            trials.push(trial.with_ignored_flag(skipped.is_some()));
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}
