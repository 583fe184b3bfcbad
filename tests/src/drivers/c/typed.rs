//! Expresses params as arguments of the typed C functions, if this loses nothing.
// In two nested options, the outer `None` means "cannot be expressed", and the inner `None` means "not given".
#![allow(clippy::option_option)]

use std::fmt::Write as _;

use crate::json::Json;

/// The enumerations of `nudge.h`. The first name has the number 1.
const TYPES: [&str; 4] = ["command", "path", "template", "json"];
const SHELLS: [&str; 6] = ["bash", "sh", "powershell", "cmd", "zsh", "fish"];
const FORMATS: [&str; 4] = ["mustache", "handlebars", "jinja", "interpolate"];
const SENSITIVITIES: [&str; 2] = ["secret", "normal"];
const SOURCES: [&str; 4] = ["user", "agent", "tool-output", "file-import"];
/// The bit of each system in `nudge_os`.
const SYSTEMS: [(&str, u32); 3] = [("linux", 1), ("darwin", 2), ("windows", 4)];

/// The message to the C client.
#[derive(Debug)]
pub(super) struct Message {
    verb: &'static str,
    fields: Vec<(String, String)>,
}

impl Message {
    pub(super) fn new(verb: &'static str) -> Self {
        Self { verb, fields: Vec::new() }
    }

    pub(super) fn push(&mut self, name: &str, value: impl Into<String>) {
        self.fields.push((name.into(), value.into()));
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut out = format!("{} {}\n", self.verb, self.fields.len());
        for (name, value) in &self.fields {
            // Writing to a string cannot fail.
            let _ = write!(out, "{name} {}\n{value}\n", value.len());
        }
        out.into_bytes()
    }

    fn some(&mut self, name: &str, value: Option<String>) {
        if let Some(value) = value {
            self.push(name, value);
        }
    }

    fn all(&mut self, name: &str, values: Vec<String>) {
        for value in values {
            self.push(name, value);
        }
    }
}

/// Makes the message. Returns `None` if there is no typed function, or if it cannot express exactly these params.
pub(super) fn message(method: &str, params: &str) -> Option<Message> {
    let mut fields = Fields::of(&Json::parse(params).ok()?)?;
    let verb = match method {
        "nudge.get_hint" => "get",
        "nudge.set_hint" => "set",
        "nudge.bump" => "bump",
        "nudge.delete_hint" => "delete",
        _ => return None,
    };
    let mut to = Message::new(verb);
    to.push("store", "1");
    to.push("component", fields.text("component")??);
    to.push("key", fields.text("key")??);
    match verb {
        "get" => context(&mut fields, &mut to)?,
        "set" => set(&mut fields, params, &mut to)?,
        "bump" => {
            context(&mut fields, &mut to)?;
            to.some("variant", fields.text("variant")?);
            to.some("delta", fields.positive("delta")?);
        }
        _ => {
            to.some("variant", fields.text("variant")?);
            to.some("all", fields.yes("all")?);
        }
    }
    fields.0.is_empty().then_some(to)
}

fn context(fields: &mut Fields, to: &mut Message) -> Option<()> {
    let mut context = fields.object("context")?;
    for name in ["cwd", "repo", "branch"] {
        to.some(name, context.text(name)?);
    }
    if let Some(os) = context.text("os")? {
        to.push("os", bit(&os)?.to_string());
    }
    for (name, value) in context.object("env")?.0 {
        to.push("env.name", name);
        match value {
            Json::Null => {}
            value => to.push("env.value", value.as_str()?),
        }
    }
    to.all("file_open", context.list("files_open")?);
    context.0.is_empty().then_some(())
}

fn set(fields: &mut Fields, written: &str, to: &mut Message) -> Option<()> {
    let mut meta = fields.object("meta")?;
    for name in ["reason", "ttl", "added_by"] {
        to.some(name, meta.text(name)?);
    }
    to.all("tag", meta.list("tags")?);
    to.some("priority", meta.positive("priority")?);
    to.some("confidence", meta.number("confidence")?);
    to.some("sensitivity", choice(meta.text("sensitivity")?, &SENSITIVITIES)?);
    to.some("source", choice(meta.text("source")?, &SOURCES)?);
    let mut scope = meta.object("scope")?;
    if !scope.0.is_empty() {
        to.push("scoped", "1");
    }
    for (name, field) in
        [("cwd_glob", "cwd_glob"), ("repo", "scope_repo"), ("branch", "scope_branch"), ("env_required", "env_required")]
    {
        to.all(field, scope.one_or_many(name)?);
    }
    to.push("scope_os", bits(&scope.one_or_many("os")?)?);
    for (name, values) in scope.object("env_match")?.0 {
        for value in strings(&values).filter(|values| !values.is_empty())? {
            to.push("env_match.name", &name);
            to.push("env_match.value", value);
        }
    }
    to.some("variant", fields.text("variant")?);
    to.some("if_match_version", fields.count("if_match_version")?);
    to.some("allow_secret", fields.yes("allow_secret")?);
    value(&fields.take("value")?, written, to)?;
    (meta.0.is_empty() && scope.0.is_empty()).then_some(())
}

