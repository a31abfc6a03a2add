//! Holds that a signed payment backs: once the cost is known, the payment is executed for that amount.

use std::sync::Arc;

use tracing::Instrument;

use super::{Charged, State};
use crate::layer::money::Money;
use crate::service::RequestPayment;
use crate::service::metering::Service;
use crate::trace;

impl Charged {
    /// Waits until the payment that backed the hold is executed, but not for long. Returns immediately while the hold
    /// is open: the cost of a stream is known long after its head was sent.
    pub(super) async fn await_payment(&self) {
        let payment = self.shared.state.lock().await.used_payment();
        let Some(payment) = payment else { return };
        let Some(balance) = self.shared.service.offers().settle_usage(&*payment).await else { return };
        let mut state = self.shared.state.lock().await;
        state.headers = state.headers.map(|headers| headers.with_balance(balance));
    }
}

impl State {
    /// Begins to execute the payment that backed the hold, which was just settled. There may be no caller waiting for
    /// it.
    pub(super) fn begin_to_settle_payment(&self, service: &Arc<Service>) {
        let Some(payment) = self.used_payment() else { return };
        let service = Arc::clone(service);
        let settling = async move { service.offers().settle_usage(&*payment).await };
        tokio::spawn(settling.instrument(trace::current()));
    }

    /// The payment that backed the hold, once that is settled.
    fn used_payment(&self) -> Option<Arc<dyn RequestPayment>> {
        let is_settled = matches!(self.money, Money::Captured | Money::Refunded);
        let (payment, _) = self.payment.as_ref().filter(|(_, paid)| is_settled && paid.hold.is_some())?;
        Some(Arc::clone(payment))
    }
}
