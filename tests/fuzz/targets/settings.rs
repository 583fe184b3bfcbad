//! Adds Nudge's entry to another program's settings as `nudge init` does, and removes it again. The first byte selects
//! the format of the settings.
#![no_main]

use std::fs;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use nudge_app::config::{ConfigFile, ConfigFormat};
use serde_json::json;
use tempfile::TempDir;

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| TempDir::new().expect("a folder for temporary files"));

fuzz_target!(|bytes: &[u8]| {
    let Some((first, text)) = bytes.split_first() else { return };
    let form = if first % 2 == 0 { ConfigFormat::Json } else { ConfigFormat::Toml };
    let file = FOLDER.path().join("settings");
    fs::write(&file, text).expect("there is room");
    let Ok(mut config) = ConfigFile::read(&file, form) else { return };
    let entry = json!({"command": "nudge", "args": ["serve"]});
    if config.set(&["servers", "nudge"], &entry).is_err() {
        return;
    }
    let _ = config.append(&["hooks", "Stop"], &json!({"hooks": [{"type": "command", "command": "nudge hook"}]}));
    let after = config.to_text();
    fs::write(&file, &after).expect("there is room");
    let mut again = ConfigFile::read(&file, form).expect("what was written is read");
    assert_eq!(again.get(&["servers", "nudge"]), Some(entry), "{after:?}");
    again.remove(&["servers", "nudge"]);
    assert_eq!(again.get(&["servers", "nudge"]), None);
    fs::write(&file, again.to_text()).expect("there is room");
    ConfigFile::read(&file, form).expect("what was written is read");
});
