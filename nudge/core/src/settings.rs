//! Settings: one table in the code defines the keys of the file, the variables, the flags and the documentation
//! (docs/settings.md).
//!
//! A value comes from the first of these that has one: the flag, the variable, the file, the default. The binary reads
//! the file and the environment. This module defines which values are valid.

use std::collections::HashMap;
use std::fmt;

use crate::error::{Error, Result};

/// The type of a setting's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingKind {
    /// A whole number, 0 or more.
    Count,
    /// On or off: `1`, `true`, `on`; `0`, `false`, `off`.
    Switch,
    /// Any text; the code that uses the setting reads it.
    Text,
    /// Texts, separated by commas in a variable or flag; a list in the file.
    List,
    /// A word from this list.
    OneOf(&'static [&'static str]),
    /// A text that is never shown. It can be set by the environment, but not in a file.
    Secret,
}

/// The flag of `nudge serve` for a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServeFlag {
    /// The setting has no flag.
    None,
    /// The flag is `--name VALUE`. The help shows this word in place of `VALUE`.
    Value(&'static str),
    /// The flag is `--name`, for a switch that is off by default.
    On,
    /// The flag is `--no-name`, for a switch that is on by default.
    Off,
}

/// A setting: a row of the table.
#[derive(Debug)]
pub struct Setting {
    /// The key in the file: lower-case words; a source's own settings are `SOURCE.NAME`.
    pub name: &'static str,
    /// The type of the value.
    pub kind: SettingKind,
    /// The default value; empty if there is none.
    pub default: &'static str,
    /// The flag of `nudge serve`.
    pub flag: ServeFlag,
    /// A description: a phrase that begins with a capital letter. The page of the settings, `nudge config --json` and
    /// the flag's help show it.
    pub about: &'static str,
}

impl Setting {
    /// Returns the name of the environment variable, for example `NUDGE_HOOK_BYTES` for `hook.bytes`.
    pub fn env_variable(&self) -> String {
        let letter = |letter: char| if letter == '.' { '_' } else { letter.to_ascii_uppercase() };
        let mut variable = String::with_capacity("NUDGE_".len() + self.name.len());
        variable.push_str("NUDGE_");
        variable.extend(self.name.chars().map(letter));
        variable
    }

    /// Returns the names of the variables that set the value. If several are set, the last one wins. The switch of a
    /// source has a short variable too: `NUDGE_CODE` sets `code.on`.
    pub fn env_variables(&self) -> impl Iterator<Item = String> + use<> {
        let short = self.name.strip_suffix(".on").map(|source| format!("NUDGE_{}", source.to_ascii_uppercase()));
        short.into_iter().chain([self.env_variable()])
    }

    /// Returns the long form of the flag, without the dashes.
    pub fn long_flag(&self) -> Option<String> {
        let before = match self.flag {
            ServeFlag::None => return None,
            ServeFlag::Value(_) | ServeFlag::On => "",
            ServeFlag::Off => "no-",
        };
        let letter = |letter| if letter == '.' || letter == '_' { '-' } else { letter };
        let mut long = String::with_capacity(before.len() + self.name.len());
        long.push_str(before);
        long.extend(self.name.chars().map(letter));
        Some(long)
    }

    /// Refuses a text that the setting cannot have. `given_by` says where the text comes from, for the message.
    ///
    /// # Errors
    /// `E_INVALID`.
    pub fn check_text(&self, given_by: &str, text: &str) -> Result<()> {
        let is_fine = match self.kind {
            SettingKind::Count => text.parse::<usize>().is_ok(),
            SettingKind::Switch => parse_switch(text).is_some(),
            SettingKind::OneOf(words) => words.contains(&text),
            SettingKind::Text | SettingKind::List | SettingKind::Secret => true,
        };
        if is_fine {
            return Ok(());
        }
        Err(Error::invalid(match self.kind {
            SettingKind::Count => format!("{given_by} must be a whole number, 0 or more."),
            SettingKind::OneOf(words) => {
                let (last, others) = words.split_last().unwrap_or((&"", &[]));
                format!("{given_by} must be {} or {last}.", others.join(", "))
            }
            _ => format!("{given_by} must be 1, true or on, or 0, false or off."),
        }))
    }
}

/// Reads a text as on or off; `None` for any other text.
pub fn parse_switch(text: &str) -> Option<bool> {
    match text {
        "1" | "true" | "on" => Some(true),
        "0" | "false" | "off" => Some(false),
        _ => None,
    }
}

/// The origin of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ValueOrigin {
    /// No value was given.
    Default,
    /// The settings file.
    File,
    /// An environment variable.
    Variable,
    /// A flag of this command.
    Flag,
}

