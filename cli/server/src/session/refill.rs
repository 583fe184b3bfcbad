//! Imports the kept hints into a session, in pieces. If the limits do not have room for all hints, the most used hints
//! come first.

use std::cmp::Reverse;
use std::collections::HashSet;

use nudge::{Error, ErrorKind, Result};
use nudge_app::kept::KeptDocument;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The most bytes of hints in one import. An import is one transaction.
pub const MAX_PIECE_BYTES: usize = 8 << 20;

/// A kept hint with its component and key.
pub type KeptHint<'a> = (&'a str, &'a str, &'a RawValue);

/// The state and the result of an import of kept hints.
#[derive(Debug)]
pub struct RefillResult<'a> {
    /// The most bytes of hints in one import.
    piece_bytes: usize,
    /// The hints that did not fit.
    pub left: Vec<KeptHint<'a>>,
    /// The number of hints that the import refused as wrong.
    pub wrong: usize,
    /// True when no more hints fit into the session.
    is_full: bool,
    /// The components into which no more hints fit.
    full: HashSet<&'a str>,
    /// True when no more components fit into the session.
    has_all_components: bool,
    components: HashSet<&'a str>,
}

impl Default for RefillResult<'_> {
    fn default() -> Self {
        Self {
            piece_bytes: MAX_PIECE_BYTES,
            left: Vec::new(),
            wrong: 0,
            is_full: false,
            full: HashSet::new(),
            has_all_components: false,
            components: HashSet::new(),
        }
    }
}

impl<'a> RefillResult<'a> {
    /// Makes the state for imports of at most this many bytes each.
    pub fn in_pieces_of(piece_bytes: usize) -> Self {
        Self { piece_bytes, ..Self::default() }
    }

    /// Makes the result of an import that took all hints, except `wrong` refused ones.
    pub fn with_all_taken(wrong: usize) -> Self {
        Self { wrong, ..Self::default() }
    }

