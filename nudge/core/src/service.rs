//! Answers method calls by name: defines the rows of method tables, the callers, and the services that answer.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::error::{Error, ErrorKind, Result};
use crate::near::find_nearest;
use crate::report::AnswerReport;
use crate::source::AnswerFinish;
use crate::steps::StepBudget;

mod info;
mod joined;

pub use info::{METHODS, MethodInfo, MethodInfos, tool_name};
pub use joined::JoinedServices;

/// The way in which a front end that can infer a context fills in a method's `context` (semantics section 9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContextUse {
    /// The method takes no context.
    None,
    /// The front end fills in missing fields.
    Inferred,
    /// The front end fills in missing fields only when the caller gave a context (`bump`).
    InferredIfGiven,
    /// The front end fills in only the repository, which limits a hint without a scope (`set_hint`, semantics section
    /// 12). The answer does not depend on the environment.
    Repository,
}

/// The group of places (slots for running calls) that a call belongs to. Each group has its own places, so calls of one
/// group never wait for calls of another group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallLane {
    /// Calls that may take long, or that wait for a disk, a file or another program.
    Work,
    /// Requests of hooks and prompts. They compute for milliseconds, and their callers stop waiting after that.
    Prompt,
    /// Short calls, for example for the state of the session. They never wait for a lock that a call of `Work` holds.
    Vital,
    /// Calls that may take hours, such as the import of a large file. A call ends when its caller has disconnected.
    Long,
}

/// A row of a method table. It has all the facts that a surface needs to offer the method.
///
/// ```
/// use nudge_core::service::{CallLane, MethodSpec};
/// use nudge_core::table::{NoParams, build_schema};
///
/// static PING: MethodSpec =
///     MethodSpec::new("nudge.ping", "Ping", "Answers.", build_schema::<NoParams>).read_only().vital();
/// assert!(PING.read_only && PING.lane == CallLane::Vital);
/// assert_eq!(PING.tool_name(), "nudge_ping");
/// ```
// The flags are independent of each other; four of them have the names of MCP's annotations.
#[allow(clippy::struct_excessive_bools)]
#[derive(Debug, Clone, Copy)]
pub struct MethodSpec {
    /// The JSON-RPC name: `nudge.get_hint`, or `nudge.SOURCE.VERB` for sources other than the hints.
    pub name: &'static str,
    /// A few words for people.
    pub title: &'static str,
    /// The effect of a call and when to make it, for agents.
    pub description: &'static str,
    /// JSON Schema (2020-12) of `params`.
    pub params: fn() -> serde_json::Value,
    /// The method is an MCP tool. Other methods are only for JSON-RPC and the command line.
    pub tool: bool,
    /// Agents need the tool so often that hosts should load it at once.
    pub frequent: bool,
    /// A call changes nothing.
    pub read_only: bool,
    /// A call may remove or overwrite stored data.
    pub destructive: bool,
    /// The same call twice has the effect of one call.
    pub idempotent: bool,
    /// The way in which front ends fill in `params.context`.
    pub context: ContextUse,
    /// The event loop answers the call itself, without a place or a thread.
    pub inline: bool,
    /// The group of places that a call takes.
    pub lane: CallLane,
    /// The verb on the command line, when it differs from the last word of `name`.
    pub verb: Option<&'static str>,
    /// The command line also accepts the verb without the name of the source, as in `nudge ask`.
    pub is_command: bool,
    /// The optional param whose value the command line accepts without a flag.
    pub argument: Option<&'static str>,
    /// The words after the verb in the example of the command's help. Needed when the required params are not enough.
    pub example: Option<&'static str>,
    /// The rules by which a person changes the data of this method in an editor.
    pub edited: Option<&'static EditSpec>,
    /// True for an answer that is a file for programs: a tool answers with its JSON.
    pub is_file: bool,
    /// The rules by which the command line reads all pages of an answer that is a file for programs.
    pub document: Option<&'static DocumentPages>,
    /// Makes the report of the answer, which the command line of a source prints, and whose lines a model reads. With
    /// `None`, both get the members one by one.
    pub report: Option<fn(&serde_json::Value) -> AnswerReport>,
    /// The addition that the command line makes to the answer when a setting says so.
    pub finish: Option<&'static AnswerFinish>,
    /// The question that the command line asks the user at the terminal before the call.
    pub question: Option<&'static str>,
}

