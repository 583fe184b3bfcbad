//! Parses the command line, and describes its errors in one sentence.

use clap::error::ErrorKind as Kind;
use clap::{FromArgMatches as _, Parser as _};
use nudge::{Error, SecretGuard};

use crate::args::{Args, Quick, command};

/// A parsed command line.
pub enum CommandLine {
    /// A command to run.
    Run {
        /// The parsed arguments.
        args: Box<Args>,
        /// The name of the command.
        verb: String,
    },
    /// The help or the version, to be printed.
    Tell(clap::builder::StyledStr),
    /// A command line that cannot be understood.
    Wrong {
        /// The error, in one sentence.
        error: Error,
        /// True when the command line has `--json`.
        json: bool,
    },
}

/// Parses a command line, which begins with the program's name.
pub fn read(words: Vec<std::ffi::OsString>) -> CommandLine {
    let json = words.iter().take_while(|word| *word != "--").any(|word| word == "--json");
    // The quick parser knows only two frequent verbs; its failures are explained by the full parser.
    if let Some(verb) = ["get", "hook"].into_iter().find(|verb| words.get(1).is_some_and(|word| word == verb))
        && let Ok(quick) = Quick::try_parse_from(&words)
    {
        return CommandLine::Run { args: Box::new(quick.into()), verb: verb.into() };
    }
    let mut command = command();
    if words.len() < 2 {
        return CommandLine::Tell(command.render_help());
    }
    let is_verb =
        |word: &&std::ffi::OsString| word.to_str().is_some_and(|word| command.find_subcommand(word).is_some());
    let verb = words[1..].iter().find(is_verb).map(|word| format!("{} ", word.to_string_lossy())).unwrap_or_default();
    let parsed = command.try_get_matches_from_mut(words).and_then(|matches| {
        let verb = matches.subcommand_name().unwrap_or_default().to_owned();
        Args::from_arg_matches(&matches).map(|args| (Box::new(args), verb))
    });
    match parsed {
        Ok((args, verb)) => CommandLine::Run { args, verb },
        Err(error) if matches!(error.kind(), Kind::DisplayHelp | Kind::DisplayVersion) => {
            CommandLine::Tell(error.render())
        }
        Err(error) => CommandLine::Wrong { error: Error::invalid(sentence(&error, &verb)), json },
    }
}

/// Turns clap's paragraphs into one sentence: the error, its tips, and where to read on.
fn sentence(error: &clap::Error, verb: &str) -> String {
    let text = error.render().to_string();
    let wrong = text.lines().take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    let parts: Vec<_> = wrong.map(str::trim).filter(|line| !line.is_empty()).collect();
    let said = parts.join("; ").replace(":; ", ": ").replace("; tip: ", "; ").replace("; <", ", <");
    // Rust's messages about numbers are replaced by clearer ones.
    let said = said.replace("invalid digit found in string", "write a whole number");
    let said = said.replace("number too large to fit in target type", "that is too large");
    let said = said.strip_prefix("error: ").unwrap_or(&said).trim_end_matches('.');
    let mut said = said.chars();
    let first = said.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    let said = format!("{first}{}", said.as_str());
    // A misplaced word may be a secret, and the message goes to logs and transcripts.
    match SecretGuard::new().check(None, &said) {
        None => format!("{said}; see `nudge {verb}--help`."),
        Some(_) => format!("A word stands where it does not belong; see `nudge {verb}--help`."),
    }
}

/// Translates a message of the library to the command line: `variant` becomes `--variant` for a verb that
/// has such a flag, and `nudge.why` becomes `nudge why`.
pub fn in_flags(message: &str, verb: &str) -> String {
    // Errors in the form of a value are about JSON fields, not flags.
    if message.starts_with("Correct `params") {
        return message.to_owned();
    }
    let args = command();
    let Some(verb) = args.find_subcommand(verb) else { return message.to_owned() };
    let ours = |word: &str| {
        if let Some(command) = word.strip_prefix("nudge.").filter(|name| args.find_subcommand(name).is_some()) {
            return Some(format!("nudge {command}"));
        }
        let arg = verb.get_arguments().find(|arg| arg.get_id().as_str() == word)?;
        arg.get_long().map(|long| format!("--{long}"))
    };
    let part = |(at, part): (usize, &str)| match ours(part) {
        // Every other part is between backticks.
        Some(ours) if at % 2 == 1 => ours,
        _ => part.to_owned(),
    };
    message.split('`').enumerate().map(part).collect::<Vec<_>>().join("`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(line: &str) -> (String, bool) {
        match read(line.split(' ').map(Into::into).collect()) {
            CommandLine::Wrong { error, json } => (error.message().to_owned(), json),
            _ => panic!("{line} is understood"),
        }
    }

    #[test]
    fn what_is_wrong_is_one_sentence() {
        for (line, sentence) in [
            ("nudge nonsense", "Unrecognized subcommand 'nonsense'; see `nudge --help`."),
            ("nudge get a", "The following required arguments were not provided: <KEY>; see `nudge get --help`."),
            (
                "nudge get a b --os beos",
                "Invalid value 'beos' for '--os <OS>': one of linux, darwin, macos, windows; see `nudge get --help`.",
            ),
            (
                "nudge set a b c --priority x",
                "Invalid value 'x' for '--priority <N>': write a whole number; see `nudge set --help`.",
            ),
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
    fn params_are_flags_for_people() {
        let said = "The key has 2 variants; name one with `variant` or pass `all`.";
        assert_eq!(in_flags(said, "delete"), "The key has 2 variants; name one with `--variant` or pass `--all`.");
        assert_eq!(in_flags(said, "call"), said);
        let form = "Correct `params.value.type`: unknown variant, expected one of `command`, `json`, `value`.";
        assert_eq!(in_flags(form, "get"), form);
        assert_eq!(in_flags("start one with `nudge serve`.", "get"), "start one with `nudge serve`.");
    }
}
