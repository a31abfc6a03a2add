//! Takes payments that come with requests: the hook of `metering-core`, in the formats of x402 and MPP.

use std::sync::Arc;

use async_trait::async_trait;
use metering_core::access::{Caller, KeyHash};
use metering_core::chains::TxRef;
use metering_core::charging::Fingerprint;
use metering_core::random::random_digits;
use metering_core::service::{
    ChallengeClient, HeaderValues, Paid, PaymentNotice, RequestPayment, RequestPayments, RequestedResource,
};
use metering_core::wire::{PAYMENT_REQUIRED_HEADER, SIGN_IN_HEADER};
use metering_core::{Credits, Error, SystemRandomness};
use serde_json::Map;

use crate::challenges::{Challenged, with_problem};
use crate::offers::{IdentifierHash, Offers, PayRefusal};
use crate::received_payment::{Protocol, ReceiptSigning, ReceivedPayment};
use crate::signed_payments::{PayRequest, SignedPayments};
use crate::usage::UsageRequest;
use crate::wire::x402::{
    BAZAAR_EXTENSION, OFFER_RECEIPT_EXTENSION, PAYMENT_IDENTIFIER_EXTENSION, PaymentIdentifier, PaymentPayload,
    PaymentPayloadV1, PaymentRequired, PaymentRequiredV1, Resource, SIGN_IN_EXTENSION, bazaar_extension,
    offers_extension,
};
use crate::wire::{MalformedPayment, MppSource, PaymentHeaders, SentPayment};

/// The digits that distinguish challenges.
const UNIQUE_DIGITS: usize = 20;

#[async_trait]
impl RequestPayments for SignedPayments {
    fn has_offers(&self) -> bool {
        !self.offers().is_empty()
    }

    fn accepts_keyless(&self) -> bool {
        self.keyless && self.has_offers()
    }

    /// The payment in a request's headers.
    ///
    /// # Errors
    /// [`Error::Offer`] when it cannot be read, or takes none of the offers.
    fn read(&self, headers: HeaderValues<'_, '_>) -> Result<Option<Box<dyn RequestPayment>>, Error> {
        let malformed = |error: MalformedPayment| {
            let is_credential = self.challenges.is_some() && error.place().is_some_and(MppSource::is_name);
            Error::from(if is_credential { PayRefusal::Credential(error) } else { PayRefusal::Malformed(error) })
        };
        let received = match PaymentHeaders::read(headers).map_err(malformed)?.payment {
            None => return Ok(None),
            Some(SentPayment::Mpp(source, text)) => {
                let Some(settings) = &self.challenges else { return Ok(None) };
                let (signed, answer) = settings.read(source, text).map_err(malformed)?;
                ReceivedPayment::new(signed, None, Protocol::Mpp(answer))
            }
            Some(SentPayment::X402(text)) => {
                let payload = PaymentPayload::parse(text).map_err(malformed)?;
                let identifier = payload.identifier.map(|identifier| IdentifierHash::of(identifier.as_str()));
                ReceivedPayment::new(payload.signed, identifier, Protocol::X402).with_facilitator(payload.facilitator)
            }
            Some(SentPayment::X402V1(text)) => {
                let payload = PaymentPayloadV1::parse(text).map_err(malformed)?;
                let fitting = payload.offer(self.offers()).map(|(_, signed)| signed);
                ReceivedPayment::new(fitting.unwrap_or_else(|_| payload.without_offer()), None, Protocol::X402V1)
            }
        };
        Ok(Some(Box::new(received)))
    }

    async fn pay(
        &self,
        payment: &dyn RequestPayment,
        caller: Caller<'_>,
        request: Fingerprint,
        price: Credits,
        asked: RequestedResource<'_>,
    ) -> Result<Paid, Error> {
        let payment = ReceivedPayment::of(payment).ok_or(Error::Internal)?;
        if let Some(facilitator) = payment.facilitator {
            let usage = UsageRequest { payment, facilitator, caller, request, price, is_held: asked.is_held };
            let paid = self.authorize_usage(usage).await?;
            payment.credited(&paid, self.receipt_signing(asked.url));
            return Ok(paid);
        }
        let (signed, identifier, answer) = (&payment.signed, payment.identifier, payment.answer());
        let listing = self.listing(signed.chain_id, &asked);
        let listing = listing.as_ref();
        let paid = Self::pay(self, PayRequest { signed, caller, request, price, identifier, answer, listing }).await?;
        payment.credited(&paid, self.receipt_signing(asked.url));
        Ok(paid)
    }

    async fn not_charged(&self, payment: &dyn RequestPayment) {
        if let Some(payment) = ReceivedPayment::of(payment) {
            self.usage_not_charged(payment).await;
        }
    }

    async fn settle_usage(&self, payment: &dyn RequestPayment) -> Option<Credits> {
        self.settle_usage_of(ReceivedPayment::of(payment)?).await
    }

