//! Runs a source without a session: in a command that opens the source itself, in an example or in a test.

use std::iter;
use std::path::Path;
use std::sync::Arc;

use super::{ChangeEvent, ChangeSink, DataDir, Fence, RowFeed, SessionIdentity, SessionRows, SourceHost, SourceSpec};
use crate::clock::SystemClock;
use crate::embed::NoModels;
use crate::error::{Error, Result};
use crate::settings::{SettingValues, ValueOrigin};

/// Replaces the session in a process that has none. No other process takes the lock of this process, succeeds it or
/// receives its changes.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoSession;

impl Fence for NoSession {
    fn commit(&self, keep: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        keep()
    }
}

impl SessionRows for NoSession {
    fn write(&self, _: &RowFeed<'_>, _: &RowFeed<'_>) -> Result<()> {
        Ok(())
    }

    fn log_unreadable(&self, _: usize) {}
}

impl ChangeSink for NoSession {
    fn tell_changes(&self, _: &[ChangeEvent]) {}
}

impl SourceHost<'static> {
    /// Makes a host for a process without a session. The source keeps its files in `data` and `cache` below `folder`,
    /// and has no model. Settings that are not in `given` have their defaults.
    ///
    /// # Errors
    /// `E_INVALID` for a setting that the source does not have, or for a value that the setting cannot have.
    pub fn new_alone(folder: &Path, source: &SourceSpec, given: &[(&str, &str)]) -> Result<Self> {
        let mut settings = SettingValues::default();
        for (name, text) in given {
            let none = || Error::invalid(format!("The source {} has no setting `{name}`.", source.name));
            let setting = source.settings.iter().find(|setting| setting.name == *name).ok_or_else(none)?;
            settings.set(setting, ValueOrigin::Flag, name, (*text).to_owned())?;
        }
        source.settings.iter().for_each(|setting| settings.or_default(setting));
        Ok(Self {
            clock: Arc::new(SystemClock),
            session: SessionIdentity { id: String::new(), created_at: 0 },
            data: DataDir::new(folder.join("data")),
            cache: DataDir::new(folder.join("cache")),
            fence: Arc::new(NoSession),
            session_rows: Arc::new(NoSession),
            rows: Box::new(iter::empty()),
            changes: Arc::new(NoSession),
            models: Arc::new(NoModels),
            settings: Arc::new(settings),
        })
    }
}
