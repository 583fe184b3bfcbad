//! Settings: one table in code makes the keys of the file, the variables, the flags and the documentation
//! (docs/settings.md).
//!
//! A value comes from the flag, else from the variable, else from the file, else it is the default. The binary reads
//! the file and the environment; this module says which values they may hold.

use std::collections::HashMap;
use std::fmt;

use crate::error::{Error, Result};

/// The type of a setting's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A whole number, 0 or more.
    Count,
    /// On or off: `1`, `true`, `on`; `0`, `false`, `off`.
    Switch,
    /// Any text that its owner can read.
    Text,
    /// Texts, separated by commas; a list in the file.
    List,
    /// A word out of these.
    OneOf(&'static [&'static str]),
    /// A text that is never shown and that no file holds: only the environment may give it.
    Secret,
}

/// The flag by which `nudge serve` takes a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flag {
    /// It is not.
    None,
    /// `--name VALUE`, with this word for the value.
    Value(&'static str),
    /// `--name`, of a switch that is off by default.
    On,
    /// `--no-name`, of a switch that is on by default.
    Off,
}

/// A row of the table.
#[derive(Debug)]
pub struct Setting {
    /// The key in the file: lower-case words, and for a source's own `SOURCE.NAME`.
    pub name: &'static str,
    /// The type of its value.
    pub kind: Kind,
    /// The value when it is not set; empty for none.
    pub default: &'static str,
    /// The flag of `nudge serve`.
    pub flag: Flag,
    /// A description, a phrase that begins with a capital letter: for the page of the settings, `nudge config --json`
    /// and the flag's help.
    pub about: &'static str,
}

impl Setting {
    /// The environment variable: `max_hints` is `NUDGE_MAX_HINTS`, `hook.bytes` is `NUDGE_HOOK_BYTES`.
    pub fn variable(&self) -> String {
        let letter = |letter: char| if letter == '.' { '_' } else { letter.to_ascii_uppercase() };
        let mut variable = String::with_capacity("NUDGE_".len() + self.name.len());
        variable.push_str("NUDGE_");
        variable.extend(self.name.chars().map(letter));
        variable
    }

    /// The variables that set it, the last one counting: the switch of a source has a short one besides, so that
    /// `NUDGE_CODE` is `code.on`.
    pub fn variables(&self) -> impl Iterator<Item = String> + use<> {
        let short = self.name.strip_suffix(".on").map(|source| format!("NUDGE_{}", source.to_ascii_uppercase()));
        short.into_iter().chain([self.variable()])
    }

    /// The long flag, without the dashes.
    pub fn long(&self) -> Option<String> {
        let before = match self.flag {
            Flag::None => return None,
            Flag::Value(_) | Flag::On => "",
            Flag::Off => "no-",
        };
        let letter = |letter| if letter == '.' || letter == '_' { '-' } else { letter };
        let mut long = String::with_capacity(before.len() + self.name.len());
        long.push_str(before);
        long.extend(self.name.chars().map(letter));
        Some(long)
    }

    /// Refuses a text that the setting cannot have; `given_by` names where it stands.
    ///
    /// # Errors
    /// `E_INVALID`.
    pub fn check(&self, given_by: &str, text: &str) -> Result<()> {
        let is_fine = match self.kind {
            Kind::Count => text.parse::<usize>().is_ok(),
            Kind::Switch => switch(text).is_some(),
            Kind::OneOf(words) => words.contains(&text),
            Kind::Text | Kind::List | Kind::Secret => true,
        };
        if is_fine {
            return Ok(());
        }
        Err(Error::invalid(match self.kind {
            Kind::Count => format!("{given_by} must be a whole number, 0 or more."),
            Kind::OneOf(words) => {
                let (last, others) = words.split_last().unwrap_or((&"", &[]));
                format!("{given_by} must be {} or {last}.", others.join(", "))
            }
            _ => format!("{given_by} must be 1 or 0."),
        }))
    }
}

/// Reads a text that says on or off.
pub fn switch(text: &str) -> Option<bool> {
    match text {
        "1" | "true" | "on" => Some(true),
        "0" | "false" | "off" => Some(false),
        _ => None,
    }
}

/// The origin of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// No value was given.
    Default,
    /// The settings file.
    File,
    /// An environment variable.
    Variable,
    /// A flag of this command.
    Flag,
}

