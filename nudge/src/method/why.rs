//! `nudge.why`: explains every variant of a key in one context, with each condition and each part of its score.

use std::sync::Arc;

use nudge_core::context::{Context, ContextSpec};
use nudge_core::error::Result;
use nudge_core::explain::MatchExplain;
use nudge_core::service::MethodSpec;
use nudge_core::steps::StepBudget;
use nudge_core::table::{TableRow, answer_typed, build_schema};
use nudge_core::wire;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cache::Nudge;
use crate::explain;
use crate::hint::{Hint, check_name};
use crate::method::suggest::explain_weak;
use crate::scoring;

const ABOUT: &str = "\
Every variant of a key in the order of choice, with each condition met or not and each part of its score, and \
why the first is chosen.";

pub(super) static ROW: TableRow<Nudge> = TableRow {
    method: MethodSpec::new("nudge.why", "Explain a choice", ABOUT, build_schema::<WhyQuestion>)
        .read_only()
        .inferred()
        .vital(),
    run: |nudge, _, params| answer_typed(params, |params| nudge.why(params)),
};

/// Params of [`Nudge::why`].
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WhyQuestion {
    /// The component.
    pub component: String,
    /// The key.
    pub key: String,
    /// Your context.
    #[serde(default, deserialize_with = "wire::object_or_default")]
    pub context: ContextSpec,
}

/// Result of [`Nudge::why`].
#[derive(Debug, Clone, Serialize)]
pub struct WhyResult {
    /// The variants that fit, in the order of choice, and then the other variants. Empty when the key is not stored.
    pub variants: Vec<WhyVariant>,
    /// A sentence that says why the first variant is chosen, or why no variant is.
    pub verdict: String,
}

/// A variant of a [`WhyResult`].
#[derive(Debug, Clone, Serialize)]
pub struct WhyVariant {
    /// The hint. A secret value is redacted in JSON.
    #[serde(serialize_with = "super::set::serialize_redacted")]
    pub hint: Arc<Hint>,
    /// The conditions of the hint's scope.
    pub conditions: Vec<ConditionMet>,
    /// The explanation, as in `get_hint`. The score is computed even when the variant does not fit.
    pub match_explain: MatchExplain,
}

/// A condition, evaluated in the context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConditionMet {
    /// `cwd`, `repo`, `branch`, `os` or `env`.
    pub field: &'static str,
    /// Is true when the condition is met.
    pub met: bool,
    /// The reason, in the words of `match_explain`.
    pub reason: String,
}

impl Nudge {
    /// Explains why `get` returns a certain hint, or why it returns none.
    ///
    /// # Errors
    /// `E_INVALID`; `E_QUOTA` when comparing the scopes of the key takes too many steps.
    pub fn why(&self, params: WhyQuestion) -> Result<WhyResult> {
        let steps = &mut StepBudget::of_a_call();
        let WhyQuestion { component, key, context } = params;
        let context = context.build()?;
        check_name("component", &component)?;
        check_name("key", &key)?;
        let now = self.now();
        let open = context.open_file_in(&component).is_some();
        let live = self.store.find_variants(&component, &key).1.into_iter().filter(|hint| !hint.is_expired(now));
        let judged = live.map(|hint| {
            let fits = hint.scope.judge(&context, steps)?;
            Ok(WhyCandidate { fits, score: scoring::score_hint(&hint, open, now), hint })
        });
        let mut hints = judged.collect::<Result<Vec<_>>>()?;
        hints.sort_by(|a, b| {
            let order = || scoring::compare_variants((&b.hint, b.score), (&a.hint, a.score));
            b.fits.cmp(&a.fits).then_with(order)
        });
        let lead = || self.make_lead(&component, &key);
        let mut verdict = explain_verdict(&hints, lead, &context, steps)?;
        let chosen = hints.first().filter(|first| first.fits);
        if let Some(why) = chosen.and_then(|chosen| explain_weak(&chosen.hint)) {
            verdict = format!("{verdict} Unasked, {why}.");
        }
        let variants = hints.into_iter().map(|candidate| candidate.into_variant(&context, open, now, steps));
        Ok(WhyResult { variants: variants.collect::<Result<_>>()?, verdict })
    }
}

struct WhyCandidate {
    hint: Arc<Hint>,
    fits: bool,
    score: f64,
}

impl WhyCandidate {
    fn into_variant(self, context: &Context, open: bool, now: i64, steps: &mut StepBudget) -> Result<WhyVariant> {
        let Self { hint, fits, score } = self;
        let met = |condition: nudge_core::scope::ScopeCondition| ConditionMet {
            field: condition.field,
            met: condition.met,
            reason: condition.reason,
        };
        let conditions = hint.scope.evaluate_conditions(context, steps)?.into_iter().map(met).collect();
        let reasons = if fits {
            explain::collect_reasons(&hint, context, now, steps)?
        } else {
            explain::failed_reason(&hint, context, steps)?
        };
        let match_explain =
            MatchExplain { matched: fits, score, parts: scoring::score_parts(&hint, open, now), reasons };
        Ok(WhyVariant { hint, conditions, match_explain })
    }
}

