//! Encodes vectors as bytes for a database, and keeps them in memory, where a search compares all of them.
//!
//! A search compares every vector, so a filter costs no time and hides no result. Another model needs no other table.
//!
//! In memory a number has 16 bits, which takes half the bytes and a third of the time of `f32`. A search of 10,000
//! vectors with 384 numbers takes a third of a millisecond. The error of a cosine is at most the square root of the
//! number of dimensions, divided by 32,767: 0.0006 for 384 dimensions. Usually the error is 0.00001.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use wide::{i16x8, i32x4};

/// The integer that stands for 1.0 in memory. With this scale, the products of two vectors of length 1 sum to less than
/// 2^31, whatever their signs are.
const ONE: f32 = i16::MAX as f32;
/// Number of vectors of 384 numbers (24 KiB together) that fit into the fastest cache of a processor.
const NEAR_ROWS: usize = 32;
/// Largest accepted square of the length of a vector. The length must be 1, apart from rounding.
const MAX_SQUARE: f32 = 1.01;

/// Scales a vector to length 1. Returns `None` for a vector of length 0, and for one with a number that is NaN or
/// infinite.
///
/// ```
/// use nudge_storage::vectors::unit;
///
/// assert_eq!(unit(&[3.0, 4.0]), Some(vec![0.6, 0.8]));
/// assert_eq!(unit(&[0.0, 0.0]), None);
/// assert_eq!(unit(&[f32::NAN, 1.0]), None);
/// ```
pub fn unit(vector: &[f32]) -> Option<Vec<f32>> {
    let length = vector.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>().sqrt();
    // The cast loses no precision that matters, because vectors are stored as `f32`.
    #[allow(clippy::cast_possible_truncation)]
    let scaled = || vector.iter().map(|x| (f64::from(*x) / length) as f32).collect();
    (length.is_normal()).then(scaled)
}

/// Encodes a vector as bytes: each number as `f32`, little-endian.
///
/// ```
/// use nudge_storage::vectors::{decode, encode};
///
/// let bytes = encode(&[0.6, 0.8]);
/// assert_eq!(bytes.len(), 8);
/// assert_eq!(decode(&bytes), Some(vec![0.6, 0.8]));
/// assert_eq!(decode(&bytes[1..]), None);
/// ```
pub fn encode(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|x| x.to_le_bytes()).collect()
}

/// Decodes bytes that [`encode`] made. Returns `None` for other bytes, for an empty vector, and for a number that is
/// NaN or infinite.
pub fn decode(bytes: &[u8]) -> Option<Vec<f32>> {
    let (numbers, rest) = bytes.as_chunks::<4>();
    let vector: Vec<_> = numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    (rest.is_empty() && !vector.is_empty() && vector.iter().all(|x| x.is_finite())).then_some(vector)
}

/// The vectors of one model. A text has one or more parts, and each part has a vector.
///
/// ```
/// use nudge_storage::vectors::VectorIndex;
///
/// let mut vectors = VectorIndex::new("tiny@1", 2);
/// vectors.upsert(7, 0, &[1.0, 0.0]);
/// vectors.upsert(7, 1, &[0.0, 1.0]);
/// vectors.upsert(8, 0, &[0.6, 0.8]);
/// // Of each text its best part counts.
/// let near = vectors.top(&[0.0, 1.0], 10, |_| true);
/// assert_eq!((near[0], near[1].0), ((7, 1.0), 8));
/// assert!((near[1].1 - 0.8).abs() < 0.0001);
/// assert_eq!(vectors.top(&[0.0, 1.0], 1, |id| id != 7), near[1..]);
/// vectors.remove(7);
/// assert_eq!(vectors.len(), 1);
/// ```
#[derive(Debug, Clone)]
pub struct VectorIndex {
    model: Box<str>,
    dims: usize,
    /// The id of the text and the number of the part, for each vector.
    owners: Vec<(i64, u32)>,
    /// The numbers of all vectors, one vector after another.
    numbers: Vec<i16>,
    /// The positions of each text's vectors in `owners`.
    rows: HashMap<i64, Vec<usize>, RandomState>,
}

