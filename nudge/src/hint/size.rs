//! Computes a hint's size, in an export and in memory.

use std::io;

use nudge_core::held::{heap, map};

use super::{Exported, Hint, HintValue, PathValue, Rare, Template};

/// Bytes that the store needs for each hint besides it: a row and a place in the map, both of which grow by doubling,
/// and the counts of an `Arc`.
const PLACE: usize = heap(size_of::<Hint>() + 16) + 320;
/// Bytes that it needs for each tag of a hint: the text in a table of its own, and a list of the hints that have it.
const TAG: usize = 160;

impl Hint {
    /// Sets `bytes`, the length of the hint in an export, and `held`, its bytes in memory. The store's size limit
    /// counts both.
    pub(crate) fn measure(&mut self) {
        struct Count(usize);
        impl io::Write for Count {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0 += bytes.len();
                Ok(bytes.len())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut count = Count(self.key.len() + 4);
        // Writing to a counter cannot fail.
        let _ = serde_json::to_writer(&mut count, &Exported(self));
        self.bytes = u32::try_from(count.0).unwrap_or(u32::MAX);
        self.held = u32::try_from(self.held_bytes()).unwrap_or(u32::MAX);
    }

    fn held_bytes(&self) -> usize {
        let tags = self.tags.iter().map(|tag| TAG + heap(16 + tag.len())).sum::<usize>();
        let text = |text: &Option<Box<str>>| text.as_ref().map_or(0, |text| heap(text.len()));
        let rare = self.rare.as_ref().map_or(0, |rare| heap(size_of::<Rare>()) + text(&rare.added_by));
        let ttl = if self.expires() { heap(size_of::<(i64, Box<str>)>()) + heap(self.ttl.as_str().len()) } else { 0 };
        let texts = heap(self.key.len()) + text(&self.reason) + rare + ttl;
        // The empty scope is everybody's.
        let scope = if self.scope.is_empty() { 0 } else { self.scope.held_bytes() };
        PLACE + texts + heap(size_of_val(&*self.tags)) + tags + self.value.heap_bytes() + scope
    }
}

impl HintValue {
    /// Returns the bytes of memory that it takes beside its own size.
    fn heap_bytes(&self) -> usize {
        match self {
            Self::Text(text) => heap(text.len()),
            Self::Command(command) => heap(command.cmd.len()),
            Self::Path(path) => heap(size_of::<PathValue>()) + heap(path.os.capacity()) + heap(path.abs.capacity()),
            Self::Template(template) => {
                let pair = |(name, value): (&String, &String)| heap(name.capacity()) + heap(value.capacity());
                heap(size_of::<Template>())
                    + heap(template.body.capacity())
                    + map(template.defaults.len(), 2 * size_of::<String>())
                    + template.defaults.iter().map(pair).sum::<usize>()
            }
            Self::Json(json) => heap(json.get().len()),
        }
    }
}
