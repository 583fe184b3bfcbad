//! Compares an answer with an expectation. The answer must contain everything that is expected, and may contain more.

use crate::json::{Json, shorten};

/// The largest difference between two numbers that count as equal.
pub const TOLERANCE: f64 = 1e-4;

/// Compares `actual` with `expected`. The error names the position and both values.
pub fn matches(expected: &Json, actual: &Json) -> Result<(), String> {
    check(expected, Some(actual), "", false)
}

fn check(expected: &Json, actual: Option<&Json>, path: &str, exact: bool) -> Result<(), String> {
    if let Some((operator, argument)) = expected.operator() {
        return check_operator(operator, argument, actual, path, exact);
    }
    let Some(actual) = actual else {
        return Err(format!("{}: expected {}, but it is absent", place(path), shorten(&expected.text())));
    };
    match (expected, actual) {
        (Json::Object(want), Json::Object(have)) => {
            for (key, value) in want {
                check(value, actual.get(key), &format!("{path}/{key}"), exact)?;
            }
            let extra = have.iter().find(|(key, _)| exact && expected.get(key).is_none());
            match extra {
                Some((key, _)) => Err(format!("{path}/{key}: must not be there")),
                None => Ok(()),
            }
        }
        (Json::Array(want), Json::Array(have)) => {
            if want.len() != have.len() {
                return Err(format!(
                    "{}: expected {} elements, got {}: {}",
                    place(path),
                    want.len(),
                    have.len(),
                    shorten(&actual.text())
                ));
            }
            want.iter()
                .zip(have)
                .enumerate()
                .try_for_each(|(i, (w, h))| check(w, Some(h), &format!("{path}/{i}"), exact))
        }
        (Json::Number(want), Json::Number(have)) if near(want, have) => Ok(()),
        _ if expected == actual => Ok(()),
        _ => Err(format!("{}: expected {}, got {}", place(path), shorten(&expected.text()), shorten(&actual.text()))),
    }
}

fn check_operator(
    operator: &str,
    argument: &Json,
    actual: Option<&Json>,
    path: &str,
    exact: bool,
) -> Result<(), String> {
    let got = || actual.map_or("nothing".to_owned(), |a| shorten(&a.text()));
    let verdict = match (operator, argument, actual) {
        ("$absent", Json::Bool(true), actual) => actual.is_none(),
        ("$any", Json::Bool(true), actual) => actual.is_some(),
        ("$exact", argument, actual) => return check(argument, actual, path, true),
        ("$len", n, actual) if n.as_usize().is_some() => match actual {
            Some(Json::Array(items)) => Some(items.len()) == n.as_usize(),
            _ => false,
        },
        ("$contains", Json::String(part), actual) => {
            actual.and_then(Json::as_str).is_some_and(|s| s.contains(part.as_str()))
        }
        ("$has", Json::Array(wanted), actual) => match actual {
            Some(Json::Array(items)) => {
                wanted.iter().all(|want| items.iter().any(|item| check(want, Some(item), path, exact).is_ok()))
            }
            _ => false,
        },
        _ => return Err(format!("{}: no such operator: {operator} {}", place(path), argument.text())),
    };
    if verdict {
        Ok(())
    } else {
        Err(format!("{}: expected {operator} {}, got {}", place(path), argument.text(), got()))
    }
}

fn near(want: &serde_json::Number, have: &serde_json::Number) -> bool {
    match (want.as_f64(), have.as_f64()) {
        (Some(want), Some(have)) => (want - have).abs() <= TOLERANCE + f64::EPSILON,
        _ => false,
    }
}

fn place(path: &str) -> &str {
    if path.is_empty() { "(whole answer)" } else { path }
}

/// Returns the error code that belongs to a `data.reason`; `None` if there is no such reason.
#[must_use]
pub fn code_of(reason: &str) -> Option<i64> {
    Some(match reason {
        "E_INVALID" => 40001,
        "E_SECRET_REJECTED" => 40002,
        "E_SCOPE_INVALID" => 40003,
        "E_NOT_FOUND" => 40401,
        "E_CONFLICT" => 40901,
        "E_QUOTA" => 42901,
        "E_UNAVAILABLE" => 50301,
        _ => return None,
    })
}

