//! Answers method calls by name: a row of a table, the caller, and the services that answer.

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

/// How a front end that can infer a context treats a method's `context` (semantics section 9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContextUse {
    /// The method takes none.
    None,
    /// Missing fields are filled in.
    Inferred,
    /// Missing fields are filled in only when the caller gave a context (`bump`).
    InferredIfGiven,
    /// Only the repository is filled in: it limits a hint without a scope (`set_hint`, semantics section 12). The answer
    /// depends on no environment.
    Repository,
}

/// The kind of places that a call takes. Each lane has places of its own, so that
/// calls of one never wait for those of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallLane {
    /// Calls that may take long, and may hang where a disk, a file or another program does.
    Work,
    /// Questions of hooks and prompts: they compute for milliseconds, and callers wait no longer.
    Prompt,
    /// Calls by which one learns how things stand. They wait for no lock that work holds.
    Vital,
    /// Calls that may take hours, such as the import of a large file. They end when their caller has gone.
    Long,
}

/// A row of a method table: all that a surface needs to offer the method.
///
/// ```
/// use nudge_core::service::{CallLane, MethodSpec};
/// use nudge_core::table::{NoParams, build_schema};
///
/// static PING: MethodSpec = MethodSpec::new("nudge.ping", "Ping", "Answers.", build_schema::<NoParams>).read_only().vital();
/// assert!(PING.read_only && PING.lane == CallLane::Vital);
/// assert_eq!(PING.tool_name(), "nudge_ping");
/// ```
// Independent facts, four of them named after MCP's annotations.
#[allow(clippy::struct_excessive_bools)]
#[derive(Debug, Clone, Copy)]
pub struct MethodSpec {
    /// The JSON-RPC name: `nudge.get_hint`, and `nudge.SOURCE.VERB` for other sources than the hints.
    pub name: &'static str,
    /// A few words for people.
    pub title: &'static str,
    /// The effect of a call and when to make it, for agents.
    pub description: &'static str,
    /// JSON Schema (2020-12) of `params`.
    pub params: fn() -> serde_json::Value,
    /// Offered as an MCP tool (the others are for JSON-RPC and the command line).
    pub tool: bool,
    /// Wanted so often that hosts should load it at once.
    pub frequent: bool,
    /// Changes nothing.
    pub read_only: bool,
    /// May remove or overwrite stored data.
    pub destructive: bool,
    /// The same call twice has the effect of one call.
    pub idempotent: bool,
    /// How `params.context` is filled in.
    pub context: ContextUse,
    /// Answered on the event loop, without a place and a thread.
    pub inline: bool,
    /// The kind of places that it takes.
    pub lane: CallLane,
    /// The word for it on the command line, where that is another than the end of its name.
    pub verb: Option<&'static str>,
    /// The command line takes that word without its source's, too: `nudge ask`.
    pub is_command: bool,
    /// The param that needs no flag on the command line, though it is not required.
    pub argument: Option<&'static str>,
    /// The words after the verb in the example of its help, when the required params are not enough.
    pub example: Option<&'static str>,
    /// The way to change in an editor the data that it writes.
    pub edited: Option<&'static EditSpec>,
    /// How the command line reads its answer, a file for programs, page by page.
    pub document: Option<&'static DocumentPages>,
    /// The report of the answer on the command line; without one, its members are printed one by one.
    pub report: Option<fn(&serde_json::Value) -> AnswerReport>,
    /// The part that the command line adds to its answer, when a setting says so.
    pub finish: Option<&'static AnswerFinish>,
    /// The question that the user at the terminal is asked before it is called.
    pub question: Option<&'static str>,
}

/// The rules of `nudge SOURCE edit NUMBER`: the stored text is read, a person changes it in an editor, and the
/// differences are written if it has not been changed meanwhile.
#[derive(Debug)]
pub struct EditSpec {
    /// The method that reads one by its number.
    pub read: &'static str,
    /// The param of both with the number.
    pub id: &'static str,
    /// The fields of the text, by their names in the answer and the params: a line each, and the last has all the rest.
    pub fields: &'static [&'static str],
    /// The version in the answer, and the param that refuses an edit of another version.
    pub version: (&'static str, &'static str),
}

/// How an answer that is a file for programs is read page by page.
#[derive(Debug)]
pub struct DocumentPages {
    /// The param that asks for a page: 0 for the first, then the `next` of the one before.
    pub cursor: &'static str,
    /// The member with the page's part of the list.
    pub list: &'static str,
    /// The member with the cursor of the next page, if there is one.
    pub next: &'static str,
}

