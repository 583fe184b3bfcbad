//! Expresses params as command-line arguments, if this loses nothing.
// In two nested options, the outer `None` means "cannot be expressed", and the inner `None` means "not given".
#![allow(clippy::option_option)]

use crate::json::Json;

/// The arguments of a command line, without the program, and its stdin.
pub(super) struct Words {
    pub(super) args: Vec<String>,
    pub(super) stdin: String,
}

/// The largest argument in bytes. Longer values go through stdin.
const MAX_ARG_BYTES: usize = 16 << 10;

/// Makes the arguments. Returns `None` if flags cannot express exactly these params: a wrong type, an unknown field, a
/// duplicate key, or a text that a flag would read in another way.
pub(super) fn words(method: &str, params: &str) -> Option<Words> {
    let mut fields = Fields::of(&Json::parse(params).ok()?)?;
    let mut line = Line::default();
    match method {
        "nudge.set_hint" => set(&mut fields, params, &mut line)?,
        "nudge.get_hint" => {
            line.verb("get");
            line.context(fields.take("context"), true)?;
            line.flag("variant", fields.text("variant")?);
            line.names(&mut fields)?;
        }
        "nudge.query" => {
            line.verb("query");
            line.context(fields.take("context"), true)?;
            line.flag("component", fields.text("component")?);
            line.list("keys", fields.list("keys")?)?;
            line.list("tags", fields.list("tags")?)?;
            line.flag("regex", fields.text("regex")?);
            line.flag("limit", fields.count("limit")?);
            line.switch("all", fields.yes("include_ineligible")?);
            if let Some(text) = fields.text("text")? {
                // The command line refuses a text without a visible character.
                let text = Some(text).filter(|text| !text.trim().is_empty() && text.len() < MAX_ARG_BYTES)?;
                line.args.extend(["--".into(), text]);
            }
        }
        "nudge.recall" => {
            line.verb("recall");
            line.context(fields.take("context"), true)?;
            line.flag("limit", fields.count("limit")?);
            line.flag("max-bytes", fields.count("max_bytes")?);
            line.list("sources", fields.list("sources")?)?;
            let query = fields.text("query")?.filter(|query| query.len() < MAX_ARG_BYTES)?;
            line.args.extend(["--".into(), query]);
        }
        "nudge.bump" => {
            line.verb("bump");
            line.flag("delta", fields.count("delta")?);
            line.flag("variant", fields.text("variant")?);
            // Without a context, the command may use the context of its own folder.
            line.context(
                Some(fields.take("context").filter(|context| !["null", "{}"].contains(&&*context.text()))?),
                false,
            )?;
            line.names(&mut fields)?;
        }
        "nudge.delete_hint" => {
            line.verb("delete");
            line.flag("variant", fields.text("variant")?);
            line.switch("all", fields.yes("all")?);
            line.names(&mut fields)?;
        }
        "nudge.list_components" => line.verb("ls"),
        "nudge.status" => line.verb("status"),
        "nudge.export" => {
            line.verb("export");
            line.flag("format", fields.text("format")?);
            line.flag("component", fields.text("component")?);
            line.switch("include-secrets", fields.yes("include_secrets")?);
        }
        "nudge.import" => {
            line.verb("import");
            let payload = fields.take("payload").filter(|payload| payload.get("components").is_some())?;
            line.stdin = payload.text();
            let mode =
                Some(fields.text("mode")?).filter(|mode| matches!(mode.as_deref(), None | Some("merge" | "replace")));
            line.flag("mode", mode?);
            line.switch("allow-secret", fields.yes("allow_secret")?);
            line.args.push("-".into());
        }
        "nudge.signals.send" | "nudge.signals.check" | "nudge.signals.respond" | "nudge.signals.list" => {
            line.args.extend(["signals".into(), method.rsplit('.').next()?.into()]);
            line.context(fields.take("context"), true)?;
            line.flag("type", fields.text("type")?);
            line.flag("from", fields.text("from")?);
            line.flag("message", fields.text("message")?);
            line.flag("last-seen", fields.text("last_seen")?);
            line.switch("requires-response", fields.yes("requires_response")?);
            match fields.text("agent")? {
                Some(agent) if method.ends_with("send") => line.args.extend(["--".into(), agent]),
                agent => line.flag("agent", agent),
            }
        }
        method => brain(method.strip_prefix("nudge.brain.")?, &mut fields, &mut line)?,
    }
    fields.0.is_empty().then_some(Words { args: line.args, stdin: line.stdin })
}

