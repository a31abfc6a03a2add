//! A payment in the headers of a request, in any protocol, and its members in responses.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use metering_core::Credits;
use metering_core::chains::{Address, TokenUnits, TxHash};
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
    /// The signed authorization.
    pub signed: SignedAuthorization,
    /// The id that its client gave it.
    pub identifier: Option<IdentifierHash>,
    /// Who may execute it, if it pays for usage: then the signed amount is the maximum.
    pub facilitator: Option<Address>,
    protocol: Protocol,
    /// Its outcome, once it is credited: the request may still be refused.
    paid: OnceLock<Paid>,
    /// How its receipt is signed, once it is credited.
    signing: OnceLock<ReceiptSigning>,
    /// How it ended, if it pays for usage.
    usage: OnceLock<Result<UsagePaid, PayRefusal>>,
}

/// A payment for usage that was settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UsagePaid {
    /// The transaction; `None` if nothing was used.
    pub(crate) tx: Option<TxHash>,
    /// The amount transferred.
    pub(crate) amount: TokenUnits,
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
        Self {
            signed,
            identifier,
            facilitator: None,
            protocol,
            paid: OnceLock::new(),
            signing: OnceLock::new(),
            usage: OnceLock::new(),
        }
    }

    /// The same, for usage if there is a facilitator.
    pub(crate) fn with_facilitator(self, facilitator: Option<Address>) -> Self {
        Self { facilitator, ..self }
    }

    /// The payment that [`SignedPayments`](crate::SignedPayments) has read; `None` if another hook read it.
    #[must_use]
    pub fn of(payment: &dyn RequestPayment) -> Option<&Self> {
        let payment: &dyn Any = payment;
        payment.downcast_ref()
    }

    /// The challenge that it responds to, or why there is none. `None` in protocols without challenges.
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

    /// Remembers how a payment for usage ended. A pending one may end later.
    pub(crate) fn ended(&self, outcome: Result<UsagePaid, PayRefusal>) {
        if !matches!(outcome, Err(PayRefusal::Pending { .. })) {
            let _ = self.usage.set(outcome);
        }
    }

    /// The members of a response about a payment for usage. The payment of a stream is settled when the stream has
    /// ended.
    fn usage_receipt(&self, paid: &Paid, balance: Credits, was_served: bool) -> Option<(&'static str, String)> {
        match self.usage.get() {
            None if was_served => self.header(&SettleResponse::pending(&self.signed, None)),
            None => None,
            Some(Err(refusal)) => self.header(&self.not_settled(refusal, &Offers::NONE)),
            Some(Ok(UsagePaid { tx, amount })) => {
                let response = SettleResponse::used(&self.signed, *amount, *tx, &paid.account.id, balance);
                self.header(&self.receipt_signed(response, was_served && tx.is_some()))
            }
        }
    }

    /// The header of a refusal for another reason, if it was credited before.
    pub(crate) fn settled_before(&self) -> Option<(&'static str, String)> {
        self.paid.get().and_then(|paid| self.settled(paid, paid.account.totals.balance, false))
    }

    /// The header of its own refusal. `offers` are the service's offers.
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
            Protocol::X402 if paid.hold.is_some() => self.usage_receipt(paid, balance, was_served),
            Protocol::X402 | Protocol::X402V1 => self.settled(paid, balance, was_served),
        }
    }

    fn settled(&self, paid: &Paid, balance: Credits, was_served: bool) -> Option<(&'static str, String)> {
        let response = SettleResponse::settled(&self.signed, paid.tx?.hash, &paid.account.id, balance);
        self.header(&self.receipt_signed(response, was_served))
    }

    /// Only served requests have a signed receipt: it states that.
    fn receipt_signed(&self, response: SettleResponse, was_served: bool) -> SettleResponse {
        match self.signing.get().filter(|_| was_served) {
            Some(ReceiptSigning { signer, url, issued_at }) => {
                response.with_extensions(receipt_extension(&**signer, &self.signed, url, *issued_at))
            }
            None => response,
        }
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
            PayRefusal::NotOffered | PayRefusal::UsageNotOffered | PayRefusal::OtherChain { .. } => {
                SettleRefusal::Offer
            }
            PayRefusal::OtherFacilitator { .. } => SettleRefusal::PermitFacilitator,
            PayRefusal::Allowance { .. } => SettleRefusal::PermitAllowance,
            PayRefusal::Outstanding { .. } | PayRefusal::Owes { .. } => SettleRefusal::Balance,
            PayRefusal::Invalid(fault) => (*fault).into(),
            PayRefusal::Failed(failure) => (*failure).into(),
            PayRefusal::AlreadyCredited => SettleRefusal::NonceUsed,
            PayRefusal::ContractWallet => SettleRefusal::Signature,
            PayRefusal::WouldFail(reason) => SettleRefusal::of_simulation(reason),
            PayRefusal::Unavailable | PayRefusal::Paused { .. } | PayRefusal::TooMany(_) => SettleRefusal::Unavailable,
        };
        let code = if self.facilitator.is_some() { code.of_permit() } else { code };
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
