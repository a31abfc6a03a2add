//! The signed receipt of a request. It states amounts that are on disk, so it is signed last.

use std::sync::Arc;

use http::Response;
use tokio::sync::MutexGuard;

use super::wanted_receipt::WantedReceipt;
use super::{Charged, State};
use crate::catalogue::Route;
use crate::charging::HoldId;

impl Charged {
    /// Gives the response a signed receipt, if its client or its route requests one, or its account always gets them.
    /// Call it before anyone else has a clone.
    pub(in crate::layer) fn receipted(mut self, request: HoldId, is_preferred: bool, route: &Route) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.shared)
            && shared.service.gives_receipt(&self.account, is_preferred || route.receipt)
        {
            let state = shared.state.get_mut();
            state.receipt = Some(Box::new(WantedReceipt::new(request, is_preferred, state.money.receipt())));
        }
        self
    }

    /// Whether the receipt of a request with a hold is still to come: it can be signed once the cost is captured.
    pub async fn owes_receipt(&self) -> bool {
        self.shared.state.lock().await.receipt.is_some()
    }

    /// The signed receipt of the amount that was captured after the head of the response was sent, for its trailer
    /// [`RECEIPT_HEADER`](crate::wire::RECEIPT_HEADER). `None` if the response has none, or has it in its head, or
    /// nothing was captured.
    pub async fn receipt(&self) -> Option<String> {
        let statement = self.shared.state.lock().await.take_receipt()?.into_statement()?;
        self.shared.service.sign_receipt(statement).await
    }
}

impl State {
    /// Sets the response headers with the request's cost. Returns the receipt to sign: a capture by another clone need
    /// not wait for the signature.
    pub(super) fn set_cost<R>(
        mut state: MutexGuard<'_, Self>,
        response: &mut Response<R>,
    ) -> Option<Box<WantedReceipt>> {
        state.set_headers(response);
        state.take_receipt()
    }

    /// The receipt, once there is something that it states.
    fn take_receipt(&mut self) -> Option<Box<WantedReceipt>> {
        self.receipt.take_if(|receipt| receipt.is_due())
    }
}
