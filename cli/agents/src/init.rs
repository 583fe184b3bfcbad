//! `nudge init`: adds Nudge to the coding agents of a machine, and removes it again.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nudge::{Error, ErrorKind, Result};
use nudge_app::config::text_of;
use nudge_app::files::{remove_file, write, write_own};
use nudge_core::text::before_mark;
use nudge_os::process::{ChildProgram, RunLimits, StderrUse};
use nudge_os::programs;

use super::clients::{self, ClientFolders, ClientSpec};
use super::here::InitPaths;
use super::plan::{ClientPlan, FileChange, PriorEntries, shell_line, summary_line};
use super::record::{ChangeRecord, FileBefore, RecordedChange, missing_folders};
use super::{agents_md, commands, keep, login, within};
use crate::args::{InitArgs, RecordCapture};
use crate::ask::{ask_unless_no, ask_which, ask_yes, is_yes};

/// The client name, in the record, of changes that belong to no client.
const OURS: &str = "nudge";

/// The time limit of a client's own command; some commands start slowly.
const PATIENCE: Duration = Duration::from_mins(1);
/// The most bytes of a client's own command that are read. The output is not shown.
const MAX_OUTPUT_BYTES: usize = 4 << 20;

/// Runs the command. Plans and questions go to stderr. The result lists the changes that were made.
///
/// # Errors
/// `E_INVALID` when it must ask and no user is there, and for a file that cannot be parsed; `E_UNAVAILABLE` when a file
/// cannot be written. After an error of one client, continues with the others.
pub fn run_init(args: &InitArgs) -> Result<String> {
    let here = InitPaths::find(args.project)?;
    if args.undo {
        return undo_changes(&here, args);
    }
    let chosen = match here.choose_clients(&args.clients, args.all) {
        // The block in AGENTS.md and the login service need no client.
        Err(error) if error.kind() == ErrorKind::NotFound && (args.agents_md || args.login) => Vec::new(),
        chosen => chosen?,
    };
    let ClientSurvey { mut wanted, mut broken, mut shown } = look_at_clients(&here, chosen);
    let block = if args.agents_md { agents_md::plan_block()? } else { None };
    // Several users share a project, but kept hints belong to one user.
    let kept = if args.project {
        Vec::new()
    } else {
        keep::list_open_choices(args.records.map(RecordCapture::name), args.capture, args.learn)?
    };
    let keeping = keep::plan_settings(&kept)?;
    let unit =
        if args.login || (!args.project && login::is_possible()) { login::plan_unit(&here.place)? } else { None };
    // An existing unit is updated without a question, like any other file.
    let has_unit = unit.as_ref().is_some_and(|unit| unit.before.is_some());
    let mut wants_unit = unit.is_some() && (args.login || has_unit);
    shown.add_own(&[
        ("what agents are told of Nudge", &block),
        ("hints and records kept for next time", &keeping),
        ("a server from your login on", if wants_unit { &unit } else { &None }),
    ]);
    let offer = if args.project { None } else { commands::SeedOffer::find_here() };
    shown.add_offer(offer.as_ref());
    if args.print {
        return refused_or(&broken, shown.summary + &shown.lines);
    }
    print_note(shown.summary.trim_end());
    // Without a terminal no user can accept the offer, so it is dropped.
    let offer = offer.filter(|_| args.yes || std::io::stdin().is_terminal());
    let changes = block.is_some() || wants_unit || wanted.iter().any(|wanted| wanted.entries);
    if !changes && kept.is_empty() && wanted.is_empty() && offer.is_none() {
        return refused_or(&broken, if broken.is_empty() { "nothing to change\n" } else { "" }.into());
    }
    if changes && !shown.ask_consent(args.yes)? {
        return Err(Error::invalid("Nothing was changed."));
    }
    let mut consent = UserConsent { yes: args.yes, has_agreed: changes };
    for wanted in wanted.iter_mut().filter(|wanted| wanted.allow) {
        let question = format!("Let {} use Nudge's tools without asking?", wanted.client.title);
        wanted.allow = consent.ask(&question)?;
    }
    let made = consent.choose(kept)?;
    let offer = match offer {
        Some(offer) if consent.ask(&offer.to_question())? => Some(offer),
        _ => None,
    };
    let keeps = keep::is_on(&made);
    if !keeps && !args.project && !starts_at_login(args, unit.as_ref(), wants_unit) {
        print_note("Hints end with the last agent; `nudge init` asks again whether to keep them for next time.");
    }
    let mut starts_now = args.login;
    // If hints are kept, they outlive the agents even without a server at login.
    if let (Some(unit), false, false, false) = (&unit, wants_unit, keeps, args.yes) {
        print_note(unit.to_diff().trim_end());
        starts_now = ask_yes("Hints end with the last agent. Start a server at your login, too?");
        wants_unit = starts_now;
    }
    let mut record = ChangeRecord::open(&here.record)?;
    let mut done = String::new();
    let mut ready = Vec::new();
    for WantedClient { client, entries, allow } in wanted {
        match carry_out(client, allow, &here, &mut record) {
            Ok(()) if !entries && !allow => {}
            Ok(()) => {
                let what = if args.project { "written for all who work here" } else { "ready; restart it" };
                let _ = writeln!(done, "{}: {what}", client.title);
                ready.push(client.title);
            }
            Err(error) => broken.push(with_title(client, &error)),
        }
    }
    // Plans again, because the files may have changed while the user was asked.
    let block = if block.is_some() { agents_md::plan_block()? } else { None };
    let unit = if wants_unit { login::plan_unit(&here.place)? } else { None };
    let keeping = keep::plan_settings(&made)?;
    for file in block.into_iter().chain(unit).chain(keeping) {
        write_recorded(OURS, PriorEntries::default(), &file, &here, &mut record)?;
        let _ = writeln!(done, "{}: written", file.path.display());
    }
    done += &offer.map_or(Ok(String::new()), |offer| offer.accept())?;
    if starts_now {
        done += &login::start_service();
    } else if wants_unit {
        done += "The server of your login is the new one from your next login on.\n";
    }
    if done.contains("Codex") {
        done += "Codex asks once whether it may run the hooks.\n";
    }
    if args.project && !ready.is_empty() {
        done += "Each of them needs `nudge` in PATH and is asked by the client whether it may start; what it may do and\n\
                 whether hints are kept is their own: `nudge init`.\n";
    } else if let Some(client) = ready.first() {
        done += &one_thing_to_try(client, keeps);
    }
    refused_or(&broken, done)
}

