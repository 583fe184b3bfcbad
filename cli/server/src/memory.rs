//! Gives memory back after large calls. The C library keeps freed memory for each thread that made a call. So one
//! import of 30 MB would count as in use for as long as the server runs.

use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

/// Size from which a call leaves enough behind.
const LARGE_BYTES: usize = 256 << 10;
/// Pause after a large call: most answers are read by then, and several calls are tidied up after at once.
const SOON: Duration = Duration::from_secs(1);
/// Pause after which the last answers have been read, or their readers cut off.
const LATER: Duration = Duration::from_secs(20);

static USED: Notify = Notify::const_new();

/// Notes that so many bytes were read, written or answered.
pub fn note_use(bytes: usize) {
    if bytes >= LARGE_BYTES {
        USED.notify_one();
    }
}

/// Gives memory back after each large call, for ever.
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
