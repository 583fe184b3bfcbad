//! Counts the PROXYs that are connected to this PRIMARY. `nudge.status` and the end of a stopped session need the
//! count.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// The connected PROXYs by process id, each with the number of its connections.
#[derive(Default)]
pub struct ConnectedProxies(Mutex<BTreeMap<u32, usize>>);

impl ConnectedProxies {
    /// Counts a PROXY's connection until the returned value is dropped.
    pub fn add_connection(self: &Arc<Self>, pid: u32) -> ConnectedProxy {
        *self.0.lock().entry(pid).or_default() += 1;
        ConnectedProxy { proxies: Arc::clone(self), pid }
    }

    /// Returns the process ids of all connected PROXYs.
    pub fn pids(&self) -> Vec<u32> {
        self.0.lock().keys().copied().collect()
    }
}

/// A counted connection of a PROXY; a drop ends the count.
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
