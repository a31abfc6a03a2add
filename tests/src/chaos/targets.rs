//! The addresses of the running servers, while campaigns kill and restart them.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// The addresses of the running servers, shared with their callers.
#[derive(Debug, Clone, Default)]
pub(super) struct Targets(Arc<Mutex<Vec<SocketAddr>>>);

impl Targets {
    pub(super) fn set(&self, addresses: impl IntoIterator<Item = SocketAddr>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = addresses.into_iter().collect();
    }

    /// The address for the caller with this number; `None` while no server runs.
    pub(super) fn pick(&self, caller: usize) -> Option<SocketAddr> {
        let addresses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        addresses.get(caller.checked_rem(addresses.len())?).copied()
    }
}
