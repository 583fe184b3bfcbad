//! `nudge seed`

use std::fmt::Write as _;
use std::path::Path;

use nudge::{Error, ErrorKind, Result};
use nudge_agents::running::RunningSession;
use nudge_app::committed;
use nudge_app::seed::{self, RefreshRule, SeedOutcome, SeededClones, WantedSeed};
use nudge_seed::SeedLimits;
use serde_json::{Map, Value, json};

use super::{CommandOutput, parse_value};
use crate::args::{GlobalFlags, SeedArgs};
use crate::output;

pub fn run(args: &SeedArgs, global: &GlobalFlags) -> Result<CommandOutput> {
    let (top, repo) = seed::find_repository()?;
    if args.dry_run {
        let report = nudge_seed::read(&top, &SeedLimits::default());
        let wanted = WantedSeed::from_seeds(seed::short_name(&repo), &report.seeds);
        return Ok(report_seeds(
            global,
            &SeedOutcome { report, wanted, ..SeedOutcome::default() },
            "would be told",
            None,
        ));
    }
    if args.forget {
        return forget_seeds(&top, global);
    }
    let is_known = SeededClones::read_unlocked()?.get(&top).is_some();
    SeededClones::open()?.add_clone(&top, &repo, false)?;
    match RunningSession::open(global) {
        Ok(session) => {
            let call = |method: &str, params: &Map<String, Value>| call(&session, method, params);
            let refresh = |id: String| seed::refresh_clone(&top, RefreshRule::Always, &id, &call);
            let done = match committed::find_session(&call).and_then(refresh) {
                Ok(Some(done)) => done,
                Ok(None) => {
                    return Err(Error::unavailable(
                        "Another process forgot the seeds of this clone meanwhile; try again.",
                    ));
                }
                Err(error) => {
                    if !is_known {
                        SeededClones::open()?.remove_clone(&top)?;
                    }
                    return Err(error);
                }
            };
            Ok(report_seeds(
                global,
                &done,
                "are told",
                Some("Whenever these files change, the hints follow; `nudge seed --forget` ends that."),
            ))
        }
        Err(error) if error.kind() == ErrorKind::Unavailable => {
            let report = nudge_seed::read(&top, &SeedLimits::default());
            let wanted = WantedSeed::from_seeds(seed::short_name(&repo), &report.seeds);
            let note = "No session runs now: agents have them from their next one here.";
            Ok(report_seeds(
                global,
                &SeedOutcome { report, wanted, ..SeedOutcome::default() },
                "will be told",
                Some(note),
            ))
        }
        Err(error) => Err(error),
    }
}

fn forget_seeds(top: &Path, global: &GlobalFlags) -> Result<CommandOutput> {
    let seeded = SeededClones::open()?.remove_clone(top)?;
    let Some(seeded) = seeded else {
        return Ok(
            if global.json { "{\"forgotten\":0}\n".to_owned() } else { "nothing was seeded here\n".to_owned() }.into()
        );
    };
    let count = match RunningSession::open(global) {
        Ok(session) => seed::forget_clone(&seeded, &|method, params| call(&session, method, params))?,
        Err(error) if error.kind() == ErrorKind::Unavailable => 0,
        Err(error) => return Err(error),
    };
    if global.json {
        return Ok(format!("{}\n", json!({"forgotten": count})).into());
    }
    Ok(format!("this clone is no longer seeded; {count} hints are gone, those that somebody changed stay\n").into())
}

fn call(session: &RunningSession, method: &str, params: &Map<String, Value>) -> Result<Value> {
    parse_value(&session.call(method, params)?)
}

/// Reports the changes that were made or planned.
fn report_seeds(global: &GlobalFlags, done: &SeedOutcome, verb: &str, note: Option<&str>) -> CommandOutput {
    let SeedOutcome { report, set, deleted, left, refused, wanted } = done;
    if global.json {
        let seeds: Vec<_> = wanted.iter().map(|seed| json!({"component": seed.component, "key": seed.key, "command": seed.command, "reason": seed.reason()})).collect();
        let passed: Vec<_> =
            report.passed_over.iter().map(|skipped| json!({"file": skipped.file, "why": skipped.why})).collect();
        let left: Vec<_> = left.iter().map(|(component, key)| json!({"component": component, "key": key})).collect();
        let refused: Vec<_> = refused.iter().map(|(name, why)| json!({"name": name, "why": why})).collect();
        let all = json!({"seeds": seeds, "set": set.len(), "deleted": deleted, "left": left, "refused": refused, "passed_over": passed});
        return format!("{all}\n").into();
    }
    let mut text = output::render_seeds(
        wanted.iter().map(|seed| [seed.component.as_str(), &seed.key, &seed.command, seed.reason()]),
    );
    let count = wanted.len();
    let commands = if count == 1 { "command" } else { "commands" };
    let _ = write!(text, "{count} {commands} of this repository {verb}");
    if count == 0 && *deleted == 0 {
        text.push_str(": its files name none");
    }
    if *deleted > 0 || (!set.is_empty() && set.len() < count) {
        let _ = write!(text, "; {} new or changed, {deleted} gone", set.len());
    }
    text.push('\n');
    for (component, key) in left {
        let name = output::make_visible(&format!("{component} {key}"));
        let _ = writeln!(text, "  {name} is left as somebody changed or deleted it");
    }
    for (name, why) in refused {
        let _ = writeln!(text, "  {} is refused: {}", output::make_visible(name), output::make_visible(why));
    }
    for skipped in &report.passed_over {
        let file = if skipped.file.is_empty() { "this repository" } else { &skipped.file };
        let _ = writeln!(text, "  {}: {}", output::make_visible(file), output::make_visible(&skipped.why));
    }
    if let Some(note) = note.filter(|_| count > 0) {
        let _ = writeln!(text, "{note}");
    }
    text.into()
}
