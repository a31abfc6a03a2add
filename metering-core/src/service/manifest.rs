//! What the service sells, for agents that look for it.

use crate::service::Service;
use crate::wire::x402::Manifest;

impl Service {
    /// The document at [`MANIFEST_PATH`](crate::wire::x402::MANIFEST_PATH). `None` while nothing is offered.
    ///
    /// It changes only when offers are made ([`Service::offer`]), so it can be made once after that.
    #[must_use]
    pub fn manifest(&self) -> Option<Manifest> {
        let offers = Some(self.offers()).filter(|offers| !offers.is_empty())?;
        Some(Manifest::new(&self.catalogue, offers, &self.config.public_url, self.clock.now()))
    }
}
