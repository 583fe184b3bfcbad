//! The content of a signal: five fields and six types.

use nudge_core::error::{Error, Result};
use nudge_core::safety::refusal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agent::AgentId;
use crate::stamp;

/// The most bytes of a message. The limit keeps a signal short.
const MAX_MESSAGE_BYTES: usize = 4 << 10;

/// A signal's request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SignalType {
    /// Are you alive and working? Sent by a witness.
    HealthCheck,
    /// You have reported no activity. Sent by a witness.
    StallWarning,
    /// The first task has changed. Sent by a mayor.
    PriorityChange,
    /// Stop the current work. Sent by a mayor.
    Abort,
    /// Bring your state up to date. Sent by anybody.
    SyncRequest,
    /// The answer to a signal that asked for one.
    NudgeResponse,
}

impl SignalType {
    /// Returns the type's name in the file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::HealthCheck => "health_check",
            Self::StallWarning => "stall_warning",
            Self::PriorityChange => "priority_change",
            Self::Abort => "abort",
            Self::SyncRequest => "sync_request",
            Self::NudgeResponse => "nudge_response",
        }
    }

    /// Returns the default message of this type.
    pub const fn usual_message(self) -> &'static str {
        match self {
            Self::HealthCheck => "Are you working on what you were given?",
            Self::StallWarning => "You have reported no activity for a while.",
            Self::PriorityChange => "The priority of your work has changed; read it again.",
            Self::Abort => "Stop your current work.",
            Self::SyncRequest => "Bring your state up to date.",
            Self::NudgeResponse => "Acknowledged.",
        }
    }
}

/// A signal in the form of an agent's file. The fields are declared and written in alphabetical order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signal {
    /// The sender.
    pub from: AgentId,
    /// The text, for people and models.
    pub message: String,
    /// Is true if the sender waits for an answer.
    pub requires_response: bool,
    /// The time when the sender sent the signal, as the sender wrote it: ISO 8601.
    pub timestamp: String,
    /// The type.
    #[serde(rename = "type")]
    pub kind: SignalType,
}

impl Signal {
    /// Reads the text of a file. Skips unknown fields, because some senders write the recipient too.
    ///
    /// # Errors
    /// A few words that say what is wrong, without any part of the text.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let signal: Self = serde_json::from_str(text).map_err(|error| {
            if error.is_data() { "it does not have the five fields of a signal" } else { "it is not JSON" }
        })?;
        if stamp::parse_stamp(&signal.timestamp).is_none() {
            return Err("its timestamp is not ISO 8601");
        }
        Ok(signal)
    }

    /// Returns the text of the file: exactly the five fields, in alphabetical order.
    ///
    /// # Errors
    /// In practice none: every signal converts to JSON.
    pub fn to_text(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}

/// A signal before it is sent. The inbox sets its time when it writes the file.
#[derive(Debug, Clone)]
pub struct SignalDraft {
    /// The sender.
    pub from: AgentId,
    /// The type.
    pub kind: SignalType,
    /// The text.
    pub message: String,
    /// Is true when the sender waits for an answer.
    pub requires_response: bool,
}

impl SignalDraft {
    /// Refuses a message that is empty, too long, or looks like a credential. A credential is refused because other
    /// programs can read the file.
    ///
    /// # Errors
    /// `E_INVALID`, `E_SECRET_REJECTED`.
    pub fn check_message(&self) -> Result<()> {
        if self.message.trim().is_empty() || self.message.len() > MAX_MESSAGE_BYTES {
            return Err(Error::invalid("`message` must have 1 byte to 4 KiB, and say something.").about("message"));
        }
        refusal::check_text_with(&self.message, "message", || {
            "`message` looks like a credential, and would lie in a file that others read; say where to find it instead."
                .to_owned()
        })
    }

    pub(crate) fn into_signal(self, timestamp: String) -> Signal {
        let Self { from, kind, message, requires_response } = self;
        Signal { from, message, requires_response, timestamp, kind }
    }
}

#[cfg(test)]
mod tests {
    use nudge_core::error::ErrorKind;
    use serde_json::json;

    use super::*;

    fn draft(message: &str) -> SignalDraft {
        let from = AgentId::parse("witness-d3e4f").unwrap();
        SignalDraft { from, kind: SignalType::HealthCheck, message: message.into(), requires_response: true }
    }

    #[test]
    fn exactly_five_fields_in_the_order_of_their_names() {
        let text = draft("Are you working?").into_signal("2026-03-05T10:35:00.000Z".into()).to_text().unwrap();
        let expected = "{\n  \"from\": \"witness-d3e4f\",\n  \"message\": \"Are you working?\",\n  \
                        \"requires_response\": true,\n  \"timestamp\": \"2026-03-05T10:35:00.000Z\",\n  \
                        \"type\": \"health_check\"\n}\n";
        assert_eq!(text, expected);
        assert_eq!(Signal::parse(&text).unwrap().to_text().unwrap(), text);
    }

    #[test]
    fn what_is_no_signal_is_refused() {
        let good = json!({"from": "a", "type": "abort", "message": "x", "timestamp": "2026-03-05T10:35:00Z", "requires_response": false});
        Signal::parse(&good.to_string()).unwrap();
        let mut more = good.clone();
        more["to"] = json!("b");
        assert_eq!(Signal::parse(&more.to_string()), Signal::parse(&good.to_string()));
        for (field, bad, why) in [
            ("from", json!("../x"), "it does not have the five fields of a signal"),
            ("from", json!(null), "it does not have the five fields of a signal"),
            ("type", json!("dance"), "it does not have the five fields of a signal"),
            ("message", json!(7), "it does not have the five fields of a signal"),
            ("requires_response", json!("yes"), "it does not have the five fields of a signal"),
            ("timestamp", json!("yesterday"), "its timestamp is not ISO 8601"),
        ] {
            let mut signal = good.clone();
            signal[field] = bad;
            assert_eq!(Signal::parse(&signal.to_string()), Err(why), "{field}");
            signal.as_object_mut().unwrap().remove(field);
            Signal::parse(&signal.to_string()).unwrap_err();
        }
        for text in ["", "{", "{\"from\":\"a\"", "\u{0}"] {
            assert_eq!(Signal::parse(text), Err("it is not JSON"), "{text:?}");
        }
        for text in ["null", "[]", "7"] {
            assert_eq!(Signal::parse(text), Err("it does not have the five fields of a signal"), "{text:?}");
        }
    }

    #[test]
    fn what_may_not_be_sent() {
        draft("go on").check_message().unwrap();
        draft(&"x".repeat(4096)).check_message().unwrap();
        for bad in ["", " \n", &"x y".repeat(4097)] {
            assert_eq!(draft(bad).check_message().unwrap_err().kind(), ErrorKind::Invalid);
        }
        let token = ["ghp", "_", &"aB3dE6gH9j".repeat(4)[..36]].concat();
        let refused = draft(&format!("use {token}")).check_message().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::SecretRejected);
        assert!(!refused.message().contains(&token));
    }

    #[test]
    fn the_types_are_written_as_they_are_named() {
        use SignalType::{Abort, HealthCheck, NudgeResponse, PriorityChange, StallWarning, SyncRequest};
        for kind in [HealthCheck, StallWarning, PriorityChange, Abort, SyncRequest, NudgeResponse] {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
            assert!(!kind.usual_message().is_empty());
        }
    }
}