/// The value of every setting, with its origin.
#[derive(Clone, Default)]
pub struct SettingValues(HashMap<&'static str, SettingValue>);

#[derive(Clone)]
struct SettingValue {
    text: String,
    origin: ValueOrigin,
    kind: SettingKind,
}

impl SettingValues {
    /// Sets a value, and replaces an earlier one.
    ///
    /// # Errors
    /// `E_INVALID` for a text that the setting cannot have; the message names `given_by`.
    pub fn set(&mut self, setting: &Setting, origin: ValueOrigin, given_by: &str, text: String) -> Result<()> {
        setting.check_text(given_by, &text)?;
        self.0.insert(setting.name, SettingValue { text, origin, kind: setting.kind });
        Ok(())
    }

    /// Sets the default of a setting that has no value yet.
    pub fn or_default(&mut self, setting: &Setting) {
        let default =
            || SettingValue { text: setting.default.into(), origin: ValueOrigin::Default, kind: setting.kind };
        self.0.entry(setting.name).or_insert_with(default);
    }

    /// Returns the values of only these settings.
    #[must_use]
    pub fn select(&self, settings: &[Setting]) -> Self {
        let own = settings.iter().filter_map(|setting| Some((setting.name, self.0.get(setting.name)?.clone())));
        Self(own.collect())
    }

    /// Returns the value as text. The text is empty when there is no value, and for a setting that is not in the table.
    pub fn get_text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", |value| &value.text)
    }

    /// Returns the value of a [`SettingKind::Count`]; 0 when there is no value.
    pub fn get_count(&self, name: &str) -> usize {
        // `set` has checked every value.
        self.get_text(name).parse().unwrap_or_default()
    }

    /// Returns the value of a [`SettingKind::Switch`]; false when there is no value.
    pub fn is_on(&self, name: &str) -> bool {
        parse_switch(self.get_text(name)).unwrap_or_default()
    }

    /// Returns the values of a [`SettingKind::List`]; an empty list when the setting has no value.
    pub fn get_list(&self, name: &str) -> Vec<String> {
        match self.0.get(name) {
            Some(value) if value.origin != ValueOrigin::Default || !value.text.is_empty() => {
                value.text.split(',').map(|text| text.trim().to_owned()).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the origin of a setting's value.
    pub fn get_origin(&self, name: &str) -> ValueOrigin {
        self.0.get(name).map_or(ValueOrigin::Default, |value| value.origin)
    }

    /// Returns the value in a form that people may see: `[secret]` in place of a secret.
    pub fn get_shown(&self, name: &str) -> &str {
        match self.0.get(name) {
            Some(value) if value.kind == SettingKind::Secret && !value.text.is_empty() => "[secret]",
            Some(value) => &value.text,
            None => "",
        }
    }
}

/// Prints no values, because a value may be a token.
impl fmt::Debug for SettingValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SettingValues({} settings)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNT: Setting =
        Setting { name: "max_x", kind: SettingKind::Count, default: "5", flag: ServeFlag::Value("N"), about: "most x" };
    const SWITCH: Setting =
        Setting { name: "a.guard", kind: SettingKind::Switch, default: "1", flag: ServeFlag::Off, about: "guard" };
    const LEVEL: Setting = Setting {
        name: "level",
        kind: SettingKind::OneOf(&["low", "middle", "high"]),
        default: "low",
        flag: ServeFlag::None,
        about: "how much",
    };
    const TOKEN: Setting =
        Setting { name: "token", kind: SettingKind::Secret, default: "", flag: ServeFlag::None, about: "token" };

    #[test]
    fn names() {
        assert_eq!((COUNT.env_variable(), COUNT.long_flag()), ("NUDGE_MAX_X".into(), Some("max-x".into())));
        assert_eq!((SWITCH.env_variable(), SWITCH.long_flag()), ("NUDGE_A_GUARD".into(), Some("no-a-guard".into())));
        assert_eq!(LEVEL.long_flag(), None);
        assert_eq!(SWITCH.env_variables().collect::<Vec<_>>(), ["NUDGE_A_GUARD"]);
        let on = Setting { name: "a.on", ..SWITCH };
        assert_eq!(on.env_variables().collect::<Vec<_>>(), ["NUDGE_A", "NUDGE_A_ON"]);
    }

    #[test]
    fn a_later_value_counts_and_a_bad_one_does_not() {
        let mut values = SettingValues::default();
        values.set(&COUNT, ValueOrigin::File, "max_x in config.toml", "7".into()).unwrap();
        values.set(&COUNT, ValueOrigin::Variable, "NUDGE_MAX_X", "8".into()).unwrap();
        let refused = values.set(&COUNT, ValueOrigin::Flag, "--max-x", "-1".into()).unwrap_err();
        assert_eq!(refused.message(), "--max-x must be a whole number, 0 or more.");
        let refused = values.set(&LEVEL, ValueOrigin::Flag, "--level", "up".into()).unwrap_err();
        assert_eq!(refused.message(), "--level must be low, middle or high.");
        values.or_default(&COUNT);
        values.or_default(&SWITCH);
        assert_eq!((values.get_count("max_x"), values.get_origin("max_x")), (8, ValueOrigin::Variable));
        assert_eq!((values.is_on("a.guard"), values.get_origin("a.guard")), (true, ValueOrigin::Default));
        assert_eq!((values.get_text("other"), values.get_count("other")), ("", 0));
        let own = values.select(&[COUNT]);
        assert_eq!((own.get_count("max_x"), own.get_text("a.guard")), (8, ""));
    }

    #[test]
    fn a_secret_is_not_shown() {
        let mut values = SettingValues::default();
        values.set(&TOKEN, ValueOrigin::Variable, "NUDGE_TOKEN", "open sesame".into()).unwrap();
        assert_eq!((values.get_shown("token"), values.get_text("token")), ("[secret]", "open sesame"));
        assert!(!format!("{values:?}").contains("sesame"));
    }
}
