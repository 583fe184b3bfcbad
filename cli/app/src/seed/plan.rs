//! Plans which hints a clone's seeds add, refresh and remove. The plan reads no file and calls no server.

use std::collections::{BTreeMap, BTreeSet};

use nudge_core::text::to_hex;
use nudge_core::wire::object_members;
use nudge_seed::Seed;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

/// The author (`added_by`) of the hints.
pub const ADDED_BY: &str = "nudge seed";
/// The confidence in a command that has not run yet.
const CONFIDENCE: f64 = 0.6;
/// The priority of a seed. It is lower than that of other hints until the command has worked, because the agent can
/// also read the command in the repository's file (semantics section 10).
const PRIORITY: u8 = 2;

/// The hints that were made from a clone's files, by component and key.
pub type Made = BTreeMap<String, BTreeMap<String, SeedSource>>;

/// The origin of a hint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeedSource {
    /// The short hash of command and reason when the hint was made. Another hash today means that the hint was changed.
    pub mark: String,
    /// The file that names the command, relative to the top.
    pub file: String,
    /// True when a user changed the hint and the file now names another command or none. The changed hint then stays.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_other: bool,
    /// True when a user or an agent deleted the hint. Later sessions do not make it again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_deleted: bool,
}

/// A hint that a clone's files ask for.
#[derive(Debug, Clone, PartialEq)]
pub struct WantedSeed {
    /// The short name of the repository, or the folder below its top.
    pub component: String,
    /// The format of the file, and the command's name in the file.
    pub key: String,
    /// The command line.
    pub command: String,
    reason: String,
    tags: Vec<String>,
    folder: String,
    file: String,
}

/// The fields of a stored hint that the plan needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSeed {
    /// The component.
    pub component: String,
    /// The key.
    pub key: String,
    /// The variant.
    pub variant: String,
    /// The hint's hash ([`hash_seed`]); `None` if no seed could have made the hint.
    pub mark: Option<String>,
}

/// The changes that a refresh makes.
#[derive(Debug, Default, PartialEq)]
pub struct SeedPlan {
    /// New or changed hints.
    pub set: Vec<WantedSeed>,
    /// Hints whose command is gone from the files.
    pub delete: Vec<StoredSeed>,
    /// The names of hints that a person or an agent changed or deleted; the plan leaves them as they are.
    pub left: Vec<(String, String)>,
    /// The origins of all hints to note after the refresh, by component and key.
    pub made: Made,
}

impl WantedSeed {
    /// Makes hints of a repository's seeds. The component is the seed's folder, or the repository's short name in the
    /// top folder.
    pub fn from_seeds(name: &str, seeds: &[Seed]) -> Vec<Self> {
        let to_wanted = |seed: &Seed| Self {
            component: if seed.folder.is_empty() { name.to_owned() } else { seed.folder.clone() },
            key: seed.key.clone(),
            command: seed.command.clone(),
            reason: format!("{}:{}: {}", seed.file, seed.line, seed.about),
            tags: seed.tags.clone(),
            folder: seed.folder.clone(),
            file: seed.file.clone(),
        };
        seeds.iter().map(to_wanted).collect()
    }

    /// Returns the params of `nudge.set_hint`.
    pub fn to_params(&self, repo: &str) -> Map<String, Value> {
        let mut scope = json!({"repo": repo});
        if !self.folder.is_empty() {
            let folder = crate::reach::escape_pattern(&self.folder);
            scope["cwd_glob"] = json!([format!("**/{folder}/**")]);
        }
        object_members(json!({
            "component": self.component,
            "key": self.key,
            "value": {"type": "command", "cmd": self.command},
            "meta": {
                "reason": self.reason,
                "tags": self.tags,
                "confidence": CONFIDENCE,
                "priority": PRIORITY,
                "source": "file-import",
                "added_by": ADDED_BY,
                "scope": scope,
                // The session is long enough, because the next session reads the files again.
                "ttl": "session",
            },
        }))
    }

    fn compute_mark(&self) -> String {
        hash_mark(&self.command, &self.reason)
    }

    fn source(&self) -> SeedSource {
        SeedSource { mark: self.compute_mark(), file: self.file.clone(), ..SeedSource::default() }
    }

