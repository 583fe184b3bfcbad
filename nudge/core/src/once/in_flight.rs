//! Holds the keys of running calls: a second call with the same key waits, other calls do not.

use std::collections::HashSet;

use parking_lot::{Condvar, Mutex};

/// The keys of the calls that run now.
#[derive(Default)]
pub(super) struct InFlight {
    keys: Mutex<HashSet<Box<str>>>,
    ended: Condvar,
}

impl InFlight {
    /// Waits until no call with this key runs. The new call then counts as running until the returned value is dropped.
    pub(super) fn wait_for_turn<'a>(&'a self, key: &'a str) -> KeyTurn<'a> {
        let mut keys = self.keys.lock();
        while keys.contains(key) {
            self.ended.wait(&mut keys);
        }
        keys.insert(key.into());
        KeyTurn { all: self, key }
    }
}

/// Marks a call as running while this value exists. A panic of the call drops it too.
pub(super) struct KeyTurn<'a> {
    all: &'a InFlight,
    key: &'a str,
}

impl Drop for KeyTurn<'_> {
    fn drop(&mut self) {
        self.all.keys.lock().remove(self.key);
        self.all.ended.notify_all();
    }
}
