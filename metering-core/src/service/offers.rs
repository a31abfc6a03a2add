//! Payments that come with requests, as the hook ([`RequestPayments`]) accepts them.

use std::sync::Arc;

use crate::access::credentials::Caller;
use crate::access::key::KeyHash;
use crate::catalogue::Route;
use crate::charging::delivery::Fingerprint;
use crate::error::Error;
use crate::money::credits::Credits;
use crate::service::metering::Service;
use crate::service::request_payments::{
    ChallengeClient, Paid, PaymentNotice, RequestPayment, RequestPayments, RequestedResource,
};

/// Payments that come with requests, from [`Service::offers`].
#[derive(Debug, Clone, Copy)]
pub struct Offers<'s> {
    payments: Option<&'s dyn RequestPayments>,
    public_url: &'s str,
}

impl Service {
    /// Takes payments that come with requests, and offers them in refusals for insufficient credits.
    #[must_use]
    pub fn with_request_payments(mut self, payments: Arc<dyn RequestPayments>) -> Self {
        self.charging.request_payments = Some(payments);
        self
    }

    /// Payments that come with requests.
    #[must_use]
    pub fn offers(&self) -> Offers<'_> {
        Offers { payments: self.charging.request_payments.as_deref(), public_url: self.public_url() }
    }
}

impl<'s> Offers<'s> {
    /// The payment in a request's headers. `None` if there is none, or the service takes no payments: such headers are
    /// then ignored. `values` takes a header name in lower case and returns the values of all its lines.
    ///
    /// # Errors
    /// [`Error::Offer`] when it cannot be read, or takes none of the offers.
    pub fn read<'h, V>(self, values: impl Fn(&'static str) -> V) -> Result<Option<Box<dyn RequestPayment>>, Error>
    where
        V: IntoIterator<Item = &'h [u8]>,
    {
        let Some(payments) = self.offering() else { return Ok(None) };
        payments.read(&|name| values(name).into_iter().collect())
    }

    /// The resource of a request for this path, of this route.
    #[must_use]
    pub fn resource<'r>(self, path: &str, query: Option<&str>, route: Option<&'r Route>) -> RequestedResource<'r> {
        let query = query.map(|query| format!("?{query}")).unwrap_or_default();
        RequestedResource { url: format!("{}{path}{query}", self.public_url), route, is_held: false }
    }

    /// The payment members of a refusal: offers, if the client can pay one of them now, and the outcome of the payment
    /// that came with the request.
    #[must_use]
    pub fn notice(
        self,
        error: &Error,
        asked: RequestedResource<'_>,
        presented: Option<&dyn RequestPayment>,
    ) -> PaymentNotice {
        self.offering().map(|payments| payments.notice(error, asked, presented)).unwrap_or_default()
    }

    /// The challenges of a refusal, as header lines.
    #[must_use]
    pub fn challenges(
        self,
        error: &Error,
        client: ChallengeClient,
        presented: Option<&dyn RequestPayment>,
    ) -> Vec<(&'static str, String)> {
        self.offering().map(|payments| payments.challenges(error, client, presented)).unwrap_or_default()
    }

    /// The sign-in of a wallet in a request's headers, not read yet
    /// ([`MatchedRequest::signed_in_with`](crate::service::MatchedRequest::signed_in_with)). `None` if there is none,
    /// or the service accepts none.
    #[must_use]
    pub fn sign_in<'h, V>(self, values: impl Fn(&'static str) -> V) -> Option<&'h str>
    where
        V: IntoIterator<Item = &'h [u8]>,
    {
        self.offering()?.sign_in(&|name| values(name).into_iter().collect())
    }

    /// Whether requests without a key can pay.
    #[must_use]
    pub fn accepts_keyless(self) -> bool {
        self.offering().is_some_and(RequestPayments::accepts_keyless)
    }

    /// Whether payments are offered with requests now.
    pub(super) fn has_offers(self) -> bool {
        self.offering().is_some()
    }

    /// Credits the payment that came with a request.
    pub(super) async fn pay(
        self,
        payment: &dyn RequestPayment,
        caller: Caller<'_>,
        request: Fingerprint,
        price: Credits,
        asked: RequestedResource<'_>,
    ) -> Result<Paid, Error> {
        let payments = self.payments.ok_or(Error::OffersNotMade)?;
        payments.pay(payment, caller, request, price, asked).await
    }

    /// The request of a payment that backs a hold was not charged.
    pub(super) async fn not_charged(self, payment: &dyn RequestPayment) {
        if let Some(payments) = self.payments {
            payments.not_charged(payment).await;
        }
    }

    /// Executes a payment that backed a hold. The balance after it, if it is executed.
    #[cfg(feature = "tower")]
    pub(crate) async fn settle_usage(self, payment: &dyn RequestPayment) -> Option<Credits> {
        self.payments?.settle_usage(payment).await
    }

    /// The key that a request is charged to when it came with neither a key nor a payment: the key of its wallet.
    pub(super) async fn key_without_credentials(self, sign_in: Option<&str>, price: Credits) -> Result<KeyHash, Error> {
        let payments = self.offering().filter(|payments| payments.accepts_keyless()).ok_or(Error::Unauthorized)?;
        payments.key_of_wallet(sign_in.ok_or(Error::PaymentRequired { price })?, price).await
    }

    fn offering(self) -> Option<&'s dyn RequestPayments> {
        self.payments.filter(|payments| payments.has_offers())
    }
}
