//! `nudge.query`: searches hints by filters.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nudge_core::context::{Context, ContextSpec};
use nudge_core::error::{Error, Result};
use nudge_core::explain::MatchExplain;
use nudge_core::limit::Limit;
use nudge_core::service::MethodSpec;
use nudge_core::steps::{StepBudget, TooMany};
use nudge_core::table::{TableRow, answer_typed, build_schema};
use nudge_core::wire;
use regex::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::report;
use crate::cache::Nudge;
use crate::explain;
use crate::hint::{Hint, check_name};
use crate::scoring;
use crate::store::{HintFilter, HintHit, SearchVerdicts};

/// The most keys of a filter, and also the most tags.
pub(super) const MAX_FILTERS: usize = 256;
const MAX_REGEX_BYTES: usize = 1 << 10;
/// The most words in `text`.
const MAX_WORDS: usize = 32;
const MAX_REGEX_SIZE: usize = 1 << 20;
/// The time limit of a search by regex. Some patterns are slow in every engine, and a store may hold 24 MiB of text.
const MAX_REGEX_TIME: Duration = Duration::from_secs(1);
/// The most cached compiled regexes. Compiling takes longer than a search, and each compiled regex may take megabytes.
const MAX_CACHED_REGEXES: usize = 4;
/// The most bytes of memory that a regex may use during a search, for each searching thread.
const MAX_REGEX_MEMORY: usize = 512 << 10;

const ABOUT: &str = "\
Search stored hints, best first, for where you are; call it when a command fails or before you explore. Filters \
combine with and; keys and tags are any-of; regex searches key, value, reason; text: words.";

pub(super) static ROW: TableRow<Nudge> = TableRow {
    method: MethodSpec::new("nudge.query", "Search hints", ABOUT, build_schema::<QueryHints>)
        .frequent()
        .read_only()
        .inferred()
        .vital()
        .with_report(report::report_matches),
    run: |nudge, _, params| answer_typed(params, |params| nudge.query(params)),
};

/// Params of [`Nudge::query`].
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct QueryHints {
    /// This component only.
    #[serde(deserialize_with = "wire::given")]
    #[schemars(description = "")]
    pub component: Option<String>,
    /// Any of these keys.
    #[serde(deserialize_with = "wire::given_or_default")]
    #[schemars(description = "")]
    pub keys: Vec<String>,
    /// Any of these tags.
    #[serde(deserialize_with = "wire::given_or_default")]
    #[schemars(description = "")]
    pub tags: Vec<String>,
    /// Unanchored, case-sensitive.
    #[serde(deserialize_with = "wire::given")]
    pub regex: Option<String>,
    /// Words that must all stand somewhere in component, key, tags, value or reason, in any case; at most 1 KiB.
    #[serde(deserialize_with = "wire::given")]
    #[schemars(description = "")]
    pub text: Option<String>,
    /// As in `nudge_get_hint`.
    #[serde(deserialize_with = "wire::object_or_default")]
    pub context: ContextSpec,
    /// Most rows.
    #[schemars(description = "")]
    pub limit: Limit<10, 1_000>,
    /// Add hints that do not fit, last, with the reason.
    #[serde(deserialize_with = "wire::given_or_default")]
    pub include_ineligible: bool,
}

/// Result of [`Nudge::query`].
#[derive(Debug, Clone, Serialize)]
pub struct QueryRows {
    /// The hints, best first.
    pub hints: Vec<QueryRow>,
}

/// A hint of a [`QueryRows`].
#[derive(Debug, Clone, Serialize)]
pub struct QueryRow {
    /// The hint. A secret value is redacted in JSON.
    #[serde(serialize_with = "super::set::serialize_redacted")]
    pub hint: Arc<Hint>,
    /// The score, 0 to 1. It has four decimals in JSON.
    #[serde(serialize_with = "nudge_core::explain::four_decimals")]
    pub score: f64,
    /// The explanation of the match.
    pub match_explain: MatchExplain,
}

impl Nudge {
    /// Searches the hints that fit, and returns the best first (semantics section 6). For an unknown component the list
    /// is empty.
    ///
    /// # Errors
    /// `E_INVALID`; `E_QUOTA` when comparing the scopes takes too many steps.
    pub fn query(&self, params: QueryHints) -> Result<QueryRows> {
        if let Some(component) = &params.component {
            check_name("component", component)?;
        }
        if params.keys.len() > MAX_FILTERS || params.tags.len() > MAX_FILTERS {
            return Err(Error::invalid("`keys` and `tags` may have 256 entries each.").about("keys").about("tags"));
        }
        let context = params.context.build()?;
        let regex = params.regex.as_deref().map(|regex| self.compile_regex(regex)).transpose()?;
        let words: Vec<_> = params.text.as_deref().map(compile_words).transpose()?.into_iter().flatten().collect();
        let now = self.now();
        let filter = HintFilter {
            component: params.component.as_deref(),
            keys: &params.keys,
            tags: &params.tags,
            include_ineligible: params.include_ineligible,
            ..HintFilter::for_context(&context, now)
        };
        // The limit is real time and not the store's clock, because it limits work.
        let begun = Instant::now();
        let mut late = false;
        let accept = |hint: &Hint| {
            if regex.is_none() && words.is_empty() {
                return true;
            }
            late |= begun.elapsed() > MAX_REGEX_TIME;
            !late
                && regex.as_ref().is_none_or(|regex| is_hit(regex, hint))
                && words.iter().all(|word| is_in(word, hint))
        };
        let mut verdicts = SearchVerdicts::new(StepBudget::of_a_call());
        let found = self.search_hints(&filter, &mut verdicts, params.limit.get(), accept)?;
        if late {
            return Err(Error::invalid(
                "The search takes too long over what is stored; make `regex` simpler, or name a component or tags.",
            )
            .about("regex"));
        }
        let mut steps = verdicts.into_steps();
        let rows = found.into_iter().map(|found| explain_row(found, &context, now, &mut steps));
        let hints = rows.collect::<Result<Vec<_>, _>>()?;
        if !hints.is_empty() {
            self.count_hit();
        }
        Ok(QueryRows { hints })
    }

