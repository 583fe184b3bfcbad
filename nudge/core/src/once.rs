//! Carries out each call with a key once, even if the caller sends it several times or to the next PRIMARY.
//!
//! A caller that cannot tell whether its call arrived sends it again with the same key. The source stores the key and
//! the result together with the change, in the same transaction. [`CallMemory`] does this for a source in
//! memory; a source with a database has its own [`OnceByKey`].

mod in_flight;

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::error::{Error, Result};
use crate::service::{CallIdentity, EarlierCall};
use crate::wire::json_text;

use in_flight::InFlight;

/// The most keys that are remembered; the oldest keys are dropped first.
const MAX_KEYS: usize = 1_024;
/// The most bytes of keys and results together. Above this limit the oldest large results are dropped. Keys, the last
/// result, and results that are only about a secret are never dropped.
const MAX_KEY_BYTES: usize = 4 << 20;
/// A result of at most this size is never dropped: [`MAX_KEYS`] such results fit within [`MAX_KEY_BYTES`].
const SMALL_RESULT: usize = 4 << 10;

/// Carries out calls once by key.
pub trait OnceByKey {
    /// Carries out a call once. If a call with this key was made before, returns its stored result. If that result was
    /// dropped, `make` receives the remembered part of the earlier call.
    ///
    /// # Errors
    /// The errors of the call; `E_INVALID` when the key was used for another call.
    fn make_once(
        &self,
        key: &str,
        call: CallIdentity,
        make: &mut dyn FnMut(Option<EarlierCall>) -> Result<Box<RawValue>>,
    ) -> Result<Box<RawValue>>;
}

/// The result of a call that changes something, in forms for memory and for records.
pub trait RecordableResult: Serialize {
    /// Returns the result as JSON in which secrets appear only by name; `None` when the result is only about a secret.
    /// The method is called only when the call changes a secret.
    ///
    /// # Errors
    /// An error when the result has no form in JSON.
    fn without_secrets(&self) -> serde_json::Result<Option<Box<RawValue>>>;
}

/// A remembered call that was made with a key.
#[derive(Clone)]
pub struct MadeCall {
    /// The result. `None` when the result was large and has been dropped, or when another process made the call and the
    /// call was about a secret.
    result: Option<Arc<RawValue>>,
    /// The result without secrets, in the form for records.
    open: Option<Arc<RawValue>>,
    /// The version after a call that is only about a secret. It is the only part of such a result that a record stores.
    version: Option<u64>,
    /// The call, as [`CallIdentity::to_record_text`] writes it; `None` when the caller gave no call.
    call: Option<Arc<str>>,
}

impl MadeCall {
    /// Makes the memory of a call that is about to change something. `secret` is the version of the secret that the
    /// call changes, if it changes one.
    ///
    /// # Errors
    /// `E_INVALID` when the result has no form in JSON.
    pub fn new(call: Option<CallIdentity>, out: &impl RecordableResult, secret: Option<u64>) -> Result<Self> {
        let broken = |_| Error::invalid("The result cannot be written as JSON; report this.");
        let result: Arc<RawValue> = to_raw_value(out).map_err(broken)?.into();
        let call = call.map(|call| call.to_record_text(secret.is_some()).into());
        let Some(version) = secret else {
            return Ok(Self { result: Some(Arc::clone(&result)), open: Some(result), version: None, call });
        };
        let open: Option<Arc<RawValue>> = out.without_secrets().map_err(broken)?.map(Into::into);
        let version = open.is_none().then_some(version);
        Ok(Self { result: Some(result), open, version, call })
    }

    /// Reads a call from its record.
    pub fn from_record(done: &CallRecord<'_>) -> Self {
        let result: Option<Arc<RawValue>> = done.result.map(|result| result.to_owned().into());
        Self { open: result.clone(), result, version: done.version, call: done.call.as_deref().map(Into::into) }
    }

    /// Returns the result, the version and the call in the form for records.
    pub fn to_record_fields(&self) -> (Option<&RawValue>, Option<u64>, Option<&str>) {
        (self.open.as_deref(), self.version, self.call.as_deref())
    }

    /// Makes a record of the call and its key.
    pub fn to_record<'a>(&'a self, key: &'a str) -> CallRecord<'a> {
        let (result, version, call) = self.to_record_fields();
        CallRecord { key: key.into(), result, version, call: call.map(Into::into) }
    }

    fn held_bytes(&self) -> usize {
        let len = |result: &Option<Arc<RawValue>>| result.as_ref().map_or(0, |result| result.get().len());
        len(&self.result).max(len(&self.open))
    }
}

/// A remembered call with its key. The numbers count the calls of a session in their order.
struct NumberedCall {
    number: u64,
    key: Box<str>,
    made: MadeCall,
}

impl NumberedCall {
    fn held_bytes(&self) -> usize {
        self.key.len() + self.made.held_bytes()
    }
}

