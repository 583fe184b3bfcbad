//! Routes calls to this process's own store or to the PRIMARY elsewhere. The route changes at most once, when a
//! PROXY becomes PRIMARY; a call under way is then sent again, with the same idempotency key.

use std::sync::Arc;

use nudge::{Caller, Result, Service};
use nudge_client::{Client, new_key};
use serde_json::value::RawValue;
use tokio::sync::watch;

use super::calls;
use crate::server::memory;

/// The target of calls.
pub struct Backend(watch::Sender<Answering>);

#[derive(Clone)]
enum Answering {
    Here(Arc<dyn Service>),
    There(Arc<Client>),
}

impl Backend {
    /// Routes calls to the store of this process.
    pub fn here(service: Arc<dyn Service>) -> Self {
        Self(watch::Sender::new(Answering::Here(service)))
    }

    /// Routes calls to the PRIMARY elsewhere.
    pub fn there(client: Arc<Client>) -> Self {
        Self(watch::Sender::new(Answering::There(client)))
    }

    /// Routes calls to the store of this process, which has become PRIMARY.
    pub fn promote(&self, service: Arc<dyn Service>) {
        self.0.send_replace(Answering::Here(service));
    }

    /// Makes a call without a caller's name.
    ///
    /// # Errors
    /// The method's own errors; `E_UNAVAILABLE` when the PRIMARY does not answer.
    pub async fn call(&self, method: &str, params: &RawValue) -> Result<Box<RawValue>> {
        self.call_by(Caller::default(), method, params).await
    }

    /// Makes a call.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub async fn call_by(&self, caller: Caller<'_>, method: &str, params: &RawValue) -> Result<Box<RawValue>> {
        let client = match &*self.0.borrow() {
            Answering::Here(service) => Err(Arc::clone(service)),
            Answering::There(client) => Ok(Arc::clone(client)),
        };
        let client = match client {
            Ok(client) => client,
            Err(service) => return calls::call(service, caller, method, params).await,
        };
        // Both calls carry one idempotency key, as the dead PRIMARY may have done and journalled the change.
        let key = new_key();
        let caller = caller.with_key(Some(&key));
        let mut role = self.0.subscribe();
        let promoted = async {
            loop {
                if let Answering::Here(service) = &*role.borrow_and_update() {
                    break Arc::clone(service);
                }
                if role.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        };
        let service = tokio::select! {
            biased;
            service = promoted => service,
            reply = client.call(caller, method, params) => {
                memory::used(params.get().len() + reply.as_ref().map_or(0, |reply| reply.get().len()));
                return reply;
            }
        };
        calls::call(service, caller, method, params).await
    }
}
