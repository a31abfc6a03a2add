//! The state that all handlers share.

use std::sync::Arc;

use metering_core::events::{CourierStats, Wake};
use metering_core::{Clock, Meter, Service, Store};
use metering_pay::SignedPayments;
use metrics_exporter_prometheus::PrometheusHandle;
use sha3::{Digest, Sha3_256};
use subtle::ConstantTimeEq;

use crate::access::limits::Limits;
use crate::api::{Documents, PublishedKeys};
use crate::chains::Readers;
use crate::chains::progress::ChainProgress;
use crate::config::Secret;
use crate::gateway::Gateway;
use crate::http::{Bodies, ClientAddress, Problem};
use crate::log::PostingLog;
use crate::oauth::Issuer;
use crate::operations::clock_watch::ClockWatch;
use crate::operations::readiness::Readiness;
use crate::pages::Pages;
use crate::pay::GasWatch;
use crate::signed_receipts::SignedReceipts;
use crate::signups::bot::BotChallenge;
use crate::stripe::Stripe;

/// The parts of a running server.
#[derive(Debug, Clone)]
pub(crate) struct App {
    pub(crate) service: Arc<Service>,
    /// Takes payments that come with requests, if there are offers.
    pub(crate) payments: Arc<SignedPayments>,
    pub(crate) gateway: Arc<Gateway>,
    /// Reads request bodies, within the budget of the process.
    pub(crate) bodies: Bodies,
    pub(crate) meter: Arc<Meter>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) limits: Arc<Limits>,
    pub(crate) billing_secret: Option<BillingSecret>,
    /// Authenticates reports of payments.
    pub(crate) payments_secret: Option<BillingSecret>,
    /// Who issues tokens of OAuth, if this process offers them.
    pub(crate) issuer: Option<Issuer>,
    /// Signs receipts of requests, if there is a key.
    pub(crate) receipts: Option<SignedReceipts>,
    /// The log of postings.
    pub(crate) log: Arc<PostingLog>,
    /// The public keys of both.
    pub(crate) published_keys: Arc<PublishedKeys>,
    /// Takes payments by card, if that is configured.
    pub(crate) stripe: Option<Arc<Stripe>>,
    pub(crate) metrics: PrometheusHandle,
    /// Whether `/metrics` is served on the API's address.
    pub(crate) metrics_here: bool,
    pub(crate) documents: Arc<Documents>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) clock_watch: Arc<ClockWatch>,
    pub(crate) readiness: Arc<Readiness>,
    pub(crate) progress: Arc<ChainProgress>,
    /// The wallets that pay the gas of payments.
    pub(crate) gas: Arc<GasWatch>,
    pub(crate) readers: Readers,
    pub(crate) bot_challenge: BotChallenge,
    /// Counts of the attempts of this process to deliver webhooks; `None` if it delivers none.
    pub(crate) courier: Option<Arc<CourierStats>>,
    /// Has webhooks sent now, if this process sends any.
    pub(crate) wake_courier: Wake,
    pub(crate) pages: Arc<Pages>,
}

impl App {
    /// Counts a signup towards the limit of its email address. Invalid addresses are not counted; validation rejects
    /// them.
    ///
    /// # Errors
    /// 429 when the limit is reached.
    pub(crate) fn limit_email(&self, client: &ClientAddress, email: Option<&str>) -> Result<(), Problem> {
        email.and_then(|text| text.parse().ok()).map_or(Ok(()), |email| self.limits.email(client, &email))
    }

    /// Counts a quote towards the limit of its wallet. Invalid addresses are not counted; validation rejects them.
    ///
    /// # Errors
    /// 429 when the limit is reached.
    pub(crate) fn limit_quote(&self, client: &ClientAddress, wallet: Option<&str>) -> Result<(), Problem> {
        wallet.and_then(|text| text.parse().ok()).map_or(Ok(()), |wallet| self.limits.quote(client, &wallet))
    }

    /// Counts a request towards the limit of its wallet. Invalid addresses are not counted; validation rejects them.
    ///
    /// # Errors
    /// 429 when the limit is reached.
    pub(crate) fn limit_wallet(&self, wallet: Option<&str>) -> Result<(), Problem> {
        wallet.and_then(|text| text.parse().ok()).map_or(Ok(()), |wallet| self.limits.wallet(&wallet))
    }
}

/// The shared secret of the internal billing API, stored as a hash so that comparison time does not depend on the
/// input.
#[derive(Clone)]
pub(crate) struct BillingSecret([u8; 32]);

impl BillingSecret {
    pub(crate) fn new(secret: &Secret) -> Self {
        Self(Sha3_256::digest(secret.expose().as_bytes()).into())
    }

    /// Whether `sent` is the secret, in constant time.
    pub(crate) fn admits(&self, sent: &[u8]) -> bool {
        let sent: [u8; 32] = Sha3_256::digest(sent).into();
        self.0.ct_eq(&sent).into()
    }
}

impl std::fmt::Debug for BillingSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BillingSecret(********)")
    }
}
