//! The arguments of the command line, all in one module. Help, completions and man pages are made from them. The doc
//! comments are the help for users.
#![allow(clippy::doc_markdown)]

mod complete;
mod groups;
mod hints;
mod source;
mod ttl;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum, ValueHint};
use nudge_app::settings::SettingFlags;
use nudge_server::mcp::profile;

pub use complete::VARIABLE as COMPLETE_VARIABLE;
pub use groups::build_command;
pub use hints::{
    BumpArgs, ContextFlags, DeleteArgs, EditArgs, ExportArgs, GetArgs, HintName, ImportArgs, ImportModeFlag, ListArgs,
    QueryArgs, SetArgs, UndoArgs, ValueKind, WatchArgs, WhyArgs, split_globs,
};
pub use nudge_agents::args::{CLIENTS, DoctorArgs, GlobalFlags, InitArgs, RecordCapture};
pub use source::SourceVerb;

/// Small, high-value hints for coding agents: stored once, back at the right moment, with the reason.
#[derive(Debug, Parser)]
#[command(name = "nudge", version, after_help = EXIT_CODES, after_long_help = EXIT_CODES)]
pub struct CliArgs {
    /// Flags of every command.
    #[command(flatten)]
    pub global: GlobalFlags,
    /// The command.
    #[command(subcommand)]
    pub command: CliCommand,
}

/// A single command, without the definitions of all other commands. The definitions of all commands take longer to
/// build than a call, and agents and scripts run a few commands all the time.
#[derive(Debug, Parser)]
#[command(name = "nudge")]
struct QuickCommand<T: ClapArgs> {
    #[command(flatten)]
    global: GlobalFlags,
    #[command(flatten)]
    own: T,
}

/// The arguments of a command without flags of its own.
#[derive(Debug, ClapArgs)]
struct NoArgs {}

/// Parses a command line of a frequent command, which the second word names. Returns `None` for other commands, and for
/// errors, which the full parser then reports.
pub fn parse_quick(words: &[OsString]) -> Option<(CliArgs, &'static str)> {
    fn parse_as<T: ClapArgs>(words: &[OsString], command: impl FnOnce(T) -> CliCommand) -> Option<CliArgs> {
        let QuickCommand { global, own } =
            QuickCommand::<T>::try_parse_from(words.iter().take(1).chain(&words[2..])).ok()?;
        Some(CliArgs { global, command: command(own) })
    }
    match words.get(1)?.to_str()? {
        "get" => Some((parse_as(words, CliCommand::Get)?, "get")),
        "hook" => Some((parse_as(words, |NoArgs {}| CliCommand::Hook)?, "hook")),
        "serve" => Some((parse_as(words, CliCommand::Serve)?, "serve")),
        _ => None,
    }
}

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 not found (`serve`: it cannot serve; `doctor`: something failed), 2 invalid
input or usage, 3 no server, 4 any other refusal.
Results go to stdout, everything else to stderr; on failure stdout stays empty.";

/// The commands.
#[derive(Debug, Subcommand)]
pub enum CliCommand {
    /// Start the server: MCP on stdin and stdout, HTTP on 127.0.0.1.
    #[command(after_help = "\
Examples:
  nudge serve                        in an agent's MCP settings
  nudge serve --detach               in the background, until `nudge stop`
  nudge serve --port 9000 --default-ttl P7D
With a terminal as stdin it serves HTTP alone until it is stopped.
Where one runs already, it forwards to that one and goes on when that ends, with all hints.")]
    Serve(ServeFlags),
    /// Store a hint, or update the one with the same scope.
    #[command(after_help = "\
Examples:
  nudge set http-proxy build 'docker compose build router' --tags build,docker --priority 8
  nudge set http-proxy directory 'c:\\code\\http-proxy' --scope-os windows
  nudge set api env.FEATURE_X 1 --ttl 2h --scope-branch 'hotfix/*'
  nudge set api test 'cargo test -p api' --type command --shell bash
  jq -n '{port: 8080}' | nudge set api ports - --type json")]
    Set(Box<SetArgs>),
    /// Show the hint that fits where you are, and why.
    #[command(
        alias = "show",
        after_help = "\
Examples:
  nudge get http-proxy build
  nudge get http-proxy build --cwd /work/http-proxy --branch dev
  nudge get http-proxy build --branch ''       the branch is unknown
  nudge get http-proxy build --value           the bare value, for scripts"
    )]
    Get(GetArgs),
    /// Filter hints: by words that stand in them, component, key, tag or pattern; best first.
    #[command(after_help = "\
