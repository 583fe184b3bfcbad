//! Tests the answers of all methods on a small project.

mod kit;

use kit::{Lab, refused};
use serde_json::json;

/// Makes a project with a function, two callers, a test, a class, and outdated documentation.
fn shop() -> Lab {
    let lab = Lab::new();
    lab.write("shop/__init__.py", "");
    lab.write(
        "shop/pay.py",
        "class Till:\n    def charge(self, amount):\n        return round_up(amount)\n\n\ndef round_up(amount):\n    \"\"\"Rounds.\n\n    :param amount: what is paid\n    :param digits: where to cut\n    \"\"\"\n    return amount\n",
    );
    lab.write("shop/web.py", "from shop.pay import round_up\n\n\ndef order(total):\n    return round_up(total)\n");
    lab.write(
        "tests/test_pay.py",
        "from shop.pay import round_up\n\n\ndef test_round_up():\n    assert round_up(1) == 1\n",
    );
    lab.commit();
    lab
}

#[test]
fn a_node_with_its_callers_tests_and_drift() {
    let lab = shop();
    let code = lab.alone();
    let told = code.tell("node", json!({"id": "shop/pay.py:round_up"}));
    assert_eq!(told["node"]["id"], "node:shop/pay.py:round_up", "{told:#}");
    assert_eq!((&told["node"]["line"], &told["node"]["fresh"]), (&json!(6), &json!(true)));
    assert!(told["node"]["signature"].as_str().unwrap().contains("round_up(amount)"));
    assert_eq!(told["node"]["docstring_outdated"], true, "{told:#}");
    let callers: Vec<_> = told["callers"].as_array().unwrap().iter().map(|edge| edge["id"].as_str().unwrap()).collect();
    let expected = ["node:shop/pay.py:Till.charge", "node:shop/web.py:order", "node:tests/test_pay.py:test_round_up"];
    assert_eq!(callers, expected);
    assert!(told["callers"].as_array().unwrap().iter().all(|edge| edge["certain"] == true && edge["fresh"] == true));
    assert_eq!(told["tests"]["links"][0]["id"], "node:tests/test_pay.py:test_round_up");
    assert_eq!(told["tests"]["command"], "pytest tests/test_pay.py::test_round_up");
    assert_eq!(told["as_of"]["complete"], true);
    assert_eq!(told["as_of"]["head"].as_str().unwrap().len(), 40);
    // All ways to name the node give the same answer.
    for params in [
        json!({"id": "node:shop/pay.py:round_up"}),
        json!({"id": "round_up"}),
        json!({"id": "shop/pay.py:8"}),
        json!({"path": "shop/pay.py", "name": "round_up"}),
        json!({"path": "./shop/pay.py", "line": 6}),
    ] {
        assert_eq!(code.tell("node", params.clone())["node"]["id"], "node:shop/pay.py:round_up", "{params}");
    }
    assert_eq!(code.tell("node", json!({"id": "Till.charge"}))["callees"][0]["id"], "node:shop/pay.py:round_up");
}

#[test]
fn what_is_not_there_is_refused_with_what_is_near() {
    let lab = shop();
    lab.write("big.py", &"x = 1\n".repeat(100_000));
    lab.write("twice.py", "def order():\n    pass\n");
    let code = lab.alone();
    let error = refused(code.ask("node", json!({"id": "shop/pay.py:round_upp"})));
    assert_eq!((error.reason(), &error.data()["near_misses"][0]), ("E_NOT_FOUND", &json!("node:shop/pay.py:round_up")));
    let error = refused(code.ask("node", json!({"id": "order"})));
    assert_eq!(error.reason(), "E_INVALID");
    assert_eq!(error.data()["candidates"], json!(["node:shop/web.py:order", "node:twice.py:order"]));
    let error = refused(code.ask("file", json!({"path": "big.py"})));
    assert!(error.message().contains("512 KiB"), "{error}");
    for (verb, params) in [
        ("file", json!({"path": "/etc/passwd"})),
        ("file", json!({"path": "../../etc/passwd"})),
        ("file", json!({"path": "shop/none.py"})),
        ("node", json!({})),
        ("node", json!({"id": "a:b", "path": "c"})),
        ("search", json!({"query": "x", "path": "{"})),
        ("search", json!({"query": "x", "limit": 0})),
        ("callers", json!({"id": "order", "depth": 4})),
        ("tests", json!({})),
        ("status", json!({"root": "/"})),
    ] {
        assert!(
            matches!(refused(code.ask(verb, params.clone())).reason(), "E_NOT_FOUND" | "E_INVALID"),
            "{verb} {params}"
        );
    }
}

#[test]
fn callers_of_callers() {
    let lab = shop();
    lab.write("cli.py", "from shop.web import order\n\n\ndef main():\n    order(3)\n");
    let code = lab.alone();
    let told = code.tell("callers", json!({"id": "round_up", "depth": 2}));
    let last = told["callers"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&last["id"], &last["to"], &last["depth"]),
        (&json!("node:cli.py:main"), &json!("node:shop/web.py:order"), &json!(2))
    );
    let told = code.tell("callers", json!({"id": "round_up", "limit": 1}));
    assert_eq!((told["callers"].as_array().unwrap().len(), &told["omitted"]), (1, &json!(2)));
}