/// Names the criterion that decided. The criteria are compared in the order of choice (semantics section 1). `lead`
/// makes the end of the sentence when the key is not stored.
fn explain_verdict(
    hints: &[WhyCandidate],
    lead: impl FnOnce() -> String,
    context: &Context,
    steps: &mut StepBudget,
) -> Result<String> {
    let (first, second) = match hints {
        [] => return Ok(format!("Nothing is stored under this key; {}", lead())),
        [first, ..] if !first.fits => {
            let reason = explain::failed_reason(&first.hint, context, steps)?.into_iter().next().unwrap_or_default();
            return Ok(format!("None fits here; the nearest fails because {reason}."));
        }
        [_] => return Ok("The first is chosen: it fits, and it is the only variant.".into()),
        [_, second, ..] if !second.fits => {
            return Ok("The first is chosen: it is the only one that fits.".into());
        }
        [first, second, ..] => (first, second),
    };
    let (a, b) = (&first.hint, &second.hint);
    let because = if a.is_doubtful() != b.is_doubtful() {
        "the next has failed too often since it last worked".to_owned()
    } else if a.scope().specificity() != b.scope().specificity() {
        let (mine, next) = (a.scope().specificity(), b.scope().specificity());
        format!("it is more specific (scope fields given: {mine}, the next {next})")
    } else if first.score.total_cmp(&second.score).is_ne() {
        let [mine, next] = [first.score, second.score].map(|score| format!("{score:.4}"));
        if mine == next {
            "as specific as the next, and almost equal in score, it was set or used later".to_owned()
        } else {
            format!("as specific as the next, it scores higher ({mine}, the next {next})")
        }
    } else if a.updated_at != b.updated_at {
        "all else equal, it was set later than the next".to_owned()
    } else {
        "all else equal, its variant comes first by name".to_owned()
    };
    Ok(format!("The first is chosen: {because}."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ManualClock, ScopeSpec, SetHint};

    fn set(store: &Nudge, value: &str, cwd: &str, branch: &str, priority: u8) {
        let list = |text: &str| if text.is_empty() { Vec::new() } else { vec![text.to_owned()] };
        let mut hint = SetHint::new("a", "k", value);
        hint.meta.scope = ScopeSpec { cwd_glob: list(cwd), branch: list(branch), ..ScopeSpec::default() };
        hint.meta.priority = Some(priority);
        store.set(hint).unwrap();
    }

    fn why(store: &Nudge) -> (Vec<String>, String) {
        let context = ContextSpec { cwd: Some("/w/app".into()), branch: Some("dev".into()), ..ContextSpec::default() };
        let why = store.why(WhyQuestion { component: "a".into(), key: "k".into(), context: context.clone() }).unwrap();
        let got = store.get("a", "k", &context.build().unwrap());
        let first = why.variants.first().filter(|first| first.match_explain.matched);
        assert_eq!(first.map(|first| first.hint.text().to_owned()), got.map(|got| got.hint().text().to_owned()));
        (why.variants.iter().map(|variant| variant.hint.text().to_owned()).collect(), why.verdict)
    }

    #[test]
    fn it_says_what_decided() {
        let clock = Arc::new(ManualClock::new(0));
        let store = Nudge::with_clock(crate::Config::default(), clock.clone());
        assert_eq!(
            why(&store).1,
            "Nothing is stored under this key; list what there is with `nudge.list_components`, or set it."
        );
        set(&store, "far", "/x/**", "", 5);
        assert_eq!(why(&store).1, "None fits here; the nearest fails because cwd /w/app is not /x/**.");
        set(&store, "one", "/w/**", "", 5);
        assert_eq!(
            why(&store),
            (vec!["one".into(), "far".into()], "The first is chosen: it is the only one that fits.".into())
        );
        set(&store, "two", "/w/**", "dev", 1);
        assert_eq!(why(&store).1, "The first is chosen: it is more specific (scope fields given: 2, the next 1).");
        set(&store, "three", "/w/*", "dev", 9);
        let (order, verdict) = why(&store);
        assert_eq!(order, ["three", "two", "one", "far"]);
        assert!(verdict.contains("it scores higher"), "{verdict}");
        set(&store, "three", "/w/*", "dev", 1);
        clock.advance_by(0);
        assert!(why(&store).1.contains("comes first by name"), "{}", why(&store).1);
        // Two scores that are equal when rounded are not given as the reason.
        clock.advance_by(1000);
        set(&store, "three", "/w/*", "dev", 1);
        assert!(why(&store).1.ends_with("it was set or used later."), "{}", why(&store).1);
    }
}
