//! `nudge init`: puts Nudge into the coding agents of a machine, and takes it out again.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use nudge::{Error, ErrorKind, Result};

use super::clients::{Client, Place};
use super::here::Here;
use super::plan::{File, Plan, shell_line};
use super::record::{Change, Record, remove, write};
use super::{agents_md, login};
use crate::args::Init;

/// For whom changes are noted that are no client's.
const OURS: &str = "nudge";

/// Does what the flags say; what people read meanwhile goes to stderr, what was done is the result.
///
/// # Errors
/// `E_INVALID` when nobody can be asked, or for a file that is broken; `E_UNAVAILABLE` when one cannot be
/// written.
pub fn run(args: &Init) -> Result<String> {
    let here = Here::find(args.project)?;
    if args.undo {
        return undo(&here, args);
    }
    let chosen = match here.choose(&args.clients, args.all) {
        // What else is asked for needs none.
        Err(error) if error.kind() == ErrorKind::NotFound && (args.agents_md || args.login) => Vec::new(),
        chosen => chosen?,
    };
    let (mut plans, mut broken) = (Vec::new(), Vec::new());
    for client in chosen {
        if let Some(file) = client.plugin_file(&here.place) {
            let file = file.display();
            tell(&format!("{}: nothing to change, the plugin that {file} switches on brings it all", client.title));
            continue;
        }
        let program = client.program.filter(|program| !args.project && which::which(program).is_ok());
        match Plan::new(client, &here.place, program.is_some()) {
            Ok(plan) => plans.push(plan),
            Err(error) => broken.push(format!("{}: {}", client.name, error.message())),
        }
    }
    let block = if args.agents_md { agents_md::plan()? } else { None };
    let at_login = if args.login { login::plan(&here.place)? } else { None };
    let mut extra: Vec<_> = block.into_iter().chain(at_login).collect();
    for plan in &plans {
        tell(&format!("{}{}", plan.client.title, if plan.is_empty() { ": nothing to change" } else { "" }));
        tell(plan.tell().trim_end());
    }
    for file in &extra {
        tell(file.diff().trim_end());
    }
    for line in &broken {
        tell(line);
    }
    plans.retain(|plan| !plan.is_empty());
    if args.print || (plans.is_empty() && extra.is_empty()) {
        return refused_or(&broken, if args.print { String::new() } else { "nothing to change\n".into() });
    }
    agree(args.yes, "Make these changes?")?;
    let mut at_login = args.login;
    if !args.login && !args.project && login::is_possible() {
        let unit = login::plan(&here.place)?;
        if args.yes && unit.is_some() {
            tell("Hints end with the last agent; `nudge init --login` has a server from your login on.");
        } else if let Some(unit) = unit {
            tell(unit.diff().trim_end());
            at_login = ask("Hints end with the last agent. Start a server at your login, too?");
            extra.extend(Some(unit).filter(|_| at_login));
        }
    }
    let mut record = Record::open(&here.record)?;
    let mut done = String::new();
    for plan in plans {
        let title = plan.client.title;
        match carry_out(plan, &here.place, &mut record) {
            Ok(()) => drop(writeln!(done, "{title}: ready; restart it")),
            Err(error) => broken.push(format!("{title}: {}", error.message())),
        }
    }
    for file in extra {
        let _ = writeln!(done, "{}: written", file.path.display());
        apply(OURS, file, &mut record)?;
    }
    if at_login {
        done += &login::start();
    }
    if done.contains("Codex") {
        done += "Codex asks once whether it may run the hooks.\n";
    }
    refused_or(&broken, done)
}

/// What could not be done fails the whole, after the rest was.
fn refused_or(broken: &[String], done: String) -> Result<String> {
    if broken.is_empty() {
        return Ok(done);
    }
    tell(done.trim_end());
    Err(Error::new(ErrorKind::Invalid, broken.join(" ")))
}

fn tell(text: &str) {
    if !text.is_empty() {
        let _ = writeln!(std::io::stderr(), "{}", crate::output::visible_lines(text));
    }
}

/// Asks, where somebody can be asked.
fn agree(yes: bool, question: &str) -> Result<()> {
    if yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        return Err(Error::new(ErrorKind::Invalid, "Nobody can be asked here; add --yes to make these changes."));
    }
    if ask(question) { Ok(()) } else { Err(Error::new(ErrorKind::Invalid, "Nothing was changed.")) }
}

