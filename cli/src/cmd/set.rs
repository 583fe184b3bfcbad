//! `nudge set`

use std::collections::BTreeMap;
use std::path::{Component, Path};

use nudge::{Error, Result, Service as _};
use nudge_app::{reach, settings};
use nudge_client::process_cwd;
use nudge_core::place::glob::{collapse_path, has_parent_segment, is_drive, is_relative};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::{CommandOutput, RunningSession, add_field, render_answer, text_or_stdin, to_raw};
use crate::args::{GlobalFlags, SetArgs, ValueKind, split_globs};
use crate::output;

/// Params of `nudge.set_hint`. The value is raw JSON text, to keep the order of keys, duplicate keys and numbers.
#[derive(Serialize)]
struct RawSetParams<'a> {
    component: &'a str,
    key: &'a str,
    value: Box<RawValue>,
    meta: Map<String, Value>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// A value of type JSON, with its data as raw JSON text.
#[derive(Serialize)]
struct RawJsonValue<'a> {
    r#type: &'static str,
    data: &'a RawValue,
}

pub fn run(args: &SetArgs, global: &GlobalFlags) -> Result<CommandOutput> {
    let value = build_value(args)?;
    let mut rest = Map::new();
    add_field(&mut rest, "variant", args.variant.clone());
    add_field(&mut rest, "if_match_version", args.if_match_version);
    add_field(&mut rest, "allow_secret", args.allow_secret.then_some(Value::Bool(true)));
    let mut meta = build_meta(args);
    let limits_reach = reach::is_of_repository(&settings::read()?);
    let session = RunningSession::open(global)?;
    if let Some(repo) = place_hint(args, &mut meta, limits_reach, &session)? {
        rest.insert("context".into(), json!({"repo": repo}));
    }
    let params = RawSetParams { component: &args.component, key: &args.key, value, meta, rest };
    let stored = session.remote.call(reach::SET_HINT, &to_raw(&params)?)?;
    let mut out = render_answer(&session, &stored, output::render_stored)?;
    if args.value.is_empty() && !global.json {
        out.notes.push("the value is empty; `nudge delete` takes a hint away".into());
    }
    if let Some(name) = args.scope_repo.iter().find(|name| is_no_repository(name)).filter(|_| !global.json) {
        out.notes.push(format!(
            "no repository is called `{name}`, so it applies in none: the name is that of git's origin, such as \
             github.com/acme/shop, or `.` for the one you are in"
        ));
    }
    Ok(out)
}

/// Returns true for a name that no repository has: each is an address or a path.
fn is_no_repository(name: &str) -> bool {
    name != "." && !name.contains(['/', '\\', ':'])
}

/// Writes the scope of `--here` and `--scope-repo .` into `meta`. Returns the repository to which a hint without a
/// scope is limited.
fn place_hint(
    args: &SetArgs,
    meta: &mut Map<String, Value>,
    limits_reach: bool,
    session: &RunningSession,
) -> Result<Option<String>> {
    let here = |what: &str| {
        process_cwd().ok_or_else(|| Error::invalid(format!("{what} needs a folder; go to one that is there.")))
    };
    if args.here {
        let cwd = here("--here")?;
        let folder =
            cwd.to_str().ok_or_else(|| Error::invalid("The name of this folder is not UTF-8; name a scope."))?;
        let mut scope = scope_of(meta);
        scope.insert("cwd_glob".into(), reach::pattern_below(folder).into());
        add_field(&mut scope, "repo", session.find_repository(&cwd));
        meta.insert("scope".into(), scope.into());
    } else if args.scope_repo.iter().any(|repo| repo == ".") {
        let outside = || Error::invalid("This folder is in no repository that has a name; name one instead of `.`.");
        let repo = session.find_repository(&here("--scope-repo .")?).ok_or_else(outside)?;
        let repos: Vec<_> = args.scope_repo.iter().map(|name| if name == "." { &repo } else { name }).collect();
        let mut scope = scope_of(meta);
        scope.insert("repo".into(), json!(repos));
        meta.insert("scope".into(), scope.into());
    } else if !args.everywhere && args.variant.is_none() && !meta.contains_key("scope") && limits_reach {
        return Ok(process_cwd().and_then(|cwd| session.find_repository(&cwd)));
    }
    Ok(None)
}

fn scope_of(meta: &mut Map<String, Value>) -> Map<String, Value> {
    match meta.remove("scope") {
        Some(Value::Object(scope)) => scope,
        _ => Map::new(),
    }
}

/// Returns the type from `--type`, or else the type that other flags imply.
fn choose_kind(args: &SetArgs) -> Result<ValueKind> {
    let mut kind = args.kind;
    for (flag, given, flag_kind) in [
        ("--shell", args.shell.is_some(), ValueKind::Command),
        ("--path-os", !args.path_os.is_empty(), ValueKind::Path),
        ("--format", args.format.is_some(), ValueKind::Template),
        ("--default", !args.defaults.is_empty(), ValueKind::Template),
    ] {
        if given && *kind.get_or_insert(flag_kind) != flag_kind {
            let name = format!("{flag_kind:?}").to_lowercase();
            return Err(Error::invalid(format!("{flag} goes with --type {name}; say that, or drop {flag}.")));
        }
    }
    Ok(kind.unwrap_or(ValueKind::Text))
}

