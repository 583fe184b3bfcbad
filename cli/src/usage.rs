//! Parses the command line, and describes errors of the command line in one sentence.

mod flags;

use clap::error::{ContextKind, ContextValue, ErrorKind as Kind};
use clap::{CommandFactory as _, FromArgMatches as _};
use nudge::{Error, SecretGuard};
use nudge_core::near::find_nearest;

use crate::args::{CliArgs, build_command, parse_quick};

pub use flags::{describe_error, name_commands};

/// Words that users try in place of a command's name, if the two words do not look alike.
const MEANT: [(&str, &str); 18] = [
    ("add", "set"),
    ("put", "set"),
    ("store", "set"),
    ("remember", "set"),
    ("read", "get"),
    ("remove", "delete"),
    ("del", "delete"),
    ("version", "--version"),
    ("find", "search"),
    ("grep", "search"),
    ("start", "serve"),
    ("server", "serve"),
    ("quit", "stop"),
    ("kill", "stop"),
    ("explain", "why"),
    ("load", "import"),
    ("dump", "export"),
    ("install", "init"),
];

/// A parsed command line.
pub enum ParsedCommandLine {
    /// A command to run.
    Run {
        /// The parsed arguments.
        args: Box<CliArgs>,
        /// The name of the command.
        verb: String,
    },
    /// The help or the version to print.
    Tell(clap::builder::StyledStr),
    /// A command line that cannot be parsed.
    Wrong {
        /// The error, in one sentence.
        error: Error,
        /// True when the command line has `--json`.
        json: bool,
    },
}

/// Parses a command line. The first word is the program's name.
pub fn read(words: &[std::ffi::OsString]) -> ParsedCommandLine {
    let json = words.iter().take_while(|word| *word != "--").any(|word| word == "--json");
    if let Some((args, verb)) = parse_quick(words) {
        return ParsedCommandLine::Run { args: Box::new(args), verb: verb.into() };
    }
    if words.len() < 2 {
        return ParsedCommandLine::Tell(build_command().render_help());
    }
    let mut plain = CliArgs::command();
    let is_verb = |word: &&std::ffi::OsString| word.to_str().is_some_and(|word| plain.find_subcommand(word).is_some());
    let before = words[1..].iter().take_while(|word| !is_verb(word)).map(|word| word.to_string_lossy().into_owned());
    let before: Vec<_> = before.collect();
    match plain.try_get_matches_from_mut(words).and_then(|matches| to_run(&matches)) {
        Ok(run) => run,
        Err(error)
            if error.kind() == Kind::MissingRequiredArgument
                && let Some(run) = read_joined_name(words) =>
        {
            run
        }
        Err(error) if matches!(error.kind(), Kind::DisplayHelp | Kind::DisplayVersion) => {
            // Builds the groups in the list of all commands only here, because they take longer to build than
            // everything else.
            let told = build_command().try_get_matches_from(words).err().unwrap_or(error);
            ParsedCommandLine::Tell(told.render())
        }
        Err(error) => {
            // The parse has built the commands of the source that the words name, so the verb can be found now.
            let verb = name_command(&plain, &words[1..]);
            let said = no_command(&error, &plain, &before).or_else(|| no_verb(&error, &plain, &verb));
            let said = said.unwrap_or_else(|| to_sentence(&error, &plain, &verb));
            // A word in the wrong place may be a secret, and logs and transcripts contain the message.
            let said = match SecretGuard::new().check(None, &said) {
                None => said,
                Some(_) => format!("A word stands where it does not belong; see `nudge {verb}--help`."),
            };
            ParsedCommandLine::Wrong { error: Error::invalid(said), json }
        }
    }
}

fn to_run(matches: &clap::ArgMatches) -> Result<ParsedCommandLine, clap::Error> {
    let verb = match matches.subcommand() {
        Some((verb, inner)) => inner.subcommand_name().map_or(verb.to_owned(), |own| format!("{verb} {own}")),
        None => String::new(),
    };
    Ok(ParsedCommandLine::Run { args: Box::new(CliArgs::from_arg_matches(matches)?), verb })
}

