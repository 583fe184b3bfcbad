//! Tests a model in memory: compares its vectors with those of a plain network, and tries broken models, which must be
//! refused.

mod kit;
mod plain;

use std::path::Path;

use kit::{HIDDEN, TOKENS, Tiny, cosine};
use nudge_core::embed::TextEmbedder as _;
use nudge_embed::{Precision, SentenceModel};
use safetensors::tensor::Dtype;
use serde_json::json;

const TEXTS: [&str; 4] = ["build fails", "Two EGGS, milk!", "", "a header that nobody knows 42"];

fn load(tiny: &Tiny, precision: Precision) -> SentenceModel {
    let place = tempfile::tempdir().unwrap();
    SentenceModel::load(&tiny.write(place.path()), precision).unwrap()
}

/// Promise (models): The network computes the same vectors as a plain network and as `NumPy`.
#[test]
fn a_vector_equals_that_of_a_plain_network() {
    for seed in 1..4 {
        let tiny = Tiny::new(seed);
        let model = load(&tiny, Precision::Full);
        for text in TEXTS {
            let made = &model.embed(&[text]).unwrap()[0];
            let wanted = plain::vector(&tiny, text);
            for (made, wanted) in made.iter().zip(&wanted) {
                assert!((f64::from(*made) - wanted).abs() < 1e-5, "{text}: {made} {wanted}");
            }
        }
    }
}

#[test]
fn rounded_weights_point_the_same_way() {
    for seed in 1..4 {
        let tiny = Tiny::new(seed);
        let (full, rounded) = (load(&tiny, Precision::Full), load(&tiny, Precision::Rounded));
        assert_eq!(rounded.id(), format!("{}/int8", full.id()), "their vectors are not compared");
        let (full, rounded) = (full.embed(&TEXTS).unwrap(), rounded.embed(&TEXTS).unwrap());
        for (full, rounded) in full.iter().zip(&rounded) {
            assert!(cosine(full, rounded) > 0.98, "{}", cosine(full, rounded));
            assert_ne!(full, rounded);
        }
    }
}

#[test]
fn vectors_have_length_one_and_an_order() {
    let model = load(&Tiny::new(1), Precision::Rounded);
    let together = model.embed(&TEXTS).unwrap();
    assert_eq!((together.len(), model.dims()), (TEXTS.len(), HIDDEN));
    for (text, vector) in TEXTS.iter().zip(&together) {
        assert!((cosine(vector, vector) - 1.0).abs() < 1e-5);
        assert_eq!(*vector, model.embed(&[text]).unwrap()[0], "a text has the same vector in any company");
    }
    assert!(model.embed(&[]).unwrap().is_empty());
}

#[test]
fn what_does_not_fit_changes_nothing() {
    let model = load(&Tiny::new(1), Precision::Rounded);
    assert_eq!(model.max_tokens(), TOKENS - 2);
    let fits = "build ".repeat(TOKENS - 2);
    assert_eq!(model.count_tokens(&fits), model.max_tokens());
    let vector = |text: &str| model.embed(&[text]).unwrap().remove(0);
    let wanted = vector(&fits);
    assert_eq!(vector(&format!("{fits} eggs")), wanted);
    assert_eq!(vector(&format!("{fits} {}", "eggs milk ".repeat(20_000))), wanted, "nor in a long text");
    assert_ne!(vector(&fits[6..]), wanted);
    let blank = " ".repeat(100_000);
    assert_eq!(vector(&format!("{blank}{fits}")), wanted, "a text begins where its words do");
}

#[test]
fn tokens_are_counted_without_marks_and_without_an_end() {
    let model = load(&Tiny::new(1), Precision::Rounded);
    for (text, tokens) in [("", 0), ("build fails", 2), ("Builds, fails.", 5), ("ää", 2), ("\u{4e2d}", 1)] {
        assert_eq!(model.count_tokens(text), tokens, "{text}");
    }
    assert_eq!(model.count_tokens(&"two eggs ".repeat(30_000)), 60_000);
}

