//! The verbs that store, find and change hints.
//!
//! The id of each argument is the field that the argument sets, because
//! [`describe_error`](crate::usage::describe_error) finds the argument by this field.

use clap::builder::PossibleValuesParser;
use clap::{Args as ClapArgs, ValueEnum, ValueHint};
use serde_json::{Map, Value};

use super::{complete, ttl::parse_ttl};
use crate::cmd::add_field;
use crate::output::time;

/// The shells that a command can be for.
const SHELLS: [&str; 6] = ["bash", "sh", "zsh", "fish", "powershell", "cmd"];
/// The languages of templates.
const FORMATS: [&str; 4] = ["mustache", "handlebars", "jinja", "interpolate"];

/// The flags of `nudge set` that say where a hint applies.
const SCOPE_FLAGS: [&str; 6] =
    ["scope_cwd_glob", "scope_repo", "scope_branch", "scope_os", "scope_env_required", "scope_env_match"];

/// `nudge set`
#[derive(Debug, ClapArgs)]
// Each switch is an independent flag.
#[allow(clippy::struct_excessive_bools)]
pub struct SetArgs {
    /// A service, module or folder name. `COMPONENT/KEY` in one word is both.
    #[arg(add = complete::complete_components())]
    pub component: String,
    /// The subject, such as build.
    #[arg(add = complete::complete_keys())]
    pub key: String,
    /// The value; `-` reads it from stdin, without its last line break. After `--` it may begin with
    /// a dash.
    pub value: String,
    /// The type of the value (default: by the flags below, else text). A relative path is read from where you are.
    #[arg(id = "type", long, value_name = "TYPE", value_enum)]
    pub kind: Option<ValueKind>,
    /// The shell a command is for.
    #[arg(long, value_parser = PossibleValuesParser::new(SHELLS))]
    pub shell: Option<String>,
    /// The template's language (default: mustache).
    #[arg(long, value_parser = PossibleValuesParser::new(FORMATS))]
    pub format: Option<String>,
    /// A default of the template (may be repeated).
    #[arg(long = "default", value_name = "NAME=VALUE", value_parser = parse_assignment)]
    pub defaults: Vec<(String, String)>,
    /// The systems a path is of; for where it applies use --scope-os.
    #[arg(id = "os", long = "path-os", value_delimiter = ',', value_name = "OS", value_parser = parse_os)]
    pub path_os: Vec<String>,
    /// Why it is worth knowing.
    #[arg(long)]
    pub reason: Option<String>,
    /// Tags.
    #[arg(long, value_delimiter = ',', value_name = "TAG")]
    pub tags: Vec<String>,
    /// 1 to 10.
    #[arg(long, value_name = "N")]
    pub priority: Option<u64>,
    /// 0 to 1.
    #[arg(long, value_name = "X", value_parser = parse_number)]
    pub confidence: Option<f64>,
    /// How long it holds: 90m, 2h, 30d, 1w, `session`, or ISO 8601 such as PT2H.
    #[arg(long, value_parser = parse_ttl, allow_hyphen_values = true)]
    pub ttl: Option<String>,
    /// The value is a secret: hidden wherever people look, never written to disk.
    #[arg(id = "sensitivity", long = "secret")]
    pub secret: bool,
    /// The secret guard's finding is a false alarm.
    #[arg(long)]
    pub allow_secret: bool,
    /// Folders, as globs.
    #[arg(long, value_name = "GLOB")]
    pub scope_cwd_glob: Vec<String>,
    /// Repositories; `.` is the one you are in.
    #[arg(long, value_delimiter = ',', value_name = "REPO")]
    pub scope_repo: Vec<String>,
    /// Branches, as globs.
    #[arg(long, value_name = "GLOB")]
    pub scope_branch: Vec<String>,
    /// linux, darwin (or macos), windows.
    #[arg(long, value_delimiter = ',', value_name = "OS", value_parser = parse_os)]
    pub scope_os: Vec<String>,
    /// Environment variables that must be set.
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    pub scope_env_required: Vec<String>,
    /// An environment variable and a value it may have; repeat it for more values or variables.
    #[arg(id = "scope_env_match", long = "scope-env", value_name = "NAME=VALUE", value_parser = parse_assignment)]
    pub scope_env: Vec<(String, String)>,
    /// This repository and this folder with all below it.
    #[arg(long, conflicts_with_all = ["reach", "variant", "scope_repo", "scope_cwd_glob"])]
    pub here: bool,
    /// No scope: not even that of the repository you are in, which a hint gets otherwise.
    #[arg(id = "reach", long = "everywhere", conflicts_with = "variant", conflicts_with_all = SCOPE_FLAGS)]
    pub everywhere: bool,
    /// Update this variant and keep its scope; an empty one is the one without a scope.
    #[arg(long, conflicts_with_all = SCOPE_FLAGS)]
    pub variant: Option<String>,
    /// Refuse unless this is the stored version; 0: unless there is none.
    #[arg(long, value_name = "VERSION")]
    pub if_match_version: Option<u64>,
    /// The origin: user, agent, tool-output or file-import; empty for none.
    #[arg(long, default_value = "user")]
    pub source: String,
    /// The name of its author.
    #[arg(long, value_name = "NAME")]
    pub added_by: Option<String>,
}

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ValueKind {
    /// A plain string.
    Text,
    /// A command line.
    Command,
    /// An absolute path.
    Path,
    /// A template.
    Template,
    /// Any JSON.
    Json,
}