Examples:
  nudge query docker build           all of these words, in any case
  nudge query --component http-proxy --tags build --limit 5
  nudge query --regex 'docker.*build'
  nudge query --all                  those that do not fit here, too, with the reason
What it held back is told on stderr. `nudge search` goes by relevance instead.")]
    Query(QueryArgs),
    /// List the components, or the hints of one: every variant, where it applies, its age, use and end. Also called
    /// list-components.
    // The alias is hidden: shells would offer a visible alias in place of the name, because it sorts first.
    #[command(
        aliases = ["list-components", "list"],
        after_help = "\
Examples:
  nudge ls
  nudge ls http-proxy"
    )]
    Ls(ListArgs),
    /// Explain the result of `get` here: every variant, each condition, each part of the score.
    #[command(after_help = "\
Examples:
  nudge why http-proxy build
  nudge why http-proxy build --branch main
Prints to stdout whatever the outcome; the exit code is 1 when nothing fits.")]
    Why(WhyArgs),
    /// Change a hint in $VISUAL or $EDITOR.
    #[command(after_help = "\
Examples:
  nudge edit http-proxy build
  EDITOR='code --wait' nudge edit http-proxy build --variant 3f2a9c51d0e4
It is stored only if nobody else has changed it meanwhile.")]
    Edit(EditArgs),
    /// Delete a hint; `nudge undo` brings it back.
    #[command(
        visible_alias = "rm",
        after_help = "\
Examples:
  nudge delete http-proxy build
  nudge delete http-proxy directory --all              every variant
  nudge delete http-proxy directory --variant ''       the one without a scope"
    )]
    Delete(DeleteArgs),
    /// Bring back hints deleted in this session, or list the deletions.
    #[command(after_help = "\
Examples:
  nudge undo             the last deletion
  nudge undo --list      what was deleted, when and by whom
  nudge undo 3           the deletion with that number")]
    Undo(UndoArgs),
    /// Count a use: the hint worked, so it ranks higher.
    #[command(after_help = "\
Examples:
  nudge bump http-proxy build
  nudge bump http-proxy build --delta 3")]
    Bump(BumpArgs),
    /// Print the store as JSON, for a later import.
    #[command(after_help = "\
Examples:
  nudge export > nudge-session.json
  nudge export --component http-proxy")]
    Export(ExportArgs),
    /// Load hints from an export or a hand-written file.
    #[command(after_help = "\
Examples:
  nudge import ./seed-hints.json
  ssh build nudge export | nudge import -
A file may be as short as {\"components\": {\"api\": {\"hints\": {\"build\": \"make\"}}}}.")]
    Import(ImportArgs),
    /// Print changes as they happen, until interrupted.
    #[command(after_help = "\
Examples:
  nudge watch
  nudge watch http-proxy --json      one JSON object a line")]
    Watch(WatchArgs),
    /// Ask all that is remembered, in words: lines by relevance, with the reason and how to get the whole.
    #[command(
        visible_alias = "search",
        after_help = "\
Examples:
  nudge recall how do I build the proxy
  nudge recall deploy staging --limit 3 --json
`nudge search` is the same. It knows other forms of a word and forgives typos; `nudge query WORDS` finds words as
they stand."
    )]
    Recall(RecallArgs),
    /// Show every setting with its value and origin, or change one: `nudge config set keep true`.
    #[command(after_help = "\
Examples:
  nudge config                       all of them
  nudge config keep                  this one, and its purpose
  nudge config set hook.ms 250
  nudge config unset hook.ms         the default again
Settings stand in the file that it names, in the environment, or in flags of `nudge serve`: flags count first,
then the environment, then the file. A running server has the new value after its next start.")]
    Config(ConfigArgs),
    /// Show the running server, those that stand by, and how much it holds.
    #[command(after_help = "Example:\n  nudge status --json")]
    Status,
    /// Put Nudge into the coding agents of this machine: its server, and its hooks where they have hooks.
    #[command(after_help = "\