/// Compares an error object `{code, message, data}` with the `error` of a step.
pub fn error_matches(expected: &Json, actual: &Json) -> Result<(), String> {
    let message = actual.get("message").and_then(Json::as_str).unwrap_or_default();
    if message.is_empty() || message.contains('\n') {
        return Err(format!("message must be one line of text: {}", actual.text()));
    }
    match expected {
        Json::String(reason) => {
            let code = code_of(reason).ok_or_else(|| format!("no such error: {reason}"))?;
            let data = Json::Object(vec![("reason".to_owned(), expected.clone())]);
            let code = Json::Number(code.into());
            matches(&Json::Object(vec![("code".to_owned(), code), ("data".to_owned(), data)]), actual)
        }
        Json::Object(pairs) => {
            for (key, value) in pairs {
                match (key.as_str(), value) {
                    ("code" | "data", _) => check(value, actual.get(key), &format!("/{key}"), false)?,
                    ("message_contains", Json::String(part)) if message.contains(part.as_str()) => {}
                    ("message_contains", _) => {
                        return Err(format!("/message: expected {} in {message:?}", value.text()));
                    }
                    _ => return Err(format!("no such field of error: {key}")),
                }
            }
            Ok(())
        }
        other => Err(format!("error is a reason or an object, not {}", other.text())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(text).unwrap()
    }

    #[track_caller]
    fn good(expected: &str, actual: &str) {
        assert_eq!(matches(&json(expected), &json(actual)), Ok(()));
    }

    #[track_caller]
    fn bad(expected: &str, actual: &str) {
        assert!(matches(&json(expected), &json(actual)).is_err(), "{expected} matched {actual}");
    }

    #[test]
    fn objects_match_as_subsets_arrays_element_by_element() {
        good(r#"{"a":1}"#, r#"{"b":2,"a":1}"#);
        good(r#"{"a":[{"b":1},{}]}"#, r#"{"a":[{"b":1,"c":2},{"d":3}]}"#);
        good("[]", "[]");
        bad(r#"{"a":1}"#, r#"{"a":2}"#);
        bad(r#"{"a":1}"#, r#"{"b":1}"#);
        bad(r#"{"a":null}"#, "{}");
        bad(r#"{"a":1}"#, r#"{"a":"1"}"#);
        bad(r#"{"a":false}"#, r#"{"a":null}"#);
        bad("[]", "[1]");
        bad("[1,2]", "[2,1]");
        bad("[1]", "[1,1]");
        bad("{}", "[]");
    }

    #[test]
    fn numbers_match_within_the_tolerance() {
        good("0.3", "0.3001");
        good("5", "5.0");
        bad("0.3", "0.3002");
        bad("5", "6");
    }

    #[test]
    fn operators() {
        good(r#"{"a":{"$absent":true}}"#, r#"{"b":1}"#);
        bad(r#"{"a":{"$absent":true}}"#, r#"{"a":null}"#);
        good(r#"{"a":{"$any":true}}"#, r#"{"a":null}"#);
        bad(r#"{"a":{"$any":true}}"#, "{}");
        good(r#"{"$len":2}"#, "[1,2]");
        bad(r#"{"$len":2}"#, "[1]");
        bad(r#"{"$len":2}"#, r#""ab""#);
        good(r#"{"$contains":"ell"}"#, r#""hello""#);
        bad(r#"{"$contains":"elk"}"#, r#""hello""#);
        bad(r#"{"$contains":"1"}"#, "1");
        good(r#"{"$has":[{"k":2},{"k":1}]}"#, r#"[{"k":1,"x":0},{"k":2},{"k":3}]"#);
        bad(r#"{"$has":[{"k":4}]}"#, r#"[{"k":1}]"#);
        bad(r#"{"a":{"$has":["x"]}}"#, "{}");
    }

    #[test]
    fn exact_allows_nothing_more_and_may_hold_operators() {
        good(r#"{"a":{"$exact":{"x":1,"y":{"$any":true}}}}"#, r#"{"b":0,"a":{"y":[],"x":1}}"#);
        bad(r#"{"a":{"$exact":{"x":1}}}"#, r#"{"a":{"x":1,"y":2}}"#);
        bad(r#"{"$exact":[{"x":1}]}"#, r#"[{"x":1,"y":2}]"#);
        bad(r#"{"$exact":{}}"#, r#"{"x":1}"#);
    }

    #[test]
    fn an_unknown_operator_fails() {
        bad(r#"{"a":{"$lenght":1}}"#, r#"{"a":[1]}"#);
        bad(r#"{"a":{"$any":1}}"#, r#"{"a":[1]}"#);
    }

    #[test]
    fn errors() {
        let actual = json(r#"{"code":42901,"message":"Too many.","data":{"reason":"E_QUOTA","limit":"hints"}}"#);
        let ok = |text: &str| error_matches(&json(text), &actual).is_ok();
        assert!(ok(r#""E_QUOTA""#));
        assert!(ok(r#"{"code":42901,"data":{"limit":"hints"},"message_contains":"many"}"#));
        assert!(!ok(r#""E_INVALID""#));
        assert!(!ok(r#""E_NOPE""#));
        assert!(!ok(r#"{"code":40001}"#));
        assert!(!ok(r#"{"data":{"limit":"bytes"}}"#));
        assert!(!ok(r#"{"message_contains":"few"}"#));
        assert!(!ok(r#"{"reason":"E_QUOTA"}"#));
        let wrong_code = json(r#"{"code":1,"message":"m","data":{"reason":"E_QUOTA"}}"#);
        assert!(error_matches(&json(r#""E_QUOTA""#), &wrong_code).is_err());
        let silent = json(r#"{"code":42901,"message":"","data":{"reason":"E_QUOTA"}}"#);
        assert!(error_matches(&json(r#""E_QUOTA""#), &silent).is_err());
    }
}
