//! Offers an agent's signal without a request, once, before all other offers.

use std::hash::BuildHasher as _;

use foldhash::quality::FixedState;
use nudge_core::clock::Millis;
use nudge_core::explain::{MatchExplain, ScoreParts};
use nudge_core::suggest::{MoreCall, Offer, SourceItem, SourceOffers, SuggestMoment, SuggestRequest};
use nudge_core::text::{format_ago, one_line};
use nudge_core::wire::raw_json;
use nudge_secrets::SecretGuard;
use serde_json::json;

use crate::agent::AgentId;
use crate::method::{AGENT_ID, CHECK, state_for};
use crate::signal::{Signal, SignalType};
use crate::source::SOURCE;
use crate::stamp;

/// The greatest age of an offered signal. An older signal was for an agent that no longer runs.
const MAX_AGE_MS: Millis = 24 * 3_600_000;
/// The most characters of the signal's message in an offered line.
const MAX_MESSAGE_CHARS: usize = 500;

/// Returns the offers for an event. The second value is true when the caller's context has a state directory.
pub fn make_offers(request: &SuggestRequest) -> (SourceOffers, bool) {
    let none = SourceOffers::default;
    // A recall asks for stored knowledge, not for signals.
    if request.moment == SuggestMoment::Recall {
        return (none(), false);
    }
    let Ok(state) = state_for(&request.context) else { return (none(), false) };
    if !state.exists() {
        return (none(), false);
    }
    let named = request.context.env(AGENT_ID).filter(|name| !name.is_empty());
    let Some(agent) = named.or(request.client_session.as_deref()).and_then(AgentId::parse) else {
        return (none(), true);
    };
    let Ok(Some(Ok(signal))) = state.inbox(&agent).read(request.now) else { return (none(), true) };
    // A signal whose timestamp is not a time would be offered for ever, so it is left out.
    let Some(sent) = stamp::parse_past(&signal.timestamp, request.now) else { return (none(), true) };
    let offer = make_offer(&agent, &signal, sent, request.now);
    // After a failure, other lines may be told again. A signal is never told again.
    let is_told =
        request.is_needless(SOURCE.name, &offer.id) || request.told_offers(SOURCE.name).any(|(id, _)| *id == *offer.id);
    if is_told || request.now.saturating_sub(sent) > MAX_AGE_MS {
        return (none(), true);
    }
    (SourceOffers { offers: vec![offer], ..none() }, true)
}

fn make_offer(agent: &AgentId, signal: &Signal, sent: Millis, now: Millis) -> Offer {
    // Two signals from other programs may have the same time, so the hash includes all fields.
    let stamp = FixedState::default().hash_one((
        &signal.timestamp,
        signal.kind.as_str(),
        signal.from.as_str(),
        &signal.message,
    ));
    let why = format!("it is the newest signal for {agent}");
    let parts = ScoreParts::from([("signal", 1.0)]);
    Offer {
        id: format!("{agent} {stamp:016x}").into(),
        name: format!("{} for {agent}", signal.kind.as_str()),
        line: format_line(signal, sent, now),
        stamp,
        must: true,
        paths: Vec::new(),
        command: None,
        why: why.clone(),
        explain: MatchExplain { matched: true, score: parts.total(), parts: parts.clone(), reasons: vec![why] },
        parts,
        // Plain texts always convert to JSON.
        more: MoreCall { method: CHECK, params: raw_json(&json!({"agent": agent})) },
        item: SourceItem(raw_json(&json!({"agent": agent, "signal": guard_signal(signal)}))),
    }
}

/// Returns the message, or a replacement text if the message looks like a credential. Other programs write these files,
/// and Nudge must not spread a credential.
fn guard_message(signal: &Signal) -> &str {
    if SecretGuard::new().check(None, &signal.message).is_some() {
        return "(left out: it looks like a credential)";
    }
    &signal.message
}

/// Returns the signal; a message that looks like a credential is replaced.
pub fn guard_signal(signal: &Signal) -> Signal {
    Signal { message: guard_message(signal).to_owned(), ..signal.clone() }
}

/// Formats the line for the model. The line says that the message is from another agent, not from the user.
fn format_line(signal: &Signal, sent: Millis, now: Millis) -> String {
    let answer = match signal.kind {
        SignalType::NudgeResponse => "",
        _ if signal.requires_response => "; it waits for your answer by nudge_signals_respond",
        _ => "",
    };
    let said = one_line(guard_message(signal), MAX_MESSAGE_CHARS);
    let (kind, from, when) = (signal.kind.as_str(), &signal.from, format_ago(sent, now));
    format!("signal {kind} from agent {from}, {when}, in its words: \"{said}\"{answer}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signal(kind: SignalType, message: &str, requires_response: bool) -> Signal {
        let from = AgentId::parse("mayor-1").unwrap();
        Signal { from, message: message.into(), requires_response, timestamp: "2026-03-05T10:35:00Z".into(), kind }
    }

    #[test]
    fn a_line_names_the_author_of_its_words() {
        for (signal, told) in [
            (
                signal(SignalType::Abort, "Stop.", false),
                "signal abort from agent mayor-1, 2m ago, in its words: \"Stop.\"",
            ),
            (
                signal(SignalType::HealthCheck, "Are you\nworking?", true),
                "signal health_check from agent mayor-1, 2m ago, in its words: \"Are you ⏎ working?\"; it waits for your \
                 answer by nudge_signals_respond",
            ),
            (
                signal(SignalType::NudgeResponse, "Yes.", true),
                "signal nudge_response from agent mayor-1, 2m ago, in its words: \"Yes.\"",
            ),
        ] {
            assert_eq!(format_line(&signal, 0, 120_000), told);
        }
    }

    #[test]
    fn a_credential_goes_no_further() {
        let token = ["ghp", "_", &"aB3dE6gH9j".repeat(4)[..36]].concat();
        let offer = make_offer(&AgentId::parse("a").unwrap(), &signal(SignalType::Abort, &token, false), 0, 0);
        assert!(offer.line.contains("left out") && !offer.line.contains(&token));
        assert!(!offer.item.0.get().contains(&token));
    }

    #[test]
    fn another_signal_of_the_same_time_is_another_offer() {
        let agent = AgentId::parse("a").unwrap();
        let id = |message: &str| make_offer(&agent, &signal(SignalType::Abort, message, false), 0, 0).id;
        assert_ne!(id("one"), id("two"));
        assert_eq!(id("one"), id("one"));
    }
}
