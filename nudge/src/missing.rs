//! Suggests a stored hint to a caller that names a hint that is not stored.

use nudge_core::error::Error;
use nudge_core::near::find_nearest;
use nudge_core::wire::shorten_text;
use nudge_secrets::SecretGuard;

use crate::cache::Nudge;

/// The most keys of a component that an error names when no key is similar.
const MAX_KEYS: usize = 6;

impl Nudge {
    /// Makes the error for a call that names a hint that is not stored (semantics section 2).
    pub(crate) fn no_such_hint(&self, component: &str, key: &str) -> Error {
        let now = self.now();
        // The key exists, so only the variant that the caller named is missing.
        if self.store.find_variants(component, key).1.iter().any(|hint| !hint.is_expired(now)) {
            return no_such_variant();
        }
        Error::not_found(format!("No such hint is stored; {}", self.make_lead(component, key)))
    }

    /// Makes the error for a call that names a component that is not stored.
    pub(crate) fn no_such_component(&self, component: &str) -> Error {
        let names = self.component_names();
        let near = find_nearest(component, names.iter().map(String::as_str));
        let lead = near.and_then(|near| check_lead(&format!("did you mean {near}?")));
        let lead = lead.unwrap_or_else(|| "`nudge.list_components` names them.".into());
        Error::not_found(format!("No such component is stored; {lead}"))
    }

    /// Returns the end of an error sentence: advice for a component and key that are not stored.
    pub(crate) fn make_lead(&self, component: &str, key: &str) -> String {
        let list = || "list what there is with `nudge.list_components`, or set it.".to_owned();
        self.find_meant(component, key).and_then(|lead| check_lead(&lead)).unwrap_or_else(list)
    }

    fn find_meant(&self, component: &str, key: &str) -> Option<String> {
        let keys = self.list_keys(component);
        let near = |keys: &[String]| find_nearest(key, keys.iter().map(String::as_str)).map(str::to_owned);
        if keys.is_empty() {
            let names = self.component_names();
            let component = find_nearest(component, names.iter().map(String::as_str))?;
            let keys = self.list_keys(component);
            let key = if keys.iter().any(|stored| stored == key) { Some(key.to_owned()) } else { near(&keys) };
            return Some(match key {
                Some(key) => format!("did you mean {component}/{key}?"),
                None => format!("did you mean the component {component}?"),
            });
        }
        Some(match near(&keys) {
            Some(key) => format!("did you mean {component}/{key}?"),
            None if keys.len() > MAX_KEYS => format!("list the keys of {component} with `nudge.query`, or set it."),
            None => format!("{component} has {}.", keys.join(", ")),
        })
    }

    fn component_names(&self) -> Vec<String> {
        self.components().components.into_iter().map(|component| component.name).collect()
    }

    /// Returns the keys of a component, sorted by bytes.
    fn list_keys(&self, component: &str) -> Vec<String> {
        let now = self.now();
        let live = self.store.list_component(component).into_iter().filter(|hint| !hint.is_expired(now));
        let mut keys: Vec<_> = live.map(|hint| hint.key().to_owned()).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }
}

/// Makes the error for a call whose key is stored but whose variant is not stored.
pub(crate) fn no_such_variant() -> Error {
    Error::not_found("There is no such variant; `nudge.why` lists the variants of a key.")
}

/// Returns the text, or `None` if it looks like a credential. A stored name may look like one if the guard was switched
/// off when it was stored.
fn check_lead(lead: &str) -> Option<String> {
    SecretGuard::new().check(None, lead).is_none().then(|| shorten_text(lead))
}

#[cfg(test)]
mod tests {
    use crate::{Context, DeleteHint, ExportHints, Nudge, SetHint, WhyQuestion};

    #[test]
    fn what_may_have_been_meant_is_named() {
        let store = Nudge::default();
        let said = |component: &str, key: &str| {
            let refused = store.find(component, key, &Context::default()).unwrap_err();
            let also =
                store.delete(&DeleteHint { component: component.into(), key: key.into(), ..DeleteHint::default() });
            assert_eq!(also.unwrap_err().message(), refused.message());
            let why = store
                .why(WhyQuestion { component: component.into(), key: key.into(), ..WhyQuestion::default() })
                .unwrap();
            let lead = refused.message().strip_prefix("No such hint is stored; ").unwrap().to_owned();
            assert_eq!(why.verdict, format!("Nothing is stored under this key; {lead}"));
            lead
        };
        let list = "list what there is with `nudge.list_components`, or set it.";
        assert_eq!(said("api", "build"), list);
        for key in ["build", "test", "lint"] {
            store.set(SetHint::new("http-proxy", key, "make")).unwrap();
        }
        for (component, key, lead) in [
            ("http-proxy", "biuld", "did you mean http-proxy/build?"),
            ("http-proxy", "deploy", "http-proxy has build, lint, test."),
            ("http_proxy", "build", "did you mean http-proxy/build?"),
            ("proxy", "tests", "did you mean http-proxy/test?"),
            ("http-porxy", "deploy", "did you mean the component http-proxy?"),
            ("web", "build", list),
        ] {
            assert_eq!(said(component, key), lead, "{component}/{key}");
        }
        for key in ["a1", "b2", "c3", "d4"] {
            store.set(SetHint::new("http-proxy", key, "make")).unwrap();
        }
        assert_eq!(said("http-proxy", "deploy"), "list the keys of http-proxy with `nudge.query`, or set it.");
        let export = |component: &str| {
            let params = ExportHints { component: Some(component.into()), ..ExportHints::default() };
            store.export(&params).unwrap_err().message().to_owned()
        };
        assert_eq!(export("http"), "No such component is stored; did you mean http-proxy?");
        assert_eq!(export("web"), "No such component is stored; `nudge.list_components` names them.");
    }

    #[test]
    fn a_name_that_looks_like_a_credential_is_not_said() {
        let store = Nudge::default();
        let name = ["AK", "IA", "QW3RTYUIOP", "4SDFGH"].concat();
        store.set(SetHint { allow_secret: true, ..SetHint::new("api", &*name, "x") }).unwrap();
        let refused = store.find("api", &name[..name.len() - 1], &Context::default()).unwrap_err();
        assert!(!refused.message().contains(&name), "{refused:?}");
    }
}
