//! Parses the command line, and describes errors of the command line in one sentence.

mod flags;

use clap::error::{ContextKind, ContextValue, ErrorKind as Kind};
use clap::{CommandFactory as _, FromArgMatches as _};
use nudge::{Error, SecretGuard};
use nudge_core::near::find_nearest;

use crate::args::{CliArgs, build_command, parse_quick};

pub use flags::{describe_error, name_commands};

/// Words that users try in place of a command's name, if the two words do not look alike.
const MEANT: [(&str, &str); 15] = [
    ("add", "set"),
    ("put", "set"),
    ("store", "set"),
    ("remember", "set"),
    ("read", "get"),
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
    let parsed = plain.try_get_matches_from_mut(words).and_then(|matches| {
        let verb = match matches.subcommand() {
            Some((verb, inner)) => inner.subcommand_name().map_or(verb.to_owned(), |own| format!("{verb} {own}")),
            None => String::new(),
        };
        CliArgs::from_arg_matches(&matches).map(|args| (Box::new(args), verb))
    });
    match parsed {
        Ok((args, verb)) => ParsedCommandLine::Run { args, verb },
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
            let said = said.unwrap_or_else(|| to_sentence(&error, &verb));
            // A word in the wrong place may be a secret, and logs and transcripts contain the message.
            let said = match SecretGuard::new().check(None, &said) {
                None => said,
                Some(_) => format!("A word stands where it does not belong; see `nudge {verb}--help`."),
            };
            ParsedCommandLine::Wrong { error: Error::invalid(said), json }
        }
    }
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
    let is_verb = |name: &str| command.find_subcommand(name).is_some();
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
fn to_sentence(error: &clap::Error, verb: &str) -> String {
    let text = error.render().to_string();
    let wrong = text.lines().take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    let parts: Vec<_> = wrong.map(str::trim).filter(|line| !line.is_empty()).collect();
    let said = parts.join("; ").replace(":; ", ": ").replace("; tip: ", "; ").replace("; <", ", <");
    // Replaces the messages of Rust about numbers with clearer messages.
    let said = said.replace("invalid digit found in string", "write a whole number");
    let said = said.replace("number too large to fit in target type", "that is too large");
    let said = said.strip_prefix("error: ").unwrap_or(&said).trim_end_matches('.');
    let mut said = said.chars();
    let first = said.next().into_iter().flat_map(char::to_uppercase).collect::<String>();
    let said = format!("{first}{}", said.as_str());
    // A user who gives a component but no key may want to see its keys.
    let keys = if error.kind() == Kind::MissingRequiredArgument && said.ends_with(" <KEY>") {
        "`nudge ls COMPONENT` lists the keys of one, "
    } else {
        ""
    };
    format!("{said}; {keys}see `nudge {verb}--help`.")
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
            ("nudge nonsense", "Unrecognized subcommand 'nonsense'; see `nudge --help`."),
            ("nudge sett a b c", "There is no command `sett`; did you mean `nudge set`?"),
            ("nudge reacll x", "There is no command `reacll`; did you mean `nudge recall`?"),
            ("nudge serch x", "There is no command `serch`; did you mean `nudge search`?"),
            ("nudge add a b c", "There is no command `add`; did you mean `nudge set`?"),
            (
                "nudge get a",
                "The following required arguments were not provided: <KEY>; `nudge ls COMPONENT` lists the keys of one, see `nudge get --help`.",
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
                "The following required arguments were not provided: --type <TYPE>, <AGENT>; see `nudge signals send --help`.",
            ),
            ("nudge model", "Say what to do: add, list, remove; see `nudge model --help`."),
            ("nudge signals", "Say what to do: send, check, respond, list, watch, deacon; see `nudge signals --help`."),
            ("nudge undo 3 --list", "The argument '[ID]' cannot be used with '--list'; see `nudge undo --help`."),
        ] {
            assert_eq!(wrong(line), (sentence.to_owned(), false), "{line}");
        }
        let (tip, json) = wrong("nudge set a b c --tag x --json");
        assert!(tip.contains("a similar argument exists: '--tags'") && tip.lines().count() == 1, "{tip}");
        assert!(json);
        assert!(!wrong("nudge set -- --json").1);
    }

    #[test]
    fn what_people_try_is_no_command_and_leads_to_one() {
        let command = super::build_command();
        for (said, meant) in MEANT {
            assert!(command.find_subcommand(said).is_none(), "{said} is a command");
            assert!(command.find_subcommand(meant).is_some(), "{meant} is none");
        }
        for (line, verb) in
            [("nudge show a b", "get"), ("nudge list", "ls"), ("nudge search x", "recall"), ("nudge rm a b", "delete")]
        {
            let read = read(&line.split(' ').map(Into::into).collect::<Vec<_>>());
            assert!(matches!(read, ParsedCommandLine::Run { verb: ran, .. } if ran == verb), "{line}");
        }
    }
}
