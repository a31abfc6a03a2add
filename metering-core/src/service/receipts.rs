//! Signs receipts of requests, for those that get one.

use std::sync::Arc;

use crate::access::account::AccountId;
use crate::access::key::ApiKey;
use crate::charging::charge::Receipt;
use crate::charging::hold::HoldId;
use crate::random::SystemRandomness;
use crate::receipts::{ReceiptScope, ReceiptSigner, Statement};
use crate::service::holds::route_of_template;
use crate::service::metering::Service;
use crate::service::receipt_setup::ReceiptSetup;
use crate::wire::{PREFERENCE_APPLIED_HEADER, RECEIPT_HEADER};

impl Service {
    /// Signs receipts of charged requests: for clients that send `Prefer: metering-receipt`, for the accounts in
    /// `always`, and on routes with `"receipt": true` in the catalogue. Without this, there are no receipts.
    ///
    /// [`MeteringLayer`](crate::MeteringLayer) sets the header. Without the layer, see [`Service::receipt_headers`].
    #[must_use]
    pub fn with_receipts(mut self, signer: Arc<dyn ReceiptSigner>, always: ReceiptScope) -> Self {
        self.charging.receipts = Some(ReceiptSetup::new(signer, always));
        self
    }

    /// Has no receipts signed any more.
    #[must_use]
    pub fn without_receipts(mut self) -> Self {
        self.charging.receipts = None;
        self
    }

    /// The headers of a response to a request that was charged without the layer: its signed receipt, if it gets one.
    /// `is_preferred` is true if the client [requested it](crate::wire::prefers_receipt). A receipt that cannot be
    /// signed is logged and left out.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use metering_core::receipts::{ReceiptError, ReceiptScope, ReceiptSigner, Statement};
    /// use metering_core::{Charge, MemoryStore, Service};
    ///
    /// /// For tests: says what was charged, and signs nothing.
    /// #[derive(Debug)]
    /// struct Unsigned;
    ///
    /// #[async_trait::async_trait]
    /// impl ReceiptSigner for Unsigned {
    ///     async fn sign(&self, statement: Statement) -> Result<String, ReceiptError> {
    ///         Ok(format!("{} {}", statement.kind, statement.amount))
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let service = Service::with_defaults(Arc::new(MemoryStore::new()));
    /// let service = service.with_receipts(Arc::new(Unsigned), ReceiptScope::default());
    /// let (_, key) = service.open_account("my-agent", "2".parse()?).await?;
    /// let receipt = service.charge(Charge::new(&key, "0.25".parse()?, "GET", "/price")).await?;
    /// let headers = service.receipt_headers(&receipt, &key, true).await;
    /// assert_eq!(headers[0], ("metering-receipt", "charge 0.25".to_owned()));
    /// assert!(service.receipt_headers(&receipt, &key, false).await.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn receipt_headers(
        &self,
        receipt: &Receipt,
        key: &ApiKey,
        is_preferred: bool,
    ) -> Vec<(&'static str, String)> {
        if !self.signs_receipts() {
            return Vec::new();
        }
        let line = &receipt.line;
        let route = route_of_template(self.catalogue(), line.template(), &line.http_method);
        if !self.gives_receipt(&receipt.account, is_preferred || route.is_some_and(|route| route.receipt)) {
            return Vec::new();
        }
        let at = receipt.rate.at;
        let request = HoldId::at(at, &SystemRandomness).of_charge(&key.hash(), &line.route_template, at, true);
        let Some(statement) = Statement::of_charge(receipt, request) else { return Vec::new() };
        let Some(signed) = self.sign_receipt(statement).await else { return Vec::new() };
        let applied = is_preferred.then(|| (PREFERENCE_APPLIED_HEADER, RECEIPT_HEADER.to_owned()));
        [(RECEIPT_HEADER, signed)].into_iter().chain(applied).collect()
    }

    /// Whether any response gets a receipt.
    pub(crate) const fn signs_receipts(&self) -> bool {
        self.charging.receipts.is_some()
    }

    /// Whether a response to this account gets one. `is_asked` is true if its client or its route requests it.
    pub(crate) fn gives_receipt(&self, account: &AccountId, is_asked: bool) -> bool {
        self.charging.receipts.as_ref().is_some_and(|receipts| is_asked || receipts.always(account))
    }

    /// Signs a receipt; `None` if that fails, which is logged.
    pub(crate) async fn sign_receipt(&self, statement: Statement) -> Option<String> {
        self.charging.receipts.as_ref()?.sign(statement).await
    }
}
