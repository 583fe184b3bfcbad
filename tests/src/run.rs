//! Runs one case with one driver.

use std::fs;
use std::path::Path;

use serde_json::value::RawValue;

use crate::drivers::Driver;
use crate::format::{Call, Case, Step, Write};
use crate::json::{Json, shorten, text_at};
use crate::matcher::{error_matches, matches};
use crate::resolve::{Saved, resolve};

/// Runs a case. The error names the first step that failed, with its request and its answer.
pub fn run(driver: &mut dyn Driver, case: &Case) -> Result<(), String> {
    let mut saved = Saved::new();
    let folder = case.needs.as_ref().map(|_| tempfile::TempDir::with_prefix("nudge-vectors-")).transpose();
    let folder = folder.map_err(|e| e.to_string())?;
    if let Some(folder) = &folder {
        let path = folder.path().canonicalize().map_err(|e| e.to_string())?;
        saved.insert("folder".to_owned(), serde_json::json!(path).to_string());
    }
    let start = |driver: &mut dyn Driver| match &case.needs {
        Some(_) => driver.start_session(&case.config),
        None => driver.start(&case.config),
    };
    start(driver)?;
    for (i, step) in case.steps.iter().enumerate() {
        let done = match step {
            Step::Call(call) => run_call(driver, call, &mut saved),
            Step::Advance(step) => driver.advance(step.advance_ms),
            Step::Write(step) => write(folder.as_ref().map(tempfile::TempDir::path), step, &saved),
            Step::Restart(_) => start(driver),
        };
        done.map_err(|e| format!("step {} of {}: {e}\n  why: {}", i + 1, case.steps.len(), case.why))?;
    }
    Ok(())
}

fn write(folder: Option<&Path>, step: &Write, saved: &Saved) -> Result<(), String> {
    let file = folder.ok_or("a case that writes files says what it `needs`")?.join(&step.write);
    let text = step.text.as_ref().map(|text| resolve(text, saved)).transpose()?;
    let done = match &text {
        Some(Json::String(text)) => {
            file.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&file, text))
        }
        Some(other) => return Err(format!("{} is no text of a file", other.text())),
        None => fs::remove_file(&file),
    };
    done.map_err(|error| error.to_string())
}

fn run_call(driver: &mut dyn Driver, call: &Call, saved: &mut Saved) -> Result<(), String> {
    let params = params(call, saved)?;
    let answer = driver.call(&format!("nudge.{}", call.call), &params);
    judge(call, answer, saved).map_err(|e| format!("{e}\n  sent: nudge.{} {}", call.call, shorten(params.get())))
}

fn params(call: &Call, saved: &Saved) -> Result<Box<RawValue>, String> {
    match (&call.params, &call.params_raw) {
        (Some(params), None) => resolve(params, saved)?.raw(),
        (None, Some(text)) => RawValue::from_string(text.clone()).map_err(|e| e.to_string()),
        _ => Err("a call has either params or params_raw".to_owned()),
    }
}

fn judge(call: &Call, answer: Result<Box<RawValue>, serde_json::Value>, saved: &mut Saved) -> Result<(), String> {
    let (text, verdict) = match (answer, &call.error) {
        (Ok(result), None) => {
            let text = result.get().to_owned();
            let verdict = judge_result(call, &text, saved);
            (text, verdict)
        }
        (Err(error), Some(expected)) => {
            let text = error.to_string();
            let verdict = error_matches(&resolve(expected, saved)?, &Json::parse(&text)?);
            (text, verdict)
        }
        (Ok(result), Some(expected)) => {
            let verdict = Err(format!("expected the error {}", expected.text()));
            (result.get().to_owned(), verdict)
        }
        (Err(error), None) => (error.to_string(), Err("expected no error".to_owned())),
    };
    verdict.and_then(|()| judge_text(call, &text, saved)).map_err(|e| format!("{e}\n  got: {}", shorten(&text)))
}

fn judge_result(call: &Call, text: &str, saved: &mut Saved) -> Result<(), String> {
    if let Some(expected) = &call.expect {
        matches(&resolve(expected, saved)?, &Json::parse(text)?)?;
    }
    for (pointer, name) in &call.same_text {
        let want = saved.get(name).ok_or_else(|| format!("nothing saved as {name}"))?;
        let have = text_at(text, pointer).ok_or_else(|| format!("nothing at {pointer:?}"))?;
        if want != have {
            return Err(format!("text at {pointer:?} differs from {name}: {}", difference(want, have)));
        }
    }
    for (name, pointer) in &call.save {
        let part = text_at(text, pointer).ok_or_else(|| format!("nothing at {pointer:?}"))?;
        saved.insert(name.clone(), part.to_owned());
    }
    Ok(())
}

