//! Calls with a key: each is made once, however often it is sent.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::Nudge;
use crate::error::{Error, Result};
use crate::record::Done;
use crate::store::Change;

/// Keys of calls remembered, so that a call that is sent again is not made again.
const MAX_KEYS: usize = 1_024;
/// Bytes of their results; the last is remembered whatever its size.
const MAX_KEY_BYTES: usize = 4 << 20;

/// The result of a call that changes something.
pub(crate) trait Answer: Serialize {
    /// As JSON without anything of a secret but its names; `None` when it is about a secret alone.
    /// Asked only when a secret is among the changes.
    fn open(&self) -> serde_json::Result<Option<Box<RawValue>>>;
}

/// What is left of a call that was made, when its result is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Made {
    /// It was about a secret of this version, which a journal has outlived.
    Lost(u64),
}

/// What is known of a call that was made with a key.
#[derive(Clone)]
pub(crate) struct Known {
    /// Its result; not known any more of one about a secret that a journal has outlived.
    result: Option<Arc<RawValue>>,
    /// The same as a record may hold it.
    open: Option<Arc<RawValue>>,
    /// Of one about a secret alone: the version it led to, which is all that is written of it.
    version: Option<u64>,
}

impl Known {
    /// What there is to know of a call that is about to change something.
    pub fn new(out: &impl Answer, changes: &[Change]) -> Result<Self> {
        let broken = |_| Error::invalid("The result cannot be written as JSON.");
        let result: Arc<RawValue> = to_raw_value(out).map_err(broken)?.into();
        let Some(version) = version_of_secret(changes) else {
            return Ok(Self { result: Some(Arc::clone(&result)), open: Some(result), version: None });
        };
        let open: Option<Arc<RawValue>> = out.open().map_err(broken)?.map(Into::into);
        let version = open.is_none().then_some(version);
        Ok(Self { result: Some(result), open, version })
    }

    /// What a record says of it.
    pub fn restored(done: &Done<'_>) -> Self {
        let result: Option<Arc<RawValue>> = done.result.map(|result| result.to_owned().into());
        Self { open: result.clone(), result, version: done.version }
    }

    /// The result and the version as a record may hold them.
    pub fn recorded(&self) -> (Option<&RawValue>, Option<u64>) {
        (self.open.as_deref(), self.version)
    }

    fn size(&self) -> usize {
        let len = |result: &Option<Arc<RawValue>>| result.as_ref().map_or(0, |result| result.get().len());
        len(&self.result).max(len(&self.open))
    }
}

/// The version of a secret among the changes, if there is one.
fn version_of_secret(changes: &[Change]) -> Option<u64> {
    changes.iter().find_map(|change| match change {
        Change::Put(hint) | Change::Delete(hint) if hint.is_secret() => Some(hint.version()),
        _ => None,
    })
}

/// The last calls that were made with a key, oldest first.
#[derive(Default)]
pub(crate) struct Keys {
    calls: VecDeque<(Box<str>, Known)>,
    bytes: usize,
}

impl Keys {
    fn get(&self, key: &str) -> Option<&Known> {
        self.calls.iter().rev().find(|(known, _)| **known == *key).map(|(_, known)| known)
    }

    pub fn insert(&mut self, key: &str, known: Known) {
        self.bytes += key.len() + known.size();
        self.calls.push_back((key.into(), known));
        while self.calls.len() > MAX_KEYS || (self.bytes > MAX_KEY_BYTES && self.calls.len() > 1) {
            let Some((key, known)) = self.calls.pop_front() else { return };
            self.bytes -= key.len() + known.size();
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = Done<'_>> {
        self.calls.iter().map(|(key, known)| {
            let (result, version) = known.recorded();
            Done { key: (&**key).into(), result, version }
        })
    }
}

impl Nudge {
    /// Makes a call unless one with this key was made: then its result is given again. The same key
    /// waits for the call that is being made with it; no other does.
    pub(crate) fn once(
        &self,
        key: &str,
        call: impl FnOnce(Option<Made>) -> Result<Box<RawValue>>,
    ) -> Result<Box<RawValue>> {
        let _turn = self.in_flight.enter(key);
        let known = self.keys.lock().get(key).cloned();
        match known {
            Some(Known { result: Some(result), .. }) => Ok(result.as_ref().to_owned()),
            Some(Known { result: None, version, .. }) => call(version.map(Made::Lost)),
            None => call(None),
        }
    }
}
