use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::offers::{Offer, Offers, PayRefusal, PaymentLimit, SignedAuthorization};
use crate::service::challenges::ChallengeSettings;
use crate::service::settling::{OfferChain, Settling};
use crate::wire::x402::Site;

/// The offers of a service, and who settles what is paid.
pub(super) struct OfferSettlement {
    pub(super) settling: Arc<Settling>,
    pub(super) offers: OnceLock<Offers>,
    /// What wallets sign in to; `None` if the service does not know its URL.
    pub(super) site: Option<Site>,
    pub(super) wait: Duration,
    pub(super) keyless: bool,
    pub(super) limit: Option<Arc<dyn PaymentLimit>>,
    pub(super) challenges: Option<ChallengeSettings>,
}

impl fmt::Debug for OfferSettlement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OfferSettlement")
            .field("offers", &self.offers)
            .field("keyless", &self.keyless)
            .finish_non_exhaustive()
    }
}

impl OfferSettlement {
    /// The offer that an authorization takes, and its chain.
    pub(super) fn offer(&self, signed: &SignedAuthorization) -> Result<(&OfferChain, &Offer), PayRefusal> {
        let (chain_id, token, amount) = (signed.chain_id, signed.token, signed.authorization.value);
        let offer = self.offers.get().and_then(|offers| offers.find(chain_id, token, amount));
        self.settling.chains.get(&signed.chain_id).zip(offer).ok_or(PayRefusal::NotOffered)
    }
}
