//! Offers Nudge's MCP tools to programs that call a model themselves. It gives the definitions in the forms of
//! Anthropic and `OpenAI`, and answers the model's tool calls.

use std::collections::HashMap;

use nudge::{
    Caller, Context, ContextUse, Error, ErrorKind, METHODS, MethodInfo, MethodInfos, Result, Service as _, near,
};
use nudge_core::wire;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::params::CallParams;
use crate::store::{Store, to_raw, unknown_form};

/// The tools that a store offers, as a list that does not change later.
///
/// ```
/// use nudge_client::{Store, Tools};
/// use serde_json::json;
///
/// let store = Store::new(nudge::Config::default());
/// let tools = Tools::of(&store)?;
/// let here = nudge::Context::default();
/// let asked = json!({"component": "api", "key": "build", "value": "make api"}).to_string();
/// assert!(!tools.call(&store, &here, "nudge_set_hint", &asked).is_error);
/// let input = json!({"component": "api", "key": "x"});
/// let used = json!({"type": "tool_use", "id": "t1", "name": "nudge_get_hint", "input": input}).to_string();
/// let answer = tools.answer(&store, &here, &used).unwrap();
/// assert_eq!((&answer["tool_use_id"], &answer["is_error"]), (&json!("t1"), &json!(true)));
/// # Ok::<(), nudge::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Tools {
    rows: Vec<MethodInfo>,
    /// The index in `rows` of each tool, by the name of the tool.
    by_name: HashMap<String, usize>,
}

/// The answer of a tool, which the program sends to the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolAnswer {
    /// The result as JSON, or the error message with advice.
    pub text: String,
    /// True when the call was refused.
    pub is_error: bool,
}

impl Tools {
    /// Reads the list of tools from the store, the same list that an MCP client gets. A store in this process has the
    /// tools for hints. A session also has the tools of its other sources that are in use.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the session does not answer.
    pub fn of(store: &Store) -> Result<Self> {
        let rows = match store.call(METHODS, &to_raw(&json!({}))?) {
            Ok(told) => serde_json::from_str::<MethodInfos>(told.get()).map_err(unknown_form)?.methods,
            // A store in this process does not have this method, because it has only hints.
            Err(error) if error.kind() == ErrorKind::UnknownMethod => {
                nudge::methods().into_iter().map(|row| MethodInfo::new(row, None, true, true)).collect()
            }
            Err(error) => return Err(error),
        };
        let rows: Vec<_> = rows.into_iter().filter(|row| row.tool).collect();
        let by_name = rows.iter().enumerate().map(|(index, row)| (row.tool_name(), index)).collect();
        Ok(Self { rows, by_name })
    }

    /// Returns the names of the tools, in the order of the list.
    pub fn names(&self) -> Vec<String> {
        self.rows.iter().map(MethodInfo::tool_name).collect()
    }

    /// Returns the tools as the field `tools` of Anthropic's Messages API.
    pub fn anthropic(&self) -> Value {
        let tool = |row: &MethodInfo| json!({"name": row.tool_name(), "description": row.description, "input_schema": row.params});
        self.rows.iter().map(tool).collect()
    }

    /// Returns the tools as the field `tools` of `OpenAI`'s Chat Completions API.
    pub fn openai(&self) -> Value {
        let tool = |row: &MethodInfo| json!({"type": "function", "function": {"name": row.tool_name(), "description": row.description, "parameters": row.params}});
        self.rows.iter().map(tool).collect()
    }

    /// Returns the tools as the field `tools` of `OpenAI`'s Responses API.
    pub fn responses(&self) -> Value {
        // Turns off `strict`, which is on by default and would require every field of a schema.
        let tool = |row: &MethodInfo| json!({"type": "function", "name": row.tool_name(), "description": row.description, "parameters": row.params, "strict": false});
        self.rows.iter().map(tool).collect()
    }