fn judge_text(call: &Call, text: &str, saved: &Saved) -> Result<(), String> {
    for (wanted, parts) in [(true, &call.text_has), (false, &call.text_lacks)] {
        for part in parts {
            let part = resolve(part, saved)?;
            let part = part.as_str().ok_or("text_has and text_lacks hold strings")?;
            if text.contains(part) != wanted {
                let verb = if wanted { "lacks" } else { "holds" };
                return Err(format!("the answer's text {verb} {part:?}"));
            }
        }
    }
    Ok(())
}

/// Returns both texts, beginning shortly before their first difference.
fn difference(want: &str, have: &str) -> String {
    let same = want.chars().zip(have.chars()).take_while(|(a, b)| a == b).count();
    let part = |text: &str| text.chars().skip(same.saturating_sub(40)).take(120).collect::<String>();
    format!("\n    want ...{}\n    have ...{}", part(want), part(have))
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::format::Config;

    /// A driver with prepared answers, which tests the runner itself.
    struct Parrot(VecDeque<Result<&'static str, &'static str>>);

    impl Driver for Parrot {
        fn name(&self) -> &'static str {
            "parrot"
        }
        fn start(&mut self, _: &Config) -> Result<(), String> {
            Ok(())
        }
        fn call(&mut self, _: &str, _: &RawValue) -> Result<Box<RawValue>, serde_json::Value> {
            match self.0.pop_front().unwrap() {
                Ok(text) => Ok(RawValue::from_string(text.to_owned()).unwrap()),
                Err(text) => Err(serde_json::from_str(text).unwrap()),
            }
        }
        fn advance(&mut self, _: u64) -> Result<(), String> {
            Ok(())
        }
    }

    fn outcome(steps: &str, answers: &[Result<&'static str, &'static str>]) -> Result<(), String> {
        let case = format!(r#"{{"name":"n","why":"w","steps":{steps}}}"#);
        let case: Case = serde_json::from_str(&case).unwrap();
        run(&mut Parrot(answers.iter().copied().collect()), &case)
    }

    const LOST: Result<&str, &str> = Err(r#"{"code":40401,"message":"Not there.","data":{"reason":"E_NOT_FOUND"}}"#);

    #[test]
    fn right_answers_pass() {
        let steps = r#"[{"call":"a","params":{},"expect":{"x":1},"save":{"p":"/y"}},{"advance_ms":5},
            {"call":"b","params":{"z":{"$ref":"p"}},"same_text":{"/q":"p"},"text_has":["q"],"text_lacks":["w"]},
            {"restart":true},{"call":"c","params_raw":"[]","error":"E_NOT_FOUND"},{"call":"d","params":{}}]"#;
        let answers = [Ok(r#"{"x":1,"y":{"b":1,"a":2}}"#), Ok(r#"{"q":{"b":1,"a":2}}"#), LOST, Ok("{}")];
        assert_eq!(outcome(steps, &answers), Ok(()));
    }

    #[test]
    fn wrong_answers_fail() {
        for (steps, answers) in [
            (r#"[{"call":"a","params":{},"expect":{"x":1}}]"#, vec![Ok(r#"{"x":2}"#)]),
            (r#"[{"call":"a","params":{},"expect":{"x":1}}]"#, vec![LOST]),
            (r#"[{"call":"a","params":{}}]"#, vec![LOST]),
            (r#"[{"call":"a","params":{},"error":"E_NOT_FOUND"}]"#, vec![Ok("{}")]),
            (r#"[{"call":"a","params":{},"error":"E_INVALID"}]"#, vec![LOST]),
            (r#"[{"call":"a","params":{},"text_has":["x"]}]"#, vec![Ok("{}")]),
            (
                r#"[{"call":"a","params":{},"text_lacks":["not there"],"error":"E_NOT_FOUND","text_has":["x"]}]"#,
                vec![LOST],
            ),
            (r#"[{"call":"a","params":{},"error":"E_NOT_FOUND","text_lacks":["there"]}]"#, vec![LOST]),
            (r#"[{"call":"a","params":{},"save":{"p":"/x"}}]"#, vec![Ok("{}")]),
            (
                r#"[{"call":"a","params":{},"save":{"p":""}},{"call":"a","params":{},"same_text":{"":"p"}}]"#,
                vec![Ok(r#"{"b":1,"a":2}"#), Ok(r#"{"a":2,"b":1}"#)],
            ),
            (r#"[{"call":"a"}]"#, vec![Ok("{}")]),
        ] {
            assert!(outcome(steps, &answers).is_err(), "{steps}");
        }
    }
}
