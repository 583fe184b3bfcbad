//! Signals: a signal is a short urgent message from one agent to another, such as "are you alive" or "stop". Each agent
//! has one file. A new signal replaces the last one, and no signal is archived (semantics section 16).
//!
//! All data is in files that any program can read and write. So signals need no server, and a shell script can take
//! part. [`StateDir`] finds and manages the files; [`Signal`] is the content of one file; [`SOURCE`] registers the
//! signals as a source.
//!
//! | module | what |
//! |---|---|
//! | `agent`, `signal` | the name of an agent; the five fields and the types |
//! | `stamp` | times as text, which sort correctly as times and as texts |
//! | `state`, `folder`, `inbox` | finds the state directory and limits access to it; replaces files as a whole; sends
//! and reads |
//! | `tracked` | checks whether git tracks a file, which then is not a signal |
//! | `hook`, `mail` | the work of an agent; messages that are kept for their reader |
//! | `deacon`, `patrol`, `watch`, `news` | the commands that keep running, and their wait for changes |
//! | `source`, `method`, `offer` | the source, its method table, its unasked offers to an agent |

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
