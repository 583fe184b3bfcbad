//! Subscriptions of MCP clients to changes. A client of the 2025 protocol subscribes to single resources, and
//! notifications go to the client. A client of the 2026 protocol listens with a filter, and notifications belong to
//! that request.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::RoleServer;
use rmcp::model::{
    ErrorData, ResourceUpdatedNotification, ResourceUpdatedNotificationParam, ServerNotification, SubscriptionFilter,
};
use rmcp::service::{Peer, ServiceError, SubscriptionContext, SubscriptionSendError};
use tokio::sync::{OnceCell, Semaphore};
use tokio::task::AbortHandle;

use super::resources::ResourceTarget;
use crate::session::changes::{ChangeBatch, ChangeFeed, ChangeFeeds};

/// The most resources in the subscriptions of one client, or in one `subscriptions/listen` request.
const MAX_SUBSCRIPTIONS: usize = 1_000;
/// The most bytes of a URI. The longest name fits, even with every character percent-encoded.
const MAX_URI_BYTES: usize = 1_024;
/// The most `subscriptions/listen` requests of one client at a time.
const MAX_LISTENS: usize = 16;

/// The targets by URI, in the client's spelling. `None` stands for a URI that can never name a resource.
type Subscribed = Arc<Mutex<BTreeMap<String, Option<ResourceTarget>>>>;

/// The subscriptions of one client.
pub struct ClientSubscriptions {
    subscribed: Subscribed,
    /// The task that notifies a client of 2025. It starts when the client asks for resources or tools.
    teller: OnceCell<NotifyingTask>,
    /// The feeds of listening clients. A feed opens before its request is acknowledged, so it misses no change.
    feeds: Mutex<VecDeque<ChangeFeed>>,
    listens: Semaphore,
}

impl Default for ClientSubscriptions {
    fn default() -> Self {
        Self {
            subscribed: Arc::default(),
            teller: OnceCell::default(),
            feeds: Mutex::default(),
            listens: Semaphore::new(MAX_LISTENS),
        }
    }
}

/// A task that notifies a client. A drop aborts the task.
struct NotifyingTask(AbortHandle);

impl Drop for NotifyingTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl ClientSubscriptions {
    /// Starts the task that notifies a client of 2025. Does nothing if the task already runs.
    pub async fn start_notifying(&self, changes: &ChangeFeeds, peer: &Peer<RoleServer>) {
        let start = async || {
            let feed = changes.open_feed();
            changes.note_names().await;
            NotifyingTask(tokio::spawn(notify_client(feed, Arc::clone(&self.subscribed), peer.clone())).abort_handle())
        };
        self.teller.get_or_init(start).await;
    }

    /// Subscribes the client to a resource, even if it does not exist yet.
    pub fn subscribe(&self, uri: String) -> Result<(), ErrorData> {
        let mut subscribed = self.subscribed.lock();
        if uri.len() > MAX_URI_BYTES || (subscribed.len() >= MAX_SUBSCRIPTIONS && !subscribed.contains_key(&uri)) {
            let message = format!("At most {MAX_SUBSCRIPTIONS} URIs of {MAX_URI_BYTES} bytes can be subscribed to.");
            return Err(ErrorData::invalid_params(message, None));
        }
        let target = ResourceTarget::parse(&uri);
        subscribed.insert(uri, target);
        Ok(())
    }

    /// Ends the subscription to a resource.
    pub fn unsubscribe(&self, uri: &str) {
        self.subscribed.lock().remove(uri);
    }

    /// Returns the part of a filter that the server accepts. Refuses a list with too many URIs, because rmcp compares
    /// them one by one.
    pub fn accept_filter(&self, changes: &ChangeFeeds, requested: &SubscriptionFilter) -> SubscriptionFilter {
        self.feeds.lock().push_back(changes.open_feed());
        let mut accepted = requested.clone();
        let fits =
            |uris: &Vec<String>| uris.len() <= MAX_SUBSCRIPTIONS && uris.iter().all(|uri| uri.len() <= MAX_URI_BYTES);
        accepted.resource_subscriptions = accepted.resource_subscriptions.filter(fits);
        accepted
    }

    /// Sends notifications for one listening request, until the client cancels it or the server stops.
    pub async fn notify_listener(&self, changes: &ChangeFeeds, context: SubscriptionContext) -> Result<(), ErrorData> {
        let feed = self.feeds.lock().pop_front();
        let Ok(_one) = self.listens.try_acquire() else {
            let message = format!("At most {MAX_LISTENS} listen at a time; cancel one first.");
            return Err(ErrorData::invalid_request(message, None));
        };
        let mut feed = feed.unwrap_or_else(|| changes.open_feed());
        changes.note_names().await;
        let uris = context.accepted().resource_subscriptions.iter().flatten();
        let subscribed: BTreeMap<_, _> = uris.map(|uri| (uri.clone(), ResourceTarget::parse(uri))).collect();
        loop {
            let batch = tokio::select! {
                batch = feed.next() => batch,
                () = context.cancelled() => return Ok(()),
            };
            let Some(batch) = batch else { return Ok(()) };
            // An error means that the client no longer reads.
            if report_batch(&context, &subscribed, &batch).await.is_err() {
                return Ok(());
            }
        }
    }
}

async fn report_batch(
    context: &SubscriptionContext,
    subscribed: &BTreeMap<String, Option<ResourceTarget>>,
    batch: &ChangeBatch,
) -> Result<(), SubscriptionSendError> {
    let sink = context.sink();
    if batch.touches_names() && context.accepted().resources_list_changed == Some(true) {
        sink.notify_resource_list_changed().await?;
    }
    if batch.touches_tools() && context.accepted().tools_list_changed == Some(true) {
        sink.notify_tool_list_changed().await?;
    }
    for uri in changed_uris(subscribed, batch) {
        sink.notify_resource_updated(uri).await?;
    }
    Ok(())
}

/// Sends notifications to a client of 2025, until the client disconnects or the server stops.
async fn notify_client(
    mut feed: ChangeFeed,
    subscribed: Subscribed,
    peer: Peer<RoleServer>,
) -> Result<(), ServiceError> {
    while let Some(batch) = feed.next().await {
        if batch.touches_names() {
            peer.notify_resource_list_changed().await?;
        }
        if batch.touches_tools() {
            peer.notify_tool_list_changed().await?;
        }
        let uris: Vec<_> = changed_uris(&subscribed.lock(), &batch).cloned().collect();
        for uri in uris {
            let update = ResourceUpdatedNotification::new(ResourceUpdatedNotificationParam::new(uri));
            peer.send_notification(ServerNotification::ResourceUpdatedNotification(update)).await?;
        }
    }
    Ok(())
}

fn changed_uris<'a>(
    subscribed: &'a BTreeMap<String, Option<ResourceTarget>>,
    batch: &'a ChangeBatch,
) -> impl Iterator<Item = &'a String> {
    let changed = |target: &Option<ResourceTarget>| match target {
        // A page never changes.
        None | Some(ResourceTarget::Page(..)) => false,
        Some(ResourceTarget::List(source)) => batch.touches_list(source.name),
        Some(ResourceTarget::Item(source, name)) => batch.touches_resource(source.name, name),
    };
    subscribed.iter().filter(move |(_, target)| changed(target)).map(|(uri, _)| uri)
}
