//! Prints the commands in a repository's files: `cargo run -p nudge-seed --example seeds -- FOLDER`.

use std::path::Path;

use nudge_seed::SeedLimits;

fn main() {
    let top = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let report = nudge_seed::read(Path::new(&top), &SeedLimits::default());
    for seed in &report.seeds {
        let nudge_seed::Seed { folder, key, command, tags, about, file, line } = seed;
        println!("{folder}\t{key}\t{command}\t{file}:{line}\t{about}\t{}", tags.join(" "));
    }
    for passed in &report.passed_over {
        println!("passed over\t{}\t{}", passed.file, passed.why);
    }
}
