//! Tests full-text search and vectors with difficult texts.

use std::cmp::Reverse;
use std::collections::HashMap;

use nudge_storage::rusqlite::Connection;
use nudge_storage::search::{FoundTexts, FullText, QuestionWords, TextIndexCache, head, search, trigrams};
use nudge_storage::vectors::{VectorIndex, decode, encode, unit};
use proptest::prelude::*;

static NOTES: FullText = FullText { table: "note", weights: &[2.0, 1.0], vocabulary: Some("note_words") };

/// Makes an index of notes. The title of each text ends at the colon, and row numbers begin at 1.
fn notes<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Connection {
    let c = Connection::open_in_memory().unwrap();
    c.execute_batch(
        "CREATE VIRTUAL TABLE note USING fts5(title, body, tokenize='porter unicode61 remove_diacritics 2');
         CREATE VIRTUAL TABLE note_words USING fts5vocab(note, 'row');
         CREATE VIRTUAL TABLE note_grams USING fts5(head, tokenize='trigram');
         BEGIN",
    )
    .unwrap();
    for text in texts {
        let (title, body) = text.as_ref().split_once(':').unwrap_or((text.as_ref(), ""));
        c.prepare_cached("INSERT INTO note(title, body) VALUES(?1, ?2)").unwrap().execute([title, body]).unwrap();
        c.prepare_cached("INSERT INTO note_grams(head) VALUES(?1)").unwrap().execute([head(title, body)]).unwrap();
    }
    c.execute_batch("COMMIT").unwrap();
    c
}

fn found(c: &Connection, text: &str) -> FoundTexts {
    let mut found = search(c, &NOTES, &QuestionWords::from_text(text), &TextIndexCache::default()).unwrap();
    found.weigh_all(c, &NOTES, &TextIndexCache::default()).unwrap();
    found
}

/// Returns the row numbers, ordered by how much of the question each text holds, most first.
fn best(found: &FoundTexts) -> Vec<i64> {
    let mut rows: Vec<_> = found.rows.iter().collect();
    rows.sort_by(|a, b| (b.1.coverage, b.1.bm25, b.0).partial_cmp(&(a.1.coverage, a.1.bm25, a.0)).unwrap());
    rows.into_iter().map(|(row, _)| *row).collect()
}

const TEXTS: [&str; 6] = [
    "Uploads above 1 MB are refused: nginx has client_max_body_size 1m; the body is larger",
    "Error E0502 in the scheduler: a mutable borrow lived across an await",
    "Migrations: each migration runs in a transaction and is tried again",
    "Größe des Puffers: die Warteschlange läuft über",
    "数据库迁移",
    "Sizes: the maximum size of a body, and the client",
];

#[test]
fn what_is_found() {
    let c = notes(TEXTS);
    for (question, rows) in [
        ("E0502", vec![2]),
        ("why is `client_max_body_size` there?", vec![1]),
        ("was anything migrated lately", vec![3]),
        ("grosse groesse größe", vec![4]),
        ("数据库迁移", vec![5]),
        ("what about this and that", vec![]),
        ("title:migrations NOT body:again", vec![3]),
        ("await*", vec![2]),
        ("kubernetes", vec![]),
    ] {
        let found = found(&c, question);
        let mut best = best(&found);
        best.truncate(rows.len().max(1));
        assert_eq!(best, rows, "{question}: {found:?}");
    }
}

#[test]
fn what_is_written_without_spaces_is_found_by_its_pairs() {
    let c = notes([
        "部署流程: 先运行数据库迁移，然后重启服务",
        "上传失败: nginx配置里的大小限制",
        "デプロイの手順: 先にデータベースの移行を実行する",
        "배포 절차: 먼저 데이터베이스를 이전한다",
        "Uploads: the limit is in the proxy",
    ]);
    for (question, rows) in [
        ("怎么做数据库迁移?", vec![1]),
        ("nginx大小限制是多少", vec![2]),
        ("データベース移行のやり方", vec![3]),
        ("데이터베이스", vec![4]),
        ("天气很好", vec![]),
    ] {
        assert_eq!(best(&found(&c, question)), rows, "{question}");
    }
    // The coverage of a text counts the pairs of characters that it holds.
    let found = found(&c, "数据库备份");
    assert!(found.rows[&1].coverage < 0.6, "{found:?}");
}

