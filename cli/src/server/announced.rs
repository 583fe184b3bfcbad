//! Announces the changes that calls make, as far as the calls themselves tell.

use std::collections::BTreeMap;
use std::sync::Arc;

use nudge::{Method, Result, Service};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::broadcast;

use super::changes::Touched;

/// A service whose successful changes are announced, judged by the calls that make them.
pub fn announced(service: Arc<dyn Service>, touched: broadcast::Sender<Touched>) -> Arc<dyn Service> {
    Arc::new(Announced { service, touched })
}

struct Announced {
    service: Arc<dyn Service>,
    touched: broadcast::Sender<Touched>,
}

impl Service for Announced {
    fn methods(&self) -> Vec<&'static Method> {
        self.service.methods()
    }

    fn call(&self, method: &str, params: &RawValue) -> Result<Box<RawValue>> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Changed<'a> {
            component: Option<String>,
            #[serde(borrow)]
            payload: Option<&'a RawValue>,
        }
        #[derive(Deserialize)]
        struct Payload<'a> {
            #[serde(borrow)]
            components: BTreeMap<String, &'a RawValue>,
        }
        let answer = self.service.call(method, params)?;
        let adds_or_removes = matches!(method, "nudge.set_hint" | "nudge.delete_hint" | "nudge.import");
        if adds_or_removes || method == "nudge.bump" {
            let changed: Changed<'_> = serde_json::from_str(params.get()).unwrap_or_default();
            let payload: Option<Payload<'_>> = changed.payload.and_then(|json| serde_json::from_str(json.get()).ok());
            let imported = payload.into_iter().flat_map(|payload| payload.components.into_keys());
            for component in changed.component.into_iter().chain(imported) {
                // Nobody may be listening.
                let _ = self.touched.send(Touched { component: component.into(), count_changed: adds_or_removes });
            }
        }
        Ok(answer)
    }
}
