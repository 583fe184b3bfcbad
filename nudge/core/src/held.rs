//! Estimates the memory that values take, in bytes, by the rules of common allocators. An estimate is never too low.

/// Returns the bytes that an allocation of `bytes` takes with its header: a multiple of 16, at least 32. Zero bytes
/// need no allocation.
///
/// ```
/// use nudge_core::held::allocation_bytes;
/// assert_eq!((allocation_bytes(0), allocation_bytes(1), allocation_bytes(24), allocation_bytes(25)), (0, 32, 32, 48));
/// ```
pub const fn allocation_bytes(bytes: usize) -> usize {
    if bytes == 0 {
        return 0;
    }
    let with_header = (bytes + 8).next_multiple_of(16);
    if with_header < 32 { 32 } else { with_header }
}

/// Returns the bytes that the nodes of a `BTreeMap` take, for `len` entries of `entry` bytes. A node has room for
/// eleven entries, and half of the room may be free.
pub const fn map_bytes(len: usize, entry: usize) -> usize {
    if len == 0 { 0 } else { allocation_bytes(11 * entry + 112) + len * (2 * entry + 16) }
}
