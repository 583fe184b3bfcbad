//! Checks the limits of the store (semantics section 5).

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use nudge_core::clock::Millis;
use nudge_core::error::{Error, Result};

use super::{Nudge, WriterState};
use crate::hint::{Hint, HintOrigin};
use crate::store::{StoreChange, component_bytes, component_held};

impl Nudge {
    /// Refuses changes that exceed a quota, after dropping expired hints. Expired hints that were not dropped because
    /// the clock is not plausible do not count.
    pub(super) fn check_quotas(
        &self,
        writer: &mut WriterState,
        by_agent: bool,
        changes: &[StoreChange],
        now: Millis,
    ) -> Result<()> {
        let Err(refusal) = self.check_hint_quotas(writer, by_agent, changes) else { return Ok(()) };
        let swept = self.sweep_locked(writer);
        let put = changes.iter().filter_map(|change| match change {
            StoreChange::Put(hint) if hint.is_expired(now) => Some(Arc::clone(hint)),
            _ => None,
        });
        let waiting: Vec<_> = put.chain(self.store.list_expired(now)).map(StoreChange::Delete).collect();
        if swept == 0 && waiting.is_empty() {
            return Err(refusal);
        }
        self.check_hint_quotas(writer, by_agent, &[changes, &waiting].concat())
    }

