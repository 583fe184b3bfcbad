//! Turns texts into vectors with a sentence model that runs in this process, and implements
//! [`TextEmbedder`](nudge_core::embed::TextEmbedder).
//!
//! Nudge ships no model, and downloads one only when the user asks for it. A user adds a model with [`ModelFolder`]. It
//! is a [known](KNOWN) model from its publisher, checked byte by byte, or another BERT model from a folder, a wheel or
//! a tar file. If there is no model, or it cannot be loaded, searches use words only.
//!
//! [`ModelLender`] shares the model among callers. It loads the model on its own thread at the first request, and drops
//! the model after ten minutes without a request.
//!
//! | module | purpose |
//! |---|---|
//! | `known`, `files` | the table of known models; the files of a model, and their id |
//! | `config`, `tokens`, `weights`, `network`, `bert`, `model` | loading a model from its files; computing a vector |
//! | `models` | loading the model on demand, and dropping it |
//! | `folder`, `fetch`, `archive` | models on disk: add, list, remove; from their publisher or an archive |
//!
//! **Architecture invariant:** this crate opens no network connection. The system's `curl` makes downloads, because it
//! uses the user's proxy and certificates.

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

/// The precision in which the weights are kept in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// 8-bit integers with a scale for each row. They take a quarter of the memory, and are faster on a processor with
    /// instructions for them.
    #[default]
    Rounded,
    /// 32-bit floating point numbers.
    Full,
}

/// A fault of a model. The text of a fault completes a sentence that begins with "The model in PATH".
#[derive(Debug)]
enum ModelFault {
    /// The files are wrong.
    Broken(String),
    /// The model cannot work at present.
    Unusable(String),
}

/// Largest number of characters of a fault's text. Libraries quote the text that they could not read, which may be
/// long.
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
    /// Makes the error that the user sees for the model in this folder.
    fn into_error(self, folder: &Path) -> Error {
        let because = text::one_line(&self.to_string(), MAX_REASON_CHARS);
        let folder = folder.display();
        match self {
            Self::Broken(_) => Error::invalid(format!("The model in {folder} {because}; take another one.")),
            Self::Unusable(_) => Error::unavailable(format!("The model in {folder} {because}; try again.")),
        }
    }
}
