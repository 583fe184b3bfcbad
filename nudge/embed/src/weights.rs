//! The weights of a model, from the bytes of its `model.safetensors`.

use std::ops::Range;

use safetensors::tensor::{Dtype, SafeTensors, TensorView};

use crate::{Precision, Result, broken};

/// The tensors of a file, by name. Some files have all names under `bert.`.
pub struct Weights<'a> {
    tensors: SafeTensors<'a>,
    prefix: &'static str,
}

impl<'a> Weights<'a> {
    /// Reads the table of tensors; their numbers stay where they are.
    ///
    /// # Errors
    /// `E_INVALID` for bytes that are no such file.
    pub fn read(bytes: &'a [u8]) -> Result<Self> {
        let tensors = SafeTensors::deserialize(bytes)
            .map_err(|error| broken(format!("has a model.safetensors that cannot be read ({error})")))?;
        let word = "embeddings.word_embeddings.weight";
        let prefix = if tensors.tensor(word).is_err() { "bert." } else { "" };
        Ok(Self { tensors, prefix })
    }

    /// Returns a tensor of this shape as numbers.
    ///
    /// # Errors
    /// `E_INVALID` when it is missing, has another shape or another kind of numbers, or one that is not finite.
    pub fn floats(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        let tensor = self.tensor(name, shape)?;
        let mut values = Vec::with_capacity(shape.iter().product());
        append(&mut values, tensor.dtype(), tensor.data());
        all_finite(name, &values)?;
        Ok(values)
    }

    /// Returns the dense maps of these names, side by side, with whole numbers for weights.
    ///
    /// # Errors
    /// As [`floats`](Self::floats).
    pub fn dense(&self, names: &[&str], inputs: usize, outputs: usize) -> Result<Dense> {
        let (mut rows, mut bias) = (Vec::new(), Vec::new());
        for name in names {
            rows.extend(self.floats(&format!("{name}.weight"), &[outputs, inputs])?);
            bias.extend(self.floats(&format!("{name}.bias"), &[outputs])?);
        }
        Ok(Dense { inputs, outputs: outputs * names.len(), rows, bias })
    }

    /// Returns a table of this shape: as it is, or rounded row by row, so that a large one is in memory once.
    ///
    /// # Errors
    /// As [`floats`](Self::floats).
    pub fn rows(&self, name: &str, [rows, width]: [usize; 2], precision: Precision) -> Result<Rows> {
        if precision == Precision::Full {
            return Ok(Rows::Full(self.floats(name, &[rows, width])?));
        }
        let tensor = self.tensor(name, &[rows, width])?;
        let mut rounded = Rounded::default();
        rounded.values.reserve_exact(rows * width);
        let mut row = Vec::with_capacity(width);
        for bytes in tensor.data().chunks_exact(tensor.data().len() / rows) {
            row.clear();
            append(&mut row, tensor.dtype(), bytes);
            all_finite(name, &row)?;
            rounded.push(&row, 127.0);
        }
        Ok(Rows::Rounded(rounded))
    }

    fn tensor(&self, name: &str, shape: &[usize]) -> Result<TensorView<'a>> {
        let tensor = self.tensors.tensor(&format!("{}{name}", self.prefix));
        let tensor = tensor.map_err(|_| broken(format!("has no weights of the name {name}")))?;
        if tensor.shape() != shape {
            let there = tensor.shape();
            return Err(broken(format!("has weights {name} of shape {there:?}, and its config.json wants {shape:?}")));
        }
        if ![Dtype::F32, Dtype::F16, Dtype::BF16].contains(&tensor.dtype()) {
            return Err(broken(format!(
                "has weights {name} that are {:?}; F32, F16 and BF16 can be read",
                tensor.dtype()
            )));
        }
        Ok(tensor)
    }
}

