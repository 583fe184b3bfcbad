//! What was deleted lately, so that it can be brought back: in memory, for this session, bounded.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use crate::clock::Millis;
use crate::hint::Hint;
use crate::log::Applied;
use crate::store::Change;

/// Most deletions remembered.
const MAX_DELETIONS: usize = 100;
/// Most bytes of deleted hints, as exported; the last deletion is remembered whatever its size.
const MAX_BYTES: usize = 4 << 20;

/// One call that deleted hints.
#[derive(Debug, Clone)]
pub(crate) struct Deleted {
    /// Counts up from 1.
    pub id: u64,
    pub at: Millis,
    /// On whose behalf; empty when unknown.
    pub by: Box<str>,
    pub hints: Vec<Arc<Hint>>,
}

impl Deleted {
    fn bytes(&self) -> usize {
        self.hints.iter().map(|hint| hint.bytes as usize).sum()
    }
}

/// The last deletions, oldest first.
#[derive(Default)]
pub(crate) struct Trash {
    deletions: VecDeque<Deleted>,
    last_id: u64,
}

impl Trash {
    /// Remembers what a call deleted. What only expired, or was put back by the same call, is not that.
    pub fn note(&mut self, applied: &Applied<'_>) {
        if applied.verb == "expire" {
            return;
        }
        let name = |hint: &Hint| (Arc::clone(&hint.component), hint.key().to_owned(), hint.variant().to_owned());
        let put = applied.changes.iter().filter_map(|change| match change {
            Change::Put(hint) => Some(name(hint)),
            _ => None,
        });
        let deleted = |change: &Change| match change {
            Change::Delete(hint) => Some(Arc::clone(hint)),
            _ => None,
        };
        let mut hints: Vec<_> = applied.changes.iter().filter_map(deleted).collect();
        if hints.is_empty() {
            return;
        }
        let put: HashSet<_> = put.collect();
        hints.retain(|hint| !put.contains(&name(hint)));
        if hints.is_empty() {
            return;
        }
        self.last_id += 1;
        self.deletions.push_back(Deleted { id: self.last_id, at: applied.at, by: applied.by.name.into(), hints });
        let mut bytes: usize = self.deletions.iter().map(Deleted::bytes).sum();
        while self.deletions.len() > 1 && (self.deletions.len() > MAX_DELETIONS || bytes > MAX_BYTES) {
            bytes -= self.deletions.pop_front().map_or(0, |oldest| oldest.bytes());
        }
    }

    /// Newest first.
    pub fn iter(&self) -> impl Iterator<Item = &Deleted> {
        self.deletions.iter().rev()
    }

    /// Forgets one that was brought back.
    pub fn forget(&mut self, id: u64) {
        self.deletions.retain(|deleted| deleted.id != id);
    }
}
