//! Paying back what was charged for and could not be delivered.

use std::sync::Arc;

use crate::charge::Receipt;
use crate::credits::Credits;
use crate::error::Error;
use crate::service::Service;
use crate::wire::{metered_headers, refunded_headers};

/// What became of a charge whose request could not be delivered.
#[derive(Debug)]
pub struct PaidBack {
    /// The headers of the answer to the request, which say what it cost after all.
    pub headers: Vec<(&'static str, String)>,
    /// [`Error::NotRefunded`] when the refund could not be recorded, so that the charge stands; it was logged.
    pub outcome: Result<(), Error>,
}

impl Service {
    /// Pays a charge back in full, because what was accepted could not be delivered. Returns the balance after it.
    ///
    /// # Errors
    /// When it could not be recorded.
    pub async fn refund(&self, receipt: Receipt) -> Result<Option<Credits>, Error> {
        Ok(self.meter.refund(receipt).await?)
    }

    /// Pays a charge back as [`Service::refund`] does, before the answer to its request is sent.
    ///
    /// This happens in a task of its own: what is owed is paid back even when the client goes away meanwhile.
    pub async fn pay_back(&self, receipt: Receipt) -> PaidBack {
        let (charged, rate, balance) = (metered_headers(&receipt), receipt.rate, receipt.balance);
        let (meter, account, amount) = (Arc::clone(&self.meter), receipt.account.clone(), receipt.charged);
        let refund = tokio::spawn(async move {
            let refunded = meter.refund(receipt).await;
            if let Err(error) = &refunded {
                tracing::error!(%error, %account, %amount, "a refund could not be recorded; the charge stands");
            }
            refunded
        });
        match refund.await {
            Ok(Ok(after)) => PaidBack { headers: refunded_headers(&rate, after.unwrap_or(balance)), outcome: Ok(()) },
            Ok(Err(_)) | Err(_) => PaidBack { headers: charged, outcome: Err(Error::NotRefunded) },
        }
    }

    /// Notes that a response was passed on to the client, which uses the request's idempotency key up. Returns at once:
    /// the response does not wait for it, and a retry that comes first finds the request in progress.
    pub fn delivered(&self, receipt: &Receipt) {
        let Some(settlement) = receipt.settlement() else { return };
        let meter = Arc::clone(&self.meter);
        tokio::spawn(async move {
            if let Err(error) = meter.settle(settlement).await {
                tracing::warn!(%error, "a delivery could not be recorded; its idempotency key may be used again");
            }
        });
    }
}