fn all_finite(name: &str, values: &[f32]) -> Result<()> {
    if values.iter().all(|value| value.is_finite()) {
        Ok(())
    } else {
        Err(broken(format!("has a number in {name} that is not finite")))
    }
}

/// Appends numbers of a kind that [`Weights::tensor`] lets through.
fn append(values: &mut Vec<f32>, kind: Dtype, data: &[u8]) {
    let halves = || data.as_chunks::<2>().0.iter().map(|&bytes| u16::from_le_bytes(bytes));
    match kind {
        Dtype::F16 => values.extend(halves().map(half)),
        Dtype::BF16 => values.extend(halves().map(|bits| f32::from_bits(u32::from(bits) << 16))),
        _ => values.extend(data.as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes))),
    }
}

/// A number of 16 bits (IEEE 754 binary16).
fn half(bits: u16) -> f32 {
    let sign = u32::from(bits >> 15) << 31;
    let fraction = u32::from(bits & 0x3ff);
    let magnitude = match u32::from(bits >> 10) & 0x1f {
        // Too small to have a leading one: multiples of 2^-24.
        0 => (f32::from(bits & 0x3ff) / 16_777_216.0).to_bits(),
        0x1f => 0x7f80_0000 | fraction << 13,
        exponent => (exponent + 112) << 23 | fraction << 13,
    };
    f32::from_bits(sign | magnitude)
}

/// A dense map as it is stored: a row of weights for each output.
pub struct Dense {
    pub inputs: usize,
    pub outputs: usize,
    pub rows: Vec<f32>,
    pub bias: Vec<f32>,
}

impl Dense {
    /// Multiplies what some outputs get.
    pub fn scale(&mut self, outputs: Range<usize>, by: f32) {
        self.rows[outputs.start * self.inputs..outputs.end * self.inputs].iter_mut().for_each(|weight| *weight *= by);
        self.bias[outputs].iter_mut().for_each(|bias| *bias *= by);
    }

    /// Returns numbers that lie as [`rows`](Self::rows) does with a column for each output.
    pub fn columns<T: Copy + Default>(&self, rows: &[T]) -> Vec<T> {
        let mut columns = vec![T::default(); rows.len()];
        for (output, row) in rows.chunks_exact(self.inputs).enumerate() {
            for (input, &value) in row.iter().enumerate() {
                columns[input * self.outputs + output] = value;
            }
        }
        columns
    }
}

/// A table of rows of one width.
pub enum Rows {
    Full(Vec<f32>),
    Rounded(Rounded),
}

impl Rows {
    /// Adds row `at` to `sum`, which is as long as a row.
    pub fn add(&self, at: usize, sum: &mut [f32]) {
        let span = at * sum.len()..(at + 1) * sum.len();
        match self {
            Self::Full(values) => sum.iter_mut().zip(&values[span]).for_each(|(sum, value)| *sum += value),
            Self::Rounded(rows) => {
                let scale = rows.scales[at];
                sum.iter_mut().zip(&rows.values[span]).for_each(|(sum, &value)| *sum += f32::from(value) * scale);
            }
        }
    }
}

/// Rows in whole numbers of 8 bits, each with a scale of its own.
#[derive(Default)]
pub struct Rounded {
    pub values: Vec<i8>,
    pub scales: Vec<f32>,
}

impl Rounded {
    /// Rounds a row and appends it; its largest number becomes `largest`, 127 at most.
    pub fn push(&mut self, row: &[f32], largest: f32) {
        let most = row.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
        // A row of numbers that are all but nothing is nothing: their scale would not be a normal number.
        let scale = if most > 1e-30 { most / largest } else { 1.0 };
        self.scales.push(scale);
        let inverse = 1.0 / scale;
        // Not `round`, which is a call of a function for each of millions of numbers.
        #[allow(clippy::cast_possible_truncation, reason = "it is `largest` and a half at most")]
        self.values.extend(row.iter().map(|value| (value * inverse + 0.5_f32.copysign(*value)) as i8));
    }
}