/// Builds the value in the format of its type.
fn build_value(args: &SetArgs) -> Result<Box<RawValue>> {
    let kind = choose_kind(args)?;
    let from_stdin = args.value == "-";
    let mut text = text_or_stdin(args.value.clone())?;
    if from_stdin {
        // Drops one line break at the end, because `echo` and editors add one. If the value itself ends with a line
        // break, stdin must end with two.
        let kept = text.strip_suffix('\n').map(|text| text.strip_suffix('\r').unwrap_or(text).len());
        text.truncate(kept.unwrap_or(text.len()));
        if text.is_empty() {
            // Empty input means that the value was lost, for example because the command before the pipe has failed.
            return Err(Error::invalid("Nothing came in on stdin; write the value there, or as an argument."));
        }
    }
    let mut typed = Map::new();
    match kind {
        ValueKind::Text => return to_raw(&text),
        ValueKind::Command => {
            typed.extend([("type".into(), json!("command")), ("cmd".into(), text.into())]);
            add_field(&mut typed, "shell", args.shell.clone());
        }
        ValueKind::Path => {
            typed.extend([("type".into(), json!("path")), ("abs".into(), to_absolute(text)?.into())]);
            add_field(&mut typed, "os", args.path_os.clone());
        }
        ValueKind::Template => {
            let format = args.format.clone().unwrap_or_else(|| "mustache".into());
            typed.extend([("type".into(), json!("template")), ("format".into(), format.into())]);
            typed.insert("body".into(), text.into());
            let defaults = args.defaults.iter().map(|(name, value)| (name.clone(), value.clone().into()));
            add_field(&mut typed, "defaults", defaults.collect::<Map<_, _>>());
        }
        ValueKind::Json => {
            let data: &RawValue = serde_json::from_str(&text).map_err(|error| {
                Error::invalid(format!("The value is not JSON: {error}; correct it or drop --type json."))
            })?;
            return to_raw(&RawJsonValue { r#type: "json", data });
        }
    }
    to_raw(&typed)
}

/// Makes a path absolute: from the current folder, or from the home folder for `~`. An absolute path of any system
/// stays as it is. `..` works as in the shell's `cd`.
fn to_absolute(text: String) -> Result<String> {
    let is_absolute = is_drive(&text) || text.starts_with(['/', '\\']) || Path::new(&text).is_absolute();
    if is_absolute || text.is_empty() {
        return Ok(text);
    }
    let (base, rest) = match text.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => (etcetera::home_dir().ok(), rest),
        _ => (process_cwd(), &*text),
    };
    let outside = || Error::invalid("A relative path needs a folder to begin with; write an absolute one.");
    let mut path = base.ok_or_else(outside)?;
    for part in Path::new(rest).components() {
        match part {
            Component::Normal(name) => path.push(name),
            Component::ParentDir if !path.pop() => return Err(outside()),
            _ => {}
        }
    }
    path.into_os_string().into_string().map_err(|_| Error::invalid("The path is not UTF-8; write an absolute one."))
}

/// Puts the current folder before a relative pattern, because `src/**` alone matches no absolute folder. A pattern that
/// begins with `{`, `!`, `~` or `\`, or that contains `..`, stays as it is; the library accepts or refuses it.
fn from_here(pattern: String) -> String {
    let is_plain = !pattern.is_empty() && !pattern.starts_with(['{', '!', '~', '\\']) && is_relative(&pattern);
    match process_cwd().and_then(|cwd| cwd.to_str().map(str::to_owned)) {
        Some(cwd) if is_plain && !has_parent_segment(&pattern) => {
            collapse_path(&format!("{}/{pattern}", reach::escape_pattern(cwd.trim_end_matches('/'))))
        }
        _ => pattern,
    }
}

fn build_meta(args: &SetArgs) -> Map<String, Value> {
    let mut scope = Map::new();
    add_field(&mut scope, "cwd_glob", split_globs(&args.scope_cwd_glob).into_iter().map(from_here).collect::<Vec<_>>());
    add_field(&mut scope, "repo", args.scope_repo.clone());
    add_field(&mut scope, "branch", split_globs(&args.scope_branch));
    add_field(&mut scope, "os", args.scope_os.clone());
    add_field(&mut scope, "env_required", args.scope_env_required.clone());
    let mut env: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, value) in &args.scope_env {
        env.entry(name).or_default().push(value);
    }
    add_field(
        &mut scope,
        "env_match",
        env.into_iter().map(|(name, values)| (name.into(), values.into())).collect::<Map<_, _>>(),
    );
    let mut meta = Map::new();
    add_field(&mut meta, "reason", args.reason.clone());
    add_field(&mut meta, "tags", args.tags.clone());
    add_field(&mut meta, "priority", args.priority);
    add_field(&mut meta, "confidence", args.confidence);
    add_field(&mut meta, "ttl", args.ttl.clone());
    add_field(&mut meta, "sensitivity", args.secret.then_some("secret"));
    add_field(&mut meta, "scope", scope);
    add_field(&mut meta, "source", Some(args.source.clone()).filter(|source| !source.is_empty()));
    add_field(&mut meta, "added_by", args.added_by.clone());
    meta
}