/// The value of every setting, and where it comes from.
#[derive(Clone, Default)]
pub struct Values(HashMap<&'static str, Value>);

#[derive(Clone)]
struct Value {
    text: String,
    origin: Origin,
    kind: Kind,
}

impl Values {
    /// Sets a value; a later one replaces it.
    ///
    /// # Errors
    /// `E_INVALID` for a text that it cannot have, which names `given_by`.
    pub fn set(&mut self, setting: &Setting, origin: Origin, given_by: &str, text: String) -> Result<()> {
        setting.check(given_by, &text)?;
        self.0.insert(setting.name, Value { text, origin, kind: setting.kind });
        Ok(())
    }

    /// Sets the default of a setting that has no value yet.
    pub fn or_default(&mut self, setting: &Setting) {
        let default = || Value { text: setting.default.into(), origin: Origin::Default, kind: setting.kind };
        self.0.entry(setting.name).or_insert_with(default);
    }

    /// The values of these settings alone.
    #[must_use]
    pub fn of(&self, settings: &[Setting]) -> Self {
        let own = settings.iter().filter_map(|setting| Some((setting.name, self.0.get(setting.name)?.clone())));
        Self(own.collect())
    }

    /// The value as text; empty for nothing, and for a setting that is not in the table.
    pub fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", |value| &value.text)
    }

    /// The value of a [`Kind::Count`].
    pub fn count(&self, name: &str) -> usize {
        // Whatever is in here was checked.
        self.text(name).parse().unwrap_or_default()
    }

    /// The value of a [`Kind::Switch`].
    pub fn is_on(&self, name: &str) -> bool {
        switch(self.text(name)).unwrap_or_default()
    }

    /// The values of a [`Kind::List`]; none where it is not set.
    pub fn list(&self, name: &str) -> Vec<String> {
        match self.0.get(name) {
            Some(value) if value.origin != Origin::Default || !value.text.is_empty() => {
                value.text.split(',').map(|text| text.trim().to_owned()).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The origin of a value.
    pub fn origin(&self, name: &str) -> Origin {
        self.0.get(name).map_or(Origin::Default, |value| value.origin)
    }

    /// The value as people may see it.
    pub fn shown(&self, name: &str) -> &str {
        match self.0.get(name) {
            Some(value) if value.kind == Kind::Secret && !value.text.is_empty() => "[secret]",
            Some(value) => &value.text,
            None => "",
        }
    }
}

/// Without the values: one may be a token.
impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Values({} settings)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNT: Setting =
        Setting { name: "max_x", kind: Kind::Count, default: "5", flag: Flag::Value("N"), about: "most x" };
    const SWITCH: Setting =
        Setting { name: "a.guard", kind: Kind::Switch, default: "1", flag: Flag::Off, about: "guard" };
    const LEVEL: Setting = Setting {
        name: "level",
        kind: Kind::OneOf(&["low", "middle", "high"]),
        default: "low",
        flag: Flag::None,
        about: "how much",
    };
    const TOKEN: Setting = Setting { name: "token", kind: Kind::Secret, default: "", flag: Flag::None, about: "token" };

    #[test]
    fn names() {
        assert_eq!((COUNT.variable(), COUNT.long()), ("NUDGE_MAX_X".into(), Some("max-x".into())));
        assert_eq!((SWITCH.variable(), SWITCH.long()), ("NUDGE_A_GUARD".into(), Some("no-a-guard".into())));
        assert_eq!(LEVEL.long(), None);
        assert_eq!(SWITCH.variables().collect::<Vec<_>>(), ["NUDGE_A_GUARD"]);
        let on = Setting { name: "a.on", ..SWITCH };
        assert_eq!(on.variables().collect::<Vec<_>>(), ["NUDGE_A", "NUDGE_A_ON"]);
    }

    #[test]
    fn a_later_value_counts_and_a_bad_one_does_not() {
        let mut values = Values::default();
        values.set(&COUNT, Origin::File, "max_x in config.toml", "7".into()).unwrap();
        values.set(&COUNT, Origin::Variable, "NUDGE_MAX_X", "8".into()).unwrap();
        let refused = values.set(&COUNT, Origin::Flag, "--max-x", "-1".into()).unwrap_err();
        assert_eq!(refused.message(), "--max-x must be a whole number, 0 or more.");
        let refused = values.set(&LEVEL, Origin::Flag, "--level", "up".into()).unwrap_err();
        assert_eq!(refused.message(), "--level must be low, middle or high.");
        values.or_default(&COUNT);
        values.or_default(&SWITCH);
        assert_eq!((values.count("max_x"), values.origin("max_x")), (8, Origin::Variable));
        assert_eq!((values.is_on("a.guard"), values.origin("a.guard")), (true, Origin::Default));
        assert_eq!((values.text("other"), values.count("other")), ("", 0));
        let own = values.of(&[COUNT]);
        assert_eq!((own.count("max_x"), own.text("a.guard")), (8, ""));
    }

    #[test]
    fn a_secret_is_not_shown() {
        let mut values = Values::default();
        values.set(&TOKEN, Origin::Variable, "NUDGE_TOKEN", "open sesame".into()).unwrap();
        assert_eq!((values.shown("token"), values.text("token")), ("[secret]", "open sesame"));
        assert!(!format!("{values:?}").contains("sesame"));
    }
}
