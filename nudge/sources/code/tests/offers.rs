//! Tests the lines that an agent gets without a request.

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

/// A client session that gets lines only from the code source.
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

    /// Returns the lines for an event.
    fn told(&self, moment: &Value) -> Vec<String> {
        let mut params = moment.clone();
        params["context"] = json!({"cwd": self.session.root});
        if params["client_session"].is_null() {
            params["client_session"] = json!("s");
        }
        let said = self.suggest.call("nudge.suggest", &to_raw_value(&params).unwrap()).unwrap();
        let said: Value = serde_json::from_str(said.get()).unwrap();
        let told = said["suggestions"].as_array().unwrap().iter();
        told.map(|suggestion| suggestion["line"].as_str().unwrap().to_owned()).collect()
    }

    fn prompt(&self, prompt: &str) -> Vec<String> {
        self.told(&json!({"event": "prompt", "prompt": prompt}))
    }

    /// Returns the lines for an edit that come with it, before the file is certainly read.
    fn edit_at_once(&self, path: &str) -> Vec<String> {
        self.told(&json!({"event": "tool", "tool": "Edit", "file": self.session.root.join(path)}))
    }

    /// Returns the lines for an edit. A busy machine may not read the file in time; then the lines come with the next
    /// event.
    fn edit(&self, path: &str) -> Vec<String> {
        let told = self.edit_at_once(path);
        if !told.is_empty() {
            return told;
        }
        self.session.settled();
        self.told(&json!({"event": "tool", "tool": "Bash"}))
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
    // A changed node is a new item, so it is offered again.
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
    // A changed body does not concern callers.
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
    // A read is not an edit. A new function has no callers.
    lab.write("shop/pay.py", "def process_payment(order, *, tax):\n    return order\n\n\ndef round_up(amount): pass\n\n\ndef brand_new():\n    pass\n");
    let read = agent.told(&json!({"event": "tool", "tool": "Read", "file": "shop/pay.py"}));
    assert_eq!(read, [""; 0]);
    assert_eq!(agent.edit("shop/pay.py").len(), 1);
}

/// The second function of `pay.py`.
const ROUND_UP: &str = "\n\ndef round_up(amount):\n    return amount\n";

/// Returns the lines for an edit that changes `shop/pay.py` to `pay`. The file `shop/web.py` has the text `web`.
fn said_after(pay: &str, web: &str) -> Vec<String> {
    let lab = shop();
    let agent = Agent::new(&lab);
    lab.write("shop/web.py", web);
    lab.write("shop/pay.py", &format!("{pay}{ROUND_UP}"));
    agent.edit("shop/pay.py")
}

#[test]
fn only_what_callers_see_of_a_signature_counts() {
    let web = "from shop.pay import process_payment\n\n\ndef get(order):\n    return process_payment(order, 3)\n";
    for same in [
        "def process_payment(\n    order,  # whose\n    amount,\n):\n    return amount\n",
        "def process_payment(order: int, amount: \"dict[str, int]\") -> int:\n    return amount\n",
        "async def process_payment(order, amount, ):\n    return amount\n",
    ] {
        assert_eq!(said_after(same, web), [""; 0], "{same}");
    }
    for other in ["order, amount=1", "amount, order", "order, *amount", "order, *, amount", "order", "order, sum"] {
        let told = said_after(&format!("def process_payment({other}):\n    return 1\n"), web);
        assert!(told.len() == 1 && told[0].contains("1 caller was"), "{other}: {told:?}");
    }
    // A caller that was edited too, or that is new, counts as written for the new signature.
    let fixed = web.replace("order, 3", "order");
    assert_eq!(said_after("def process_payment(order):\n    return order\n", &fixed), [""; 0]);
    let both = format!("{fixed}\n\nprocess_payment(4, 4)\n");
    assert_eq!(said_after("def process_payment(order):\n    return order\n", &both), [""; 0]);
}

