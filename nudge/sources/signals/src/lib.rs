//! Signals: one urgent word from one agent to another, such as "are you alive" or "stop". Each agent has one file; a
//! new signal replaces the last, and nothing is archived (semantics section 16).
//!
//! Everything is in files that any program can read and write, so signals need no server, and a shell script can take
//! part. [`StateDir`] finds and keeps them; [`Signal`] is the content of one; [`SOURCE`] brings both to the surfaces.
//!
//! | module | what |
//! |---|---|
//! | `agent`, `signal` | the name of an agent; the five fields and the types |
//! | `stamp` | times as text, which count as newer for whoever compares numbers and for whoever compares text |
//! | `state`, `folder`, `inbox` | where the state directory is and what in it may be touched; files replaced whole; sending and reading |
//! | `tracked` | whether git tracks a file, which then is no signal |
//! | `hook`, `mail` | the work that an agent has; what is kept for its reader |
//! | `deacon`, `patrol`, `watch`, `news` | the commands that stay, and how they wait |
//! | `source`, `method`, `offer` | the source, its rows, what it tells an agent unasked |

mod agent;
mod deacon;
mod folder;
mod hook;
mod inbox;
mod mail;
mod method;
mod news;
mod offer;
mod patrol;
mod signal;
mod source;
mod stamp;
mod state;
mod tracked;
mod watch;

pub use agent::AgentId;
pub use inbox::SignalInbox;
pub use method::{
    ListedAgent, SentSignal, SignalCheck, SignalCheckParams, SignalList, SignalListParams, SignalRespondParams,
    SignalSendParams,
};
pub use signal::{Signal, SignalDraft, SignalType};
pub use source::SOURCE;
pub use stamp::{is_newer, next};
pub use state::StateDir;
