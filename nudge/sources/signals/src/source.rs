//! Offers the signals as a source. The source stores no signal in memory: every PRIMARY reads the same files.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use nudge_core::clock::{Clock, Millis, rfc3339};
use nudge_core::context::{EnvNames, ask_env_of};
use nudge_core::error::Result;
use nudge_core::once::OnceByKey;
use nudge_core::service::{Caller, MethodSpec};
use nudge_core::settings::{ServeFlag, Setting, SettingKind};
use nudge_core::source::{ChangeEvent, ChangeSink, Fence, LongCommand, Source, SourceHost, SourceSpec};
use nudge_core::suggest::{SourceOffers, SuggestRequest};
use nudge_core::table::{MethodTable, TableService, build_schema};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::method::{AGENT_ID, CHECK, ReadySignal, STATE_DIR, SentSignal, TABLE};
use crate::state::StateDir;
use crate::{offer, patrol, watch};

/// Registers the signals in the list of sources.
pub static SOURCE: SourceSpec = SourceSpec {
    name: "signals",
    methods: || TABLE.methods(),
    guide: "Agents beside you: nudge_signals_send tells one to stop or asks if it is alive; answer with nudge_signals_respond.",
    settings: &[Setting {
        name: "signals.on",
        kind: SettingKind::Switch,
        default: "0",
        flag: ServeFlag::On,
        about: "List the tools of signals before there is a state directory",
    }],
    resources: None,
    list: CHECK,
    env: &[STATE_DIR, AGENT_ID],
    alone: true,
    commands: &[
        LongCommand {
            row: MethodSpec::new(
                "nudge.signals.watch",
                "Watch signals",
                "Print each signal as it comes: yours, or those of every agent.",
                build_schema::<watch::WatchParams>,
            )
            .inferred(),
            run: watch::run_watch,
        },
        LongCommand {
            row: MethodSpec::new(
                "nudge.signals.deacon",
                "Ask quiet agents",
                "Ask agents that have work and show no activity, and mail the mayor who does not answer.",
                build_schema::<patrol::DeaconParams>,
            )
            .inferred(),
            run: patrol::run_deacon,
        },
    ],
    works: false,
    open: |host| Ok(Arc::new(SignalsSource::open(host))),
};

/// The opened source.
pub struct SignalsSource {
    clock: Arc<dyn Clock>,
    fence: Arc<dyn Fence>,
    changes: Arc<dyn ChangeSink>,
    /// Is true when the context of any caller had a state directory, or when the setting is on.
    in_use: AtomicBool,
    sent: AtomicU64,
}

impl SignalsSource {
    fn open(host: SourceHost<'_>) -> Self {
        let SourceHost { clock, fence, changes, settings, .. } = host;
        let cwd = std::env::current_dir().ok();
        let named = std::env::var(STATE_DIR).ok();
        let here = || StateDir::find(named.as_deref(), cwd.as_deref().map(Path::new)).is_ok_and(|state| state.exists());
        let in_use = AtomicBool::new(settings.is_on("signals.on") || here());
        Self { clock, fence, changes, in_use, sent: AtomicU64::new(0) }
    }

    pub(crate) fn now(&self) -> Millis {
        self.clock.now()
    }

    /// Writes a signal and reports the change.
    pub(crate) fn deliver(&self, caller: Caller<'_>, ready: ReadySignal) -> Result<SentSignal> {
        let ReadySignal { state, to, draft } = ready;
        let mut written = None;
        self.fence.commit(&mut || {
            written = Some(state.inbox(&to).send(draft.clone(), self.clock.now())?);
            Ok(())
        })?;
        // `written` is set if the fence allowed the write.
        let signal =
            written.ok_or_else(|| nudge_core::error::Error::unavailable("Nothing was sent; send it again."))?;
        self.in_use.store(true, Ordering::Relaxed);
        self.sent.fetch_add(1, Ordering::Relaxed);
        let detail = [("agent", to.as_str()), ("from", signal.from.as_str()), ("type", signal.kind.as_str())];
        self.changes.tell_changes(&[ChangeEvent {
            source: SOURCE.name,
            what: "send",
            at: rfc3339::format_time(self.clock.now()),
            by: caller.name.into(),
            touched: Vec::new(),
            detail: detail.map(|(name, text)| (name.to_owned(), text.into())).into_iter().collect(),
        }]);
        Ok(SentSignal { agent: to, signal })
    }
}

impl TableService for SignalsSource {
    const TABLE: &'static MethodTable<Self> = &TABLE;

    // The method needs no key: a repeated call writes the same signal again, and the last signal wins.
    fn once_by_key(&self, _: &MethodSpec) -> Option<&dyn OnceByKey> {
        None
    }

    fn ask_env(&self, _: &MethodSpec, params: &RawValue) -> Result<()> {
        let names = || SOURCE.env.iter().map(|name| (*name).to_owned()).collect();
        ask_env_of(params, false, || EnvNames { names: names(), values: names() })
    }
}

impl Source for SignalsSource {
    fn find_offers(&self, request: &SuggestRequest) -> SourceOffers {
        let (offers, is_there) = offer::make_offers(request);
        if is_there {
            self.in_use.store(true, Ordering::Relaxed);
        }
        offers
    }

    fn in_use(&self) -> bool {
        self.in_use.load(Ordering::Relaxed)
    }

    fn report_status(&self) -> Map<String, Value> {
        if !self.in_use() {
            return Map::new();
        }
        Map::from_iter([(SOURCE.name.to_owned(), json!({"sent": self.sent.load(Ordering::Relaxed)}))])
    }
}
