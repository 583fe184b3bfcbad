//! Tests near duplicates, with a model that counts words.

use std::sync::Arc;

use nudge_core::clock::ManualClock;
use nudge_core::embed::{LoadedModel, TextEmbedder};
use nudge_core::error::Result;
use nudge_core::source::{Source, SourceHost};
use nudge_records::SOURCE;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// A model whose vectors count words. So texts that share many words are near each other.
struct Words;

impl TextEmbedder for Words {
    fn id(&self) -> &'static str {
        "words"
    }

    fn dims(&self) -> usize {
        64
    }

    fn max_tokens(&self) -> usize {
        256
    }

    fn count_tokens(&self, text: &str) -> usize {
        text.split_whitespace().count()
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        let embed = |text: &&str| {
            let mut counts = vec![0.0_f32; 64];
            for word in text.split_whitespace() {
                counts[word.bytes().map(usize::from).sum::<usize>() % 64] += 1.0;
            }
            let length = counts.iter().map(|count| count * count).sum::<f32>().sqrt();
            counts.into_iter().map(|count| count / length).collect()
        };
        Ok(texts.iter().map(embed).collect())
    }
}

fn open(folder: &tempfile::TempDir, dedup: &str) -> Arc<dyn Source> {
    let host = SourceHost::new_alone(folder.path(), &SOURCE, &[("records.dedup", dedup)]).unwrap();
    let clock = Arc::new(ManualClock::new(1_767_225_600_000));
    (SOURCE.open)(SourceHost { clock, models: Arc::new(LoadedModel(Arc::new(Words))), ..host }).unwrap()
}

fn save(records: &dyn Source, title: &str, more: &Value) -> Value {
    let mut params = json!({"kind": "issue", "title": title, "context": {"repo": "github.com/acme/shop"}});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let params = RawValue::from_string(params.to_string()).unwrap();
    serde_json::from_str(records.call("nudge.records.upsert", &params).unwrap().get()).unwrap()
}

#[test]
fn the_caller_is_asked_or_the_nearest_changed_as_the_setting_or_the_call_says() {
    for (setting, given, merges) in [
        ("ask", json!({}), false),
        ("ask", json!({"dedup": "merge"}), true),
        ("merge", json!({}), true),
        ("merge", json!({"dedup": null}), true),
        ("merge", json!({"dedup": "ask"}), false),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let records = open(&folder, setting);
        // The first record finds no other record to compare with. The vector of this record is made later.
        save(&*records, "sessions live in redis", &json!({}));
        let id = save(&*records, "uploads above one megabyte fail with status 413", &json!({}))["record"]["id"].clone();
        let near = save(&*records, "uploads above one megabyte fail with code 413", &given);
        let case = format!("{setting} {given}: {near}");
        if merges {
            assert_eq!((&near["deduplicated"], &near["record"]["id"]), (&json!(true), &id), "{case}");
            assert_eq!((&near["previous_version"], &near["record"]["version"]), (&json!(1), &json!(2)), "{case}");
        } else {
            assert_eq!((&near["written"], &near["near"][0]["record"]["id"]), (&json!(false), &id), "{case}");
        }
        // A caller may override the setting with `dedup`, and `distinct` overrides both.
        let distinct = json!({"distinct": true, "dedup": "merge"});
        assert_eq!(
            save(&*records, "uploads above one megabyte fail with word 413", &distinct)["created"],
            true,
            "{case}"
        );
        assert_eq!(save(&*records, "the nightly backup ran out of disk", &given)["created"], true, "{case}");
    }
}