impl MethodSpec {
    /// A method with the defaults: it is no tool, changes something, takes no context, and runs
    /// among the calls that may take long. The functions below say otherwise.
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
            report: None,
            finish: None,
            question: None,
        }
    }

    /// The same, with another word on the command line; the end of its name is taken there, too.
    #[must_use]
    pub const fn verb(self, verb: &'static str) -> Self {
        Self { verb: Some(verb), ..self }
    }

    /// The same, with another word on the command line that is a command by itself, besides: `nudge ask` is `nudge brain
    /// ask`.
    #[must_use]
    pub const fn command(self, verb: &'static str) -> Self {
        Self { is_command: true, ..self.verb(verb) }
    }

    /// The same, with a param that needs no flag on the command line, though it is not required.
    #[must_use]
    pub const fn argument(self, name: &'static str) -> Self {
        Self { argument: Some(name), ..self }
    }

    /// Sets the words after its verb in the example of its help.
    #[must_use]
    pub const fn example(self, words: &'static str) -> Self {
        Self { example: Some(words), ..self }
    }

    /// The same, with an answer that is a file for programs: the command line prints it as JSON, however it is asked, and
    /// however many pages it has.
    #[must_use]
    pub const fn document(self, pages: &'static DocumentPages) -> Self {
        Self { document: Some(pages), ..self }
    }

    /// Sets the report of its answer for a person.
    #[must_use]
    pub const fn with_report(self, report: fn(&serde_json::Value) -> AnswerReport) -> Self {
        Self { report: Some(report), ..self }
    }

    /// Sets the part that the command line adds to its answer.
    #[must_use]
    pub const fn with_finish(self, finish: &'static AnswerFinish) -> Self {
        Self { finish: Some(finish), ..self }
    }

    /// Makes the command line call it only when the user at the terminal says yes to this question. A script is not
    /// asked.
    #[must_use]
    pub const fn with_question(self, question: &'static str) -> Self {
        Self { question: Some(question), ..self }
    }

    /// The same, with `edit` as a further verb.
    #[must_use]
    pub const fn with_edit(self, edited: &'static EditSpec) -> Self {
        Self { edited: Some(edited), ..self }
    }

    /// The same, offered as an MCP tool.
    #[must_use]
    pub const fn tool(self) -> Self {
        Self { tool: true, ..self }
    }

    /// The same, offered as an MCP tool that hosts should load at once.
    #[must_use]
    pub const fn frequent(self) -> Self {
        Self { tool: true, frequent: true, ..self }
    }

    /// The same, which changes nothing.
    #[must_use]
    pub const fn read_only(self) -> Self {
        Self { read_only: true, idempotent: true, ..self }
    }

    /// Marks it as one that may remove or overwrite stored data.
    #[must_use]
    pub const fn destructive(self) -> Self {
        Self { destructive: true, ..self }
    }

    /// Marks it as one of which two calls have the effect of one.
    #[must_use]
    pub const fn idempotent(self) -> Self {
        Self { idempotent: true, ..self }
    }

    /// Marks it as a method with a `params.context` that is filled in.
    #[must_use]
    pub const fn inferred(self) -> Self {
        Self { context: ContextUse::Inferred, ..self }
    }

    /// Marks it as a method whose `params.context` gets the repository alone.
    #[must_use]
    pub const fn takes_repository(self) -> Self {
        Self { context: ContextUse::Repository, ..self }
    }

    /// Marks it as a method with a `params.context` that is filled in when the caller gave one.
    #[must_use]
    pub const fn inferred_if_given(self) -> Self {
        Self { context: ContextUse::InferredIfGiven, ..self }
    }

    /// The same, answered on the event loop when [`Caller::allowed_steps`] suffice, else on a thread like all others. Such a
    /// method takes microseconds, waits for no lock that others hold for longer, and changes nothing.
    #[must_use]
    pub const fn inline(self) -> Self {
        Self { inline: true, ..self }
    }

    /// The same, which may take hours, and looks at the [limit of its call](crate::patience) meanwhile.
    #[must_use]
    pub const fn long(self) -> Self {
        Self { lane: CallLane::Long, ..self }
    }

    /// The same, as a question of a hook or a prompt.
    #[must_use]
    pub const fn for_prompts(self) -> Self {
        Self { lane: CallLane::Prompt, ..self }
    }

    /// The same, as a call by which one learns how things stand, or that only computes: it waits for no work.
    #[must_use]
    pub const fn vital(self) -> Self {
        Self { lane: CallLane::Vital, ..self }
    }

    /// The name as an MCP tool: hosts reject dots, so `nudge.get_hint` becomes `nudge_get_hint`.
    pub fn tool_name(&self) -> String {
        tool_name(self.name)
    }
}

/// The maker of a call, as far as is known. The name is for people who ask later, never for a decision.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Caller<'a> {
    /// A client's own name such as `claude-code/2.1`; empty when unknown.
    pub name: &'a str,
    /// Is true when it came by a surface of agents, which are the MCP tools. Such a caller cannot pass for a person.
    pub agent: bool,
    /// Names this one call, so that it is made once however often it is sent.
    pub key: Option<&'a str>,
    /// Is true when a call whose answer depends on environment variables that `context.env` lacks is to be refused with
    /// their names.
    pub env: bool,
    /// Is true when the call runs on an event loop: it has the steps of [`StepBudget::of_an_inline_call`].
    pub inline: bool,
    /// The call that the key stands for; set by [`TableService`](crate::table::TableService).
    pub call: Option<CallIdentity>,
    /// The rest of an earlier call with this key, when its result is not kept; set by
    /// [`TableService`](crate::table::TableService) too.
    pub made: Option<EarlierCall>,
}

