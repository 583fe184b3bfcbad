//! The list of commands in `nudge --help`, grouped by purpose.

use std::fmt::Write as _;

use clap::{Command, CommandFactory as _};

use super::CliArgs;
use crate::output::{terminal_width, wrap_words};

/// The groups and their commands, in the order of the help. The help lists the commands of sources after these groups.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Start here", &["init", "try", "doctor", "ui"]),
    ("Hints", &["seed", "set", "get", "recall", "query", "ls", "why", "edit", "bump", "delete", "undo"]),
    ("Share", &["save", "trust", "export", "import"]),
    ("Server", &["serve", "status", "stats", "watch", "config", "model", "hints", "forget", "stop"]),
    ("For programs", &["hook", "call", "completions", "man"]),
];

/// The most columns of a line of help: longer lines are hard to read.
const MAX_WIDTH: usize = 100;
/// The columns before the description of a command.
const ABOUT_INDENT: usize = 19;

/// Builds the complete command line, with its commands in groups.
pub fn build_command() -> Command {
    let width = terminal_width().map(|width| width.min(MAX_WIDTH));
    // 0 wraps nothing: in a pipe a long example stays one line.
    let command = CliArgs::command().term_width(width.unwrap_or(0));
    let head = *command.get_styles().get_header();
    let mut list = String::new();
    let mut group = |title: &str, commands: &mut dyn Iterator<Item = &Command>| {
        let mut title = Some(title);
        for command in commands {
            if let Some(title) = title.take() {
                let _ = write!(list, "\n{head}{title}:{head:#}\n");
            }
            let names: Vec<_> = std::iter::once(command.get_name()).chain(command.get_visible_aliases()).collect();
            let about = wrap_words(&first_sentence(command), ABOUT_INDENT, width);
            let _ = writeln!(list, "  {:<17}{about}", names.join(", "));
        }
    };
    for (title, names) in GROUPS {
        group(title, &mut names.iter().filter_map(|name| command.find_subcommand(name)));
    }
    let is_grouped = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    let others = |other: &&Command| !other.is_hide_set() && other.get_name() != "help" && !is_grouped(other.get_name());
    group("Other sources", &mut command.get_subcommands().filter(others));
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{list}\n`nudge COMMAND --help` has its flags and examples.\n\n{head}Options:{head:#}\n{{options}}{{after-help}}\n"
    );
    command.help_template(template)
}

/// Returns the first sentence of a command's description.
fn first_sentence(command: &Command) -> String {
    let Some(about) = command.get_about().map(ToString::to_string) else { return String::new() };
    // Searches for a dot with a space, because the dot in `.nudge.json` ends no sentence.
    let end = [". ", ": ", "; "].iter().filter_map(|end| about.find(end)).min();
    about[..end.unwrap_or(about.len())].trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nudge_app::sources;

    #[test]
    fn every_command_has_one_place() {
        let command = CliArgs::command();
        let mut grouped: Vec<_> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let count = grouped.len();
        grouped.sort_unstable();
        grouped.dedup();
        assert_eq!(grouped.len(), count, "each once");
        let shown = command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()).map(Command::get_name);
        // The commands of sources are in a separate group, except those of the hints.
        let of_sources = super::super::source::command_names();
        let is_own = |name: &&str| {
            *name == nudge::HINTS || sources::find_source(name).is_none() && !of_sources.iter().any(|own| own == name)
        };
        let mut there: Vec<_> = shown.filter(is_own).collect();
        there.sort_unstable();
        assert_eq!(there, grouped, "what is new belongs into a group");
    }

    #[test]
    fn a_gist_ends_with_the_sentence_and_not_within_a_name() {
        for (about, first) in [
            ("Write them into its .nudge.json, to be committed.", "Write them into its .nudge.json, to be committed"),
            ("Ask: here; there. Then go", "Ask"),
            ("Delete it; it can be restored.", "Delete it"),
            ("Go. Then stop", "Go"),
        ] {
            assert_eq!(first_sentence(&Command::new("one").about(about)), first);
        }
    }

    #[test]
    fn what_people_read_of_a_source_names_no_tool_of_models() {
        for source in sources::list_sources() {
            let mut command = super::super::build_command();
            let Some(command) = command.find_subcommand_mut(source.name) else { continue };
            let help = command.render_help().to_string();
            assert!(!help.contains("nudge_"), "{help}");
        }
    }

    #[test]
    fn help_is_a_page_of_groups() {
        let help = super::build_command().render_help().to_string();
        assert!(help.starts_with("Small, high-value hints") && help.contains("\nStart here:\n  init "), "{help}");
        for line in help.lines() {
            assert!(line.chars().count() < 110, "{line}");
        }
    }
}
