//! Tests the MCP resources of the store and the notifications of changes, over HTTP and stdio, with both protocols.

use crate::kit;

use kit::mcp::{Client, Http, META, Stdio, delete, everywhere, request, set};
use kit::{Serve, home};
use serde_json::{Value, json};

/// Names that a URI must percent-encode, in byte order; each with its encoded form.
const NAMES: [(&str, &str); 4] = [
    ("a b/c?d#e%", "a%20b%2Fc%3Fd%23e%25"),
    ("plain-1.0_~", "plain-1.0_~"),
    ("ä", "%C3%A4"),
    ("日本", "%E6%97%A5%E6%9C%AC"),
];

#[test]
fn resources() {
    let home = home();
    let prepare = |serve: &Serve| {
        for (name, _) in NAMES {
            set(serve, name, "k");
        }
        let secret = json!({"component": "ä", "key": "s", "value": "hush", "meta": {"sensitivity": "secret"}});
        assert!(serve.call("nudge.set_hint", &secret)["result"].is_object());
    };
    everywhere(&home.path().join("run"), prepare, |client, modern| {
        let listed = client.result("resources/list", json!({}));
        let uris: Vec<_> =
            listed["resources"].as_array().unwrap().iter().map(|resource| resource["uri"].clone()).collect();
        let expected = NAMES.map(|(_, encoded)| format!("nudge://component/{encoded}"));
        assert_eq!(uris[..2], ["nudge://components", "nudge://examples"]);
        assert_eq!(uris[2..], expected);
        assert!(listed.get("nextCursor").is_none() && listed["resources"][2]["mimeType"] == "application/json");
        let page = client.result("resources/read", json!({"uri": "nudge://examples"}))["contents"][0].clone();
        assert_eq!(page["mimeType"], "text/markdown");
        assert!(page["text"].as_str().unwrap().starts_with("# Ten hints worth storing"), "{page}");

        let mut read = |uri: &str| client.ask("resources/read", json!({"uri": uri}));
        let text = |answer: &Value| {
            let contents = &answer["result"]["contents"][0];
            assert_eq!(contents["mimeType"], "application/json", "{answer}");
            serde_json::from_str::<Value>(contents["text"].as_str().unwrap()).unwrap()
        };
        let components = read("nudge://components");
        assert_eq!(text(&components)["components"][2], json!({"name": "ä", "hint_count": 2}));
        if modern {
            let cached = &components["result"];
            assert_eq!((&cached["ttlMs"], &cached["cacheScope"]), (&json!(0), &json!("private")), "{cached}");
        }
        for ((name, _), uri) in NAMES.iter().zip(&expected) {
            let component = read(uri);
            assert_eq!(component["result"]["contents"][0]["uri"], *uri);
            let hints = &text(&component)["components"][name]["hints"];
            assert!(hints["k"].is_object() || hints["k"].is_string(), "{hints}");
            assert!(hints.get("s").is_none(), "secrets are left out");
        }
        let long = format!("nudge://component/{}", "x".repeat(300));
        for uri in
            ["nudge://component/none", "nudge://component/", "nudge://component/%ff", "file:///etc/passwd", &long]
        {
            let unknown = &read(uri)["error"];
            assert_eq!(
                (&unknown["code"], &unknown["data"]["uri"]),
                (&json!(if modern { -32602 } else { -32002 }), &json!(uri))
            );
        }

        let templates = client.result("resources/templates/list", json!({}));
        assert_eq!(templates["resourceTemplates"][0]["uriTemplate"], "nudge://component/{name}");
        let mut complete = |uri: &str, value: &str| {
            let params =
                json!({"ref": {"type": "ref/resource", "uri": uri}, "argument": {"name": "name", "value": value}});
            client.result("completion/complete", params)["completion"]["values"].clone()
        };
        assert_eq!(complete("nudge://component/{name}", "pl"), json!(["plain-1.0_~"]));
        assert_eq!(complete("nudge://component/{name}", ""), json!(NAMES.map(|(name, _)| name)));
        assert_eq!(complete("nudge://other/{name}", ""), json!([]));
    });
}