/// Makes the arguments for a method of the brain.
fn brain(method: &str, fields: &mut Fields, line: &mut Line) -> Option<()> {
    let verb: &[&str] = match method {
        "context" => &["ask"],
        "get" => &["brain", "show"],
        "set_field" => &["brain", "set"],
        other => &["brain", other],
    };
    line.args.extend(verb.iter().map(|word| (*word).to_owned()));
    line.context(fields.take("context"), true)?;
    line.switch("explain", fields.yes("explain")?);
    line.switch("if-absent", fields.yes("if_absent")?);
    line.list("tags", fields.list("tags")?)?;
    line.list("related", fields.list("related")?)?;
    for name in ["limit", "hops", "max_chars"] {
        line.flag(&name.replace('_', "-"), fields.count(name)?);
    }
    for name in ["domain", "type", "tag", "after", "if_hash"] {
        line.flag(&name.replace('_', "-"), fields.text(name)?);
    }
    let arguments: &[&str] = match method {
        "context" => &["task_description"],
        "get" => &["id"],
        "set_field" => &["id", "field", "value"],
        "add" => &["title", "body"],
        "init" => &["dir"],
        _ => &[],
    };
    line.args.push("--".into());
    for name in arguments {
        match fields.text(name)? {
            // A single dash would mean stdin.
            Some(text) => line.args.push(Some(text).filter(|text| text != "-" && text.len() < MAX_ARG_BYTES)?),
            None if *name == "dir" => {}
            None => return None,
        }
    }
    Some(())
}

fn set(fields: &mut Fields, written: &str, line: &mut Line) -> Option<()> {
    line.verb("set");
    let mut meta = Fields::of(&fields.take("meta").unwrap_or(Json::Object(Vec::new())))?;
    let mut scope = Fields::of(&meta.take("scope").unwrap_or(Json::Object(Vec::new())))?;
    line.flag("reason", meta.text("reason")?);
    line.list("tags", meta.list("tags")?)?;
    line.flag("priority", meta.count("priority")?);
    line.flag("confidence", meta.number("confidence")?);
    let ttl = meta.text("ttl")?;
    // The command line accepts more forms of a ttl than the methods.
    let is_wire = |ttl: &String| !ttl.trim_start().starts_with(|c: char| c.is_ascii_digit());
    line.flag("ttl", Some(ttl).filter(|ttl| ttl.as_ref().is_none_or(is_wire))?);
    match meta.text("sensitivity")?.as_deref() {
        None => {}
        Some("secret") => line.switch("secret", true),
        Some(_) => return None,
    }
    line.flag("source", Some(meta.text("source")?.unwrap_or_default()));
    line.flag("added-by", meta.text("added_by")?);
    line.list("scope-cwd-glob", scope.one_or_many("cwd_glob")?)?;
    line.list("scope-repo", scope.one_or_many("repo")?)?;
    line.list("scope-branch", scope.one_or_many("branch")?)?;
    line.list("scope-os", systems(scope.one_or_many("os")?)?)?;
    line.list("scope-env-required", scope.one_or_many("env_required")?)?;
    for (name, values) in Fields::of(&scope.take("env_match").unwrap_or(Json::Object(Vec::new())))?.0 {
        for value in strings(&values).filter(|values| is_variable(&name) && !values.is_empty())? {
            line.flag("scope-env", Some(format!("{name}={value}")));
        }
    }
    line.flag("variant", fields.text("variant")?);
    line.flag("if-match-version", fields.count("if_match_version")?);
    line.switch("allow-secret", fields.yes("allow_secret")?);
    let value = value(&fields.take("value")?, written, line)?;
    line.names(fields)?;
    if value == "-" || value.len() > MAX_ARG_BYTES {
        // The command removes one line break at the end of its input.
        line.stdin = format!("{value}\n");
        line.args.push("-".into());
    } else {
        line.args.push(value);
    }
    (meta.0.is_empty() && scope.0.is_empty()).then_some(())
}

/// Returns the text of a value, and adds flags for its type.
fn value(value: &Json, written: &str, line: &mut Line) -> Option<String> {
    if let Json::String(text) = value {
        return Some(text.clone());
    }
    let mut typed = Fields::of(value)?;
    let kind = typed.text("type")??;
    line.flag("type", Some(kind.clone()));
    let text = match kind.as_str() {
        "command" => {
            line.flag("shell", typed.text("shell")?);
            typed.text("cmd")??
        }
        "path" => {
            line.list("path-os", systems(typed.list("os")?)?)?;
            // The command would resolve a relative path in its own folder.
            let is_relative = |abs: &String| !abs.is_empty() && !abs.starts_with(['/', '\\']) && !abs.contains(':');
            typed.text("abs")?.filter(|abs| !is_relative(abs))?
        }
        "template" => {
            line.flag("format", Some(typed.text("format")??));
            for (name, value) in Fields::of(&typed.take("defaults").unwrap_or(Json::Object(Vec::new())))?.0 {
                let value = value.as_str().filter(|_| !name.contains('='))?;
                line.flag("default", Some(format!("{name}={value}")));
            }
            typed.text("body")??
        }
        // The JSON type changes a number that it cannot hold. Such a value cannot be expressed.
        "json" => Some(typed.take("data")?.text()).filter(|data| written.contains(data.as_str()))?,
        _ => return None,
    };
    typed.0.is_empty().then_some(text)
}

/// The fields of an object that the command line does not contain yet.
struct Fields(Vec<(String, Json)>);

