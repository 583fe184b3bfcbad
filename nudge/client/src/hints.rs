//! Lists all hints of a store, whether their scope fits or not.

use nudge::{ErrorKind, Result, Service as _};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::store::{Store, to_raw, unknown_form};

/// Largest number of rows in one answer of `nudge.query`. [`MAX_KEYS`] is the largest number of keys in one query.
const MAX_ROWS: usize = 1000;
const MAX_KEYS: usize = 256;

#[derive(Deserialize)]
struct ComponentsReply {
    components: Vec<ComponentSize>,
}

#[derive(Deserialize)]
struct ComponentSize {
    name: String,
    hint_count: usize,
}

#[derive(Deserialize)]
struct QueryReply {
    hints: Vec<QueriedHint>,
}

#[derive(Deserialize)]
struct QueriedHint {
    hint: Box<RawValue>,
}

/// The fields by which the listed hints are sorted.
#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct ListingOrder {
    key: String,
    #[serde(default)]
    variant: String,
}

/// The part of an export from which the function counts the variants of each key.
#[derive(Deserialize)]
struct ExportReply {
    payload: ExportComponents,
}

#[derive(Deserialize)]
struct ExportComponents {
    components: Map<String, Value>,
}

impl Store {
    /// Returns every hint in the form of `nudge.query`, sorted by component, key and variant. The values of secrets are
    /// redacted.
    ///
    /// The function reads one component at a time. If other callers change the session meanwhile, the list shows
    /// different components at different times. It lists the first 1,000 variants of a key.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the session does not answer; `E_QUOTA` when evaluating the scopes takes too many steps.
    pub fn list_hints(&self) -> Result<Vec<Box<RawValue>>> {
        let listed: ComponentsReply = self.read("nudge.list_components", &json!({}))?;
        let mut out = Vec::new();
        for ComponentSize { name, hint_count } in listed.components {
            let mut rows = if hint_count <= MAX_ROWS {
                self.query_rows(&name, &[])?
            } else {
                let mut rows = Vec::new();
                for keys in self.some_keys(&name)? {
                    rows.extend(self.query_rows(&name, &keys)?);
                }
                rows
            };
            rows.sort_by(|(order, _), (other, _)| order.cmp(other));
            out.extend(rows.into_iter().map(|(_, hint)| hint));
        }
        Ok(out)
    }

    /// Queries the hints with these keys of a component. Without keys, queries all hints of the component.
    fn query_rows(&self, component: &str, keys: &[String]) -> Result<Vec<(ListingOrder, Box<RawValue>)>> {
        let params = json!({"component": component, "keys": keys, "include_ineligible": true, "limit": MAX_ROWS});
        let found: QueryReply = self.read("nudge.query", &params)?;
        let place = |hint: &RawValue| serde_json::from_str(hint.get()).map_err(unknown_form);
        found.hints.into_iter().map(|row| Ok((place(&row.hint)?, row.hint))).collect()
    }

    /// Splits the keys of a component into groups, so that the hints of a group fit into the answer of one query.
    fn some_keys(&self, component: &str) -> Result<Vec<Vec<String>>> {
        let params = json!({"component": component, "include_secrets": true});
        let exported: ExportReply = match self.read("nudge.export", &params) {
            // Another caller may have deleted the component since it was listed.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            exported => exported?,
        };
        let hints = exported.payload.components.get(component).unwrap_or(&Value::Null);
        let (mut out, mut some, mut count) = (Vec::new(), Vec::new(), 0);
        for key in hints["hints"].as_object().into_iter().flat_map(Map::keys) {
            let variants = 1 + hints["variants"][key].as_array().map_or(0, Vec::len);
            if count + variants > MAX_ROWS || some.len() == MAX_KEYS {
                out.push(std::mem::take(&mut some));
                count = 0;
            }
            count += variants;
            some.push(key.clone());
        }
        out.push(some);
        // Removes empty groups, because a query without keys would return the hints of all keys.
        out.retain(|keys| !keys.is_empty());
        Ok(out)
    }

    fn read<T: serde::de::DeserializeOwned>(&self, method: &str, params: &Value) -> Result<T> {
        let answer = self.call(method, &to_raw(params)?)?;
        serde_json::from_str(answer.get()).map_err(unknown_form)
    }
}