#[test]
fn long_lists_have_pages() {
    let home = home();
    let many = |serve: &Serve| {
        let components: serde_json::Map<_, _> =
            (0..250).map(|number| (format!("c{number:03}"), json!({"hints": {"k": "v"}}))).collect();
        let payload = json!({"schema_version": "1.0", "components": components});
        assert_eq!(serve.call("nudge.import", &json!({"payload": payload}))["result"]["imported"], 250);
    };
    everywhere(&home.path().join("run"), many, |client, _| {
        let (mut uris, mut sizes, mut params) = (Vec::new(), Vec::new(), json!({}));
        loop {
            let page = client.result("resources/list", params);
            let resources = page["resources"].as_array().unwrap();
            sizes.push(resources.len());
            uris.extend(resources.iter().map(|resource| resource["uri"].as_str().unwrap().to_owned()));
            let Some(cursor) = page.get("nextCursor") else { break };
            params = json!({"cursor": cursor});
        }
        assert_eq!(sizes, [100, 100, 52]);
        assert!(uris[2..].is_sorted() && uris[251] == "nudge://component/c249", "{uris:?}");
        assert_eq!(client.ask("resources/list", json!({"cursor": "x"}))["error"]["code"], -32602);
        let params = json!({"ref": {"type": "ref/resource", "uri": "nudge://component/{name}"}, "argument": {"name": "name", "value": "c"}});
        let completion = &client.result("completion/complete", params)["completion"];
        assert_eq!((&completion["total"], &completion["hasMore"]), (&json!(250), &json!(true)));
    });
}

/// Makes changes and checks the client's notifications. The client watches `nudge://components`, the component `a b`,
/// and the list of resources.
fn check_heard(serve: &Serve, mut hear: impl FnMut() -> Value) {
    let mut expect = |expected: &[&str]| {
        let mut heard: Vec<_> = expected
            .iter()
            .map(|_| hear())
            .map(|message| {
                let method = message["method"].as_str().unwrap_or_else(|| panic!("{message}"));
                message["params"]["uri"].as_str().unwrap_or(method).to_owned()
            })
            .collect();
        heard.sort_unstable();
        assert_eq!(heard, expected);
    };
    let (changed, component, components) =
        ("notifications/resources/list_changed", "nudge://component/a%20b", "nudge://components");
    set(serve, "a b", "k");
    expect(&[changed, component, components]);
    // The components and their numbers of hints stay the same, so only the component's own resource changes.
    assert!(serve.call("nudge.bump", &json!({"component": "a b", "key": "k"}))["result"].is_object());
    expect(&[component]);
    set(serve, "a b", "other");
    expect(&[component, components]);
    set(serve, "unwatched", "k");
    expect(&[changed, components]);
    delete(serve, "a b", "other");
    expect(&[component, components]);
    delete(serve, "a b", "k");
    expect(&[changed, component, components]);
}

#[test]
fn clients_of_2025_are_told_of_changes() {
    let home = home();
    let mut serve = Serve::start(&home.path().join("run"));
    let mut http = Http::legacy(&serve);
    let mut stream = http.get();
    for uri in ["nudge://components", "nudge://component/a%20b", "nudge://component/unwatched"] {
        http.result("resources/subscribe", json!({"uri": uri}));
    }
    http.result("resources/unsubscribe", json!({"uri": "nudge://component/unwatched"}));
    check_heard(&serve, || stream.message().unwrap());

    let mut stdio = Stdio::new(&mut serve, false);
    stdio.result("resources/list", json!({}));
    for uri in ["nudge://components", "nudge://component/a%20b"] {
        stdio.result("resources/subscribe", json!({"uri": uri}));
    }
    assert!(stdio.heard.is_empty(), "{:?}", stdio.heard);
    delete(&serve, "unwatched", "k");
    let cleared = [serve.receive(), serve.receive()].map(|message| message["method"].clone());
    assert_eq!(cleared, ["notifications/resources/list_changed", "notifications/resources/updated"]);
    check_heard(&serve, || serve.receive());

    let mut stdio = Stdio::again(&mut serve, false);
    let refused = (0..1_000).filter(|number| {
        let uri = format!("nudge://component/{number}");
        stdio.ask("resources/subscribe", json!({"uri": uri}))["error"].is_object()
    });
    assert_eq!(refused.count(), 2, "there were two already");
    let long = format!("nudge://component/{}", "x".repeat(1_024));
    assert_eq!(stdio.ask("resources/subscribe", json!({"uri": long}))["error"]["code"], -32602);
    assert_eq!(stdio.ask("subscriptions/listen", json!({"notifications": {}}))["error"]["code"], -32601);
}

