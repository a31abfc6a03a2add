//! Refunds requests that were charged but could not be delivered.

use std::sync::Arc;

use tracing::Instrument;

use crate::charging::charge::{Receipt, Settlement};
use crate::error::Error;
use crate::money::credits::Credits;
use crate::service::metering::Service;
use crate::trace;
use crate::wire::MeteredHeaders;

/// The result of a refund.
#[derive(Debug)]
pub struct RefundResult {
    /// Headers for the response, with the final cost of the request.
    pub headers: MeteredHeaders,
    /// [`Error::NotRefunded`] when the refund could not be recorded. Then the charge is kept, and the failure was
    /// logged.
    pub outcome: Result<(), Error>,
}

impl Service {
    /// Refunds a charge in full, because its request could not be delivered. Returns the balance after the refund.
    ///
    /// ```
    /// use metering_core::{Charge, MemoryStore, Service};
    /// # use std::sync::Arc;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let service = Service::with_defaults(Arc::new(MemoryStore::new()));
    /// # let (account, key) = service.open_account("my-agent", "2".parse()?).await?;
    /// let receipt = service.charge(Charge::new(&key, "0.25".parse()?, "GET", "/price")).await?;
    /// assert_eq!(receipt.balance.to_string(), "1.75");
    /// let balance = service.refund(receipt).await?;
    /// assert_eq!(balance, "2".parse().ok());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the refund could not be recorded.
    pub async fn refund(&self, receipt: Receipt) -> Result<Option<Credits>, Error> {
        Ok(self.charging.meter.refund(receipt).await?)
    }

    /// Refunds a charge like [`Service::refund`], before the response to its request is sent.
    ///
    /// Runs in its own task, so the refund is made even if the client goes away.
    ///
    /// ```
    /// use metering_core::wire::{BALANCE_HEADER, CHARGED_HEADER};
    /// use metering_core::{Charge, MemoryStore, Service};
    /// # use std::sync::Arc;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let service = Service::with_defaults(Arc::new(MemoryStore::new()));
    /// # let (account, key) = service.open_account("my-agent", "2".parse()?).await?;
    /// let receipt = service.charge(Charge::new(&key, "0.25".parse()?, "GET", "/price")).await?;
    /// let refund = service.refund_undelivered(receipt).await;
    /// assert!(refund.outcome.is_ok());
    /// assert!(refund.headers.lines().contains(&(CHARGED_HEADER, "0".to_owned())));
    /// assert!(refund.headers.lines().contains(&(BALANCE_HEADER, "2".to_owned())));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn refund_undelivered(&self, receipt: Receipt) -> RefundResult {
        let (charged, rate, balance) = (MeteredHeaders::of(&receipt), receipt.rate, receipt.balance);
        let amount = receipt.hold.map_or(receipt.charged, |held| held.amount);
        let (meter, account) = (Arc::clone(&self.charging.meter), receipt.account.clone());
        let refunding = async move {
            let refunded = meter.refund(receipt).await;
            if let Err(error) = &refunded {
                tracing::error!(%error, %account, %amount, "a refund could not be recorded; the request stays charged");
            }
            refunded
        };
        match tokio::spawn(refunding.instrument(trace::current())).await {
            Ok(Ok(after)) => {
                RefundResult { headers: MeteredHeaders::refunded(rate, after.unwrap_or(balance)), outcome: Ok(()) }
            }
            Ok(Err(_)) | Err(_) => RefundResult { headers: charged, outcome: Err(Error::NotRefunded) },
        }
    }

    /// Records that a response was passed on to the client, which uses up the request's idempotency key. Returns at
    /// once: the response does not wait for the record, and until then a retry finds the request in progress.
    ///
    /// ```
    /// use metering_core::charging::IdempotencyKey;
    /// use metering_core::service::{AdmissionKind, RequestHead};
    /// use metering_core::{Catalogue, ClientSource, Error, MemoryStore, Service, ServiceConfig};
    /// # use std::sync::Arc;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let catalogue = Catalogue::from_json(
    /// #     r#"{"market": "M", "version": 1, "endpoints": [{"path": "/price", "method": "GET", "metered": true}]}"#,
    /// # )?;
    /// # let service = Service::start(Arc::new(MemoryStore::new()), catalogue, ServiceConfig::default());
    /// # let (_, key) = service.open_account("my-agent", "2".parse()?).await?;
    /// let sent = IdempotencyKey::parse("8e03978e")?;
    /// let (key, source, idempotency_key) = (Some(&key), ClientSource::Direct, Some(Ok(&sent)));
    /// let (method, path, address, body) = ("GET", "/price", None, None);
    /// let head = RequestHead { key, address, method, body, path, query: None, source, idempotency_key, payment: None };
    /// let AdmissionKind::Charged(receipt) = service.admit(head).await?.kind else { return Err("not charged".into()) };
    /// // Send the response, and then:
    /// service.delivered(&receipt);
    /// assert!(matches!(service.admit(head).await, Err(Error::Repeated(_))));
    /// # Ok(())
    /// # }
    /// ```
    pub fn delivered(&self, receipt: &Receipt) {
        if let Some(settlement) = receipt.settlement() {
            self.record_delivery(settlement);
        }
    }

    /// [`Service::delivered`], for a receipt that no longer exists.
    pub(crate) fn record_delivery(&self, settlement: Settlement) {
        let meter = Arc::clone(&self.charging.meter);
        let recording = async move {
            if let Err(error) = meter.settle(settlement).await {
                tracing::warn!(%error, "a delivery could not be recorded; its idempotency key may be used again");
            }
        };
        tokio::spawn(recording.instrument(trace::current()));
    }
}
