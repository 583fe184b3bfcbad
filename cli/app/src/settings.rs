//! The values of the settings, from the settings file, environment variables and flags: a variable overrides the file,
//! and a flag overrides a variable. A single table defines the keys of the file, the variables, the flags of `nudge
//! serve` and the page `nudge/docs/settings.md`.
//!
//! The file belongs to the user: `nudge/config.toml` in the system's folder for configuration. Files of a project never
//! change a setting.

use std::ffi::OsString;
use std::io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};
use etcetera::BaseStrategy as _;
use nudge::{Error, Result};
use nudge_core::near::find_nearest;
use nudge_core::settings::{ServeFlag, Setting, SettingKind, SettingValues, ValueOrigin, parse_switch};
use nudge_core::source::DataDir;
use nudge_os::foreign::{self, LinkPolicy};
use toml_edit::{DocumentMut, Item, TableLike, Value};

use crate::config::{ConfigFile, ConfigFormat};
use crate::files;
use crate::sources;

/// The most bytes of a settings file that are read.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// The name of the settings file, which messages also use.
const FILE: &str = "config.toml";

/// The settings of the binary itself; the settings of the sources follow them.
static OWN: &[Setting] = &[
    Setting {
        name: "port",
        kind: SettingKind::Count,
        default: "8765",
        flag: ServeFlag::None,
        about: "Port that `nudge serve` tries first; 0 for any",
    },
    Setting {
        name: "auth",
        kind: SettingKind::Switch,
        default: "1",
        flag: ServeFlag::Off,
        about: "Ask callers over HTTP for the token",
    },
    Setting {
        name: "token",
        kind: SettingKind::Secret,
        default: "",
        flag: ServeFlag::None,
        about: "A constant token of 16 characters or more, in place of the session's own; the environment alone may hold it",
    },
    Setting {
        name: "token_file",
        kind: SettingKind::Text,
        default: "",
        flag: ServeFlag::Value("FILE"),
        about: "Read a constant token from this file, which only you can read",
    },
    Setting {
        name: "allow_host",
        kind: SettingKind::List,
        default: "",
        flag: ServeFlag::Value("NAME"),
        about: "Also accept this name in the Host header (may be repeated)",
    },
    Setting {
        name: "log_level",
        kind: SettingKind::OneOf(&["error", "warn", "info", "debug"]),
        default: "info",
        flag: ServeFlag::Value("LEVEL"),
        about: "How much is logged: to stderr, or to server.log in the runtime directory when stdin carries MCP",
    },
    Setting {
        name: "journal",
        kind: SettingKind::Switch,
        default: "1",
        flag: ServeFlag::None,
        about: "Keep a journal; 0: the hints die with the PRIMARY",
    },
    Setting {
        name: "data_dir",
        kind: SettingKind::Text,
        default: "",
        flag: ServeFlag::None,
        about: "Folder in which sources keep files (default: nudge in the system's folder for data)",
    },
    Setting {
        name: "cache_dir",
        kind: SettingKind::Text,
        default: "",
        flag: ServeFlag::None,
        about: "Folder in which sources keep files that can be made again (default: nudge in the system's folder for caches)",
    },
    Setting {
        name: "model",
        kind: SettingKind::Text,
        default: "",
        flag: ServeFlag::None,
        about: "Name of the embedding model, where several were added",
    },
    Setting {
        name: "model_dir",
        kind: SettingKind::Text,
        default: "",
        flag: ServeFlag::None,
        about: "Folder of one embedding model, in the place of those that were added",
    },
    Setting {
        name: "default_reach",
        kind: SettingKind::OneOf(&["repo", "everywhere"]),
        default: "repo",
        flag: ServeFlag::Value("REACH"),
        about: "Where a hint stored without a scope applies: in the repository it is stored in, or everywhere",
    },
    Setting {
        name: "keep",
        kind: SettingKind::Switch,
        default: "0",
        flag: ServeFlag::On,
        about: "Keep hints for next time, in hints.db in the folder for data; those stored without a ttl last for P365D then, unless another default is set",
    },
    Setting {
        name: "suggest_max",
        kind: SettingKind::Count,
        default: "20",
        flag: ServeFlag::Value("N"),
        about: "Most suggestions to one client session in 10 minutes",
    },
    Setting {
        name: "learn",
        kind: SettingKind::Switch,
        default: "0",
        flag: ServeFlag::None,
        about: "Learn from hooks: a command that failed and a near one that then worked become a hint",
    },
    Setting {
        name: "capture",
        kind: SettingKind::Switch,
        default: "0",
        flag: ServeFlag::None,
        about: "Make knowledge of sessions that end, on a branch of your brain for you to review; a model reads them for it",
    },
    Setting {
        name: "capture_deny",
        kind: SettingKind::List,
        default: "",
        flag: ServeFlag::None,
        about: "Folders of projects whose sessions are never captured",
    },
    Setting {
        name: "hook.bytes",
        kind: SettingKind::Count,
        default: "2000",
        flag: ServeFlag::None,
        about: "Most bytes that `nudge hook` says",
    },
    Setting {
        name: "hook.ms",
        kind: SettingKind::Count,
        default: "45",
        flag: ServeFlag::None,
        about: "Most milliseconds that `nudge hook` takes; while it is not set, up to 1,500 where the last hooks needed more",
    },
];