#[test]
fn a_change_is_told_once_whatever_else_changes() {
    let lab = shop();
    let agent = Agent::new(&lab);
    let pay = |text: &str| lab.write("shop/pay.py", &format!("{text}{ROUND_UP}"));
    pay("def process_payment(order):\n    return order\n");
    assert_eq!(agent.edit("shop/pay.py").len(), 1);
    pay("def process_payment(order):\n    \"\"\"Pays.\"\"\"\n    return order\n");
    assert_eq!(agent.edit("shop/pay.py"), [""; 0]);
    // Documentation that is wrong after an edit is a leftover too.
    pay("def process_payment(order):\n    \"\"\"Pays.\n\n    :param order: x\n    :param amount: y\n    \"\"\"\n");
    let told = agent.edit("shop/pay.py");
    assert!(told.len() == 1 && told[0].contains("its doc is outdated now"), "{told:?}");
}

#[test]
fn what_is_gone_and_still_called_is_told_of() {
    let lab = shop();
    let agent = Agent::new(&lab);
    lab.write(
        "shop/pay.py",
        "def settle(order, amount):\n    return round_up(amount)\n\n\ndef round_up(amount):\n    return amount\n",
    );
    let told = agent.edit("shop/pay.py");
    assert_eq!(told, ["shop/pay.py process_payment: it is gone, and 1 caller names it still: shop/web.py:5"]);
    assert_eq!(agent.edit("shop/pay.py"), [""; 0]);
    // The definition moved to another file, and its callers import it from there.
    lab.write("shop/math.py", "def round_up(amount):\n    return amount\n");
    assert_eq!(agent.edit("shop/math.py"), [""; 0]);
    lab.write(
        "tests/test_pay.py",
        "from shop.math import round_up\n\n\ndef test_round_up():\n    assert round_up(1) == 2\n",
    );
    lab.write(
        "shop/pay.py",
        "from shop.math import round_up\n\n\ndef settle(order, amount):\n    return round_up(amount)\n",
    );
    assert_eq!(agent.edit("shop/pay.py"), [""; 0]);
    // A file with syntax errors does not count as having lost its definitions.
    lab.write("shop/math.py", "def round_up(amount:\n    return ((amount\n");
    assert_eq!(agent.edit("shop/math.py"), [""; 0]);
    lab.write("shop/math.py", "");
    let told = agent.edit("shop/math.py");
    assert!(told.len() == 1 && told[0].contains("round_up: it is gone, and 2 callers name it still"), "{told:?}");
}

