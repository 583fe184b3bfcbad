//! The state of the store that only the current writer uses.

use std::borrow::Borrow;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use hashbrown::HashMap;
use nudge_core::scope::Scope;
use nudge_core::source::RowChange;
use serde_json::value::RawValue;

use crate::session_rows;
use crate::trash::HintTrash;

/// A scope as a key of a map. Keys are compared by the canonical text of the scope.
struct ByText(Arc<Scope>);

impl Borrow<str> for ByText {
    fn borrow(&self) -> &str {
        self.0.canonical_json()
    }
}

impl Hash for ByText {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.canonical_json().hash(state);
    }
}

impl PartialEq for ByText {
    fn eq(&self, other: &Self) -> bool {
        self.0.canonical_json() == other.0.canonical_json()
    }
}

impl Eq for ByText {}

/// The state of the store that only the current writer uses.
#[derive(Default)]
pub(super) struct WriterState {
    /// The scopes in use by their canonical texts, each with the number of hints that use it.
    scopes: HashMap<ByText, (Arc<Scope>, usize), foldhash::fast::RandomState>,
    /// The number of scopes in use that have conditions on the environment.
    pub env_scopes: usize,
    /// The numbers of scopes that are no longer in use; new scopes get them.
    free_scopes: Vec<u32>,
    /// Is true when a number was freed. Readers must then drop the verdicts that they cached by number.
    pub recycled: bool,
    /// Unknown top-level keys of imports. They are kept for exports.
    pub extra: Option<Arc<RawValue>>,
    /// The last deletions.
    pub trash: HintTrash,
    /// Changes of rows that the next write records: what a limit or a ttl has removed since the last write.
    pub waiting: Vec<RowChange>,
}

impl WriterState {
    /// Leaves it to the next write to delete the rows of dropped deletions.
    pub fn forget_deletions(&mut self, dropped: &[u64]) {
        let last_id = self.trash.last_id();
        self.waiting.extend(dropped.iter().flat_map(|id| session_rows::forget_deletion(*id, last_id)));
    }

    /// Returns the stored scope that is equal to `scope`, and counts one more use of it.
    pub fn acquire_scope(&mut self, scope: &Arc<Scope>) -> Arc<Scope> {
        if let Some((stored, uses)) = self.scopes.get_mut(scope.canonical_json()) {
            *uses += 1;
            return Arc::clone(stored);
        }
        let next = u32::try_from(self.scopes.len()).expect("memory holds fewer scopes than 2^32");
        let id = self.free_scopes.pop().unwrap_or(next);
        let stored = Arc::new(scope.with_number(id));
        self.scopes.insert(ByText(Arc::clone(&stored)), (Arc::clone(&stored), 1));
        self.env_scopes += usize::from(stored.has_env());
        stored
    }

    /// Counts one use less of a scope. The last use frees the scope's number.
    pub fn release_scope(&mut self, scope: &Scope) {
        let Some((_, uses)) = self.scopes.get_mut(scope.canonical_json()) else { return };
        *uses -= 1;
        if *uses == 0 {
            self.scopes.remove(scope.canonical_json());
            self.free_scopes.push(scope.number());
            self.env_scopes -= usize::from(scope.has_env());
            self.recycled = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use nudge_core::scope::ScopeSpec;

    use super::*;

    #[test]
    fn a_scope_keeps_its_number_until_the_last_hint_that_uses_it_is_gone() {
        let scope = |branch: &str| {
            Arc::new(Scope::new(&ScopeSpec { branch: vec![branch.into()], ..ScopeSpec::default() }).unwrap())
        };
        let env = ScopeSpec { env_match: [("CI".to_owned(), vec!["1".to_owned()])].into(), ..ScopeSpec::default() };
        let env = Arc::new(Scope::new(&env).unwrap());
        let mut writer = WriterState::default();
        let numbers = |writer: &mut WriterState| {
            [&scope("a"), &env, &scope("a")].map(|scope| writer.acquire_scope(scope).number())
        };
        assert_eq!(numbers(&mut writer), [0, 1, 0]);
        assert_eq!((writer.env_scopes, writer.recycled), (1, false));
        let again = writer.acquire_scope(&scope("a"));
        writer.release_scope(&again);
        assert_eq!(writer.acquire_scope(&scope("b")).number(), 2, "the first is in use");
        for _ in 0..2 {
            writer.release_scope(&scope("a").with_number(0));
        }
        writer.release_scope(&env.with_number(1));
        writer.release_scope(&scope("unknown"));
        assert_eq!((writer.env_scopes, writer.recycled), (0, true));
        assert_eq!([writer.acquire_scope(&scope("c")).number(), writer.acquire_scope(&scope("d")).number()], [1, 0]);
    }
}
