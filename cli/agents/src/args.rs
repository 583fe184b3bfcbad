//! The flags of every command, and the flags of `nudge init` and `nudge doctor`. The doc comments are the help for
//! users.
#![allow(clippy::doc_markdown)]

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args as ClapArgs, ValueEnum, ValueHint};

/// The names of the supported coding agents, in the order of reports.
pub const CLIENTS: &[&str] = &["claude", "codex", "cursor", "vscode", "gemini", "opencode", "zed"];

/// Flags that stand before or after the command.
#[derive(Debug, Clone, ClapArgs)]
pub struct GlobalFlags {
    /// Print the exact result as JSON; errors go to stderr as JSON.
    #[arg(long, global = true, display_order = 100)]
    pub json: bool,
    /// Port of the running server (`serve`: 8765 or the next free; `ui`: the page's).
    #[arg(short, long, global = true, display_order = 101)]
    pub port: Option<u16>,
    /// Folder of the running session (default NUDGE_RUNTIME_DIR, else /tmp/nudge).
    #[arg(long, global = true, value_name = "DIR", value_hint = ValueHint::DirPath, display_order = 102)]
    pub runtime_dir: Option<PathBuf>,
}

/// `nudge init`
#[derive(Debug, ClapArgs)]
// Each switch is an independent flag.
#[allow(clippy::struct_excessive_bools)]
pub struct InitArgs {
    /// The clients; those that are found when left out.
    #[arg(value_name = "CLIENT", value_parser = PossibleValuesParser::new(CLIENTS))]
    pub clients: Vec<String>,
    /// Every client that is known, found or not.
    #[arg(long, conflicts_with = "clients")]
    pub all: bool,
    /// In the settings of this folder, for all its users.
    #[arg(long)]
    pub project: bool,
    /// Show the changes, make none.
    #[arg(long, conflicts_with_all = ["undo", "yes"])]
    pub print: bool,
    /// Take it out again, byte for byte if the file was not changed since; of this folder alone with --project.
    #[arg(long)]
    pub undo: bool,
    /// Do not ask.
    #[arg(long, short)]
    pub yes: bool,
    /// Add five lines about Nudge to AGENTS.md (or CLAUDE.md) of this folder.
    #[arg(long, conflicts_with = "undo")]
    pub agents_md: bool,
    /// Keep records of fixes, decisions and plans, and say when an agent hears that it saved none.
    #[arg(long, value_name = "WHEN", num_args = 0..=1, require_equals = true, default_missing_value = "remind", conflicts_with_all = ["undo", "project"])]
    pub records: Option<RecordCapture>,
    /// Capture sessions that end: a model reads them, and proposes notes on a branch of your brain.
    #[arg(long, conflicts_with_all = ["undo", "project"])]
    pub capture: bool,
    /// Learn: a command that failed and a near one that then worked become a hint.
    #[arg(long, conflicts_with_all = ["undo", "project"])]
    pub learn: bool,
    /// Start a server at login, so that hints outlive the agents.
    #[arg(long, conflicts_with = "undo")]
    pub login: bool,
}

/// When an agent that did something and saved no record hears of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RecordCapture {
    /// With its next prompt.
    Remind,
    /// Before its turn ends; it works on then.
    Ask,
    /// Never.
    Off,
}

impl RecordCapture {
    /// Returns the value of the setting `records.capture`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Remind => "remind",
            Self::Ask => "ask",
            Self::Off => "off",
        }
    }
}

/// `nudge doctor`
#[derive(Debug, ClapArgs)]
pub struct DoctorArgs {
    /// The clients; those that are found when left out.
    #[arg(value_name = "CLIENT", value_parser = PossibleValuesParser::new(CLIENTS))]
    pub clients: Vec<String>,
    /// Look at this folder's settings instead of yours; only commands that are plainly nudge are started.
    ///
    /// Without it only your own settings are looked at, and the servers and hooks named nudge there are started as the
    /// client would. A folder's settings may be anybody's: with it nothing is started but `nudge serve` and
    /// `nudge hook` of this binary or of the one in PATH, without a shell and without variables other than NUDGE_*.
    /// Anything else is told, and not started.
    #[arg(long)]
    pub project: bool,
    /// Look at the stored hints instead: those that name missing files, fail, are doubled, were never used, or can fit
    /// nowhere; with advice.
    #[arg(long, conflicts_with_all = ["clients", "project"])]
    pub hints: bool,
}
