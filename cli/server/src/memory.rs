//! Returns memory to the system after large calls. The C library keeps freed memory for each thread that made a call.
//! Without this, one import of 30 MB would count as used memory as long as the server runs.

use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

/// The bytes of a call from which returning memory is worthwhile.
const LARGE_BYTES: usize = 256 << 10;
/// The pause after a large call. Most clients have read their answer by then, and one run covers several calls.
const SOON: Duration = Duration::from_secs(1);
/// The pause after which every client has read its answer or was cut off.
const LATER: Duration = Duration::from_secs(20);

static USED: Notify = Notify::const_new();

/// Notes that this many bytes were read, written or answered.
pub fn note_use(bytes: usize) {
    if bytes >= LARGE_BYTES {
        USED.notify_one();
    }
}

/// Returns memory after each large call, for ever.
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