#[test]
fn who_does_not_ask_for_resources_hears_nothing_of_them() {
    let home = home();
    let mut serve = Serve::start(&home.path().join("run"));
    let mut stdio = Stdio::new(&mut serve, false);
    for key in ["a", "b", "c"] {
        let arguments = json!({"component": key, "key": key, "value": "x"});
        stdio.result("tools/call", json!({"name": "nudge_set_hint", "arguments": arguments}));
    }
    stdio.result("resources/read", json!({"uri": "nudge://components"}));
    assert!(stdio.heard.is_empty());
}

/// Returns the message after asserting that it belongs to the subscription of this request.
fn of(subscription: u64, message: Value) -> Value {
    assert_eq!(message["params"]["_meta"][format!("{META}/subscriptionId")], subscription, "{message}");
    message
}

#[test]
fn clients_of_2026_listen() {
    let home = home();
    let mut serve = Serve::start(&home.path().join("run"));
    let uris = json!(["nudge://components", "nudge://component/a%20b"]);
    let filter = json!({"resourcesListChanged": true, "resourceSubscriptions": uris, "promptsListChanged": true});
    let accepted = json!({"resourcesListChanged": true, "resourceSubscriptions": uris});
    let client = Http::modern(&serve);
    let listen = |id: u64, filter: &Value| {
        let message = request(true, id, "subscriptions/listen", json!({"notifications": filter}));
        let mut stream = client.post(&message);
        assert_eq!((stream.status, stream.header("content-type")), (200, Some("text/event-stream")));
        let heard = of(id, stream.message().unwrap());
        assert_eq!(heard["method"], "notifications/subscriptions/acknowledged");
        (stream, heard["params"]["notifications"].clone())
    };
    let (mut stream, heard) = listen(9, &filter);
    assert_eq!(heard, accepted);
    check_heard(&serve, || of(9, stream.message().unwrap()));
    // A filter with too many URIs gets no subscription.
    let many: Vec<_> = (0..1_001).map(|number| format!("nudge://component/{number}")).collect();
    assert_eq!(listen(10, &json!({"resourceSubscriptions": many})).1, json!({}));
    assert_eq!(listen(11, &json!({"resourceSubscriptions": many[1..]})).1["resourceSubscriptions"], json!(many[1..]));
    for params in [json!({"uri": "x"}), json!({})] {
        assert_eq!(
            Http::modern(&serve).ask("resources/subscribe", params.clone())["error"]["code"],
            -32601,
            "{params}"
        );
    }
    assert_eq!(Http::legacy(&serve).ask("resources/subscribe", json!({}))["error"]["code"], -32602);

    delete(&serve, "unwatched", "k");
    let cleared = [stream.message().unwrap(), stream.message().unwrap()].map(|message| message["method"].clone());
    assert_eq!(cleared, ["notifications/resources/list_changed", "notifications/resources/updated"]);
    let mut stdio = Stdio::new(&mut serve, true);
    let id = stdio.send("subscriptions/listen", json!({"notifications": filter}));
    let heard = of(id, stdio.hear());
    assert_eq!(heard["params"]["notifications"], accepted, "{heard}");
    check_heard(&serve, || of(id, serve.receive()));
    // The server answers other requests meanwhile. After the cancellation it sends no notification.
    let mut stdio = Stdio::again(&mut serve, true);
    stdio.result("tools/list", json!({}));
    let params = json!({"requestId": id});
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
    stdio.serve.send(&cancel.to_string());
    stdio.result("tools/list", json!({}));
    for key in ["k", "l"] {
        set(stdio.serve, "a b", key);
        stdio.result("resources/read", json!({"uri": "nudge://component/a%20b"}));
    }
    assert!(stdio.heard.is_empty(), "{:?}", stdio.heard);
    for _ in 0..16 {
        let id = stdio.send("subscriptions/listen", json!({"notifications": {}}));
        of(id, stdio.hear());
    }
    let one_more = stdio.send("subscriptions/listen", json!({"notifications": {}}));
    of(one_more, stdio.hear());
    assert_eq!(stdio.hear()["error"]["code"], -32600);
}
