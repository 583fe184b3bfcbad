//! Reads `brain.yaml` at the top of a brain: settings that the author of the brain makes for all its readers. A cloned
//! brain comes from another person. So this file can set nothing harmful: no address, key, model or program, and it
//! cannot switch anything on.

use std::path::Path;

use nudge_os::foreign::{self, LinkPolicy};
use serde_json::Value;

use crate::front::FrontmatterFields;

/// The name of the file.
pub const FILE: &str = "brain.yaml";
/// The most bytes of the file.
const MAX_BYTES: u64 = 64 << 10;

/// The settings that the file may contain. `None` stands for a setting that the file does not contain.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BrainConfig {
    /// The name of the brain.
    pub name: Option<String>,
    /// The patterns of files that are not units, in the syntax of `.gitignore`.
    pub ignore: Vec<String>,
    /// The default number of results of a question. `max_chars` is the default limit of the characters of all sections,
    /// and `hops` that of the steps along relations.
    pub limit: Option<usize>,
    pub max_chars: Option<usize>,
    pub hops: Option<usize>,
    /// The branch from which captures start and into which they are merged. `capture_prefix` is the prefix of their
    /// branches, and `capture_units` the most units of one session.
    pub capture_base: Option<String>,
    pub capture_prefix: Option<String>,
    pub capture_units: Option<usize>,
}

impl BrainConfig {
    /// Reads the file of a brain. If there is no file, no setting is set. A field that is not understood is ignored.
    pub fn load(root: &Path) -> Self {
        let text = foreign::read_text(&root.join(FILE), LinkPolicy::Refused, MAX_BYTES);
        text.map(|text| Self::read(&text)).unwrap_or_default()
    }

    fn read(text: &str) -> Self {
        let fields = FrontmatterFields::read(text);
        let retrieve = fields.all.get("retrieve");
        let capture = fields.all.get("capture");
        let number = |section: Option<&Value>, name: &str| usize::try_from(section?.get(name)?.as_u64()?).ok();
        let count = |name: &str| number(retrieve, name);
        let word = |name: &str| Some(capture?.get(name)?.as_str()?.to_owned());
        Self {
            name: fields.get_text("name"),
            ignore: fields.get_texts("ignore"),
            limit: count("limit"),
            max_chars: count("max_chars"),
            hops: count("hops"),
            capture_base: word("base"),
            capture_prefix: word("branch_prefix"),
            capture_units: number(capture, "max_units"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_understood_counts() {
        let text = "brain: 1\nname: mine\nignore: [drafts/, '*.tmp.md']\nretrieve: {limit: 8, hops: x}\nllm: {url: http://a}\n";
        let expected = BrainConfig {
            name: Some("mine".into()),
            ignore: vec!["drafts/".into(), "*.tmp.md".into()],
            limit: Some(8),
            ..BrainConfig::default()
        };
        assert_eq!(BrainConfig::read(text), expected);
        assert_eq!(BrainConfig::read("- [a"), BrainConfig::default());
    }
}
