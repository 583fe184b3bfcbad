//! Reach: a hint that is stored without a scope from inside a git repository is meant for that repository (semantics
//! section 12). The command line and the server of a stdio client, which know where their caller stands, add the scope;
//! the library and plain HTTP add none.
//!
//! Params are changed as text: key order, duplicate keys and the digits of numbers stay.

use nudge_core::settings::SettingValues;
use nudge_core::wire;
use serde_json::Value;
use serde_json::value::RawValue;

/// The method that stores a hint.
pub const SET_HINT: &str = "nudge.set_hint";
/// The setting that says where hints without a scope are to apply.
const SETTING: &str = "default_reach";
/// The value of the setting, and of the argument, by which nothing is added.
pub const EVERYWHERE: &str = "everywhere";

/// Returns true when hints without a scope are limited to the caller's repository.
pub fn is_of_repository(values: &SettingValues) -> bool {
    values.get_text(SETTING) != EVERYWHERE
}

/// Returns true for params of [`SET_HINT`] that leave open where the hint applies: no scope, no variant, no reach.
/// Params that are no object, or name a member twice, are left for the service to refuse.
pub fn is_open(params: &str) -> bool {
    if !params.starts_with('{') {
        return false;
    }
    let Some(members) = read_members(params) else { return false };
    let given = |name: &str| members.iter().any(|(known, value)| known == name && !is_nothing(value.get()));
    if given("variant") || given("reach") {
        return false;
    }
    let Some(meta) = find_member(&members, "meta") else { return true };
    is_nothing(meta) || (meta.starts_with('{') && self::read_members(meta).is_some_and(|meta| scope_is_open(&meta)))
}

fn scope_is_open(meta: &[(String, &RawValue)]) -> bool {
    let Some(scope) = find_member(meta, "scope") else { return true };
    is_nothing(scope)
        || (scope.starts_with('{')
            && read_members(scope).is_some_and(|scope| scope.iter().all(|(_, value)| is_nothing(value.get()))))
}

/// Returns open params ([`is_open`]) with a repository for the scope; `None` for others.
pub fn limit_to_repository(params: &str, repo: &str) -> Option<Box<RawValue>> {
    let scope = serde_json::json!({"repo": repo}).to_string();
    let outer = read_members(params)?;
    let text = match find_member(&outer, "meta") {
        Some(meta) if !is_nothing(meta) => {
            let inner = read_members(meta)?;
            match find_member(&inner, "scope") {
                Some(stands) => replace_part(params, stands, &scope)?,
                None => replace_part(params, meta, &format!("{{\"scope\":{scope},{}", meta.strip_prefix('{')?))?,
            }
        }
        Some(nothing) => replace_part(params, nothing, &format!("{{\"scope\":{scope}}}"))?,
        None => {
            let rest = params.strip_prefix('{')?;
            let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
            format!("{{\"meta\":{{\"scope\":{scope}}}{comma}{rest}")
        }
    };
    RawValue::from_string(text).ok()
}

/// The pattern of a folder and all below it.
pub fn pattern_below(folder: &str) -> String {
    format!("{}/**", escape_pattern(folder.trim_end_matches('/')))
}

/// The pattern of one folder alone, whatever characters its name has.
pub fn escape_pattern(folder: &str) -> String {
    let plain = |c: char| if "*?[]{}".contains(c) { format!("[{c}]") } else { c.to_string() };
    folder.chars().map(plain).collect()
}

/// Explains to the caller that the stored hint was limited.
pub fn explain_limit(repo: &str, how_else: &str) -> String {
    format!("it applies in {repo} alone, as it was stored there without a scope; {how_else} stores it for everywhere")
}

/// Returns a result with one more member at its end.
pub fn with_member(result: &RawValue, name: &str, value: &Value) -> Option<Box<RawValue>> {
    let rest = result.get().trim_end().strip_suffix('}')?;
    let comma = if rest.trim_end().ends_with('{') { "" } else { "," };
    RawValue::from_string(format!("{rest}{comma}{}:{value}}}", Value::from(name))).ok()
}

/// The members of an object; `None` for anything else, and when a name occurs twice.
fn read_members(json: &str) -> Option<Vec<(String, &RawValue)>> {
    let members = wire::read_members(json).ok()?;
    let twice =
        |(index, (name, _)): (usize, &(String, &RawValue))| members[..index].iter().any(|(known, _)| known == name);
    if members.iter().enumerate().any(twice) { None } else { Some(members) }
}

fn find_member<'a>(members: &[(String, &'a RawValue)], name: &str) -> Option<&'a str> {
    members.iter().find(|(known, _)| known == name).map(|(_, value)| value.get())
}

/// Returns true for a value that counts as not given (semantics section 5).
fn is_nothing(json: &str) -> bool {
    let mut text = json.chars().filter(|c| !c.is_ascii_whitespace());
    let head: String = text.by_ref().take(5).collect();
    matches!(&*head, "null" | "[]" | "{}")
}

/// Replaces `part`, which is borrowed from `whole`.
fn replace_part(whole: &str, part: &str, replacement: &str) -> Option<String> {
    let from = part.as_ptr().addr().checked_sub(whole.as_ptr().addr())?;
    Some(format!("{}{replacement}{}", whole.get(..from)?, whole.get(from + part.len()..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_open_is_limited_and_the_rest_stays_as_it_is() {
        let scope = r#""scope":{"repo":"h/o/r"}"#;
        for (params, limited_to) in [
            (r#"{"value": 1.0}"#, format!(r#"{{"meta":{{{scope}}},"value": 1.0}}"#)),
            (r#"{"meta":null,"z":1}"#, format!(r#"{{"meta":{{{scope}}},"z":1}}"#)),
            (r#"{"meta":{ },"z":1}"#, format!(r#"{{"meta":{{{scope}}},"z":1}}"#)),
            (r#"{"z":1,"meta":{"ttl":"PT1H"}}"#, format!(r#"{{"z":1,"meta":{{{scope},"ttl":"PT1H"}}}}"#)),
            (r#"{"meta":{"scope":{},"a":1}}"#, format!(r#"{{"meta":{{{scope},"a":1}}}}"#)),
            (r#"{"meta":{"scope":{"os":[],"repo":null}}}"#, format!(r#"{{"meta":{{{scope}}}}}"#)),
            (r#"{"variant":null,"reach":null}"#, format!(r#"{{"meta":{{{scope}}},"variant":null,"reach":null}}"#)),
        ] {
            assert!(is_open(params), "{params}");
            assert_eq!(limit_to_repository(params, "h/o/r").unwrap().get(), limited_to, "{params}");
        }
        for given in [
            r#"{"variant":""}"#,
            r#"{"reach":"everywhere"}"#,
            r#"{"reach":7}"#,
            r#"{"meta":{"scope":{"os":"linux"}}}"#,
            r#"{"meta":{"scope":7}}"#,
            r#"{"meta":{},"meta":{}}"#,
            r#"{"meta":7}"#,
            "[]",
            "7",
        ] {
            assert!(!is_open(given), "{given}");
        }
    }

    #[test]
    fn an_answer_gets_one_more_member() {
        let result = |text: &str| RawValue::from_string(text.into()).unwrap();
        assert_eq!(with_member(&result(r#"{"a":1}"#), "b", &"x".into()).unwrap().get(), r#"{"a":1,"b":"x"}"#);
        assert_eq!(with_member(&result("{ }"), "b", &1.into()).unwrap().get(), r#"{ "b":1}"#);
    }
}