    fn check_hint_quotas(&self, writer: &WriterState, by_agent: bool, changes: &[StoreChange]) -> Result<()> {
        let mut sizes = self.store.sizes();
        let extra = changes.iter().rev().find_map(|change| match change {
            StoreChange::Extra(extra) => Some(extra),
            _ => None,
        });
        sizes.bytes += extra.or(writer.extra.as_ref()).map_or(0, |extra| extra.get().len());
        // The number of hints in each changed component, before and after the changes.
        let mut touched: HashMap<&str, (usize, usize), foldhash::fast::RandomState> = HashMap::default();
        let mut kept = 0;
        let mut gone: HashSet<*const Hint, foldhash::fast::RandomState> = HashSet::default();
        for change in changes {
            let (component, old, new) = match change {
                StoreChange::Put(hint) => {
                    let old = self.store.find_variant(&hint.component, &hint.key, hint.variant());
                    (&*hint.component, old, Some(hint))
                }
                StoreChange::Delete(hint) => (&*hint.component, Some(Arc::clone(hint)), None),
                // The store keeps a person's hint for `undo` when an agent's hint replaces it.
                StoreChange::Replaced(hint) if by_agent && hint.source() == Some(HintOrigin::User) => {
                    kept += hint.held as usize;
                    continue;
                }
                StoreChange::Replaced(_) | StoreChange::Extra(_) => continue,
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
        let fullest = touched.values().map(|&(_, after)| after).fold(0, usize::max);
        let limits = [
            ("components", sizes.components, self.config.max_components),
            ("hints_per_component", fullest, self.config.max_hints_per_component),
            ("hints", sizes.hints, self.config.max_hints),
            ("bytes", sizes.bytes, self.config.max_bytes),
        ];
        match limits.into_iter().find(|(_, size, max)| size > max) {
            Some((limit, _, max)) => Err(quota_error(limit, max)),
            None if sizes.held + kept > self.config.max_held() => Err(quota_error("memory", self.config.max_bytes)),
            None => Ok(()),
        }
    }

    /// Returns the bytes of memory that are left for deletions that can be undone.
    pub(super) fn room_for_trash(&self) -> usize {
        self.config.max_held().saturating_sub(self.store.sizes().held)
    }
}

fn quota_error(limit: &str, max: usize) -> Error {
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

#[cfg(test)]
mod tests {
    use serde_json::value::to_raw_value;
    use serde_json::{Value, json};

    use crate::{Caller, Config, Context, HintOrigin, ImportHints, ImportMode, Nudge, Result, Service as _, SetHint};

    /// Returns the smallest `max_bytes` with which `act` succeeds.
    fn least(act: impl Fn(&Nudge) -> Result<()>) -> usize {
        let fits = |max_bytes: &usize| act(&Nudge::new(Config { max_bytes: *max_bytes, ..Config::default() })).is_ok();
        let (mut too_few, mut enough) = (0, 1 << 20);
        while enough - too_few > 1 {
            let middle = usize::midpoint(too_few, enough);
            if fits(&middle) { enough = middle } else { too_few = middle }
        }
        enough
    }

    fn set(store: &Nudge, component: &str, key: &str) -> Result<()> {
        store.set(SetHint::new(component, key, "make it ".repeat(400))).map(drop)
    }

    fn replace_by(store: &Nudge, component: &str) -> Result<()> {
        replace(store, component, &json!({"value": "make it ".repeat(400)}))
    }

    fn replace(store: &Nudge, component: &str, hint: &Value) -> Result<()> {
        let hints = json!({"k": hint});
        let payload = to_raw_value(&json!({"components": {component: {"hints": hints}}})).unwrap();
        store.import(&ImportHints { payload, mode: ImportMode::Replace, allow_secret: false }).map(drop)
    }

    #[test]
    fn a_component_counts_as_long_as_it_has_a_hint() {
        let (short, long) = ("a".repeat(10), "b".repeat(210));
        let least_short = least(|store| set(store, &short, "k"));
        assert_eq!(least(|store| set(store, &long, "k")), least_short + 200, "its name counts");
        // The second hint of a component adds its own size, but not the size of the component.
        let two = least(|store| set(store, &short, "k").and_then(|()| set(store, &short, "j")));
        let apart = least(|store| set(store, &short, "k").and_then(|()| set(store, &"c".repeat(10), "j")));
        assert_eq!(apart - two, 10 + r#""":{"hints":{}},"#.len());
        // The hints that an import replaces free memory for the new ones, together with the names of their components.
        let new = least(|store| replace_by(store, &long));
        assert_eq!(least(|store| set(store, &long, "k").and_then(|()| replace_by(store, &"c".repeat(210)))), new);
        // The same is true when the limit of memory is reached: tags take more memory than their length.
        let tags: Vec<_> = (0..30).map(|tag| format!("t{tag}")).collect();
        let tagged = json!({"value": "v", "meta": {"tags": tags}});
        let new = least(|store| replace(store, &long, &tagged));
        let again =
            |store: &Nudge| replace(store, &long, &tagged).and_then(|()| replace(store, &"c".repeat(210), &tagged));
        assert_eq!(least(again), new);
        let short = least(|store| replace(store, "b", &tagged));
        assert!(new >= short + 100, "its name counts in memory, where it takes half of what is allowed: {short} {new}");
        // A person may replace a person's hint even if there is no memory to keep the old value.
        let tagged = |store: &Nudge, value: &str| {
            let mut hint = SetHint::new("a", "k", value);
            hint.meta.tags.clone_from(&tags);
            hint.meta.source = Some(HintOrigin::User);
            store.set(hint).map(drop)
        };
        let alone = least(|store| tagged(store, "v"));
        assert_eq!(least(|store| tagged(store, "v").and_then(|()| tagged(store, "w"))), alone);
        // An agent's hint does not replace a person's hint if there is no memory to keep the person's hint.
        let params = json!({"component": "a", "key": "k", "value": "w", "meta": {"tags": tags}});
        let by_agent = |store: &Nudge| {
            let caller = Caller::with_name("agent").by_agent();
            store.call_by(caller, "nudge.set_hint", &to_raw_value(&params).unwrap()).map(drop)
        };
        assert!(least(|store| tagged(store, "v").and_then(|()| by_agent(store))) > alone + alone / 2);
    }

    #[test]
    fn the_numbers_are_counted_after_what_goes() {
        let config = Config { max_components: 1, max_hints: 1, max_hints_per_component: 1, ..Config::default() };
        let store = Nudge::new(config);
        set(&store, "a", "k").unwrap();
        assert!(set(&store, "a", "j").is_err() && set(&store, "b", "k").is_err());
        set(&store, "a", "k").unwrap();
        replace_by(&store, "b").unwrap();
        replace_by(&store, "b").unwrap();
        assert!(store.get("a", "k", &Context::default()).is_none());
    }
}
