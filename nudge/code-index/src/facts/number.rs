//! Stores numbers in three bytes to save memory.

use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};

/// Converts a count to `u32`: an offset, a line, a number of things in a file, or a number of files.
///
/// # Panics
/// Panics if `count` is 2^32 or more. A file of `MAX_FILE_BYTES` and a project of `MAX_FILES` have far smaller counts.
pub(crate) fn to_number(count: usize) -> u32 {
    u32::try_from(count).expect("a file has less than 4 GiB, and a project less files")
}

/// The three bytes that stand for no number.
const MAX: u32 = 0xFF_FFFF;

/// A number below 2^24, or none, which reads as [`u32::MAX`]. A file has at most 512 KiB, so its offsets, lines,
/// strings and nodes have smaller numbers. The index stores many such numbers, and three bytes instead of four save
/// memory.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "u32", into = "u32")]
pub(crate) struct CompactNumber([u8; 3]);

impl CompactNumber {
    /// Stands for no number.
    pub const NONE: Self = Self([u8::MAX; 3]);

    pub const fn new(number: u32) -> Self {
        match number.to_be_bytes() {
            [0, a, b, c] => Self([a, b, c]),
            _ => Self::NONE,
        }
    }

    pub const fn get(self) -> u32 {
        let [a, b, c] = self.0;
        let number = u32::from_be_bytes([0, a, b, c]);
        if number == MAX { u32::MAX } else { number }
    }
}

/// Hashes the value as one number, because hashing three single bytes takes several times as long.
impl Hash for CompactNumber {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u32(self.get());
    }
}

impl From<u32> for CompactNumber {
    fn from(number: u32) -> Self {
        Self::new(number)
    }
}

impl From<CompactNumber> for u32 {
    fn from(number: CompactNumber) -> Self {
        number.get()
    }
}

impl PartialOrd for CompactNumber {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for CompactNumber {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.get().cmp(&other.get())
    }
}

impl std::fmt::Debug for CompactNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.get().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_none() {
        for number in [0, 1, 255, 256, 65_535, 65_536, 0xFF_FF_FE, u32::MAX] {
            assert_eq!(CompactNumber::new(number).get(), number);
        }
        assert_eq!([0xFF_FF_FF, 0x0100_0000].map(|number| CompactNumber::new(number).get()), [u32::MAX; 2]);
        let mut sorted = [u32::MAX, 65_536, 3, 256].map(CompactNumber::new);
        sorted.sort();
        assert_eq!(sorted.map(CompactNumber::get), [3, 256, 65_536, u32::MAX]);
    }
}
