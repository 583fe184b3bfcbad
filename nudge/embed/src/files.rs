//! The files of a model, and the id that they make.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use nudge_core::foreign::{self, LinkPolicy};
use nudge_core::text::to_hex;
use sha2::{Digest as _, Sha256};

use crate::config::BertConfig;
use crate::known::KNOWN;
use crate::{KnownModel, Precision, Result, broken_model};

/// The weights.
pub const WEIGHTS: &str = "model.safetensors";
/// The tokenizer.
pub const TOKENIZER: &str = "tokenizer.json";
/// The shape of the network.
pub const CONFIG: &str = "config.json";
/// How vectors of tokens become one; a model need not say.
pub const POOLING: &str = "1_Pooling/config.json";
/// How long texts are; a model need not say.
pub const SENTENCES: &str = "sentence_bert_config.json";

/// The files of which a model consists, and whether it can do without.
pub const FILES: [(&str, FileNeed); 5] = [
    (CONFIG, FileNeed::Must),
    (TOKENIZER, FileNeed::Must),
    (WEIGHTS, FileNeed::Must),
    (POOLING, FileNeed::May),
    (SENTENCES, FileNeed::May),
];

/// Most bytes of a model that is not known, of its weights or of all files together.
pub const MAX_BYTES: u64 = 1 << 30;
/// Most bytes of a file that describes; vocabularies of a hundred languages take 17 MB.
const MAX_DESCRIPTION_BYTES: u64 = 64 << 20;

/// Bytes that are hashed at once.
const CHUNK_BYTES: usize = 128 * 1024;

/// The need for a file: must or may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileNeed {
    Must,
    May,
}

/// Most bytes of the file of this name.
pub fn max_bytes(name: &str) -> u64 {
    if name == WEIGHTS { MAX_BYTES } else { MAX_DESCRIPTION_BYTES }
}

/// The files of a model: its weights open, the others in memory.
pub struct ModelFiles {
    /// In the order of [`FILES`], without the weights.
    bytes: [Option<Vec<u8>>; 5],
    weights: File,
    known: Option<&'static KnownModel>,
    /// The one that they say they are: all but the weights are its.
    passes_for: Option<&'static KnownModel>,
    /// SHA-256 over the names and hashes of all files, in hex.
    hash: String,
}

impl ModelFiles {
    /// Reads them. Other files in the folder do not matter.
    ///
    /// # Errors
    /// `E_INVALID` when one is missing, is a link, or is too large.
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

    /// The model of the table that these files are, byte by byte.
    pub fn find_known(&self) -> Option<&'static KnownModel> {
        self.known
    }

    /// The model of the table that these files say they are and are not: its weights are others.
    pub fn passes_for(&self) -> Option<&'static KnownModel> {
        self.passes_for.filter(|_| self.known.is_none())
    }

    pub fn weights(&self) -> &File {
        &self.weights
    }

    pub fn tokenizer(&self) -> &[u8] {
        self.get(TOKENIZER)
    }

    /// Reads the network's shape. For a known model the table says how it is used.
    ///
    /// # Errors
    /// The errors of [`Config::read`].
    pub fn read_config(&self) -> Result<BertConfig> {
        let config = self.get(CONFIG);
        match self.known {
            None => BertConfig::read(config, self.bytes[3].as_deref(), self.bytes[4].as_deref()),
            Some(known) => Ok(BertConfig { tokens: known.tokens, ..BertConfig::read(config, None, None)? }),
        }
    }

    /// Returns the id of the model: its name and revision if it is known, else the hash of its files, and how it is
    /// used. A folder may be renamed; its vectors stay valid.
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

/// The fault of a file that cannot be read.
pub fn unreadable_fault(name: &str, error: &io::Error) -> crate::ModelFault {
    match error.kind() {
        io::ErrorKind::NotFound => broken_model(format!("has no {name}")),
        _ => broken_model(format!("has a {name} that cannot be read ({error})")),
    }
}

/// Returns the SHA-256 of a file in hex, from where it stands.
///
/// # Errors
/// The errors of reading; `FileTooLarge` for a file with more than `max_bytes` left.
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