Examples:
  nudge init                 those that are found, after a look at the changes
  nudge init claude codex --yes
  nudge init --print         only show what would change
  nudge init --undo          every file as it was
Clients: claude, codex, cursor, vscode, gemini, opencode, zed. Twice changes nothing; after the binary has
moved it corrects the paths.")]
    Init(InitArgs),
    /// Try out Nudge's entries in the settings of coding agents: server, hooks, and whether a hint comes out.
    #[command(after_help = "\
Examples:
  nudge doctor               the clients that are found
  nudge doctor claude --json
  nudge doctor --project     this folder's settings, of which nothing but Nudge itself is started
Servers and hooks are started as the client would, in a session of their own: yours is only asked for its
status. Below what is wrong stands its fix; then the exit code is 1, and the report on stdout all the same.")]
    Doctor(DoctorArgs),
    /// Show the use of hints and suggestions: by day, hour and agent session.
    #[command(after_help = "Example:\n  nudge stats --json")]
    Stats,
    /// Open the page of the running session in a browser: the knowledge here, why, and the lines told to agents.
    #[command(after_help = "\
Examples:
  nudge ui
  nudge ui --no-open         print the address only, for a browser elsewhere on this machine
  nudge ui --port 3456       on this port, with records for programs below /api, until the server ends
DUDE_PORT says the port as well. What it prints works once, within a minute. Without a terminal nothing is opened.")]
    Ui(UiArgs),
    /// Answer a hook of a coding agent: the event on stdin, the lines for the agent on stdout.
    #[command(after_help = "\
Example:
  echo '{\"hook_event_name\": \"SessionStart\", \"session_id\": \"s\", \"cwd\": \"/work/api\"}' | nudge hook
For Claude Code, Codex, Gemini CLI and Cursor. It always ends with 0, within 50 ms, and says nothing where
there is nothing to say. NUDGE_HOOK_BYTES limits its text (2,000 bytes), NUDGE_HOOK_MS its time (45).")]
    Hook,
    /// Stop the running server and all that stand by; the session ends.
    #[command(after_help = "Example:\n  nudge stop")]
    Stop,
    /// Tell agents the commands of this repository: those of its own package.json, Makefile, CI and so on.
    #[command(after_help = "\
Examples:
  nudge seed --dry-run   shows them
  nudge seed             has agents told of them here; when the files change, the hints do
  nudge seed --forget    ends that, and takes away those that nobody changed
Nothing of them is run. What you or an agent changed is left as it is.")]
    Seed(SeedArgs),
    /// Write the hints of this repository into its .nudge.json, to be committed.
    #[command(after_help = "\
Examples:
  nudge save                      your changes to the hints that the file has
  nudge save http-proxy build     this one, too
  nudge save --all                all of this repository
A hint that you name once is the team's: later changes and its deletion go with a plain `nudge save`. Others stay
yours. No count, time or secret is written, and no file with hints that you have not loaded.")]
    Save(SaveArgs),
    /// Have agents in this clone told the hints of its .nudge.json: shows the changes, and asks.
    #[command(after_help = "\
Examples:
  nudge trust --yes
  nudge trust --forget
Nothing of that file is told before, and nothing of it after a change until you look again.")]
    Trust(TrustArgs),
    /// Forget the hints kept for next time.
    #[command(after_help = "\
Examples:
  nudge forget           says how many, and asks
  nudge forget --yes
What a running session holds stays there until it ends, and is not kept any more; what is stored from then
on is.")]
    Forget(ForgetArgs),
    /// Copy the hints kept for next time, or bring a copy back.
    #[command(after_help = "\
Examples:
  nudge hints backup ~/hints.db
  nudge hints recover ~/.local/share/nudge/backups/hints-2026-11-29.1.db
Nudge itself makes a copy before the first change of each day, beside the database. A running session
reads the hints of a copy at once.")]
    Hints {
        /// The action.
        #[command(subcommand)]
        action: HintsAction,
    },
    /// Add, list or remove the embedding model by which things are found that mean the same.
    #[cfg(feature = "model")]
    #[command(after_help = "\