    fn notice(
        &self,
        error: &Error,
        asked: RequestedResource<'_>,
        payment: Option<&dyn RequestPayment>,
    ) -> PaymentNotice {
        let mut notice = PaymentNotice::default();
        notice.headers.extend(match (payment.and_then(ReceivedPayment::of), PayRefusal::of(error)) {
            (Some(payment), Some(refusal)) => payment.refused(refusal, self.offers()),
            (Some(payment), None) => payment.settled_before(),
            (None, refusal) => refusal.and_then(ReceivedPayment::unread),
        });
        let Some(offers) = self.offered(error, payment.is_some()) else { return notice };
        let usage = self.usage_offered(error, payment.is_some(), asked.is_held);
        let RequestedResource { url, route, .. } = asked;
        let resource = Resource::at(url, route);
        let mut extensions = Map::new();
        extensions.insert(PAYMENT_IDENTIFIER_EXTENSION.to_owned(), PaymentIdentifier::extension(false));
        extensions.extend(route.map(|route| (BAZAAR_EXTENSION.to_owned(), bazaar_extension(route))));
        if let Error::PaymentRequired { .. } | Error::SignIn { .. } = error
            && let Some(terms) = self.sign_in_terms(&offers, &resource.url)
        {
            extensions.insert(SIGN_IN_EXTENSION.to_owned(), terms);
        }
        notice.offers = PaymentRequiredV1::new(&offers, &resource).map(|required| required.members());
        if self.challenges.is_some() {
            let members = notice.offers.unwrap_or_default();
            notice.offers = Some(with_problem(members, PayRefusal::of(error), &error.to_string()));
        }
        if let Some(signer) = &self.signer {
            let signed = offers_extension(&**signer, &offers, &resource.url, self.clock.now());
            extensions.insert(OFFER_RECEIPT_EXTENSION.to_owned(), signed);
        }
        let code = error.code().as_str();
        if let Some(required) = PaymentRequired::new(&offers, &usage, resource, code, extensions) {
            notice.headers.push((PAYMENT_REQUIRED_HEADER, required.header()));
        }
        notice
    }

    /// The challenges of a refusal, as header lines, cheapest first. Every 402 with offers has them, as the draft
    /// requires, regardless of `Accept-Payment`: there is one method, and a 402 without a challenge is not allowed.
    fn challenges(
        &self,
        error: &Error,
        client: ChallengeClient,
        payment: Option<&dyn RequestPayment>,
    ) -> Vec<(&'static str, String)> {
        let answer = payment.and_then(ReceivedPayment::of).and_then(ReceivedPayment::answer);
        let client = Challenged::new(client, answer);
        let offers = self.offered(error, payment.is_some());
        let Some((settings, offers)) = self.challenges.as_ref().zip(offers) else { return Vec::new() };
        let unique = random_digits(&SystemRandomness, UNIQUE_DIGITS);
        settings.lines(&offers, client, &unique, self.clock.now())
    }

    fn sign_in<'h>(&self, headers: HeaderValues<'_, 'h>) -> Option<&'h str> {
        self.sign_in_site()?;
        // Values that are not text cannot be read later either.
        headers(SIGN_IN_HEADER).first().map(|value| std::str::from_utf8(value).unwrap_or_default())
    }

    async fn key_of_wallet(&self, sign_in: &str, price: Credits) -> Result<KeyHash, Error> {
        match self.wallet_account(sign_in).await? {
            Ok((_, key)) => Ok(key),
            Err(refusal) => Err(Error::SignIn { refusal: Arc::new(refusal), price: Some(price) }),
        }
    }

    /// Its payment stays credited in the meantime.
    async fn send_again(&self, tx: TxRef) {
        self.settling.send_again(tx).await;
    }
}

impl SignedPayments {
    /// How the receipt of a payment for this URL is signed, if receipts are.
    fn receipt_signing(&self, url: String) -> Option<ReceiptSigning> {
        let signer = self.signer.clone()?;
        Some(ReceiptSigning { signer, url, issued_at: self.clock.now() })
    }

    /// The offers with this error. A request that came with a payment gets no offers unless nothing was taken for it:
    /// some clients pay whatever is offered, again and again.
    fn offered(&self, error: &Error, has_payment: bool) -> Option<Offers> {
        let missing = match error {
            Error::InsufficientCredits(required) if !has_payment => required.missing(),
            Error::PaymentRequired { price } | Error::SignIn { price: Some(price), .. } if !has_payment => *price,
            Error::CreditsForSale if !has_payment => Credits::ZERO,
            Error::Offer(_) => match PayRefusal::of(error)? {
                PayRefusal::TooLittle { missing, .. } => *missing,
                refusal if refusal.allows_another() => Credits::ZERO,
                _ => return None,
            },
            _ => return None,
        };
        Some(self.offers().covering(missing)).filter(|offers| !offers.is_empty())
    }
}
