//! Credits alone, bought with a payment in the headers of a request: for people, and for clients that top up before
//! they call anything.

use metering_core::access::{Caller, Scope};
use metering_core::charging::Fingerprint;
use metering_core::payments::ReceiptNumber;
use metering_core::service::{RequestPayment, RequestPayments};
use metering_core::{Credits, Error, Service};

use crate::offers::PayRefusal;
use crate::signed_payments::SignedPayments;
use crate::wire::{BoughtResponse, OffersDocument, PaidTransaction};

/// The URL at which credits are bought.
const PAY_PATH: &str = "/credits/pay";

/// The resource of such payments. It only matters for requests without a key, which buy nothing here.
const NO_REQUEST: Fingerprint = Fingerprint::from_bytes([0; 16]);

/// Credits that were bought with a payment.
#[derive(Debug, Clone)]
pub struct Bought {
    /// The response's body.
    pub document: BoughtResponse,
    /// The response header with the payment's outcome.
    pub receipt: Option<(&'static str, String)>,
}

impl SignedPayments {
    /// The payments that requests to a service may come with, cheapest first. Empty if nothing is offered.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn offers_document(&self, service: &Service) -> Result<OffersDocument, Error> {
        let plans = service.payments().plans().await?;
        Ok(OffersDocument::new(self.offers(), &plans))
    }

    /// Credits a payment that came with a request for credits
    /// ([`Offers::read`](metering_core::service::Offers::read)) to the account of a key.
    ///
    /// Sending the same payment again credits nothing more and returns the same result. Any offer may be taken, however
    /// low the balance is.
    ///
    /// # Errors
    /// [`Error::Unauthorized`] or [`Error::KeyNotAllowed`] for a key that may not top up; [`Error::OffersNotMade`]
    /// if there are no chains; [`Error::CreditsForSale`] without a payment; [`Error::Offer`] when the payment was not
    /// credited, or not yet; or when the store fails.
    pub async fn buy(
        &self,
        service: &Service,
        caller: Caller<'_>,
        presented: Option<&dyn RequestPayment>,
    ) -> Result<Bought, Error> {
        let account = service.access().authorize(caller, Scope::TopUp).await?;
        if self.settling.chains.is_empty() {
            return Err(Error::OffersNotMade);
        }
        if self.offers().is_empty() {
            // The tokens were not read yet.
            return Err(PayRefusal::Unavailable.into());
        }
        let presented = presented.ok_or(Error::CreditsForSale)?;
        // A payment may leave a negative balance negative.
        let price = account.totals.balance.min(Credits::ZERO);
        let asked = service.offers().resource(PAY_PATH, None, None);
        let paid = RequestPayments::pay(self, presented, caller, NO_REQUEST, price, asked).await?;
        let balance = paid.account.totals.balance;
        let transaction = paid.tx.map(|tx| PaidTransaction { chain: tx.chain_id, hash: tx.hash.to_string() });
        let receipt_number = paid.tx.map(|tx| ReceiptNumber::of(&tx).to_string());
        let document = BoughtResponse { credited: paid.credits, balance, transaction, receipt_number };
        Ok(Bought { document, receipt: presented.receipt(&paid, balance, 200) })
    }
}
