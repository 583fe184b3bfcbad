//! Runs each vector as a test. The name of the test is `driver::file::case`.

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};

use crate::{Driver, format, run};

/// Runs every vector with these drivers. The arguments of the command line select tests.
#[must_use]
pub fn main(drivers: Vec<fn() -> Box<dyn Driver>>) -> ExitCode {
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
    for new_driver in drivers {
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
