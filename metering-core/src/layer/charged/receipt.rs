//! The signed receipt of a request. It states what is on disk, so it is signed last.

use std::sync::Arc;

use http::header::HeaderName;
use http::{HeaderMap, HeaderValue, Response};
use tokio::sync::MutexGuard;

use super::{Charged, State};
use crate::catalogue::Route;
use crate::charging::HoldId;
use crate::charging::charge::Receipt;
use crate::charging::hold::HoldUpdated;
use crate::clock::Timestamp;
use crate::money::credits::Credits;
use crate::prices::PriceNumber;
use crate::receipts::{ReceiptKind, Statement};
use crate::service::metering::Service;
use crate::wire::{PREFERENCE_APPLIED_HEADER, RECEIPT_HEADER};

/// A receipt that a response gets if the request costs something.
pub(super) struct WantedReceipt {
    request: HoldId,
    /// Whether the client asked for it.
    is_preferred: bool,
    /// That of the charge, or of the hold.
    price_version: Option<PriceNumber>,
    /// `None` while nothing was charged, and once it was taken.
    statement: Option<Statement>,
}

impl Charged {
    /// Gives the response a signed receipt, if its client or its route asks for one, or its account always gets them. Call it
    /// before anyone else has a clone.
    pub(in crate::layer) fn receipted(mut self, request: HoldId, is_preferred: bool, route: &Route) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.shared)
            && shared.service.gives_receipt(&self.account, is_preferred || route.receipt)
        {
            let state = shared.state.get_mut();
            let mut wanted = WantedReceipt { request, is_preferred, price_version: None, statement: None };
            if let Some(receipt) = state.money.receipt() {
                wanted.charges(receipt);
            }
            state.receipt = Some(Box::new(wanted));
        }
        self
    }

    /// Whether the receipt of a request with a hold is still to come: it can be signed once the cost is captured.
    pub async fn owes_receipt(&self) -> bool {
        self.shared.state.lock().await.receipt.is_some()
    }

    /// The signed receipt of what was captured after the head of the response was sent, for its trailer
    /// [`RECEIPT_HEADER`](crate::wire::RECEIPT_HEADER). `None` if the response gets none, has it in its head, or nothing was
    /// captured.
    pub async fn receipt(&self) -> Option<String> {
        let statement = self.shared.state.lock().await.take_receipt()?.statement?;
        self.shared.service.sign_receipt(statement).await
    }

    /// Sets the headers of the response that say what the request cost, and its receipts.
    pub(super) async fn set_headers<R>(&self, mut state: MutexGuard<'_, State>, response: &mut Response<R>) {
        state.set_headers(response);
        if let Some(receipt) = state.take_receipt() {
            // A capture by another clone need not wait for the signature.
            drop(state);
            Box::pin(receipt.sign_into(&self.shared.service, response.headers_mut())).await;
        }
    }
}

impl State {
    /// The receipt, once there is something that it states.
    fn take_receipt(&mut self) -> Option<Box<WantedReceipt>> {
        self.receipt.take_if(|receipt| receipt.statement.is_some())
    }
}

impl WantedReceipt {
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

    async fn sign_into(self, service: &Service, headers: &mut HeaderMap) {
        let Self { is_preferred, statement, .. } = self;
        let Some(statement) = statement else { return };
        let Some(receipt) = service.sign_receipt(statement).await else { return };
        match HeaderValue::try_from(receipt) {
            Ok(receipt) => {
                headers.insert(HeaderName::from_static(RECEIPT_HEADER), receipt);
                if is_preferred {
                    let applied = HeaderValue::from_static(RECEIPT_HEADER);
                    headers.append(HeaderName::from_static(PREFERENCE_APPLIED_HEADER), applied);
                }
            }
            Err(error) => tracing::error!(%error, "a receipt cannot be a header"),
        }
    }
}
