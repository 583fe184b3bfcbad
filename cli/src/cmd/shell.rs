//! `nudge completions` and `nudge man`: what shells and readers get from the same definitions.

use clap::CommandFactory as _;
use clap_complete::env::Shells;
use nudge::{Error, ErrorKind, Result};

use super::Done;
use crate::args::{Args, COMPLETE_VARIABLE, Completions, Man, Shell};

/// The script that makes a shell ask `nudge` itself what could come next.
pub fn completions(args: &Completions) -> Result<Done> {
    let shell = match args.shell {
        Shell::Bash => "bash",
        Shell::Elvish => "elvish",
        Shell::Fish => "fish",
        Shell::PowerShell => "powershell",
        Shell::Zsh => "zsh",
    };
    let mut out = Vec::new();
    let shells = Shells::builtins();
    let written = shells
        .completer(shell)
        .map(|shell| shell.write_registration(COMPLETE_VARIABLE, "nudge", "nudge", "nudge", &mut out));
    match written {
        Some(Ok(())) => Ok(String::from_utf8_lossy(&out).into_owned().into()),
        _ => Err(Error::new(ErrorKind::Invalid, "There is no completion script for this shell.")),
    }
}

/// The page of `nudge`, or those of all verbs into a folder.
pub fn man(args: &Man) -> Result<Done> {
    let Some(folder) = &args.folder else {
        let mut out = Vec::new();
        let page = clap_mangen::Man::new(Args::command());
        page.render(&mut out)
            .map_err(|error| Error::new(ErrorKind::Quota, format!("The page cannot be written: {error}.")))?;
        return Ok(String::from_utf8_lossy(&out).into_owned().into());
    };
    let failed = |error: std::io::Error| {
        let message = format!("The pages cannot be written to {}: {error}; name a folder of yours.", folder.display());
        Error::new(ErrorKind::Invalid, message)
    };
    std::fs::create_dir_all(folder).map_err(failed)?;
    clap_mangen::generate_to(Args::command(), folder).map_err(failed)?;
    Ok(format!("wrote the pages to {}\n", folder.display()).into())
}
