//! Subscriptions of MCP clients to changes. Clients of the 2025 protocol subscribe to single resources, and the
//! notifications go to the client; those of 2026 listen with a filter, and the notifications belong to that request.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::RoleServer;
use rmcp::model::{
    ErrorData, ResourceUpdatedNotification, ResourceUpdatedNotificationParam, ServerNotification, SubscriptionFilter,
};
use rmcp::service::{Peer, ServiceError, SubscriptionContext, SubscriptionSendError};
use tokio::sync::{OnceCell, Semaphore};
use tokio::task::AbortHandle;

use super::resources::Target;
use crate::server::session::changes::{Batch, Changes, Feed};

/// Largest number of resources that one client may subscribe to, or one request listen for.
const MAX_SUBSCRIPTIONS: usize = 1_000;
/// Longest URI; the longest name fits even when all of it is percent-encoded.
const MAX_URI_BYTES: usize = 1_024;
/// Largest number of `subscriptions/listen` requests of one client at a time.
const MAX_LISTENS: usize = 16;

/// Targets by URI, as the client writes it; `None` for a URI that can never name anything.
type Subscribed = Arc<Mutex<BTreeMap<String, Option<Target>>>>;

/// The subscriptions of one client.
pub struct Subscriptions {
    subscribed: Subscribed,
    /// The task that notifies a client of 2025, started once it has asked for resources or tools.
    teller: OnceCell<Teller>,
    /// Feeds of listening clients, each begun before its request is acknowledged, so that nothing is missed.
    feeds: Mutex<VecDeque<Feed>>,
    listens: Semaphore,
}

impl Default for Subscriptions {
    fn default() -> Self {
        Self {
            subscribed: Arc::default(),
            teller: OnceCell::default(),
            feeds: Mutex::default(),
            listens: Semaphore::new(MAX_LISTENS),
        }
    }
}

/// A notifying task, which is aborted when its client goes.
struct Teller(AbortHandle);

impl Drop for Teller {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Subscriptions {
    /// Starts the task that notifies a client of 2025, unless it runs.
    pub async fn tell(&self, changes: &Changes, peer: &Peer<RoleServer>) {
        let start = async || {
            let feed = changes.feed();
            changes.note_names().await;
            Teller(tokio::spawn(tell(feed, Arc::clone(&self.subscribed), peer.clone())).abort_handle())
        };
        self.teller.get_or_init(start).await;
    }

    /// Subscribes the client to a resource, whether it exists already or not.
    pub fn add(&self, uri: String) -> Result<(), ErrorData> {
        let mut subscribed = lock(&self.subscribed);
        if uri.len() > MAX_URI_BYTES || (subscribed.len() >= MAX_SUBSCRIPTIONS && !subscribed.contains_key(&uri)) {
            let message = format!("At most {MAX_SUBSCRIPTIONS} URIs of {MAX_URI_BYTES} bytes can be subscribed to.");
            return Err(ErrorData::invalid_params(message, None));
        }
        let target = Target::parse(&uri);
        subscribed.insert(uri, target);
        Ok(())
    }

    /// Ends the subscription to a resource.
    pub fn remove(&self, uri: &str) {
        lock(&self.subscribed).remove(uri);
    }

    /// Returns the accepted part of a filter. A list with too many URIs is left out, as rmcp compares them one by one.
    pub fn accept(&self, changes: &Changes, requested: &SubscriptionFilter) -> SubscriptionFilter {
        lock(&self.feeds).push_back(changes.feed());
        let mut accepted = requested.clone();
        let fits =
            |uris: &Vec<String>| uris.len() <= MAX_SUBSCRIPTIONS && uris.iter().all(|uri| uri.len() <= MAX_URI_BYTES);
        accepted.resource_subscriptions = accepted.resource_subscriptions.filter(fits);
        accepted
    }

    /// Sends notifications to one listening request until it is cancelled or the server stops.
    pub async fn listen(&self, changes: &Changes, context: SubscriptionContext) -> Result<(), ErrorData> {
        let feed = lock(&self.feeds).pop_front();
        let Ok(_one) = self.listens.try_acquire() else {
            let message = format!("At most {MAX_LISTENS} listen at a time; cancel one first.");
            return Err(ErrorData::invalid_request(message, None));
        };
        let mut feed = feed.unwrap_or_else(|| changes.feed());
        changes.note_names().await;
        let uris = context.accepted().resource_subscriptions.iter().flatten();
        let subscribed: BTreeMap<_, _> = uris.map(|uri| (uri.clone(), Target::parse(uri))).collect();
        loop {
            let batch = tokio::select! {
                batch = feed.next() => batch,
                () = context.cancelled() => return Ok(()),
            };
            let Some(batch) = batch else { return Ok(()) };
            // An error means that the client no longer reads.
            if report(&context, &subscribed, &batch).await.is_err() {
                return Ok(());
            }
        }
    }
}

async fn report(
    context: &SubscriptionContext,
    subscribed: &BTreeMap<String, Option<Target>>,
    batch: &Batch,
) -> Result<(), SubscriptionSendError> {
    let sink = context.sink();
    if batch.touches_names() && context.accepted().resources_list_changed == Some(true) {
        sink.notify_resource_list_changed().await?;
    }
    if batch.touches_tools() && context.accepted().tools_list_changed == Some(true) {
        sink.notify_tool_list_changed().await?;
    }
    for uri in changed(subscribed, batch) {
        sink.notify_resource_updated(uri).await?;
    }
    Ok(())
}

/// Sends notifications to a client of 2025 until it is gone or the server stops.
async fn tell(mut feed: Feed, subscribed: Subscribed, peer: Peer<RoleServer>) -> Result<(), ServiceError> {
    while let Some(batch) = feed.next().await {
        if batch.touches_names() {
            peer.notify_resource_list_changed().await?;
        }
        if batch.touches_tools() {
            peer.notify_tool_list_changed().await?;
        }
        let uris: Vec<_> = changed(&lock(&subscribed), &batch).cloned().collect();
        for uri in uris {
            let update = ResourceUpdatedNotification::new(ResourceUpdatedNotificationParam::new(uri));
            peer.send_notification(ServerNotification::ResourceUpdatedNotification(update)).await?;
        }
    }
    Ok(())
}

fn changed<'a>(subscribed: &'a BTreeMap<String, Option<Target>>, batch: &'a Batch) -> impl Iterator<Item = &'a String> {
    let changed = |target: &Option<Target>| match target {
        // A page never changes.
        None | Some(Target::Page(..)) => false,
        Some(Target::List(source)) => batch.touches_list(source.name),
        Some(Target::Item(source, name)) => batch.touches(source.name, name),
    };
    subscribed.iter().filter(move |(_, target)| changed(target)).map(|(uri, _)| uri)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
