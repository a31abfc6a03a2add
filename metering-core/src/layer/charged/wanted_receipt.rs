//! A signed receipt that is still to be made.

use http::header::HeaderName;
use http::{HeaderValue, Response};

use crate::charging::HoldId;
use crate::charging::charge::Receipt;
use crate::charging::hold::HoldUpdated;
use crate::clock::Timestamp;
use crate::money::credits::Credits;
use crate::prices::PriceNumber;
use crate::receipts::{ReceiptKind, Statement};
use crate::service::metering::Service;
use crate::wire::{PREFERENCE_APPLIED_HEADER, RECEIPT_HEADER};

/// The receipt for a response, if the request costs something.
pub(super) struct WantedReceipt {
    request: HoldId,
    /// Whether the client requested it.
    is_preferred: bool,
    /// The price version of the charge, or of the hold.
    price_version: Option<PriceNumber>,
    /// `None` while nothing was charged, and once it was taken.
    statement: Option<Statement>,
}

impl WantedReceipt {
    /// One for a request that was charged already, or not yet.
    pub(super) fn new(request: HoldId, is_preferred: bool, charged: Option<&Receipt>) -> Self {
        let mut wanted = Self { request, is_preferred, price_version: None, statement: None };
        if let Some(receipt) = charged {
            wanted.charges(receipt);
        }
        wanted
    }

    /// Whether there is something that it states.
    pub(super) const fn is_due(&self) -> bool {
        self.statement.is_some()
    }

    pub(super) fn into_statement(self) -> Option<Statement> {
        self.statement
    }

    /// The request was charged, or its most was held.
    pub(super) fn charges(&mut self, receipt: &Receipt) {
        self.price_version = receipt.price_version;
        self.statement = Statement::of_charge(receipt, self.request);
    }

    /// The cost was captured from the hold.
    pub(super) fn captures(&mut self, settled: &HoldUpdated) {
        // If it was captured before, the balance after that is not known.
        let balance = settled.changed.then_some(settled.balance);
        self.statement = Statement::of_capture(&settled.hold, self.price_version, balance);
    }

    /// The charge was refunded.
    pub(super) fn refunds(&mut self, balance: Credits, at: Timestamp) {
        let charged = self.statement.take();
        self.statement =
            charged.map(|charged| Statement { kind: ReceiptKind::Refund, balance: Some(balance), at, ..charged });
    }

    /// Signs it, and sets the headers of the response.
    pub(super) async fn signed_into<R>(self: Box<Self>, service: &Service, mut response: Response<R>) -> Response<R> {
        let Self { is_preferred, statement, .. } = *self;
        let Some(statement) = statement else { return response };
        let Some(receipt) = service.sign_receipt(statement).await else { return response };
        match HeaderValue::try_from(receipt) {
            Ok(receipt) => {
                let headers = response.headers_mut();
                headers.insert(HeaderName::from_static(RECEIPT_HEADER), receipt);
                if is_preferred {
                    let applied = HeaderValue::from_static(RECEIPT_HEADER);
                    headers.append(HeaderName::from_static(PREFERENCE_APPLIED_HEADER), applied);
                }
            }
            Err(error) => tracing::error!(%error, "a receipt cannot be a header"),
        }
        response
    }
}