/// Returns the text with a first task, which shows within a minute that Nudge works.
fn one_thing_to_try(client: &str, keeps: bool) -> String {
    let then = if keeps { "Close it, start it again there" } else { "Start another one there beside it" };
    format!(
        "Try it: in a project of yours, tell {client}: \"Remember with Nudge how the tests are run here.\"\n\
         {then}, and ask it to run the tests. `nudge doctor` says whether all is well.\n"
    )
}

/// Returns true when a server at login is possible and the user was not asked about it. Also prints a note about it.
fn starts_at_login(args: &InitArgs, unit: Option<&FileChange>, wants_unit: bool) -> bool {
    let mentions = args.yes && unit.is_some() && !wants_unit;
    if mentions {
        print_note("Hints end with the last agent; `nudge init --login` has a server from your login on.");
    }
    mentions
}

/// A client that needs changes.
struct WantedClient {
    client: &'static ClientSpec,
    /// True when the server's entry or hooks are missing.
    entries: bool,
    /// True when the client asks before it uses the tools, and `nudge init` can change that.
    allow: bool,
}

/// The state of all chosen clients.
#[derive(Default)]
struct ClientSurvey {
    wanted: Vec<WantedClient>,
    broken: Vec<Error>,
    shown: ShownChanges,
}

/// The planned changes as the user sees them.
#[derive(Default)]
struct ShownChanges {
    /// The purpose and the file of each change.
    summary: String,
    /// Every changed line.
    lines: String,
}

impl ShownChanges {
    /// Adds changes of Nudge's own files, which belong to no client.
    fn add_own(&mut self, changes: &[(&str, &Option<FileChange>)]) {
        let mut title = "Nudge itself\n";
        for (what, file) in changes.iter().filter_map(|(what, file)| Some((what, file.as_ref()?))) {
            self.summary += std::mem::take(&mut title);
            self.summary += &summary_line(what, &file.path);
            self.lines += &file.to_diff();
        }
    }