/// The rules of `nudge SOURCE edit NUMBER`. The command reads the stored text, and a person changes it in an editor.
/// Then the command writes the differences, unless the stored text has changed in the meantime.
#[derive(Debug)]
pub struct EditSpec {
    /// The method that reads an item by its number.
    pub read: &'static str,
    /// The param with the item's number, in the method that reads and in the method that writes.
    pub id: &'static str,
    /// The fields of the edited text, by their names in the answer and the params. Each field takes one line, but the
    /// last field takes all further lines.
    pub fields: &'static [&'static str],
    /// The name of the version in the answer, and the param with which the writing method refuses any other version.
    pub version: (&'static str, &'static str),
}

/// The rules by which the command line reads all pages of an answer that is a file for programs.
#[derive(Debug)]
pub struct DocumentPages {
    /// The param that selects a page: 0 for the first page, then the `next` of the previous page.
    pub cursor: &'static str,
    /// The member that holds the page's part of the list.
    pub list: &'static str,
    /// The member with the cursor of the next page; absent on the last page.
    pub next: &'static str,
}

impl MethodSpec {
    /// Makes a row with the defaults: the method is no tool, changes data, takes no context, and runs in
    /// [`CallLane::Work`]. The functions below change these defaults.
    pub const fn new(
        name: &'static str,
        title: &'static str,
        description: &'static str,
        params: fn() -> serde_json::Value,
    ) -> Self {
        Self {
            name,
            title,
            description,
            params,
            tool: false,
            frequent: false,
            read_only: false,
            destructive: false,
            idempotent: false,
            context: ContextUse::None,
            inline: false,
            lane: CallLane::Work,
            verb: None,
            is_command: false,
            argument: None,
            example: None,
            edited: None,
            document: None,
            is_file: false,
            report: None,
            finish: None,
            question: None,
        }
    }

    /// Sets the verb for the command line. The command line also accepts the last word of the method's name.
    #[must_use]
    pub const fn verb(self, verb: &'static str) -> Self {
        Self { verb: Some(verb), ..self }
    }

    /// Sets the verb for the command line, and allows it without the source's name: `nudge ask` is `nudge brain ask`.
    #[must_use]
    pub const fn command(self, verb: &'static str) -> Self {
        Self { is_command: true, ..self.verb(verb) }
    }

    /// Allows the command line to accept this optional param without a flag.
    #[must_use]
    pub const fn argument(self, name: &'static str) -> Self {
        Self { argument: Some(name), ..self }
    }

    /// Sets the words after the verb in the example of the command's help.
    #[must_use]
    pub const fn example(self, words: &'static str) -> Self {
        Self { example: Some(words), ..self }
    }

    /// Marks the answer as a file for programs. The command line always prints it as JSON, with all its pages.
    #[must_use]
    pub const fn document(self, pages: &'static DocumentPages) -> Self {
        Self { document: Some(pages), ..self }
    }

    /// Marks the answer as a file for programs.
    #[must_use]
    pub const fn file(self) -> Self {
        Self { is_file: true, ..self }
    }

    /// Returns the answer of a tool as lines for a model.
    pub fn to_model_text(&self, answer: &serde_json::Value) -> String {
        self.report.unwrap_or(AnswerReport::from_members)(answer).to_model_text()
    }

    /// Sets the function that makes the report of the answer.
    #[must_use]
    pub const fn with_report(self, report: fn(&serde_json::Value) -> AnswerReport) -> Self {
        Self { report: Some(report), ..self }
    }

    /// Sets the addition that the command line makes to the answer.
    #[must_use]
    pub const fn with_finish(self, finish: &'static AnswerFinish) -> Self {
        Self { finish: Some(finish), ..self }
    }

    /// Sets the question that the command line asks the user at the terminal. The command line makes the call only if
    /// the user says yes. A script is not asked.
    #[must_use]
    pub const fn with_question(self, question: &'static str) -> Self {
        Self { question: Some(question), ..self }
    }

    /// Adds the verb `edit` to the command line.
    #[must_use]
    pub const fn with_edit(self, edited: &'static EditSpec) -> Self {
        Self { edited: Some(edited), ..self }
    }

    /// Offers the method as an MCP tool.
    #[must_use]
    pub const fn tool(self) -> Self {
        Self { tool: true, ..self }
    }

    /// Offers the method as an MCP tool that hosts should load at once.
    #[must_use]
    pub const fn frequent(self) -> Self {
        Self { tool: true, frequent: true, ..self }
    }

    /// Marks the method as one that changes nothing.
    #[must_use]
    pub const fn read_only(self) -> Self {
        Self { read_only: true, idempotent: true, ..self }
    }

    /// Marks the method as one that may remove or overwrite stored data.
    #[must_use]
    pub const fn destructive(self) -> Self {
        Self { destructive: true, ..self }
    }

    /// Marks the method as one where two equal calls have the effect of one call.
    #[must_use]
    pub const fn idempotent(self) -> Self {
        Self { idempotent: true, ..self }
    }

