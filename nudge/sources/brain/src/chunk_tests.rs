//! Tests that the chunks of any text leave out nothing, and that no markdown block is cut if it fits into one chunk.

use proptest::prelude::*;

use super::*;

fn breadcrumbs(text: &str) -> Vec<(String, usize)> {
    let chunks = chunk_text(text, &TextOutline::parse(text));
    chunks.into_iter().map(|chunk| (chunk.breadcrumb, count_tokens(&text[chunk.range]))).collect()
}

/// Makes a paragraph with this number of tokens.
fn words(count: usize) -> String {
    "word ".repeat(count)
}

#[test]
fn how_many_tokens() {
    for (text, count) in [
        ("", 0),
        ("a", 1),
        ("abcdef", 1),
        ("abcdefg", 2),
        ("a, b.", 4),
        ("größe", 2),
        ("größ", 1),
        ("数据库", 3),
        ("  \n", 0),
    ] {
        assert_eq!(count_tokens(text), count, "{text:?}");
    }
}

#[test]
fn short_sections_are_joined_with_a_sibling_or_their_parent() {
    let long = words(60);
    for (text, expected) in [
        (format!("# A\n\n## B\n\n{long}\n## C\n\n{long}"), vec!["A > B", "A > C"]),
        (format!("# A\n\n## B\n\n## C\n\n{long}"), vec!["A > C"]),
        (format!("# A\n\n{long}\n## B\n\nshort\n"), vec!["A"]),
        (format!("# A\n\n## B\n\n{long}\n## C\n\nshort\n## D\n\n{long}"), vec!["A", "A > D"]),
        (format!("short\n\n# A\n\n{long}"), vec![""]),
        (format!("# A\n\n{long}\n# B\n\n## C\n\nshort\n\n# D\n\n{long}"), vec!["A", "B > C", "D"]),
        ("# A\n# B\n".to_owned(), vec!["B"]),
        (String::new(), vec![]),
    ] {
        let found = breadcrumbs(&text);
        assert_eq!(found.iter().map(|(breadcrumb, _)| &**breadcrumb).collect::<Vec<_>>(), expected, "{text}");
    }
}

/// Makes a section with this number of tokens, including the three tokens of its heading.
fn section(name: &str, tokens: usize) -> String {
    format!("## {name}\n\n{}\n", words(tokens - 3))
}

#[test]
fn how_short_and_how_long_a_section_is() {
    for (sizes, expected) in [
        (&[49, 60][..], &[109][..]),
        (&[50, 60], &[50, 60]),
        (&[49, 463], &[512]),
        (&[49, 464], &[49, 464]),
        (&[10, 10, 480], &[500]),
        (&[10, 20, 30, 460], &[60, 460]),
    ] {
        let sections = sizes.iter().enumerate().map(|(index, size)| section(&format!("a{index}"), *size));
        // The parent section is so full that no other section can be joined with it.
        let text = format!("# A\n\n{}\n{}", words(505), sections.collect::<String>());
        let found = breadcrumbs(&text).into_iter().skip(1).map(|(_, tokens)| tokens).collect::<Vec<_>>();
        assert_eq!(found, expected, "{sizes:?}");
    }
}

#[test]
fn what_is_too_long_is_cut_where_it_is_full() {
    let counts = |blocks: &[usize]| {
        let text = blocks.iter().map(|count| words(*count)).collect::<Vec<_>>().join("\n\n");
        breadcrumbs(&text).into_iter().map(|(_, tokens)| tokens).collect::<Vec<_>>()
    };
    assert_eq!(counts(&[200, 312]), [512]);
    assert_eq!(counts(&[200, 313]), [200, 313]);
    // A chunk repeats up to 64 tokens if they fit.
    assert_eq!(counts(&[200, 64, 300]), [264, 364]);
    assert_eq!(counts(&[200, 65, 300]), [265, 300]);
    assert_eq!(counts(&[200, 20, 492]), [220, 512]);
    assert_eq!(counts(&[200, 20, 493]), [220, 493]);
    // Each of the 1,100 characters is one token, so this block must be cut.
    let text = "\u{6570}".repeat(1_100);
    let all = chunk_text(&text, &TextOutline::parse(&text));
    assert_eq!(all.iter().map(|chunk| count_tokens(&text[chunk.range.clone()])).collect::<Vec<_>>(), [512, 512, 76]);
}