    /// Imports hints, the most used hints first. `import` takes a payload of `nudge.import`, and returns the number of
    /// hints that it refused as wrong.
    ///
    /// # Errors
    /// The first error of `import` other than `E_QUOTA`.
    pub fn import_hints(
        &mut self,
        mut hints: Vec<KeptHint<'a>>,
        import: &impl Fn(&str) -> Result<usize>,
    ) -> Result<()> {
        hints.sort_by_cached_key(|(_, _, hint)| Reverse(rate_usefulness(hint)));
        let mut rest = hints.as_slice();
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = |(component, key, hint): &&KeptHint<'_>| {
                bytes += component.len() + key.len() + hint.get().len();
                bytes <= self.piece_bytes
            };
            let count = rest.iter().take_while(fits).count().max(1);
            let (piece, others) = rest.split_at(count);
            self.add_piece(piece, import)?;
            rest = others;
        }
        Ok(())
    }

    fn add_piece(&mut self, piece: &[KeptHint<'a>], import: &impl Fn(&str) -> Result<usize>) -> Result<()> {
        let (hints, without_room): (Vec<_>, Vec<_>) =
            piece.iter().partition(|(component, ..)| self.has_room(component));
        self.left.extend(without_room);
        if hints.is_empty() {
            return Ok(());
        }
        match import(&KeptDocument::from_hints(hints.iter().copied()).to_payload()) {
            Ok(wrong) => {
                self.wrong += wrong;
                self.components.extend(hints.iter().map(|(component, ..)| *component));
            }
            Err(error) if error.kind() == ErrorKind::Quota => match hints.as_slice() {
                [hint] => {
                    self.note_limit(hint.0, &error);
                    self.left.push(*hint);
                }
                many => {
                    let (first, second) = many.split_at(many.len() / 2);
                    self.add_piece(first, import)?;
                    self.add_piece(second, import)?;
                }
            },
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn has_room(&self, component: &str) -> bool {
        !self.is_full
            && !self.full.contains(component)
            && (!self.has_all_components || self.components.contains(component))
    }

    /// Notes which limit refused a hint, so that no other hint is tried against the same limit.
    fn note_limit(&mut self, component: &'a str, error: &Error) {
        match error.data().get("limit").and_then(|limit| limit.as_str()) {
            Some("hints_per_component") => drop(self.full.insert(component)),
            Some("components") => self.has_all_components = true,
            _ => self.is_full = true,
        }
    }
}

/// Rates a hint's usefulness: first by its use count, then by the time of its last use or change.
fn rate_usefulness(hint: &RawValue) -> (u64, Option<String>) {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct UsedHint {
        use_count: u64,
        last_used_at: Option<String>,
        updated_at: String,
    }
    // A hint that cannot be read counts as useless.
    let Ok(UsedHint { use_count, last_used_at, updated_at }) = serde_json::from_str(hint.get()) else {
        return (0, None);
    };
    // All times have the same format, so their texts have the order of the times.
    (use_count, last_used_at.max(Some(updated_at)))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use serde_json::value::to_raw_value;
    use serde_json::{Value, json};

    use super::*;

    fn keys(payload: &str) -> Vec<(String, String)> {
        let payload: Value = serde_json::from_str(payload).unwrap();
        let components = payload["components"].as_object().unwrap();
        let list_keys = |(name, hints): (&String, &Value)| {
            let keys = hints["hints"].as_object().unwrap().keys().cloned();
            keys.map(|key| (name.clone(), key)).collect::<Vec<_>>()
        };
        components.iter().flat_map(list_keys).collect()
    }

    #[test]
    fn what_was_of_most_use_finds_room() {
        let used = |count: u64| to_raw_value(&json!({"value": "x", "use_count": count})).unwrap();
        let raws: Vec<_> = (0..100).map(|n| (format!("c{}", n / 10), format!("k{n:02}"), used(n))).collect();
        let hints: Vec<KeptHint<'_>> = raws.iter().map(|(c, k, hint)| (&**c, &**k, &**hint)).collect();
        for (limit, expected) in [("hints", "k93"), ("hints_per_component", "k03"), ("components", "k30")] {
            let stored = RefCell::new(Vec::new());
            let calls = RefCell::new(0);
            let import = |payload: &str| {
                *calls.borrow_mut() += 1;
                let mut all = stored.borrow().clone();
                all.extend(keys(payload));
                let counts = |name: &str| all.iter().filter(|(component, _)| component == name).count();
                let over = match limit {
                    "hints" => all.len() > 7,
                    "components" => all.iter().map(|(component, _)| component).collect::<HashSet<_>>().len() > 7,
                    _ => all.iter().any(|(component, _)| counts(component) > 7),
                };
                if over {
                    return Err(Error::quota(limit, 7, "full"));
                }
                *stored.borrow_mut() = all;
                Ok(0)
            };
            let mut refill = RefillResult::default();
            refill.import_hints(hints.clone(), &import).unwrap();
            let mut stored: Vec<_> = stored.borrow().iter().map(|(_, key)| key.clone()).collect();
            stored.sort();
            assert_eq!((stored[0].as_str(), stored.len() + refill.left.len()), (expected, 100), "{limit}");
            assert_eq!(stored.last().unwrap(), "k99");
            assert!(*calls.borrow() < 120, "{limit}: {}", calls.borrow());
        }
    }

    #[test]
    fn a_million_hints_are_no_one_record() {
        let text = to_raw_value(&json!({"value": "x".repeat(1 << 20)})).unwrap();
        let hints: Vec<_> = (0..20).map(|_| ("a", "k", &*text)).collect();
        let sizes = RefCell::new(Vec::new());
        let import = |payload: &str| {
            sizes.borrow_mut().push(payload.len());
            Ok(0)
        };
        RefillResult::default().import_hints(hints, &import).unwrap();
        assert!(sizes.borrow().len() >= 3 && sizes.borrow().iter().all(|size| *size < MAX_PIECE_BYTES + 1024));
    }
}