#[test]
fn a_rare_word_counts_more_than_a_common_one() {
    let c = notes(["proxy: it times out", "proxy: it is slow", "proxy: E0502"]);
    let found = found(&c, "E0502 proxy");
    let held = &found.rows[&3];
    assert_eq!((best(&found)[0], found.words_of(held).collect::<Vec<_>>()), (3, vec!["E0502", "proxy"]));
    assert!((held.coverage - 1.0).abs() < 1e-9);
    let rarity = |texts: f64| (4.0_f64 / (texts + 0.5)).ln();
    let share = rarity(3.0) / (rarity(3.0) + rarity(1.0));
    assert!((found.rows[&1].coverage - share).abs() < 1e-9, "{found:?}");
    assert_eq!(found.words.iter().map(|asked| asked.texts).collect::<Vec<_>>(), [1, 3]);
}

#[test]
fn misspelt_words_find_what_is_meant() {
    let c = notes(TEXTS);
    for (misspelt, row, worth) in [
        ("migratoin", 3, 0.75),
        ("trasnaction", 3, 0.75),
        ("uplaods", 1, 0.75),
        ("schedluer", 2, 0.75),
        ("client_max_bdoy_size", 6, 0.75),
    ] {
        let found = found(&c, misspelt);
        assert!(found.rows.contains_key(&row), "{misspelt}: {found:?}");
        assert!((found.rows[&row].coverage - worth).abs() < 1e-9 && !found.words[0].near.is_empty(), "{misspelt}");
    }
    for none in ["zzzzzz", "12345678", "abc", "dashboard"] {
        assert_eq!(found(&c, none).rows.len(), 0, "{none}: {:?}", found(&c, none));
    }
    // Finds a word with one wrong letter. Only terms that begin with one of the word's first two letters are compared.
    let found_near = |text: &str| found(&c, text).words.into_iter().map(|asked| asked.near).collect::<Vec<_>>();
    assert_eq!(found_near("sixe"), [["size"]]);
    assert_eq!(found_near("bize schedluer"), [&[][..], &["schedul"]]);
    // A stem allows fewer wrong letters than the whole word: `fail` does not match `full`.
    let full = notes(["Retry with full jitter", "a", "b"]);
    assert_eq!(found(&full, "failed").rows.len(), 0, "{:?}", found(&full, "failed"));
    // A word that a text holds is not replaced by near terms.
    assert!(found(&c, "size").words[0].near.is_empty());
    let grams = trigrams(&c, "note_grams", &QuestionWords::from_text("migratoin"), &TextIndexCache::default()).unwrap();
    let best = grams.iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
    assert_eq!(best.0, 3);
}

/// The sum of the weights of single words equals the weight that FTS5 computes for a query with all words.
#[test]
fn the_weight_is_that_of_one_statement() {
    let c = notes(TEXTS);
    let found = found(&c, "body size client scheduler migration");
    let sql = "SELECT rowid, -bm25(note, 2.0, 1.0) FROM note WHERE note MATCH 'body OR size OR client OR scheduler OR migration'";
    let mut statement = c.prepare(sql).unwrap();
    let together = statement.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, f64>(1)?))).unwrap();
    let together: Vec<_> = together.map(Result::unwrap).collect();
    assert_eq!((together.len(), found.rows.len()), (4, 4));
    for (row, weight) in together {
        assert!((found.rows[&row].bm25 - weight).abs() < 1e-9, "{row}: {weight} {found:?}");
    }
}

