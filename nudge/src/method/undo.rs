//! `nudge.deletions` and `nudge.undo`: list the last deletions and replacements, and undo them.

use std::sync::Arc;

use nudge_core::clock::rfc3339;
use nudge_core::error::{Error, Result};
use nudge_core::once::RecordableResult;
use nudge_core::service::{Caller, MethodSpec};
use nudge_core::table::{NoParams, TableRow, answer_typed, build_schema};
use nudge_core::wire;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::outcome::MatchedHint;
use crate::cache::{Nudge, WriteAct};
use crate::hint::{Hint, HintOrigin};
use crate::trash::{DeletionKind, TrashEntry};

/// The most hints of one deletion that a listing shows.
const MAX_SHOWN: usize = 20;

const ABOUT_DELETIONS: &str = "What was deleted or replaced last, newest first: what, when, by whom.";

pub(super) static DELETIONS: TableRow<Nudge> = TableRow {
    method: MethodSpec::new("nudge.deletions", "Deletions", ABOUT_DELETIONS, build_schema::<NoParams>)
        .read_only()
        .vital(),
    run: |nudge, _, params| answer_typed(params, |_: NoParams| Ok(nudge.deletions())),
};

const ABOUT: &str = "Brings back what was deleted or replaced: the last, or what has this id.";

pub(super) static ROW: TableRow<Nudge> = TableRow {
    method: MethodSpec::new("nudge.undo", "Undo a deletion", ABOUT, build_schema::<UndoDeletion>).vital(),
    run: |nudge, caller, params| answer_typed(params, |params| nudge.undo_by(caller, params)),
};

/// Params of [`Nudge::undo`].
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UndoDeletion {
    /// The id; the last when absent.
    #[serde(deserialize_with = "wire::given")]
    pub id: Option<u64>,
}

/// Result of [`Nudge::deletions`].
#[derive(Debug, Clone, Serialize)]
pub struct DeletionList {
    /// The deletions and the replacements of values, newest first. There are at most 100 of each, and fewer when they
    /// are large.
    pub deletions: Vec<Deletion>,
}

/// A call that deleted hints or replaced a hint.
#[derive(Debug, Clone, Serialize)]
pub struct Deletion {
    /// The id for [`UndoDeletion`].
    pub id: u64,
    /// The time of the deletion, as RFC 3339.
    pub at: String,
    /// The way in which the hints were removed.
    pub what: DeletionKind,
    /// The client that deleted the hints; absent when it is unknown.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub by: Box<str>,
    /// The number of hints that were deleted, or restored by `undo`. Expired hints do not count.
    pub count: usize,
    /// The first 20 of the hints. Secret values are redacted in JSON.
    pub hints: Vec<MatchedHint>,
}

/// Result of [`Nudge::undo`].
#[derive(Debug, Clone, Serialize)]
pub struct UndoResult {
    /// The deletion, with the restored hints.
    #[serde(flatten)]
    pub deletion: Deletion,
    /// The number of restored hints.
    pub restored: usize,
    /// The number of hints that were not restored, because they have expired or were stored anew since the deletion.
    pub skipped: usize,
}

impl RecordableResult for UndoResult {
    fn without_secrets(&self) -> serde_json::Result<Option<Box<RawValue>>> {
        let mut open = self.clone();
        open.deletion.hints.retain(|hint| !hint.0.is_secret());
        to_raw_value(&open).map(Some)
    }
}

impl Deletion {
    fn new(deleted: &TrashEntry, hints: &[Arc<Hint>]) -> Self {
        Self {
            id: deleted.id,
            at: rfc3339::format_time(deleted.at),
            what: deleted.what,
            by: deleted.by.clone(),
            count: hints.len(),
            hints: hints.iter().take(MAX_SHOWN).map(|hint| MatchedHint(Arc::clone(hint))).collect(),
        }
    }
}

impl Nudge {
    /// Lists the last deletions and replacements, newest first. Expired hints do not count as deleted.
    pub fn deletions(&self) -> DeletionList {
        let now = self.now();
        let live = |deleted: &TrashEntry| {
            let hints: Vec<_> = deleted.hints.iter().filter(|hint| !hint.is_expired(now)).cloned().collect();
            (!hints.is_empty()).then(|| Deletion::new(deleted, &hints))
        };
        DeletionList { deletions: self.with_trash(|trash| trash.iter().filter_map(live).collect()) }
    }

