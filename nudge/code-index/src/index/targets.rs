//! Caches the targets of a file's calls, so that only the first query about a common name is slow.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{EdgeCertainty, NodeId};

/// The targets of the calls of one file. A query finds a target when it first needs it. Every change of any file
/// empties this cache, because any file may change the meaning of a name.
#[derive(Debug, Default)]
pub(super) struct CallTargets(OnceLock<Box<[AtomicU32]>>);

/// Numbers of bits for the file and the node. File, node and certainty are packed into one word, so that readers never
/// wait for each other.
const FILE: u32 = 17;
const NODE: u32 = 3;
const HOW: u32 = 0b111;
/// Two special words. `OPEN`: no query has needed the target yet. `NONE`: there is no certain target.
const OPEN: u32 = 0;
const NONE: u32 = 1;
/// The certainties in the order of their packed numbers. The first number is `FIRST_HOW`.
const HOWS: [EdgeCertainty; 4] =
    [EdgeCertainty::Local, EdgeCertainty::SelfMember, EdgeCertainty::Imported, EdgeCertainty::Typed];
const FIRST_HOW: u32 = 2;

impl CallTargets {
    /// Returns the target of the call `number`, one of `calls` calls in the file. Calls `find` the first time.
    pub fn target_or_find(
        &self,
        calls: usize,
        number: usize,
        find: impl FnOnce() -> Option<(NodeId, EdgeCertainty)>,
    ) -> Option<(NodeId, EdgeCertainty)> {
        let all = self.0.get_or_init(|| (0..calls).map(|_| AtomicU32::new(OPEN)).collect());
        let Some(place) = all.get(number) else { return find() };
        match place.load(Ordering::Relaxed) {
            OPEN => {
                let found = find();
                if let Some(word) = found.map_or(Some(NONE), |(id, how)| pack_target(id, how)) {
                    place.store(word, Ordering::Relaxed);
                }
                found
            }
            word => unpack_target(word),
        }
    }

    /// Empties the cache.
    pub fn clear_targets(&mut self) {
        self.0.take();
    }

    /// Returns the number of bytes that the cache takes, without its own struct.
    pub fn memory_bytes(&self) -> usize {
        self.0.get().map_or(0, |all| size_of_val(&**all))
    }
}

/// Packs a target into a word. Returns `None` if the target does not fit; each query then finds the target again.
fn pack_target(id: NodeId, how: EdgeCertainty) -> Option<u32> {
    let how_index = u32::try_from(HOWS.iter().position(|other| *other == how)?).ok()?;
    let fits = id.node < 1 << (FILE - NODE) && id.file < 1 << (u32::BITS - FILE);
    fits.then(|| id.file << FILE | id.node << NODE | (FIRST_HOW + how_index))
}

fn unpack_target(word: u32) -> Option<(NodeId, EdgeCertainty)> {
    let how = HOWS.get(usize::try_from((word & HOW).checked_sub(FIRST_HOW)?).ok()?)?;
    let node = word >> NODE & ((1 << (FILE - NODE)) - 1);
    Some((NodeId { file: word >> FILE, node }, *how))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_found_once() {
        let mut targets = CallTargets::default();
        let last = NodeId { file: (1 << 15) - 1, node: (1 << 14) - 1 };
        for (number, found) in
            [None, Some((NodeId { file: 0, node: 0 }, EdgeCertainty::Local)), Some((last, EdgeCertainty::Typed))]
                .into_iter()
                .enumerate()
        {
            assert_eq!(targets.target_or_find(3, number, || found), found);
            assert_eq!(targets.target_or_find(3, number, || unreachable!("it is known")), found, "{number}");
        }
        assert_eq!(targets.memory_bytes(), 12);
        targets.clear_targets();
        assert_eq!(targets.memory_bytes(), 0);
        let other = Some((NodeId { file: 1, node: 1 }, EdgeCertainty::Imported));
        assert_eq!(targets.target_or_find(3, 0, || other), other);
    }

    #[test]
    fn what_does_not_fit_is_found_each_time() {
        let targets = CallTargets::default();
        let far = Some((NodeId { file: 1, node: 1 << 14 }, EdgeCertainty::Local));
        let other = Some((NodeId { file: 1 << 15, node: 1 }, EdgeCertainty::Local));
        let near = Some((NodeId { file: 1, node: 2 }, EdgeCertainty::SelfMember));
        assert_eq!(targets.target_or_find(1, 0, || far), far);
        assert_eq!(targets.target_or_find(1, 0, || near), near);
        assert_eq!(targets.target_or_find(1, 7, || far), far);
        assert_eq!(CallTargets::default().target_or_find(1, 0, || other), other);
    }
}