/// The context of the caller; fields left out are inferred, an empty flag means unknown.
#[derive(Debug, Clone, Default, ClapArgs)]
#[command(next_help_heading = "Context (what is left out is inferred, an empty flag means unknown)")]
pub struct ContextFlags {
    /// Absolute folder (default: the current one).
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub cwd: Option<String>,
    /// Repository (default: git's origin).
    #[arg(long)]
    pub repo: Option<String>,
    /// Branch (default: git's).
    #[arg(long)]
    pub branch: Option<String>,
    /// linux, darwin (or macos), windows (default: this system).
    #[arg(long, value_parser = parse_os)]
    pub os: Option<String>,
    /// An environment variable (default: those that scopes ask for, from this process; may be repeated).
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = assignment_or_nothing)]
    pub env: Vec<(String, String)>,
    /// A file that is open: hints of its component rank a little higher (may be repeated).
    #[arg(long, value_name = "FILE")]
    pub files_open: Vec<String>,
}

impl ContextFlags {
    /// Converts the flags to a context. An empty flag becomes null, which means unknown.
    pub fn to_context(&self) -> Map<String, Value> {
        let fields = [("cwd", &self.cwd), ("repo", &self.repo), ("branch", &self.branch), ("os", &self.os)];
        let value = |text: &str| if text.is_empty() { Value::Null } else { text.into() };
        let mut out: Map<_, _> =
            fields.into_iter().filter_map(|(name, text)| Some((name.to_owned(), value(text.as_deref()?)))).collect();
        let env: Map<_, _> = self.env.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
        if env.contains_key("") {
            out.insert("env".into(), Value::Null);
        } else {
            add_field(&mut out, "env", env);
        }
        add_field(&mut out, "files_open", self.files_open.clone());
        out
    }
}

/// The arguments that most verbs begin with.
#[derive(Debug, Clone, ClapArgs)]
pub struct HintName {
    /// The component. `COMPONENT/KEY` in one word is both.
    #[arg(add = complete::complete_components())]
    pub component: String,
    /// The key.
    #[arg(add = complete::complete_keys())]
    pub key: String,
}

/// `nudge get`
#[derive(Debug, ClapArgs)]
pub struct GetArgs {
    /// The hint.
    #[command(flatten)]
    pub name: HintName,
    /// This variant only, if it fits; an empty one is the one without a scope.
    #[arg(long)]
    pub variant: Option<String>,
    /// Print the value alone, exactly as it is stored.
    #[arg(long)]
    pub value: bool,
    /// Show a secret value.
    #[arg(long)]
    pub reveal: bool,
    /// The context.
    #[command(flatten)]
    pub here: ContextFlags,
}

