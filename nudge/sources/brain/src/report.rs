//! Prints the answers of the brain on the command line.

use nudge_core::report::{Report, list, text};
use serde_json::Value;

/// Reports the units that were found.
pub fn found(answer: &Value) -> Report {
    let mut notes: Vec<_> = list(&answer["degraded"]).iter().map(text).collect();
    let units = list(&answer["units"]);
    if units.is_empty() {
        notes
            .push("`nudge brain list` shows what there is, `nudge brain add TITLE BODY` writes what is missing".into());
        return Report { lines: vec!["nothing found".to_owned()], notes, ..Report::default() };
    }
    if answer["weak"] == true {
        notes.push("perhaps none of this has to do with it".to_owned());
    }
    if let Some(said) = answer.get("answer") {
        return answered(said, notes);
    }
    let mut lines = Vec::new();
    for unit in units {
        let [title, path, score, why] = ["title", "path", "score", "why"].map(|name| text(&unit[name]));
        let what: Vec<_> =
            ["type", "domain"].map(|name| text(&unit[name])).into_iter().filter(|word| !word.is_empty()).collect();
        lines.push(format!("{title}  ({})", what.join(", ")));
        if !unit["explain"].is_null() {
            notes.push(format!("{title}: {score}, {why}"));
        }
        for section in list(&unit["sections"]) {
            let place = format!("  {path}:{}  {}", text(&section["lines"]), text(&section["breadcrumb"]));
            lines.push(place.trim_end().to_owned());
            lines.extend(text(&section["text"]).lines().map(|line| format!("  > {line}").trim_end().to_owned()));
        }
        lines.push(String::new());
    }
    for unit in list(&answer["related"]) {
        let [title, path, relation, via] = ["title", "path", "relation", "via"].map(|name| text(&unit[name]));
        lines.push(format!("related: {title}  ({path}; {relation}, by {via})"));
    }
    if lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    Report { lines, notes, ..Report::default() }
}

/// Reports the answer of a language model.
fn answered(said: &Value, mut notes: Vec<String>) -> Report {
    let mut lines: Vec<_> = text(&said["text"]).lines().map(str::to_owned).collect();
    lines.push(String::new());
    for unit in list(&said["cites"]) {
        let [id, title, path] = ["id", "title", "path"].map(|name| text(&unit[name]));
        lines.push(format!("[{id}] {title}  ({path})"));
    }
    let unknown: Vec<_> = list(&said["unknown"]).iter().map(text).collect();
    if !unknown.is_empty() {
        notes.push(format!("the answer cites what is no unit here, so do not rely on it: {}", unknown.join(", ")));
    } else if list(&said["cites"]).is_empty() {
        notes.push("the answer cites no unit, so do not rely on it".to_owned());
    }
    Report { lines, notes, ..Report::default() }
}

/// Reports one unit.
pub fn shown(answer: &Value) -> Report {
    let unit = &answer["unit"];
    let head =
        ["id", "path", "type", "domain", "tags", "confidence"].into_iter().filter(|name| !is_empty(&unit[*name]));
    let mut lines = vec![text(&unit["title"])];
    lines.extend(head.map(|name| format!("  {name}: {}", text(&unit[name]))));
    for (name, sign) in [("related", "→"), ("backlinks", "←")] {
        let link = |link: &Value| {
            format!("  {sign} {} ({}, {})", text(&link["title"]), text(&link["relation"]), text(&link["id"]))
        };
        lines.extend(list(&answer[name]).iter().map(link));
    }
    lines.push(String::new());
    lines.extend(text(&answer["body"]).lines().map(str::to_owned));
    Report { lines, ..Report::default() }
}

/// Reports a list.
pub fn listed(answer: &Value) -> Report {
    let units = list(&answer["units"]);
    if units.is_empty() {
        return Report::line("no units here");
    }
    let row = |unit: &Value| ["title", "path", "type", "domain", "tags"].map(|name| text(&unit[name])).into();
    let more = answer["next"].as_str().map(|next| format!("more: `--after '{next}'`"));
    Report {
        columns: &["TITLE", "PATH", "TYPE", "DOMAIN", "TAGS"],
        rows: units.iter().map(row).collect(),
        notes: more.into_iter().collect(),
        ..Report::default()
    }
}

/// Reports a new brain.
pub fn made(answer: &Value) -> Report {
    let root = text(&answer["root"]);
    let line = match list(&answer["made"]) {
        [] => format!("✔ {root} is a brain already, of {} units", text(&answer["units"])),
        made => format!("✔ made {} in {root}", made.iter().map(text).collect::<Vec<_>>().join(" and ")),
    };
    let dir = if root.contains([' ', '\'']) { format!("'{}'", root.replace('\'', r"'\''")) } else { root };
    let yours = (answer["is_yours"] != true)
        .then(|| format!("`nudge brain use {dir}` makes it the one that is asked wherever you are"));
    let next = if answer["units"] == 0 {
        "`nudge brain add TITLE BODY` writes a first unit; so does any editor"
    } else {
        "`nudge ask WORDS` asks it, `nudge brain check` says what is wrong in it"
    };
    Report { notes: yours.into_iter().chain([next.to_owned()]).collect(), ..Report::line(line) }
}

/// Reports a unit that was added.
pub fn added(answer: &Value) -> Report {
    let [id, path] = ["id", "path"].map(|name| text(&answer[name]));
    let line = if answer["created"] == true {
        format!("✔ wrote {path} ({id})")
    } else {
        format!("- {path} is there already ({id})")
    };
    let similar = list(&answer["similar"]).iter();
    let notes = similar.map(|one| format!("similar: {} ({})", text(&one["title"]), text(&one["id"]))).collect();
    Report { notes, ..Report::line(line) }
}

/// Reports a field that was set.
pub fn set(answer: &Value) -> Report {
    let mut lines = vec![format!("✔ {}", text(&answer["path"]))];
    lines.extend(text(&answer["diff"]).lines().map(str::to_owned));
    Report { lines, ..Report::default() }
}

/// Reports a check.
pub fn checked(answer: &Value) -> Report {
    let problems = list(&answer["problems"]);
    if problems.is_empty() {
        return Report::line(format!("✔ nothing is wrong with {} units", text(&answer["units"])));
    }
    let row = |problem: &Value| ["path", "kind", "text"].map(|name| text(&problem[name])).into();
    Report { columns: &["PATH", "KIND", "PROBLEM"], rows: problems.iter().map(row).collect(), ..Report::default() }
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
            (found(&json!({"units": []})), "nothing found"),
            (listed(&json!({"units": []})), "no units here"),
            (checked(&json!({"problems": [], "units": 3})), "✔ nothing is wrong with 3 units"),
            (added(&json!({"id": "7", "path": "a.md", "created": true})), "✔ wrote a.md (7)"),
            (added(&json!({"id": "7", "path": "a.md", "created": false})), "- a.md is there already (7)"),
            (made(&json!({"root": "/b", "made": [], "units": 2})), "✔ /b is a brain already, of 2 units"),
        ] {
            assert_eq!(told.lines, [line]);
        }
        let section = json!({"breadcrumb": "A > B", "text": "x\ny", "lines": "3-4"});
        let unit = json!({"title": "A", "path": "a.md", "domain": "general", "score": 0.5, "sections": [section]});
        let told = found(&json!({"units": [unit], "weak": true, "degraded": ["why"]}));
        assert_eq!(told.lines, ["A  (general)", "  a.md:3-4  A > B", "  > x", "  > y"]);
        assert_eq!(told.notes, ["why", "perhaps none of this has to do with it"]);
    }
}
