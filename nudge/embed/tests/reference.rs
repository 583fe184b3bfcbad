//! Compares the known model with numbers that `NumPy` has computed (`reference.py`). Without the model's weights the
//! test does nothing.

mod kit;

use kit::{cosine, real_model};
use nudge_core::embed::TextEmbedder as _;
use nudge_embed::{Precision, SentenceModel};
use serde::Deserialize;

#[derive(Deserialize)]
struct Row {
    text: String,
    tokens: usize,
    begins: Vec<f32>,
    cosines: Vec<f32>,
}

fn rows() -> Vec<Row> {
    serde_json::from_str(include_str!("reference.json")).unwrap()
}

/// Returns the largest difference from the expected numbers, both for vectors and for their cosines.
fn difference(model: &SentenceModel, rows: &[Row]) -> f32 {
    let texts: Vec<_> = rows.iter().map(|row| row.text.as_str()).collect();
    let vectors = model.embed(&texts).unwrap();
    let mut most = 0.0_f32;
    for (row, vector) in rows.iter().zip(&vectors) {
        assert_eq!((vector.len(), model.count_tokens(&row.text)), (384, row.tokens), "{}", row.text);
        let numbers = row.begins.iter().zip(vector).map(|(wanted, made)| (wanted - made).abs());
        let cosines = row.cosines.iter().zip(&vectors).map(|(wanted, other)| (wanted - cosine(vector, other)).abs());
        most = numbers.chain(cosines).fold(most, f32::max);
    }
    most
}

/// Promise: see `a_vector_equals_that_of_a_plain_network`.
#[test]
fn the_known_model_computes_as_numpy_does() {
    let Some(folder) = real_model() else { return };
    let model = SentenceModel::load(&folder, Precision::Full).unwrap();
    assert_eq!((model.id(), model.max_tokens()), ("all-MiniLM-L6-v2@1110a243/mean/256", 254));
    let most = difference(&model, &rows());
    assert!(most < 2e-6, "{most}");
}

#[test]
fn rounded_it_is_close_to_that() {
    let Some(folder) = real_model() else { return };
    let model = SentenceModel::load(&folder, Precision::Rounded).unwrap();
    assert_eq!(model.id(), "all-MiniLM-L6-v2@1110a243/mean/256/int8");
    let most = difference(&model, &rows());
    assert!(most < 0.05, "{most}");
    let vectors = model
        .embed(&[
            "the login token expires too early because the clock of the server is wrong",
            "users are signed out after a minute; NTP had been off",
            "a recipe for pancakes with eggs and milk",
        ])
        .unwrap();
    assert!(cosine(&vectors[0], &vectors[1]) > cosine(&vectors[0], &vectors[2]) + 0.2);
}
