//! Resolves the host names of webhooks, and returns only addresses that they may be sent to.
//!
//! The HTTP client connects to exactly the addresses returned here, and resolves again for each connection. So a DNS
//! answer cannot change between check and use.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use async_trait::async_trait;
use metering_core::events::AddressPolicy;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::sync::Semaphore;

/// How many addresses of a host are tried. They share the connect timeout, so more would leave too little for each.
const ADDRESSES_MAX: usize = 8;

/// Looks up the addresses of host names.
#[async_trait]
pub(super) trait Lookup: Send + Sync + fmt::Debug {
    /// The addresses of a name.
    async fn lookup(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// How many lookups may run at a time. A lookup blocks a thread of the pool that SQLite's readers use too (512
/// threads), and takes half a minute if no DNS server responds, although its attempt gave up after five seconds. A
/// customer may choose such names, so the rest of the pool must stay free; but with fewer lookups, one customer could
/// easily delay all other webhooks.
const LOOKUPS_MAX: usize = 64;

/// The resolver of the operating system.
#[derive(Debug)]
pub(super) struct SystemLookup(Arc<Semaphore>);

impl Default for SystemLookup {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(LOOKUPS_MAX)))
    }
}

#[async_trait]
impl Lookup for SystemLookup {
    async fn lookup(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let name = name.to_owned();
        let addresses =
            blocking(&self.0, move || Ok((name.as_str(), 0).to_socket_addrs()?.map(|address| address.ip()).collect()));
        addresses.await
    }
}

/// Runs a lookup on a thread that may block. It keeps its permit until it ends, even if its caller gave up.
async fn blocking<T: Send + 'static>(
    permits: &Arc<Semaphore>,
    lookup: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let permit = Arc::clone(permits).acquire_owned().await.map_err(io::Error::other)?;
    let run = move || {
        let _permit = permit;
        lookup()
    };
    tokio::task::spawn_blocking(run).await.map_err(io::Error::other)?
}

/// Resolves names to the addresses that a policy allows; without a policy, to all of them.
#[derive(Debug, Clone)]
pub(super) struct Resolver {
    pub(super) lookup: Arc<dyn Lookup>,
    pub(super) policy: Option<Arc<AddressPolicy>>,
}

/// The host has addresses, but webhooks may be sent to none of them. Does not name them: that would reveal names in the
/// operator's network to customers.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the host has no address that webhooks may be sent to")]
pub(super) struct NoAllowedAddress;

impl Resolver {
    /// Whether webhooks may be sent to this address.
    pub(super) fn allows(&self, address: IpAddr) -> bool {
        self.policy.as_ref().is_none_or(|policy| policy.allows(address))
    }

    async fn addresses(self, name: &str) -> Result<Addrs, Box<dyn std::error::Error + Send + Sync>> {
        let found = self.lookup.lookup(name).await?;
        if found.is_empty() {
            return Err(io::Error::from(io::ErrorKind::NotFound).into());
        }
        let allowed = found.into_iter().filter(|address| self.allows(*address));
        // The port of the URL takes the place of 0.
        let allowed: Vec<_> = allowed.take(ADDRESSES_MAX).map(|address| SocketAddr::new(address, 0)).collect();
        if allowed.is_empty() { Err(NoAllowedAddress.into()) } else { Ok(Box::new(allowed.into_iter())) }
    }
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let resolver = self.clone();
        Box::pin(async move { resolver.addresses(name.as_str()).await })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn lookups_that_nobody_waits_for_count_until_they_end() {
        let permits = Arc::new(Semaphore::new(1));
        let (end, ended) = channel::<()>();
        let hangs = blocking(&permits, move || Ok(ended.recv().is_err()));
        tokio::time::timeout(Duration::from_millis(50), hangs).await.unwrap_err();
        assert_eq!(permits.available_permits(), 0, "its thread is still blocked");
        let next = tokio::spawn({
            let permits = Arc::clone(&permits);
            async move { blocking(&permits, || Ok(7)).await }
        });
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(!next.is_finished(), "it waits for a permit");
        drop(end);
        assert_eq!(next.await.unwrap().unwrap(), 7);
        assert_eq!(permits.available_permits(), 1);
    }

    #[tokio::test]
    async fn the_system_resolves_names() {
        let found = SystemLookup::default().lookup("localhost").await.unwrap();
        assert!(!found.is_empty() && found.iter().all(IpAddr::is_loopback), "{found:?}");
        assert!(SystemLookup::default().lookup("no-such-name.invalid").await.is_err());
    }
}
