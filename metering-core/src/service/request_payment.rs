//! Payments in the headers of requests, in any protocol, and what responses say about them.

use std::sync::{Arc, OnceLock};

use serde_json::Map;

use crate::access::credentials::Caller;
use crate::catalogue::Route;
use crate::charging::delivery::Fingerprint;
use crate::error::Error;
use crate::money::credits::Credits;
use crate::offers::{IdentifierHash, Offers, PayRefusal, SignedAuthorization};
use crate::random::random_digits;
use crate::service::challenges::{ChallengeClient, ChallengeCredential};
use crate::service::{Paid, PayRequest, Service};
use crate::wire::x402::{
    BAZAAR_EXTENSION, PAYMENT_IDENTIFIER_EXTENSION, PaymentIdentifier, PaymentPayload, PaymentPayloadV1,
    PaymentRequired, PaymentRequiredV1, Resource, SIGN_IN_EXTENSION, SettleRefusal, SettleResponse, bazaar_extension,
};
use crate::wire::{
    PAYMENT_REQUIRED_HEADER, PAYMENT_RESPONSE_HEADER, PaymentHeaders, SentPayment, X_PAYMENT_RESPONSE_HEADER,
};

/// The digits that tell challenges apart.
const UNIQUE_DIGITS: usize = 20;

/// A payment that came with a request, read and not checked.
#[derive(Debug, Clone)]
pub struct RequestPayment {
    /// What was signed.
    pub signed: SignedAuthorization,
    /// The id that its client gave it.
    pub identifier: Option<IdentifierHash>,
    protocol: Protocol,
    /// Its outcome, once it is credited: the request may still be refused.
    paid: Arc<OnceLock<Paid>>,
}

/// How a payment was sent; the response is in the same form.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Protocol {
    X402,
    X402V1,
    Mpp(ChallengeCredential),
}

/// What a request asks for: what its payment buys, as clients see it.
#[derive(Debug, Clone)]
pub struct RequestedResource<'r> {
    /// The resource.
    pub resource: Resource,
    /// Its route, if it matches one. Refusals describe how it is called.
    pub route: Option<&'r Route>,
}

/// What a response says about payments, in addition to its normal content.
#[derive(Debug, Clone, Default)]
pub struct PaymentNotice {
    /// Headers to set.
    pub headers: Vec<(&'static str, String)>,
    /// Offers to add to the body of an error.
    pub offers: Option<PaymentRequiredV1>,
}

impl Service {
    /// The payment in a request's headers. `None` if there is none, or the service takes no payments: such headers are
    /// then ignored.
    ///
    /// # Errors
    /// [`Error::Offer`] when it cannot be read, or takes none of the offers.
    pub fn presented<'h, V>(&self, values: impl Fn(&'static str) -> V) -> Result<Option<RequestPayment>, Error>
    where
        V: IntoIterator<Item = &'h [u8]>,
    {
        if self.offers().is_empty() {
            return Ok(None);
        }
        let malformed = |error| Error::from(PayRefusal::Malformed(error));
        let presented = match PaymentHeaders::read(values).map_err(malformed)?.payment {
            None => return Ok(None),
            Some(SentPayment::Mpp(source, text)) => {
                let Some(settings) = self.challenge_settings() else { return Ok(None) };
                let (signed, answer) = settings.read(source, text).map_err(malformed)?;
                RequestPayment::new(signed, Protocol::Mpp(answer))
            }
            Some(SentPayment::X402(text)) => {
                let payload = PaymentPayload::parse(text).map_err(malformed)?;
                let identifier = payload.identifier.map(|identifier| IdentifierHash::of(identifier.as_str()));
                RequestPayment { identifier, ..RequestPayment::new(payload.signed, Protocol::X402) }
            }
            Some(SentPayment::X402V1(text)) => {
                let payload = PaymentPayloadV1::parse(text).map_err(malformed)?;
                let fitting = payload.offer(self.offers()).map(|(_, signed)| signed);
                RequestPayment::new(fitting.unwrap_or_else(|_| payload.without_offer()), Protocol::X402V1)
            }
        };
        Ok(Some(presented))
    }

    /// What a request for this path, of this route, asks for.
    #[must_use]
    pub fn asked<'r>(&self, path: &str, query: Option<&str>, route: Option<&'r Route>) -> RequestedResource<'r> {
        let query = query.map(|query| format!("?{query}")).unwrap_or_default();
        let url = format!("{}{path}{query}", self.config.public_url);
        RequestedResource { resource: Resource::at(url, route), route }
    }

    /// What to add to a refusal: offers, if the client can pay one of them now, and the outcome of the payment that
    /// came with the request.
    #[must_use]
    pub fn payment_notice(
        &self,
        error: &Error,
        asked: RequestedResource<'_>,
        presented: Option<&RequestPayment>,
    ) -> PaymentNotice {
        let mut notice = PaymentNotice::default();
        notice.headers.extend(presented.and_then(|presented| match error {
            Error::Offer(refusal) => presented.header(&presented.not_settled(refusal)),
            _ => presented.paid.get().and_then(|paid| presented.settled(paid, paid.account.totals.balance)),
        }));
        let Some(offers) = self.offered(error, presented.is_some()) else { return notice };
        let RequestedResource { resource, route } = asked;
        let mut extensions = Map::new();
        extensions.insert(PAYMENT_IDENTIFIER_EXTENSION.to_owned(), PaymentIdentifier::extension(false));
        extensions.extend(route.map(|route| (BAZAAR_EXTENSION.to_owned(), bazaar_extension(route))));
        if let Error::PaymentRequired { .. } | Error::SignIn { .. } = error
            && let Some(terms) = self.sign_in_terms(&offers, &resource.url)
        {
            extensions.insert(SIGN_IN_EXTENSION.to_owned(), terms);
        }
        notice.offers = PaymentRequiredV1::new(&offers, &resource);
        let code = error.code().as_str();
        if let Some(required) = PaymentRequired::new(&offers, resource, code, extensions) {
            notice.headers.push((PAYMENT_REQUIRED_HEADER, required.header()));
        }
        notice
    }

    /// The challenges of a refusal, as header lines, cheapest first. None if the client does not support them: some
    /// other clients fail on a challenge although they could accept an x402 offer.
    #[must_use]
    pub fn challenges(
        &self,
        error: &Error,
        client: ChallengeClient,
        presented: Option<&RequestPayment>,
    ) -> Vec<(&'static str, String)> {
        let client = presented.and_then(RequestPayment::answer).map_or(client, |answer| client.answering(answer));
        let offers = self.offered(error, presented.is_some()).filter(|_| client.accepts());
        let Some((settings, offers)) = self.challenge_settings().zip(offers) else { return Vec::new() };
        let unique = random_digits(&*self.payments.randomness, UNIQUE_DIGITS);
        settings.lines(&offers, client, &unique, self.clock.now())
    }

    /// What is offered with this error. A request that came with a payment gets no offers unless nothing was taken for
    /// it: some clients pay whatever is offered, again and again.
    fn offered(&self, error: &Error, has_payment: bool) -> Option<Offers> {
        let missing = match error {
            Error::InsufficientCredits(required) if !has_payment => required.missing(),
            Error::PaymentRequired { price } | Error::SignIn { price: Some(price), .. } if !has_payment => *price,
            Error::CreditsForSale if !has_payment => Credits::ZERO,
            Error::Offer(refusal) => match **refusal {
                PayRefusal::TooLittle { missing, .. } => missing,
                _ if refusal.allows_another() => Credits::ZERO,
                _ => return None,
            },
            _ => return None,
        };
        Some(self.offers().covering(missing)).filter(|offers| !offers.is_empty())
    }
}