    /// Adds the commands of the clone that the user is in.
    fn add_offer(&mut self, offer: Option<&commands::SeedOffer>) {
        let Some(offer) = offer else { return };
        self.summary += &offer.to_line();
        self.lines += &(offer.to_line() + &offer.to_lines());
    }

    /// Returns true if the user agrees, or if `yes` is true. Shows every line first, if the user asks for that.
    fn ask_consent(&self, yes: bool) -> Result<bool> {
        if yes {
            return Ok(true);
        }
        need_somebody()?;
        loop {
            match ask_which("Make these changes?", "y/N, d to see every line").as_str() {
                "d" | "diff" => print_note(self.lines.trim_end()),
                answer => return Ok(is_yes(answer)),
            }
        }
    }
}

fn look_at_clients(here: &InitPaths, chosen: Vec<&'static ClientSpec>) -> ClientSurvey {
    let mut looked = ClientSurvey::default();
    for client in chosen {
        let title = client.title;
        let plan = |allow| ClientPlan::new(client, &here.place, here.has_program(client), allow);
        match plan(true).and_then(|whole| Ok((whole, plan(false)?))) {
            Ok((whole, _)) if whole.is_empty() => {
                let why = client.plugin_file(&here.place).map_or_else(String::new, |file| {
                    format!(", the plugin that {} switches on brings it all", file.display())
                });
                let _ = writeln!(looked.shown.summary, "{title}: nothing to change{why}");
            }
            Ok((whole, entries)) => {
                let _ = write!(looked.shown.summary, "{title}\n{}", whole.summarize());
                let _ = write!(looked.shown.lines, "{title}\n{}", whole.describe_lines());
                let allow = whole.files != entries.files;
                looked.wanted.push(WantedClient { client, entries: !entries.is_empty(), allow });
            }
            Err(error) => looked.broken.push(with_title(client, &error)),
        }
    }
    looked
}

/// Puts the client's title before the message of an error.
fn with_title(client: &ClientSpec, error: &Error) -> Error {
    Error::new(error.kind(), format!("{}: {}", client.title, error.message()))
}

/// Returns the result, or one error that contains all failures. All other changes are done before that.
fn refused_or(broken: &[Error], done: String) -> Result<String> {
    let Some(first) = broken.first() else { return Ok(done) };
    print_note(done.trim_end());
    let all: Vec<_> = broken.iter().map(Error::message).collect();
    Err(Error::new(first.kind(), all.join(" ")))
}

fn print_note(text: &str) {
    if !text.is_empty() {
        let _ = writeln!(std::io::stderr(), "{}", nudge_core::text::visible_lines(text));
    }
}

/// Asks the user's consent to one part of the changes after another.
struct UserConsent {
    /// True when the command line consents to all.
    yes: bool,
    /// True after the first consent: from then on Enter consents, because the user wants Nudge.
    has_agreed: bool,
}

impl UserConsent {
    fn ask(&mut self, question: &str) -> Result<bool> {
        if self.yes {
            return Ok(true);
        }
        need_somebody()?;
        let agrees = if self.has_agreed { ask_unless_no(question) } else { ask_yes(question) };
        self.has_agreed |= agrees;
        Ok(agrees)
    }

    /// Returns the choices that the user or the command line makes.
    fn choose(&mut self, choices: Vec<keep::KeepChoice>) -> Result<Vec<keep::KeepChoice>> {
        let mut made = Vec::new();
        for choice in choices {
            if choice.said || self.ask(choice.question)? {
                made.push(choice);
            }
        }
        Ok(made)
    }
}

fn need_somebody() -> Result<()> {
    if std::io::stdin().is_terminal() {
        return Ok(());
    }
    Err(Error::invalid("Nobody can be asked here; add --yes to make these changes, or --print to see every line."))
}