/// Lists all settings: the server's own, then those of each source.
pub fn list_settings() -> impl Iterator<Item = &'static Setting> {
    OWN.iter().chain(sources::list_sources().iter().flat_map(|source| source.settings))
}

/// Returns the path of the settings file, even if it does not exist; `None` when the system has no folder for it.
pub fn file_path() -> Option<PathBuf> {
    Some(own_folder(&etcetera::choose_base_strategy().ok()?.config_dir())?.join(FILE))
}

/// Returns Nudge's folder in one of the user's folders. Returns `None` if that folder is relative, because HOME is: each
/// process would have another folder.
fn own_folder(base: &Path) -> Option<PathBuf> {
    Some(base.join("nudge")).filter(|folder| folder.is_absolute())
}

/// Reads the values of all settings, without flags.
///
/// # Errors
/// `E_INVALID` for a file or a variable that is not valid. A default in its place could weaken a limit or a protection.
pub fn read() -> Result<SettingValues> {
    read_with_flags(&SettingFlags::default())
}

/// Reads the values of all settings, with the flags of a command.
///
/// # Errors
/// The errors of [`read`].
pub fn read_with_flags(flags: &SettingFlags) -> Result<SettingValues> {
    let text = file_path().map_or(Ok(None), |path| read_file(&path))?;
    read_layers(text.as_deref(), read_variable, flags)
}

/// Finds a setting by its name.
///
/// # Errors
/// `E_INVALID` for a name that no setting has; it suggests the nearest one.
pub fn find_setting(name: &str) -> Result<&'static Setting> {
    list_settings().find(|setting| setting.name == name).ok_or_else(|| {
        let advice = match find_nearest(name, list_settings().map(|setting| setting.name)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`nudge config` lists them.".to_owned(),
        };
        Error::invalid(format!("There is no setting `{}`; {advice}", nudge_core::text::one_line(name, 80)))
    })
}

/// Writes a value into the settings file, or removes it without one, and leaves the rest of the file unchanged.
///
/// # Errors
/// `E_INVALID` for a value that the setting cannot have, and for a file that is not valid; `E_UNAVAILABLE` when the
/// file cannot be written.
pub fn write_setting(setting: &Setting, value: Option<&str>) -> Result<()> {
    let path = file_path().ok_or_else(|| {
        Error::unavailable(format!("The system has no folder for settings; set {} instead.", setting.env_variable()))
    })?;
    let mut config = ConfigFile::read(&path, ConfigFormat::Toml)?;
    let place: Vec<_> = setting.name.split('.').collect();
    match value {
        Some(value) => {
            setting.check_text(&format!("`{}`", setting.name), value)?;
            config.set(&place, &to_file_value(setting.kind, value))?;
        }
        None => config.remove(&place),
    }
    // Reads the whole text before it is written: no command would start with a file that is not valid.
    from_file(&config.to_text(), &mut SettingValues::default())?;
    files::write_own(&path, &config.to_text())
}

/// Converts a setting's text to the type that it has in the file.
fn to_file_value(kind: SettingKind, text: &str) -> serde_json::Value {
    match kind {
        SettingKind::Switch => parse_switch(text).into(),
        SettingKind::Count => text.parse::<usize>().expect("`check_text` has parsed it").into(),
        SettingKind::List => text.split(',').map(str::trim).collect(),
        SettingKind::Text | SettingKind::OneOf(_) | SettingKind::Secret => text.into(),
    }
}