    /// Marks the method as one whose `params.context` front ends fill in.
    #[must_use]
    pub const fn inferred(self) -> Self {
        Self { context: ContextUse::Inferred, ..self }
    }

    /// Marks the method as one for which front ends fill in only the repository of `params.context`.
    #[must_use]
    pub const fn takes_repository(self) -> Self {
        Self { context: ContextUse::Repository, ..self }
    }

    /// Marks the method as one for which front ends fill in `params.context` only when the caller gave one.
    #[must_use]
    pub const fn inferred_if_given(self) -> Self {
        Self { context: ContextUse::InferredIfGiven, ..self }
    }

    /// Lets the event loop answer the call. If the call needs more than [`Caller::allowed_steps`], a thread answers it.
    /// An inline method takes microseconds, changes nothing, and waits for no lock that another thread holds for
    /// longer.
    #[must_use]
    pub const fn inline(self) -> Self {
        Self { inline: true, ..self }
    }

    /// Marks the method as one that may take hours. It must check the [limit of its call](crate::patience) as it runs.
    #[must_use]
    pub const fn long(self) -> Self {
        Self { lane: CallLane::Long, ..self }
    }

    /// Marks the method as a request of a hook or a prompt ([`CallLane::Prompt`]).
    #[must_use]
    pub const fn for_prompts(self) -> Self {
        Self { lane: CallLane::Prompt, ..self }
    }

    /// Marks the method as one that reads the state of the session or only computes ([`CallLane::Vital`]).
    #[must_use]
    pub const fn vital(self) -> Self {
        Self { lane: CallLane::Vital, ..self }
    }

    /// Returns the name of the MCP tool. Hosts reject dots, so `nudge.get_hint` becomes `nudge_get_hint`.
    pub fn tool_name(&self) -> String {
        tool_name(self.name)
    }
}

/// The program that makes a call. Nudge shows the caller's name to people and makes no decision by it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Caller<'a> {
    /// The client's own name, such as `claude-code/2.1`; empty when unknown.
    pub name: &'a str,
    /// Is true when the call came through the MCP tools, which are for agents. Nudge does not treat such a caller as a
    /// person.
    pub agent: bool,
    /// The key of this call. A call with a key is carried out once, even if it is sent several times.
    pub key: Option<&'a str>,
    /// Is true when the server should refuse a call whose answer depends on environment variables that `context.env`
    /// lacks. The error names these variables.
    pub env: bool,
    /// Is true when the call runs on an event loop, with the limit of steps [`StepBudget::of_an_inline_call`].
    pub inline: bool,
    /// The identity of the call for which the key is used; set by [`TableService`](crate::table::TableService).
    pub call: Option<CallIdentity>,
    /// The remembered part of an earlier call with this key, if the result of that call was not stored; set by
    /// [`TableService`](crate::table::TableService).
    pub made: Option<EarlierCall>,
}

impl<'a> Caller<'a> {
    /// Makes a caller with this name.
    pub const fn with_name(name: &'a str) -> Self {
        Self { name, agent: false, key: None, env: false, inline: false, call: None, made: None }
    }

    /// Marks the caller as an agent.
    #[must_use]
    pub const fn by_agent(self) -> Self {
        Self { agent: true, ..self }
    }

    /// Sets the key of a call that may be sent more than once.
    #[must_use]
    pub const fn with_key(self, key: Option<&'a str>) -> Self {
        Self { key, ..self }
    }

    /// Sets the remembered part of an earlier call with this key.
    #[must_use]
    pub const fn with_made(self, made: Option<EarlierCall>) -> Self {
        Self { made, ..self }
    }

    /// Marks the call as one that runs on an event loop.
    #[must_use]
    pub const fn inline(self) -> Self {
        Self { inline: true, ..self }
    }

    /// Returns the steps that the call may take.
    pub const fn allowed_steps(&self) -> StepBudget {
        if self.inline { StepBudget::of_an_inline_call() } else { StepBudget::of_a_call() }
    }

    /// Marks a call whose `context.env` may lack names. The server then refuses the call with
    /// [`Error::env_names`](crate::error::Error::env_names), and the client repeats it with these names.
    #[must_use]
    pub const fn asking_env(self) -> Self {
        Self { env: true, ..self }
    }
}

