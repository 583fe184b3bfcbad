//! The method table: one row for each method. JSON-RPC, MCP tools, the command line and all bindings are built from it.
//!
//! A row is a few lines: a [`MethodSpec`], and a function that answers the method with typed params and a typed result:
//!
//! ```
//! use nudge_core::once::OnceByKey;
//! use nudge_core::service::{MethodSpec, Service};
//! use nudge_core::table::{TableRow, MethodTable, TableService, answer_typed, build_schema};
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//! use serde_json::value::RawValue;
//!
//! /// Adds greetings to a name.
//! struct Greeter;
//!
//! #[derive(Deserialize, JsonSchema)]
//! #[serde(deny_unknown_fields)]
//! struct Greet {
//!     /// Whom to greet.
//!     name: String,
//! }
//!
//! #[derive(Serialize)]
//! struct Greeted {
//!     said: String,
//! }
//!
//! static GREET: TableRow<Greeter> = TableRow {
//!     method: MethodSpec::new("nudge.greeter.greet", "Greet", "Greets somebody.", build_schema::<Greet>)
//!         .read_only()
//!         .vital(),
//!     run: |_, _, params| answer_typed(params, |Greet { name }| Ok(Greeted { said: format!("Hello {name}") })),
//! };
//! static TABLE: MethodTable<Greeter> = MethodTable(&[&GREET]);
//!
//! impl TableService for Greeter {
//!     const TABLE: &'static MethodTable<Self> = &TABLE;
//!
//!     // It changes nothing, so no call needs to be made only once.
//!     fn once_by_key(&self, _: &MethodSpec) -> Option<&dyn OnceByKey> {
//!         None
//!     }
//! }
//!
//! let params = RawValue::from_string(r#"{"name":"Ada"}"#.into())?;
//! let greeted = Greeter.call("nudge.greeter.greet", &params)?;
//! assert_eq!(greeted.get(), r#"{"said":"Hello Ada"}"#);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::error::{Error, Result};
use crate::limit::{RANGE_WORDS, describe_in_range};
use crate::once::OnceByKey;
use crate::service::{CallIdentity, Caller, EarlierCall, MethodSpec, Service, unknown_method};
use crate::wire;

/// A method of a service `S`, with the function that answers it.
pub struct TableRow<S: 'static> {
    /// The description of the method for surfaces.
    pub method: MethodSpec,
    /// Answers a call: reads the params, does the work, and writes the result. [`answer_typed`] does most of this.
    pub run: fn(&S, Caller<'_>, &RawValue) -> Result<Box<RawValue>>,
}

/// The rows of a service, in the order in which surfaces list them.
pub struct MethodTable<S: 'static>(pub &'static [&'static TableRow<S>]);

impl<S: TableService> MethodTable<S> {
    /// Returns the methods, in the order in which surfaces list them.
    pub fn methods(&self) -> Vec<&'static MethodSpec> {
        self.0.iter().map(|row| &row.method).collect()
    }

    /// Returns the method with this name, if there is one.
    pub fn find_method(&self, name: &str) -> Option<&'static MethodSpec> {
        self.find_row(name).map(|row| &row.method)
    }

    fn find_row(&self, name: &str) -> Option<&'static TableRow<S>> {
        self.0.iter().copied().find(|row| row.method.name == name)
    }

    /// Calls a method of `service`. If the call has a key and the method changes something, the call is carried out
    /// once.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownMethod`](crate::error::ErrorKind::UnknownMethod), or an error of the method.
    fn call(&self, service: &S, caller: Caller<'_>, name: &str, params: &RawValue) -> Result<Box<RawValue>> {
        let row = self.find_row(name).ok_or_else(|| unknown_method(name, &self.methods()))?;
        let run = |caller: Caller<'_>| {
            if caller.env {
                service.ask_env(&row.method, params)?;
            }
            (row.run)(service, caller, params)
        };
        match caller.key {
            Some(key) if !row.method.read_only => {
                let call = CallIdentity::new(row.method.name, params.get());
                let mut make = |made: Option<EarlierCall>| {
                    // The earlier call had all the variables that it needed, so the repeated call asks for none.
                    let env = caller.env && made.is_none();
                    run(Caller { env, call: Some(call), made, ..caller })
                };
                match service.once_by_key(&row.method) {
                    Some(once) => once.make_once(key, call, &mut make),
                    None => make(None),
                }
            }
            _ => run(caller),
        }
    }
}

