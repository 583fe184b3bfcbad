//! Reads the files of a model, and makes the model's id from their hashes.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use nudge_core::text::to_hex;
use nudge_os::foreign::{self, LinkPolicy};
use sha2::{Digest as _, Sha256};

use crate::config::BertConfig;
use crate::known::KNOWN;
use crate::{KnownModel, Precision, Result, broken_model};

/// The name of the file with the weights.
pub const WEIGHTS: &str = "model.safetensors";
/// The name of the file with the tokenizer.
pub const TOKENIZER: &str = "tokenizer.json";
/// The name of the file with the shape of the network.
pub const CONFIG: &str = "config.json";
/// The name of the file that says how the vectors of tokens become one vector. A model may lack the file.
pub const POOLING: &str = "1_Pooling/config.json";
/// The name of the file that says how long a text may be. A model may lack the file.
pub const SENTENCES: &str = "sentence_bert_config.json";

/// The files of a model, in a fixed order, and whether a model must have each of them.
pub const FILES: [(&str, FileNeed); 5] = [
    (CONFIG, FileNeed::Must),
    (TOKENIZER, FileNeed::Must),
    (WEIGHTS, FileNeed::Must),
    (POOLING, FileNeed::May),
    (SENTENCES, FileNeed::May),
];

/// Largest size of a model's weights, in bytes. For a model that is not known, this also limits the sum of all files.
pub const MAX_BYTES: u64 = 1 << 30;
/// Largest size of any other file, in bytes. A vocabulary for a hundred languages takes 17 MB.
const MAX_DESCRIPTION_BYTES: u64 = 64 << 20;

/// Number of bytes that are hashed in one step.
const CHUNK_BYTES: usize = 128 * 1024;

/// Says whether every model must have a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileNeed {
    Must,
    May,
}

/// Returns the largest allowed size of the file with this name, in bytes.
pub fn max_bytes(name: &str) -> u64 {
    if name == WEIGHTS { MAX_BYTES } else { MAX_DESCRIPTION_BYTES }
}

/// The files of a model: the weights as an open file, the other files in memory.
pub struct ModelFiles {
    /// The contents of the files in the order of [`FILES`]. The entry of the weights is empty.
    bytes: [Option<Vec<u8>>; 5],
    weights: File,
    known: Option<&'static KnownModel>,
    /// The known model with the same files, if only the weights may differ.
    passes_for: Option<&'static KnownModel>,
    /// The SHA-256 of the names and hashes of all files, in hexadecimal.
    hash: String,
}

impl ModelFiles {
    /// Reads the model's files and ignores other files in the folder.
    ///
    /// # Errors
    /// `E_INVALID` when a file is missing, is a link, or is too large.
    pub fn read(folder: &Path) -> Result<Self> {
        let mut bytes: [Option<Vec<u8>>; 5] = Default::default();
        let mut hashes: [Option<String>; 5] = Default::default();
        let mut weights = None;
        for (((name, need), bytes), hash) in FILES.iter().zip(&mut bytes).zip(&mut hashes) {
            let failed = |error| unreadable_fault(name, &error);
            if *name == WEIGHTS {
                let (mut file, _) = foreign::open_file(&folder.join(name), LinkPolicy::Refused).map_err(failed)?;
                *hash = Some(hash_of(&mut file, MAX_BYTES).map_err(failed)?);
                weights = Some(file);
                continue;
            }
            *bytes = match foreign::read(&folder.join(name), LinkPolicy::Refused, max_bytes(name)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound && *need == FileNeed::May => None,
                read => Some(read.map_err(failed)?),
            };
            *hash = bytes.as_ref().map(|bytes| to_hex(&Sha256::digest(bytes)));
        }
        let weights = weights.ok_or_else(|| broken_model(format!("has no {WEIGHTS}")))?;
        let named = || FILES.iter().zip(&hashes).filter_map(|((name, _), hash)| Some((*name, hash.as_deref()?)));
        let is =
            |known: &&KnownModel| known.files.iter().all(|file| named().any(|entry| entry == (file.name, file.sha256)));
        let describes = |known: &&KnownModel| {
            let mut files = known.files.iter().filter(|file| file.name != WEIGHTS);
            files.all(|file| named().any(|entry| entry == (file.name, file.sha256)))
        };
        let mut all = Sha256::new();
        for (name, hash) in named() {
            all.update(format!("{hash} {name}\n"));
        }
        let hash = to_hex(&all.finalize());
        let (known, passes_for) = (KNOWN.iter().find(is), KNOWN.iter().find(describes));
        Ok(Self { bytes, weights, known, passes_for, hash })
    }

    /// Returns the known model if all files have its bytes; otherwise `None`.
    pub fn find_known(&self) -> Option<&'static KnownModel> {
        self.known
    }

    /// Returns the known model if all files except the weights have its bytes; otherwise `None`.
    pub fn passes_for(&self) -> Option<&'static KnownModel> {
        self.passes_for.filter(|_| self.known.is_none())
    }

    pub fn weights(&self) -> &File {
        &self.weights
    }

    pub fn tokenizer(&self) -> &[u8] {
        self.get(TOKENIZER)
    }

    /// Reads the network's shape and settings. For a known model, the settings come from the table of known models.
    ///
    /// # Errors
    /// The errors of [`BertConfig::read`].
    pub fn read_config(&self) -> Result<BertConfig> {
        let config = self.get(CONFIG);
        match self.known {
            None => BertConfig::read(config, self.bytes[3].as_deref(), self.bytes[4].as_deref()),
            Some(known) => Ok(BertConfig { tokens: known.tokens, ..BertConfig::read(config, None, None)? }),
        }
    }

    /// Returns the id of the model: its name and revision, or the hash of its files if it is not known, and the
    /// settings of its use. The id does not contain the folder's name, so vectors stay valid after a rename.
    pub fn make_id(&self, config: &BertConfig, precision: Precision) -> String {
        let model = match self.known {
            Some(known) => format!("{}@{}", known.name, known.short_revision()),
            None => format!("bert@{}", &self.hash[..16]),
        };
        let rounded = if precision == Precision::Rounded { "/int8" } else { "" };
        format!("{model}/{}/{}{rounded}", config.pooling.name(), config.tokens)
    }

    fn get(&self, name: &str) -> &[u8] {
        let position = FILES.iter().position(|(file, _)| *file == name);
        position.and_then(|index| self.bytes[index].as_deref()).unwrap_or_default()
    }
}

/// Makes the fault for a file that cannot be read.
pub fn unreadable_fault(name: &str, error: &io::Error) -> crate::ModelFault {
    match error.kind() {
        io::ErrorKind::NotFound => broken_model(format!("has no {name}")),
        _ => broken_model(format!("has a {name} that cannot be read ({error})")),
    }
}

/// Returns the SHA-256 of a file from the current position to the end, in hexadecimal.
///
/// # Errors
/// The system's error when reading fails; `FileTooLarge` when more than `max_bytes` bytes are left.
pub fn hash_of(file: &mut File, max_bytes: u64) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut left = max_bytes;
    loop {
        let read = file.read(&mut chunk)?;
        if read == 0 {
            return Ok(to_hex(&hash.finalize()));
        }
        let too_large = || io::Error::new(io::ErrorKind::FileTooLarge, format!("it has more than {max_bytes} bytes"));
        left = left.checked_sub(read as u64).ok_or_else(too_large)?;
        hash.update(&chunk[..read]);
    }
}
