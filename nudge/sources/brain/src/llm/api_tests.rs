//! Tests the APIs with small servers that record the requests.

use std::sync::{Arc, Mutex};
use std::thread;

use tiny_http::{Header, Response, Server};

use super::*;

/// The path, the headers and the body of a request.
type Asked = (String, Vec<String>, Value);

/// A server that gives these answers in order, and then repeats the last answer. It records the requests.
struct Fake {
    url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    server: Arc<Server>,
}

impl Fake {
    fn new(answers: Vec<(u16, &'static str, Value)>) -> Self {
        let server = Arc::new(Server::http("127.0.0.1:0").unwrap());
        let url = format!("http://{}", server.server_addr().to_ip().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (keep, serve) = (Arc::clone(&asked), Arc::clone(&server));
        thread::spawn(move || {
            for (index, mut request) in serve.incoming_requests().enumerate() {
                let mut text = String::new();
                request.as_reader().read_to_string(&mut text).unwrap();
                let headers = request.headers().iter().map(ToString::to_string).collect();
                let body = serde_json::from_str(&text).unwrap_or_default();
                keep.lock().unwrap().push((request.url().to_owned(), headers, body));
                let (status, pause, body) = &answers[index.min(answers.len() - 1)];
                let text = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
                let mut answer = Response::from_string(text).with_status_code(*status);
                if !pause.is_empty() {
                    answer.add_header(Header::from_bytes("Retry-After", *pause).unwrap());
                }
                let _ = request.respond(answer);
            }
        });
        Self { url, asked, server }
    }

    fn times(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    fn anthropic(&self) -> AnthropicEngine {
        let (url, limit) = (self.url.clone(), Duration::from_secs(20));
        AnthropicEngine { url, key: "none".into(), model: "m".into(), limit }
    }

    fn openai(&self) -> OpenAi {
        OpenAi { url: self.url.clone(), key: Some("none".into()), model: "m".into(), limit: Duration::from_secs(20) }
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.server.unblock();
    }
}

fn question() -> ModelRequest {
    ModelRequest { system: "s".into(), text: "t".into(), schema: json!({"type": "object"}) }
}

fn message() -> Value {
    let call = json!({"type": "tool_use", "name": TOOL, "input": {"units": []}});
    json!({"content": [{"type": "text", "text": "x"}, call], "usage": {"input_tokens": 7, "output_tokens": 2}})
}

#[test]
fn anthropic_is_made_to_use_the_tool() {
    let fake = Fake::new(vec![(200, "", message())]);
    let answer = fake.anthropic().complete(&question()).unwrap();
    assert_eq!(answer.value, json!({"units": []}));
    assert_eq!((answer.cost.input_tokens, answer.cost.output_tokens), (Some(7), Some(2)));
    let (path, headers, body) = fake.asked.lock().unwrap()[0].clone();
    assert_eq!(path, "/v1/messages");
    assert!(headers.iter().any(|header| header.eq_ignore_ascii_case("x-api-key: none")), "{headers:?}");
    assert_eq!((&body["tool_choice"]["name"], &body["messages"][0]["content"]), (&json!(TOOL), &json!("t")));
}

#[test]
fn a_server_that_knows_no_schema_is_asked_in_words() {
    let said = |text: &str| json!({"choices": [{"message": {"content": text}}], "usage": {"prompt_tokens": 3}});
    let fake = Fake::new(vec![
        (400, "", json!({"error": "no json_schema"})),
        (400, "", json!({"error": "no json_object"})),
        (200, "", said("Here:\n```json\n{\"units\": []}\n```")),
    ]);
    let answer = fake.openai().complete(&question()).unwrap();
    assert_eq!((answer.value, answer.cost.input_tokens), (json!({"units": []}), Some(3)));
    let asked = fake.asked.lock().unwrap();
    assert_eq!(asked[0].2["response_format"]["json_schema"]["schema"], json!({"type": "object"}));
    assert_eq!(asked[1].2["response_format"]["type"], "json_object");
    assert!(
        asked[2].2["response_format"].is_null()
            && asked[2].2["messages"][1]["content"].as_str().unwrap().contains("\"object\"")
    );
}

#[test]
fn what_may_pass_is_tried_three_times_and_what_lasts_once() {
    let busy = |status| (status, "0", json!("busy"));
    let fake = Fake::new(vec![busy(429), busy(503), (200, "", message())]);
    fake.anthropic().complete(&question()).unwrap();
    assert_eq!(fake.times(), 3);
    for (answer, times, may_pass, expected) in [
        (busy(500), 3, true, "busy or broken (status 500)"),
        ((429, "3600", json!("busy")), 1, true, "busy or broken (status 429)"),
        ((401, "", json!({})), 1, false, "does not take the key (status 401)"),
        ((302, "", json!({})), 1, false, "refuses with status 302"),
        ((200, "0", json!("garbage {")), 3, true, "answered no JSON"),
        ((200, "", json!({"content": []})), 1, true, "in another form"),
    ] {
        let fake = Fake::new(vec![answer]);
        let fault = fake.anthropic().complete(&question()).unwrap_err();
        assert!(fault.text.contains(expected), "{fault:?}");
        assert_eq!((fault.may_pass, fake.times()), (may_pass, times), "{fault:?}");
    }
}

#[test]
fn faults_of_a_server_with_chat_completions() {
    for (answer, times, may_pass, expected) in [
        ((401, "", json!({"error": "no"})), 1, false, "the server does not take the key (status 401)"),
        ((429, "0", json!("busy")), 3, true, "the server is busy or broken (status 429)"),
        ((429, "3600", json!("busy")), 1, true, "busy or broken (status 429)"),
        ((500, "0", json!("broken")), 3, true, "the server is busy or broken (status 500)"),
        ((200, "0", json!("garbage {")), 3, true, "the server answered no JSON"),
        ((200, "", json!({"choices": []})), 1, true, "the server answered in another form"),
        ((200, "", json!({"choices": [{"message": {"content": "I cannot."}}]})), 1, true, "in another form"),
        ((400, "", json!({})), 3, false, "the server refuses with status 400"),
    ] {
        let fake = Fake::new(vec![answer]);
        let fault = fake.openai().complete(&question()).unwrap_err();
        assert!(fault.text.contains(expected), "{fault:?}");
        assert_eq!((fault.may_pass, fake.times()), (may_pass, times), "{fault:?}");
    }
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let engine = OpenAi { url, key: None, model: "m".into(), limit: Duration::from_millis(200) };
    let fault = engine.complete(&question()).unwrap_err();
    assert!(fault.may_pass && fault.text.contains("no answer in"), "{fault:?}");
}

/// A dry run shows exactly the text that a real run sends.
#[test]
fn a_request_is_sent_as_it_is_shown() {
    let fake = Fake::new(vec![(200, "", message())]);
    fake.anthropic().complete(&question()).unwrap();
    let shown: Value = serde_json::from_str(&fake.anthropic().render_request(&question())).unwrap();
    assert_eq!(fake.asked.lock().unwrap()[0].2, shown);
    let fake = Fake::new(vec![(200, "", json!({"choices": [{"message": {"content": "{}"}}]}))]);
    fake.openai().complete(&question()).unwrap();
    let shown: Value = serde_json::from_str(&fake.openai().render_request(&question())).unwrap();
    assert_eq!(fake.asked.lock().unwrap()[0].2, shown);
}

#[test]
fn a_server_that_says_nothing_is_left() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let engine = AnthropicEngine { url, key: "none".into(), model: "m".into(), limit: Duration::from_millis(200) };
    let fault = engine.complete(&question()).unwrap_err();
    assert!(fault.may_pass && fault.text.contains("no answer in"), "{fault:?}");
}

#[test]
fn github_is_asked_and_what_is_there_is_found() {
    let made = json!({"html_url": "https://github.test/o/r/pull/1"});
    for (answers, expected) in [
        (vec![(201, "", made.clone())], Ok("https://github.test/o/r/pull/1")),
        (vec![(422, "", json!({})), (200, "", json!([made]))], Ok("https://github.test/o/r/pull/1")),
        (vec![(422, "", json!({})), (200, "", json!([]))], Err("GitHub takes no pull request for this branch")),
        (vec![(401, "", json!({}))], Err("GitHub does not take the key (status 401)")),
    ] {
        let fake = Fake::new(answers);
        let request = json!({"title": "t", "head": "nugget/x", "base": "main", "body": "b"});
        let api = crate::capture::pull_request::GithubProject { url: &fake.url, token: "none", owner: "o", name: "r" };
        let made = api.create_pull_request(&request, "nugget/x");
        assert_eq!(made.as_deref().map_err(|fault| fault.text.as_str()), expected);
        let (path, headers, body) = fake.asked.lock().unwrap()[0].clone();
        assert_eq!((path.as_str(), &body), ("/repos/o/r/pulls", &request));
        assert!(headers.iter().any(|header| header.eq_ignore_ascii_case("authorization: Bearer none")), "{headers:?}");
    }
}
