//! Returns memory to the system after large calls. The C library keeps freed memory in every thread that made a call,
//! so without this module one import of 30 MB would occupy that memory as long as the server runs.

use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

/// The least bytes of a call after which the server returns memory.
const LARGE_BYTES: usize = 256 << 10;
/// The least number of things in one change after which the server returns memory, even if the call was short.
const LARGE_CHANGE: u64 = 1_000;
/// The pause after a large call. Most clients have read their answer by then, and one return serves several calls.
const SOON: Duration = Duration::from_secs(1);
/// The pause after which every client has read its answer or has lost its connection.
const LATER: Duration = Duration::from_secs(20);

static USED: Notify = Notify::const_new();

/// Notes that a call has read, written or answered this many bytes.
pub fn note_use(bytes: usize) {
    if bytes >= LARGE_BYTES {
        USED.notify_one();
    }
}

/// Notes that a call has changed or deleted this many things. A short call can free the memory of all hints.
pub fn note_changes(count: u64) {
    if count >= LARGE_CHANGE {
        USED.notify_one();
    }
}

/// Returns memory after each large call; never ends.
pub async fn give_back() {
    loop {
        USED.notified().await;
        loop {
            sleep(SOON).await;
            trim_heap().await;
            if timeout(LATER, USED.notified()).await.is_err() {
                break;
            }
        }
        trim_heap().await;
    }
}

async fn trim_heap() {
    let _ = spawn_blocking(nudge_malloc::trim_arenas).await;
}