#[test]
fn weights_are_read_in_every_kind_and_under_a_prefix() {
    let mut tiny = Tiny::new(1);
    // A multiple of 1/64 is exact in all three number types.
    tiny.tensors.values_mut().flat_map(|(_, values)| values).for_each(|value| *value = (*value * 64.0).round() / 64.0);
    // The smallest 16-bit numbers are subnormal: they have no leading one.
    tiny.tensors.get_mut("encoder.layer.0.output.dense.bias").unwrap().1[0] = 3.0 / 16_777_216.0;
    let wanted = load(&tiny, Precision::Full).embed(&TEXTS).unwrap();
    for kind in [Dtype::F16, Dtype::BF16] {
        assert_eq!(load(&Tiny { kind, ..tiny.clone() }, Precision::Full).embed(&TEXTS).unwrap(), wanted, "{kind:?}");
    }
    tiny.tensors = tiny.tensors.into_iter().map(|(name, tensor)| (format!("bert.{name}"), tensor)).collect();
    assert_eq!(load(&tiny, Precision::Full).embed(&TEXTS).unwrap(), wanted);
}

#[test]
fn the_first_token_stands_for_the_text_where_the_model_says_so() {
    let mut tiny = Tiny::new(1);
    let mean = load(&tiny, Precision::Full);
    let pooling = json!({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}).to_string();
    tiny.others.push(("1_Pooling/config.json", pooling));
    let first = load(&tiny, Precision::Full);
    assert!(mean.id().ends_with(&format!("/mean/{TOKENS}")) && first.id().ends_with(&format!("/cls/{TOKENS}")));
    assert_ne!(mean.embed(&["build"]).unwrap(), first.embed(&["build"]).unwrap());
}

/// This tokenizer has the format of multilingual models: pieces of text with probabilities, a sign for blanks, and
/// other special tokens.
#[test]
fn a_tokenizer_of_many_languages_is_read() {
    let mut tiny = Tiny::new(1);
    let pieces =
        ["<s>", "<pad>", "</s>", "<unk>", "\u{2581}", "\u{2581}build", "\u{2581}Prüfung", "\u{43b}", "en", "e"];
    let vocabulary: Vec<_> = (0_i32..).zip(pieces).map(|(rank, piece)| json!([piece, f64::from(-rank)])).collect();
    let mark = |id: usize| json!({"id": pieces[id], "ids": [id], "tokens": [pieces[id]]});
    let around =
        [json!({"SpecialToken": {"id": "<s>", "type_id": 0}}), json!({"SpecialToken": {"id": "</s>", "type_id": 0}})];
    let special = |id: usize| {
        let content = pieces[id];
        json!({"id": id, "content": content, "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false})
    };
    let text = |name: &str| json!({"Sequence": {"id": name, "type_id": 0}});
    tiny.tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null, "decoder": null,
        "added_tokens": [special(0), special(2)],
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFKC"}]},
        "pre_tokenizer": {"type": "Metaspace", "replacement": "\u{2581}", "prepend_scheme": "always", "split": true},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [around[0].clone(), text("A"), around[1].clone()],
            "pair": [text("A"), text("B")],
            "special_tokens": {"<s>": mark(0), "</s>": mark(2)},
        },
        "model": {"type": "Unigram", "unk_id": 3, "vocab": vocabulary, "byte_fallback": false},
    });
    let model = load(&tiny, Precision::Rounded);
    for (text, tokens) in [("Prüfung build", 2), ("Prüfungen", 2), ("\u{43b}", 2), ("", 0)] {
        assert_eq!(model.count_tokens(text), tokens, "{text}");
    }
    let vectors = model.embed(&["Prüfungen", "build"]).unwrap();
    assert!(cosine(&vectors[0], &vectors[1]) < 0.999);
}

#[test]
fn an_id_is_that_of_the_files() {
    let id = |tiny: &Tiny| load(tiny, Precision::Rounded).id().to_owned();
    let tiny = Tiny::new(1);
    assert_eq!(id(&tiny), id(&tiny), "wherever they lie");
    assert!(id(&tiny).starts_with("bert@"));
    assert_ne!(id(&tiny), id(&Tiny::new(2)));
    let mut other = tiny.clone();
    other.config["note"] = json!(1);
    assert_ne!(id(&tiny), id(&other), "a file that differs may be another model");
}

