//! A store of this process's own, as bindings use it.

use nudge::{Config, Context, Service};
use nudge_client::Store;
use serde_json::json;
use serde_json::value::to_raw_value;

#[test]
fn what_is_not_found_says_why() {
    let store = Store::new(Config::default());
    let set = json!({"component": "api", "key": "build", "value": "make", "meta": {"scope": {"branch": "dev"}}});
    store.call("nudge.set_hint", &to_raw_value(&set).unwrap()).unwrap();
    let dev = Context::builder().branch("dev").build().unwrap();
    assert_eq!(store.find("api", "build", &dev).unwrap().text(), "make");

    let main = Context::builder().branch("main").build().unwrap();
    let refused = store.find("api", "build", &main).unwrap_err();
    assert_eq!((refused.reason(), &refused.data()["missing_context"]), ("E_NOT_FOUND", &json!([])));
    assert_eq!(refused.data()["near_misses"][0]["failed"], "branch");
    assert!(store.get("api", "build", &main).unwrap().is_none());
    // As `nudge.get_hint` has it.
    let asked = store.call("nudge.get_hint", &to_raw_value(&json!({"component": "api", "key": "build"})).unwrap());
    assert_eq!(store.find("api", "build", &Context::default()).unwrap_err(), asked.unwrap_err());
    assert_eq!(store.find("", "build", &main).unwrap_err().reason(), "E_INVALID");
}