    /// Restores deleted or replaced hints in their earlier state. A hint that was stored anew or has expired since is
    /// skipped.
    ///
    /// # Errors
    /// `E_NOT_FOUND` when there is no such deletion, or all its hints have expired; `E_CONFLICT` when all its hints
    /// were stored anew; `E_QUOTA`.
    pub fn undo(&self, params: UndoDeletion) -> Result<UndoResult> {
        self.undo_by(Caller::default(), params)
    }

    fn undo_by(&self, caller: Caller<'_>, params: UndoDeletion) -> Result<UndoResult> {
        self.write(WriteAct::new_adding("undo", caller), |plan| {
            let wanted = |deleted: &&TrashEntry| params.id.is_none_or(|id| deleted.id == id);
            let deleted = plan.trash().iter().find(wanted).cloned().ok_or_else(nothing_error)?;
            let now = plan.now;
            let live: Vec<_> = deleted.hints.iter().filter(|hint| !hint.is_expired(now)).collect();
            if live.is_empty() {
                return Err(Error::not_found("What was deleted has expired since; set it again."));
            }
            let mut back = Vec::new();
            for hint in live {
                let mut was = Hint::clone(hint);
                let variants = plan.find_variants(hint.component(), hint.key());
                match variants.iter().find(|stored| stored.variant() == hint.variant()) {
                    // A replaced hint takes its old place again, except if a person has stored a hint there after the
                    // replacement.
                    Some(stands)
                        if deleted.what == DeletionKind::Replaced
                            && (stands.updated_at() <= deleted.at || stands.source() != Some(HintOrigin::User)) =>
                    {
                        was.version = was.version.max(stands.version).saturating_add(1);
                    }
                    Some(_) => continue,
                    None => {}
                }
                back.push(plan.put_hint(was));
            }
            if back.is_empty() {
                return Err(Error::conflict(
                    "It is stored anew since; delete the new one first to bring back the old.",
                ));
            }
            let skipped = deleted.hints.len() - back.len();
            Ok(UndoResult { deletion: Deletion::new(&deleted, &back), restored: back.len(), skipped })
        })
    }
}

fn nothing_error() -> Error {
    Error::not_found("Nothing like that was deleted; list the deletions to see what was.")
}

#[cfg(test)]
mod tests {
    use nudge_core::error::ErrorKind;

    use super::*;
    use crate::method::{DeleteHint, ImportHints, ImportMode, SetHint};
    use nudge_core::service::Service;

    fn raw(json: &str) -> Box<serde_json::value::RawValue> {
        serde_json::value::RawValue::from_string(json.into()).unwrap()
    }

    fn delete(store: &Nudge, component: &str, key: &str) {
        let params = DeleteHint { component: component.into(), key: key.into(), ..DeleteHint::default() };
        store.delete(&params).unwrap();
    }