/// An earlier call that was forgotten, wholly or in part, because a call was remembered. Its stored record changes too.
pub struct ForgottenCall {
    /// The number of the call.
    pub number: u64,
    /// The record without its result; `None` when the whole call was forgotten.
    pub rest: Option<String>,
}

/// The last calls with a key, from the oldest to the newest.
#[derive(Default)]
struct RecentCalls {
    calls: VecDeque<NumberedCall>,
    bytes: usize,
    /// The number of the next call.
    next: u64,
}

impl RecentCalls {
    fn find_call(&self, key: &str) -> Option<&MadeCall> {
        self.calls.iter().rev().find(|known| *known.key == *key).map(|known| &known.made)
    }

    fn insert(&mut self, number: u64, key: &str, made: MadeCall) -> Vec<ForgottenCall> {
        let new = NumberedCall { number, key: key.into(), made };
        self.next = number + 1;
        self.bytes += new.held_bytes();
        self.calls.push_back(new);
        let mut forgotten = Vec::new();
        if self.calls.len() > MAX_KEYS
            && let Some(oldest) = self.calls.pop_front()
        {
            self.bytes -= oldest.held_bytes();
            forgotten.push(ForgottenCall { number: oldest.number, rest: None });
        }
        let last = self.calls.len() - 1;
        for known in self.calls.iter_mut().take(last) {
            if self.bytes <= MAX_KEY_BYTES {
                break;
            }
            let bytes = known.made.held_bytes();
            if known.made.version.is_none() && bytes > SMALL_RESULT {
                self.bytes -= bytes;
                (known.made.result, known.made.open) = (None, None);
                let rest = json_text(&known.made.to_record(&known.key));
                forgotten.push(ForgottenCall { number: known.number, rest: Some(rest) });
            }
        }
        forgotten
    }
}

impl EarlierCall {
    /// Refuses a repeated call that would make its change a second time.
    ///
    /// # Errors
    /// `E_CONFLICT` for [`EarlierCall::Dropped`].
    pub fn refuse_change(self) -> Result<()> {
        match self {
            Self::Lost(_) => Ok(()),
            Self::Dropped => Err(Error::conflict(
                "This call was made before and its result is not kept any more; read what is stored now.",
            )),
        }
    }
}

/// The record of a call with a key.
#[derive(Serialize, Deserialize)]
pub struct CallRecord<'a> {
    /// The key.
    #[serde(borrow)]
    pub key: std::borrow::Cow<'a, str>,
    /// The result without secrets; absent when the call is only about secrets.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub result: Option<&'a RawValue>,
    /// The version of the secret; present only when there is no result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// The call, if the caller named it.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub call: Option<std::borrow::Cow<'a, str>>,
}

/// The last 1,024 calls with a key, and the calls that run now.
#[derive(Default)]
pub struct CallMemory {
    in_flight: InFlight,
    keys: Mutex<RecentCalls>,
}

impl OnceByKey for CallMemory {
    /// Waits while a call with the same key runs; calls with other keys do not wait.
    fn make_once(
        &self,
        key: &str,
        call: CallIdentity,
        make: &mut dyn FnMut(Option<EarlierCall>) -> Result<Box<RawValue>>,
    ) -> Result<Box<RawValue>> {
        let _turn = self.in_flight.wait_for_turn(key);
        let known = self.keys.lock().find_call(key).cloned();
        if let Some(made) = known.as_ref().and_then(|known| known.call.as_deref()) {
            call.check_recorded(made)?;
        }
        match known {
            Some(MadeCall { result: Some(result), .. }) => Ok(result.as_ref().to_owned()),
            Some(MadeCall { result: None, version, .. }) => {
                make(Some(version.map_or(EarlierCall::Dropped, EarlierCall::Lost)))
            }
            None => make(None),
        }
    }
}

impl CallMemory {
    /// Returns the number that the next remembered call gets.
    pub fn next_number(&self) -> u64 {
        self.keys.lock().next
    }

    /// Remembers a call together with its change, before any reader can see the change. Returns the calls that were
    /// forgotten for it.
    pub fn remember(&self, key: &str, known: MadeCall) -> Vec<ForgottenCall> {
        let mut keys = self.keys.lock();
        let number = keys.next;
        keys.insert(number, key, known)
    }

    /// Remembers the call that a record describes. The caller restores calls in the order of their numbers. Returns the
    /// calls that were forgotten for it.
    pub fn restore(&self, number: u64, done: &CallRecord<'_>) -> Vec<ForgottenCall> {
        self.keys.lock().insert(number, &done.key, MadeCall::from_record(done))
    }

    /// Calls `look` with each remembered call and its number, from the oldest to the newest. Stops at the first error.
    ///
    /// # Errors
    /// The error of `look`.
    pub fn visit_records(&self, mut look: impl FnMut(u64, CallRecord<'_>) -> Result<()>) -> Result<()> {
        let keys = self.keys.lock();
        keys.calls.iter().try_for_each(|known| look(known.number, known.made.to_record(&known.key)))
    }
}
