//! A payment in the headers of a request, in any protocol, and what responses say about it.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use metering_core::Credits;
use metering_core::clock::Timestamp;
use metering_core::service::{Paid, RequestPayment};
use metering_core::wire::{
    PAYMENT_RESPONSE_HEADER, PAYMENT_SIGNATURE_HEADER, X_PAYMENT_HEADER, X_PAYMENT_RESPONSE_HEADER,
};

use crate::challenges::ChallengeCredential;
use crate::offers::{IdentifierHash, Offer, Offers, PayRefusal, SignedAuthorization, StatementSigner};
use crate::wire::x402::{SettleRefusal, SettleResponse, receipt_extension};

/// A payment that came with a request, read and not checked.
#[derive(Debug)]
pub struct ReceivedPayment {
    /// What was signed.
    pub signed: SignedAuthorization,
    /// The id that its client gave it.
    pub identifier: Option<IdentifierHash>,
    protocol: Protocol,
    /// Its outcome, once it is credited: the request may still be refused.
    paid: OnceLock<Paid>,
    /// How its receipt is signed, once it is credited.
    signing: OnceLock<ReceiptSigning>,
}

/// How a receipt is signed (the extension `offer-receipt` of x402).
#[derive(Debug, Clone)]
pub(crate) struct ReceiptSigning {
    pub(crate) signer: Arc<dyn StatementSigner>,
    /// The URL that was paid for.
    pub(crate) url: String,
    pub(crate) issued_at: Timestamp,
}

/// How a payment was sent; the response is in the same form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Protocol {
    X402,
    X402V1,
    Mpp(ChallengeCredential),
}

impl ReceivedPayment {
    pub(crate) const fn new(
        signed: SignedAuthorization,
        identifier: Option<IdentifierHash>,
        protocol: Protocol,
    ) -> Self {
        Self { signed, identifier, protocol, paid: OnceLock::new(), signing: OnceLock::new() }
    }

    /// The payment that [`SignedPayments`](crate::SignedPayments) has read; `None` if another hook read it.
    #[must_use]
    pub fn of(payment: &dyn RequestPayment) -> Option<&Self> {
        let payment: &dyn Any = payment;
        payment.downcast_ref()
    }

    /// The challenge that it is for, or why there is none. `None` in protocols without challenges.
    #[must_use]
    pub const fn answer(&self) -> Option<&ChallengeCredential> {
        match &self.protocol {
            Protocol::Mpp(answer) => Some(answer),
            Protocol::X402 | Protocol::X402V1 => None,
        }
    }

    /// Remembers that it was credited, and how its receipt is signed, if it is.
    pub(crate) fn credited(&self, paid: &Paid, signing: Option<ReceiptSigning>) {
        let _ = self.paid.set(paid.clone());
        if let Some(signing) = signing {
            let _ = self.signing.set(signing);
        }
    }

    /// The header of a refusal for another reason, if it was credited before.
    pub(crate) fn settled_before(&self) -> Option<(&'static str, String)> {
        self.paid.get().and_then(|paid| self.settled(paid, paid.account.totals.balance, false))
    }

    /// The header of its own refusal. `offers` are those of the service.
    pub(crate) fn refused(&self, refusal: &PayRefusal, offers: &Offers) -> Option<(&'static str, String)> {
        self.header(&self.not_settled(refusal, offers))
    }

    /// The header of a refusal of a payment that cannot be read.
    pub(crate) fn unread(refusal: &PayRefusal) -> Option<(&'static str, String)> {
        let PayRefusal::Malformed(malformed) = refusal else { return None };
        let response = SettleResponse::refused(None, malformed.into(), refusal.to_string());
        let place = malformed.place()?;
        if place.eq_ignore_ascii_case(PAYMENT_SIGNATURE_HEADER) {
            Some((PAYMENT_RESPONSE_HEADER, response.header()))
        } else if place.eq_ignore_ascii_case(X_PAYMENT_HEADER) {
            Some((X_PAYMENT_RESPONSE_HEADER, response.header_v1()))
        } else {
            None
        }
    }

    fn any_receipt(&self, paid: &Paid, balance: Credits, was_served: bool) -> Option<(&'static str, String)> {
        match &self.protocol {
            Protocol::Mpp(answer) => Some(answer.receipt(&self.signed, paid.tx?, paid.received_at)),
            Protocol::X402 | Protocol::X402V1 => self.settled(paid, balance, was_served),
        }
    }

    /// Only what was served has a signed receipt: it states that.
    fn settled(&self, paid: &Paid, balance: Credits, was_served: bool) -> Option<(&'static str, String)> {
        let response = SettleResponse::settled(&self.signed, paid.tx?.hash, &paid.account.id, balance);
        let signing = self.signing.get().filter(|_| was_served);
        self.header(&match signing {
            Some(ReceiptSigning { signer, url, issued_at }) => {
                response.with_extensions(receipt_extension(&**signer, &self.signed, url, *issued_at))
            }
            None => response,
        })
    }

    /// MPP has nothing like it.
    fn header(&self, response: &SettleResponse) -> Option<(&'static str, String)> {
        match self.protocol {
            Protocol::X402 => Some((PAYMENT_RESPONSE_HEADER, response.header())),
            Protocol::X402V1 => Some((X_PAYMENT_RESPONSE_HEADER, response.header_v1())),
            Protocol::Mpp(_) => None,
        }
    }

    fn not_settled(&self, refusal: &PayRefusal, offers: &Offers) -> SettleResponse {
        let is_on_its_chain = |offer: &Offer| offer.network().0 == self.signed.chain_id;
        let code = match refusal {
            PayRefusal::Pending { tx } => return SettleResponse::pending(&self.signed, *tx),
            PayRefusal::Malformed(malformed) | PayRefusal::Credential(malformed) => SettleRefusal::from(malformed),
            PayRefusal::IdentifierUsed | PayRefusal::Challenge(_) => SettleRefusal::Malformed,
            PayRefusal::TooLittle { .. } => SettleRefusal::Amount,
            PayRefusal::NotOffered if !offers.iter().any(is_on_its_chain) => SettleRefusal::Network,
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

impl RequestPayment for ReceivedPayment {
    fn receipt(&self, paid: &Paid, balance: Credits, status: u16) -> Option<(&'static str, String)> {
        // The receipt of MPP is only for successful responses.
        let was_served = (200..300).contains(&status);
        let fits = was_served || self.answer().is_none();
        if fits { self.any_receipt(paid, balance, was_served) } else { None }
    }

    fn receipt_of_charge(&self, balance: Credits) -> Option<(&'static str, String)> {
        self.paid.get().and_then(|paid| self.any_receipt(paid, balance, true))
    }
}
