//! Keeps the connections that only read: at most two, opened on demand.

use std::time::Instant;

use parking_lot::{Condvar, Mutex};
use rusqlite::Connection;

use crate::fault::{DatabasePlace, TransactionFailure};
use crate::open;

/// Largest number of connections that read at once.
const MAX: usize = 2;

/// The connections that read.
pub(crate) struct ReaderPool {
    state: Mutex<PoolState>,
    given_back: Condvar,
}

#[derive(Default)]
struct PoolState {
    idle: Vec<Connection>,
    /// The number of open connections, both idle and in use.
    open: usize,
    is_closed: bool,
    /// Counts how often another file has replaced the open one.
    epoch: u64,
}

impl ReaderPool {
    pub(crate) fn new() -> Self {
        Self { state: Mutex::default(), given_back: Condvar::new() }
    }

    /// Takes a connection. Dropping the result returns the connection to the pool.
    pub(crate) fn take_reader(
        &self,
        place: &DatabasePlace,
        deadline: Instant,
    ) -> Result<PooledReader<'_>, TransactionFailure> {
        let mut state = self.state.lock();
        loop {
            if state.is_closed {
                return Ok(PooledReader { pool: self, connection: None, epoch: state.epoch });
            }
            if let Some(connection) = state.idle.pop() {
                return Ok(PooledReader { pool: self, connection: Some(connection), epoch: state.epoch });
            }
            if state.open < MAX {
                state.open += 1;
                break;
            }
            if self.given_back.wait_until(&mut state, deadline).timed_out() {
                return Err(place.busy_error().into());
            }
        }
        let epoch = state.epoch;
        drop(state);
        let left = deadline.saturating_duration_since(Instant::now());
        match open::connect_to_read(place, left) {
            Ok(connection) => Ok(PooledReader { pool: self, connection: Some(connection), epoch }),
            Err(failure) => {
                self.give_back(None, epoch);
                Err(failure)
            }
        }
    }

    fn give_back(&self, connection: Option<Connection>, epoch: u64) {
        let mut state = self.state.lock();
        match connection {
            Some(connection) if !state.is_closed && epoch == state.epoch => state.idle.push(connection),
            _ => state.open -= 1,
        }
        self.given_back.notify_one();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state.lock().is_closed
    }

    /// Closes the idle connections now, and each other connection when its user returns it.
    pub(crate) fn close(&self) {
        self.end_idle(|state| state.is_closed = true);
    }

    /// Closes the present connections as [`close`](Self::close) does. Later calls open connections to the file that
    /// replaced the old one.
    pub(crate) fn begin_anew(&self) {
        self.end_idle(|state| state.epoch += 1);
    }

    /// Returns how often another file has replaced the open one.
    pub(crate) fn epoch(&self) -> u64 {
        self.state.lock().epoch
    }

    fn end_idle(&self, change: impl FnOnce(&mut PoolState)) {
        let mut state = self.state.lock();
        change(&mut state);
        state.open -= state.idle.len();
        state.idle.clear();
        self.given_back.notify_all();
    }
}

/// A connection of the pool that is in use.
pub(crate) struct PooledReader<'a> {
    pool: &'a ReaderPool,
    /// The connection; `None` when the pool is closed.
    pub connection: Option<Connection>,
    epoch: u64,
}

impl Drop for PooledReader<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.pool.give_back(Some(connection), self.epoch);
        }
    }
}