Examples:
  nudge model add                       the usual one: says what it is and how large, and asks
  nudge model add ./all-MiniLM-L6-v2    from a folder, a wheel, a zip or a tar
  nudge model list
  nudge model remove all-MiniLM-L6-v2
Nothing is fetched unasked, and nothing leaves the machine. Without a model everything is found by words.")]
    Model(ModelArgs),
    /// A method of another source than the hints.
    #[command(flatten)]
    Source(SourceVerb),
    /// Call any method with JSON params, and print its exact result.
    #[command(after_help = "\
Examples:
  nudge call get_hint '{\"component\": \"http-proxy\", \"key\": \"build\"}'
  nudge call nudge.import - < params.json")]
    Call(CallArgs),
    /// A 20-second tour in a private session that leaves nothing behind.
    #[command(after_help = "Example:\n  nudge try")]
    Try,
    /// Print the completion script of a shell.
    #[command(after_help = "\
Examples:
  source <(nudge completions bash)                                    in ~/.bashrc
  nudge completions fish > ~/.config/fish/completions/nudge.fish
  nudge completions zsh > \"${fpath[1]}/_nudge\"
Components and keys are completed from the running server.")]
    Completions(CompletionsArgs),
    /// Print the manual page, or write all of them to a folder.
    #[command(after_help = "\
Examples:
  nudge man | man -l -
  nudge man ~/.local/share/man/man1")]
    Man(ManArgs),
}

/// Answers a shell that requests completions, and ends the process.
pub fn answer_completion() {
    clap_complete::CompleteEnv::with_factory(<CliArgs as clap::CommandFactory>::command)
        .var(COMPLETE_VARIABLE)
        .bin("nudge")
        .complete();
}

/// `nudge serve`
#[derive(Debug, ClapArgs)]
pub struct ServeFlags {
    /// Serve HTTP in the background, until `nudge stop`.
    #[arg(long)]
    pub detach: bool,
    /// Marks the process that `--detach` starts.
    #[arg(long, hide = true, conflicts_with = "detach")]
    pub detached: bool,
    /// Offer the client on stdin the tools of another specification, under its names, and nothing else.
    #[arg(long, value_name = "NAME", value_parser = clap::builder::PossibleValuesParser::new(profile::list_profile_names()))]
    #[arg(conflicts_with_all = ["detach", "detached"])]
    pub profile: Option<String>,
    /// The flags from the table of settings.
    #[command(flatten)]
    pub settings: SettingFlags,
}

/// `nudge model`
#[cfg(feature = "model")]
#[derive(Debug, ClapArgs)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct ModelArgs {
    /// The verb.
    #[command(subcommand)]
    pub verb: ModelVerb,
}

/// The verbs of `nudge model`.
#[cfg(feature = "model")]
#[derive(Debug, Subcommand)]
pub enum ModelVerb {
    /// Add a model: the usual one from its publisher, or one from a folder, a wheel, a zip or a tar.
    #[command(after_help = "Examples:\n  nudge model add\n  nudge model add ./model.tar --name mine")]
    Add {
        /// A folder, wheel, zip or tar with model.safetensors, tokenizer.json and config.json; absent: the usual model.
        from: Option<PathBuf>,
        /// The name under which it is stored.
        #[arg(long, value_name = "NAME", requires = "from")]
        name: Option<String>,
        /// Do not ask.
        #[arg(long, short)]
        yes: bool,
    },
    /// List the models that were added.
    #[command(after_help = "Example:\n  nudge model list --json")]
    List,
    /// Remove a model.
    #[command(after_help = "Example:\n  nudge model remove all-MiniLM-L6-v2")]
    Remove {
        /// The model's name.
        name: String,
    },
}

/// `nudge seed`
#[derive(Debug, ClapArgs)]
pub struct SeedArgs {
    /// Show them, store none.
    #[arg(long, conflicts_with = "forget")]
    pub dry_run: bool,
    /// No longer, in this clone.
    #[arg(long)]
    pub forget: bool,
}

/// `nudge save`
#[derive(Debug, ClapArgs)]
pub struct SaveArgs {
    /// Put this component's hints into the file, too, also those for everywhere. `COMPONENT/KEY` is one of them.
    pub component: Option<String>,
    /// These keys of it alone.
    #[arg(value_name = "KEY")]
    pub keys: Vec<String>,
    /// Put all hints of this repository into the file.
    #[arg(long, conflicts_with = "component")]
    pub all: bool,
}