#[test]
fn what_is_too_large_for_a_hook_is_told_with_the_next_event() {
    let lab = shop();
    let rest = format!("\n\nTEXT = \"\"\"{}\"\"\"\n", "The same again.\n".repeat(5_000));
    lab.write("shop/pay.py", &format!("def process_payment(order, amount):\n    return amount\n{ROUND_UP}{rest}"));
    let agent = Agent::new(&lab);
    lab.write("shop/pay.py", &format!("def process_payment(order):\n    return order\n{ROUND_UP}{rest}"));
    assert_eq!(agent.edit_at_once("shop/pay.py"), [""; 0]);
    agent.session.settled();
    // Another client session gets no line about this edit.
    let other = json!({"event": "tool", "tool": "Bash", "client_session": "other"});
    assert_eq!(agent.told(&other), [""; 0]);
    let told = agent.told(&json!({"event": "tool", "tool": "Bash"}));
    assert!(told.len() == 1 && told[0].contains("1 caller was written for the old one"), "{told:?}");
    assert_eq!(agent.told(&json!({"event": "tool", "tool": "Bash"})), [""; 0]);
    // A prompt reports the leftovers too.
    lab.write("shop/pay.py", &format!("def settle(order):\n    return order\n{ROUND_UP}{rest}"));
    assert_eq!(agent.edit_at_once("shop/pay.py"), [""; 0]);
    agent.session.settled();
    let told = agent.prompt("go on");
    assert!(told.len() == 1 && told[0].contains("process_payment: it is gone"), "{told:?}");
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
fn of_a_failing_test_what_the_error_names_is_told_and_nothing_beside_it() {
    let lab = shop();
    let rest = "\n\ndef test_other():\n    assert 1 == 1\n".repeat(5);
    let test = "from shop.pay import round_up\n\n\ndef test_round_up():\n    assert round_up(1) == 2\n";
    lab.write("tests/test_pay.py", &format!("{test}{rest}"));
    lab.write("api.py", "def serve():\n    pass\n");
    let agent = Agent::new(&lab);
    let error = "collected 6 items\n\ntests/test_pay.py F.....  [100%]\n\n\
        /usr/lib/python3/site-packages/other/api.py:1: DeprecationWarning\n\
        FAILED tests/test_pay.py::test_round_up - assert 1 == 2";
    let told = agent.told(&json!({"event": "failure", "command": "pytest", "error": error}));
    assert!(told.len() == 1 && told[0].starts_with("tests/test_pay.py:4 test_round_up"), "{told:?}");
    // Two definitions have this name; the position in the error decides which one is meant.
    lab.write("tests/test_web.py", "def test_round_up():\n    assert False\n");
    kit::until("it to be read", || agent.session.ask("node", json!({"id": "tests/test_web.py:test_round_up"})).ok());
    let error = "FAILED tests/test_web.py::test_round_up - assert False";
    let told = agent.told(&json!({"event": "failure", "command": "pytest", "error": error}));
    assert!(told.len() == 1 && told[0].starts_with("tests/test_web.py:1 test_round_up"), "{told:?}");
}

#[test]
fn a_name_that_two_have_is_told_of_both() {
    let lab = shop();
    lab.write("shop/urls.py", "def url_for(endpoint):\n    pass\n");
    lab.write("shop/app.py", "class App:\n    def url_for(self, endpoint):\n        pass\n");
    for (prompt, count) in [("why is url_for() slow", 2), ("`url_for` is slow", 2), ("url_for is slow", 0)] {
        assert_eq!(Agent::new(&lab).prompt(prompt).len(), count, "{prompt}");
    }
    lab.write("shop/other.py", "def url_for(endpoint):\n    pass\n");
    assert_eq!(Agent::new(&lab).prompt("why is url_for() slow"), [""; 0], "one of three is none");
}

#[test]
fn a_declaration_and_its_definition_are_one() {
    let lab = Lab::new();
    lab.write("list.h", "int list_add(struct list *l, int x);\n");
    lab.write("list.c", "#include \"list.h\"\n\nint list_add(struct list *l, int x) {\n  return x;\n}\n");
    let agent = Agent::new(&lab);
    let told = agent.prompt("list_add leaks");
    assert!(told.len() == 1 && told[0].starts_with("list.c:3 list_add"), "{told:?}");
    let told = agent.session.tell("node", json!({"id": "list_add"}));
    assert_eq!(told["node"]["id"], "node:list.c:list_add");
    assert_eq!(agent.session.tell("node", json!({"id": "list.h:list_add"}))["node"]["line"], 1);
}

#[test]
fn who_makes_an_object_is_told_that_its_making_has_changed() {
    let lab = Lab::new();
    let python = |params: &str| format!("class Order:\n    def __init__(self, {params}):\n        pass\n");
    let script = |params: &str| format!("export class Cart {{\n  constructor({params}) {{}}\n}}\n");
    lab.write("order.py", &python("item"));
    lab.write("web.py", "from order import Order\n\n\ndef get():\n    return Order(1)\n");
    lab.write("cart.ts", &script("item"));
    lab.write("web.ts", "import { Cart } from './cart.js';\n\nfunction get() {\n  return new Cart(1);\n}\n");
    let agent = Agent::new(&lab);
    lab.write("order.py", &python("item, count"));
    let told = agent.edit("order.py");
    assert!(told.len() == 1 && told[0].ends_with("1 caller was written for the old one: web.py:5"), "{told:?}");
    lab.write("cart.ts", &script("item, count"));
    let told = agent.edit("cart.ts");
    assert!(told.len() == 1 && told[0].ends_with("1 caller was written for the old one: web.ts:4"), "{told:?}");
}

/// Promise (sources): Nudge calls no node gone while a changed file is unread, and a polled tree says when it was
/// read.
#[test]
fn a_node_that_moved_to_an_unread_file_is_not_called_gone() {
    let lab = shop();
    let agent = Agent::new(&lab);
    let text = format!("\n\nTEXT = \"\"\"{}\"\"\"\n", "The same again.\n".repeat(25_000));
    // A shell command changes the files, so no event names them.
    lab.write("shop/new/__init__.py", &format!("{ROUND_UP}{text}"));
    lab.write(
        "tests/test_pay.py",
        "from shop.new import round_up\n\n\ndef test_round_up():\n    assert round_up(1) == 2\n",
    );
    lab.write(
        "shop/pay.py",
        "from shop.new import round_up\n\n\ndef process_payment(order, amount):\n    return round_up(amount)\n",
    );
    kit::until("it to be heard of", || {
        let pending = agent.session.tell("status", json!({}))["as_of"]["pending"] != 0;
        (pending || agent.session.ask("node", json!({"id": "shop/new/__init__.py:round_up"})).is_ok()).then_some(())
    });
    assert_eq!(agent.edit_at_once("shop/pay.py"), [""; 0]);
    agent.session.settled();
    assert_eq!(agent.told(&json!({"event": "tool", "tool": "Bash"})), [""; 0]);
    // A removed definition is reported as soon as no unread file can contain it.
    lab.write("shop/new/__init__.py", &text);
    assert_eq!(agent.edit_at_once("shop/new/__init__.py"), [""; 0], "it is not read yet");
    let told = kit::until("it to be told", || {
        Some(agent.told(&json!({"event": "tool", "tool": "Bash"}))).filter(|told| !told.is_empty())
    });
    assert!(told[0].contains("round_up: it is gone, and 2 callers name it still"), "{told:?}");
}

#[test]
fn a_doc_that_still_names_what_was_taken_away_is_outdated() {
    let lab = Lab::new();
    let text =
        |params: &str| format!("def draw({params}):\n    \"\"\"Draws, at most ``width`` wide and in `colour`.\"\"\"\n");
    lab.write("draw.py", &text("width, colour"));
    lab.commit();
    let agent = Agent::new(&lab);
    let node = |agent: &Agent| agent.session.tell("node", json!({"id": "draw.py:draw"}))["node"].clone();
    assert!(node(&agent)["drift"].is_null(), "{}", node(&agent));
    lab.write("draw.py", &text("colour"));
    let told = agent.edit("draw.py");
    assert!(told.len() == 1 && told[0].contains("its doc is outdated now: names `width`"), "{told:?}");
    assert_eq!(node(&agent)["drift"][0]["rule"], "R1'");
    assert_eq!(node(&agent)["docstring_outdated"], true);
    assert_eq!(agent.edit("draw.py"), [""; 0]);
    lab.write("draw.py", &text("colour").replace("at most ``width`` wide and ", ""));
    assert!(node(&agent)["drift"].is_null());
}

#[test]
fn prompts_at_a_new_server_are_told_what_was_kept() {
    let lab = shop();
    drop(Agent::new(&lab));
    let session = lab.session();
    let sources = vec![(&SOURCE, Arc::clone(&session.source))];
    let suggest = SuggestService::new(100, Arc::new(SystemClock), Arc::new(NoModels), sources);
    // The client session continues after its server has ended, so it sends no start event.
    let agent = Agent { session, suggest };
    let told = kit::until("what was kept", || {
        Some(agent.prompt("why does process_payment() fail?")).filter(|told| !told.is_empty())
    });
    assert!(told.len() == 1 && told[0].starts_with("shop/pay.py:1 process_payment"), "{told:?}");
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
