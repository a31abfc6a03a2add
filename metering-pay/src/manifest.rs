//! The resources that a service sells, for agents that search for services.

use metering_core::Service;

use crate::signed_payments::SignedPayments;
use crate::wire::x402::Manifest;

impl SignedPayments {
    /// The document at [`MANIFEST_PATH`](crate::wire::x402::MANIFEST_PATH) of a service. `None` while nothing is offered.
    ///
    /// It changes only when offers are made ([`SignedPayments::offer`]), so it can be made once after that.
    #[must_use]
    pub fn manifest(&self, service: &Service) -> Option<Manifest> {
        let offers = Some(self.offers()).filter(|offers| !offers.is_empty())?;
        let manifest = Manifest::new(service.catalogue(), offers, service.public_url(), self.clock.now());
        let can_sign_in = self.sign_in_site().is_some();
        Some(if can_sign_in { manifest.with_sign_in(service.public_url()) } else { manifest })
    }
}
