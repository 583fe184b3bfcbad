//! Asks models through their APIs: Anthropic's Messages API, and the chat completions API that many servers offer.

use std::time::{Duration, Instant};

use nudge_core::error::{Error, Result};
use nudge_core::number::elapsed_ms;
use serde_json::{Value, json};

use super::{LanguageModel, ModelAnswer, ModelCost, ModelRequest, RequestFault, json_in, web};

/// The most tokens of an answer.
const MAX_TOKENS: u32 = 8_000;
const TOOL: &str = "answer";

/// Opens the API with this name. The key comes from the environment of this process, and is sent only to this API.
///
/// # Errors
/// `E_UNAVAILABLE` without a key. `E_INVALID` for an address to which the key would be sent unencrypted.
pub fn open_api(name: &str, url: &str, model: Option<String>, limit: Duration) -> Result<Box<dyn LanguageModel>> {
    let key = |variable: &str| std::env::var(variable).ok().filter(|key| !key.is_empty());
    let given = |usual: &str| if url.is_empty() { usual.to_owned() } else { url.trim_end_matches('/').to_owned() };
    let missing = |variable: &str| Error::unavailable(format!("Set {variable}, or NUDGE_BRAIN_LLM to another engine."));
    if name == "anthropic" {
        let url = given("https://api.anthropic.com");
        web::check_url(&url)?;
        let key = key("ANTHROPIC_API_KEY").ok_or_else(|| missing("ANTHROPIC_API_KEY"))?;
        let model = model.unwrap_or_else(|| "claude-haiku-4-5".to_owned());
        return Ok(Box::new(AnthropicEngine { url, key, model, limit }));
    }
    let url = given("https://api.openai.com/v1");
    web::check_url(&url)?;
    let key = key("OPENAI_API_KEY");
    // A model server on this machine needs no key.
    if key.is_none() && !web::is_local(&url) {
        return Err(missing("OPENAI_API_KEY"));
    }
    Ok(Box::new(OpenAi { url, key, model: model.unwrap_or_else(|| "gpt-5-mini".to_owned()), limit }))
}

struct AnthropicEngine {
    url: String,
    key: String,
    model: String,
    limit: Duration,
}

impl AnthropicEngine {
    fn build_body(&self, ask: &ModelRequest) -> Value {
        let tool = json!({"name": TOOL, "description": "Takes the answer.", "input_schema": ask.schema});
        json!({
            "model": self.model, "max_tokens": MAX_TOKENS, "system": ask.system,
            "messages": [{"role": "user", "content": ask.text}],
            "tools": [tool], "tool_choice": {"type": "tool", "name": TOOL},
        })
    }
}

impl LanguageModel for AnthropicEngine {
    fn render_request(&self, ask: &ModelRequest) -> String {
        self.build_body(ask).to_string()
    }

    fn complete(&self, ask: &ModelRequest) -> Result<ModelAnswer, RequestFault> {
        let since = Instant::now();
        let headers = [("x-api-key", self.key.clone()), ("anthropic-version", "2023-06-01".to_owned())];
        let said = web::ask_api(
            "Anthropic",
            &format!("{}/v1/messages", self.url),
            &headers,
            &self.build_body(ask),
            self.limit,
        )?;
        let blocks = said["content"].as_array().into_iter().flatten();
        let value = blocks.filter(|block| block["type"] == "tool_use").map(|block| block["input"].clone()).next();
        let value = value
            .ok_or_else(|| RequestFault::new_passing("Anthropic answered in another form than it was asked for"))?;
        let cost = ModelCost {
            engine: "anthropic".into(),
            ms: elapsed_ms(since),
            input_tokens: said["usage"]["input_tokens"].as_u64(),
            output_tokens: said["usage"]["output_tokens"].as_u64(),
            usd: None,
        };
        Ok(ModelAnswer { value, cost })
    }
}

struct OpenAi {
    url: String,
    key: Option<String>,
    model: String,
    limit: Duration,
}

/// The way in which a request demands an answer in JSON, the strictest first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AnswerForm {
    Schema,
    Object,
    Words,
}

impl OpenAi {
    fn build_body(&self, ask: &ModelRequest, form: AnswerForm) -> Value {
        let text = match form {
            AnswerForm::Schema => ask.text.clone(),
            _ => format!("{}\n\nAnswer with JSON alone, by this schema:\n{}", ask.text, ask.schema),
        };
        let mut body = json!({"model": self.model, "messages": [
            {"role": "system", "content": ask.system}, {"role": "user", "content": text},
        ]});
        if form == AnswerForm::Schema {
            body["response_format"] =
                json!({"type": "json_schema", "json_schema": {"name": TOOL, "strict": true, "schema": ask.schema}});
        } else if form == AnswerForm::Object {
            body["response_format"] = json!({"type": "json_object"});
        }
        body
    }
}

impl LanguageModel for OpenAi {
    fn render_request(&self, ask: &ModelRequest) -> String {
        self.build_body(ask, AnswerForm::Schema).to_string()
    }

    fn complete(&self, ask: &ModelRequest) -> Result<ModelAnswer, RequestFault> {
        let since = Instant::now();
        let headers: Vec<_> = self.key.iter().map(|key| ("authorization", format!("Bearer {key}"))).collect();
        let mut refused = RequestFault::new_lasting("the server takes no request");
        // A server that does not know a way answers with status 400; then the next way is tried. In the last way, the
        // text of the request contains the schema.
        for form in [AnswerForm::Schema, AnswerForm::Object, AnswerForm::Words] {
            let request = self.build_body(ask, form);
            let left = self.limit.saturating_sub(since.elapsed());
            let said = web::ask_api("the server", &format!("{}/chat/completions", self.url), &headers, &request, left);
            let said: Value = match said {
                Err(fault) if fault.text.ends_with(" 400") => {
                    refused = fault;
                    continue;
                }
                said => said?,
            };
            let value = said["choices"][0]["message"]["content"].as_str().and_then(json_in);
            let value = value.ok_or_else(|| {
                RequestFault::new_passing("the server answered in another form than it was asked for")
            })?;
            let cost = ModelCost {
                engine: "openai".into(),
                ms: elapsed_ms(since),
                input_tokens: said["usage"]["prompt_tokens"].as_u64(),
                output_tokens: said["usage"]["completion_tokens"].as_u64(),
                usd: None,
            };
            return Ok(ModelAnswer { value, cost });
        }
        Err(refused)
    }
}

#[cfg(test)]
#[path = "api_tests.rs"]
mod tests;