fn carry_out(client: &'static ClientSpec, allow: bool, here: &InitPaths, record: &mut ChangeRecord) -> Result<()> {
    let place = &here.place;
    let ClientPlan { mut files, command, stood, .. } = ClientPlan::new(client, place, here.has_program(client), allow)?;
    if let Some((words, path)) = command {
        let (before, made) = (text_of(&path)?, missing_folders(&path));
        // Prints a note first, because some commands take ten seconds.
        print_note(&format!("{}: `{}` runs ...", client.title, shell_line(&words)));
        let failed = ask_client(&words).err();
        // The command may have written the file even if it then failed.
        let after = text_of(&path)?.filter(|after| before.as_ref() != Some(after));
        if let Some(after) = after {
            let file = FileChange { path, before, after };
            record.add_change(RecordedChange::new(
                client.name,
                place.project.as_deref(),
                stood.clone(),
                made,
                &file,
            ))?;
        }
        if let Some(why) = failed {
            print_note(&format!("`{}` failed ({why}); its file is changed directly.", shell_line(&words)));
        }
        // The command may also have changed the file of the hooks, or may have made only a part of the changes.
        files = ClientPlan::new(client, place, false, allow)?.files;
    }
    files.iter().try_for_each(|file| write_recorded(client.name, stood.clone(), file, here, record))
}