/// Returns the default of every setting.
pub fn load_defaults() -> SettingValues {
    let mut values = SettingValues::default();
    list_settings().for_each(|setting| values.or_default(setting));
    values
}

/// Returns Nudge's folder for state: files that outlive programs but that users do not copy to other machines. Returns
/// `None` if the system has no such folder.
pub fn state_dir() -> Option<PathBuf> {
    let base = etcetera::choose_base_strategy().ok()?;
    own_folder(&base.state_dir().unwrap_or_else(|| base.data_dir()))
}

/// Returns the folder in which sources keep files.
pub fn data_dir(values: &SettingValues) -> DataDir {
    resolve_folder(values.get_text("data_dir"), || Some(etcetera::choose_base_strategy().ok()?.data_dir()))
}

/// Returns the folder for files that sources can make again.
pub fn cache_dir(values: &SettingValues) -> DataDir {
    resolve_folder(values.get_text("cache_dir"), || Some(etcetera::choose_base_strategy().ok()?.cache_dir()))
}

fn resolve_folder(given: &str, base: impl FnOnce() -> Option<PathBuf>) -> DataDir {
    if !given.is_empty() {
        return DataDir::new(given);
    }
    base().and_then(|base| own_folder(&base)).map_or_else(DataDir::unavailable, DataDir::new)
}

fn read_layers(
    file: Option<&str>,
    variable: impl Fn(&str) -> Result<Option<String>>,
    flags: &SettingFlags,
) -> Result<SettingValues> {
    let mut values = SettingValues::default();
    if let Some(text) = file {
        from_file(text, &mut values)?;
    }
    for setting in list_settings() {
        for name in setting.env_variables() {
            // An empty variable counts as absent.
            if let Some(text) = variable(&name)?.filter(|text| !text.is_empty()) {
                values.set(setting, ValueOrigin::Variable, &name, text)?;
            }
        }
        if let Some((_, text)) = flags.0.iter().find(|(name, _)| *name == setting.name) {
            let long = flag_of(setting);
            values.set(setting, ValueOrigin::Flag, &long, text.clone())?;
        }
        values.or_default(setting);
    }
    Ok(values)
}

/// Reads a variable as text. A variable that is not UTF-8 is an error, because a default must not replace it silently.
fn read_variable(name: &str) -> Result<Option<String>> {
    std::env::var_os(name)
        .map(OsString::into_string)
        .transpose()
        .map_err(|_| Error::invalid(format!("{name} is not UTF-8 text; correct it or unset it.")))
}

fn read_file(path: &Path) -> Result<Option<String>> {
    let unusable = |what: &str| Error::invalid(format!("{} {what}; correct it or remove it.", path.display()));
    // If the user cannot enter the folder, the user has no settings file either.
    if let Err(error) = path.metadata()
        && matches!(error.kind(), NotFound | PermissionDenied | NotADirectory)
    {
        return Ok(None);
    }
    let read = foreign::read_text(path, LinkPolicy::Followed, MAX_FILE_BYTES);
    read.map(Some).map_err(|error| unusable(&format!("cannot be read ({error})")))
}