/// With a hundred texts, the search leaves out words that more than a third of the texts hold, unless too few words
/// remain.
#[test]
fn words_that_nearly_all_hold_are_left_out() {
    let texts: Vec<_> = (0..100)
        .map(|number| {
            let word = |held: bool, word: &'static str| if held { word } else { "" };
            let (all, half, third) =
                (word(true, "alpha"), word(number % 2 == 0, "beta"), word(number % 3 == 0, "gamma"));
            format!("t{number}x: {all} {half} {third} {}", word(number < 33, "delta"))
        })
        .collect();
    let c = notes(&texts);
    let words = |question: &str| {
        let words = found(&c, question).words;
        words.into_iter().map(|asked| format!("{} {}", asked.word, asked.texts)).collect::<Vec<_>>()
    };
    assert_eq!(words("alpha beta gamma delta t7x"), ["delta 33", "t7x 1"]);
    assert_eq!(words("alpha beta gamma t7x"), ["gamma 34", "t7x 1"], "the rarest of the common ones");
    assert_eq!(words("alpha beta gamma"), ["beta 50", "gamma 34"]);
    assert_eq!(words("alpha"), ["alpha 100"]);
    assert_eq!(words("alpha beta unheard"), ["beta 50", "unheard 0"]);
    let sixteen: Vec<_> = (0..20).map(|number| format!("t{number}x")).collect();
    assert_eq!(words(&sixteen.join(" ")).len(), 16);
    let grams = trigrams(&c, "note_grams", &QuestionWords::from_text("alpha t7x"), &TextIndexCache::default()).unwrap();
    assert_eq!(grams.iter().map(|(row, _)| *row).collect::<Vec<_>>(), [8]);
}

/// In a long question, the words that no text holds leave room for the others. In a search they count in no share; a
/// prompt that speaks mostly of other things matches no text well.
#[test]
fn unknown_words_of_a_long_question_push_out_no_other() {
    let c = notes(TEXTS);
    let other: Vec<_> = (0..24).map(|number| format!("unheard{number}")).collect();
    let text = format!("{} a borrow in the scheduler", other.join(" "));
    let share = |question: QuestionWords| {
        let found = search(&c, &NOTES, &question, &TextIndexCache::default()).unwrap();
        (found.words.len(), found.held_words(2).coverage)
    };
    let (words, of_query) = share(QuestionWords::of_query(&text));
    assert_eq!(words, 26, "all words of a query are searched");
    assert!((of_query - 1.0).abs() < 1e-9, "{of_query}");
    let (words, of_prompt) = share(QuestionWords::from_text(&text));
    assert_eq!(words, 16);
    assert!(of_prompt < 0.2, "{of_prompt}");
    // A long question shares trigrams with every text, so only a shorter one has them searched.
    let count = |text: &str| {
        trigrams(&c, "note_grams", &QuestionWords::of_query(text), &TextIndexCache::default()).unwrap().len()
    };
    assert_eq!((count(&text), count("a borrow in the scheduler") > 0), (0, true));
}

/// The cache stores which words are common, and counts again after a tenth more texts. Near terms are always current.
#[test]
fn what_is_remembered_of_the_indexes() {
    let text = |number: usize, held: bool| format!("t{number}x: {} other", if held { "alpha" } else { "" });
    let c = notes((0..100).map(|number| text(number, number < 34)));
    let known = TextIndexCache::default();
    let words = |question: &str| {
        let words = search(&c, &NOTES, &QuestionWords::from_text(question), &known).unwrap().words;
        words.into_iter().map(|asked| format!("{} {}", asked.word, asked.texts)).collect::<Vec<_>>()
    };
    let add = |text: String| {
        let (title, body) = text.split_once(':').unwrap();
        c.execute("INSERT INTO note(title, body) VALUES(?1, ?2)", [title, body]).unwrap();
    };
    assert_eq!(words("alpha t7x t8x"), ["t7x 1", "t8x 1"]);
    (100..110).for_each(|number| add(text(number, false)));
    assert_eq!(words("alpha t7x t8x"), ["t7x 1", "t8x 1"], "34 of 110 are not many, but were");
    add(text(110, false));
    (111..113).for_each(|number| add(text(number, false)));
    assert_eq!(words("alpha t7x t8x"), ["alpha 34", "t7x 1", "t8x 1"]);
    assert_eq!(words("schedluer"), ["schedluer 0"]);
    add("t: the scheduler".to_owned());
    assert_eq!(words("schedluer"), ["schedluer 1"]);
    c.execute("DELETE FROM note WHERE title = 't'", []).unwrap();
    assert_eq!(words("schedluer"), ["schedluer 0"]);
}