/// `nudge trust`
#[derive(Debug, ClapArgs)]
pub struct TrustArgs {
    /// Do not ask.
    #[arg(long, short)]
    pub yes: bool,
    /// No longer.
    #[arg(long, conflicts_with = "yes")]
    pub forget: bool,
}

/// `nudge hints`
#[derive(Debug, Subcommand)]
pub enum HintsAction {
    /// Copy the kept hints into a new file, while they are in use.
    Backup {
        /// The file to write, which may not be there yet.
        file: PathBuf,
    },
    /// Put a backup in the place of the kept hints, whatever they are; a copy of them is kept.
    Recover {
        /// A backup: one of those in `backups`, beside the database, or one that `nudge hints backup` has made.
        file: PathBuf,
        /// Do not ask.
        #[arg(long, short)]
        yes: bool,
    },
}

/// `nudge forget`
#[derive(Debug, ClapArgs)]
pub struct ForgetArgs {
    /// Do not ask.
    #[arg(long, short)]
    pub yes: bool,
}

/// `nudge recall`
#[derive(Debug, ClapArgs)]
pub struct RecallArgs {
    /// Your question, in words.
    #[arg(id = "query", value_name = "WORDS", required = true)]
    pub words: Vec<String>,
    /// Most lines (10).
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// Most bytes of lines (4,000).
    #[arg(long, value_name = "N")]
    pub max_bytes: Option<usize>,
    /// These sources only.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub sources: Vec<String>,
    /// The agent's context.
    #[command(flatten)]
    pub here: ContextFlags,
}

/// `nudge config`
#[derive(Debug, ClapArgs)]
#[command(args_conflicts_with_subcommands = true)]
pub struct ConfigArgs {
    /// Show this setting only.
    #[arg(add = complete::complete_settings())]
    pub name: Option<String>,
    /// The change.
    #[command(subcommand)]
    pub verb: Option<ConfigVerb>,
}

/// The verbs of `nudge config`.
#[derive(Debug, Subcommand)]
pub enum ConfigVerb {
    /// Show a setting.
    #[command(hide = true)]
    Get {
        /// The setting.
        name: String,
    },
    /// Write a setting into your settings file; the rest of the file stays as it is.
    #[command(after_help = "\
Examples:
  nudge config set keep true
  nudge config set log_level debug
  nudge config set capture_deny /work/private,/work/client")]
    Set {
        /// The setting.
        #[arg(add = complete::complete_settings())]
        name: String,
        /// The value; the texts of a list are separated by commas.
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
    /// Remove a setting from your settings file, so that its default counts.
    #[command(after_help = "Example:\n  nudge config unset keep")]
    Unset {
        /// The setting.
        #[arg(add = complete::complete_settings())]
        name: String,
    },
}

/// `nudge ui`
#[derive(Debug, ClapArgs)]
pub struct UiArgs {
    /// Only print the address.
    #[arg(long)]
    pub no_open: bool,
    /// The context that the page calls here.
    #[command(flatten)]
    pub here: ContextFlags,
}

/// `nudge call`
#[derive(Debug, ClapArgs)]
pub struct CallArgs {
    /// For example nudge.get_hint; the prefix may be left out.
    pub method: String,
    /// A JSON object; `-` reads it from stdin.
    #[arg(default_value = "{}")]
    pub params: String,
}

/// `nudge completions`
#[derive(Debug, ClapArgs)]
pub struct CompletionsArgs {
    /// The shell.
    pub shell: CompletionShell,
}

/// Shells that can complete.
#[derive(Debug, Clone, Copy, ValueEnum)]
#[allow(missing_docs)]
pub enum CompletionShell {
    Bash,
    Elvish,
    Fish,
    #[value(name = "powershell")]
    PowerShell,
    Zsh,
}

/// `nudge man`
#[derive(Debug, ClapArgs)]
pub struct ManArgs {
    /// Write nudge.1, nudge-set.1 and so on to this folder.
    #[arg(value_hint = ValueHint::DirPath)]
    pub folder: Option<PathBuf>,
}
