//! Reads the weights of a model from `model.safetensors` in parts, so that the whole file is never in memory beside the
//! result.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::ops::Range;

use safetensors::tensor::{Dtype, Metadata, TensorInfo};

use crate::files::{WEIGHTS, unreadable_fault};
use crate::{Precision, Result, broken_model};

/// Largest size of the table of tensors, in bytes. A table of a thousand tensors has 100 KB.
const MAX_TABLE_BYTES: u64 = 16 << 20;
/// Number of bytes of a tensor that are read in one step.
const CHUNK_BYTES: usize = 1 << 20;

/// The tensors of a file, by name. In some files, `bert.` precedes every name.
pub struct WeightTensors<'a> {
    file: &'a File,
    /// The offset in the file at which the table ends and the tensors begin.
    begin: u64,
    table: Metadata,
    prefix: &'static str,
}

impl<'a> WeightTensors<'a> {
    /// Reads the table of tensors: 8 bytes with its length, then a JSON object.
    ///
    /// # Errors
    /// `E_INVALID` when the file does not have this format, or when its length does not fit its table.
    pub fn read(mut file: &'a File) -> Result<Self> {
        let unreadable = |error| unreadable_fault(WEIGHTS, &error);
        let mut length = [0; 8];
        file.seek(SeekFrom::Start(0)).and_then(|_| file.read_exact(&mut length)).map_err(unreadable)?;
        let length = u64::from_le_bytes(length);
        if length > MAX_TABLE_BYTES {
            return Err(broken_model(format!("has a {WEIGHTS} that cannot be read (its table is too long)")));
        }
        let mut table = Vec::new();
        file.take(length).read_to_end(&mut table).map_err(unreadable)?;
        let table: Metadata = serde_json::from_slice(&table)
            .map_err(|error| broken_model(format!("has a {WEIGHTS} that cannot be read ({error})")))?;
        let begin = 8 + length;
        if file.metadata().map_err(unreadable)?.len() != begin + table.data_len() as u64 {
            return Err(broken_model(format!(
                "has a {WEIGHTS} that cannot be read (it is not as long as its table says)"
            )));
        }
        let prefix = if table.info("embeddings.word_embeddings.weight").is_none() { "bert." } else { "" };
        Ok(Self { file, begin, table, prefix })
    }

    /// Returns the numbers of the tensor with this name and shape.
    ///
    /// # Errors
    /// `E_INVALID` when the tensor is missing, has another shape or type, or contains a number that is not finite.
    pub fn read_floats(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        let mut values = Vec::with_capacity(shape.iter().product());
        self.read_parts(name, shape, |part| values.extend_from_slice(part))?;
        Ok(values)
    }

    /// Returns the dense maps with these names as one map, whose outputs are those of all maps in order.
    ///
    /// # Errors
    /// The errors of [`read_floats`](Self::read_floats).
    pub fn read_dense(&self, names: &[&str], inputs: usize, outputs: usize) -> Result<DenseMap> {
        let (mut rows, mut bias) = (Vec::new(), Vec::new());
        for name in names {
            rows.extend(self.read_floats(&format!("{name}.weight"), &[outputs, inputs])?);
            bias.extend(self.read_floats(&format!("{name}.bias"), &[outputs])?);
        }
        Ok(DenseMap { inputs, outputs: outputs * names.len(), rows, bias })
    }

    /// Returns a table with this name and shape, in full precision or rounded. It rounds row by row, so that it never
    /// holds a second copy of a large table.
    ///
    /// # Errors
    /// The errors of [`read_floats`](Self::read_floats).
    pub fn read_rows(&self, name: &str, [rows, width]: [usize; 2], precision: Precision) -> Result<RowTable> {
        if precision == Precision::Full {
            return Ok(RowTable::Full(self.read_floats(name, &[rows, width])?));
        }
        let mut rounded = RoundedRows::default();
        rounded.values.reserve_exact(rows * width);
        self.read_parts(name, &[rows, width], |part| {
            part.chunks_exact(width).for_each(|row| rounded.push_row(row, 127.0));
        })?;
        Ok(RowTable::Rounded(rounded))
    }

    /// Passes the numbers of a tensor to `take` in parts. Each part has whole rows.
    fn read_parts(&self, name: &str, shape: &[usize], mut take: impl FnMut(&[f32])) -> Result<()> {
        let tensor = self.find_tensor(name, shape)?;
        let (begin, end) = tensor.data_offsets;
        let row = (end - begin) / shape[0];
        let mut left = end - begin;
        let mut bytes = vec![0; (CHUNK_BYTES / row).max(1) * row];
        let mut values = Vec::with_capacity(bytes.len() / 2);
        let mut file = self.file;
        file.seek(SeekFrom::Start(self.begin + begin as u64)).map_err(|error| unreadable_fault(WEIGHTS, &error))?;
        while left > 0 {
            let part = bytes.len().min(left);
            file.read_exact(&mut bytes[..part]).map_err(|error| unreadable_fault(WEIGHTS, &error))?;
            left -= part;
            values.clear();
            append_floats(&mut values, tensor.dtype, &bytes[..part]);
            if !values.iter().all(|value| value.is_finite()) {
                return Err(broken_model(format!("has a number in {name} that is not finite")));
            }
            take(&values);
        }
        Ok(())
    }

