//! Reads the database of kept hints, as a command does while no server runs.
#![allow(dead_code, reason = "each binary of tests uses a part")]

use std::path::Path;

use nudge_app::kept::database::{StoredHint, read_alone};
use serde_json::Value;

/// Returns the hints of the database at this path, also those that wait. There are none without a database.
pub fn read_hints(database: &Path) -> Vec<StoredHint> {
    read_alone(database).unwrap().unwrap_or_default()
}

/// Returns the keys of the hints that do not wait, in the order of their names.
pub fn list_keys(database: &Path) -> Vec<String> {
    let mut names: Vec<_> = read_hints(database).into_iter().filter(|hint| !hint.waits).map(|hint| hint.name).collect();
    names.sort();
    names.into_iter().map(|name| name.key).collect()
}

/// Returns a kept hint as JSON; null if it is not kept.
pub fn find_hint(database: &Path, key: &str) -> Value {
    let found = read_hints(database).into_iter().find(|hint| hint.name.key == key);
    found.map_or(Value::Null, |hint| serde_json::from_str(&hint.body).unwrap())
}