/// A word in exactly a third of all texts is not common; one more text makes it common.
#[test]
fn what_more_than_a_third_holds_is_common() {
    for (held, wanted) in [(30, 3), (31, 2)] {
        let c = notes((0..90).map(|number| format!("t{number}x: {} other", if number < held { "alpha" } else { "" })));
        let found = search(&c, &NOTES, &QuestionWords::from_text("alpha t7x t8x"), &TextIndexCache::default()).unwrap();
        assert_eq!(found.words.len(), wanted, "{held} of 90");
    }
}

/// The stored counts are used until the number of texts has grown by a tenth.
#[test]
fn a_tenth_more_texts_are_not_counted_again() {
    let c = notes((0..90).map(|number| format!("t{number}x: {} other", if number < 31 { "alpha" } else { "" })));
    let known = TextIndexCache::default();
    let words = || search(&c, &NOTES, &QuestionWords::from_text("alpha t7x t8x"), &known).unwrap().words.len();
    for (texts, wanted) in [(90_i64, 2), (100, 2), (101, 3)] {
        let there: i64 = c.query_row("SELECT count(*) FROM note", [], |row| row.get(0)).unwrap();
        (there..texts).for_each(|_| {
            c.execute("INSERT INTO note(title, body) VALUES('other', '')", []).unwrap();
        });
        assert_eq!(words(), wanted, "of {texts}");
    }
}

/// Cached weights are used only until the index changes.
#[test]
fn remembered_weights_are_those_of_the_moment() {
    let c = notes(TEXTS);
    let known = TextIndexCache::default();
    let ask = |known: &TextIndexCache| {
        let mut found = search(&c, &NOTES, &QuestionWords::from_text("body size migratoin scheduler"), known).unwrap();
        found.weigh_all(&c, &NOTES, known).unwrap();
        let mut rows: Vec<_> = found.rows.into_iter().map(|(row, held)| (row, held.bm25, held.coverage)).collect();
        rows.sort_by_key(|(row, ..)| *row);
        rows
    };
    for change in [
        "INSERT INTO note(rowid, title, body) VALUES(7, 'A scheduler', 'of no size')",
        "UPDATE note SET body = 'a body, a body' WHERE rowid = 7",
        "DELETE FROM note WHERE rowid = 7",
    ] {
        assert_eq!(ask(&known), ask(&known));
        c.execute(change, []).unwrap();
        assert_eq!(ask(&known), ask(&TextIndexCache::default()), "{change}");
    }
}

