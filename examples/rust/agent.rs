//! A small agent: it looks up its build command, runs it, and tells the store whether the command worked.
//!
//! `cargo run --package nudge-hints --example agent`

use std::process::{Command, ExitStatus};

use nudge::{Context, Match, Nudge, OutcomeParams, ScopeSpec, SetHint};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let store = Nudge::default();
    store.set(SetHint::new("api", "build", "echo building for everybody"))?;
    let mut dev = SetHint::new("api", "build", "echo building the dev branch");
    dev.meta.scope = ScopeSpec { branch: vec!["dev".into()], ..ScopeSpec::default() };
    store.set(dev)?;
    store.set(SetHint::new("api", "test", "exit 3"))?;

    for branch in ["main", "dev"] {
        let found = look_up(&store, branch, "build")?;
        tell(branch, &found);
        run(&store, branch, &found)?;
    }
    for _ in 0..3 {
        run(&store, "main", &look_up(&store, "main", "test")?)?;
    }
    tell("test", &look_up(&store, "main", "test")?);
    let uses = look_up(&store, "dev", "build")?.hint().use_count();
    println!("build was used {uses} time{} on dev", if uses == 1 { "" } else { "s" });
    Ok(())
}

fn look_up(store: &Nudge, branch: &str, key: &str) -> Result<Match> {
    let here = Context::builder().branch(branch).build()?;
    store.get("api", key, &here).ok_or_else(|| format!("nothing is known of {key}").into())
}

fn tell(what: &str, found: &Match) {
    println!("{what}: {}\n  because {}", found.hint().text(), found.reasons().join(", "));
}

/// Runs the command of a hint. A hint is only data: the agent, and not the store, decides to run it.
fn run(store: &Nudge, branch: &str, found: &Match) -> Result<()> {
    let command = found.hint().text().to_owned();
    let output = Command::new("sh").args(["-c", &command]).output()?;
    for line in String::from_utf8(output.stdout)?.lines() {
        println!("  {line}");
    }
    report(store, branch, command, output.status)
}

fn report(store: &Nudge, branch: &str, command: String, status: ExitStatus) -> Result<()> {
    let context = Context::builder().branch(branch);
    let exit_code = status.code().map(i64::from);
    store.outcome(OutcomeParams { command, ok: status.success(), exit_code, context, ..OutcomeParams::default() })?;
    Ok(())
}
