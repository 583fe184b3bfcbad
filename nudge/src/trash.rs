//! Keeps the last deletions in memory for this session, within limits, so that callers can undo them. A replaced value
//! counts as a deletion.

use std::collections::VecDeque;
use std::sync::Arc;

use nudge_core::clock::Millis;
use serde::{Deserialize, Serialize};

use crate::hint::{Hint, HintOrigin};
use crate::log::AppliedWrite;

/// The most remembered deletions. The same number of minor deletions ([`TrashEntry::is_minor`]) is remembered in
/// addition.
const MAX_DELETIONS: usize = 100;
/// The most bytes that all remembered hints have in an export. The last deletion is remembered regardless of its size,
/// if there is enough memory.
const MAX_BYTES: usize = 4 << 20;

/// The way in which hints were removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeletionKind {
    /// The hints were deleted.
    Deleted,
    /// Other hints replaced them.
    Replaced,
}

/// A call that deleted hints.
#[derive(Debug, Clone)]
pub(crate) struct TrashEntry {
    /// The id. The first deletion has 1.
    pub id: u64,
    pub at: Millis,
    /// The caller's name; empty when it is unknown.
    pub by: Box<str>,
    pub what: DeletionKind,
    pub hints: Vec<Arc<Hint>>,
}

impl TrashEntry {
    fn count_bytes(&self) -> usize {
        self.hints.iter().map(|hint| hint.bytes as usize).sum()
    }

    fn held_bytes(&self) -> usize {
        self.hints.iter().map(|hint| hint.held as usize).sum::<usize>() + size_of::<Self>() + self.by.len()
    }

    /// Returns true for replaced values that no person had stored. Such values are replaced often, so they are
    /// dropped first.
    fn is_minor(&self) -> bool {
        self.what == DeletionKind::Replaced && self.hints.iter().all(|hint| hint.source() != Some(HintOrigin::User))
    }
}

/// The changes to the trash that a write will make.
#[derive(Default)]
pub(crate) struct TrashPlan {
    /// The new deletions.
    pub added: Vec<TrashEntry>,
    /// The index of a deletion of which hints are restored, and the remaining deletion, which may have no hints.
    pub undone: Option<(usize, TrashEntry)>,
    /// The id of the last deletion after the changes.
    pub last_id: u64,
}

/// The last deletions, from the oldest to the newest.
#[derive(Default)]
pub(crate) struct HintTrash {
    deletions: VecDeque<TrashEntry>,
    last_id: u64,
    /// The size of the hints in an export, in bytes.
    bytes: usize,
    /// The memory that the deletions take, in bytes.
    held: usize,
    /// The number of minor deletions.
    minor: usize,
}

impl HintTrash {
    /// Plans to remember the hints that a call deletes. Hints that have expired, or that the same call restores, are left
    /// out. The hints that the call replaces are remembered as a second deletion.
    pub fn plan_deletions(&self, applied: &AppliedWrite<'_>) -> TrashPlan {
        let mut plan = TrashPlan { last_id: self.last_id, ..TrashPlan::default() };
        match applied.verb {
            "expire" => {}
            "undo" => plan.undone = self.plan_undone(applied),
            _ => {
                for (what, hints) in [
                    (DeletionKind::Deleted, applied.list_gone().cloned().collect::<Vec<_>>()),
                    (DeletionKind::Replaced, applied.list_replaced().cloned().collect()),
                ] {
                    if !hints.is_empty() {
                        plan.last_id += 1;
                        let (id, time) = (plan.last_id, applied.time);
                        plan.added.push(TrashEntry { id, at: time, by: applied.caller.name.into(), what, hints });
                    }
                }
            }
        }
        plan
    }

    /// Carries out a plan. Returns the ids of the deletions that were dropped because of a limit.
    pub fn apply_plan(&mut self, plan: TrashPlan) -> Vec<u64> {
        if let Some((index, rest)) = plan.undone {
            self.forget_entry(index);
            if !rest.hints.is_empty() {
                self.count_entry(&rest);
                self.deletions.insert(index, rest);
            }
        }
        plan.added.into_iter().flat_map(|entry| self.restore_entry(entry)).collect()
    }