impl RequestPayment {
    fn new(signed: SignedAuthorization, protocol: Protocol) -> Self {
        Self { signed, identifier: None, protocol, paid: Arc::default() }
    }

    /// What to give [`Service::pay`] for a request with this payment.
    pub(super) fn paying<'r>(&'r self, caller: Caller<'r>, request: Fingerprint, price: Credits) -> PayRequest<'r> {
        let (signed, identifier, answer) = (&self.signed, self.identifier, self.answer());
        PayRequest { signed, caller, request, price, identifier, answer }
    }

    /// Remembers that it was credited.
    pub(super) fn credited(&self, paid: &Paid) {
        let _ = self.paid.set(paid.clone());
    }

    /// The header of the response to a request that was charged, if this payment was credited for it.
    #[must_use]
    pub fn receipt_of_charge(&self, balance: Credits) -> Option<(&'static str, String)> {
        self.paid.get().and_then(|paid| self.receipt(paid, balance))
    }

    /// The header of the response to a request whose payment was credited. That of MPP,
    /// [`PAYMENT_RECEIPT_HEADER`](crate::wire::PAYMENT_RECEIPT_HEADER), is only for successful responses.
    #[must_use]
    pub fn receipt(&self, paid: &Paid, balance: Credits) -> Option<(&'static str, String)> {
        match &self.protocol {
            Protocol::Mpp(answer) => Some(answer.receipt(&self.signed, paid.tx?, paid.received_at)),
            Protocol::X402 | Protocol::X402V1 => self.settled(paid, balance),
        }
    }

    /// The challenge that it is for, or why there is none. `None` in protocols without challenges.
    #[must_use]
    pub const fn answer(&self) -> Option<&ChallengeCredential> {
        match &self.protocol {
            Protocol::Mpp(answer) => Some(answer),
            Protocol::X402 | Protocol::X402V1 => None,
        }
    }

    fn settled(&self, paid: &Paid, balance: Credits) -> Option<(&'static str, String)> {
        let tx = paid.tx?;
        self.header(&SettleResponse::settled(&self.signed, tx.hash, &paid.account.id, balance))
    }

    /// MPP has nothing like it.
    fn header(&self, response: &SettleResponse) -> Option<(&'static str, String)> {
        match self.protocol {
            Protocol::X402 => Some((PAYMENT_RESPONSE_HEADER, response.header())),
            Protocol::X402V1 => Some((X_PAYMENT_RESPONSE_HEADER, response.header_v1())),
            Protocol::Mpp(_) => None,
        }
    }

    fn not_settled(&self, refusal: &PayRefusal) -> SettleResponse {
        let code = match refusal {
            PayRefusal::Pending { tx } => return SettleResponse::pending(&self.signed, *tx),
            PayRefusal::Malformed(_) | PayRefusal::IdentifierUsed | PayRefusal::Challenge(_) => {
                SettleRefusal::Malformed
            }
            PayRefusal::TooLittle { .. } => SettleRefusal::Amount,
            PayRefusal::NotOffered | PayRefusal::OtherChain { .. } => SettleRefusal::Offer,
            PayRefusal::Invalid(fault) => (*fault).into(),
            PayRefusal::Failed(failure) => (*failure).into(),
            PayRefusal::AlreadyCredited => SettleRefusal::NonceUsed,
            PayRefusal::ContractWallet => SettleRefusal::Signature,
            PayRefusal::WouldFail(reason) => SettleRefusal::of_simulation(reason),
            PayRefusal::Unavailable | PayRefusal::Paused { .. } | PayRefusal::TooMany(_) => SettleRefusal::Unavailable,
        };
        SettleResponse::refused(Some(&self.signed), code, refusal.to_string())
    }
}