    fn find_tensor(&self, name: &str, shape: &[usize]) -> Result<&TensorInfo> {
        let tensor = self.table.info(&format!("{}{name}", self.prefix));
        let tensor = tensor.ok_or_else(|| broken_model(format!("has no weights of the name {name}")))?;
        if tensor.shape != shape {
            let there = &tensor.shape;
            return Err(broken_model(format!(
                "has weights {name} of shape {there:?}, and its config.json wants {shape:?}"
            )));
        }
        if ![Dtype::F32, Dtype::F16, Dtype::BF16].contains(&tensor.dtype) {
            let kind = tensor.dtype;
            return Err(broken_model(format!("has weights {name} that are {kind:?}; F32, F16 and BF16 can be read")));
        }
        Ok(tensor)
    }
}

/// Appends numbers of one of the types that [`WeightTensors::find_tensor`] accepts.
fn append_floats(values: &mut Vec<f32>, kind: Dtype, data: &[u8]) {
    let halves = || data.as_chunks::<2>().0.iter().map(|&bytes| u16::from_le_bytes(bytes));
    match kind {
        Dtype::F16 => values.extend(halves().map(half_to_f32)),
        Dtype::BF16 => values.extend(halves().map(|bits| f32::from_bits(u32::from(bits) << 16))),
        _ => values.extend(data.as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes))),
    }
}

/// Converts a 16-bit floating point number (IEEE 754 binary16) to `f32`.
fn half_to_f32(bits: u16) -> f32 {
    let sign = u32::from(bits >> 15) << 31;
    let fraction = u32::from(bits & 0x3ff);
    let magnitude = match u32::from(bits >> 10) & 0x1f {
        // A subnormal number is a multiple of 2^-24, without the leading one of other numbers.
        0 => (f32::from(bits & 0x3ff) / 16_777_216.0).to_bits(),
        0x1f => 0x7f80_0000 | fraction << 13,
        exponent => (exponent + 112) << 23 | fraction << 13,
    };
    f32::from_bits(sign | magnitude)
}

/// A dense map. As in the file, `rows` has a row of weights for each output.
pub struct DenseMap {
    pub inputs: usize,
    pub outputs: usize,
    pub rows: Vec<f32>,
    pub bias: Vec<f32>,
}

impl DenseMap {
    /// Multiplies the weights and the bias of some outputs by a factor.
    pub fn scale_outputs(&mut self, outputs: Range<usize>, factor: f32) {
        self.rows[outputs.start * self.inputs..outputs.end * self.inputs]
            .iter_mut()
            .for_each(|weight| *weight *= factor);
        self.bias[outputs].iter_mut().for_each(|bias| *bias *= factor);
    }

    /// Transposes numbers: `rows` has a row for each output, and the result has a column for each output.
    pub fn to_columns<T: Copy + Default>(&self, rows: &[T]) -> Vec<T> {
        let mut columns = vec![T::default(); rows.len()];
        for (output, row) in rows.chunks_exact(self.inputs).enumerate() {
            for (input, &value) in row.iter().enumerate() {
                columns[input * self.outputs + output] = value;
            }
        }
        columns
    }
}

/// A table whose rows have the same width, in full precision or rounded.
pub enum RowTable {
    Full(Vec<f32>),
    Rounded(RoundedRows),
}

impl RowTable {
    /// Adds a row of the table to `sum`, which must be as long as a row.
    pub fn add_row(&self, row: usize, sum: &mut [f32]) {
        let span = row * sum.len()..(row + 1) * sum.len();
        match self {
            Self::Full(values) => sum.iter_mut().zip(&values[span]).for_each(|(sum, value)| *sum += value),
            Self::Rounded(rows) => {
                let scale = rows.scales[row];
                sum.iter_mut().zip(&rows.values[span]).for_each(|(sum, &value)| *sum += f32::from(value) * scale);
            }
        }
    }
}

/// Rows of 8-bit integers, each with its own scale.
#[derive(Default)]
pub struct RoundedRows {
    pub values: Vec<i8>,
    pub scales: Vec<f32>,
}

impl RoundedRows {
    /// Rounds a row and appends it. The largest number of the row becomes `largest`, which must be at most 127.
    pub fn push_row(&mut self, row: &[f32], largest: f32) {
        let most = row.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
        // Rounds a row of numbers near zero to zero, because its scale would be too small for a normal float.
        let scale = if most > 1e-30 { most / largest } else { 1.0 };
        self.scales.push(scale);
        let inverse = 1.0 / scale;
        // Avoids `round`, which would be a function call for each of millions of numbers.
        #[allow(clippy::cast_possible_truncation, reason = "it is `largest` and a half at most")]
        self.values.extend(row.iter().map(|value| (value * inverse + 0.5_f32.copysign(*value)) as i8));
    }
}