    /// Returns the reason: file, line and text of the command.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

impl StoredSeed {
    /// Reads a hint from an item of `nudge.query`'s answer. Returns `None` if a name is missing.
    pub fn from_hint(hint: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let is_ours = hint["meta"]["added_by"] == ADDED_BY;
        let mark = hash_seed(&hint["value"], &hint["meta"]).filter(|_| is_ours);
        Some(Self {
            component: text(&hint["component"])?,
            key: text(&hint["key"])?,
            variant: text(&hint["variant"]).unwrap_or_default(),
            mark,
        })
    }
}

/// Returns the hash of a hint by its value and meta. Returns `None` when no seed has such a value.
pub fn hash_seed(value: &Value, meta: &Value) -> Option<String> {
    Some(hash_mark(value["cmd"].as_str()?, meta["reason"].as_str()?))
}

/// Returns the first 8 bytes of the SHA-256 of a hint's command and reason, in hexadecimal.
fn hash_mark(command: &str, reason: &str) -> String {
    to_hex(&Sha256::digest(format!("{command}\0{reason}").as_bytes())[..8])
}

/// Plans the changes. `made` has the hints of the last refresh. `begins_anew` is true for a session that has not read
/// the clone's files yet: it has only those seeds that were kept.
pub fn plan_changes(wanted: Vec<WantedSeed>, stored: &[StoredSeed], made: &Made, begins_anew: bool) -> SeedPlan {
    let source_of = |component: &str, key: &str| made.get(component).and_then(|keys| keys.get(key));
    let find_stored = |component: &str, key: &str| {
        stored.iter().filter(|seed| seed.component == component && seed.key == key).collect::<Vec<_>>()
    };
    let is_untouched = |seed: &StoredSeed| {
        source_of(&seed.component, &seed.key).is_some_and(|source| seed.mark.as_ref() == Some(&source.mark))
    };
    let mut plan = SeedPlan::default();
    let mut names = BTreeSet::new();
    for seed in wanted {
        names.insert((seed.component.clone(), seed.key.clone()));
        let there = find_stored(&seed.component, &seed.key);
        // If the session had the hint, a missing hint was deleted.
        let may_be_missing =
            source_of(&seed.component, &seed.key).is_none_or(|source| begins_anew && !source.is_deleted);
        let is_made = there.iter().any(|stored| stored.mark == Some(seed.compute_mark()));
        let may_be_set =
            is_made || there.iter().any(|stored| is_untouched(stored)) || (there.is_empty() && may_be_missing);
        if !may_be_set {
            plan.left.push((seed.component.clone(), seed.key.clone()));
            // A deleted hint stays deleted, and a changed hint stays as the user left it.
            if let Some(source) = source_of(&seed.component, &seed.key) {
                let is_other = source.mark != seed.compute_mark();
                let source = SeedSource { is_other, ..source.clone() };
                plan.made.entry(seed.component).or_default().insert(seed.key, source);
            }
            continue;
        }
        plan.made.entry(seed.component.clone()).or_default().insert(seed.key.clone(), seed.source());
        if !is_made {
            plan.set.push(seed);
        }
    }
    let is_gone =
        |seed: &&StoredSeed| is_untouched(seed) && !names.contains(&(seed.component.clone(), seed.key.clone()));
    plan.delete = stored.iter().filter(is_gone).cloned().collect();
    // A changed hint stays noted, as long as it is stored, even after its command is gone from the files.
    for seed in stored.iter().filter(|seed| !is_untouched(seed)) {
        let is_wanted = names.contains(&(seed.component.clone(), seed.key.clone()));
        if let Some(source) = source_of(&seed.component, &seed.key).filter(|_| !is_wanted) {
            let source = SeedSource { is_other: true, ..source.clone() };
            plan.made.entry(seed.component.clone()).or_default().insert(seed.key.clone(), source);
        }
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(key: &str, command: &str) -> WantedSeed {
        let text = |text: &str| text.to_owned();
        WantedSeed {
            component: text("shop"),
            key: text(key),
            command: text(command),
            reason: text("Makefile:1: x"),
            tags: Vec::new(),
            folder: String::new(),
            file: text("Makefile"),
        }
    }

    fn stored(key: &str, command: &str, added_by: &str) -> StoredSeed {
        StoredSeed::from_hint(
            &json!({"component": "shop", "key": key, "variant": "v", "value": {"type": "command", "cmd": command},
            "meta": {"added_by": added_by, "reason": "Makefile:1: x"}}),
        )
        .unwrap()
    }

    fn done(plan: &SeedPlan) -> String {
        let set = plan.set.iter().map(|seed| format!("+{} {}", seed.key, seed.command));
        let delete = plan.delete.iter().map(|seed| format!("-{}", seed.key));
        let left = plan.left.iter().map(|(_, key)| format!("={key}"));
        set.chain(delete).chain(left).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn what_nobody_touched_follows_its_source() {
        let first = plan_changes(vec![wanted("a", "make a"), wanted("b", "make b")], &[], &Made::default(), true);
        assert_eq!(done(&first), "+a make a, +b make b");
        let both = [stored("a", "make a", ADDED_BY), stored("b", "make b", ADDED_BY)];
        for (what, asked, there, expected) in [
            ("nothing changed", vec![wanted("a", "make a"), wanted("b", "make b")], &both[..], ""),
            ("one is other now", vec![wanted("a", "make A"), wanted("b", "make b")], &both, "+a make A"),
            ("one is gone", vec![wanted("a", "make a")], &both, "-b"),
            (
                "one is new",
                vec![wanted("a", "make a"), wanted("b", "make b"), wanted("c", "make c")],
                &both,
                "+c make c",
            ),
            ("a session without them", vec![wanted("a", "make a"), wanted("b", "make b")], &[], "+a make a, +b make b"),
            ("one was deleted", vec![wanted("a", "make a"), wanted("b", "make b")], &both[..1], "=b"),
        ] {
            let begins_anew = there.is_empty();
            assert_eq!(done(&plan_changes(asked, there, &first.made, begins_anew)), expected, "{what}");
        }
        let changed = [stored("a", "make a -j8", "user"), stored("b", "make b", ADDED_BY)];
        let next = plan_changes(vec![wanted("a", "make A")], &changed, &first.made, false);
        assert_eq!(done(&next), "-b, =a", "what somebody changed is left alone");
        let left = plan_changes(vec![wanted("a", "make A"), wanted("b", "make b")], &changed[..1], &first.made, false);
        assert_eq!(done(&left), "=a, =b", "one was changed, the other deleted");
        assert!(next.made["shop"]["a"].is_other, "its file says something else now");
        let again = plan_changes(vec![wanted("a", "make A")], &changed[..1], &next.made, false);
        assert_eq!(done(&again), "=a");
        let as_before = plan_changes(vec![wanted("a", "make a")], &changed[..1], &again.made, false);
        assert!(!as_before.made["shop"]["a"].is_other, "its file says what it said when the hint was made");
        let gone = plan_changes(Vec::new(), &changed[..1], &again.made, false);
        assert!(gone.made["shop"]["a"].is_other, "its file names it no longer");
        assert_eq!(plan_changes(Vec::new(), &[], &gone.made, false).made, Made::default(), "nor is it stored");
        let edited = [stored("a", "make a -j8", ADDED_BY)];
        assert_eq!(
            done(&plan_changes(vec![wanted("a", "make A")], &edited, &first.made, false)),
            "=a",
            "by a tool that keeps the name"
        );
        assert_eq!(
            done(&plan_changes(vec![wanted("a", "make x")], &[stored("a", "x", "user")], &Made::default(), true)),
            "=a"
        );
    }
    #[test]
    fn a_deleted_seed_stays_away_in_later_sessions() {
        let both = || vec![wanted("a", "make a"), wanted("b", "make b")];
        let mut made = plan_changes(both(), &[], &Made::default(), true).made;
        assert_eq!(done(&plan_changes(both(), &[], &made, false)), "=a, =b", "also when all were deleted");
        made.get_mut("shop").unwrap().get_mut("b").unwrap().is_deleted = true;
        let next = plan_changes(both(), &[], &made, true);
        assert_eq!(done(&next), "+a make a, =b");
        assert!(next.made["shop"]["b"].is_deleted && !next.made["shop"]["a"].is_deleted);
        let used = [stored("a", "make a", ADDED_BY)];
        assert_eq!(done(&plan_changes(both(), &used, &made, true)), "=b", "a hint that was kept with its counts stays");
        assert_eq!(done(&plan_changes(Vec::new(), &used, &made, true)), "-a", "and goes with its source");
        let back = plan_changes(both(), &[stored("b", "make b", ADDED_BY)], &made, true);
        assert!(!back.made["shop"]["b"].is_deleted, "an undo brought it back");
    }
}
