//! Formats the answers of the brain for the command line.

use nudge_core::report::{AnswerReport, format_value, list_members};
use serde_json::Value;

/// Reports the units that a search found.
pub fn report_found(answer: &Value) -> AnswerReport {
    let mut notes: Vec<_> = list_members(&answer["degraded"]).iter().map(format_value).collect();
    let units = list_members(&answer["units"]);
    if units.is_empty() {
        notes
            .push("`nudge brain list` shows what there is, `nudge brain add TITLE BODY` writes what is missing".into());
        return AnswerReport { lines: vec!["nothing found".to_owned()], notes, ..AnswerReport::default() };
    }
    if answer["weak"] == true {
        notes.push("perhaps none of this has to do with it".to_owned());
    }
    if let Some(said) = answer.get("answer") {
        return report_answer(said, notes);
    }
    let mut lines = Vec::new();
    for unit in units {
        let [title, path, score, why] = ["title", "path", "score", "why"].map(|name| format_value(&unit[name]));
        let what: Vec<_> = ["type", "domain"]
            .map(|name| format_value(&unit[name]))
            .into_iter()
            .filter(|word| !word.is_empty())
            .collect();
        lines.push(format!("{title}  ({})", what.join(", ")));
        if !unit["explain"].is_null() {
            notes.push(format!("{title}: {score}, {why}"));
        }
        for section in list_members(&unit["sections"]) {
            let place =
                format!("  {path}:{}  {}", format_value(&section["lines"]), format_value(&section["breadcrumb"]));
            lines.push(place.trim_end().to_owned());
            lines
                .extend(format_value(&section["text"]).lines().map(|line| format!("  > {line}").trim_end().to_owned()));
        }
        lines.push(String::new());
    }
    for unit in list_members(&answer["related"]) {
        let [title, path, relation, via] = ["title", "path", "relation", "via"].map(|name| format_value(&unit[name]));
        lines.push(format!("related: {title}  ({path}; {relation}, by {via})"));
    }
    if lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    AnswerReport { lines, notes, ..AnswerReport::default() }
}

/// Reports the answer of a language model.
fn report_answer(said: &Value, mut notes: Vec<String>) -> AnswerReport {
    let mut lines: Vec<_> = format_value(&said["text"]).lines().map(str::to_owned).collect();
    lines.push(String::new());
    for unit in list_members(&said["cites"]) {
        let [id, title, path] = ["id", "title", "path"].map(|name| format_value(&unit[name]));
        lines.push(format!("[{id}] {title}  ({path})"));
    }
    let unknown: Vec<_> = list_members(&said["unknown"]).iter().map(format_value).collect();
    if !unknown.is_empty() {
        notes.push(format!("the answer cites what is no unit here, so do not rely on it: {}", unknown.join(", ")));
    } else if list_members(&said["cites"]).is_empty() {
        notes.push("the answer cites no unit, so do not rely on it".to_owned());
    }
    AnswerReport { lines, notes, ..AnswerReport::default() }
}

/// Reports one unit.
pub fn report_unit(answer: &Value) -> AnswerReport {
    let unit = &answer["unit"];
    let head =
        ["id", "path", "type", "domain", "tags", "confidence"].into_iter().filter(|name| !is_empty(&unit[*name]));
    let mut lines = vec![format_value(&unit["title"])];
    lines.extend(head.map(|name| format!("  {name}: {}", format_value(&unit[name]))));
    for (name, sign) in [("related", "→"), ("backlinks", "←")] {
        let link = |link: &Value| {
            format!(
                "  {sign} {} ({}, {})",
                format_value(&link["title"]),
                format_value(&link["relation"]),
                format_value(&link["id"])
            )
        };
        lines.extend(list_members(&answer[name]).iter().map(link));
    }
    lines.push(String::new());
    lines.extend(format_value(&answer["body"]).lines().map(str::to_owned));
    AnswerReport { lines, ..AnswerReport::default() }
}

/// Reports a list of units.
pub fn report_list(answer: &Value) -> AnswerReport {
    let units = list_members(&answer["units"]);
    if units.is_empty() {
        return AnswerReport::from_line("no units here");
    }
    let row = |unit: &Value| ["title", "path", "type", "domain", "tags"].map(|name| format_value(&unit[name])).into();
    let more = answer["next"].as_str().map(|next| format!("more: `--after '{next}'`"));
    AnswerReport {
        columns: &["TITLE", "PATH", "TYPE", "DOMAIN", "TAGS"],
        rows: units.iter().map(row).collect(),
        notes: more.into_iter().collect(),
        ..AnswerReport::default()
    }
}