impl Fields {
    fn of(object: &Json) -> Option<Self> {
        let Json::Object(pairs) = object else { return None };
        let twice =
            pairs.iter().enumerate().any(|(index, (name, _))| pairs[..index].iter().any(|(other, _)| other == name));
        (!twice).then(|| Self(pairs.clone()))
    }

    fn take(&mut self, name: &str) -> Option<Json> {
        let index = self.0.iter().position(|(field, _)| field == name)?;
        Some(self.0.remove(index).1)
    }

    /// Takes a text. The outer `None` means that the field is no string, or a string that cannot be an argument.
    fn text(&mut self, name: &str) -> Option<Option<String>> {
        match self.take(name) {
            None => Some(None),
            Some(Json::String(text)) if !text.contains('\0') => Some(Some(text)),
            Some(_) => None,
        }
    }

    fn list(&mut self, name: &str) -> Option<Option<Vec<String>>> {
        match self.take(name) {
            None => Some(None),
            Some(Json::Array(list)) => strings(&Json::Array(list)).map(Some),
            Some(_) => None,
        }
    }

    fn one_or_many(&mut self, name: &str) -> Option<Option<Vec<String>>> {
        self.take(name).map_or(Some(None), |list| strings(&list).map(Some))
    }

    fn count(&mut self, name: &str) -> Option<Option<String>> {
        match self.take(name) {
            None => Some(None),
            Some(Json::Number(number)) if number.is_u64() => Some(Some(number.to_string())),
            Some(_) => None,
        }
    }

    fn number(&mut self, name: &str) -> Option<Option<String>> {
        match self.take(name) {
            None => Some(None),
            Some(Json::Number(number)) => Some(Some(number.to_string())),
            Some(_) => None,
        }
    }

    fn yes(&mut self, name: &str) -> Option<bool> {
        match self.take(name) {
            None | Some(Json::Bool(false)) => Some(false),
            Some(Json::Bool(true)) => Some(true),
            Some(_) => None,
        }
    }
}

#[derive(Default)]
struct Line {
    args: Vec<String>,
    stdin: String,
}

impl Line {
    fn verb(&mut self, verb: &str) {
        self.args.push(verb.into());
    }

    fn flag(&mut self, name: &str, value: Option<String>) {
        self.args.extend(value.map(|value| format!("--{name}={value}")));
    }

    fn switch(&mut self, name: &str, on: bool) {
        self.args.extend(on.then(|| format!("--{name}")));
    }

    /// Writes every second list as one flag with commas, and the others as repeated flags.
    fn list(&mut self, name: &str, list: Option<Vec<String>>) -> Option<()> {
        let list = list.unwrap_or_default();
        if list.iter().any(|text| text.is_empty() || text.contains([',', '\0'])) {
            return None;
        }
        if self.args.len().is_multiple_of(2) && !list.is_empty() {
            self.flag(name, Some(list.join(",")));
        } else {
            for text in list {
                self.flag(name, Some(text));
            }
        }
        Some(())
    }

    /// Writes a context. If the command would infer a field that is not given, writes the flag that says "unknown".
    fn context(&mut self, context: Option<Json>, inferred: bool) -> Option<()> {
        let mut context = match context {
            None | Some(Json::Null) => Fields(Vec::new()),
            Some(context) => Fields::of(&context)?,
        };
        let given = !context.0.is_empty();
        for name in ["cwd", "repo", "branch", "os"] {
            let text = context.text(name)?;
            if text.as_deref() == Some("") || (name == "os" && !text.as_deref().is_none_or(is_os)) {
                return None;
            }
            self.flag(name, text.or_else(|| (inferred || given).then(String::new)));
        }
        match context.take("env") {
            None => self.flag("env", (inferred || given).then(String::new)),
            Some(Json::Object(vars)) if !vars.is_empty() => {
                for (name, value) in vars {
                    let value = value.as_str().filter(|value| is_variable(&name) && !value.contains('\0'))?;
                    self.flag("env", Some(format!("{name}={value}")));
                }
            }
            Some(_) => return None,
        }
        for file in context.list("files_open")?.unwrap_or_default() {
            self.flag("files-open", Some(file));
        }
        context.0.is_empty().then_some(())
    }

    /// Writes component and key, and before them `--`, after which no argument is a flag.
    fn names(&mut self, fields: &mut Fields) -> Option<()> {
        let (component, key) = (fields.text("component")??, fields.text("key")??);
        self.args.extend(["--".into(), component, key]);
        Some(())
    }
}

fn strings(list: &Json) -> Option<Vec<String>> {
    match list {
        Json::Array(list) => list.iter().map(|item| item.as_str().map(str::to_owned)).collect(),
        Json::String(text) => Some(vec![text.clone()]),
        _ => None,
    }
}

/// Returns the names of systems, if the methods know all of them. The command line also accepts other names.
fn systems(list: Option<Vec<String>>) -> Option<Option<Vec<String>>> {
    Some(list).filter(|list| list.iter().flatten().all(|os| is_os(os)))
}

fn is_os(text: &str) -> bool {
    ["linux", "darwin", "windows"].contains(&text)
}

fn is_variable(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}
