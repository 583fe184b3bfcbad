//! `nudge signals watch`: prints each signal when it arrives.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use nudge_core::clock::Millis;
use nudge_core::context::ContextSpec;
use nudge_core::error::{Error, Result};
use nudge_core::source::CommandHost;
use nudge_core::text::{format_ago, one_line};
use nudge_core::wire;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::agent::AgentId;
use crate::method::{AGENT_ID, state_for};
use crate::news::FollowedFolders;
use crate::offer::guard_signal;
use crate::signal::{Signal, SignalType};
use crate::stamp;
use crate::state::StateDir;

/// Params of `nudge signals watch`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WatchParams {
    /// The agent. Absent: `NUDGE_AGENT_ID`, else every agent.
    #[serde(default, deserialize_with = "wire::given")]
    agent: Option<String>,
    /// Leave out the signal that is there, unless it is newer than this time.
    #[serde(default, deserialize_with = "wire::given")]
    last_seen: Option<String>,
    /// Agents' context.
    #[serde(default, deserialize_with = "wire::object_or_default")]
    context: ContextSpec,
}

/// The longest time between two looks at the files.
const LOOK: Duration = Duration::from_secs(2);
/// The most characters of a signal's message in a printed line.
const MAX_MESSAGE_CHARS: usize = 500;

/// Runs until it is stopped.
pub fn run_watch(params: &serde_json::value::RawValue, host: &CommandHost<'_>) -> Result<()> {
    let WatchParams { agent, last_seen, context } =
        serde_json::from_str(params.get()).map_err(|error| Error::invalid(format!("{error}.")))?;
    let context = context.build()?;
    let state = state_for(&context)?;
    let own = agent.as_deref().or_else(|| context.env(AGENT_ID).filter(|name| !name.is_empty()));
    let own = own.map(|name| AgentId::new("agent", name)).transpose()?;
    let mut news = FollowedFolders::new(&host.stop);
    let mut seen: HashMap<AgentId, Option<Signal>> = HashMap::new();
    loop {
        let agents = match &own {
            Some(own) => vec![own.clone()],
            None => state.list_agents()?.0,
        };
        // Follows the folders before it reads the files, so no signal is missed in between.
        news.follow_folders(list_folders(&state, &agents).iter().map(PathBuf::as_path));
        let now = host.clock.now();
        for agent in agents {
            let found = state.inbox(&agent).read(now)?.and_then(Result::ok);
            let before = seen.insert(agent.clone(), found.clone());
            let Some(signal) =
                found.filter(|found| before.as_ref().is_none_or(|earlier| earlier.as_ref() != Some(found)))
            else {
                continue;
            };
            let signal = guard_signal(&signal);
            let is_old =
                |seen: &String| before.is_none() && !stamp::is_newer(&signal.timestamp, seen, host.clock.now());
            if !last_seen.as_ref().is_some_and(is_old) {
                let mut object = json!({"agent": agent});
                if let (Some(object), Ok(serde_json::Value::Object(fields))) =
                    (object.as_object_mut(), serde_json::to_value(&signal))
                {
                    object.extend(fields);
                }
                (host.say)(&format_line(&agent, &signal, host.clock.now()), &object);
            }
        }
        if news.wait_for_news(LOOK) {
            return Ok(());
        }
    }
}

/// Lists the folders in which a signal for these agents can appear.
fn list_folders(state: &StateDir, agents: &[AgentId]) -> Vec<PathBuf> {
    let own = agents.iter().map(|agent| state.of_agent(agent));
    std::iter::once(state.of_signals())
        .chain(own)
        .filter_map(|found| found.ok().flatten().map(|folder| folder.path))
        .collect()
}

fn format_line(agent: &AgentId, signal: &Signal, now: Millis) -> String {
    let answer = signal.requires_response && signal.kind != SignalType::NudgeResponse;
    let answer = if answer { " (waits for an answer)" } else { "" };
    let when =
        stamp::parse_past(&signal.timestamp, now).map_or_else(|| "at no time".into(), |sent| format_ago(sent, now));
    let said = one_line(&signal.message, MAX_MESSAGE_CHARS);
    format!("{agent}: {} from {}, {when}: {said}{answer}", signal.kind.as_str(), signal.from)
}