#[test]
fn names_are_found_by_their_words() {
    let lab = shop();
    let code = lab.alone();
    for (query, first) in [
        ("round_up", "node:shop/pay.py:round_up"),
        ("RoundUp", "node:shop/pay.py:round_up"),
        ("round up", "node:shop/pay.py:round_up"),
        ("till charge", "node:shop/pay.py:Till.charge"),
        ("charg", "node:shop/pay.py:Till.charge"),
        ("test round", "node:tests/test_pay.py:test_round_up"),
    ] {
        let told = code.tell("search", json!({"query": query}));
        assert_eq!(told["nodes"][0]["id"], first, "{query}: {told:#}");
    }
    let told = code.tell("search", json!({"query": "round_up", "path": "tests"}));
    assert_eq!(told["nodes"].as_array().unwrap().len(), 1);
    let told = code.tell("search", json!({"query": "till", "kind": "class"}));
    assert_eq!(told["nodes"][0]["kind"], "class");
    assert_eq!(code.tell("search", json!({"query": "zebra"}))["nodes"], json!([]));
}

/// A question names no definition. Its words are in documentation, in comments and messages of a body, in calls, and in
/// the path.
#[test]
fn a_question_finds_what_code_says_of_itself() {
    let lab = Lab::new();
    lab.write("setup.py", "");
    lab.write(
        "shop/pool.py",
        "def acquire(self):\n    \"\"\"Hand out a connection.\"\"\"\n    ping(self)\n\n\ndef ping(self):\n    pass\n",
    );
    lab.write(
        "shop/job.py",
        "def run(job):\n    # A deadlock: roll back, and begin once more.\n    job()\n\n\ndef redeem(code):\n    raise \
         ValueError('the coupon has expired')\n\n\ndef unlock():\n    return ask('marzipan')\n",
    );
    lab.write(
        "tests/test_pool.py",
        "def test_handing_out():\n    \"\"\"Hand out a connection twice.\"\"\"\n    pass\n",
    );
    let code = lab.alone();
    for (query, first, reason) in [
        ("who hands out connections?", "node:shop/pool.py:acquire", "documentation has hands, connections"),
        ("where do we go on after deadlocks?", "node:shop/job.py:run", "body has deadlocks"),
        ("customers complain that their coupon expired", "node:shop/job.py:redeem", "body has coupon, expired"),
        ("which test hands out connections?", "node:tests/test_pool.py:test_handing_out", "name has test, hands"),
        ("how does the pool ping?", "node:shop/pool.py:ping", "name has ping"),
    ] {
        let told = code.tell("search", json!({"query": query}));
        assert_eq!(told["nodes"][0]["id"], first, "{query}: {told:#}");
        assert!(told["nodes"][0]["reason"].as_str().unwrap().starts_with(reason), "{query}: {told:#}");
    }
    let told = code.tell("search", json!({"query": "marzipan"}));
    assert_eq!(told["nodes"], json!([]), "a string of one word is a value, and may be a password");
}

#[test]
fn the_tests_of_what_has_changed() {
    let lab = shop();
    let text = std::fs::read_to_string(lab.root().join("shop/pay.py")).unwrap();
    lab.write("shop/pay.py", &text.replace("return amount\n", "return amount + 0\n"));
    let code = lab.alone();
    let told = code.tell("tests", json!({"changed": true}));
    assert_eq!(told["changed"], json!(["shop/pay.py"]), "{told:#}");
    assert_eq!(told["links"][0]["id"], "node:tests/test_pay.py:test_round_up");
    assert_eq!(
        code.tell("tests", json!({"path": "tests/test_pay.py"}))["command"],
        "pytest tests/test_pay.py::test_round_up"
    );
    assert_eq!(code.tell("tests", json!({"id": "order"}))["note"], "none found by name or call");
}

#[test]
fn what_the_projects_coverage_says_comes_first() {
    let lab = shop();
    let ran = json!({"files": {"shop/pay.py": {"executed_lines": [1, 2, 3], "contexts": {
        "3": ["tests/test_pay.py::test_round_up|run"], "12": [],
    }}}});
    lab.write("coverage.json", &ran.to_string());
    let code = lab.alone();
    let told = code.tell("tests", json!({"id": "Till.charge"}));
    assert_eq!((&told["links"][0]["how"], &told["covered"]), (&json!("ran"), &json!(true)), "{told:#}");
    let told = code.tell("tests", json!({"id": "round_up"}));
    assert_eq!(told["covered"], false, "{told:#}");
}

#[test]
fn a_field_that_is_called_is_no_call_of_the_method_of_its_name() {
    let lab = Lab::new();
    lab.write("Cargo.toml", "[package]\nname = \"one\"\n");
    lab.write(
        "src/lib.rs",
        "struct S { cb: fn() }\nimpl S {\n    fn cb(&self) {}\n    fn go(&self) {\n        (self.cb)();\n        self.cb();\n    }\n}\n",
    );
    lab.commit();
    let told = lab.alone().tell("callers", json!({"id": "src/lib.rs:S.cb"}));
    let lines: Vec<_> = told["callers"].as_array().unwrap().iter().map(|edge| edge["line"].clone()).collect();
    assert_eq!((lines, &told["unresolved_same_name"]), (vec![json!(6)], &json!(0)), "{told:#}");
}