/// Parses a command line that lacks its key and has `COMPONENT/KEY` in one word, as output prints it. The word is split
/// at its first `/`, and only if the parts then are the command's component and key: a component with a `/` is reached
/// by two words.
fn read_joined_name(words: &[std::ffi::OsString]) -> Option<ParsedCommandLine> {
    let before_dashes = words.iter().take_while(|word| *word != "--").enumerate().skip(1);
    before_dashes.into_iter().find_map(|(index, word)| {
        let (component, key) = word.to_str()?.split_once('/')?;
        if component.is_empty() || key.is_empty() {
            return None;
        }
        let name = [component, key].map(std::ffi::OsString::from);
        let split = words[..index].iter().chain(&name).chain(&words[index + 1..]);
        let matches = CliArgs::command().try_get_matches_from(split).ok()?;
        let (_, inner) = matches.subcommand()?;
        let has = |id: &str, text: &str| {
            inner.try_get_one::<String>(id).is_ok_and(|given| given.is_some_and(|given| given == text))
        };
        if has("component", component) && has("key", key) { to_run(&matches).ok() } else { None }
    })
}

/// Returns the command and the verb of a source that the words name, each followed by a space.
fn name_command(command: &clap::Command, words: &[std::ffi::OsString]) -> String {
    let (mut within, mut verb) = (command, String::new());
    for word in words.iter().filter_map(|word| word.to_str()) {
        if let Some(found) = within.find_subcommand(word) {
            within = found;
            verb = format!("{verb}{word} ");
        }
    }
    verb
}

/// Suggests a command for an unknown word. Suggests nothing if the word is not in `before`, the words before the verb:
/// an unknown word after the verb belongs to a source.
fn no_command(error: &clap::Error, command: &clap::Command, before: &[String]) -> Option<String> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    if !before.contains(word) {
        return None;
    }
    let is_verb = |name: &str| name.starts_with("--") || command.find_subcommand(name).is_some();
    let names = command.get_subcommands().filter(|command| !command.is_hide_set());
    let names: Vec<_> = names.flat_map(|command| command.get_name_and_visible_aliases()).collect();
    let known = MEANT.iter().find(|(said, _)| said == word).map(|(_, meant)| *meant);
    let meant = known.or_else(|| find_nearest(word, names.iter().copied())).filter(|name| is_verb(name))?;
    Some(format!("There is no command `{word}`; did you mean `nudge {meant}`?"))
}

/// Lists the verbs of a command, if the user gave no verb.
fn no_verb(error: &clap::Error, command: &clap::Command, verb: &str) -> Option<String> {
    if !matches!(error.kind(), Kind::DisplayHelpOnMissingArgumentOrSubcommand | Kind::MissingSubcommand) {
        return None;
    }
    let within = verb.split_whitespace().try_fold(command, |within, word| within.find_subcommand(word))?;
    let verbs = within.get_subcommands().filter(|verb| !verb.is_hide_set() && verb.get_name() != "help");
    let verbs: Vec<_> = verbs.map(clap::Command::get_name).collect();
    Some(format!("Say what to do: {}; see `nudge {verb}--help`.", verbs.join(", ")))
}

/// Converts clap's paragraphs to one sentence: the error, its tips, and the command for more help.
fn to_sentence(error: &clap::Error, command: &clap::Command, verb: &str) -> String {
    let help = format!("see `nudge {verb}--help`.");
    let text_of = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        Some(ContextValue::Strings(texts)) => texts.first().map(String::as_str),
        _ => None,
    };
    match (error.kind(), error.get(ContextKind::InvalidArg), text_of(ContextKind::InvalidArg)) {
        (Kind::MissingRequiredArgument, Some(ContextValue::Strings(missing)), _) => say_missing(error, missing, &help),
        (Kind::UnknownArgument, _, Some(flag)) if flag.starts_with('-') => {
            let near = text_of(ContextKind::SuggestedArg).filter(|near| find_nearest(flag, [*near]).is_some());
            match near {
                Some(near) => format!("There is no flag `{flag}`; did you mean `{near}`?"),
                None if verb == "set " => {
                    format!("There is no flag `{flag}`; a value that begins with a dash goes after `--`, {help}")
                }
                None => format!("There is no flag `{flag}`; {help}"),
            }
        }
        (Kind::UnknownArgument, _, Some(word)) => {
            let example = find_example(command, verb);
            match example.filter(|_| verb != "set ") {
                Some(example) => format!("`{word}` is a word too many; write it like `{example}`, {help}"),
                None if verb == "set " => format!(
                    "`{word}` is a word too many; put a value of several words in quotes, as in `nudge set api build 'make all'`."
                ),
                None => format!("`{word}` is a word too many; {help}"),
            }
        }
        (Kind::InvalidSubcommand, ..) => {
            let word = text_of(ContextKind::InvalidSubcommand).unwrap_or("");
            let near = text_of(ContextKind::SuggestedSubcommand).filter(|near| find_nearest(word, [*near]).is_some());
            match near {
                Some(near) => format!("There is no command `nudge {verb}{word}`; did you mean `nudge {verb}{near}`?"),
                None => format!(
                    "There is no command `nudge {verb}{word}`; `nudge {verb}--help` lists those that there are."
                ),
            }
        }
        _ => join_lines(error, &help),
    }
}