/// Each entry makes a model invalid in one way, and has the text of the refusal.
#[test]
fn what_is_no_model_is_refused_and_says_why() {
    type Spoil = fn(&mut Tiny);
    let cases: &[(Spoil, &str)] = &[
        (
            |tiny| tiny.config["model_type"] = json!("roberta"),
            "model_type \"roberta\" in its config.json; only \"bert\"",
        ),
        (|tiny| tiny.config["model_type"] = json!(null), "model_type \"\""),
        (|tiny| tiny.config["hidden_act"] = json!("relu"), "hidden_act \"relu\""),
        (|tiny| tiny.config["position_embedding_type"] = json!("relative_key"), "position_embedding_type"),
        (|tiny| tiny.config["hidden_size"] = json!("wide"), "a config.json that cannot be read"),
        (|tiny| tiny.config["hidden_size"] = json!(0), "hidden_size 0"),
        (|tiny| tiny.config["hidden_size"] = json!(1_000_000), "hidden_size 1000000"),
        (|tiny| tiny.config["num_attention_heads"] = json!(3), "heads do not divide"),
        (|tiny| tiny.config["num_attention_heads"] = json!(0), "num_attention_heads 0"),
        (|tiny| tiny.config["num_hidden_layers"] = json!(3), "no weights of the name encoder.layer.2"),
        (|tiny| tiny.config["layer_norm_eps"] = json!(0), "layer_norm_eps"),
        (|tiny| tiny.config["vocab_size"] = json!(50), "of shape [90, 16], and its config.json wants [50, 16]"),
        (|tiny| tiny.tokenizer = json!({"version": "1.0"}), "a tokenizer.json that cannot be read"),
        (|tiny| tiny.tokenizer["model"]["vocab"]["build"] = json!(900), "with tokens that its weights do not have"),
        // The library that reads this file panics; Nudge must still return an error.
        (|tiny| tiny.tokenizer["post_processor"]["special_tokens"] = json!({}), "its files are not what they seem"),
        (|tiny| tiny.others[0].1 = json!({"max_seq_length": 2}).to_string(), "no room for a text"),
        (|tiny| tiny.others[0].1 = "{".into(), "a sentence_bert_config.json that cannot be read"),
        (
            |tiny| tiny.others.push(("1_Pooling/config.json", json!({"pooling_mode_max_tokens": true}).to_string())),
            "neither the mean nor the first",
        ),
        (|tiny| tiny.others.push(("1_Pooling/config.json", "{}".into())), "which one way of pooling"),
        (
            |tiny| drop(tiny.tensors.remove("embeddings.LayerNorm.bias")),
            "no weights of the name embeddings.LayerNorm.bias",
        ),
        (
            |tiny| tiny.tensors.get_mut("encoder.layer.1.output.dense.weight").unwrap().1[3] = f32::NAN,
            "a number in encoder.layer.1.output.dense.weight that is not finite",
        ),
        (
            |tiny| tiny.tensors.get_mut("embeddings.word_embeddings.weight").unwrap().1[3] = f32::INFINITY,
            "a number in embeddings.word_embeddings.weight that is not finite",
        ),
        (|tiny| tiny.kind = Dtype::I32, "that are I32"),
        (|tiny| tiny.tensors.values_mut().for_each(|(_, values)| values.fill(0.0)), "vectors that have no direction"),
        (
            |tiny| tiny.tensors.get_mut("encoder.layer.1.output.LayerNorm.weight").unwrap().1.fill(0.0),
            "the same vector of unlike texts",
        ),
    ];
    for (index, (spoil, wanted)) in cases.iter().enumerate() {
        let mut tiny = Tiny::new(1);
        spoil(&mut tiny);
        let place = tempfile::tempdir().unwrap();
        for precision in [Precision::Rounded, Precision::Full] {
            let error = SentenceModel::load(&tiny.write(place.path()), precision).err();
            let error = error.unwrap_or_else(|| panic!("case {index} is refused: {wanted}"));
            assert!(error.message().contains(wanted), "case {index}: {error}");
            assert_eq!(error.reason(), "E_INVALID");
            assert!(error.message().starts_with(&format!("The model in {} ", place.path().display())), "{error}");
        }
    }
}

#[test]
fn a_missing_damaged_or_planted_file_is_named() {
    let refused = |folder: &Path| SentenceModel::load(folder, Precision::Rounded).err().unwrap().message().to_owned();
    for name in ["config.json", "tokenizer.json", "model.safetensors"] {
        let place = tempfile::tempdir().unwrap();
        let path = Tiny::new(1).write(place.path()).join(name);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        assert!(refused(place.path()).contains(&format!("a {name} that cannot be read")), "{}", refused(place.path()));
        std::fs::remove_file(&path).unwrap();
        assert!(refused(place.path()).ends_with(&format!("has no {name}; take another one.")));
        #[cfg(unix)]
        {
            let elsewhere = tempfile::tempdir().unwrap();
            std::fs::write(elsewhere.path().join(name), &bytes).unwrap();
            std::os::unix::fs::symlink(elsewhere.path().join(name), &path).unwrap();
            assert!(refused(place.path()).contains(&format!("a {name} that cannot be read")));
        }
    }
    assert!(refused(Path::new("/nowhere/at/all")).contains("has no config.json"));
}