/// Reports a new brain.
pub fn report_init(answer: &Value) -> AnswerReport {
    let root = format_value(&answer["root"]);
    let line = match list_members(&answer["made"]) {
        [] => format!("✔ {root} is a brain already, of {} units", format_value(&answer["units"])),
        made => format!("✔ made {} in {root}", made.iter().map(format_value).collect::<Vec<_>>().join(" and ")),
    };
    let dir = if root.contains([' ', '\'']) { format!("'{}'", root.replace('\'', r"'\''")) } else { root };
    let yours = (answer["is_yours"] != true)
        .then(|| format!("`nudge brain use {dir}` makes it the one that is asked wherever you are"));
    let next = if answer["units"] == 0 {
        "`nudge brain add TITLE BODY` writes a first unit; so does any editor"
    } else {
        "`nudge ask WORDS` asks it, `nudge brain check` says what is wrong in it"
    };
    AnswerReport { notes: yours.into_iter().chain([next.to_owned()]).collect(), ..AnswerReport::from_line(line) }
}

/// Reports a unit that was added.
pub fn report_added(answer: &Value) -> AnswerReport {
    let [id, path] = ["id", "path"].map(|name| format_value(&answer[name]));
    let line = if answer["created"] == true {
        format!("✔ wrote {path} ({id})")
    } else {
        format!("- {path} is there already ({id})")
    };
    let similar = list_members(&answer["similar"]).iter();
    let notes = similar
        .map(|unit| format!("similar: {} ({})", format_value(&unit["title"]), format_value(&unit["id"])))
        .collect();
    AnswerReport { notes, ..AnswerReport::from_line(line) }
}

/// Reports a field that was set.
pub fn report_set(answer: &Value) -> AnswerReport {
    let mut lines = vec![format!("✔ {}", format_value(&answer["path"]))];
    lines.extend(format_value(&answer["diff"]).lines().map(str::to_owned));
    AnswerReport { lines, ..AnswerReport::default() }
}

/// Reports the result of a check.
pub fn report_check(answer: &Value) -> AnswerReport {
    let problems = list_members(&answer["problems"]);
    let folders: Vec<_> = list_members(&answer["other_folders"]).iter().map(format_value).collect();
    let not_read = format!("not read, by the names of these folders: {}", folders.join(", "));
    let notes = if folders.is_empty() { Vec::new() } else { vec![not_read] };
    if problems.is_empty() {
        let line = format!("✔ nothing is wrong with {} units", format_value(&answer["units"]));
        return AnswerReport { notes, ..AnswerReport::from_line(line) };
    }
    let row = |problem: &Value| ["path", "kind", "text"].map(|name| format_value(&problem[name])).into();
    AnswerReport {
        columns: &["PATH", "KIND", "PROBLEM"],
        rows: problems.iter().map(row).collect(),
        notes,
        ..AnswerReport::default()
    }
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_in_a_persons_words() {
        for (told, line) in [
            (report_found(&json!({"units": []})), "nothing found"),
            (report_list(&json!({"units": []})), "no units here"),
            (report_check(&json!({"problems": [], "units": 3})), "✔ nothing is wrong with 3 units"),
            (report_added(&json!({"id": "7", "path": "a.md", "created": true})), "✔ wrote a.md (7)"),
            (report_added(&json!({"id": "7", "path": "a.md", "created": false})), "- a.md is there already (7)"),
            (report_init(&json!({"root": "/b", "made": [], "units": 2})), "✔ /b is a brain already, of 2 units"),
        ] {
            assert_eq!(told.lines, [line]);
        }
        let section = json!({"breadcrumb": "A > B", "text": "x\ny", "lines": "3-4"});
        let unit = json!({"title": "A", "path": "a.md", "domain": "general", "score": 0.5, "sections": [section]});
        let told = report_found(&json!({"units": [unit], "weak": true, "degraded": ["why"]}));
        assert_eq!(told.lines, ["A  (general)", "  a.md:3-4  A > B", "  > x", "  > y"]);
        assert_eq!(told.notes, ["why", "perhaps none of this has to do with it"]);
    }
}
