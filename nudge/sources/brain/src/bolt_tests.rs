use nudge_core::clock::ManualClock;
use nudge_core::source::SourceHost;

use super::*;
use crate::source::SOURCE;

fn bolt(settings: &[(&str, &str)], clock: Arc<dyn Clock>) -> Option<BoltServer> {
    let place = tempfile::tempdir().unwrap();
    BoltServer::from_settings(&SourceHost::new_alone(place.path(), &SOURCE, settings).unwrap().settings, clock)
}

/// Returns the server that `NUDGE_TEST_BOLT` names; `None` without the variable. `tests/brain/bolt` starts a server and
/// sets the variable.
#[cfg(feature = "bolt")]
pub fn server() -> Option<BoltServer> {
    let Ok(address) = std::env::var("NUDGE_TEST_BOLT") else {
        eprintln!("skipped: NUDGE_TEST_BOLT names no server; tests/brain/bolt starts one");
        return None;
    };
    let read_variable = |name: &str| std::env::var(format!("NUDGE_TEST_BOLT_{name}")).unwrap_or_default();
    let (user, password, database) = (read_variable("USER"), read_variable("PASSWORD"), read_variable("DATABASE"));
    let settings = [
        ("brain.bolt", &*address),
        ("brain.bolt_user", &*user),
        ("brain.bolt_password", &*password),
        ("brain.bolt_database", &*database),
    ];
    bolt(&settings, Arc::new(nudge_core::clock::SystemClock))
}

#[test]
fn in_the_clear_nothing_goes_to_another_machine() {
    for (address, known) in [
        ("bolt://127.0.0.1:7687", Some(("127.0.0.1", 7687, false))),
        ("bolt://localhost", Some(("localhost", 7687, false))),
        ("bolt://[::1]:17/", Some(("::1", 17, false))),
        ("bolt+s://graph.example:17687", Some(("graph.example", 17687, true))),
        ("bolt://graph.example:7687", None),
        ("bolt://10.0.0.7", None),
        ("bolt://localhost.example", None),
        ("bolt+ssc://graph.example", None),
        ("neo4j://localhost", None),
        ("http://localhost", None),
        ("localhost:7687", None),
        ("bolt://", None),
        ("bolt://me:word@localhost:7687", None),
        ("bolt://localhost:99999", None),
        ("bolt://localhost/x", None),
        ("bolt://[::1", None),
        ("bolt://[::1]x", None),
    ] {
        let place = parse_address(address);
        let place = place.as_ref().ok().map(|(host, port, is_encrypted)| (&**host, *port, *is_encrypted));
        assert_eq!(place, known, "{address}");
    }
}

#[test]
fn an_address_that_is_none_is_not_repeated() {
    let clock = Arc::new(ManualClock::new(0));
    let word = ["open", "sesame"].concat();
    let bolt = bolt(&[("brain.bolt", &format!("bolt://me:{word}@10.0.0.7"))], clock).unwrap();
    let why = bolt.run_queries(Vec::new(), Duration::ZERO).unwrap_err();
    assert_eq!(why, "bolt: brain.bolt must be bolt://HOST:PORT of this machine, or bolt+s://HOST:PORT");
    assert!(!bolt.name().contains(&word));
}

#[test]
fn without_the_setting_there_is_none() {
    assert!(bolt(&[("brain.bolt_user", "me")], Arc::new(ManualClock::new(0))).is_none());
}

#[test]
fn one_that_failed_is_left_alone_for_a_minute() {
    let clock = Arc::new(ManualClock::new(0));
    let bolt = bolt(&[("brain.bolt", "bolt://127.0.0.1:7687")], Arc::clone(&clock) as _).unwrap();
    let fails = || bolt.unless_broken(|| Err::<(), _>("why".to_owned()));
    assert_eq!(bolt.unless_broken(|| Ok(1)), Ok(1));
    assert_eq!(fails(), Err("why".to_owned()));
    assert_eq!(bolt.unless_broken(|| Ok(1)), Err("why".to_owned()), "it is not asked");
    clock.advance_by(BREAK);
    assert_eq!((bolt.break_reason(), bolt.unless_broken(|| Ok(1))), (None, Ok(1)));
    assert_eq!(fails(), Err("why".to_owned()));
    bolt.mark_working();
    assert_eq!(bolt.unless_broken(|| Ok(2)), Ok(2));
}
