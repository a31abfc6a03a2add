//! Where the servers listen right now, while campaigns kill and restart them.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// The addresses of the servers that run, shared with whoever calls them.
#[derive(Debug, Clone, Default)]
pub(super) struct Targets(Arc<Mutex<Vec<SocketAddr>>>);

impl Targets {
    pub(super) fn set(&self, addresses: impl IntoIterator<Item = SocketAddr>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = addresses.into_iter().collect();
    }

    /// The address for the caller of this number; `None` while there is no server.
    pub(super) fn pick(&self, caller: usize) -> Option<SocketAddr> {
        let addresses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        addresses.get(caller.checked_rem(addresses.len())?).copied()
    }
}