impl VectorIndex {
    /// Makes an empty index for one model with this number of dimensions. Vectors of different models cannot be
    /// compared.
    pub fn new(model: &str, dims: usize) -> Self {
        let (owners, numbers, rows) = (Vec::new(), Vec::new(), HashMap::default());
        Self { model: model.into(), dims, owners, numbers, rows }
    }

    /// Returns the name of the model.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Returns the number of vectors.
    pub fn len(&self) -> usize {
        self.owners.len()
    }

    /// Returns true when there are no vectors.
    pub fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }

    /// Returns the number of texts that have a vector.
    pub fn count_texts(&self) -> usize {
        self.rows.len()
    }

    /// Stores the vector of a part of a text, and replaces an earlier one. The vector must have length 1. Returns false
    /// and stores nothing if the vector has other dimensions, is longer, or contains a NaN.
    pub fn upsert(&mut self, id: i64, part: u32, vector: &[f32]) -> bool {
        let Some(vector) = self.round_vector(vector) else { return false };
        let rows = self.rows.entry(id).or_default();
        if let Some(row) = rows.iter().copied().find(|row| self.owners[*row].1 == part) {
            self.numbers[row * self.dims..][..self.dims].copy_from_slice(&vector);
        } else {
            rows.push(self.owners.len());
            self.owners.push((id, part));
            self.numbers.extend_from_slice(&vector);
        }
        true
    }

    /// Removes all vectors of a text.
    pub fn remove(&mut self, id: i64) {
        let Some(mut rows) = self.rows.remove(&id) else { return };
        // Removes the last row first: the last row of the index takes the place of the removed one, and must not be a
        // row that is removed later.
        rows.sort_unstable();
        for row in rows.into_iter().rev() {
            let last = self.owners.len() - 1;
            self.owners.swap_remove(row);
            self.numbers.copy_within(last * self.dims.., row * self.dims);
            self.numbers.truncate(last * self.dims);
            if row < last
                && let Some(moved) = self.rows.get_mut(&self.owners[row].0)
            {
                moved.iter_mut().filter(|slot| **slot == last).for_each(|slot| *slot = row);
            }
        }
    }

    /// Returns the `k` texts that are nearest to a vector of length 1, best first. `keep` filters the texts
    /// ([`VectorCosines::top`]).
    pub fn top(&self, vector: &[f32], k: usize, keep: impl Fn(i64) -> bool) -> Vec<(i64, f32)> {
        self.compute_cosines(vector).top(k, keep)
    }

    /// Compares a vector of length 1 with all vectors. The result is empty if the vector has other dimensions.
    pub fn compute_cosines(&self, vector: &[f32]) -> VectorCosines<'_> {
        let compare = |asked: Vec<i16>| {
            self.numbers.chunks_exact(self.dims.max(1)).map(|row| compute_cosine(row, &asked)).collect()
        };
        VectorCosines { index: self, rows: self.round_vector(vector).map_or_else(Vec::new, compare) }
    }

    /// Calls `take` once for each pair of texts that have vectors whose cosine is at least `least`. The exact cosine
    /// may be a little smaller, because the numbers have 16 bits. A caller that needs an exact limit must compare
    /// again.
    ///
    /// ```
    /// use nudge_storage::vectors::VectorIndex;
    ///
    /// let mut vectors = VectorIndex::new("tiny@1", 2);
    /// for (id, vector) in [(7, [1.0, 0.0]), (8, [0.0, 1.0]), (9, [0.6, 0.8])] {
    ///     vectors.upsert(id, 0, &vector);
    /// }
    /// let mut pairs = Vec::new();
    /// vectors.pairs(0.7, |id, other| pairs.push([id, other]));
    /// assert_eq!(pairs, [[8, 9]]);
    /// ```
    pub fn pairs(&self, least: f32, mut take: impl FnMut(i64, i64)) {
        // Lowers the limit by twice the largest error of a cosine, because `f32` rounds as well.
        #[allow(clippy::cast_precision_loss)]
        let least = least - 2.0 * (self.dims as f32).sqrt() / ONE;
        let rows: Vec<_> = self.numbers.chunks_exact(self.dims.max(1)).zip(&self.owners).collect();
        // Compares a few vectors at a time with all later ones, so that the few stay in the processor's cache.
        for begin in (0..rows.len()).step_by(NEAR_ROWS) {
            for (index, (other, (other_id, _))) in rows.iter().enumerate().skip(begin + 1) {
                for (vector, (id, _)) in &rows[begin..index.min(begin + NEAR_ROWS)] {
                    if compute_cosine(vector, other) >= least {
                        take(*id, *other_id);
                    }
                }
            }
        }
    }

    /// Rounds a vector to 16-bit numbers. Returns `None` for a vector that the index does not accept.
    fn round_vector(&self, vector: &[f32]) -> Option<Vec<i16>> {
        let square: f32 = vector.iter().map(|x| x * x).sum();
        // With a NaN, the square is a NaN and the comparison is false. The cast cuts off fractions, and turns a number
        // that is too large into the largest 16-bit number.
        #[allow(clippy::cast_possible_truncation)]
        let rounded = || vector.iter().map(|x| (x * ONE + 0.5_f32.copysign(*x)) as i16).collect();
        (vector.len() == self.dims && square <= MAX_SQUARE).then(rounded)
    }
}

