//! Credits alone, bought with a payment in the headers of a request: for people, and for clients that top up before
//! they call anything.

use crate::access::credentials::Caller;
use crate::access::scope::Scope;
use crate::charging::delivery::Fingerprint;
use crate::error::Error;
use crate::money::credits::Credits;
use crate::offers::PayRefusal;
use crate::payments::receipt::ReceiptNumber;
use crate::service::{RequestPayment, Service};
use crate::wire::{BoughtResponse, OffersDocument, PaidTransaction};

/// What such payments pay for. It only matters for requests without a key, which buy nothing here.
const NO_REQUEST: Fingerprint = Fingerprint::from_bytes([0; 16]);

/// Credits that were bought with a payment.
#[derive(Debug, Clone)]
pub struct Bought {
    /// The response's body.
    pub document: BoughtResponse,
    /// The response header with the payment's outcome.
    pub receipt: Option<(&'static str, String)>,
}

impl Service {
    /// What can be paid with requests, cheapest first. Empty if nothing is offered.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn offers_document(&self) -> Result<OffersDocument, Error> {
        let plans = self.plans().await?;
        Ok(OffersDocument::new(self.offers(), &plans))
    }

    /// Credits a payment that came with a request for credits ([`Service::presented`]) to the account of a key.
    ///
    /// Sending the same payment again credits nothing more and returns the same result. Any offer may be taken, however
    /// low the balance is.
    ///
    /// # Errors
    /// [`Error::Unauthorized`] or [`Error::KeyNotAllowed`] for a key that may not top up; [`Error::OffersNotMade`];
    /// [`Error::CreditsForSale`] without a payment; [`Error::Offer`] when the payment was not credited, or not yet; or
    /// when the store fails.
    pub async fn buy(&self, caller: Caller<'_>, presented: Option<&RequestPayment>) -> Result<Bought, Error> {
        let account = self.authorize(caller, Scope::TopUp).await?;
        if self.shop.is_none() {
            return Err(Error::OffersNotMade);
        }
        if self.offers().is_empty() {
            // The tokens were not read yet.
            return Err(PayRefusal::Unavailable.into());
        }
        let presented = presented.ok_or(Error::CreditsForSale)?;
        // A payment may leave a negative balance negative.
        let price = account.totals.balance.min(Credits::ZERO);
        let paid = self.pay(presented.paying(caller, NO_REQUEST, price)).await?;
        presented.credited(&paid);
        let balance = paid.account.totals.balance;
        let transaction = paid.tx.map(|tx| PaidTransaction { chain: tx.chain_id, hash: tx.hash.to_string() });
        let receipt_number = paid.tx.map(|tx| ReceiptNumber::of(&tx).to_string());
        let document = BoughtResponse { credited: paid.credits, balance, transaction, receipt_number };
        Ok(Bought { document, receipt: presented.receipt(&paid, balance) })
    }
}
