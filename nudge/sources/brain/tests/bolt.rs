//! Tests relations that come from a graph server. With any fault of the server, the answers are the same as without a
//! server, and state the fault.
//!
//! If `NUDGE_TEST_BOLT` is set, the tests also use a real server. `tests/brain/bolt` starts a server and sets the
//! variable.

mod kit;

use std::sync::Arc;

use kit::Desk;
use nudge_core::embed::NoModels;
use serde_json::{Value, json};

/// A fixed time of change, so that the answers of two brains are equal.
const MODIFIED: &str = "last_modified: 2026-11-22T13:43:29Z\n";

/// Writes some notes. Each has relations to other notes.
fn notes(desk: &Desk, count: usize) {
    desk.write("brain.yaml", "brain: 1\n");
    for number in 0..count {
        let [next, far] = [(number + 1) % count, (number * 7 + 3) % count];
        let word = ["retry", "cache", "linen", "queue", "token"][number % 5];
        desk.write(
            &format!("domains/d{}/n{number}.md", number % 3),
            format!("---\nid: n{number}\n{MODIFIED}related: [{{id: n{next}, type: uses}}]\n---\n# Note {number}\n\nA {word} of {number}. [[n{far}]]\n"),
        );
    }
}

fn desk(settings: Vec<(&'static str, String)>, count: usize) -> Desk {
    let desk = Desk::set(Arc::new(NoModels), settings);
    notes(&desk, count);
    desk
}

fn ask(desk: &Desk, question: &str, limit: usize, hops: usize) -> Value {
    desk.call("context", &json!({"task_description": question, "limit": limit, "hops": hops}))
}

/// Asks a question. If the server took too long because the machine was busy, asks again.
fn ask_patiently(desk: &Desk, question: &str, limit: usize, hops: usize) -> Value {
    for _ in 0..9 {
        let answer = ask(desk, question, limit, hops);
        if !said(&answer).iter().any(|why| why.contains("did not answer within")) {
            return answer;
        }
        desk.clock.advance_by(60_000);
    }
    ask(desk, question, limit, hops)
}

/// Returns the messages about the server in an answer.
fn said(answer: &Value) -> Vec<&str> {
    let degraded = answer["degraded"].as_array().unwrap().iter().filter_map(Value::as_str);
    degraded.filter(|why| why.starts_with("bolt: ")).collect()
}

/// Asserts that the answers equal those of a desk without a server, and that they state the reason `why`.
fn answers_without(desk: &Desk, why: &str) {
    let plain = self::desk(Vec::new(), 12);
    if !why.contains("did not answer within") {
        // The failure of this question begins a pause, so the next questions do not reach the server.
        ask_patiently(desk, "retry", 5, 2);
    }
    for question in ["retry", "linen"] {
        let (answer, other) = (ask(desk, question, 5, 2), ask(&plain, question, 5, 2));
        assert_eq!(said(&answer), [why]);
        assert!(!kit::ids(&answer["related"]).is_empty());
        assert_eq!((&answer["units"], &answer["related"]), (&other["units"], &other["related"]));
    }
    assert_eq!(said(&ask(desk, "retry", 4, 2)), [""; 0], "no slot for relations, so nobody asks");
    let status = desk.call("status", &json!({}));
    assert_eq!((&status["graph"], &status["degraded"]), (&json!("index"), &json!([why])));
}

#[cfg(not(feature = "bolt"))]
#[test]
fn built_without() {
    let desk = desk(vec![("brain.bolt", "bolt://127.0.0.1:7687".to_owned())], 12);
    let why = "bolt: bolt://127.0.0.1:7687 is not used: this nudge was built without the feature `bolt`";
    answers_without(&desk, why);
    let refused = desk.refused("rebuild", &json!({"graph": true}));
    assert_eq!(refused.reason(), "E_UNAVAILABLE");
    assert_eq!(refused.message(), format!("{why}; start it and try again, or leave `graph` out."));
}

#[test]
fn without_a_server_a_rebuild_of_it_is_refused() {
    let desk = desk(Vec::new(), 3);
    let refused = desk.refused("rebuild", &json!({"graph": true}));
    assert_eq!(refused.message(), "There is no graph server: the setting `brain.bolt` names it.");
    assert_eq!(desk.call("rebuild", &json!({}))["units"], 3);
}

#[cfg(feature = "bolt")]
mod failing {
    use kit::server::{Fake, Manner};

    use super::*;

    fn fails(manner: Manner, why: &str) -> (Desk, Fake) {
        let fake = Fake::start(manner);
        let settings = vec![("brain.bolt", fake.address()), ("brain.bolt_user", "me".to_owned())];
        let desk = desk(settings, 12);
        answers_without(&desk, &format!("bolt: {} {why}", fake.address()));
        (desk, fake)
    }

    #[test]
    fn nobody_there() {
        let (desk, fake) = fails(Manner::Away, "cannot be reached (connection refused)");
        let refused = desk.refused("rebuild", &json!({"graph": true}));
        let why = format!("bolt: {} cannot be reached (connection refused)", fake.address());
        assert_eq!(refused.message(), format!("{why}; start it and try again, or leave `graph` out."));
        let problems = desk.call("check", &json!({}))["problems"].clone();
        assert_eq!(problems, json!([{"path": "", "kind": "graph", "text": why}]));
        assert_eq!(desk.call("rebuild", &json!({}))["units"], 12);
    }

    #[test]
    fn one_that_takes_calls_and_says_nothing() {
        let (desk, fake) = fails(Manner::Silent, "did not answer within 300 ms");
        assert_eq!(fake.calls(1), 1, "who was silent once is left alone");
        desk.clock.advance_by(60_000);
        ask(&desk, "retry", 5, 2);
        assert_eq!(fake.calls(2), 2);
    }

    #[test]
    fn one_that_hangs_up() {
        fails(Manner::HangsUp, "cannot be reached (unexpected end of file)");
    }

    #[test]
    fn one_that_speaks_something_else() {
        let (desk, _fake) = {
            let fake = Fake::start(Manner::OfTheWeb);
            (desk(vec![("brain.bolt", fake.address())], 12), fake)
        };
        let answer = ask_patiently(&desk, "retry", 5, 2);
        assert!(said(&answer)[0].contains(" cannot be used ("), "{answer}");
    }

    #[test]
    fn one_that_refuses_the_password() {
        let word = ["open", "sesame"].concat();
        let fake = Fake::start(Manner::Refuses);
        let settings =
            [("brain.bolt", &fake.address()), ("brain.bolt_password", &word), ("brain.bolt_user", &"me".into())];
        let desk = desk(settings.map(|(name, text)| (name, text.clone())).into(), 12);
        answers_without(&desk, &format!("bolt: {} refuses the user or the password", fake.address()));
        let told = format!("{}{:?}", desk.call("status", &json!({})), desk.refused("rebuild", &json!({"graph": true})));
        assert!(!told.contains(&word));
        assert!(fake.heard(&word), "it got the password of the settings");
    }

    #[test]
    fn one_without_encryption_learns_nothing_where_it_is_wanted() {
        let word = ["open", "sesame"].concat();
        let fake = Fake::start(Manner::Refuses);
        let address = fake.address().replace("bolt://", "bolt+s://");
        let settings = [("brain.bolt", &address), ("brain.bolt_password", &word), ("brain.bolt_user", &"me".into())];
        let desk = desk(settings.map(|(name, text)| (name, text.clone())).into(), 12);
        let answer = ask(&desk, "retry", 5, 2);
        assert!(said(&answer)[0].starts_with(&format!("bolt: {address} ")), "{answer}");
        // The caller may have stopped waiting while the root certificates were read. Nudge connects to the server
        // anyway.
        assert!(fake.calls(1) == 1 && !fake.heard(&word));
    }

    #[test]
    fn one_that_falls_silent_holds_a_few_threads_at_most() {
        let (desk, fake) = fails(Manner::FallsSilent, "did not answer within 300 ms");
        for _ in 0..10 {
            desk.clock.advance_by(60_000);
            ask(&desk, "retry", 5, 2);
        }
        desk.clock.advance_by(60_000);
        let why = format!("bolt: {} has left 8 questions without an answer", fake.address());
        assert_eq!(said(&ask(&desk, "retry", 5, 2)), [why]);
        assert_eq!(fake.calls(8), 8);
    }
}

/// Tests a real server.
#[cfg(feature = "bolt")]
mod real {
    use kit::server::{Proxy, settings};

    use super::*;

    /// Waits until the server has the state of the index.
    fn is_in_step(desk: &Desk) {
        desk.work_until(|| {
            desk.clock.advance_by(60_000);
            desk.call("status", &json!({}))["graph"] != "index"
        });
    }

    /// Waits until the server has the state of the index. Asserts that `check` then finds no difference.
    fn catch_up(desk: &Desk) {
        is_in_step(desk);
        assert_eq!(desk.call("check", &json!({}))["problems"], json!([]));
    }

    /// Asserts that the server and the index give the same answers.
    fn agree(desk: &Desk, plain: &Desk) {
        let mut related = 0;
        for (question, limit, hops) in
            [("retry", 5, 1), ("cache", 5, 3), ("linen token", 10, 2), ("queue", 20, 3), ("token 7", 19, 2)]
        {
            let (answer, other) = (ask_patiently(desk, question, limit, hops), ask(plain, question, limit, hops));
            assert_eq!(said(&answer), [""; 0], "{question}");
            assert_eq!((&answer["units"], &answer["related"]), (&other["units"], &other["related"]), "{question}");
            let found = answer["related"].as_array().unwrap().len();
            assert!(found <= limit / 5, "{question}");
            related += found;
        }
        assert!(related > 5, "{related}");
    }

    #[test]
    fn answers_are_those_of_the_index() {
        let Some(settings) = settings() else { return };
        let (desk, plain) = (desk(settings, 60), desk(Vec::new(), 60));
        assert!(said(&ask_patiently(&desk, "retry", 5, 2))[0].ends_with(" has not caught up with the files yet"));
        let rebuilt = desk.call("rebuild", &json!({"graph": true}));
        assert_eq!([&rebuilt["graph"]["units"], &rebuilt["graph"]["relations"]], [60, 120]);
        agree(&desk, &plain);
        is_in_step(&desk);
        for desk in [&desk, &plain] {
            desk.write(
                "domains/d0/new.md",
                format!("---\nid: new\n{MODIFIED}related: [n3, n4]\n---\n# Retry of linen\n\nA new retry.\n"),
            );
            std::fs::remove_file(desk.path("domains/d1/n1.md")).unwrap();
            std::fs::rename(desk.path("domains/d2/n2.md"), desk.path("domains/d2/m2.md")).unwrap();
            desk.write("domains/d0/n6.md", format!("---\n{MODIFIED}---\n# Another note\n\nA retry without an id.\n"));
        }
        assert!(said(&ask_patiently(&desk, "retry", 5, 2))[0].ends_with(" has not caught up with the files yet"));
        let of_files = |desk: &Desk| {
            let problems = desk.call("check", &json!({}))["problems"].as_array().unwrap().clone();
            problems.into_iter().filter(|problem| problem["kind"] != "dangling").collect::<Vec<_>>()
        };
        assert_eq!(of_files(&desk).len(), 1);
        is_in_step(&desk);
        assert_eq!(of_files(&desk), [Value::Null; 0]);
        agree(&desk, &plain);
    }

    #[test]
    fn another_process_finds_what_the_first_has_written() {
        let Some(settings) = settings() else { return };
        let (mut desk, plain) = (desk(settings, 60), desk(Vec::new(), 60));
        catch_up(&desk);
        desk.again(Arc::new(NoModels));
        agree(&desk, &plain);
    }

    #[test]
    fn a_wrong_password() {
        let Some(mut settings) = settings() else { return };
        settings.iter_mut().filter(|(name, _)| *name == "brain.bolt_password").for_each(|(_, word)| word.push('x'));
        let why = format!("bolt: {} refuses the user or the password", settings[0].1);
        answers_without(&desk(settings, 12), &why);
    }

    #[test]
    fn a_server_that_dies_midway_and_comes_back() {
        let Some(mut settings) = settings() else { return };
        let proxy = Proxy::start(&settings[0].1);
        settings[0].1 = proxy.address();
        let (desk, plain) = (desk(settings, 300), desk(Vec::new(), 300));
        // The connection to the server ends while the units are written.
        proxy.end_after(20_000);
        let rebuilt = desk.call("rebuild", &json!({"graph": true}));
        assert_eq!((&rebuilt["units"], &rebuilt["graph"]), (&json!(300), &Value::Null));
        assert_eq!(said(&rebuilt).len(), 1, "{rebuilt}");
        let answer = ask_patiently(&desk, "retry", 10, 2);
        assert_eq!(said(&answer), [format!("bolt: {} cannot be reached (connection refused)", proxy.address())]);
        assert_eq!(answer["related"], ask(&plain, "retry", 10, 2)["related"]);
        proxy.begin_again();
        let rebuilt = desk.call("rebuild", &json!({"graph": true}));
        assert_eq!(rebuilt["graph"]["units"], 300, "{rebuilt}");
        agree(&desk, &plain);
        // The open connections end between two questions. The next question still succeeds.
        proxy.end();
        proxy.begin_again();
        agree(&desk, &plain);
    }
}