fn from_file(text: &str, values: &mut SettingValues) -> Result<()> {
    let document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
        let before = error.span().and_then(|span| text.get(..span.start));
        let line = before.map_or(0, |before| before.matches('\n').count()) + 1;
        Error::invalid(format!("{FILE} is not TOML in line {line}; correct it."))
    })?;
    visit_values(document.as_table(), "", &mut |name, value| {
        let Some(setting) = list_settings().find(|setting| setting.name == name) else {
            let meant = find_nearest(name, list_settings().map(|setting| setting.name));
            let advice = match meant {
                Some(near) => format!("did you mean `{near}`?"),
                None => "correct it, or take it out.".to_owned(),
            };
            let path = file_path().map_or_else(|| FILE.to_owned(), |path| path.display().to_string());
            let name = nudge_core::text::one_line(name, 80);
            return Err(Error::invalid(format!("{path} sets `{name}`, which is no setting; {advice}")));
        };
        let given_by = format!("{name} in {FILE}");
        if setting.kind == SettingKind::Secret {
            let message = format!("{given_by} would lie on the disk; set {} instead.", setting.env_variable());
            return Err(Error::invalid(message));
        }
        let text = match (value, setting.kind) {
            (Value::String(text), kind) if kind != SettingKind::Count => text.value().clone(),
            (Value::Integer(number), SettingKind::Count | SettingKind::Switch) => number.value().to_string(),
            (Value::Boolean(on), SettingKind::Switch) => if *on.value() { "1" } else { "0" }.into(),
            (Value::Array(list), SettingKind::List) => {
                let texts: Option<Vec<_>> = list.iter().map(Value::as_str).collect();
                texts.ok_or_else(|| Error::invalid(format!("{given_by} must be a list of texts.")))?.join(",")
            }
            _ => return Err(Error::invalid(format!("{given_by} has the wrong type; see `nudge config`."))),
        };
        values.set(setting, ValueOrigin::File, &given_by, text)
    })
}

/// Visits every value in a table and its nested tables, by its full name.
fn visit_values(table: &dyn TableLike, before: &str, take: &mut impl FnMut(&str, &Value) -> Result<()>) -> Result<()> {
    for (key, item) in table.iter() {
        let name = if before.is_empty() { key.to_owned() } else { format!("{before}.{key}") };
        match item {
            Item::Value(Value::InlineTable(inner)) => visit_values(inner, &name, take)?,
            Item::Value(value) => take(&name, value)?,
            Item::Table(inner) => visit_values(inner, &name, take)?,
            Item::None => {}
            Item::ArrayOfTables(_) => {
                return Err(Error::invalid(format!("{FILE}: `{name}` may not be a list of tables.")));
            }
        }
    }
    Ok(())
}

