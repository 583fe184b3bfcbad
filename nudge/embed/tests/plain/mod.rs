//! Computes the network as in the BERT paper, with plain loops and 64-bit numbers. The tests compare Nudge's fast
//! network with this one.
#![allow(clippy::cast_precision_loss, reason = "some dozens")]

use crate::kit::{HEADS, HIDDEN, LAYERS, TOKENS, Tiny};

type Matrix = Vec<Vec<f64>>;

/// Returns the vector of a text: the mean of the vectors of its tokens, scaled to length 1.
pub fn vector(tiny: &Tiny, text: &str) -> Vec<f64> {
    let mut x: Matrix = Vec::new();
    for (position, token) in tokens(tiny, text).into_iter().take(TOKENS).enumerate() {
        let word = row(tiny, "embeddings.word_embeddings.weight", token);
        let place = row(tiny, "embeddings.position_embeddings.weight", position);
        let kind = row(tiny, "embeddings.token_type_embeddings.weight", 0);
        x.push((0..HIDDEN).map(|i| word[i] + place[i] + kind[i]).collect());
    }
    let mut x = layer_norm(tiny, "embeddings.LayerNorm", &x);
    for layer in 0..LAYERS {
        let layer = format!("encoder.layer.{layer}");
        let attended = linear(tiny, &format!("{layer}.attention.output.dense"), &attention(tiny, &layer, &x));
        x = layer_norm(tiny, &format!("{layer}.attention.output.LayerNorm"), &add(&attended, &x));
        let mut wide = linear(tiny, &format!("{layer}.intermediate.dense"), &x);
        wide.iter_mut().flatten().for_each(|value| *value *= 0.5 * (1.0 + erf(*value / 2.0_f64.sqrt())));
        let narrow = linear(tiny, &format!("{layer}.output.dense"), &wide);
        x = layer_norm(tiny, &format!("{layer}.output.LayerNorm"), &add(&narrow, &x));
    }
    let sum: Vec<f64> = (0..HIDDEN).map(|column| x.iter().map(|row| row[column]).sum()).collect();
    let length = sum.iter().map(|value| value * value).sum::<f64>().sqrt();
    sum.into_iter().map(|value| value / length).collect()
}

/// Returns the ids of the words of a text, between two special tokens. A word that is not in the vocabulary is split.
fn tokens(tiny: &Tiny, text: &str) -> Vec<usize> {
    let id = |word: &str| tiny.tokenizer["model"]["vocab"][word].as_u64().map(|id| usize::try_from(id).unwrap());
    let text = text.to_lowercase().replace(',', " , ").replace('!', " ! ");
    let mut tokens = vec![id("[CLS]").unwrap()];
    for word in text.split_whitespace() {
        let spelt =
            || word.char_indices().map(|(offset, c)| if offset == 0 { c.to_string() } else { format!("##{c}") });
        match id(word) {
            Some(word) => tokens.push(word),
            None => {
                tokens.extend(longest_first(word, &id).unwrap_or_else(|| spelt().map(|c| id(&c).unwrap()).collect()));
            }
        }
    }
    tokens.push(id("[SEP]").unwrap());
    tokens
}

/// Splits a word into the longest word of the vocabulary at its beginning and the letters of the rest.
fn longest_first(word: &str, id: &impl Fn(&str) -> Option<usize>) -> Option<Vec<usize>> {
    let (end, first) = (2..word.len()).rev().find_map(|end| Some((end, id(&word[..end])?)))?;
    Some(std::iter::once(first).chain(word[end..].chars().map(|c| id(&format!("##{c}")).unwrap())).collect())
}

fn attention(tiny: &Tiny, layer: &str, x: &Matrix) -> Matrix {
    let part = |part: &str| linear(tiny, &format!("{layer}.attention.self.{part}"), x);
    let (queries, keys, values) = (part("query"), part("key"), part("value"));
    let size = HIDDEN / HEADS;
    let mut out = vec![vec![0.0; HIDDEN]; x.len()];
    for head in 0..HEADS {
        let span = head * size..(head + 1) * size;
        for (query, out) in queries.iter().zip(&mut out) {
            let scores = keys.iter().map(|key| dot(&query[span.clone()], &key[span.clone()]) / (size as f64).sqrt());
            let weights: Vec<f64> = scores.map(f64::exp).collect();
            let sum: f64 = weights.iter().sum();
            for column in span.clone() {
                out[column] = weights.iter().zip(&values).map(|(weight, value)| weight / sum * value[column]).sum();
            }
        }
    }
    out
}

fn linear(tiny: &Tiny, name: &str, x: &Matrix) -> Matrix {
    let (shape, weights) = &tiny.tensors[&format!("{name}.weight")];
    let bias = &tiny.tensors[&format!("{name}.bias")].1;
    let transform_row = |row: &Vec<f64>| -> Vec<f64> {
        let outputs = weights.chunks(shape[1]).zip(bias);
        outputs
            .map(|(weights, bias)| {
                f64::from(*bias) + row.iter().zip(weights).map(|(x, w)| x * f64::from(*w)).sum::<f64>()
            })
            .collect()
    };
    x.iter().map(transform_row).collect()
}

fn layer_norm(tiny: &Tiny, name: &str, x: &Matrix) -> Matrix {
    let (weight, bias) = (row(tiny, &format!("{name}.weight"), 0), row(tiny, &format!("{name}.bias"), 0));
    let normalize_row = |row: &Vec<f64>| {
        let mean = row.iter().sum::<f64>() / row.len() as f64;
        let variance = row.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / row.len() as f64;
        let scaled = row.iter().map(|value| (value - mean) / (variance + 1e-12).sqrt());
        scaled.zip(weight.iter().zip(&bias)).map(|(value, (weight, bias))| value * weight + bias).collect()
    };
    x.iter().map(normalize_row).collect()
}

/// Returns one row of a table, or the whole of a list.
fn row(tiny: &Tiny, name: &str, index: usize) -> Vec<f64> {
    let (shape, values) = &tiny.tensors[name];
    let width = shape[shape.len() - 1];
    values[index * width..(index + 1) * width].iter().map(|&value| f64::from(value)).collect()
}

fn add(a: &Matrix, b: &Matrix) -> Matrix {
    a.iter().zip(b).map(|(a, b)| a.iter().zip(b).map(|(a, b)| a + b).collect()).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Computes the error function by its series, which converges for the small numbers here.
fn erf(x: f64) -> f64 {
    let mut term = x;
    let mut sum = x;
    for n in 1..200 {
        let n = f64::from(n);
        term *= -x * x / n;
        sum += term / (2.0 * n + 1.0);
    }
    sum * 2.0 / std::f64::consts::PI.sqrt()
}