/// FTS5 and SQL never read a question as syntax.
///
/// Promise (storage): FTS5 reads the words of a search as text, never as query syntax.
#[test]
fn nothing_that_is_asked_is_syntax() {
    let c = notes(TEXTS);
    for hostile in [
        "\"",
        "\"\"\"",
        "a\"b",
        "' OR 1=1 --",
        "'; DROP TABLE note; --",
        "NEAR(",
        "NEAR(a b",
        "AND",
        "OR OR",
        "NOT NOT x",
        "-x",
        "^x",
        "x*",
        "*",
        "a AND (b OR",
        "{title}:",
        "note:",
        "rank:x",
        "col : x",
        "\0",
        "a\0b",
        "\u{feff}",
        "\\",
        "\u{200d}",
        "٣٤",
        "x²",
        "ﷺ",
        "\u{301}",
        "a\u{301}\u{301}",
        "(((((((((((((((((",
        "+ + +",
        "match",
        "\"a\" + \"b\" *",
    ] {
        found(&c, hostile);
        search(&c, &NOTES, &QuestionWords::of_query(hostile), &TextIndexCache::default()).unwrap();
        trigrams(&c, "note_grams", &QuestionWords::of_query(hostile), &TextIndexCache::default()).unwrap();
    }
    assert_eq!(found(&c, "migration").rows.len(), 1, "the table is there");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// FTS5 never reads a text as syntax, and a text is found by its own words with full coverage.
    #[test]
    fn any_text_is_found_by_its_own_words(
        texts in prop::collection::vec("[ -~]{0,80}|\\PC{0,40}|[\"*(){}^:+\\-ANDORTNE ]{0,30}", 1..5),
    ) {
        let c = notes(texts.iter().map(|text| text.replace(':', " ")));
        for (row, text) in (1..).zip(&texts) {
            let words = QuestionWords::of_query(text);
            let found = search(&c, &NOTES, &words, &TextIndexCache::default()).unwrap();
            let all = found.rows.values().all(|held| (0.0..=1.0 + 1e-9).contains(&held.coverage) && held.bm25 >= 0.0);
            prop_assert!(all, "{:?}", found);
            trigrams(&c, "note_grams", &words, &TextIndexCache::default()).unwrap();
            if text.is_ascii() && !words.is_empty() {
                let held = found.rows.get(&row);
                // A text need not hold the words that the search left out.
                prop_assert!(held.is_some_and(|held| held.coverage > 1.0 - 1e-6), "{:?}: {:?}", text, found);
                prop_assert_eq!(found.words_of(held.unwrap()).count(), found.words.len());
            }
        }
    }

    /// After any additions, replacements and removals, the result equals that of sorting all cosines.
    #[test]
    fn the_nearest_vectors_are_the_nearest(
        steps in prop::collection::vec((0..12_i64, 0..3_u32, prop::array::uniform4(-1.0_f32..1.0), 0..4), 1..60),
        asked in prop::array::uniform4(0.1_f32..1.0),
        k in 0..8_usize,
    ) {
        let mut vectors = VectorIndex::new("tiny@1", 4);
        let mut all = HashMap::new();
        for (id, part, vector, what) in steps {
            if what == 0 {
                vectors.remove(id);
                all.retain(|(other, _), _| *other != id);
            } else if let Some(vector) = unit(&vector) {
                let vector = decode(&encode(&vector)).unwrap();
                prop_assert!(vectors.upsert(id, part, &vector));
                all.insert((id, part), vector);
            }
        }
        prop_assert_eq!(vectors.len(), all.len());
        let asked = unit(&asked).unwrap();
        let mut by_id: HashMap<i64, f32> = HashMap::new();
        for ((id, _), vector) in &all {
            let cosine: f32 = vector.iter().zip(&asked).map(|(a, b)| a * b).sum();
            let best = by_id.entry(*id).or_insert(f32::MIN);
            *best = best.max(cosine);
        }
        let cosines = vectors.compute_cosines(&asked);
        let known: HashMap<i64, f32> = (0..12).filter_map(|id| Some((id, cosines.get_best(id)?))).collect();
        prop_assert_eq!(known.len(), by_id.len());
        for (id, cosine) in &known {
            prop_assert!((cosine - by_id[id]).abs() <= rounding(4), "{cosine} {}", by_id[id]);
        }
        let mut sorted: Vec<_> = known.into_iter().filter(|(id, _)| id % 3 != 0).collect();
        sorted.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0)));
        sorted.truncate(k);
        prop_assert_eq!(vectors.top(&asked, k, |id| id % 3 != 0), sorted);
    }

    /// The test covers any number of dimensions, and also products that all have the same sign.
    #[test]
    fn a_cosine_is_wrong_by_the_rounding_at_most(
        pairs in prop::collection::vec((-1.0_f32..1.0, -1.0_f32..1.0), 1..1025),
        is_same in any::<bool>(),
    ) {
        let (one, other): (Vec<_>, Vec<_>) = pairs.into_iter().map(|(a, b)| (a, if is_same { a } else { b })).unzip();
        let (Some(one), Some(other)) = (unit(&one), unit(&other)) else { return Ok(()) };
        let mut vectors = VectorIndex::new("tiny@1", one.len());
        prop_assert!(vectors.upsert(1, 0, &one));
        let exact: f64 = one.iter().zip(&other).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
        let known = f64::from(vectors.compute_cosines(&other).get_best(1).unwrap());
        prop_assert!((known - exact).abs() <= f64::from(rounding(one.len())), "{known} {exact}");
    }
}