/// Returns the cosine of two vectors of length 1. The loop computes eight products at a time in four groups, because a
/// plain loop over 16-bit numbers takes twice as long.
fn compute_cosine(a: &[i16], b: &[i16]) -> f32 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<32>(), b.as_chunks::<32>());
    let mut sums = i32x4::ZERO;
    for (a, b) in a.iter().zip(b) {
        for (a, b) in a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0) {
            sums += i16x8::new(*a).dot(i16x8::new(*b));
        }
    }
    let rest: i32 = a_rest.iter().zip(b_rest).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum();
    // The cast loses some of the 31 bits, but less than the 16-bit numbers have lost already.
    #[allow(clippy::cast_precision_loss)]
    let sum = (sums.reduce_add() + rest) as f32;
    sum / (ONE * ONE)
}

/// The cosines between a vector and all vectors of a [`VectorIndex`].
#[derive(Debug, Clone)]
pub struct VectorCosines<'a> {
    index: &'a VectorIndex,
    rows: Vec<f32>,
}

impl VectorCosines<'_> {
    /// Returns the `k` texts with the highest cosines, best first. If two cosines are equal, the text with the higher
    /// id, which is newer, comes first. `top` calls `keep` only for texts that would be in the result.
    pub fn top(&self, k: usize, keep: impl Fn(i64) -> bool) -> Vec<(i64, f32)> {
        if k == 0 {
            return Vec::new();
        }
        let mut best: Vec<(i64, f32)> = Vec::with_capacity(k.min(self.rows.len()) + 1);
        for (cosine, (id, _)) in self.rows.iter().zip(&self.index.owners) {
            let found = (*id, *cosine);
            // A better part of a text replaces the text's entry in the list. A text that `k` better texts have pushed
            // out cannot return.
            if best.len() == k && !is_better(found, best[k - 1]) {
                continue;
            }
            if let Some(known) = best.iter().position(|(known, _)| known == id) {
                if !is_better(found, best[known]) {
                    continue;
                }
                best.remove(known);
            } else if !keep(*id) {
                continue;
            }
            let place = best.partition_point(|other| is_better(*other, found));
            best.insert(place, found);
            best.truncate(k);
        }
        best
    }

    /// Returns the cosine of a text's best part; `None` for a text without vectors.
    pub fn get_best(&self, id: i64) -> Option<f32> {
        let rows = self.index.rows.get(&id)?;
        rows.iter().filter_map(|row| self.rows.get(*row).copied()).max_by(f32::total_cmp)
    }
}

fn is_better(a: (i64, f32), b: (i64, f32)) -> bool {
    b.1.total_cmp(&a.1).then(b.0.cmp(&a.0)).is_lt()
}