#[test]
fn a_block_that_is_too_long_is_cut_between_lines_or_words() {
    // Each word has three tokens, so a cut exactly at the limit would split a word.
    let word = "abcdefghijklmnopqr";
    let line = format!("{word} {word}\n");
    for (text, unit) in
        [(format!("{word} ").repeat(600), word), (format!("```\n{}```\n", line.repeat(300)), line.trim())]
    {
        let all = chunk_text(&text, &TextOutline::parse(&text));
        assert!(all.len() > 3, "{}", all.len());
        let parts: Vec<_> = all.iter().map(|chunk| text[chunk.range.clone()].trim_matches('`')).collect();
        for part in parts {
            let part = part.strip_prefix('\n').filter(|_| text.starts_with('`')).unwrap_or(part);
            assert!(part.starts_with(unit) && part.trim_end().ends_with(unit), "{part:?}");
        }
    }
}

#[test]
fn what_follows_repeats_the_end() {
    let sentence = "Here are some seven words of one. ".repeat(20);
    let text = format!("{sentence}\n\n{}\n\nsmall end\n\n{}\n\n{sentence}", words(300), words(300));
    let chunks = chunk_text(&text, &TextOutline::parse(&text));
    let begins: Vec<_> = chunks.iter().map(|chunk| &text[chunk.range.clone()][..9]).collect();
    assert_eq!(begins, ["Here are ", "small end"]);
    let text = format!("{}\n\n{sentence}\n\n{}", words(200), words(300));
    let chunks = super::chunk_text(&text, &TextOutline::parse(&text));
    let second = &text[chunks[1].range.clone()];
    assert!(second.starts_with("Here are") && chunks[1].range.start < chunks[0].range.end, "{second}");
    assert!((40..=OVERLAP_TOKENS).contains(&count_tokens(&text[chunks[1].range.start..chunks[0].range.end])));
}

/// Makes a markdown block.
fn block() -> impl Strategy<Value = String> {
    let line = "[a-zA-Zé数 ,.:`*_#-]{0,60}";
    prop_oneof![
        (1_usize..900).prop_map(|count| "word and. ".repeat(count / 3 + 1)),
        (1_u8..4, "[a-z]{1,8}").prop_map(|(level, text)| format!("{} {text}", "#".repeat(level.into()))),
        (1_usize..300, "[a-z#| -]{1,12}")
            .prop_map(|(count, line)| format!("```x\n{}```", format!("{line}\n").repeat(count))),
        (1_usize..120, "[a-z]{1,8}")
            .prop_map(|(count, cell)| format!("| a | b |\n|---|---|\n{}", format!("| {cell} | 1 |\n").repeat(count))),
        proptest::collection::vec(line, 1..30)
            .prop_map(|items| items.iter().flat_map(|item| ["- x", item, "\n"]).collect()),
        proptest::collection::vec(line, 1..5).prop_map(|lines| lines.join("\n")),
        (1_usize..4000).prop_map(|count| "x".repeat(count)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn nothing_is_lost_or_torn(blocks in proptest::collection::vec(block(), 0..12)) {
        let text = blocks.join("\n\n");
        let outline = TextOutline::parse(&text);
        let chunks = chunk_text(&text, &outline);
        let mut end = 0;
        let mut last = 0;
        for chunk in &chunks {
            let Range { start, end: own } = chunk.range;
            prop_assert!(start < own && count_tokens(&text[start..own]) <= MAX_TOKENS + OVERLAP_TOKENS / 16, "{}", count_tokens(&text[start..own]));
            prop_assert!(start >= last && own > end, "in order");
            prop_assert!(start <= end || text[end..start].trim().is_empty(), "lost: {:?}", &text[end..start]);
            if start < end {
                prop_assert!(count_tokens(&text[start..end]) <= OVERLAP_TOKENS + 1, "repeats too much");
            }
            (last, end) = (start, own);
        }
        prop_assert!(text[end..].trim().is_empty());
        for block in outline.blocks.iter().filter(|block| block.form == BlockForm::Whole && count_tokens(&text[block.range.clone()]) <= MAX_TOKENS) {
            let is_whole = chunks.iter().any(|chunk| chunk.range.start <= block.range.start && block.range.end <= chunk.range.end);
            prop_assert!(is_whole, "torn: {}", &text[block.range.clone()]);
        }
    }
}
