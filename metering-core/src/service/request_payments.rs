//! The hook for payments that come with requests: the service's needs from a crate that implements the payment
//! protocols. `metering-pay` implements it for x402 and MPP.

use std::any::Any;
use std::fmt;

use async_trait::async_trait;

use crate::access::account::Account;
use crate::access::credentials::Caller;
use crate::access::key::{ApiKey, KeyHash};
use crate::catalogue::Route;
use crate::chains::transaction::TxRef;
use crate::charging::delivery::Fingerprint;
use crate::charging::hold::HoldId;
use crate::charging::request_id::RequestId;
use crate::clock::Timestamp;
use crate::error::Error;
use crate::money::credits::Credits;
use crate::wire::{AUTHORIZATION_HEADER, PayableMembers, payment_credential};

/// The headers of a request: takes a name in lower case, and returns the values of all its lines.
pub type HeaderValues<'f, 'h> = &'f dyn Fn(&'static str) -> Vec<&'h [u8]>;

/// Takes payments that come with requests.
///
/// [`Service::with_request_payments`](crate::Service::with_request_payments) sets it. Without it, requests are paid for
/// with a key's balance only.
#[async_trait]
pub trait RequestPayments: Send + Sync + fmt::Debug {
    /// Whether something is offered now. If not, no other method is called, except for
    /// [`send_again`](Self::send_again).
    fn has_offers(&self) -> bool;

    /// Whether requests without a key can be paid for.
    fn accepts_keyless(&self) -> bool;

    /// The payment in a request's headers, not checked yet.
    ///
    /// # Errors
    /// [`Error::Offer`] when it cannot be read.
    fn read(&self, headers: HeaderValues<'_, '_>) -> Result<Option<Box<dyn RequestPayment>>, Error>;

    /// Credits a payment that came with a request of `caller` for the resource `asked`. `request` identifies the
    /// request, and `price` is its cost or maximum cost.
    ///
    /// # Errors
    /// [`Error::KeyRefused`] for a bad key; [`Error::Offer`] when the payment was not credited, or not yet; or when the
    /// store fails.
    async fn pay(
        &self,
        payment: &dyn RequestPayment,
        caller: Caller<'_>,
        request: Fingerprint,
        price: Credits,
        asked: RequestedResource<'_>,
    ) -> Result<Paid, Error>;

    /// The request of a payment that [backs a hold](Paid::hold) was not charged, and will not be.
    async fn not_charged(&self, payment: &dyn RequestPayment);

    /// Executes a payment that [backed a hold](Paid::hold), once that is settled, and waits for it, but not for long: it
    /// continues without the caller. The balance after it, if it is executed. The payment then has its receipt.
    async fn settle_usage(&self, payment: &dyn RequestPayment) -> Option<Credits>;

    /// The payment members of a refusal: offers, if the client can pay one of them now, and the outcome of the payment
    /// that came with the request.
    fn notice(
        &self,
        error: &Error,
        asked: RequestedResource<'_>,
        payment: Option<&dyn RequestPayment>,
    ) -> PaymentNotice;

    /// The challenges of a refusal, as header lines.
    fn challenges(
        &self,
        error: &Error,
        client: ChallengeClient,
        payment: Option<&dyn RequestPayment>,
    ) -> Vec<(&'static str, String)>;

    /// The sign-in of a wallet in a request's headers, not checked yet.
    fn sign_in<'h>(&self, headers: HeaderValues<'_, 'h>) -> Option<&'h str>;

    /// The key that a request is charged to whose wallet signed in. `price` is its cost.
    ///
    /// # Errors
    /// [`Error::SignIn`], or when the chain of a contract wallet or the store cannot be read.
    async fn key_of_wallet(&self, sign_in: &str, price: Credits) -> Result<KeyHash, Error>;

    /// Sends a transaction again that executed a payment, after a reorganisation removed it.
    async fn send_again(&self, tx: TxRef);
}

/// A payment that came with a request, read and not checked.
pub trait RequestPayment: Any + Send + Sync + fmt::Debug {
    /// The header of the response to a request that was charged after this payment was credited, as in `paid`.
    /// `balance` is the account's balance then, `status` that of the response.
    fn receipt(&self, paid: &Paid, balance: Credits, status: u16) -> Option<(&'static str, String)>;

    /// The header of the successful response to a request that was charged, if this payment was credited for it.
    fn receipt_of_charge(&self, balance: Credits) -> Option<(&'static str, String)>;
}

/// A payment that was credited, or that backs the hold of its request.
#[derive(Debug, Clone)]
pub struct Paid {
    /// The account.
    pub account: Account,
    /// The key that the request is charged to.
    pub key: KeyHash,
    /// The id to charge a request without a key by, so the same payment cannot pay for another request.
    pub request_id: Option<RequestId>,
    /// The transaction that executed the payment.
    pub tx: Option<TxRef>,
    /// The credits that it bought, or the most that it buys.
    pub credits: Credits,
    /// When it was received.
    pub received_at: Timestamp,
    /// Set if nothing is credited yet: it pays for the usage of its request. Hold the request under this id; the
    /// balance need not cover the hold.
    pub hold: Option<HoldId>,
}

/// The resource of a request: what its payment buys, in its form for clients.
#[derive(Debug, Clone)]
pub struct RequestedResource<'r> {
    /// Its URL.
    pub url: String,
    /// Its route, if it matches one. Refusals describe how it is called.
    pub route: Option<&'r Route>,
    /// Whether its maximum cost is held until its cost is known, so a payment can back the hold.
    pub is_held: bool,
}

/// The payment data of a response, in addition to its normal content.
#[derive(Debug, Clone, Default)]
pub struct PaymentNotice {
    /// Headers to set.
    pub headers: Vec<(&'static str, String)>,
    /// Members to add to the body of an error.
    pub offers: Option<PayableMembers>,
}

/// Whom the challenges of a refusal are for.
#[derive(Debug, Clone, Copy)]
pub struct ChallengeClient {
    /// The key of its request.
    pub key: Option<KeyHash>,
    /// Whether the key is in `Authorization`, so a credential needs another header.
    pub key_in_authorization: bool,
}

impl ChallengeClient {
    /// Reads a request's headers. `values` takes a header name in lower case and returns the values of all its lines;
    /// `key` is the key that was found there.
    #[must_use]
    pub fn read<'h, V>(values: impl Fn(&'static str) -> V, key: Option<&ApiKey>) -> Self
    where
        V: IntoIterator<Item = &'h [u8]>,
    {
        let has_other = values(AUTHORIZATION_HEADER).into_iter().any(|value| payment_credential(value).is_none());
        Self { key: key.map(ApiKey::hash), key_in_authorization: key.is_some() && has_other }
    }
}
