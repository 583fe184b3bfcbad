//! Writes mail: messages that stay until their reader has read them, each in a file `mail/AGENT/TIME-FROM.json`. Nudge
//! sends only one kind of mail: a report that an agent does not answer.

use nudge_core::clock::{Millis, rfc3339};
use nudge_core::error::{Error, Result};
use serde::Serialize;

use crate::agent::AgentId;
use crate::folder::{self, OldFile};
use crate::state::{StateDir, unusable_error};

/// The folder of mail in a state directory.
const MAIL: &str = "mail";

/// A mail to a mayor that reports an agent without an answer. The fields are declared and written in alphabetical
/// order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EscalationMail {
    /// The text of the report.
    pub body: String,
    /// The sender.
    pub from: AgentId,
    /// Always `urgent`.
    pub priority: &'static str,
    /// Always false when Nudge sends the mail; the reader sets it to true.
    pub read: bool,
    /// The summary.
    pub subject: String,
    /// The time of the mail, RFC 3339.
    pub timestamp: String,
    /// The recipient.
    pub to: AgentId,
    /// Always `health_escalation`.
    #[serde(rename = "type")]
    pub kind: &'static str,
}

impl EscalationMail {
    /// Makes the mail which says that `from` asked `agent` at `asked`, and that `agent` showed no activity.
    pub fn new(agent: &AgentId, from: &AgentId, to: &AgentId, work: &str, asked: Millis, sent: Millis) -> Self {
        let work = if work.is_empty() { String::new() } else { format!(" ({work})") };
        let (asked, timestamp) = (rfc3339::format_time(asked), rfc3339::format_time(sent));
        Self {
            body: format!(
                "{agent} has active work{work}, was asked at {asked} whether it is working, and has neither answered nor \
                 touched its hook since."
            ),
            from: from.clone(),
            priority: "urgent",
            read: false,
            subject: format!("{agent} does not answer"),
            timestamp,
            to: to.clone(),
            kind: "health_escalation",
        }
    }

    /// Puts the mail into the recipient's mailbox. If a file with this time and sender exists, the mail was sent
    /// before, and `send` writes nothing.
    ///
    /// # Errors
    /// `E_INVALID` for a link that leads out of the state directory; `E_UNAVAILABLE` when the mail cannot be written.
    pub fn send(&self, state: &StateDir) -> Result<()> {
        let text = serde_json::to_string_pretty(self)
            .map_err(|_| Error::invalid("The mail cannot be written as JSON; report this."))?;
        let folder = state.make_folder(&[MAIL, self.to.as_str()])?;
        let name = format!("{}-{}.json", self.timestamp.replace(':', "-"), self.from);
        folder::write(&folder.held, &name, &(text + "\n"), OldFile::Kept)
            .map_err(|error| unusable_error(&folder.path.join(name), &error))?;
        folder.held.sweep_leftovers();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mail_is_one_file_however_often_it_is_sent() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateDir::find(folder.path().to_str(), None).unwrap();
        let [agent, witness, mayor] = ["polecat", "witness", "mayor"].map(|name| AgentId::parse(name).unwrap());
        let mail =
            EscalationMail::new(&agent, &witness, &mayor, "gt-1 Add a page", 1_772_706_900_000, 1_772_706_960_000);
        mail.send(&state).unwrap();
        mail.send(&state).unwrap();
        let path = folder.path().join("mail/mayor/2026-03-05T10-36-00.000Z-witness.json");
        let expected = "{\n  \"body\": \"polecat has active work (gt-1 Add a page), was asked at 2026-03-05T10:35:00.000Z \
            whether it is working, and has neither answered nor touched its hook since.\",\n  \"from\": \"witness\",\n  \
            \"priority\": \"urgent\",\n  \"read\": false,\n  \"subject\": \"polecat does not answer\",\n  \"timestamp\": \
            \"2026-03-05T10:36:00.000Z\",\n  \"to\": \"mayor\",\n  \"type\": \"health_escalation\"\n}\n";
        assert_eq!(std::fs::read_to_string(path).unwrap(), expected);
        assert_eq!(std::fs::read_dir(folder.path().join("mail/mayor")).unwrap().count(), 1);
    }
}
