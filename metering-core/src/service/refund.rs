//! Refunds requests that were charged but could not be delivered.

use std::sync::Arc;

use crate::charging::charge::Receipt;
use crate::error::Error;
use crate::money::credits::Credits;
use crate::service::Service;
use crate::wire::{metered_headers, refunded_headers};

/// The result of a refund.
#[derive(Debug)]
pub struct RefundResult {
    /// Headers for the response, which say what the request cost in the end.
    pub headers: Vec<(&'static str, String)>,
    /// [`Error::NotRefunded`] when the refund could not be recorded. The charge then stands, and the failure was
    /// logged.
    pub outcome: Result<(), Error>,
}

impl Service {
    /// Refunds a charge in full, because its request could not be delivered. Returns the balance after the refund.
    ///
    /// # Errors
    /// When the refund could not be recorded.
    pub async fn refund(&self, receipt: Receipt) -> Result<Option<Credits>, Error> {
        Ok(self.meter.refund(receipt).await?)
    }

    /// Refunds a charge like [`Service::refund`], before the response to its request is sent.
    ///
    /// Runs in its own task, so that the refund is made even if the client goes away.
    pub async fn refund_undelivered(&self, receipt: Receipt) -> RefundResult {
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
            Ok(Ok(after)) => {
                RefundResult { headers: refunded_headers(&rate, after.unwrap_or(balance)), outcome: Ok(()) }
            }
            Ok(Err(_)) | Err(_) => RefundResult { headers: charged, outcome: Err(Error::NotRefunded) },
        }
    }

    /// Records that a response was passed on to the client, which uses up the request's idempotency key. Returns at
    /// once: the response does not wait for the record, and until then a retry finds the request in progress.
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
