//! Quotes: a plan promised for an exact amount, and used once.
//!
//! The amount is the plan's price plus a small random *tag*, so a payment identifies its quote. A transaction hash is
//! public as soon as it is broadcast; without the tag, the first person to read it could claim the payment.
//!
//! A *signup quote* is for one payer and creates an account: only one claimable quote has that chain, token, recipient,
//! payer and amount. A *top-up quote* belongs to an account, and any wallet may pay it: only one quote has that chain,
//! token, recipient and amount. The amounts of the two kinds never overlap, see [`TagKind`] (ADR 27).

mod nonce;
mod tag;

use std::time::Duration;

pub use nonce::{MalformedNonce, NonceHash, QuoteNonce, QuoteNonceKind, nonce_hash};
pub use tag::{TagKind, draw_amount};
pub(crate) use tag::{may_be_drawn, may_be_tagged};

use crate::access::account::{AccountId, AgentName};
use crate::access::email::Email;
use crate::chains::address::Address;
use crate::chains::chain::Evidence;
use crate::chains::transaction::TxRef;
use crate::chains::units::TokenUnits;
use crate::clock::Timestamp;
use crate::money::credits::Credits;
use crate::payments::payment::{Payment, PaymentFault, PaymentSettlement, PaymentTarget};

/// A quote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quote {
    /// The hash of the nonce that claims it.
    pub nonce: NonceHash,
    /// The account's future name.
    pub agent_name: AgentName,
    /// The owner's email address, if given.
    pub email: Option<Email>,
    /// The wallet that will pay. [`Quote::ANY_PAYER`] for a top-up quote, and only for one.
    pub payer: Address,
    /// The account to credit, if this is a top-up quote. `None` for a signup quote, whose payment creates one.
    pub top_up: Option<AccountId>,
    /// The recipient and token of the payment.
    pub target: PaymentTarget,
    /// The exact amount: the plan's price and the tag.
    pub amount: TokenUnits,
    /// The plan's id at the time.
    pub plan_id: String,
    /// The plan's credits at the time. The payment buys these even if the plan has changed since.
    pub credits: Credits,
    /// The plan's bonus credits at the time.
    pub bonus_credits: Credits,
    /// When it was made.
    pub created_at: Timestamp,
    /// When the promised price expires.
    pub expires_at: Timestamp,
    /// Its state.
    pub state: QuoteState,
}

/// The state of a quote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuoteState {
    /// Not paid yet.
    Open,
    /// The watcher found its payment and created its account. The account's key was never issued; a claim returns a new
    /// one.
    Paid {
        /// The account.
        account: AccountId,
        /// The payment's transaction.
        tx: TxRef,
    },
    /// Its account was created and the key returned.
    Claimed {
        /// The account.
        account: AccountId,
        /// The payment's transaction.
        tx: TxRef,
    },
}

impl QuoteState {
    /// The transaction of the payment that settled the quote; `None` while it is open.
    #[must_use]
    pub const fn tx(&self) -> Option<TxRef> {
        match self {
            Self::Open => None,
            Self::Paid { tx, .. } | Self::Claimed { tx, .. } => Some(*tx),
        }
    }

    /// Its name in stores.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Paid { .. } => "paid",
            Self::Claimed { .. } => "claimed",
        }
    }

    /// The state with that name. Account and transaction must be set unless it is open, and only then.
    #[must_use]
    pub fn from_parts(name: &str, account: Option<AccountId>, tx: Option<TxRef>) -> Option<Self> {
        match (name, account, tx) {
            ("open", None, None) => Some(Self::Open),
            ("paid", Some(account), Some(tx)) => Some(Self::Paid { account, tx }),
            ("claimed", Some(account), Some(tx)) => Some(Self::Claimed { account, tx }),
            _ => None,
        }
    }
}

impl Quote {
    /// The payer of a top-up quote: any wallet may pay it. No transaction's sender is the zero address.
    pub const ANY_PAYER: Address = Address::ZERO;
    /// How much older than the quote a block may be: the clocks of chains and servers differ.
    pub const CLOCK_SKEW: Duration = Duration::from_secs(2 * 60);
    /// How long after the expiry a payment is still honoured. The tag stays reserved for the payer until then.
    pub const GRACE: Duration = Duration::from_secs(7 * 24 * 60 * 60);
    /// The same for a top-up quote, whose amount is reserved from all accounts.
    pub const TOP_UP_GRACE: Duration = Duration::from_secs(24 * 60 * 60);
    /// How long after the grace period the amount of a top-up quote, paid or not, stays reserved from other accounts: a
    /// late or second payment must not be credited to someone else.
    pub const TOP_UP_REST: Duration = Duration::from_secs(30 * 24 * 60 * 60);
    /// The most unpaid top-up quotes of one account that reserve their amounts at a time, so no account can use up the
    /// amounts of a price.
    pub const MAX_TOP_UPS: usize = 16;
    /// How long after the grace period a claimed quote is kept, so a repeated claim gets the right error.
    pub const RETENTION: Duration = Duration::from_secs(90 * 24 * 60 * 60);
    /// How long after the grace period an unpaid quote is kept: long enough for a claim or the watcher to find a
    /// payment that was mined at the last moment. Anyone can request quotes, so unpaid ones must not accumulate.
    pub const UNPAID_RETENTION: Duration = Duration::from_secs(24 * 60 * 60);
    /// The same for a top-up quote: a day longer than its amount is reserved from other accounts.
    pub const UNPAID_TOP_UP_RETENTION: Duration = Duration::from_secs(31 * 24 * 60 * 60);