    #[test]
    fn the_last_deletion_comes_back_as_it_was() {
        let store = Nudge::default();
        store.set(SetHint::new("a", "x", "one")).unwrap();
        store.set(SetHint::new("a", "x", "two")).unwrap();
        let before = store.export(&crate::ExportHints::default()).unwrap();
        store
            .call_by(Caller::with_name("someone/1"), "nudge.delete_hint", &raw(r#"{"component":"a","key":"x"}"#))
            .unwrap();
        let listed = store.deletions().deletions;
        assert_eq!((listed.len(), &*listed[0].by, listed[0].count), (2, "someone/1", 1));
        let undone = store.undo(UndoDeletion::default()).unwrap();
        assert_eq!((undone.restored, undone.skipped), (1, 0));
        let text = |payload| serde_json::to_string(&payload).unwrap();
        assert_eq!(text(store.export(&crate::ExportHints::default()).unwrap()), text(before));
        store.undo(UndoDeletion::default()).unwrap();
        assert_eq!(store.get("a", "x", &crate::Context::default()).unwrap().hint().text(), "one");
        assert_eq!(store.undo(UndoDeletion::default()).unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[test]
    fn what_is_stored_anew_stays() {
        let store = Nudge::default();
        store.set(SetHint::new("a", "x", "one")).unwrap();
        delete(&store, "a", "x");
        store.set(SetHint::new("a", "x", "new")).unwrap();
        assert_eq!(store.undo(UndoDeletion::default()).unwrap_err().kind(), ErrorKind::Conflict);
        assert_eq!(store.deletions().deletions.len(), 1, "a refused call changes nothing");
        assert_eq!(store.get("a", "x", &crate::Context::default()).unwrap().hint().text(), "new");
    }

    #[test]
    fn a_replacing_import_deletes_what_it_does_not_bring() {
        let store = Nudge::default();
        store.set(SetHint::new("a", "x", "one")).unwrap();
        store.set(SetHint::new("a", "y", "two")).unwrap();
        let payload = raw(r#"{"components":{"a":{"hints":{"x":"new"}}}}"#);
        store.import(&ImportHints { payload, mode: ImportMode::Replace, allow_secret: false }).unwrap();
        let listed = store.deletions().deletions;
        assert_eq!((listed[0].count, listed[0].hints[0].0.key()), (1, "y"));
    }

    #[test]
    fn replaced_values_come_back_one_by_one() {
        let store = Nudge::default();
        let set = |value: &str| store.set(SetHint::new("a", "x", value)).unwrap();
        let stands = || store.get("a", "x", &crate::Context::default()).unwrap().hint().text().to_owned();
        assert!(set("one").previous.is_none());
        assert!(set("one").previous.is_none(), "the same value");
        assert_eq!(set("two").previous.unwrap().text(), "one");
        assert_eq!(set("three").previous.unwrap().text(), "two");
        let listed = store.deletions().deletions;
        assert_eq!((listed.len(), listed[0].what, listed[0].hints[0].0.text()), (2, DeletionKind::Replaced, "two"));
        for value in ["two", "one"] {
            store.undo(UndoDeletion::default()).unwrap();
            assert_eq!(stands(), value);
        }
        assert_eq!(store.undo(UndoDeletion::default()).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(store.get("a", "x", &crate::Context::default()).unwrap().hint().version(), 6, "none comes twice");
        set("four");
        delete(&store, "a", "x");
        store.undo(UndoDeletion::default()).unwrap();
        store.undo(UndoDeletion::default()).unwrap();
        assert_eq!(stands(), "one");
    }

    #[test]
    fn what_a_person_stored_later_stays() {
        let clock = Arc::new(crate::ManualClock::new(0));
        let store = Nudge::with_clock(crate::Config::default(), Arc::clone(&clock) as Arc<dyn crate::Clock>);
        let set = |value: &str, source| {
            let mut hint = SetHint::new("a", "x", value);
            hint.meta.source = source;
            clock.advance_by(1);
            store.set(hint).unwrap();
        };
        set("one", None);
        set("two", Some(HintOrigin::User));
        set("three", Some(HintOrigin::User));
        assert_eq!(store.undo(UndoDeletion { id: Some(1) }).unwrap_err().kind(), ErrorKind::Conflict);
        store.undo(UndoDeletion::default()).unwrap();
        store.undo(UndoDeletion::default()).unwrap();
        assert_eq!(store.get("a", "x", &crate::Context::default()).unwrap().hint().text(), "one");
    }

    #[test]
    fn values_that_are_replaced_again_and_again_push_out_no_deletion() {
        let store = Nudge::default();
        store.set(SetHint::new("a", "gone", "one")).unwrap();
        delete(&store, "a", "gone");
        for round in 0..250 {
            store.set(SetHint::new("a", "x", format!("{round}"))).unwrap();
        }
        let listed = store.deletions().deletions;
        assert_eq!((listed.len(), listed[100].what, listed[99].hints[0].0.text()), (101, DeletionKind::Deleted, "149"));
        let big = "x y ".repeat(16_000);
        for round in 0..75 {
            store.set(SetHint::new("a", "x", format!("{round} {big}"))).unwrap();
        }
        let listed = store.deletions().deletions;
        assert!((60..=66).contains(&listed.len()), "{} of 64 KiB", listed.len());
        assert_eq!(listed.last().unwrap().what, DeletionKind::Deleted);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let store = Nudge::default();
        for round in 0..150 {
            store.set(SetHint::new("a", "x", format!("{round}"))).unwrap();
            delete(&store, "a", "x");
        }
        let listed = store.deletions().deletions;
        assert_eq!((listed.len(), listed[0].id), (100, 150));
        let big = "x y ".repeat(16_000);
        for round in 0..150 {
            store.set(SetHint::new("a", "x", format!("{round} {big}"))).unwrap();
            delete(&store, "a", "x");
        }
        let remembered = store.deletions().deletions.len();
        assert!((60..=65).contains(&remembered), "{remembered} of 64 KiB");
    }
}