/// `nudge query`
#[derive(Debug, ClapArgs)]
pub struct QueryArgs {
    /// Words that must all stand in the hint, in any case: in component, key, tags, value or reason.
    pub text: Vec<String>,
    /// This component only.
    #[arg(long, add = complete::complete_components())]
    pub component: Option<String>,
    /// Any of these keys.
    #[arg(long, value_delimiter = ',', value_name = "KEY")]
    pub keys: Vec<String>,
    /// Any of these tags.
    #[arg(long, value_delimiter = ',', value_name = "TAG")]
    pub tags: Vec<String>,
    /// Searched in key, value and reason.
    #[arg(long)]
    pub regex: Option<String>,
    /// Most rows (default 10).
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
    /// Also hints with a scope that does not fit, with the reason.
    #[arg(id = "include_ineligible", long = "all")]
    pub all: bool,
    /// Show secret values.
    #[arg(long)]
    pub reveal: bool,
    /// The context.
    #[command(flatten)]
    pub here: ContextFlags,
}

/// `nudge ls`
#[derive(Debug, ClapArgs)]
pub struct ListArgs {
    /// List the hints of this component.
    #[arg(add = complete::complete_components())]
    pub component: Option<String>,
    /// Hints that were learned from commands that failed and then worked.
    #[arg(long, conflicts_with = "component")]
    pub learned: bool,
    /// Show secret values.
    #[arg(long, requires = "component")]
    pub reveal: bool,
}

/// `nudge why`
#[derive(Debug, ClapArgs)]
pub struct WhyArgs {
    /// The hint.
    #[command(flatten)]
    pub name: HintName,
    /// Show secret values.
    #[arg(long)]
    pub reveal: bool,
    /// The context.
    #[command(flatten)]
    pub here: ContextFlags,
}

/// `nudge edit`
#[derive(Debug, ClapArgs)]
pub struct EditArgs {
    /// The hint.
    #[command(flatten)]
    pub name: HintName,
    /// The variant, when the key has several; an empty one is the one without a scope.
    #[arg(long)]
    pub variant: Option<String>,
    /// The secret guard's finding is a false alarm.
    #[arg(long)]
    pub allow_secret: bool,
}

/// `nudge delete`
#[derive(Debug, ClapArgs)]
pub struct DeleteArgs {
    /// The hint.
    #[command(flatten)]
    pub name: HintName,
    /// This variant only; an empty one is the one without a scope.
    #[arg(long)]
    pub variant: Option<String>,
    /// Every variant.
    #[arg(long)]
    pub all: bool,
}

/// `nudge undo`
#[derive(Debug, ClapArgs)]
pub struct UndoArgs {
    /// The number of the deletion or replacement (default: the last).
    pub id: Option<u64>,
    /// List the deletions and replacements instead.
    #[arg(long, conflicts_with = "id")]
    pub list: bool,
}

/// `nudge bump`
#[derive(Debug, ClapArgs)]
pub struct BumpArgs {
    /// The hint.
    #[command(flatten)]
    pub name: HintName,
    /// How many uses to add (default 1).
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub delta: Option<u64>,
    /// This variant, whatever the context; an empty one is the one without a scope.
    #[arg(long)]
    pub variant: Option<String>,
    /// The context.
    #[command(flatten)]
    pub here: ContextFlags,
}

/// `nudge export`
#[derive(Debug, ClapArgs)]
pub struct ExportArgs {
    /// The only format there is.
    #[arg(long, default_value = "json")]
    pub format: String,
    /// This component only.
    #[arg(long, add = complete::complete_components())]
    pub component: Option<String>,
    /// With the values marked secret, which are left out otherwise.
    #[arg(long, visible_alias = "reveal")]
    pub include_secrets: bool,
}