/// The settings that flags set. The flags come from the table of settings.
#[derive(Debug, Clone, Default)]
pub struct SettingFlags(Vec<(&'static str, String)>);

impl Args for SettingFlags {
    fn augment_args(command: Command) -> Command {
        list_settings().fold(command, |command, setting| {
            let Some(long) = setting.long_flag() else { return command };
            let arg = Arg::new(setting.name).long(long);
            let arg = match setting.flag {
                ServeFlag::On => {
                    arg.action(ArgAction::SetTrue).help(format!("{} ({}=1)", setting.about, setting.env_variable()))
                }
                ServeFlag::Off => arg.action(ArgAction::SetTrue).help(format!(
                    "Do not {} ({}=0)",
                    lower_first(setting.about),
                    setting.env_variable()
                )),
                _ => arg.help(format!("{} ({})", setting.about, setting.env_variable())),
            };
            command.arg(match (setting.flag, setting.kind) {
                (ServeFlag::Value(word), SettingKind::Count) => arg.value_name(word).value_parser(value_parser!(usize)),
                (ServeFlag::Value(word), SettingKind::List) => arg.value_name(word).action(ArgAction::Append),
                (ServeFlag::Value(word), _) => arg.value_name(word),
                _ => arg,
            })
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SettingFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = Vec::new();
        for setting in list_settings().filter(|setting| setting.long_flag().is_some()) {
            let text = match (setting.flag, setting.kind) {
                (ServeFlag::On, _) => matches.get_flag(setting.name).then(|| "1".to_owned()),
                (ServeFlag::Off, _) => matches.get_flag(setting.name).then(|| "0".to_owned()),
                (_, SettingKind::Count) => matches.get_one::<usize>(setting.name).map(usize::to_string),
                (_, SettingKind::List) => {
                    matches.get_many::<String>(setting.name).map(|names| names.cloned().collect::<Vec<_>>().join(","))
                }
                _ => matches.get_one::<String>(setting.name).cloned(),
            };
            flags.extend(text.map(|text| (setting.name, text)));
        }
        Ok(Self(flags))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn lower_first(about: &str) -> String {
    let mut chars = about.chars();
    let first = chars.next();
    first.into_iter().flat_map(char::to_lowercase).chain(chars).collect()
}

/// Returns the long flag of a setting. The setting must have one.
fn flag_of(setting: &Setting) -> String {
    format!("--{}", setting.long_flag().expect("a setting without a flag is not given by one"))
}

/// Returns where a value comes from, in words for the user.
pub fn describe_origin(setting: &Setting, origin: ValueOrigin) -> String {
    match origin {
        ValueOrigin::Default => "default".into(),
        ValueOrigin::File => file_path().map_or_else(|| FILE.into(), |path| path.display().to_string()),
        ValueOrigin::Variable => {
            let is_set = |name: &String| std::env::var_os(name).is_some_and(|text| !text.is_empty());
            setting.env_variables().filter(is_set).last().unwrap_or_else(|| setting.env_variable())
        }
        ValueOrigin::Flag => flag_of(setting),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(file: &str, variables: &[(&str, &str)], flags: &[(&'static str, &str)]) -> Result<SettingValues> {
        let variable =
            |name: &str| Ok(variables.iter().find(|(own, _)| *own == name).map(|(_, text)| (*text).to_owned()));
        let flags = SettingFlags(flags.iter().map(|(name, text)| (*name, (*text).to_owned())).collect());
        read_layers(Some(file), variable, &flags)
    }

    /// Promise (server): A flag overrides a variable, and a variable overrides the settings file. A value that is not
    /// valid is refused by name.
    #[test]
    fn flags_come_before_variables_before_the_file_before_defaults() {
        let file = "max_hints = 7\nsecret_guard = false\nallow_host = ['a', 'b']\n[hook]\nms = 60\n";
        let variables = [("NUDGE_MAX_HINTS", "8"), ("NUDGE_MAX_COMPONENTS", "9"), ("NUDGE_MAX_BYTES", "")];
        let values = values(file, &variables, &[("max_components", "10")]).unwrap();
        for (name, text, origin) in [
            ("max_hints", "8", ValueOrigin::Variable),
            ("max_components", "10", ValueOrigin::Flag),
            ("max_bytes", "25165824", ValueOrigin::Default),
            ("secret_guard", "0", ValueOrigin::File),
            ("hook.ms", "60", ValueOrigin::File),
            ("hook.bytes", "2000", ValueOrigin::Default),
        ] {
            assert_eq!((values.get_text(name), values.get_origin(name)), (text, origin), "{name}");
        }
        assert_eq!(values.get_list("allow_host"), ["a", "b"]);
        assert!(!values.is_on("secret_guard"));
    }

    #[test]
    fn a_source_is_switched_by_its_name_alone() {
        let on = |variables: &[(&str, &str)]| values("", variables, &[]).unwrap().is_on("records.on");
        assert!(on(&[("NUDGE_RECORDS", "1")]) && on(&[("NUDGE_RECORDS_ON", "1")]));
        assert!(!on(&[("NUDGE_RECORDS", "1"), ("NUDGE_RECORDS_ON", "0")]));
        let refused = values("", &[("NUDGE_RECORDS", "yes")], &[]).unwrap_err();
        assert_eq!(refused.message(), "NUDGE_RECORDS must be 1, true or on, or 0, false or off.");
    }

    /// Promise: see `flags_come_before_variables_before_the_file_before_defaults`.
    #[test]
    fn a_setting_without_sense_is_refused_by_name() {
        for (file, says) in [
            ("max_hint = 7", "config.toml sets `max_hint`, which is no setting; did you mean `max_hints`?"),
            ("colour = 7", "correct it, or take it out."),
            ("max_hints = 'many'", "max_hints in config.toml"),
            ("max_hints = -1", "max_hints in config.toml"),
            ("hook = 5", "`hook`"),
            ("log_level = 'loud'", "error, warn, info or debug"),
            ("secret_guard = 2", "must be 1, true or on, or 0, false or off"),
            ("token = 'x'", "NUDGE_TOKEN"),
            ("max_hints = 7\n= 2", "line 2"),
            ("allow_host = [1]", "a list of texts"),
            ("[[hook]]\nms = 1", "a list of tables"),
        ] {
            let refused = values(file, &[], &[]).unwrap_err();
            assert!(refused.message().contains(says), "{file}: {}", refused.message());
        }
        let refused = values("", &[("NUDGE_MAX_HINTS", "x")], &[]).unwrap_err();
        assert!(refused.message().contains("NUDGE_MAX_HINTS"), "{}", refused.message());
    }

    #[test]
    fn names_are_used_once() {
        let mut names: Vec<_> = list_settings().flat_map(Setting::env_variables).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