/// A service that answers the methods of its table: a source in this process, or a PRIMARY in another process.
///
/// Each service keeps these rules:
///
/// - A call may come from any thread, and several calls may run at once.
/// - A refused call changes nothing, and its error names the remedy in one sentence.
/// - A call with a [key](Caller::key) is carried out once, even if it arrives several times
///   ([`TableService`](crate::table::TableService) ensures this).
/// - A call that [asks](Caller::env) for environment names is refused with these names when its answer could depend on
///   a name that `context.env` lacks.
/// - A row that is [inline](MethodSpec::inline) answers within microseconds.
/// - The time comes from the source's [`Clock`](crate::clock::Clock), so that tests can set the time.
pub trait Service: Send + Sync {
    /// Returns the rows that this service answers, in the order in which surfaces list them. For a session in another
    /// process, it returns only the rows of this build; `nudge.methods` returns all rows of the session.
    fn methods(&self) -> Vec<&'static MethodSpec>;

    /// Returns the row with this name, if this service answers it.
    fn find_method(&self, name: &str) -> Option<&'static MethodSpec> {
        self.methods().into_iter().find(|row| row.name == name)
    }

    /// Calls a method by its JSON-RPC name. `params` must be a JSON object.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownMethod`], [`ErrorKind::ParamsNotObject`], or an error of the method.
    fn call(&self, method: &str, params: &RawValue) -> Result<Box<RawValue>> {
        self.call_by(Caller::default(), method, params)
    }

    /// Calls a method like [`call`](Self::call), on behalf of `caller`.
    ///
    /// # Errors
    /// The errors of [`call`](Self::call).
    fn call_by(&self, caller: Caller<'_>, method: &str, params: &RawValue) -> Result<Box<RawValue>>;
}

impl<S: Service + ?Sized> Service for Arc<S> {
    fn methods(&self) -> Vec<&'static MethodSpec> {
        (**self).methods()
    }

    fn find_method(&self, name: &str) -> Option<&'static MethodSpec> {
        (**self).find_method(name)
    }

    fn call_by(&self, caller: Caller<'_>, method: &str, params: &RawValue) -> Result<Box<RawValue>> {
        (**self).call_by(caller, method, params)
    }
}

/// Makes the error for an unknown method. The message names the method with the nearest name. It does not repeat the
/// given name, which may hold any text.
pub fn unknown_method(name: &str, methods: &[&'static MethodSpec]) -> Error {
    let bare = |name: &'static str| name.strip_prefix("nudge.").unwrap_or(name);
    let asked = name.strip_prefix("nudge.").unwrap_or(name);
    let names = || methods.iter().map(|method| bare(method.name));
    // A name that lacks only the prefix is not misspelt, so the nearest name is not searched.
    let meant = names().find(|name| *name == asked).or_else(|| find_nearest(asked, names()));
    let message = match meant {
        Some(near) => format!("There is no such method; did you mean `nudge.{near}`?"),
        None => "There is no such method; `nudge.methods` lists them.".to_owned(),
    };
    Error::new(ErrorKind::UnknownMethod, message)
}

/// Identifies the call for which a key is used, by the method and a fingerprint of the params.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallIdentity {
    method: &'static str,
    params: u64,
    /// Is true when the params certainly hold no secret and no value of the environment. Such a value could be guessed
    /// from the fingerprint.
    open: bool,
}

impl CallIdentity {
    /// Identifies a call of `method` with these params. The params count as open only if they lack certain words. A
    /// search in the text is enough, because JSON can write a letter only as itself or with `\u`.
    pub fn new(method: &'static str, params: &str) -> Self {
        let open = !["secret", "\"env\"", "\\u"].iter().any(|word| params.contains(word));
        // FNV-1a gives the same hash in every process and version, as a stored fingerprint needs.
        let fnv = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        Self { method, params: params.bytes().fold(0xcbf2_9ce4_8422_2325, fnv), open }
    }

    /// Formats the call for a record: the method, and the fingerprint if the params are open and not about secrets.
    pub fn to_record_text(self, secrets: bool) -> String {
        let Self { method, params, open } = self;
        if open && !secrets { format!("{method} {params:016x}") } else { method.into() }
    }

    /// Refuses a key that was used for another call. `recorded` is the text of the earlier call in its record.
    ///
    /// # Errors
    /// `E_INVALID` when the earlier call was certainly another one.
    pub fn check_recorded(self, recorded: &str) -> Result<()> {
        if recorded == self.method || recorded == self.to_record_text(false) {
            return Ok(());
        }
        Err(Error::invalid("This Idempotency-Key was used for another call; use a new key for each call."))
    }
}

/// The remembered part of an earlier call whose result was not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EarlierCall {
    /// The call was about a secret, and another process made it. The journal has only the version that the call made.
    Lost(u64),
    /// The result was large and is no longer stored. The call is not made again: a `set` or `bump` returns the present
    /// value, and any other call is refused.
    Dropped,
}
