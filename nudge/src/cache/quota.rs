//! The limits of the store (semantics section 5).

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use nudge_core::clock::Millis;
use nudge_core::error::{Error, Result};

use super::{Nudge, Writer};
use crate::hint::{Hint, Source};
use crate::store::{Change, Store, component_bytes, component_held};

impl Nudge {
    /// Refuses changes that would not fit, after dropping expired hints.
    pub(super) fn check_quotas(
        &self,
        writer: &mut Writer,
        by_agent: bool,
        changes: &[Change],
        now: Millis,
    ) -> Result<()> {
        self.fits(writer, by_agent, changes).or_else(|refusal| match self.sweep_locked(writer, now) {
            0 => Err(refusal),
            _ => self.fits(writer, by_agent, changes),
        })
    }

    fn fits(&self, writer: &Writer, by_agent: bool, changes: &[Change]) -> Result<()> {
        let mut sizes = self.store.sizes();
        let extra = changes.iter().rev().find_map(|change| match change {
            Change::Extra(extra) => Some(extra),
            _ => None,
        });
        sizes.bytes += extra.or(writer.extra.as_ref()).map_or(0, |extra| extra.get().len());
        // The number of hints in each touched component, before and after.
        let mut touched: HashMap<&str, (usize, usize), foldhash::fast::RandomState> = HashMap::default();
        let mut kept = 0;
        let mut gone: HashSet<*const Hint, foldhash::fast::RandomState> = HashSet::default();
        for change in changes {
            let (component, old, new) = match change {
                Change::Put(hint) => (&*hint.component, stored(&self.store, hint), Some(hint)),
                Change::Delete(hint) => (&*hint.component, Some(Arc::clone(hint)), None),
                // A person's must be kept beside what an agent puts in its place.
                Change::Replaced(hint) if by_agent && hint.source() == Some(Source::User) => {
                    kept += hint.held as usize;
                    continue;
                }
                Change::Replaced(_) | Change::Extra(_) => continue,
            };
            let (_, count) = touched.entry(component).or_insert_with(|| {
                let before = self.store.component_len(component);
                (before, before)
            });
            if let Some(old) = old.filter(|old| gone.insert(Arc::as_ptr(old))) {
                *count -= 1;
                sizes.hints -= 1;
                sizes.bytes -= old.bytes as usize;
                sizes.held -= old.held as usize;
            }
            if let Some(new) = new {
                *count += 1;
                sizes.hints += 1;
                sizes.bytes += new.bytes as usize;
                sizes.held += new.held as usize;
            }
        }
        for (name, &(before, after)) in &touched {
            match (before, after) {
                (0, 1..) => {
                    sizes.components += 1;
                    sizes.bytes += component_bytes(name);
                    sizes.held += component_held(name);
                }
                (1.., 0) => {
                    sizes.components -= 1;
                    sizes.bytes -= component_bytes(name);
                    sizes.held -= component_held(name);
                }
                _ => {}
            }
        }
        let fullest = touched.values().map(|&(_, after)| after).max().unwrap_or_default();
        let limits = [
            ("components", sizes.components, self.config.max_components),
            ("hints_per_component", fullest, self.config.max_hints_per_component),
            ("hints", sizes.hints, self.config.max_hints),
            ("bytes", sizes.bytes, self.config.max_bytes),
        ];
        match limits.into_iter().find(|(_, size, max)| size > max) {
            Some((limit, _, max)) => Err(full(limit, max)),
            None if sizes.held + kept > self.config.max_held() => Err(full("memory", self.config.max_bytes)),
            None => Ok(()),
        }
    }

    /// Returns the bytes of memory that are free for deletions that can be undone.
    pub(super) fn room_for_trash(&self) -> usize {
        self.config.max_held().saturating_sub(self.store.sizes().held)
    }
}

/// Returns the hint that `hint` replaces.
fn stored(store: &Store, hint: &Hint) -> Option<Arc<Hint>> {
    store.variants(&hint.component, &hint.key).1.into_iter().find(|old| old.variant() == hint.variant())
}

fn full(limit: &str, max: usize) -> Error {
    let (limit, what) = match limit {
        "components" => (limit, "components"),
        "hints_per_component" => (limit, "hints in this component"),
        "hints" => (limit, "hints"),
        "memory" => ("bytes", "bytes of hints, and twice that in memory,"),
        _ => ("bytes", "bytes of hints"),
    };
    let message =
        format!("The store is full ({max} {what} at most); delete hints that are no longer needed or raise the limit.");
    Error::quota(limit, max, message)
}