/// Names the missing arguments, and the whole line that has them.
fn say_missing(error: &clap::Error, missing: &[String], help: &str) -> String {
    let plain = |text: &str| text.replace(['<', '>'], "");
    let usage = match error.get(ContextKind::Usage) {
        Some(ContextValue::StyledStr(usage)) => plain(usage.to_string().trim_start_matches("Usage:").trim()),
        _ => String::new(),
    };
    let names: Vec<_> = missing.iter().map(|name| plain(name).replace("...", "")).collect();
    let is_are = if names.len() == 1 { "is" } else { "are" };
    let names = match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => names.concat(),
    };
    // A user who gives a component but no key may be looking for its keys.
    let keys = if names.ends_with("KEY") { "`nudge ls COMPONENT` lists the keys of one, " } else { "" };
    format!("{names} {is_are} missing: `{usage}`; {keys}{help}")
}

/// Returns the first example of a command's help.
fn find_example(command: &clap::Command, verb: &str) -> Option<String> {
    let within = verb.split_whitespace().try_fold(command, |within, word| within.find_subcommand(word))?;
    let help = within.get_after_help()?.to_string();
    let line = help.lines().map(str::trim).find(|line| line.starts_with("nudge "))?;
    Some(line.split("  ").next().unwrap_or(line).to_owned())
}