    /// Returns the `limit` best hints that pass `filter` and then `accept`. `accept` runs without the lock. Hints are
    /// fetched in batches, best first, until there are enough.
    pub(super) fn search_hints(
        &self,
        filter: &HintFilter<'_>,
        verdicts: &mut SearchVerdicts,
        limit: usize,
        mut accept: impl FnMut(&Hint) -> bool,
    ) -> Result<Vec<HintHit>> {
        let (mut out, mut last, mut batch) = (Vec::new(), None::<HintHit>, limit.max(1));
        loop {
            let found = self.store.search_top(filter, verdicts, last.as_ref(), batch)?;
            let exhausted = found.len() < batch;
            last = found.last().cloned().or(last);
            out.extend(found.into_iter().filter(|found| accept(&found.hint)));
            if exhausted || out.len() >= limit {
                out.truncate(limit);
                return Ok(out);
            }
            // Each batch reads all rows, so the size of the batches grows fast.
            batch = (batch * 4).max(64);
        }
    }

    /// Returns a compiled regex, from the cache if possible.
    fn compile_regex(&self, pattern: &str) -> Result<Regex> {
        if pattern.len() > MAX_REGEX_BYTES {
            return Err(Error::invalid("`regex` may have 1 KiB at most.").about("regex"));
        }
        let mut cached = self.regexes.lock();
        if let Some(index) = cached.iter().position(|regex| regex.as_str() == pattern) {
            let regex = cached.remove(index);
            cached.push(regex.clone());
            return Ok(regex);
        }
        drop(cached);
        let built = RegexBuilder::new(pattern).size_limit(MAX_REGEX_SIZE).dfa_size_limit(MAX_REGEX_MEMORY).build();
        let regex = built.map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => Error::invalid("`regex` is too large once compiled (1 MiB at most); use fewer repetitions.").about("regex"),
            _ => Error::invalid("`regex` does not compile; it takes the syntax of the Rust regex crate, without look-around and back-references.").about("regex"),
        })?;
        let mut cached = self.regexes.lock();
        if cached.len() >= MAX_CACHED_REGEXES {
            cached.remove(0);
        }
        cached.push(regex.clone());
        Ok(regex)
    }
}

/// Returns true when the regex matches the key, the value's text or the reason. A secret value is not searched.
fn is_hit(regex: &Regex, hint: &Hint) -> bool {
    regex.is_match(hint.key())
        || (!hint.is_secret() && regex.is_match(hint.text()))
        || hint.reason().is_some_and(|reason| regex.is_match(reason))
}

/// Compiles each word of a text to a regex that ignores case.
fn compile_words(text: &str) -> Result<Vec<Regex>> {
    let words: Vec<_> = text.split_whitespace().collect();
    if text.len() > MAX_REGEX_BYTES || words.len() > MAX_WORDS {
        return Err(Error::invalid("`text` may have 32 words, and 1 KiB at most.").about("text"));
    }
    let compiled = words.into_iter().map(|word| {
        let mut literal = RegexBuilder::new(&regex::escape(word));
        literal.case_insensitive(true).size_limit(MAX_REGEX_SIZE).dfa_size_limit(MAX_REGEX_MEMORY).build()
    });
    compiled
        .collect::<Result<_, _>>()
        .map_err(|_| Error::invalid("`text` is too long; search for fewer words.").about("text"))
}

/// Returns true when a word occurs in a hint. A secret value is not searched.
fn is_in(word: &Regex, hint: &Hint) -> bool {
    is_hit(word, hint) || word.is_match(hint.component()) || hint.tags().any(|tag| word.is_match(tag))
}

/// Adds the explanation to a found hint.
pub(super) fn explain_row(
    found: HintHit,
    context: &Context,
    now: i64,
    steps: &mut StepBudget,
) -> Result<QueryRow, TooMany> {
    let HintHit { hint, eligible, rank, .. } = found;
    let open = context.open_file_in(hint.component()).is_some();
    let reasons = if eligible {
        explain::collect_reasons(&hint, context, now, steps)?
    } else {
        explain::failed_reason(&hint, context, steps)?
    };
    let match_explain =
        MatchExplain { matched: eligible, score: rank.score, parts: scoring::score_parts(&hint, open, now), reasons };
    Ok(QueryRow { hint, score: rank.score, match_explain })
}
