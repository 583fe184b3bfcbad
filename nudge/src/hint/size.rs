//! Computes the size of a hint, in an export and in memory.

use std::io;

use nudge_core::held::{allocation_bytes, map_bytes};

use super::{Hint, HintInExport, HintValue, PathValue, RareFields, TemplateValue};

/// The bytes that the store needs for each hint beside the hint itself: a row and a slot of the map, whose tables grow
/// by doubling, and the counts of an `Arc`.
const PLACE: usize = allocation_bytes(size_of::<Hint>() + 16) + 320;
/// The bytes that the store needs for each tag of a hint: the text in its own table, and the list of hints with the
/// tag.
const TAG: usize = 160;

impl Hint {
    /// Sets `bytes`, the size of the hint in an export, and `held`, its size in memory. The limits of the store's size
    /// use both.
    pub(crate) fn measure(&mut self) {
        struct ByteCounter(usize);
        impl io::Write for ByteCounter {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0 += bytes.len();
                Ok(bytes.len())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut count = ByteCounter(self.key.len() + 4);
        // The counter accepts every write, so this cannot fail.
        let _ = serde_json::to_writer(&mut count, &HintInExport(self));
        self.bytes = u32::try_from(count.0).expect("a hint has less than 4 GiB");
        self.held = u32::try_from(self.held_bytes()).expect("a hint has less than 4 GiB");
    }

    fn held_bytes(&self) -> usize {
        let tags = self.tags.iter().map(|tag| TAG + allocation_bytes(16 + tag.len())).sum::<usize>();
        let text = |text: &Option<Box<str>>| text.as_ref().map_or(0, |text| allocation_bytes(text.len()));
        let rare =
            self.rare.as_ref().map_or(0, |rare| allocation_bytes(size_of::<RareFields>()) + text(&rare.added_by));
        let ttl = if self.has_expiry() {
            allocation_bytes(size_of::<(i64, Box<str>)>()) + allocation_bytes(self.ttl.as_str().len())
        } else {
            0
        };
        let texts = allocation_bytes(self.key.len()) + text(&self.reason) + rare + ttl;
        // All hints without a scope share the empty scope.
        let scope = if self.scope.is_empty() { 0 } else { self.scope.held_bytes() };
        PLACE + texts + allocation_bytes(size_of_val(&*self.tags)) + tags + self.value.heap_bytes() + scope
    }
}

impl HintValue {
    /// Returns the bytes that the value takes on the heap.
    fn heap_bytes(&self) -> usize {
        match self {
            Self::Text(text) => allocation_bytes(text.len()),
            Self::Command(command) => allocation_bytes(command.cmd.len()),
            Self::Path(path) => {
                allocation_bytes(size_of::<PathValue>())
                    + allocation_bytes(path.os.capacity())
                    + allocation_bytes(path.abs.capacity())
            }
            Self::Template(template) => {
                let pair = |(name, value): (&String, &String)| {
                    allocation_bytes(name.capacity()) + allocation_bytes(value.capacity())
                };
                allocation_bytes(size_of::<TemplateValue>())
                    + allocation_bytes(template.body.capacity())
                    + map_bytes(template.defaults.len(), 2 * size_of::<String>())
                    + template.defaults.iter().map(pair).sum::<usize>()
            }
            Self::Json(json) => allocation_bytes(json.get().len()),
        }
    }
}