/// Joins clap's lines to one sentence.
fn join_lines(error: &clap::Error, help: &str) -> String {
    let text = error.render().to_string();
    let wrong = text.lines().take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    // Leaves out the suggestion of a value: the possible ones are listed beside it.
    let wrong = wrong.map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("tip: a similar value"));
    let said = wrong.collect::<Vec<_>>().join("; ").replace(":; ", ": ").replace("; tip: ", "; ").replace("; <", ", <");
    let said = match said.split_once("; [possible values: ") {
        Some((before, values)) => format!("{before}: one of {}", values.replace(']', "")),
        None => said,
    };
    let said = said.replace("]...'", "]'");
    // Replaces the messages of Rust about numbers with clearer messages.
    let said = said.replace("invalid digit found in string", "write a whole number");
    let said = said.replace("number too large to fit in target type", "that is too large");
    let said = match said.split_once(" is not in ") {
        Some((before, range)) => format!("{before} is not from {}", range.replace("..=", " to ")),
        None => said,
    };
    let said = said.strip_prefix("error: ").unwrap_or(&said).trim_end_matches('.');
    let mut said = said.chars();
    let first = said.next().into_iter().flat_map(char::to_uppercase).collect::<String>();
    format!("{first}{}; {help}", said.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(line: &str) -> (String, bool) {
        match read(&line.split(' ').map(Into::into).collect::<Vec<_>>()) {
            ParsedCommandLine::Wrong { error, json } => (error.message().to_owned(), json),
            _ => panic!("{line} is understood"),
        }
    }

    #[test]
    fn what_is_wrong_is_one_sentence() {
        for (line, sentence) in [
            ("nudge nonsense", "There is no command `nudge nonsense`; `nudge --help` lists those that there are."),
            ("nudge records adds", "There is no command `nudge records adds`; did you mean `nudge records add`?"),
            ("nudge del a b", "There is no command `del`; did you mean `nudge delete`?"),
            ("nudge remove a b", "There is no command `remove`; did you mean `nudge delete`?"),
            ("nudge version", "There is no command `version`; did you mean `nudge --version`?"),
            (
                "nudge set api build make all",
                "`all` is a word too many; put a value of several words in quotes, as in `nudge set api build 'make all'`.",
            ),
            (
                "nudge serve --port 99999",
                "Invalid value '99999' for '--port <PORT>': 99999 is not from 0 to 65535; see `nudge serve --help`.",
            ),
            ("nudge ask", "WORDS is missing: `nudge ask WORDS...`; see `nudge ask --help`."),
            ("nudge stats --since x", "There is no flag `--since`; see `nudge stats --help`."),
            ("nudge sett a b c", "There is no command `sett`; did you mean `nudge set`?"),
            ("nudge reacll x", "There is no command `reacll`; did you mean `nudge recall`?"),
            ("nudge serch x", "There is no command `serch`; did you mean `nudge search`?"),
            ("nudge add a b c", "There is no command `add`; did you mean `nudge set`?"),
            (
                "nudge get a",
                "KEY is missing: `nudge get COMPONENT KEY`; `nudge ls COMPONENT` lists the keys of one, see `nudge get --help`.",
            ),
            (
                "nudge get a b --os beos",
                "Invalid value 'beos' for '--os <OS>': one of linux, darwin, macos, windows; see `nudge get --help`.",
            ),
            (
                "nudge set a b c --priority x",
                "Invalid value 'x' for '--priority <N>': write a whole number; see `nudge set --help`.",
            ),
            (
                "nudge signals send",
                "--type TYPE and AGENT are missing: `nudge signals send --type TYPE AGENT`; see `nudge signals send --help`.",
            ),
            ("nudge model", "Say what to do: add, list, remove; see `nudge model --help`."),
            ("nudge signals", "Say what to do: send, check, respond, list, watch, deacon; see `nudge signals --help`."),
            ("nudge undo 3 --list", "The argument '[ID]' cannot be used with '--list'; see `nudge undo --help`."),
        ] {
            assert_eq!(wrong(line), (sentence.to_owned(), false), "{line}");
        }
        let (tip, json) = wrong("nudge set a b c --tag x --json");
        assert_eq!(tip, "There is no flag `--tag`; did you mean `--tags`?");
        assert!(json);
        assert!(!wrong("nudge set -- --json").1);
    }

    #[test]
    fn what_people_try_is_no_command_and_leads_to_one() {
        let command = super::build_command();
        for (said, meant) in MEANT {
            assert!(command.find_subcommand(said).is_none(), "{said} is a command");
            assert!(meant == "--version" || command.find_subcommand(meant).is_some(), "{meant} is none");
        }
        for (line, verb) in
            [("nudge show a b", "get"), ("nudge list", "ls"), ("nudge search x", "recall"), ("nudge rm a b", "delete")]
        {
            let read = read(&line.split(' ').map(Into::into).collect::<Vec<_>>());
            assert!(matches!(read, ParsedCommandLine::Run { verb: ran, .. } if ran == verb), "{line}");
        }
    }

    #[test]
    fn a_component_and_its_key_may_be_one_word() {
        let read = |line: &str| match read(&line.split(' ').map(Into::into).collect::<Vec<_>>()) {
            ParsedCommandLine::Run { args, .. } => format!("{:?}", args.command),
            _ => panic!("{line} is not understood"),
        };
        for (line, same) in [
            ("nudge get api/build", "nudge get api build"),
            ("nudge get --cwd /a/b api/build --value", "nudge get --cwd /a/b api build --value"),
            ("nudge why api/build", "nudge why api build"),
            ("nudge edit api/build", "nudge edit api build"),
            ("nudge bump api/k/1 --delta 2", "nudge bump api k/1 --delta 2"),
            ("nudge delete api/build --all", "nudge delete api build --all"),
            ("nudge set api/build make --tags a/b,c", "nudge set api build make --tags a/b,c"),
            ("nudge set api/build -- --flag", "nudge set api build -- --flag"),
        ] {
            assert_eq!(read(line), read(same), "{line}");
        }
        // Two words stay as they are, so that a component with a `/` can be reached.
        assert!(read("nudge get web/app build").contains("component: \"web/app\", key: \"build\""));
        assert!(read("nudge set web/app build make").contains("component: \"web/app\", key: \"build\""));
        for line in
            ["nudge get /build", "nudge get api/", "nudge set api/build", "nudge get --cwd a/b", "nudge get api"]
        {
            let (said, _) = wrong(line);
            assert!(said.contains("missing"), "{line}: {said}");
        }
    }
}