fn ask(question: &str) -> bool {
    let _ = write!(std::io::stderr(), "{question} [y/N] ");
    let mut answer = String::new();
    let _ = std::io::stdin().lock().read_line(&mut answer);
    matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}

fn carry_out(mut plan: Plan, place: &Place, record: &mut Record) -> Result<()> {
    if let Some((words, file)) = &plan.command {
        let before = fs::read_to_string(file).ok();
        let output = Command::new(&words[0]).args(&words[1..]).stdin(Stdio::null()).output();
        let failed = |why: String| {
            let line = shell_line(words);
            Error::new(ErrorKind::Unavailable, format!("`{line}` failed: {why}; run it by hand."))
        };
        let output = output.map_err(|error| failed(error.to_string()))?;
        if !output.status.success() {
            return Err(failed(String::from_utf8_lossy(&output.stderr).trim().replace('\n', " ")));
        }
        if let Ok(after) = fs::read_to_string(file) {
            note(plan.client.name, File { path: file.clone(), before, after }, record)?;
        }
        // It may have written to the file of the hooks too, or less than it was asked to.
        plan = Plan::new(plan.client, place, false)?;
    }
    plan.files.into_iter().try_for_each(|file| apply(plan.client.name, file, record))
}

/// Writes a file; how it was before is on record first.
fn apply(client: &str, file: File, record: &mut Record) -> Result<()> {
    let (path, after) = (file.path.clone(), file.after.clone());
    note(client, file, record)?;
    write(&path, &after)
}

fn note(client: &str, file: File, record: &mut Record) -> Result<()> {
    let File { path, before, after } = file;
    record.changes.push(Change { client: client.to_owned(), path, before, after });
    record.save()
}

/// Brings back what was there, byte for byte where nobody has changed it since; else takes out what is ours. Of a
/// project alone with `--project`, else everything of the clients that are named, or of all.
fn undo(here: &Here, args: &Init) -> Result<String> {
    let mut record = Record::open(&here.record)?;
    let named = here.choose(&args.clients, args.clients.is_empty())?;
    let concerns = |change: &Change| {
        (args.clients.is_empty() || named.iter().any(|client| client.name == change.client))
            && here.place.project.as_ref().is_none_or(|project| change.path.starts_with(project))
    };
    let is_here = |path: &Path| {
        let place = &here.place;
        let is_its = |client: &&Client| {
            (client.server)(place).file == path || client.hooks.is_some_and(|hooks| hooks(place).file == path)
        };
        named.iter().any(is_its)
    };
    agree(args.yes, "Take Nudge out again?")?;
    let (mut done, mut kept, mut broken) = (String::new(), Vec::new(), Vec::new());
    for change in record.changes.drain(..).rev().collect::<Vec<_>>() {
        let path = &change.path;
        let now = fs::read_to_string(path).ok();
        if !concerns(&change) {
            kept.push(change);
        } else if now.as_deref() == Some(&change.after) {
            if login::is_unit(&here.place, path) {
                login::stop();
            }
            match &change.before {
                Some(before) => write(path, before)?,
                None => remove(path)?,
            }
            let _ = writeln!(done, "{}: as it was", path.display());
        } else if let Some(text) = now.as_deref().filter(|_| change.client == OURS).and_then(agents_md::without) {
            write(path, &text)?;
            let _ = writeln!(done, "{}: taken out", path.display());
        } else if now.is_some() && change.client != OURS && !is_here(path) {
            let path = path.display();
            broken
                .push(format!("{path} was changed since; `nudge init --undo --project` in its folder looks into it."));
        }
    }
    kept.reverse();
    record.changes = kept;
    record.save()?;
    // What was changed since, or was put there by hand.
    for client in named {
        match Plan::removal(client, &here.place) {
            Ok(plan) => {
                for file in plan.files {
                    write(&file.path, &file.after)?;
                    let _ = writeln!(done, "{}: taken out", file.path.display());
                }
            }
            Err(error) => broken.push(format!("{}: {}", client.name, error.message())),
        }
    }
    refused_or(&broken, if done.is_empty() { "nothing to undo\n".into() } else { done })
}