impl<'a> Caller<'a> {
    /// A caller by its name.
    pub const fn with_name(name: &'a str) -> Self {
        Self { name, agent: false, key: None, env: false, inline: false, call: None, made: None }
    }

    /// The same, by a surface of agents.
    #[must_use]
    pub const fn by_agent(self) -> Self {
        Self { agent: true, ..self }
    }

    /// The same, for a call that may be sent more than once.
    #[must_use]
    pub const fn with_key(self, key: Option<&'a str>) -> Self {
        Self { key, ..self }
    }

    /// Sets the rest of an earlier call with this key.
    #[must_use]
    pub const fn with_made(self, made: Option<EarlierCall>) -> Self {
        Self { made, ..self }
    }

    /// The same, for a call on an event loop.
    #[must_use]
    pub const fn inline(self) -> Self {
        Self { inline: true, ..self }
    }

    /// Returns the steps that the call may take.
    pub const fn allowed_steps(&self) -> StepBudget {
        if self.inline { StepBudget::of_an_inline_call() } else { StepBudget::of_a_call() }
    }

    /// Marks a call whose `context.env` may lack names: then it is refused with
    /// [`Error::env_names`](crate::error::Error::env_names), and made again with those names.
    #[must_use]
    pub const fn asking_env(self) -> Self {
        Self { env: true, ..self }
    }
}

/// Something that answers the methods of its table: a source in this process, or a PRIMARY elsewhere.
///
/// Each service keeps these rules: a call may come from any thread, and several at once; a refused call changes nothing
/// and names the remedy in one sentence; a call with a [key](Caller::key) is made once, however often it comes
/// ([`TableService`](crate::table::TableService) sees to it); a call that [asks](Caller::env) for environment names is
/// refused with them when its answer could depend on names that `context.env` lacks; a row that is
/// [inline](MethodSpec::inline) answers within microseconds; time comes from the source's [`Clock`](crate::clock::Clock), so that tests can move it.
pub trait Service: Send + Sync {
    /// Returns the rows this service answers, in the order surfaces list them. For a session elsewhere only rows known
    /// here are returned: `nudge.methods` tells all.
    fn methods(&self) -> Vec<&'static MethodSpec>;

    /// The row of this name, if this service answers it.
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

    /// As [`call`](Self::call), on behalf of somebody.
    ///
    /// # Errors
    /// As [`call`](Self::call).
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

/// The error for a name that none of the methods has. It does not repeat the name, which may be anything, but says
/// which of theirs is near.
pub fn unknown_method(name: &str, methods: &[&'static MethodSpec]) -> Error {
    let bare = |name: &'static str| name.strip_prefix("nudge.").unwrap_or(name);
    let asked = name.strip_prefix("nudge.").unwrap_or(name);
    let names = || methods.iter().map(|method| bare(method.name));
    // A name without the prefix means just that one.
    let meant = names().find(|name| *name == asked).or_else(|| find_nearest(asked, names()));
    let message = match meant {
        Some(near) => format!("There is no such method; did you mean `nudge.{near}`?"),
        None => "There is no such method; `nudge.methods` lists them.".to_owned(),
    };
    Error::new(ErrorKind::UnknownMethod, message)
}

/// The call that a key is used for: a method and a fingerprint of its params.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallIdentity {
    method: &'static str,
    params: u64,
    /// Is true when the params surely hold neither a secret nor a value of the environment, which could be guessed from
    /// their fingerprint.
    open: bool,
}

impl CallIdentity {
    /// Makes a call of `method` with these params. They count as open when some words are absent, which errs on the
    /// safe side: JSON can write a letter only as itself or with `\u`.
    pub fn new(method: &'static str, params: &str) -> Self {
        let open = !["secret", "\"env\"", "\\u"].iter().any(|word| params.contains(word));
        // FNV-1a: it is recorded, and so the same in every process and version.
        let fnv = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        Self { method, params: params.bytes().fold(0xcbf2_9ce4_8422_2325, fnv), open }
    }

    /// As a record holds it: the method, and the fingerprint unless it is about secrets.
    pub fn to_record_text(self, secrets: bool) -> String {
        let Self { method, params, open } = self;
        if open && !secrets { format!("{method} {params:016x}") } else { method.into() }
    }

    /// Refuses a key that was used for another call than this one, as far as its record tells.
    ///
    /// # Errors
    /// `E_INVALID`.
    pub fn check_recorded(self, recorded: &str) -> Result<()> {
        if recorded == self.method || recorded == self.to_record_text(false) {
            return Ok(());
        }
        Err(Error::invalid("This Idempotency-Key was used for another call; use a new key for each call."))
    }
}

/// The rest of an earlier call whose result is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EarlierCall {
    /// It was about a secret, and another process made it: the journal holds only this version that it led to.
    Lost(u64),
    /// The result was large, and is not kept any more. The call is not made again: a set or a bump answers with the
    /// value stored now, any other is refused.
    Dropped,
}
