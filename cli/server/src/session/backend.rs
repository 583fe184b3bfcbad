//! Routes calls to the services of this process, or to a PRIMARY in another process. The route changes when a PROXY
//! becomes PRIMARY, and when it joins the session that replaced its own session. A running call is then sent again with
//! the same idempotency key.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use nudge::{Caller, Result, Service};
use nudge_app::sources;
use nudge_client::{Client, is_displaced, new_key};
use nudge_core::service::CallLane;
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio::time::timeout;

use super::calls;
use crate::memory;
use crate::work::{self, CallerId, MAX_WAITING, PLACES_OF_A_CALLER, WorkDesk};

/// The most calls that a PROXY forwards before the PRIMARY has answered. Calls in [`CallLane::Vital`] do not count.
const MAX_FORWARDED: usize = PLACES_OF_A_CALLER + MAX_WAITING;

/// The time for which a call waits until its PROXY has joined the session that replaced its own session.
const DISPLACED_PATIENCE: Duration = Duration::from_secs(6);

/// The route for the calls of one caller.
pub struct CallBackend {
    route: Arc<watch::Sender<AnsweringSide>>,
    desk: WorkDesk,
    forwarded: AtomicUsize,
}

#[derive(Clone)]
enum AnsweringSide {
    Here(Arc<dyn Service>),
    There(Arc<Client>),
}

impl CallBackend {
    /// Routes calls to the services of this process.
    pub fn from_service(service: Arc<dyn Service>, desk: WorkDesk) -> Self {
        Self::from_target(AnsweringSide::Here(service), desk)
    }

    /// Routes calls to the PRIMARY in another process.
    pub fn from_client(client: Arc<Client>, desk: WorkDesk) -> Self {
        Self::from_target(AnsweringSide::There(client), desk)
    }

    fn from_target(target: AnsweringSide, desk: WorkDesk) -> Self {
        Self { route: Arc::new(watch::Sender::new(target)), desk, forwarded: AtomicUsize::new(0) }
    }

    /// Returns the same route for another caller, with that caller's places.
    #[must_use]
    pub fn for_caller(&self, caller: CallerId) -> Self {
        let (route, desk) = (Arc::clone(&self.route), self.desk.for_caller(caller));
        Self { route, desk, forwarded: AtomicUsize::new(0) }
    }

    /// Returns the work desk of the caller.
    pub fn desk(&self) -> &WorkDesk {
        &self.desk
    }

    /// Routes calls to the services of this process, which is now PRIMARY.
    pub fn promote(&self, service: Arc<dyn Service>) {
        self.route.send_replace(AnsweringSide::Here(service));
    }

    /// Routes calls to the PRIMARY of the session that this PROXY has joined.
    pub fn go_over(&self, client: Arc<Client>) {
        self.route.send_replace(AnsweringSide::There(client));
    }

    /// Makes a call without the caller's name.
    ///
    /// # Errors
    /// The method's own errors; `E_UNAVAILABLE` when the PRIMARY does not answer.
    pub async fn call(&self, method: &str, params: &RawValue) -> Result<Box<RawValue>> {
        self.call_by(Caller::default(), method, params).await
    }

    /// Makes a call.
    ///
    /// # Errors
    /// The errors of [`call`](Self::call).
    pub async fn call_by(&self, caller: Caller<'_>, method: &str, params: &RawValue) -> Result<Box<RawValue>> {
        let mut route = self.route.subscribe();
        let mut target = route.borrow_and_update().clone();
        let _forwarded = match &target {
            AnsweringSide::There(_) => ForwardedCall::begin_call(&self.forwarded, method)?,
            AnsweringSide::Here(service) => {
                return calls::call(&self.desk, Arc::clone(service), caller, method, params).await;
            }
        };
        // All tries have the same idempotency key: a PRIMARY that died may have made the change and stored it.
        let key = new_key();
        let caller = caller.with_key(Some(&key));
        loop {
            let client = match target {
                AnsweringSide::There(client) => client,
                AnsweringSide::Here(service) => return calls::call(&self.desk, service, caller, method, params).await,
            };
            let reply = tokio::select! {
                biased;
                () = has_changed(&mut route) => None,
                reply = client.call(caller, method, params) => Some(reply),
            };
            if let Some(reply) = reply {
                memory::note_use(params.get().len() + reply.as_ref().map_or(0, |reply| reply.get().len()));
                let goes_over = reply.as_ref().is_err_and(is_displaced)
                    && timeout(DISPLACED_PATIENCE, has_changed(&mut route)).await.is_ok();
                if !goes_over {
                    return reply;
                }
            }
            target = route.borrow_and_update().clone();
        }
    }
}

/// Resolves when the route changes. Never resolves if the route can no longer change.
async fn has_changed(route: &mut watch::Receiver<AnsweringSide>) {
    if route.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Counts a forwarded call until this value is dropped.
struct ForwardedCall<'a>(&'a AtomicUsize);

impl<'a> ForwardedCall<'a> {
    fn begin_call(forwarded: &'a AtomicUsize, method: &str) -> Result<Self> {
        let entered = Self(forwarded);
        let before = forwarded.fetch_add(1, Ordering::Relaxed);
        if before < MAX_FORWARDED || is_vital(method) { Ok(entered) } else { Err(work::crowded_error(MAX_WAITING)) }
    }
}

impl Drop for ForwardedCall<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Returns true for a method in [`CallLane::Vital`]. Returns false for a method that this process does not have.
fn is_vital(method: &str) -> bool {
    sources::find_method(method).is_some_and(|row| row.lane == CallLane::Vital)
}