    /// Calls a tool by its name for a model that works in `context`. A context field that the model gives overrides the
    /// field of `context`; a field with the value null counts as unknown. `arguments` is a JSON object as text, and an
    /// empty text means no arguments. A refusal is an answer too, and says what to do.
    pub fn call(&self, store: &Store, context: &Context, name: &str, arguments: &str) -> ToolAnswer {
        match self.try_call(store, context, name, arguments) {
            Ok(result) => ToolAnswer { text: String::from(Box::<str>::from(result)), is_error: false },
            Err(error) => ToolAnswer { text: error.to_json().to_string(), is_error: true },
        }
    }

    fn try_call(&self, store: &Store, context: &Context, name: &str, arguments: &str) -> Result<Box<RawValue>> {
        let Some(row) = self.by_name.get(name).map(|index| &self.rows[*index]) else {
            let known = self.names();
            return Err(near::refuse_unknown("tool", name, &known.iter().map(String::as_str).collect::<Vec<_>>()));
        };
        let arguments = match arguments.trim() {
            "" | "null" => "{}",
            given => given,
        };
        let params = RawValue::from_string(arguments.to_owned()).ok().filter(|params| params.get().starts_with('{'));
        let params = params.ok_or_else(|| {
            Error::new(ErrorKind::ParamsNotObject, "The arguments of a tool must be a JSON object; write it anew.")
        })?;
        let caller = Caller::default().by_agent();
        // Fills in no context for a method that takes none, or only a repository (`set_hint`): this library names a
        // repository only if the caller does (semantics section 12).
        if matches!(row.context, ContextUse::None | ContextUse::Repository) {
            return store.call_by(caller, &row.name, &params);
        }
        let params = CallParams::read(params);
        let said = match params.given_context() {
            None | Some(Value::Null) => Some(Map::new()),
            Some(Value::Object(said)) => Some(said.clone()),
            Some(_) => None,
        };
        // Fills in nothing in two cases: the given context is not an object, which the method refuses; or the method
        // needs a context only if one is given, and none is given.
        let Some(said) = said.filter(|said| row.context != ContextUse::InferredIfGiven || !said.is_empty()) else {
            return store.call_by(caller, &row.name, params.as_raw());
        };
        store.call_from(caller, context, &row.name, |mut told| {
            told.extend(said.clone());
            params.with_context(&told)
        })
    }

    /// Answers a tool call of a model, as JSON in the provider's own form. `said` is a `tool_use` block of Anthropic, a
    /// tool call of `OpenAI`'s Chat Completions, or a `function_call` of its Responses API. The program puts the answer
    /// unchanged into the next request: as content of a user message, as a message, or as an input item. Returns `None`
    /// for anything else, including calls of tools that are not Nudge's.
    pub fn answer(&self, store: &Store, context: &Context, said: &str) -> Option<Value> {
        let said = wire::read_members(said).ok()?;
        let text = |members: &[(String, &RawValue)], name: &str| -> Option<String> {
            let (_, value) = members.iter().find(|(known, _)| known == name)?;
            serde_json::from_str(value.get()).ok()
        };
        let call = |name: Option<String>, arguments: &str| {
            let name = name.filter(|name| self.by_name.contains_key(name))?;
            Some(self.call(store, context, &name, arguments))
        };
        match &*text(&said, "type")? {
            "tool_use" => {
                let id = text(&said, "id")?;
                let input = said.iter().find(|(name, _)| name == "input").map_or("", |(_, input)| input.get());
                let ToolAnswer { text, is_error } = call(text(&said, "name"), input)?;
                Some(json!({"type": "tool_result", "tool_use_id": id, "content": text, "is_error": is_error}))
            }
            "function" => {
                let id = text(&said, "id")?;
                let function = wire::read_members(said.iter().find(|(name, _)| name == "function")?.1.get()).ok()?;
                let ToolAnswer { text, .. } = call(text(&function, "name"), &text(&function, "arguments")?)?;
                Some(json!({"role": "tool", "tool_call_id": id, "content": text}))
            }
            "function_call" => {
                let id = text(&said, "call_id")?;
                let ToolAnswer { text, .. } = call(text(&said, "name"), &text(&said, "arguments")?)?;
                Some(json!({"type": "function_call_output", "call_id": id, "output": text}))
            }
            _ => None,
        }
    }
}