/// `nudge import`
#[derive(Debug, ClapArgs)]
pub struct ImportArgs {
    /// An export, or a hand-written one; `-` reads stdin.
    #[arg(id = "payload", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: String,
    /// How to treat hints that are already stored.
    #[arg(long, value_enum, default_value_t = ImportModeFlag::Merge)]
    pub mode: ImportModeFlag,
    /// The secret guard's findings are false alarms.
    #[arg(long)]
    pub allow_secret: bool,
    /// Do not ask before `--mode replace` removes the stored hints.
    #[arg(long, short)]
    pub yes: bool,
}

/// The treatment of hints that are already stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ImportModeFlag {
    /// The later one wins.
    Merge,
    /// The store is emptied first.
    Replace,
}

/// `nudge watch`
#[derive(Debug, ClapArgs)]
pub struct WatchArgs {
    /// This component only.
    #[arg(add = complete::complete_components())]
    pub component: Option<String>,
    /// First print what has changed since then in kept hints and records: 2h, 7d, or a time such as
    /// 2026-01-31T14:05:00Z.
    #[arg(long, value_name = "WHEN", value_parser = parse_since)]
    pub since: Option<String>,
}

/// Reads a time, or a duration before now, as a time in RFC 3339.
fn parse_since(text: &str) -> Result<String, String> {
    let refusal = "a duration such as 2h or 7d, or a time such as 2026-01-31T14:05:00Z";
    let before = |ttl: nudge::Ttl| ttl.millis().map(|millis| time::now().saturating_sub(millis));
    let time = nudge::parse_time(text).or_else(|| text.parse().ok().and_then(before)).ok_or(refusal)?;
    Ok(nudge_core::clock::rfc3339::format_time(time))
}

/// Reads the name of an operating system. Users write `macos` for darwin, and `uname` writes a capital letter.
fn parse_os(text: &str) -> Result<String, String> {
    match text.to_ascii_lowercase().as_str() {
        "macos" => Ok("darwin".into()),
        os @ ("" | "linux" | "darwin" | "windows") => Ok(os.into()),
        _ => Err("one of linux, darwin, macos, windows".into()),
    }
}

/// Parses a number for JSON. Refuses NaN and infinity, because JSON has neither.
fn parse_number(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|number: &f64| number.is_finite()).ok_or_else(|| "a number from 0 to 1".into())
}

fn parse_assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.into(), value.into()))
}

fn assignment_or_nothing(text: &str) -> Result<(String, String), String> {
    if text.is_empty() { Ok(Default::default()) } else { parse_assignment(text) }
}

/// Splits lists at their commas, but not at commas inside the braces and brackets of a glob.
pub fn split_globs(texts: &[String]) -> Vec<String> {
    let mut out = Vec::new();
    for text in texts {
        let (mut from, mut depth) = (0, 0_u32);
        for (offset, c) in text.char_indices() {
            match c {
                '{' | '[' => depth += 1,
                '}' | ']' => depth = depth.saturating_sub(1),
                ',' if depth == 0 => {
                    out.push(text[from..offset].to_owned());
                    from = offset + 1;
                }
                _ => {}
            }
        }
        out.push(text[from..].to_owned());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_enumerations_are_those_of_the_library() {
        let same = |words: &[&str], schema: &schemars::Schema| {
            let mut known: Vec<_> = schema.as_value()["enum"].as_array().unwrap().clone();
            known.sort_by_key(ToString::to_string);
            let mut words = words.to_vec();
            words.sort_unstable();
            assert_eq!(known, words);
        };
        same(&SHELLS, &schemars::schema_for!(nudge::CommandShell));
        same(&FORMATS, &schemars::schema_for!(nudge::TemplateFormat));
    }

    #[test]
    fn lists_of_globs_split_outside_braces() {
        for (text, parts) in [
            ("dev,main", vec!["dev", "main"]),
            ("**/{a,b}/x,[,]y", vec!["**/{a,b}/x", "[,]y"]),
            ("a}b,c", vec!["a}b", "c"]),
            ("{a,b", vec!["{a,b"]),
            ("", vec![""]),
            ("a,", vec!["a", ""]),
        ] {
            assert_eq!(split_globs(&[text.to_owned()]), parts, "{text}");
        }
    }
}
