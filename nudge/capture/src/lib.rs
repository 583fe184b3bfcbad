//! Reads the session of a coding agent and judges the notes that a model proposes from it.
//!
//! [`transcript`] reads the files that Claude Code and Codex write. [`view`] makes the text that may leave the machine,
//! without lines that look like a credential. [`prompt`] builds the request to the model. [`gate`] accepts a proposal
//! only if it is general, durable, and proved by words of the session. The crate calls no model, opens no file and
//! stores nothing. The caller does this.
//!
//! ```
//! use nudge_capture::{gate, prompt, transcript, view};
//!
//! let lines =
//!     r#"{"type":"user","sessionId":"s","cwd":"/w","message":{"content":"Why do all clients retry at once?"}}"#;
//! let session = transcript::read(lines.as_bytes()).expect("a line of Claude Code");
//! let rendered = view::render_session(&session);
//! assert!(rendered.parts[0].starts_with("### USER\nWhy do all clients"));
//!
//! let request = prompt::build_request(&[], &[], &rendered.parts[0]);
//! assert!(request.text.contains("retry at once"));
//!
//! // A model's answer to this request.
//! let answer = serde_json::json!({"units": []});
//! let (proposals, rejected) = gate::read(&answer).expect("an answer of the form that was asked for");
//! assert!(proposals.is_empty() && rejected.is_empty());
//! ```
//!
//! The example `request` prints the requests for a session.

pub mod gate;
mod own;
pub mod prompt;
pub mod transcript;
pub mod view;
mod wording;