    /// Remembers a deletion that was planned or read from a row. Returns the ids of the deletions that were dropped
    /// because of a limit.
    pub fn restore_entry(&mut self, deleted: TrashEntry) -> Vec<u64> {
        self.last_id = self.last_id.max(deleted.id);
        let minor = deleted.is_minor();
        self.count_entry(&deleted);
        self.deletions.push_back(deleted);
        let mut dropped = Vec::new();
        let alike = if minor { self.minor } else { self.deletions.len() - self.minor };
        if alike > MAX_DELETIONS
            && let Some(oldest) = self.deletions.iter().position(|deleted| deleted.is_minor() == minor)
        {
            dropped.extend(self.forget_entry(oldest));
        }
        while self.deletions.len() > 1 && self.bytes > MAX_BYTES {
            dropped.extend(self.forget_entry(self.find_least()));
        }
        dropped
    }

    /// Drops deletions until the rest takes at most `room` bytes of memory. Returns the ids of the dropped deletions.
    pub fn shrink_to(&mut self, room: usize) -> Vec<u64> {
        let mut dropped = Vec::new();
        while self.held > room && !self.deletions.is_empty() {
            dropped.extend(self.forget_entry(self.find_least()));
        }
        dropped
    }

    /// Returns the index of the deletion to drop first: the oldest minor one, or else the oldest one. The last deletion
    /// is dropped only when there is no other.
    fn find_least(&self) -> usize {
        let but_last = self.deletions.len().saturating_sub(1);
        self.deletions.iter().take(but_last).position(TrashEntry::is_minor).unwrap_or(0)
    }

    /// Drops a deletion and returns its id.
    fn forget_entry(&mut self, index: usize) -> Option<u64> {
        let gone = self.deletions.remove(index)?;
        self.bytes -= gone.count_bytes();
        self.held -= gone.held_bytes();
        self.minor -= usize::from(gone.is_minor());
        Some(gone.id)
    }

    fn count_entry(&mut self, deleted: &TrashEntry) {
        self.bytes += deleted.count_bytes();
        self.held += deleted.held_bytes();
        self.minor += usize::from(deleted.is_minor());
    }

    /// Returns the id of the last deletion, even if that deletion was dropped.
    pub fn last_id(&self) -> u64 {
        self.last_id
    }

    /// Makes the next id follow `last_id`.
    pub fn count_from(&mut self, last_id: u64) {
        self.last_id = self.last_id.max(last_id);
    }

    /// Finds the hint that `stands` replaced, and the id of that replacement.
    pub fn replaced_by(&self, stands: &Hint) -> Option<(u64, Arc<Hint>)> {
        let is_same_hint = |hint: &&Arc<Hint>| {
            hint.component() == stands.component() && hint.key() == stands.key() && hint.variant() == stands.variant()
        };
        self.iter()
            .filter(|deleted| deleted.what == DeletionKind::Replaced && deleted.at == stands.updated_at())
            .find_map(|deleted| deleted.hints.iter().find(is_same_hint).map(|hint| (deleted.id, Arc::clone(hint))))
    }

    /// Returns the deletions, newest first.
    pub fn iter(&self) -> impl Iterator<Item = &TrashEntry> {
        self.deletions.iter().rev()
    }

    /// Plans to remove restored hints: from the last deletion that contains the first restored hint. Returns the index
    /// of that deletion, and what remains of it.
    fn plan_undone(&self, applied: &AppliedWrite<'_>) -> Option<(usize, TrashEntry)> {
        let same = |what: DeletionKind, was: &Hint, back: &Hint| {
            let name = |hint: &Hint| (hint.component().to_owned(), hint.key().to_owned(), hint.variant().to_owned());
            let times = |hint: &Hint| (hint.created_at(), hint.updated_at());
            // A restored hint that replaces another hint gets a later version.
            let versions =
                was.version() == back.version() || what == DeletionKind::Replaced && was.version() < back.version();
            versions && times(was) == times(back) && was.value() == back.value() && name(was) == name(back)
        };
        let first = applied.list_put().next()?;
        let held = |deleted: &TrashEntry| deleted.hints.iter().any(|hint| same(deleted.what, hint, first));
        let index = self.deletions.iter().rposition(held)?;
        let mut rest = self.deletions[index].clone();
        rest.hints.retain(|hint| !applied.list_put().any(|back| same(rest.what, hint, back)));
        Some((index, rest))
    }
}