/// Runs a client's own command.
fn ask_client(words: &[String]) -> Result<(), String> {
    // Starts the program by its path, because Windows does not find a script by its name.
    let program = programs::find_program(&words[0]).ok_or("it is not in PATH")?;
    let limits = RunLimits { time: PATIENCE, output_bytes: MAX_OUTPUT_BYTES, is_given_up: &|| false };
    let output = ChildProgram::new(&program).args(&words[1..]).errors(StderrUse::Kept).run(limits);
    let output = output.map_err(|failure| format!("it {failure}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(message_of(&text).unwrap_or_else(|| output.status.to_string()))
}

/// Returns the line with the error message: the last line that begins like an error, or else the last line. Runtimes
/// print a stack trace below the message, so trace lines do not count.
fn message_of(stderr: &str) -> Option<String> {
    let plain = anstream::adapter::strip_str(stderr).to_string();
    let is_trace = |line: &&str| line.starts_with("at ") || line.starts_with("Node.js v") || line.starts_with("note: ");
    let lines = || plain.lines().map(str::trim).filter(|line| !line.is_empty() && !is_trace(line));
    let says = |line: &&str| {
        let head = before_mark(line, &[':']).to_lowercase();
        line.contains(':') && !head.contains(['(', '=']) && (head.ends_with("error") || head.ends_with("exception"))
    };
    lines().rfind(says).or_else(|| lines().next_back()).map(str::to_owned)
}

/// Records the state of a file before the change, then writes the file.
fn write_recorded(
    client: &str,
    stood: PriorEntries,
    file: &FileChange,
    here: &InitPaths,
    record: &mut ChangeRecord,
) -> Result<()> {
    let project = here.place.project.as_deref();
    within::check_within(project, &file.path)?;
    record.add_change(RecordedChange::new(client, project, stood, missing_folders(&file.path), file))?;
    // Nudge's own settings may contain a token, so only the user may read a new file.
    let write_file = if keep::is_settings(&file.path) { write_own } else { write };
    write_file(&file.path, &file.after).or_else(|error| {
        record.drop_last()?;
        Err(error)
    })
}

/// Undoes the changes of the named clients, or of all. A file that has not changed since is restored byte for byte.
/// From any other file, removes only the entries that the record names. With `--project`, undoes only the project's
/// changes.
fn undo_changes(here: &InitPaths, args: &InitArgs) -> Result<String> {
    let mut record = ChangeRecord::open(&here.record)?;
    let named_ones = here.choose_clients(&args.clients, args.clients.is_empty())?;
    let concerns = |change: &RecordedChange| {
        (args.clients.is_empty() || named_ones.iter().any(|client| client.name == change.client))
            && (!args.project || change.project == here.place.project)
    };
    let (ours, kept): (Vec<_>, Vec<_>) = record.changes.drain(..).partition(concerns);
    let mut files: Vec<(PathBuf, Vec<RecordedChange>)> = Vec::new();
    for change in ours {
        match files.iter_mut().find(|(path, _)| *path == change.path) {
            Some((_, changes)) => changes.push(change),
            None => files.push((change.path.clone(), vec![change])),
        }
    }
    let ends_seeds = args.clients.is_empty() && !args.project && commands::is_any();
    if files.is_empty() && !ends_seeds {
        return Ok("nothing to undo\n".into());
    }
    let changed =
        files.iter().fold("Nudge has changed:".into(), |out, (path, _)| format!("{out}\n  {}", path.display()));
    print_note(if files.is_empty() { "Agents are told commands that repositories name." } else { &changed });
    if !(UserConsent { yes: args.yes, has_agreed: false }.ask("Take Nudge out of them?")?) {
        return Err(Error::invalid("Nothing was changed."));
    }
    record.changes = kept;
    let (mut done, mut broken) = (String::new(), Vec::new());
    if ends_seeds {
        done += &commands::undo_offers()?;
    }
    for (show_path, changes) in files.into_iter().rev() {
        match undo_file(here, &show_path, &changes) {
            Ok("") => {}
            Ok(what) => drop(writeln!(done, "{}: {what}", show_path.display())),
            Err(error) => {
                // Keeps a failed change in the record, so that the user can try again.
                record.changes.extend(changes);
                broken.push(error);
            }
        }
    }
    record.save()?;
    refused_or(&broken, if done.is_empty() { "nothing to undo\n".into() } else { done })
}

/// Undoes the changes of one file. Returns the outcome in words.
fn undo_file(here: &InitPaths, path: &Path, changes: &[RecordedChange]) -> Result<&'static str> {
    within::check_within(changes[0].project.as_deref(), path)?;
    let Some(now) = text_of(path)? else { return Ok("") };
    if login::is_unit(&here.place, path) {
        login::stop_service();
    }
    let back = changes.iter().rev().try_fold(FileBefore::Text(now.clone()), |text, change| match text {
        FileBefore::Text(text) => change.find_before(&text),
        FileBefore::Absent => None,
    });
    match back {
        Some(FileBefore::Text(text)) => write(path, &text)?,
        Some(FileBefore::Absent) => {
            remove_file(path)?;
            changes.iter().for_each(RecordedChange::remove_folders);
        }
        None => return take_out(here, path, &changes[0], &now),
    }
    Ok("as it was")
}

/// Removes Nudge's entries from a file that has changed since Nudge wrote it.
fn take_out(here: &InitPaths, path: &Path, first: &RecordedChange, now: &str) -> Result<&'static str> {
    if let Some(client) = clients::ALL.iter().find(|client| client.name == first.client) {
        let place = ClientFolders { project: first.project.clone(), ..here.place.clone() };
        let Some(file) = ClientPlan::plan_removal(client, &place, path, &first.stood)? else { return Ok("") };
        write(path, &file.after)?;
    } else if login::is_unit(&here.place, path) {
        remove_file(path)?;
        first.remove_folders();
    } else if keep::is_settings(path) {
        let Some(file) = keep::plan_removal(path)? else { return Ok("") };
        write(path, &file.after)?;
    } else {
        let Some(text) = agents_md::remove_block(now) else { return Ok("") };
        write(path, &text)?;
    }
    Ok("taken out")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_told_by_its_message() {
        for (stderr, told) in [
            ("", None),
            ("it is broken\n", Some("it is broken")),
            (
                "usage: x\nerror: unexpected argument '--scope' found\n\nFor more information, try '--help'.\n",
                Some("error: unexpected argument '--scope' found"),
            ),
            (
                "/x/cli.js:3\nthrow new Error(\"x\");\n      ^\n\nError: EACCES: permission denied\n    at f (/x/cli.js:3:7)\n\nNode.js v24.1.0\n",
                Some("Error: EACCES: permission denied"),
            ),
            (
                "Traceback (most recent call last):\n  File \"x.py\", line 1, in <module>\n    import y\nModuleNotFoundError: No module named 'y'\n",
                Some("ModuleNotFoundError: No module named 'y'"),
            ),
            (
                "\u{1b}[31mMCP server nudge already exists\u{1b}[0m\n    at run (x.js:1)\n",
                Some("MCP server nudge already exists"),
            ),
        ] {
            assert_eq!(message_of(stderr).as_deref(), told, "{stderr}");
        }
    }
}
