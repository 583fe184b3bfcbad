//! Counts the PROXYs that are connected to this PRIMARY, for `nudge.status` and for the end of a stopped session.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// The connected PROXYs: the number of connections for each pid.
#[derive(Default)]
pub struct ConnectedProxies(Mutex<BTreeMap<u32, usize>>);

impl ConnectedProxies {
    /// Counts a connection of a PROXY until the returned value is dropped.
    pub fn add_connection(self: &Arc<Self>, pid: u32) -> ConnectedProxy {
        *self.0.lock().entry(pid).or_default() += 1;
        ConnectedProxy { proxies: Arc::clone(self), pid }
    }

    /// Returns the pids of all connected PROXYs.
    pub fn pids(&self) -> Vec<u32> {
        self.0.lock().keys().copied().collect()
    }
}

/// A connection of a PROXY, counted until this value is dropped.
pub struct ConnectedProxy {
    proxies: Arc<ConnectedProxies>,
    pid: u32,
}

impl ConnectedProxy {
    /// Returns the process id of the PROXY.
    pub fn pid(&self) -> u32 {
        self.pid
    }
}

impl Drop for ConnectedProxy {
    fn drop(&mut self) {
        let mut proxies = self.proxies.0.lock();
        if let Some(count) = proxies.get_mut(&self.pid) {
            *count -= 1;
            if *count == 0 {
                proxies.remove(&self.pid);
            }
        }
    }
}
