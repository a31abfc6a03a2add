//! Limits on new payments that come with requests. Core counts them, because only core can tell which ones are new.

use governor::clock::Clock;
use metering_pay::offers::{PaymentAttempt, PaymentLimit, PaymentSource, TooManyPayments};

use super::payer_key::PayerKey;
use super::{Limits, Network};

impl<C: Clock + Clone> Limits<C> {
    /// Counts a new payment.
    ///
    /// # Errors
    /// When the limit of its client or its payer is reached.
    pub(crate) fn payment(&self, attempt: &PaymentAttempt) -> Result<(), TooManyPayments> {
        let refused = |source_of| move |retry_after_seconds| TooManyPayments { source_of, retry_after_seconds };
        if let Some(client) = attempt.client {
            self.payments.check(&Network::of(client)).map_err(refused(PaymentSource::Client))?;
        }
        let payer = match attempt.is_signed {
            true => PayerKey::Signed(attempt.payer),
            false => PayerKey::Unproven(attempt.payer, attempt.client.map(Network::around)),
        };
        self.payments_wallet.check(&payer).map_err(refused(PaymentSource::Payer))
    }
}

impl PaymentLimit for Limits {
    fn count(&self, attempt: &PaymentAttempt) -> Result<(), TooManyPayments> {
        self.payment(attempt)
    }
}