proptest! {
    /// The result equals that of comparing each pair. There are more vectors than the function compares at a time.
    #[test]
    fn every_pair_that_is_near_is_told_once(
        vectors in prop::collection::vec(prop::array::uniform4(-1.0_f32..1.0), 0..100),
        least in 0.0_f32..1.0,
    ) {
        let units: Vec<_> = vectors.iter().filter_map(|vector| unit(vector)).collect();
        let mut vectors = VectorIndex::new("tiny@1", 4);
        for (id, vector) in (0..).zip(&units) {
            prop_assert!(vectors.upsert(id, 0, vector));
        }
        let mut told = HashMap::new();
        vectors.pairs(least, |id, other| *told.entry((id, other)).or_insert(0) += 1);
        for ((other, b), (one, a)) in (0..).zip(&units).flat_map(|b| (0..b.0).zip(&units).map(move |a| (b, a))) {
            let exact: f32 = a.iter().zip(b).map(|(a, b)| a * b).sum();
            match told.remove(&(one, other)) {
                Some(times) => prop_assert!(times == 1 && exact >= least - 4.0 * rounding(4), "{one} {other}: {exact}"),
                None => prop_assert!(exact < least, "{one} {other}: {exact}"),
            }
        }
        prop_assert_eq!(told, HashMap::new());
    }
}

/// Returns the largest possible error of a cosine.
#[allow(clippy::cast_precision_loss)]
fn rounding(dims: usize) -> f32 {
    // The last addend is the rounding error of `f32` in the vectors of length 1.
    (dims as f32).sqrt() / 32_767.0 + 1e-6
}

#[test]
fn what_is_no_vector_of_the_model_is_not_taken() {
    let mut vectors = VectorIndex::new("tiny@1", 2);
    for not in
        [&[1.0][..], &[1.0, 0.0, 0.0], &[], &[f32::NAN, 0.0], &[1.0, f32::INFINITY], &[1.0, 0.5], &[f32::MAX, 0.0]]
    {
        assert!(!vectors.upsert(1, 0, not), "{not:?}");
        assert!(vectors.is_empty() && vectors.count_texts() == 0 && vectors.top(&[1.0, 0.0], 1, |_| true).is_empty());
    }
    assert!(
        vectors.upsert(1, 0, &[0.0, 1.0]) && vectors.upsert(1, 1, &[1.0, 0.0]) && vectors.upsert(2, 0, &[0.6, 0.8])
    );
    assert_eq!((vectors.len(), vectors.count_texts(), vectors.is_empty(), vectors.model()), (3, 2, false, "tiny@1"));
    let near = vectors.top(&[1.0, 0.0], 5, |_| true);
    assert_eq!((near.len(), near[0], near[1].0), (2, (1, 1.0), 2));
    assert!((near[1].1 - 0.6).abs() < rounding(2));
}

/// Two hundred vectors of another kind are nearer, and the filter still finds each vector of the wanted kind.
#[test]
fn what_is_filtered_out_hides_nothing() {
    let mut vectors = VectorIndex::new("tiny@1", 384);
    let near = |distance: f32| {
        let mut vector = vec![0.0; 384];
        (vector[0], vector[1]) = (1.0, distance);
        unit(&vector).unwrap()
    };
    let mut offset = 0.0;
    for id in 0..210 {
        offset += 0.01;
        // The ten vectors of one kind are the farthest ones.
        assert!(vectors.upsert(id, 0, &near(offset)));
    }
    let top = vectors.top(&near(0.0), 10, |id| id >= 200);
    assert_eq!(top.iter().map(|(id, _)| *id).collect::<Vec<_>>(), (200..210).collect::<Vec<_>>());
    assert!(top.is_sorted_by_key(|(_, cosine)| Reverse(cosine.to_bits())) && top[9].1 > 0.4, "{top:?}");
    assert_eq!(vectors.top(&near(0.0), 300, |_| true).len(), 210);
    // The index refuses a vector of another model, and a comparison with such a vector finds nothing.
    assert!(!vectors.upsert(1, 0, &[1.0, 0.0]) && !vectors.upsert(1, 0, &[f32::NAN; 384]));
    assert_eq!(vectors.top(&[1.0, 0.0], 10, |_| true), []);
    assert_eq!((vectors.model(), vectors.compute_cosines(&[1.0]).get_best(1)), ("tiny@1", None));
}
