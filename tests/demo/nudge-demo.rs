//! Runs the command `nudge` with the demo source, for tests.

use std::process::ExitCode;

use nudge_core::source::SourceSpec;

static SOURCES: &[&SourceSpec] = &[&nudge::SOURCE, &nudge_demo::SOURCE];

fn main() -> ExitCode {
    nudge_app::sources::replace_sources(SOURCES);
    nudge_cli::main()
}
