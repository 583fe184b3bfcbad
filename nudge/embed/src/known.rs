//! The table of known models: the publisher's address of each model, and the length and hash of its files.

/// A model that users can download by its name.
#[derive(Debug)]
pub struct KnownModel {
    /// The name of the model and of its folder.
    pub name: &'static str,
    /// The publisher's version of the model.
    pub revision: &'static str,
    /// The licence that the publisher states.
    pub licence: &'static str,
    /// The address of the publisher's folder. Nudge appends `/` and the name of a file.
    pub address: &'static str,
    /// The files of the model.
    pub files: [PinnedFile; 3],
    /// Largest number of tokens of a text that the model uses, including two special tokens.
    pub tokens: usize,
}

/// A file of a known model, which must have exactly these bytes.
#[derive(Debug)]
pub struct PinnedFile {
    /// The name of the file.
    pub name: &'static str,
    /// The length of the file, in bytes.
    pub bytes: u64,
    /// The SHA-256 of the file, in hexadecimal.
    pub sha256: &'static str,
}

/// The known models; the first is the default.
pub static KNOWN: [KnownModel; 1] = [KnownModel {
    name: "all-MiniLM-L6-v2",
    revision: "1110a243fdf4706b3f48f1d95db1a4f5529b4d41",
    licence: "Apache-2.0",
    address: concat!(
        "https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2/resolve/",
        "1110a243fdf4706b3f48f1d95db1a4f5529b4d41"
    ),
    files: [
        PinnedFile {
            name: "config.json",
            bytes: 612,
            sha256: "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
        },
        PinnedFile {
            name: "tokenizer.json",
            bytes: 466_247,
            sha256: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        },
        PinnedFile {
            name: "model.safetensors",
            bytes: 90_868_376,
            sha256: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        },
    ],
    tokens: 256,
}];

impl KnownModel {
    /// Returns the known model with this name; `None` for other names.
    ///
    /// ```
    /// let model = nudge_embed::KnownModel::find("all-MiniLM-L6-v2").expect("it is known");
    /// assert_eq!((model.bytes() / 1_000_000, model.licence), (91, "Apache-2.0"));
    /// assert!(nudge_embed::KnownModel::find("GPT").is_none());
    /// ```
    pub fn find(name: &str) -> Option<&'static Self> {
        KNOWN.iter().find(|known| known.name == name)
    }

    /// Returns the size of all files together, in bytes.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Returns the first eight characters of the revision, which the model's id contains.
    pub(crate) fn short_revision(&self) -> &'static str {
        &self.revision[..8]
    }
}