fn value(value: &Json, written: &str, to: &mut Message) -> Option<()> {
    if let Json::String(text) = value {
        to.push("value", text);
        return Some(());
    }
    let mut typed = Fields::of(value)?;
    let kind = typed.text("type")??;
    to.push("value_type", choice(Some(kind.clone()), &TYPES)??);
    let text = match kind.as_str() {
        "command" => {
            to.some("shell", choice(typed.text("shell")?, &SHELLS)?);
            typed.text("cmd")??
        }
        "path" => {
            to.push("path_os", bits(&typed.list("os")?)?);
            // The order of the list is lost: a set of bits has none.
            typed.text("abs")??
        }
        "template" => {
            to.some("format", choice(typed.text("format")?, &FORMATS)?);
            for (name, value) in typed.object("defaults")?.0 {
                to.push("defaults.name", name);
                to.push("defaults.value", value.as_str()?);
            }
            typed.text("body")??
        }
        // The JSON type changes a number that it cannot hold. Such a value cannot be expressed.
        _ => Some(typed.take("data")?.text()).filter(|data| written.contains(data.as_str()))?,
    };
    to.push("value", text);
    typed.0.is_empty().then_some(())
}

/// Returns the number of the name; the first of `names` has the number 1.
fn choice(name: Option<String>, names: &[&str]) -> Option<Option<String>> {
    let Some(name) = name else { return Some(None) };
    names.iter().position(|known| *known == name).map(|index| Some((index + 1).to_string()))
}

fn bit(name: &str) -> Option<u32> {
    SYSTEMS.iter().find(|(known, _)| *known == name).map(|(_, bit)| *bit)
}

fn bits(names: &[String]) -> Option<String> {
    let bits: Option<Vec<_>> = names.iter().map(|name| bit(name)).collect();
    Some(bits?.into_iter().fold(0, |all, bit| all | bit).to_string())
}

fn strings(list: &Json) -> Option<Vec<String>> {
    match list {
        Json::Array(list) => list.iter().map(|item| item.as_str().map(str::to_owned)).collect(),
        Json::String(text) => Some(vec![text.clone()]),
        _ => None,
    }
}

/// The fields of an object that the message does not contain yet.
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
        Some(self.0.remove(index).1).filter(|value| *value != Json::Null)
    }

    fn object(&mut self, name: &str) -> Option<Self> {
        self.take(name).map_or(Some(Self(Vec::new())), |object| Self::of(&object))
    }

    fn text(&mut self, name: &str) -> Option<Option<String>> {
        self.take(name).map_or(Some(None), |text| text.as_str().map(|text| Some(text.to_owned())))
    }

    fn list(&mut self, name: &str) -> Option<Vec<String>> {
        self.take(name).map_or(Some(Vec::new()), |list| matches!(list, Json::Array(_)).then(|| strings(&list))?)
    }

    fn one_or_many(&mut self, name: &str) -> Option<Vec<String>> {
        self.take(name).map_or(Some(Vec::new()), |list| strings(&list))
    }

    fn number(&mut self, name: &str) -> Option<Option<String>> {
        match self.take(name) {
            None => Some(None),
            Some(Json::Number(number)) => Some(Some(number.to_string())),
            Some(_) => None,
        }
    }

    /// Takes a count that a C double holds exactly.
    fn count(&mut self, name: &str) -> Option<Option<String>> {
        match self.take(name) {
            None => Some(None),
            Some(Json::Number(number)) if number.as_u64().is_some_and(|n| n < 1 << 53) => {
                Some(Some(number.to_string()))
            }
            Some(_) => None,
        }
    }

    /// Takes a count. Zero cannot be expressed, because it means "not given".
    fn positive(&mut self, name: &str) -> Option<Option<String>> {
        self.count(name).filter(|count| count.as_deref() != Some("0"))
    }

    fn yes(&mut self, name: &str) -> Option<Option<String>> {
        match self.take(name) {
            None | Some(Json::Bool(false)) => Some(None),
            Some(Json::Bool(true)) => Some(Some("1".into())),
            Some(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{Step, load, vectors_dir};
    use crate::resolve::{Saved, resolve};

    /// Checks that most calls can be expressed. Otherwise the comparison would cover little.
    #[test]
    fn most_calls_can_be_said() {
        let (mut all, mut said) = (0, 0);
        let typed = ["get_hint", "set_hint", "bump", "delete_hint"];
        for step in load(&vectors_dir()).unwrap().into_iter().flat_map(|(_, case)| case.steps) {
            let Step::Call(call) = step else { continue };
            let (true, Some(params)) = (typed.contains(&call.call.as_str()), call.params) else { continue };
            let Ok(params) = resolve(&params, &Saved::new()) else { continue };
            all += 1;
            said += usize::from(message(&format!("nudge.{}", call.call), &params.text()).is_some());
        }
        assert!(said * 10 > all * 8, "{said} of {all}");
    }
}
