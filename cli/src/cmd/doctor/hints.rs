//! `nudge doctor --hints`: finds stored hints that are no longer useful, with advice on each.

use std::collections::BTreeMap;
use std::path::Path;

use nudge::{DOUBTFUL_FAILURES, HintValue, Millis, Result, parse_time};
use nudge_app::checkout::{AgentCheckout, Others};
use nudge_app::context::ContextInference;
use nudge_app::seed;
use nudge_client::process_cwd;
use nudge_core::clock::{Clock as _, SystemClock};
use serde_json::{Map, Value, json};

use crate::args::GlobalFlags;
use crate::cmd::{CommandOutput, RunningSession, parse_value};
use crate::output;

/// The age, in milliseconds, from which on a hint without any use is reported.
const UNUSED_MS: Millis = 30 * 24 * 3600 * 1000;

/// A defect of a hint, with advice.
#[derive(Debug, PartialEq, Eq)]
struct HintFinding {
    component: String,
    key: String,
    what: String,
    fix: String,
}

pub fn run(global: &GlobalFlags) -> Result<CommandOutput> {
    let session = RunningSession::open(global)?;
    let export: Value = parse_value(&session.call("nudge.export", &Map::new())?)?;
    let top = process_cwd().and_then(|cwd| seed::top_of(&cwd));
    let repo = top.as_deref().and_then(|top| ContextInference::default().find_repository(top));
    let here = top.as_deref().zip(repo.as_deref());
    let hints = read_exported(&export["payload"]);
    let others = AgentCheckout::from_cwd(top.as_deref()).find_changed();
    let found = find_faults(&hints, here, SystemClock.now(), &others, &|path| path.symlink_metadata().is_ok());
    if global.json {
        let rows: Vec<_> = found
            .iter()
            .map(|finding| json!({"component": finding.component, "key": finding.key, "what": finding.what, "fix": finding.fix}))
            .collect();
        return Ok(format!("{}\n", json!({"hints": hints.len(), "findings": rows})).into());
    }
    if found.is_empty() {
        let count = hints.len();
        return Ok(format!("{count} hints, all of which could be of use\n").into());
    }
    let rows = found.iter().map(|finding| [finding.component.as_str(), &finding.key, &finding.what, &finding.fix]);
    Ok(output::render_findings(rows).into())
}

/// An exported hint.
struct ExportedHint<'a> {
    component: &'a str,
    key: &'a str,
    hint: &'a Value,
    /// True when the key has other variants.
    is_one_of_several: bool,
}

fn read_exported<'a>(payload: &'a Value) -> Vec<ExportedHint<'a>> {
    let mut all = Vec::new();
    for (component, content) in payload["components"].as_object().into_iter().flatten() {
        let variants = content["variants"].as_object();
        let several = |key: &str| variants.is_some_and(|variants| variants.contains_key(key));
        let first = content["hints"].as_object().into_iter().flatten();
        let further = variants.into_iter().flatten();
        let further =
            further.flat_map(|(key, list)| list.as_array().into_iter().flatten().map(move |hint| (key, hint)));
        let to_exported = |(key, hint): (&'a String, &'a Value)| ExportedHint {
            component,
            key,
            hint,
            is_one_of_several: several(key),
        };
        all.extend(first.chain(further).map(to_exported));
    }
    all
}

impl ExportedHint<'_> {
    fn delete_command(&self) -> String {
        let which = if self.is_one_of_several { " --variant ID (`nudge ls` has it)" } else { "" };
        format!("nudge delete {} {}{which}", quote_name(self.component), quote_name(self.key))
    }

    fn read_value(&self) -> Option<HintValue> {
        serde_json::from_value(self.hint["value"].clone()).ok()
    }

    /// Returns true for a hint that is limited to this repository alone.
    fn is_of(&self, repo: &str) -> bool {
        let given = &self.hint["meta"]["scope"]["repo"];
        given == repo || given.as_array().is_some_and(|list| list.len() == 1 && list[0] == repo)
    }
}

