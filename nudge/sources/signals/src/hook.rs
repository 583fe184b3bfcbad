//! Reads hooks. The hook of an agent is its work, in the file `hooks/AGENT.json`. Other programs write these files;
//! Nudge only reads them.

use std::collections::BTreeMap;
use std::hash::BuildHasher as _;

use foldhash::quality::FixedState;
use nudge_core::clock::Millis;
use nudge_core::error::Result;
use nudge_core::text::one_line;
use nudge_os::beneath::HeldFolder;
use nudge_secrets::SecretGuard;
use serde::Deserialize;

use crate::agent::AgentId;
use crate::folder;
use crate::stamp;
use crate::state::{MAX_AGENTS, StateDir, unusable_error};

/// The folder of hooks in a state directory.
pub const HOOKS: &str = "hooks";
/// The most bytes that Nudge reads of a hook file.
const MAX_BYTES: u64 = 64 << 10;
/// The most characters that Nudge keeps of a text from a hook.
const MAX_CHARS: usize = 200;

/// The hook of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentHook {
    /// The agent works now.
    Active(ActiveHook),
    /// The agent has no work, has not begun it, or has finished it.
    Idle,
    /// The file is not readable as a hook now, perhaps because a program is writing it. The deacon keeps the state from
    /// before.
    Unreadable,
}

/// A hook whose `status` is `active`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActiveHook {
    /// The hash of the file's text. A new hash means that the agent or the giver of its work did something.
    pub hash: u64,
    /// The value of `last_activity`; `None` if it is not a time.
    pub last_activity: Option<Millis>,
    /// The name and title of the work, for people; empty when the file has none.
    pub work: String,
}

/// The fields of the file that Nudge reads. Files may have more.
#[derive(Deserialize)]
struct HookFile {
    status: String,
    #[serde(default, alias = "lastActivity")]
    last_activity: Option<String>,
    #[serde(default, alias = "workItem")]
    work_item: Option<HookWork>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct HookWork {
    #[serde(alias = "beadId")]
    bead_id: String,
    title: String,
}

/// Reads the hooks of the first 1,000 agents in the order of their names.
///
/// # Errors
/// `E_INVALID` for a link that leads out of the state directory; `E_UNAVAILABLE` when the folder cannot be read.
pub fn read_hooks(state: &StateDir) -> Result<BTreeMap<AgentId, AgentHook>> {
    let Some(folder) = state.open_folder(&[HOOKS])? else { return Ok(BTreeMap::new()) };
    let names = folder.held.list_names().map_err(|error| unusable_error(&folder.path, &error))?;
    let names = names.into_iter().filter_map(|name| {
        let name = name.into_string().ok()?;
        Some((AgentId::parse(name.strip_suffix(".json")?)?, name))
    });
    let mut names: Vec<_> = names.collect();
    names.sort();
    names.truncate(MAX_AGENTS);
    Ok(names.into_iter().map(|(agent, name)| (agent, read(&folder.held, &name))).collect())
}

fn read(folder: &HeldFolder, name: &str) -> AgentHook {
    folder::read_text(folder, name, MAX_BYTES).map_or(AgentHook::Unreadable, |text| parse_hook(&text))
}

fn parse_hook(text: &str) -> AgentHook {
    let Ok(HookFile { status, last_activity, work_item }) = serde_json::from_str(text) else {
        return AgentHook::Unreadable;
    };
    if status != "active" {
        return AgentHook::Idle;
    }
    let said = work_item.map_or_else(String::new, |HookWork { bead_id, title }| {
        one_line(format!("{bead_id} {title}").trim(), MAX_CHARS)
    });
    // The text goes into a mail, so a text with a credential is left out.
    let work = if SecretGuard::new().check(None, &said).is_some() { String::new() } else { said };
    let last_activity = last_activity.as_deref().and_then(stamp::parse_stamp);
    AgentHook::Active(ActiveHook { hash: FixedState::default().hash_one(text), last_activity, work })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_a_hook_says() {
        let text = r#"{"agent_id":"a","status":"active","work_item":{"bead_id":"gt-abc12","title":"Add a page","assigned_at":"x"},
            "last_activity":"2026-03-05T10:32:00Z"}"#;
        let AgentHook::Active(active) = parse_hook(text) else { panic!("it is active") };
        assert_eq!((active.last_activity, &*active.work), (Some(1_772_706_720_000), "gt-abc12 Add a page"));
        let AgentHook::Active(other) = parse_hook(&text.replace("10:32", "10:33")) else { panic!("it is active") };
        assert_ne!(active.hash, other.hash);
        for (text, hook) in [
            (r#"{"status":"pending"}"#, AgentHook::Idle),
            (r#"{"status":"completed","work_item":null}"#, AgentHook::Idle),
            (r#"{"status":"empty","last_activity":7}"#, AgentHook::Unreadable),
            (r#"{"status":null}"#, AgentHook::Unreadable),
            ("{\"sta", AgentHook::Unreadable),
            ("", AgentHook::Unreadable),
            ("[]", AgentHook::Unreadable),
        ] {
            assert_eq!(parse_hook(text), hook, "{text}");
        }
        let AgentHook::Active(bare) = parse_hook(r#"{"status":"active","work_item":null,"last_activity":"soon"}"#)
        else {
            panic!("it is active")
        };
        assert_eq!((bare.last_activity, &*bare.work), (None, ""));
        let token = ["ghp", "_", &"aB3dE6gH9j".repeat(4)[..36]].concat();
        let AgentHook::Active(secret) =
            parse_hook(&format!(r#"{{"status":"active","work_item":{{"title":"{token}"}}}}"#))
        else {
            panic!("it is active")
        };
        assert_eq!(secret.work, "");
    }

    #[test]
    fn only_the_files_of_agents_are_hooks() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateDir::find(folder.path().to_str(), None).unwrap();
        assert!(read_hooks(&state).unwrap().is_empty());
        let hooks = folder.path().join(HOOKS);
        fs::create_dir(&hooks).unwrap();
        let active = r#"{"status":"active"}"#;
        for name in ["a.json", ".b.json", "c.txt", "d e.json"] {
            fs::write(hooks.join(name), active).unwrap();
        }
        fs::create_dir(hooks.join("folder.json")).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(hooks.join("a.json"), hooks.join("link.json")).unwrap();
        let found = read_hooks(&state).unwrap();
        assert!(matches!(found[&AgentId::parse("a").unwrap()], AgentHook::Active(_)));
        let unreadable: Vec<_> =
            found.iter().filter(|(_, hook)| **hook == AgentHook::Unreadable).map(|(a, _)| a.as_str()).collect();
        assert_eq!(unreadable, if cfg!(unix) { vec!["folder", "link"] } else { vec!["folder"] });
    }
}
