//! Quotes: a plan at an exact amount, promised to one payer, and claimed once.
//!
//! The amount is the plan's price plus a small random *tag*, so that a payment names its own quote: of all that could
//! be claimed, only one has that chain, token, recipient, payer and amount. A transaction's hash is public the moment
//! it is broadcast; without the tag and the payer, whoever reads it first could claim it.

mod nonce;
mod tag;

use std::time::Duration;

pub use nonce::{MalformedNonce, NonceHash, QuoteNonce};
pub use tag::draw_amount;
pub(crate) use tag::may_be_tagged;

use crate::account::{AccountId, AgentName, Email};
use crate::address::Address;
use crate::chain::Evidence;
use crate::clock::Timestamp;
use crate::credits::Credits;
use crate::payment::{Payment, PaymentFault, PaymentTarget};
use crate::transaction::TxRef;
use crate::units::TokenUnits;

/// A quote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quote {
    /// The hash of the nonce that claims it.
    pub nonce: NonceHash,
    /// What the account will be called.
    pub agent_name: AgentName,
    /// Its owner's email address, if given.
    pub email: Option<Email>,
    /// The wallet that will pay.
    pub payer: Address,
    /// Where the payment goes, and in what.
    pub target: PaymentTarget,
    /// The exact amount: the plan's price and the tag.
    pub amount: TokenUnits,
    /// The plan's name at the time.
    pub plan_id: String,
    /// What the plan sold at the time: it is what the payment buys, whatever became of the plan.
    pub credits: Credits,
    /// What the plan added on top at the time.
    pub bonus_credits: Credits,
    /// When it was made.
    pub created_at: Timestamp,
    /// Until when the price is promised.
    pub expires_at: Timestamp,
    /// What became of it.
    pub state: QuoteState,
}

/// What became of a quote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuoteState {
    /// Nothing yet.
    Open,
    /// It was paid and its account made, by the watcher; nobody has the account's key. Claiming gives a new one out.
    Paid {
        /// The account.
        account: AccountId,
        /// The payment's transaction.
        tx: TxRef,
    },
    /// Its account was made and the key given out.
    Claimed {
        /// The account.
        account: AccountId,
        /// The payment's transaction.
        tx: TxRef,
    },
}

impl Quote {
    /// How much older than the quote a block's time may be: clocks of chains and servers differ.
    pub const CLOCK_SKEW: Duration = Duration::from_secs(2 * 60);
    /// How long after the expiry a payment is still honoured, since its tag is kept for its payer that long.
    pub const GRACE: Duration = Duration::from_secs(7 * 24 * 60 * 60);
    /// How long after the grace a claimed quote is remembered, so that a repeated claim is told what happened.
    pub const REMEMBERED: Duration = Duration::from_secs(90 * 24 * 60 * 60);
    /// How long after the grace a quote that nobody paid is remembered: long enough for a claim or the watcher to find
    /// a payment that was mined at the last moment. Anybody can ask for quotes, so unpaid ones must not pile up.
    pub const UNPAID_REMEMBERED: Duration = Duration::from_secs(24 * 60 * 60);

    /// Until when a payment may be mined.
    #[must_use]
    pub fn honoured_until(&self) -> Timestamp {
        self.expires_at.saturating_add(Self::GRACE)
    }

    /// From when a payment may be mined.
    #[must_use]
    pub fn honoured_from(&self) -> Timestamp {
        self.created_at.saturating_sub(Self::CLOCK_SKEW)
    }

    /// Whether another quote may not have the same amount: its payment could be taken for this one's.
    ///
    /// Only a quote of the same payer, to the same target, stands in the way, claimed or not, for as long as a payment
    /// of this one is honoured. Other payers' quotes never do: a payment is matched by its payer too, so strangers
    /// cannot use up anybody's tags.
    #[must_use]
    pub fn reserves_amount_of(&self, new: &Self) -> bool {
        let same_payment = (self.payer, self.target, self.amount) == (new.payer, new.target, new.amount);
        same_payment && new.created_at <= self.honoured_until()
    }

    /// When the quote may be forgotten; `None` while somebody still has to come for its account's key.
    #[must_use]
    pub fn forgotten_from(&self) -> Option<Timestamp> {
        let remembered = match self.state {
            QuoteState::Open => Self::UNPAID_REMEMBERED,
            QuoteState::Paid { .. } => return None,
            QuoteState::Claimed { .. } => Self::REMEMBERED,
        };
        Some(self.honoured_until().saturating_add(remembered))
    }

    /// Whether a payment is this quote's, its depth aside.
    #[must_use]
    pub fn is_paid_by(&self, payment: &Payment) -> bool {
        payment.target() == self.target && self.fault_of(payment).is_none()
    }

    /// Judges a transaction that is said to pay this quote.
    ///
    /// # Errors
    /// What is wrong with it. That it is not deep enough comes last: whoever waits for that waits for nothing else.
    pub fn judge(&self, tx: TxRef, evidence: &Evidence) -> Result<Payment, PaymentFault> {
        let payment = self.target.payment(tx, evidence)?;
        match self.fault_of(&payment) {
            Some(fault) => Err(fault),
            None if !evidence.depth.is_enough() => Err(PaymentFault::Unconfirmed(evidence.depth)),
            None => Ok(payment),
        }
    }

    fn fault_of(&self, payment: &Payment) -> Option<PaymentFault> {
        let mined_at = payment.mined_at;
        if payment.payer != self.payer {
            return Some(PaymentFault::WrongPayer { expected: self.payer, found: payment.payer });
        }
        if payment.amount != self.amount {
            return Some(PaymentFault::WrongAmount { expected: self.amount, found: payment.amount });
        }
        if mined_at < self.honoured_from() {
            return Some(PaymentFault::PredatesQuote { mined_at, quoted_at: self.created_at });
        }
        let honoured_until = self.honoured_until();
        (mined_at > honoured_until).then_some(PaymentFault::QuoteExpired { mined_at, honoured_until })
    }
}

#[cfg(test)]
mod tests;