/// Quotes a name as a single word for a shell, if that is necessary.
fn quote_name(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./:@%+,=".contains(c);
    if name.chars().all(is_plain) { name.to_owned() } else { format!("'{}'", name.replace('\'', r"'\''")) }
}

/// Finds the defects, sorted by the hints' names. Reports at most one defect for each hint.
fn find_faults(
    hints: &[ExportedHint<'_>],
    here: Option<(&Path, &str)>,
    now: Millis,
    others: &Others,
    is_there: &dyn Fn(&Path) -> bool,
) -> Vec<HintFinding> {
    let mut seen: BTreeMap<String, &ExportedHint<'_>> = BTreeMap::new();
    let mut found = Vec::new();
    for exported in hints {
        let (hint, value) = (exported.hint, exported.read_value());
        let same = value.as_ref().and_then(HintValue::command_line).map(|line| {
            format!("{}\0{}", line.split_whitespace().collect::<Vec<_>>().join(" "), hint["meta"]["scope"])
        });
        let double = same
            .as_ref()
            .and_then(|same| seen.get(same))
            .map(|first| format!("the same as {} {}", first.component, first.key));
        if let (Some(same), None) = (same, &double) {
            seen.insert(same, exported);
        }
        let gone = here.filter(|(_, repo)| exported.is_of(repo)).and_then(|(top, _)| {
            let paths: Vec<_> = value.iter().flat_map(HintValue::paths).collect();
            let is_gone = |path: &&String| !is_there(&top.join(path)) && !is_there_below(top, hint, path, is_there);
            let gone = paths.iter().find(is_gone).map(|path| format!("{path} is not in this clone"));
            let target = || {
                let folders: Vec<_> =
                    folders_below(hint).map(|folder| top.join(folder)).chain([top.to_owned()]).collect();
                let gone = nudge_seed::find_gone(&folders, value.as_ref()?.command_line()?)?;
                Some(format!("{} has no {}", gone.file, gone.target))
            };
            gone.or_else(target)
        });
        let other = here.filter(|(_, repo)| exported.is_of(repo)).and_then(|_| {
            others
                .get(&format!("{}/{}", exported.component, exported.key))
                .map(|file| format!("{file} says something else now"))
        });
        let failures = hint["failure_count"].as_u64().filter(|count| *count >= u64::from(DOUBTFUL_FAILURES));
        let doubtful = failures.map(|count| format!("failed {count} times in a row"));
        let age = hint["created_at"].as_str().and_then(parse_time).map(|created_at| now.saturating_sub(created_at));
        let is_used = hint["use_count"].as_u64().is_some_and(|count| count > 0);
        let is_unused = !is_used && age.is_some_and(|age| age > UNUSED_MS);
        let unused = is_unused.then(|| "never used in 30 days".to_owned());
        let what = gone.or_else(|| find_unreachable(hint, is_there)).or(doubtful).or(other).or(double).or(unused);
        found.extend(what.map(|what| HintFinding {
            component: exported.component.to_owned(),
            key: exported.key.to_owned(),
            what,
            fix: exported.delete_command(),
        }));
    }
    found
}

/// Lists the folders below the repository's top that a hint's scope names.
fn folders_below(hint: &Value) -> impl Iterator<Item = &str> {
    let globs = hint["meta"]["scope"]["cwd_glob"].as_array().into_iter().flatten().filter_map(Value::as_str);
    globs.filter_map(|glob| glob.strip_prefix("**/")).map(|glob| glob.trim_end_matches("/**"))
}

/// Returns true when one of the scope's folders contains the path.
fn is_there_below(top: &Path, hint: &Value, path: &str, is_there: &dyn Fn(&Path) -> bool) -> bool {
    folders_below(hint).any(|folder| is_there(&top.join(folder).join(path)))
}

/// Returns the scope's folders if none of them exists in this checkout.
fn find_unreachable(hint: &Value, is_there: &dyn Fn(&Path) -> bool) -> Option<String> {
    let globs: Vec<&str> = hint["meta"]["scope"]["cwd_glob"].as_array()?.iter().filter_map(Value::as_str).collect();
    let literal = |glob: &&str| {
        glob.find(['*', '?', '[', '{']).map_or(glob.len(), |offset| glob[..offset].rfind('/').unwrap_or(0))
    };
    let is_nowhere = |glob: &&str| {
        let folder = Path::new(&glob[..literal(glob)]);
        folder.is_absolute() && !is_there(folder)
    };
    (!globs.is_empty() && globs.iter().all(is_nowhere)).then(|| format!("no folder is {}", globs.join(" or ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_of_no_use_is_found() {
        let hint = |value: Value, scope: Value, more: Value| {
            let mut hint = json!({"value": value, "meta": {"scope": scope}, "created_at": "2026-11-20T00:00:00.000Z"});
            hint.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            hint
        };
        let command = |line: &str| json!({"type": "command", "cmd": line});
        let (shop, none) = (json!({"repo": "h/o/shop"}), json!({}));
        let payload = json!({"components": {"a": {"hints": {
            "fine": hint(command("./build.sh"), shop.clone(), none.clone()),
            "gone": hint(command("./old.sh --all"), shop.clone(), none.clone()),
            "elsewhere": hint(command("./old.sh --some"), json!({"repo": "h/o/x"}), none.clone()),
            "double": hint(command("./build.sh"), shop.clone(), none.clone()),
            "failing": hint(command("make x"), shop.clone(), json!({"failure_count": 3})),
            "unused": hint(json!("x"), none.clone(), json!({"created_at": "2026-01-01T00:00:00.000Z"})),
            "used": hint(json!("y"), none.clone(), json!({"created_at": "2026-01-01T00:00:00.000Z", "use_count": 2})),
            "nowhere": hint(json!("z"), json!({"cwd_glob": ["/no/such/**"]}), none.clone()),
            "glob": hint(json!("z"), json!({"cwd_glob": ["**/web", "/no/such"]}), none.clone()),
            "edited": hint(command("make y"), shop.clone(), none.clone()),
            "of web": hint(command("./web.sh"), json!({"repo": "h/o/shop", "cwd_glob": ["**/web/**"]}), none.clone()),
        }, "variants": {"gone": [hint(command("./older.sh"), shop, none)]}}}});
        let is_there = |path: &Path| ["/r/build.sh", "/r/web/web.sh"].iter().any(|there| path == Path::new(there));
        let now = parse_time("2026-11-24T00:00:00.000Z").unwrap();
        let others = Others::from([("a/edited".to_owned(), "Makefile".to_owned())]);
        let found = find_faults(&read_exported(&payload), Some((Path::new("/r"), "h/o/shop")), now, &others, &is_there);
        let lines: Vec<_> =
            found.iter().map(|finding| format!("{}: {} | {}", finding.key, finding.what, finding.fix)).collect();
        for expected in [
            "gone: old.sh is not in this clone | nudge delete a gone --variant ID (`nudge ls` has it)",
            "gone: older.sh is not in this clone | nudge delete a gone --variant ID (`nudge ls` has it)",
            "failing: failed 3 times in a row | nudge delete a failing",
            "unused: never used in 30 days | nudge delete a unused",
            "edited: Makefile says something else now | nudge delete a edited",
            "nowhere: no folder is /no/such/** | nudge delete a nowhere",
        ] {
            assert!(lines.iter().any(|line| line == expected), "{expected}: {lines:#?}");
        }
        assert!(lines.iter().any(|line| line.contains("the same as a ")), "{lines:#?}");
        assert_eq!(lines.len(), 7, "{lines:#?}");
    }
}
