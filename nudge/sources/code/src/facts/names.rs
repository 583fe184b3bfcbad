//! The strings of a file.

use std::collections::{HashMap, HashSet};

use foldhash::fast::FixedState;
use serde::{Deserialize, Serialize};

use super::number::Number;

/// A string of the file, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct Name(Number);

impl Name {
    /// No string: reads as the empty one.
    pub const NONE: Self = Self(Number::NONE);

    pub fn is_none(self) -> bool {
        self == Self::NONE
    }

    #[cfg(test)]
    pub fn from_number(number: u32) -> Self {
        Self(Number::new(number))
    }

    fn of(number: u32) -> Self {
        Self(Number::new(number))
    }
}

/// Each string once, one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Names {
    text: String,
    ends: Vec<Number>,
    /// The numbers in the order of the strings, for lookup. Texts are left out: no question looks them up.
    order: Vec<Number>,
}

impl Names {
    pub fn get(&self, name: Name) -> &str {
        let at = name.0.get() as usize;
        let Some(&end) = self.ends.get(at) else { return "" };
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before].get());
        self.text.get(start as usize..end.get() as usize).unwrap_or_default()
    }

    /// The number of a string, if the file has it.
    pub fn find(&self, text: &str) -> Option<Name> {
        self.order.binary_search_by(|&n| self.get(Name(n)).cmp(text)).ok().map(|at| Name(self.order[at]))
    }

    pub fn memory(&self) -> usize {
        self.text.capacity() + size_of::<Number>() * (self.ends.capacity() + self.order.capacity())
    }

    /// Empties these strings.
    pub fn forget(&mut self, gone: &HashSet<Name, FixedState>) {
        let mut text = String::with_capacity(self.text.len());
        let mut ends = Vec::with_capacity(self.ends.len());
        for n in 0..u32::try_from(self.ends.len()).unwrap_or(u32::MAX) {
            if !gone.contains(&Name::of(n)) {
                text.push_str(self.get(Name::of(n)));
            }
            ends.push(end_of(&text));
        }
        (self.text, self.ends) = (text, ends);
        let order = std::mem::take(&mut self.order);
        self.sort(order.into_iter().filter(|&n| !gone.contains(&Name(n))).collect());
    }

    fn sort(&mut self, order: Vec<Number>) {
        let mut keyed: Vec<_> = order.into_iter().map(|n| (beginning(self.get(Name(n))), n)).collect();
        keyed.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| self.get(Name(a.1)).cmp(self.get(Name(b.1)))));
        self.order = keyed.into_iter().map(|(_, n)| n).collect();
    }
}

/// The first bytes of a text as a number: where these differ, they are in the order of the texts.
fn beginning(text: &str) -> u64 {
    let mut bytes = [0; 8];
    let begin = text.as_bytes();
    let begin = &begin[..begin.len().min(bytes.len())];
    bytes[..begin.len()].copy_from_slice(begin);
    u64::from_be_bytes(bytes)
}

fn end_of(text: &str) -> Number {
    Number::new(u32::try_from(text.len()).unwrap_or(u32::MAX))
}

/// The strings of a file while it is read.
#[derive(Default)]
pub(crate) struct Interner<'a> {
    names: Names,
    seen: HashMap<&'a str, Name, FixedState>,
    /// Strings that do not stand in the file as they are.
    made: HashMap<String, Name, FixedState>,
}

impl<'a> Interner<'a> {
    /// A string of the source.
    pub fn name(&mut self, text: &'a str) -> Name {
        if let Some(&name) = self.seen.get(text) {
            return name;
        }
        let name = match self.made.get(text) {
            Some(&name) => name,
            None => self.push(text),
        };
        self.seen.insert(text, name);
        name
    }

    /// A string that was made.
    pub fn made(&mut self, text: &str) -> Name {
        if let Some(&name) = self.seen.get(text).or_else(|| self.made.get(text)) {
            return name;
        }
        let name = self.push(text);
        self.made.insert(text.to_owned(), name);
        name
    }

    /// A string that stands for itself: no other will be the same, unless it is one word.
    pub fn text(&mut self, text: &str) -> Name {
        if text.contains([' ', '\n']) { self.push(text) } else { self.made(text) }
    }

    pub fn get(&self, name: Name) -> &str {
        self.names.get(name)
    }

    pub fn finish(self) -> Names {
        let mut names = self.names;
        names.text.shrink_to_fit();
        names.ends.shrink_to_fit();
        // A string in both maps was made first.
        let made = self.made.into_values().map(|name| name.0);
        let mut order: Vec<Number> = self.seen.into_values().map(|name| name.0).chain(made).collect();
        order.sort_unstable();
        order.dedup();
        order.shrink_to_fit();
        names.sort(order);
        names
    }

    fn push(&mut self, text: &str) -> Name {
        self.names.text.push_str(text);
        self.names.ends.push(end_of(&self.names.text));
        Name::of(u32::try_from(self.names.ends.len() - 1).unwrap_or(u32::MAX))
    }
}
