//! `nudge completions` and `nudge man`: completion scripts and manual pages, made from the definitions of the
//! arguments.

use clap::CommandFactory as _;
use clap_complete::env::Shells;
use nudge::{Error, ErrorKind, Result};

use super::CommandOutput;
use crate::args::{COMPLETE_VARIABLE, CliArgs, CompletionShell, CompletionsArgs, ManArgs};

/// Prints the script that lets a shell call `nudge` for completions.
pub fn print_completions(args: &CompletionsArgs) -> Result<CommandOutput> {
    let shell = match args.shell {
        CompletionShell::Bash => "bash",
        CompletionShell::Elvish => "elvish",
        CompletionShell::Fish => "fish",
        CompletionShell::PowerShell => "powershell",
        CompletionShell::Zsh => "zsh",
    };
    let mut out = Vec::new();
    let shells = Shells::builtins();
    let written = shells
        .completer(shell)
        .map(|shell| shell.write_registration(COMPLETE_VARIABLE, "nudge", "nudge", "nudge", &mut out));
    match written {
        Some(Ok(())) => Ok(String::from_utf8_lossy(&out).into_owned().into()),
        _ => Err(Error::invalid("There is no completion script for this shell.")),
    }
}

/// Prints the page of `nudge`, or writes the pages of all commands into a folder.
pub fn print_manual(args: &ManArgs) -> Result<CommandOutput> {
    let mut command = CliArgs::command().disable_help_subcommand(true);
    command.build();
    let Some(folder) = &args.folder else {
        let page = render_page(&command)
            .map_err(|error| Error::new(ErrorKind::Quota, format!("The page cannot be written: {error}.")))?;
        return Ok(page.into());
    };
    let failed = |error: std::io::Error| {
        let message = format!("The pages cannot be written to {}: {error}; name a folder of yours.", folder.display());
        Error::invalid(message)
    };
    let made = if folder.is_dir() { "" } else { "made the folder and " };
    std::fs::create_dir_all(folder).map_err(failed)?;
    for command in command.get_subcommands().chain([&command]) {
        let name = format!("{}.1", command.get_display_name().unwrap_or(command.get_name()));
        render_page(command).and_then(|page| std::fs::write(folder.join(name), page)).map_err(failed)?;
    }
    Ok(format!("{made}wrote the pages to {}\n", folder.display()).into())
}

/// Renders a page. Puts the examples and the exit codes under headings of their own, and keeps their line breaks.
fn render_page(command: &clap::Command) -> std::io::Result<String> {
    let mut out = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut out)?;
    let page = String::from_utf8_lossy(&out).into_owned();
    let Some((before, rest)) = page.split_once("\n.SH EXTRA\n") else { return Ok(page) };
    let end = rest.find("\n.SH ").map_or(rest.len(), |offset| offset + 1);
    let (text, after) = rest.split_at(end);
    let (heading, text) = match text.split_once(":\n") {
        Some((first, text)) if first.starts_with("Example") => ("EXAMPLES", text),
        _ => ("EXIT STATUS", text),
    };
    Ok(format!("{before}\n.SH \"{heading}\"\n.nf\n{}\n.fi\n{after}", text.trim_end()))
}
