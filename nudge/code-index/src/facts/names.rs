//! Stores the strings of a file.

use std::collections::{HashMap, HashSet};

use foldhash::fast::FixedState;
use serde::{Deserialize, Serialize};

use super::number::{CompactNumber, to_number};

/// The number of a string of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct NameId(CompactNumber);

impl NameId {
    /// Stands for no string, and reads as the empty text.
    pub const NONE: Self = Self(CompactNumber::NONE);

    pub fn is_none(self) -> bool {
        self == Self::NONE
    }

    #[cfg(test)]
    pub fn from_number(number: u32) -> Self {
        Self(CompactNumber::new(number))
    }

    fn from_u32(number: u32) -> Self {
        Self(CompactNumber::new(number))
    }
}

/// The strings of a file, each stored once, in one text.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct NameTable {
    text: String,
    ends: Vec<CompactNumber>,
    /// The numbers in the order of the strings, for lookup. Long texts are left out, because no query looks them up.
    order: Vec<CompactNumber>,
}

impl NameTable {
    pub fn get(&self, name: NameId) -> &str {
        let index = name.0.get() as usize;
        let Some(&end) = self.ends.get(index) else { return "" };
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before].get());
        self.text.get(start as usize..end.get() as usize).unwrap_or_default()
    }

    /// Returns the number of a string; `None` if the file does not have it.
    pub fn find(&self, text: &str) -> Option<NameId> {
        self.order.binary_search_by(|&n| self.get(NameId(n)).cmp(text)).ok().map(|index| NameId(self.order[index]))
    }

    pub fn memory_bytes(&self) -> usize {
        self.text.capacity() + size_of::<CompactNumber>() * (self.ends.capacity() + self.order.capacity())
    }

    /// Replaces these strings by empty strings.
    pub fn clear_names(&mut self, gone: &HashSet<NameId, FixedState>) {
        let mut text = String::with_capacity(self.text.len());
        let mut ends = Vec::with_capacity(self.ends.len());
        for n in 0..to_number(self.ends.len()) {
            if !gone.contains(&NameId::from_u32(n)) {
                text.push_str(self.get(NameId::from_u32(n)));
            }
            ends.push(end_of(&text));
        }
        (self.text, self.ends) = (text, ends);
        let order = std::mem::take(&mut self.order);
        self.set_order(order.into_iter().filter(|&n| !gone.contains(&NameId(n))).collect());
    }

    fn set_order(&mut self, order: Vec<CompactNumber>) {
        let mut keyed: Vec<_> = order.into_iter().map(|n| (sort_prefix(self.get(NameId(n))), n)).collect();
        keyed.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| self.get(NameId(a.1)).cmp(self.get(NameId(b.1)))));
        self.order = keyed.into_iter().map(|(_, n)| n).collect();
    }
}

/// Returns the first bytes of a text as a number. If the numbers of two texts differ, they have the order of the texts.
fn sort_prefix(text: &str) -> u64 {
    let mut bytes = [0; 8];
    let begin = text.as_bytes();
    let begin = &begin[..begin.len().min(bytes.len())];
    bytes[..begin.len()].copy_from_slice(begin);
    u64::from_be_bytes(bytes)
}

fn end_of(text: &str) -> CompactNumber {
    CompactNumber::new(to_number(text.len()))
}

/// Collects the strings of a file during extraction.
#[derive(Default)]
pub(crate) struct NameInterner<'a> {
    names: NameTable,
    seen: HashMap<&'a str, NameId, FixedState>,
    /// Strings that the extraction has composed, which do not occur in the source.
    made: HashMap<String, NameId, FixedState>,
}

impl<'a> NameInterner<'a> {
    /// Returns the number of a string of the source. Adds the string if it is new.
    pub fn name(&mut self, text: &'a str) -> NameId {
        if let Some(&name) = self.seen.get(text) {
            return name;
        }
        let name = match self.made.get(text) {
            Some(&name) => name,
            None => self.push_text(text),
        };
        self.seen.insert(text, name);
        name
    }

    /// Returns the number of a string that the extraction has composed. Adds the string if it is new.
    pub fn intern_made(&mut self, text: &str) -> NameId {
        if let Some(&name) = self.seen.get(text).or_else(|| self.made.get(text)) {
            return name;
        }
        let name = self.push_text(text);
        self.made.insert(text.to_owned(), name);
        name
    }

    /// Adds a text, and returns its number. It does not look for a text of several words, because such a text hardly
    /// occurs twice.
    pub fn intern_text(&mut self, text: &str) -> NameId {
        if text.contains([' ', '\n']) { self.push_text(text) } else { self.intern_made(text) }
    }

    pub fn get(&self, name: NameId) -> &str {
        self.names.get(name)
    }

    pub fn into_table(self) -> NameTable {
        let mut names = self.names;
        names.text.shrink_to_fit();
        names.ends.shrink_to_fit();
        // A string in both maps was first added as a composed one, so it must not be counted twice.
        let made = self.made.into_values().map(|name| name.0);
        let mut order: Vec<CompactNumber> = self.seen.into_values().map(|name| name.0).chain(made).collect();
        order.sort_unstable();
        order.dedup();
        order.shrink_to_fit();
        names.set_order(order);
        names
    }

    fn push_text(&mut self, text: &str) -> NameId {
        self.names.text.push_str(text);
        self.names.ends.push(end_of(&self.names.text));
        NameId::from_u32(to_number(self.names.ends.len() - 1))
    }
}
