//! `nudge.import`: stores the hints of a JSON document.

use std::fmt;
use std::hash::BuildHasher as _;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use nudge_core::clock::Millis;
use nudge_core::error::{Error, Result};
use nudge_core::once::RecordableResult;
use nudge_core::safety::refusal::check_json;
use nudge_core::service::{Caller, MethodSpec};
use nudge_core::table::{TableRow, answer_typed, build_schema};
use nudge_core::wire;
use nudge_secrets::SecretGuard;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::report;
use super::set::check_source;
use crate::cache::{Nudge, WriteAct, WritePlan};
use crate::hint::{Hint, HintUsage};
use crate::snapshot::{self, EntryBody, Extra, HintDocument, PayloadEntry, PayloadReader};

const ABOUT: &str = "\
Load hints from a payload of nudge_export, or a hand-written one: {\"components\": {NAME: {\"hints\": {KEY: \
value or hint}}}}.";

/// The most wrong hints that an answer lists. A payload may hold a million.
const MAX_ERRORS: usize = 100;

pub(super) static ROW: TableRow<Nudge> = TableRow {
    method: MethodSpec::new("nudge.import", "Import hints", ABOUT, build_schema::<ImportHints>)
        .tool()
        .destructive()
        .vital()
        .with_report(report::report_imported),
    run: |nudge, caller, params| answer_typed(params, |params| nudge.import_by(caller, &params)),
};

/// Params of [`Nudge::import`].
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportHints {
    /// The store.
    #[schemars(with = "std::collections::BTreeMap<String, serde_json::Value>")]
    pub payload: Box<RawValue>,
    /// `merge` (the later `updated_at` wins) when absent.
    #[serde(default, deserialize_with = "wire::given_or_default")]
    pub mode: ImportMode,
    /// The secret guard's findings are false alarms.
    #[serde(default, deserialize_with = "wire::given_or_default")]
    pub allow_secret: bool,
}

/// Prints no content of the payload, because it may hold secrets.
impl fmt::Debug for ImportHints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ImportHints({:?}, {} bytes)", self.mode, self.payload.get().len())
    }
}

/// How to treat hints that are already stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ImportMode {
    /// The later `updated_at` wins.
    #[default]
    Merge,
    /// The store is emptied first.
    Replace,
}

/// Result of [`Nudge::import`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImportResult {
    /// The number of stored hints; each variant counts.
    pub imported: usize,
    /// The number of hints that were not stored, because they were expired or wrong, or because the stored hint was
    /// kept.
    pub skipped: usize,
    /// The first 100 wrong hints.
    pub errors: Vec<ImportError>,
    /// With [`ImportMode::Replace`], the number of hints that were stored before the import and that it removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed: Option<usize>,
}

/// A hint that was not imported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImportError {
    /// The hint's component.
    pub component: String,
    /// The hint's key; empty when the whole component is wrong.
    pub key: String,
    /// The reason, such as `E_INVALID`.
    pub reason: &'static str,
}

/// The whole result is recorded, because it has only counts and names.
impl RecordableResult for ImportResult {
    fn without_secrets(&self) -> serde_json::Result<Option<Box<RawValue>>> {
        to_raw_value(self).map(Some)
    }
}

/// The checked hints in the order of the document. If several have equal component, key and scope, only the last is
/// kept.
struct IncomingHints<'n> {
    nudge: &'n Nudge,
    allow_secret: bool,
    by_agent: bool,
    now: Millis,
    /// The hints, each with a flag that is true if the hint has an `updated_at`. A hint without one does not replace a
    /// stored hint.
    hints: Vec<(Hint, bool)>,
    /// The hash of the component, key and scope of each hint, with the index of the hint. The hash is stored, so that a
    /// growing table need not read the hints again.
    places: HashTable<(u64, usize)>,
    hasher: RandomState,
    /// The number of wrong hints.
    wrong: usize,
    /// The first [`MAX_ERRORS`] wrong hints.
    errors: Vec<ImportError>,
}

impl<'n> IncomingHints<'n> {
    fn new(nudge: &'n Nudge, allow_secret: bool, by_agent: bool) -> Self {
        Self {
            nudge,
            allow_secret,
            by_agent,
            now: nudge.now(),
            hints: Vec::new(),
            places: HashTable::new(),
            hasher: RandomState::default(),
            wrong: 0,
            errors: Vec::new(),
        }
    }
}

impl PayloadReader for IncomingHints<'_> {
    fn take_entry(&mut self, PayloadEntry { component, key, body }: PayloadEntry<'_>) {
        let (hint, dated) =
            match self.nudge.read_hint(&component, &key, body, self.allow_secret, self.by_agent, self.now) {
                Ok(read) => read,
                Err(error) => {
                    self.wrong += 1;
                    if self.errors.len() < MAX_ERRORS {
                        let reason = error.kind().reason();
                        self.errors.push(ImportError {
                            component: show_name(&component),
                            key: show_name(&key),
                            reason,
                        });
                    }
                    return;
                }
            };
        let Self { hints, places, hasher, .. } = self;
        let hash = hasher.hash_one((&*hint.component, &*hint.key, hint.variant()));
        let is_same = |(_, index): &(u64, usize)| {
            let there = &hints[*index].0;
            there.key == hint.key && there.component == hint.component && there.variant() == hint.variant()
        };
        if let Some((_, index)) = places.find(hash, is_same) {
            hints[*index] = (hint, dated);
        } else {
            places.insert_unique(hash, (hash, hints.len()), |(hash, _)| *hash);
            hints.push((hint, dated));
        }
    }

    fn forget_taken(&mut self) {
        *self = Self::new(self.nudge, self.allow_secret, self.by_agent);
    }
}

