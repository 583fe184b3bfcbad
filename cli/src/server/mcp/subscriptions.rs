//! Who is told of which changes. Clients of 2025 subscribe to resources one by one, and the messages go
//! to the client as a whole; those of 2026 listen with a filter, and the messages belong to that request.

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

/// Resources that one client may subscribe to, or one request listen for.
const MAX_SUBSCRIPTIONS: usize = 1_000;
/// The longest name, all of it percent-encoded, fits.
const MAX_URI_BYTES: usize = 1_024;
/// `subscriptions/listen` requests of one client at a time.
const MAX_LISTENS: usize = 16;

/// By URI, as the client writes it. What can never change is kept too: it simply never does.
type Subscribed = Arc<Mutex<BTreeMap<String, Option<Target>>>>;

/// What one client wants to know.
pub struct Subscriptions {
    subscribed: Subscribed,
    /// Runs once a client of 2025 has asked for resources: who never did is not told of them.
    teller: OnceCell<Teller>,
    /// Begun before a listening client is told that it is heard, so that it misses nothing.
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

/// A task that ends with its client.
struct Teller(AbortHandle);

impl Drop for Teller {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Subscriptions {
    /// From now on the client hears when the list of resources changes.
    pub async fn tell(&self, changes: &Changes, peer: &Peer<RoleServer>) {
        let start = async || {
            let feed = changes.feed();
            changes.note_names().await;
            Teller(tokio::spawn(tell(feed, Arc::clone(&self.subscribed), peer.clone())).abort_handle())
        };
        self.teller.get_or_init(start).await;
    }

    /// From now on the client hears when this resource changes, or when there first is one.
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

    /// No more of this one.
    pub fn remove(&self, uri: &str) {
        lock(&self.subscribed).remove(uri);
    }

    /// What of a filter is heard. Too many URIs are none: rmcp compares them one by one.
    pub fn accept(&self, changes: &Changes, requested: &SubscriptionFilter) -> SubscriptionFilter {
        lock(&self.feeds).push_back(changes.feed());
        let mut accepted = requested.clone();
        let fits =
            |uris: &Vec<String>| uris.len() <= MAX_SUBSCRIPTIONS && uris.iter().all(|uri| uri.len() <= MAX_URI_BYTES);
        accepted.resource_subscriptions = accepted.resource_subscriptions.filter(fits);
        accepted
    }

    /// Tells one listening request until it is cancelled or the server stops.
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
            // An error here means that nobody reads any more.
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

/// Tells a client of 2025 until it is gone or the server stops.
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
        None => false,
        Some(Target::List(source)) => batch.touches_list(source.name),
        Some(Target::Item(source, name)) => batch.touches(source.name, name),
    };
    subscribed.iter().filter(move |(_, target)| changed(target)).map(|(uri, _)| uri)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
