//! The last deletions, kept in memory for this session within limits, so that they can be undone. What an agent put
//! another hint in place of, and was a person's, counts as one.

use std::collections::VecDeque;
use std::sync::Arc;

use nudge_core::clock::Millis;
use serde::Serialize;

use crate::hint::Hint;
use crate::log::Applied;

/// Largest number of remembered deletions.
const MAX_DELETIONS: usize = 100;
/// Largest size of deleted hints as exported, in bytes; the last deletion is remembered whatever its size, if there is
/// memory for it.
const MAX_BYTES: usize = 4 << 20;

/// The way in which hints went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Gone {
    /// They were deleted.
    Deleted,
    /// An agent put others in their place; they were a person's.
    Replaced,
}

impl Gone {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Deleted => "deleted",
            Self::Replaced => "replaced",
        }
    }
}

/// A call that deleted hints.
#[derive(Debug, Clone)]
pub(crate) struct Deleted {
    /// The id, counted from 1.
    pub id: u64,
    pub at: Millis,
    /// The caller's name; empty when unknown.
    pub by: Box<str>,
    pub what: Gone,
    pub hints: Vec<Arc<Hint>>,
}

impl Deleted {
    fn bytes(&self) -> usize {
        self.hints.iter().map(|hint| hint.bytes as usize).sum()
    }

    fn held(&self) -> usize {
        self.hints.iter().map(|hint| hint.held as usize).sum::<usize>() + size_of::<Self>() + self.by.len()
    }
}

/// The last deletions, oldest first.
#[derive(Default)]
pub(crate) struct Trash {
    deletions: VecDeque<Deleted>,
    last_id: u64,
}

impl Trash {
    /// Remembers the hints that a call deleted, without those that expired or were put back by the same call; and, as
    /// a deletion of its own, those that it replaced.
    pub fn note(&mut self, applied: &Applied<'_>) {
        match applied.verb {
            "expire" => return,
            "undo" => return self.forget_undone(applied),
            _ => {}
        }
        for (what, hints) in [
            (Gone::Deleted, applied.gone().cloned().collect::<Vec<_>>()),
            (Gone::Replaced, applied.replaced().cloned().collect()),
        ] {
            if !hints.is_empty() {
                let (at, by) = (applied.at, applied.by.name.into());
                self.restore(Deleted { id: self.last_id + 1, at, by, what, hints });
            }
        }
    }

    /// Remembers a deletion.
    pub fn restore(&mut self, deleted: Deleted) {
        self.last_id = self.last_id.max(deleted.id);
        self.deletions.push_back(deleted);
        let mut bytes: usize = self.deletions.iter().map(Deleted::bytes).sum();
        while self.deletions.len() > 1 && (self.deletions.len() > MAX_DELETIONS || bytes > MAX_BYTES) {
            bytes -= self.deletions.pop_front().map_or(0, |oldest| oldest.bytes());
        }
    }

    /// Forgets the oldest deletions until the others take no more than `room`, in bytes of memory.
    pub fn fit(&mut self, room: usize) {
        let mut held: usize = self.deletions.iter().map(Deleted::held).sum();
        while held > room
            && let Some(oldest) = self.deletions.pop_front()
        {
            held -= oldest.held();
        }
    }

    /// Returns true when nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.deletions.is_empty()
    }

    /// Returns the id of the last deletion, even if it is forgotten.
    pub fn last_id(&self) -> u64 {
        self.last_id
    }

    /// Continues the ids after `last_id`.
    pub fn count_from(&mut self, last_id: u64) {
        self.last_id = self.last_id.max(last_id);
    }

    /// Returns the deletions, newest first.
    pub fn iter(&self) -> impl Iterator<Item = &Deleted> {
        self.deletions.iter().rev()
    }

    /// Forgets the restored hints, in the last deletion that holds the first of them.
    fn forget_undone(&mut self, applied: &Applied<'_>) {
        let same = |what: Gone, was: &Hint, back: &Hint| {
            let name = |hint: &Hint| (hint.component().to_owned(), hint.key().to_owned(), hint.variant().to_owned());
            let times = |hint: &Hint| (hint.created_at(), hint.updated_at());
            // What comes back in the place of another has a later version than that.
            let versions = was.version() == back.version() || what == Gone::Replaced && was.version() < back.version();
            versions && times(was) == times(back) && was.value() == back.value() && name(was) == name(back)
        };
        let Some(first) = applied.put().next() else { return };
        let held = |deleted: &Deleted| deleted.hints.iter().any(|hint| same(deleted.what, hint, first));
        if let Some(deleted) = self.deletions.iter_mut().rev().find(|deleted| held(deleted)) {
            deleted.hints.retain(|hint| !applied.put().any(|back| same(deleted.what, hint, back)));
        }
        self.deletions.retain(|deleted| !deleted.hints.is_empty());
    }
}
