//! The record of a credited payment, which makes the payment count only once.

use crate::access::account::AccountId;
use crate::clock::Timestamp;
use crate::money::currency::Currency;
use crate::named_enum::named_enum;
use crate::payments::exchange_rate::CurrencyAmount;
use crate::payments::payment::{Payment, SoldPlan};
use crate::payments::processor::ProcessorRef;
use crate::payments::value::PaymentValue;

named_enum! {
    /// The use of a payment.
    pub enum PaymentUse {
        /// It paid for a new account.
        PaySignup = "pay_signup",
        /// Its account registered it as a top-up.
        Topup = "topup",
        /// An operator assigned it to an account.
        Assigned = "assigned",
        /// It executed an authorization that was sent with a request.
        Authorization = "authorization",
        /// It was credited at the service that its account was imported from, which does not report amount and
        /// recipient.
        Imported = "imported",
        /// A processor took it, and its account was credited.
        Processor = "processor",
    }
}

/// A payment and the account it was credited to. There is never more than one per transaction. Account, payer and
/// amount never change; block and settlement may until the payment is final.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentRecord {
    /// The payment.
    pub payment: Payment,
    /// The account that got the credits.
    pub account: AccountId,
    /// Its use.
    pub used_as: PaymentUse,
    /// The plan that was credited, if any.
    pub plan_id: Option<String>,
    /// The plan as it was sold; `None` without a plan.
    pub sold: Option<SoldPlan>,
    /// Its value when it was credited; `None` if the operator had set no currency, and for a processor's payment, whose
    /// amount is in one.
    pub value: Option<PaymentValue>,
    /// When it was recorded.
    pub recorded_at: Timestamp,
    /// Whether a reorganisation can still undo it.
    pub settlement: PaymentSettlement,
    /// The processor that took it, and the processor's id of it; `None` for a payment on a chain. A processor's payment is
    /// final, or reversed while its reversals take back all of it.
    pub processor: Option<ProcessorRef>,
}

impl PaymentRecord {
    /// The record of a payment that is being credited now, for no plan and without a value.
    #[must_use]
    pub fn of(payment: Payment, account: AccountId, used_as: PaymentUse, now: Timestamp) -> Self {
        let (settlement, recorded_at) = (PaymentSettlement::of_new(&payment), now);
        let (plan_id, sold, value, processor) = (None, None, None, None);
        Self { payment, account, used_as, plan_id, sold, value, recorded_at, settlement, processor }
    }

    /// Its value in a currency: the stored value, or the amount of a processor's payment. `None` if that is not known.
    #[must_use]
    pub fn worth(&self) -> Option<(Currency, CurrencyAmount)> {
        if self.processor.is_some() {
            let currency = Currency::of_token(&self.payment.token)?;
            return Some((currency, CurrencyAmount::of_minor(self.payment.amount.get(), currency.decimals().into())?));
        }
        let PaymentValue { currency, converted } = self.value.as_ref()?;
        Some((*currency, converted.as_ref()?.amount))
    }
}

/// Whether a credited payment can still be undone by its chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PaymentSettlement {
    /// Its credits are in the account, and it is watched until its block is final.
    Unsettled,
    /// Its block is final. It never changes after that.
    Final,
    /// A reorganisation removed it, and its credits were taken back. They return if it is mined again.
    Reversed {
        /// When the credits were taken back.
        at: Timestamp,
    },
}

impl PaymentSettlement {
    /// The settlement of a payment that is being credited now. If the block's hash is unknown, the payment cannot be
    /// watched, so it counts as final.
    #[must_use]
    pub const fn of_new(payment: &Payment) -> Self {
        if payment.block_hash.is_some() { Self::Unsettled } else { Self::Final }
    }

    /// Its name in stores and on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unsettled => "unsettled",
            Self::Final => "final",
            Self::Reversed { .. } => "reversed",
        }
    }

    /// The settlement with that name. `reversed_at` must be set for a reversed one, and only then.
    #[must_use]
    pub fn from_parts(name: &str, reversed_at: Option<Timestamp>) -> Option<Self> {
        match (name, reversed_at) {
            ("unsettled", None) => Some(Self::Unsettled),
            ("final", None) => Some(Self::Final),
            ("reversed", Some(at)) => Some(Self::Reversed { at }),
            _ => None,
        }
    }

    /// When its credits were taken back, if they were.
    #[must_use]
    pub const fn reversed_at(self) -> Option<Timestamp> {
        match self {
            Self::Reversed { at } => Some(at),
            Self::Unsettled | Self::Final => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_are_stored_by_name() {
        let names = ["pay_signup", "topup", "assigned", "authorization", "imported", "processor"];
        assert_eq!(PaymentUse::ALL.map(PaymentUse::as_str), names);
        for used in PaymentUse::ALL {
            assert_eq!(PaymentUse::from_name(used.as_str()), Some(used));
        }
        assert_eq!(PaymentUse::from_name("gift"), None);
    }
}