impl Nudge {
    /// Imports the payload of an export, or a payload that was written by hand (semantics section 6). A wrong hint is
    /// skipped. A wrong payload, a secret in an unknown top-level key, or a quota refuses the whole import.
    ///
    /// # Errors
    /// `E_INVALID`, `E_SECRET_REJECTED` or `E_QUOTA`. After an error, nothing has been imported.
    pub fn import(&self, params: &ImportHints) -> Result<ImportResult> {
        self.import_by(Caller::default(), params)
    }

    fn import_by(&self, caller: Caller<'_>, params: &ImportHints) -> Result<ImportResult> {
        let mut incoming = IncomingHints::new(self, params.allow_secret, caller.agent);
        let extra = snapshot::read(&params.payload, &mut incoming)?;
        if self.config().secret_guard && !params.allow_secret {
            check_extra(&extra)?;
        }
        self.write(WriteAct::new_adding("import", caller), |plan| {
            let replace = params.mode == ImportMode::Replace;
            let removed = replace.then(|| {
                let all = plan.list_live();
                for hint in &all {
                    plan.delete_hint(hint);
                }
                all.len()
            });
            let (mut imported, mut skipped) = (0, incoming.wrong);
            for (hint, dated) in incoming.hints {
                if hint.is_expired(plan.now) {
                    skipped += 1;
                    self.put_waiting(plan, hint);
                    continue;
                }
                match merge_hint(plan, hint, dated, replace) {
                    Some(hint) => {
                        plan.put_hint(hint);
                        imported += 1;
                    }
                    None => skipped += 1,
                }
            }
            plan_extra(plan, extra, replace)?;
            Ok(ImportResult { imported, skipped, errors: incoming.errors, removed })
        })
    }

    /// Plans to store a hint that has expired only by a clock that is not plausible. The hint is hidden until the clock
    /// is right. If a hint with the same name and scope is stored, that hint stays.
    fn put_waiting(&self, plan: &mut WritePlan<'_>, hint: Hint) {
        let is_new = || plan.find_stored(&hint.component, &hint.key, hint.variant()).is_none();
        if !self.has_ended(&hint) && is_new() {
            plan.put_hint(hint);
        }
    }

    /// Reads a hint from a record. The hint was checked when it was stored.
    pub(crate) fn recorded_hint(&self, component: &Arc<str>, key: &str, body: &RawValue) -> Result<Hint> {
        let (mut value, document) = HintDocument::read(EntryBody::Raw(body))?;
        value.normalize()?;
        let scope = self.compile_scope(&document.meta.scope)?;
        Ok(document.into_hint(component, key, value, scope, self.now()))
    }

    fn read_hint(
        &self,
        component: &Arc<str>,
        key: &str,
        body: EntryBody<'_>,
        allow_secret: bool,
        by_agent: bool,
        now: i64,
    ) -> Result<(Hint, bool)> {
        let (mut value, mut document) = HintDocument::read(body)?;
        let mut meta = std::mem::take(&mut document.meta);
        check_source(by_agent, &meta)?;
        let scope = self.check_input(component, key, &mut value, &mut meta, allow_secret)?;
        let dated = document.updated_at.is_some();
        document.meta = meta;
        Ok((document.into_hint(component, key, value, scope, now), dated))
    }
}

/// Returns the hint to store; `None` when the stored hint stays.
fn merge_hint(plan: &mut WritePlan<'_>, mut hint: Hint, dated: bool, replace: bool) -> Option<Hint> {
    let stored =
        plan.find_variants(&hint.component, &hint.key).into_iter().find(|stored| stored.variant() == hint.variant());
    let Some(stored) = stored else { return Some(hint) };
    if !replace && (!dated || hint.updated_at <= stored.updated_at) {
        return None;
    }
    if plan.must_keep(&stored) {
        plan.keep_replaced(&stored);
    }
    if replace {
        return Some(hint);
    }
    hint.version = hint.version.max(stored.version).saturating_add(1);
    hint.created_at = stored.created_at;
    let (new, old) = (hint.usage(), stored.usage());
    hint.set_usage(HintUsage { count: new.count.max(old.count), last: new.last.max(old.last), ..new });
    Some(hint)
}

/// Returns a name for an error message. A name that looks like a credential is hidden.
fn show_name(name: &str) -> String {
    if SecretGuard::new().check(None, name).is_some() { "[secret]".into() } else { name.to_owned() }
}

fn check_extra(extra: &Extra) -> Result<()> {
    for (name, value) in extra {
        let value: serde_json::Value = serde_json::from_str(value.get())
            .map_err(|_| Error::invalid("`payload` must be JSON.").about("payload"))?;
        check_json("payload", &serde_json::json!({ name.as_str(): value }))?;
    }
    Ok(())
}

/// Plans to store the unknown top-level keys. If `replace` is true, they replace all stored ones; otherwise each key
/// replaces only the stored key with the same name.
fn plan_extra(plan: &mut WritePlan<'_>, extra: Extra, replace: bool) -> Result<()> {
    let mut kept = match plan.extra() {
        Some(old) if !replace => serde_json::from_str::<Extra>(old.get()).map_err(|_| {
            Error::unavailable(
                "The other members of an earlier import cannot be read; import with `mode: \"replace\"`.",
            )
        })?,
        _ => Extra::default(),
    };
    if extra.is_empty() && !replace {
        return Ok(());
    }
    kept.extend(extra);
    snapshot::check_extra_size(&kept)?;
    let raw = to_raw_value(&kept).map_err(|_| Error::invalid("`payload` must be JSON.").about("payload"))?;
    plan.set_extra(raw.into());
    Ok(())
}
