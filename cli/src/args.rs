//! The command line's words, in one place. The doc comments are the help that people read.
#![allow(clippy::doc_markdown)]

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand};

/// Small, high-value hints for coding agents: stored once, back at the right moment, with the reason.
#[derive(Debug, Parser)]
#[command(name = "nudge", version, disable_help_subcommand = true)]
pub struct Args {
    /// Flags of every command.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Flags that stand before or after the command.
#[derive(Debug, Clone, ClapArgs)]
pub struct Global {
    /// Print the exact result as JSON; errors go to stderr as JSON.
    #[arg(long, global = true)]
    pub json: bool,
    /// Port of the server.
    #[arg(short, long, global = true)]
    pub port: Option<u16>,
    /// Folder of the running session (default NUDGE_RUNTIME_DIR, else /tmp/nudge).
    #[arg(long, global = true, value_name = "DIR")]
    pub runtime_dir: Option<PathBuf>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start the server: MCP on stdin and stdout, HTTP on 127.0.0.1.
    Serve(Serve),
    /// Call any method with JSON params, and print its exact result.
    Call(Call),
    /// Store a hint, or update the one with the same scope.
    Set(Box<Set>),
    /// Show the hint that fits where you are, and why.
    Get(Get),
    /// Search hints, best first.
    Query(Query),
    /// Show the running server and how much it holds.
    Status,
    /// Stop the running server; the session ends.
    Stop,
    /// A 20-second tour in a private session that leaves nothing behind.
    Try,
}

/// `nudge serve`
#[derive(Debug, ClapArgs)]
pub struct Serve {
    /// Also accept this name in the Host header (may be repeated).
    #[arg(long, value_name = "NAME")]
    pub allow_host: Vec<String>,
    /// Do not ask callers for the token.
    #[arg(long)]
    pub no_auth: bool,
    /// Read a constant token from this file.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Store texts that look like credentials, too (NUDGE_SECRET_GUARD=0).
    #[arg(long)]
    pub no_secret_guard: bool,
    /// Most hints in all (NUDGE_MAX_HINTS).
    #[arg(long, value_name = "N")]
    pub max_hints: Option<usize>,
    /// Most components (NUDGE_MAX_COMPONENTS).
    #[arg(long, value_name = "N")]
    pub max_components: Option<usize>,
    /// Most hints of one component (NUDGE_MAX_HINTS_PER_COMPONENT).
    #[arg(long, value_name = "N")]
    pub max_hints_per_component: Option<usize>,
    /// Most bytes of all hints as exported (NUDGE_MAX_BYTES).
    #[arg(long, value_name = "N")]
    pub max_bytes: Option<usize>,
    /// Ttl of hints stored without one (NUDGE_DEFAULT_TTL).
    #[arg(long, value_name = "TTL")]
    pub default_ttl: Option<String>,
    /// Most suggestions to one client session in 10 minutes (NUDGE_SUGGEST_MAX).
    #[arg(long, value_name = "N")]
    pub suggest_max: Option<usize>,
}

/// `nudge call`
#[derive(Debug, ClapArgs)]
pub struct Call {
    /// For example nudge.get_hint; the prefix may be left out.
    pub method: String,
    /// A JSON object; `-` reads it from stdin.
    #[arg(default_value = "{}")]
    pub params: String,
}

/// `nudge set`
#[derive(Debug, ClapArgs)]
pub struct Set {
    /// A service, module or folder name.
    pub component: String,
    /// What it is about, such as build.
    pub key: String,
    /// The value; `-` reads it from stdin. After `--` it may begin with a dash.
    pub value: String,
    /// Why it is worth knowing.
    #[arg(long)]
    pub reason: Option<String>,
    /// Tags, separated by commas or in repeated flags.
    #[arg(long, value_delimiter = ',')]
    pub tags: Vec<String>,
    /// 1 to 10.
    #[arg(long)]
    pub priority: Option<u8>,
    /// 0 to 1.
    #[arg(long, value_parser = number)]
    pub confidence: Option<f64>,
    /// `session`, or a duration such as PT2H.
    #[arg(long)]
    pub ttl: Option<String>,
    /// The value is a secret: hidden wherever people look.
    #[arg(long)]
    pub secret: bool,
    /// The secret guard's finding is a false alarm.
    #[arg(long)]
    pub allow_secret: bool,
    /// Folders, as globs.
    #[arg(long, value_name = "GLOB")]
    pub scope_cwd_glob: Vec<String>,
    /// Repositories.
    #[arg(long, value_delimiter = ',', value_name = "REPO")]
    pub scope_repo: Vec<String>,
    /// Branches, as globs.
    #[arg(long, value_delimiter = ',', value_name = "GLOB")]
    pub scope_branch: Vec<String>,
    /// linux, darwin (or macos), windows.
    #[arg(long, value_delimiter = ',', value_name = "OS", value_parser = os)]
    pub scope_os: Vec<String>,
    /// Environment variables that must be set.
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    pub scope_env_required: Vec<String>,
    /// An environment variable and a value it may have (may be repeated).
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    pub scope_env: Vec<(String, String)>,
    /// Update this variant and keep its scope; an empty one is the one without a scope.
    #[arg(long)]
    pub variant: Option<String>,
    /// Refuse unless this is the stored version; 0: unless there is none.
    #[arg(long, value_name = "VERSION")]
    pub if_match_version: Option<u64>,
}

/// Where the caller is; what is left out is inferred, an empty flag means unknown.
#[derive(Debug, Clone, Default, ClapArgs)]
pub struct Here {
    /// Absolute folder (default: the current one).
    #[arg(long)]
    pub cwd: Option<String>,
    /// Repository (default: git's origin).
    #[arg(long)]
    pub repo: Option<String>,
    /// Branch (default: git's).
    #[arg(long)]
    pub branch: Option<String>,
    /// linux, darwin (or macos), windows (default: this system).
    #[arg(long, value_parser = os)]
    pub os: Option<String>,
}

/// `nudge get`
#[derive(Debug, ClapArgs)]
pub struct Get {
    /// The component.
    pub component: String,
    /// The key.
    pub key: String,
    /// This variant only; an empty one is the one without a scope.
    #[arg(long)]
    pub variant: Option<String>,
    /// The context.
    #[command(flatten)]
    pub here: Here,
}

/// `nudge query`
#[derive(Debug, ClapArgs)]
pub struct Query {
    /// This component only.
    #[arg(long)]
    pub component: Option<String>,
    /// Any of these keys.
    #[arg(long, value_delimiter = ',')]
    pub keys: Vec<String>,
    /// Any of these tags.
    #[arg(long, value_delimiter = ',')]
    pub tags: Vec<String>,
    /// Searched in key, value and reason.
    #[arg(long)]
    pub regex: Option<String>,
    /// Most rows (default 10).
    #[arg(long)]
    pub limit: Option<u64>,
    /// Also those whose scope does not fit, with the reason.
    #[arg(long)]
    pub all: bool,
    /// The context.
    #[command(flatten)]
    pub here: Here,
}

/// `macos` is what people call darwin.
fn os(text: &str) -> Result<String, String> {
    match text {
        "macos" => Ok("darwin".into()),
        "" | "linux" | "darwin" | "windows" => Ok(text.into()),
        _ => Err("one of linux, darwin, macos, windows".into()),
    }
}

/// JSON has no NaN and no infinity.
fn number(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|number: &f64| number.is_finite()).ok_or_else(|| "a number from 0 to 1".into())
}

fn assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.into(), value.into()))
}