    /// The latest time at which a payment may be mined.
    #[must_use]
    pub fn honoured_until(&self) -> Timestamp {
        self.expires_at.saturating_add(if self.top_up.is_some() { Self::TOP_UP_GRACE } else { Self::GRACE })
    }

    /// The earliest time at which a payment may be mined.
    #[must_use]
    pub fn honoured_from(&self) -> Timestamp {
        self.created_at.saturating_sub(Self::CLOCK_SKEW)
    }

    /// Until when the amount is reserved even from the quote's owner. After that, a payment of this quote cannot pay a
    /// new one, which honours payments from [`Quote::CLOCK_SKEW`] before its creation.
    #[must_use]
    pub fn reserved_until(&self) -> Timestamp {
        self.honoured_until().saturating_add(Self::CLOCK_SKEW)
    }

    /// Whether this quote reserves the amount of a new one, because their payments would be indistinguishable.
    ///
    /// A quote, claimed or not, reserves its amount for its payer and target as long as its payment is honoured. A
    /// signup quote never blocks other payers: payments are matched by payer too, so one payer cannot use up another's
    /// tags. A top-up quote reserves its amount from all accounts, and from all but its own account for
    /// [`Quote::TOP_UP_REST`] more: any wallet may pay it, so a late payment would be credited to the amount's new
    /// owner.
    #[must_use]
    pub fn reserves_amount_of(&self, new: &Self) -> bool {
        let same_amount = (self.target, self.amount) == (new.target, new.amount);
        let same_payer = [new.payer, Self::ANY_PAYER].contains(&self.payer) || new.payer == Self::ANY_PAYER;
        let rest = if self.top_up.is_some() && self.top_up != new.top_up { Self::TOP_UP_REST } else { Duration::ZERO };
        same_amount && same_payer && new.created_at <= self.reserved_until().saturating_add(rest)
    }

    /// Whether this quote counts towards the [`Quote::MAX_TOP_UPS`] of a new one.
    #[must_use]
    pub fn counts_against(&self, new: &Self) -> bool {
        let same_account = self.top_up.is_some() && self.top_up == new.top_up;
        same_account && self.state == QuoteState::Open && new.created_at <= self.reserved_until()
    }

    /// Whether the quote waits for a payment: it is open, or it is a top-up quote whose payment was reversed.
    /// `settlement` belongs to the payment that settled it.
    #[must_use]
    pub fn waits(&self, settlement: Option<PaymentSettlement>) -> bool {
        let is_reversed = settlement.and_then(PaymentSettlement::reversed_at).is_some();
        self.state == QuoteState::Open || self.top_up.is_some() && is_reversed
    }

    /// Whether a payment by this wallet can pay the quote.
    #[must_use]
    pub fn takes_payer(&self, payer: Address) -> bool {
        self.payer == payer || self.payer == Self::ANY_PAYER
    }

    /// When the quote may be deleted; `None` while its account's key is unclaimed.
    #[must_use]
    pub fn forgotten_from(&self) -> Option<Timestamp> {
        let remembered = match self.state {
            QuoteState::Open if self.top_up.is_some() => Self::UNPAID_TOP_UP_RETENTION,
            QuoteState::Open => Self::UNPAID_RETENTION,
            QuoteState::Paid { .. } => return None,
            QuoteState::Claimed { .. } => Self::RETENTION,
        };
        Some(self.honoured_until().saturating_add(remembered))
    }

    /// Whether a payment pays this quote, apart from its confirmations.
    #[must_use]
    pub fn is_paid_by(&self, payment: &Payment) -> bool {
        payment.target() == self.target && self.fault_of(payment).is_none()
    }

    /// Checks that a transaction pays this quote.
    ///
    /// # Errors
    /// The first problem found. Missing confirmations come last, so a client only waits for a payment that is otherwise
    /// valid.
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
        if !self.takes_payer(payment.payer) {
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
