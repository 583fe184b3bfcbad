//! Locks and counters for data that many threads change. With the feature `shuttle`, a test can run its threads in any
//! order. Only such tests may use the feature: the locks panic in other programs.

#[cfg(not(feature = "shuttle"))]
pub use parking_lot::{Mutex, MutexGuard, RwLock};
#[cfg(feature = "shuttle")]
pub use shuttle::sync::{MutexGuard, atomic};
#[cfg(not(feature = "shuttle"))]
pub use std::sync::atomic;

#[cfg(feature = "shuttle")]
pub use ordered::{Mutex, RwLock};

/// Runs `round` in as many orders as `NUDGE_ORDERS` says, or in 1,000. Half of the orders are random. In the other
/// half, the threads switch only a few times, at random points. This finds errors that occur only when one thread
/// pauses for long.
///
/// # Panics
/// Panics when a round panics, or when its threads wait for each other; the output names the order.
#[cfg(feature = "shuttle")]
pub fn in_any_order(round: impl Fn() + Send + Sync + 'static) {
    const SWITCHES: usize = 3;
    let orders = std::env::var("NUDGE_ORDERS").ok().and_then(|orders| orders.parse().ok()).unwrap_or(1_000);
    let round = std::sync::Arc::new(round);
    let again = std::sync::Arc::clone(&round);
    shuttle::check_random(move || again(), orders / 2);
    shuttle::check_pct(move || round(), orders - orders / 2, SWITCHES);
}

/// The locks of `shuttle` with the calls of `parking_lot`, whose locks stay usable after a panic.
#[cfg(feature = "shuttle")]
mod ordered {
    use shuttle::sync::{self, MutexGuard, PoisonError, RwLockReadGuard, RwLockWriteGuard};

    /// A lock that only one thread can hold.
    #[derive(Debug, Default)]
    pub struct Mutex<T>(sync::Mutex<T>);

    impl<T> Mutex<T> {
        /// Makes a lock around a value.
        pub const fn new(value: T) -> Self {
            Self(sync::Mutex::new(value))
        }

        /// Waits for the lock.
        pub fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }

    /// A lock for one writer or for many readers.
    #[derive(Debug, Default)]
    pub struct RwLock<T>(sync::RwLock<T>);

    impl<T> RwLock<T> {
        /// Makes a lock around a value.
        pub const fn new(value: T) -> Self {
            Self(sync::RwLock::new(value))
        }

        /// Waits for the lock, for reading.
        pub fn read(&self) -> RwLockReadGuard<'_, T> {
            self.0.read().unwrap_or_else(PoisonError::into_inner)
        }

        /// Waits for the lock, for writing.
        pub fn write(&self) -> RwLockWriteGuard<'_, T> {
            self.0.write().unwrap_or_else(PoisonError::into_inner)
        }
    }
}
