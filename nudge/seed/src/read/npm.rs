//! Reads the scripts of `package.json`. The commands use the package manager of the repository.

use serde_json::Value;

use crate::command::CommandLine;
use crate::file::{FoundCommand, SeedFile, Why, iter_members};

/// Files that only one package manager writes, each with the name of that package manager.
const LOCKS: &[(&str, &str)] = &[
    ("pnpm-lock.yaml", "pnpm"),
    ("pnpm-workspace.yaml", "pnpm"),
    ("yarn.lock", "yarn"),
    ("bun.lock", "bun"),
    ("bun.lockb", "bun"),
    ("package-lock.json", "npm"),
    ("npm-shrinkwrap.json", "npm"),
];
/// Scripts that the package manager runs by itself.
const BY_ITSELF: &[&str] = &[
    "install",
    "prepare",
    "prepublish",
    "prepublishOnly",
    "prepack",
    "postpack",
    "dependencies",
    "preinstall",
    "postinstall",
    "preuninstall",
    "uninstall",
    "postuninstall",
    "version",
    "preversion",
    "postversion",
];

pub fn read(file: &SeedFile<'_>) -> Result<Vec<FoundCommand>, Why> {
    let package = file.parse_json()?;
    let named = package["packageManager"].as_str().and_then(|name| name.split('@').next());
    let known = named.and_then(|named| LOCKS.iter().map(|(_, name)| *name).find(|name| *name == named));
    let manager = known.or_else(|| file.find_nearest(LOCKS)).unwrap_or("npm");
    let scripts = &package["scripts"];
    let is_around = |name: &str| {
        ["pre", "post"].iter().filter_map(|when| name.strip_prefix(when)).any(|base| scripts[base].is_string())
    };
    let read_script = |(name, script): (&str, &Value)| {
        let script = script.as_str()?;
        let is_useful = !BY_ITSELF.contains(&name)
            && !is_around(name)
            && !name.starts_with(['_', '.', '/', '#'])
            && !name.starts_with("before:")
            && !name.starts_with("after:")
            && !script.contains("no test specified")
            && !script.trim().is_empty();
        let command = match (manager, name) {
            ("npm" | "pnpm", "test") => CommandLine::new(manager).with_words("test"),
            ("npm" | "pnpm", "start") => CommandLine::new(manager).with_words("start"),
            _ => CommandLine::new(manager).with_words("run").word(name)?,
        };
        let line = file.line_of(&["scripts", name]);
        is_useful.then(|| FoundCommand { name: name.to_owned(), command, about: script.to_owned(), line, folder: None })
    };
    Ok(iter_members(scripts).filter_map(read_script).collect())
}
