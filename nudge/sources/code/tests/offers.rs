//! What an agent is told unasked.

mod kit;

use std::sync::Arc;

use kit::Lab;
use nudge_code::SOURCE;
use nudge_core::clock::SystemClock;
use nudge_core::embed::NoModels;
use nudge_core::service::Service as _;
use nudge_core::suggest_service::SuggestService;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

/// A session that is told by the source alone.
struct Agent {
    session: kit::Session,
    suggest: SuggestService,
}

impl Agent {
    fn new(lab: &Lab) -> Self {
        let session = lab.session();
        let sources = vec![(&SOURCE, Arc::clone(&session.source))];
        let suggest = SuggestService::new(100, Arc::new(SystemClock), Arc::new(NoModels), sources);
        let agent = Self { session, suggest };
        agent.told(&json!({"event": "start"}));
        agent.session.settled();
        agent
    }

    /// The lines of a moment.
    fn told(&self, moment: &Value) -> Vec<String> {
        let mut params = moment.clone();
        params["context"] = json!({"cwd": self.session.root});
        params["client_session"] = json!("s");
        let said = self.suggest.call("nudge.suggest", &to_raw_value(&params).unwrap()).unwrap();
        let said: Value = serde_json::from_str(said.get()).unwrap();
        let told = said["suggestions"].as_array().unwrap().iter();
        told.map(|one| one["line"].as_str().unwrap().to_owned()).collect()
    }

    fn prompt(&self, prompt: &str) -> Vec<String> {
        self.told(&json!({"event": "prompt", "prompt": prompt}))
    }

    fn edit(&self, path: &str) -> Vec<String> {
        self.told(&json!({"event": "tool", "tool": "Edit", "file": self.session.root.join(path)}))
    }
}

fn shop() -> Lab {
    let lab = Lab::new();
    lab.write("shop/__init__.py", "");
    lab.write("shop/pay.py", "def process_payment(order, amount):\n    return round_up(amount)\n\n\ndef round_up(amount):\n    return amount\n");
    lab.write("shop/web.py", "from shop.pay import process_payment\n\n\ndef get(order):\n    return process_payment(order, 3)\n\n\ndef test():\n    pass\n");
    lab.write(
        "tests/test_pay.py",
        "from shop.pay import round_up\n\n\ndef test_round_up():\n    assert round_up(1) == 2\n",
    );
    lab.commit();
    lab
}

#[test]
fn a_prompt_that_names_code_is_told_of_it_once() {
    let lab = shop();
    let agent = Agent::new(&lab);
    let told = agent.prompt("why does process_payment() fail?");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].starts_with("shop/pay.py:1 process_payment(order, amount) | calls round_up(amount) in shop/pay.py:5 | called by 1 (shop/web.py:5)"),
        "{told:?}"
    );
    assert_eq!(agent.prompt("and process_payment() again?"), [""; 0]);
    // Another body is another thing to know.
    lab.write("shop/pay.py", "def process_payment(order, amount, tax=0):\n    return amount\n");
    let told = agent.prompt("process_payment() once more");
    assert!(told[0].contains("tax=0"), "{told:?}");
}

#[test]
fn places_names_and_the_words_of_names() {
    let lab = shop();
    for (prompt, first) in [
        ("look at shop/pay.py:5", "shop/pay.py:5 round_up"),
        ("  File \"/x/shop/pay.py\", line 6, in f", "shop/pay.py:5 round_up"),
        ("round_up is wrong", "shop/pay.py:5 round_up"),
        ("the `get` view", "shop/web.py:4 get"),
        ("does get() work", "shop/web.py:4 get"),
        ("how do we process a payment here", "shop/pay.py:1 process_payment"),
        ("processPayment is wrong", "shop/pay.py:1 process_payment"),
    ] {
        let told = Agent::new(&lab).prompt(prompt);
        assert!(told.first().is_some_and(|line| line.starts_with(first)), "{prompt}: {told:?}");
    }
}

#[test]
fn a_prompt_that_names_nothing_is_told_nothing() {
    let lab = shop();
    let agent = Agent::new(&lab);
    for prompt in [
        "get the test to run",
        "please write a README for this project",
        "make it round",
        "process_card_payment of the other project throws",
        "PAYMENT_FORM_PROCESS_LIMIT does not seem to have an effect",
        "what does this do? I want to order a payment provider",
        "fix the failing test",
        "Commit with the message \"up\" and push.",
        "3.14 e.g. i.e. U.S.A. http://example.com/index.html",
        "",
    ] {
        assert_eq!(agent.prompt(prompt), [""; 0], "{prompt}");
    }
}

#[test]
fn an_edit_leaves_callers_behind() {
    let lab = shop();
    let agent = Agent::new(&lab);
    assert_eq!(agent.edit("shop/pay.py"), [""; 0]);
    // Another body is no news for callers.
    lab.write(
        "shop/pay.py",
        "def process_payment(order, amount):\n    return amount\n\n\ndef round_up(amount):\n    return amount\n",
    );
    assert_eq!(agent.edit("shop/pay.py"), [""; 0]);
    lab.write(
        "shop/pay.py",
        "def process_payment(order):\n    return order\n\n\ndef round_up(amount):\n    return amount\n",
    );
    let told = agent.edit("shop/pay.py");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("shop/pay.py:1 process_payment(order): the signature has changed"), "{told:?}");
    assert!(told[0].ends_with("1 caller was written for the old one: shop/web.py:5"), "{told:?}");
    assert_eq!(agent.edit("shop/pay.py"), [""; 0]);
    // Reading is no edit, and nobody calls what is new.
    lab.write("shop/pay.py", "def process_payment(order, *, tax):\n    return order\n\n\ndef brand_new():\n    pass\n");
    let read = agent.told(&json!({"event": "tool", "tool": "Read", "file": "shop/pay.py"}));
    assert_eq!(read, [""; 0]);
    assert_eq!(agent.edit("shop/pay.py").len(), 1);
}

#[test]
fn a_failing_test_is_told_of() {
    let lab = shop();
    let agent = Agent::new(&lab);
    let error = "tests/test_pay.py:5: AssertionError\nFAILED tests/test_pay.py::test_round_up - assert 1 == 2";
    let failure = |command: &str| json!({"event": "failure", "command": command, "error": error});
    assert_eq!(agent.told(&failure("make install")), [""; 0]);
    let told = agent.told(&failure("pytest -q"));
    assert!(told[0].starts_with("tests/test_pay.py:4 test_round_up"), "{told:?}");
}

#[test]
fn nobody_who_did_not_begin_is_told_anything() {
    let lab = shop();
    let session = lab.session();
    let sources = vec![(&SOURCE, Arc::clone(&session.source))];
    let suggest = SuggestService::new(100, Arc::new(SystemClock), Arc::new(NoModels), sources);
    let params = json!({"event": "prompt", "prompt": "process_payment()", "context": {"cwd": lab.root()}});
    let said = suggest.call("nudge.suggest", &to_raw_value(&params).unwrap()).unwrap();
    assert!(said.get().contains("\"suggestions\":[]"), "{said}");
}
