//! `nudge save`

use std::fmt::Write as _;

use nudge::{Error, Result, SecretGuard};
use nudge_agents::running::RunningSession;
use nudge_app::committed::{self, FILE, PendingSave, SaveRequest};
use nudge_app::seed;
use serde_json::{Map, Value, json};

use super::{CommandOutput, parse_value};
use crate::args::{GlobalFlags, SaveArgs};
use crate::output::make_visible;

pub fn run(args: &SaveArgs, global: &GlobalFlags) -> Result<CommandOutput> {
    let (top, repo) = seed::find_repository()?;
    let path = top.join(FILE);
    if path.symlink_metadata().is_ok_and(|meta| !meta.is_file()) {
        return Err(Error::invalid(format!("{FILE} is no regular file here; remove it first.")));
    }
    let session = RunningSession::open(global)?;
    let call = |method: &str, params: &Map<String, Value>| parse_value(&session.call(method, params)?);
    committed::load_trusted(&top, &repo, &call)?;
    let request = SaveRequest { component: args.component.clone(), keys: args.keys.clone(), all: args.all };
    let pending = PendingSave::plan(&top, &repo, &request, &call)?;
    if let Some(text) = &pending.plan.text {
        check_secrets(text)?;
    }
    let plan = pending.write(&top, &repo, &call)?;
    if global.json {
        let told = json!({
            "file": path, "hints": plan.count, "added": plan.added, "changed": plan.changed, "removed": plan.removed,
            "private": plan.private,
        });
        return Ok(format!("{told}\n").into());
    }
    let mut text = String::new();
    for (mark, names) in [('+', &plan.added), ('~', &plan.changed), ('-', &plan.removed)] {
        for name in names {
            // A write to a string cannot fail.
            let _ = writeln!(text, "  {mark} {}", make_visible(name));
        }
    }
    let hints = if plan.count == 1 { "1 hint".to_owned() } else { format!("{} hints", plan.count) };
    let _ = match &plan.text {
        Some(_) => writeln!(text, "{hints} in {FILE}; commit it, and `nudge trust` loads it in another clone"),
        None => writeln!(text, "nothing to save: {FILE} has what this session has, {hints}"),
    };
    if let Some(first) = plan.private.first() {
        let (count, are) = (plan.private.len(), if plan.private.len() == 1 { "hint is" } else { "hints are" });
        let _ = writeln!(text, "{count} {are} yours alone; `nudge save {}` puts it into the file", make_visible(first));
    }
    Ok(text.into())
}

/// Refuses a text that may contain a credential.
fn check_secrets(text: &str) -> Result<()> {
    let guard = SecretGuard::new();
    let Some(line) = text.lines().find(|line| guard.check(None, line).is_some()) else { return Ok(()) };
    let key = line.trim_start().split('"').nth(1).unwrap_or_default();
    let message = format!(
        "The value beside `{key}` looks like a credential, and {FILE} is for everybody; delete that hint or store it as secret."
    );
    Err(Error::new(nudge::ErrorKind::SecretRejected, message))
}