/// A service that answers exactly the rows of its table.
pub trait TableService: Send + Sync + Sized + 'static {
    /// The table of the service.
    const TABLE: &'static MethodTable<Self>;

    /// Returns the part that carries out calls once by key. `None` for a method that does not need it: its calls change
    /// nothing, have no further effect the second time, or pass their key on.
    fn once_by_key(&self, method: &MethodSpec) -> Option<&dyn OnceByKey>;

    /// Refuses a call when `context.env` lacks names that its answer can depend on
    /// ([`ask_env`](crate::context::ask_env)). A service that reads no environment accepts every call.
    ///
    /// # Errors
    /// `E_INVALID` with the names in `data.env`.
    fn ask_env(&self, method: &MethodSpec, params: &RawValue) -> Result<()> {
        let _ = (method, params);
        Ok(())
    }
}

impl<S: TableService> Service for S {
    fn methods(&self) -> Vec<&'static MethodSpec> {
        S::TABLE.methods()
    }

    fn find_method(&self, name: &str) -> Option<&'static MethodSpec> {
        S::TABLE.find_method(name)
    }

    fn call_by(&self, caller: Caller<'_>, method: &str, params: &RawValue) -> Result<Box<RawValue>> {
        S::TABLE.call(self, caller, method, params)
    }
}

/// Reads typed params, runs a verb, and writes its typed result. Nearly every [`TableRow::run`] consists of this call.
///
/// # Errors
/// `E_INVALID` for params of a wrong form. Otherwise the errors of the verb.
pub fn answer_typed<P: DeserializeOwned, R: Serialize>(
    params: &RawValue,
    verb: impl FnOnce(P) -> Result<R>,
) -> Result<Box<RawValue>> {
    serialize_result(&verb(wire::parse_params(params)?)?)
}

/// Writes a result as JSON.
///
/// # Errors
/// `E_INVALID` for a value that JSON cannot express.
pub fn serialize_result(out: &impl Serialize) -> Result<Box<RawValue>> {
    to_raw_value(out).map_err(|_| Error::invalid("The result cannot be written as JSON; report this."))
}

/// Marks a param that the method accepts but that the MCP tool does not show: `#[schemars(extend("x-not-for-models" =
/// true))]`.
pub const NOT_FOR_MODELS: &str = "x-not-for-models";

/// Builds the JSON Schema (2020-12) of a params type. The schema has no references, because hosts load it into a
/// prompt.
pub fn build_schema<P: JsonSchema>() -> Value {
    let settings = schemars::generate::SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<P>().to_value();
    // The description of the type is removed, because the method has its own description.
    schema.as_object_mut().map(|root| root.remove("description"));
    tidy_schema(&mut schema);
    schema
}

/// Removes parts that cost tokens and add nothing: titles, `null` beside a type, defaults, number formats, the
/// description of each constant, the description of a list's elements, and a minimum of 0.
fn tidy_schema(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            for name in ["title", "default", "format"] {
                if map.get(name).is_some_and(|value| !value.is_object() || name == "default") {
                    map.remove(name);
                }
            }
            if let Some(Value::Array(types)) = map.get_mut("type") {
                types.retain(|name| name != "null");
                if let [only] = &types[..] {
                    let only = only.clone();
                    map.insert("type".into(), only);
                }
            }
            if let Some(Value::Array(options)) = map.get_mut("anyOf") {
                options.retain(|option| option["type"] != "null");
                if let [Value::Object(only)] = &options[..] {
                    let only = only.clone();
                    map.remove("anyOf");
                    for (name, value) in only {
                        map.entry(name).or_insert(value);
                    }
                }
            }
            let constants = |list: &Value| {
                list.as_array()?.iter().map(|variant| variant.get("const").cloned()).collect::<Option<Vec<_>>>()
            };
            if let Some(names) = map.get("oneOf").and_then(constants) {
                map.remove("oneOf");
                map.insert("type".into(), "string".into());
                map.insert("enum".into(), names.into());
            }
            if let Some(Value::Array(names)) = map.get_mut("enum") {
                names.retain(|name| !name.is_null());
            }
            if let Some(Value::String(range)) = map.remove(RANGE_WORDS)
                && let Some(Value::String(description)) = map.get_mut("description")
            {
                *description = describe_in_range(description, &range);
            }
            // A field whose name is clear by itself has an empty description.
            if map.get("description").is_some_and(|text| text == "") {
                map.remove("description");
            }
            if let Some(Value::Object(items)) = map.get_mut("items") {
                items.remove("description");
            }
            if map.get("minimum").is_some_and(|least| least == 0) {
                map.remove("minimum");
            }
            map.values_mut().for_each(tidy_schema);
        }
        Value::Array(list) => list.iter_mut().for_each(tidy_schema),
        _ => {}
    }
}

/// Params of methods that take none.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoParams {}
