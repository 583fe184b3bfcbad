//! Texts as vectors: a sentence model that runs on this machine, in this process, and implements
//! [`TextEmbedder`](nudge_core::embed::TextEmbedder).
//!
//! Nothing is shipped and nothing is fetched unasked. A user adds a model: one that is [known](KNOWN) from its
//! publisher, checked byte by byte, or any other of the same architecture from a folder, a wheel or a tar
//! ([`ModelFolder`]). Until then, and wherever it cannot be loaded, everything works by words.
//!
//! [`ModelLender`] lends the model: it is loaded on a thread of its own at the first request, and dropped after some minutes
//! without one.
//!
//! | module | what |
//! |---|---|
//! | `known`, `files` | the models that are known; the files of a model, and the id that they make |
//! | `config`, `tokens`, `weights`, `network`, `bert`, `model` | a model in memory, from its files to a vector |
//! | `models` | when it is loaded, and when dropped |
//! | `folder`, `fetch`, `archive` | models on disk: added, listed, removed; from their publisher, from an archive |
//!
//! **Architecture invariant:** this crate opens no connection; a download is made by the system's `curl`, which has
//! the user's proxy and certificates.

mod archive;
mod bert;
mod config;
mod fetch;
mod files;
mod folder;
mod known;
mod model;
mod models;
mod network;
mod tokens;
mod weights;

use std::fmt;
use std::path::Path;

use nudge_core::error::Error;
use nudge_core::text;

pub use fetch::ModelDownload;
pub use folder::{ModelFolder, StoredModel};
pub use known::{KNOWN, KnownModel, PinnedFile};
pub use model::SentenceModel;
pub use models::{IDLE, ModelChoice, ModelLender};

/// How exactly the weights are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// As whole numbers of 8 bits, with a scale for each row: a quarter of the memory, and quicker where the processor
    /// has instructions for it.
    #[default]
    Rounded,
    /// As they are.
    Full,
}

/// The flaw of a model, as the rest of a sentence that begins with "The model in PATH".
#[derive(Debug)]
enum ModelFault {
    /// The files are not as they should be.
    Broken(String),
    /// It does not work here and now.
    Unusable(String),
}

/// Most characters of a reason; libraries quote the text that they have read.
const MAX_REASON_CHARS: usize = 400;

type Result<T, E = ModelFault> = std::result::Result<T, E>;

fn broken_model(because: impl Into<String>) -> ModelFault {
    ModelFault::Broken(because.into())
}

fn unusable_model(because: impl Into<String>) -> ModelFault {
    ModelFault::Unusable(because.into())
}

impl fmt::Display for ModelFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Broken(because) | Self::Unusable(because)) = self;
        f.write_str(because)
    }
}

impl ModelFault {
    /// The error to show for the model in this folder.
    fn into_error(self, folder: &Path) -> Error {
        let because = text::one_line(&self.to_string(), MAX_REASON_CHARS);
        let folder = folder.display();
        match self {
            Self::Broken(_) => Error::invalid(format!("The model in {folder} {because}; take another one.")),
            Self::Unusable(_) => Error::unavailable(format!("The model in {folder} {because}; try again.")),
        }
    }
}
