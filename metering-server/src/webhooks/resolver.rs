//! Resolves the host names of webhooks, and returns only addresses that they may be sent to.
//!
//! The HTTP client connects to exactly the addresses returned here, and asks again for each connection. So there is no
//! time between check and use in which a DNS answer could change.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use metering_core::events::AddressPolicy;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// How many addresses of a host are tried. They share the connect timeout, so more would leave too little for each.
const ADDRESSES_MAX: usize = 8;

/// Looks up the addresses of host names.
#[async_trait]
pub(super) trait Lookup: Send + Sync + fmt::Debug {
    /// The addresses of a name.
    async fn lookup(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The resolver of the operating system.
#[derive(Debug)]
pub(super) struct SystemLookup;

#[async_trait]
impl Lookup for SystemLookup {
    async fn lookup(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect())
    }
}

/// Resolves names to the addresses that a policy allows; without a policy, to all of them.
#[derive(Debug, Clone)]
pub(super) struct Resolver {
    pub(super) lookup: Arc<dyn Lookup>,
    pub(super) policy: Option<Arc<AddressPolicy>>,
}

/// The host has addresses, but webhooks may be sent to none of them. Does not say which they are: that would tell
/// customers about names in the operator's network.
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
