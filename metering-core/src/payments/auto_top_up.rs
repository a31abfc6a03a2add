//! Automatic top-ups: an account buys a plan with its saved card when its balance is low.
//!
//! A charge of the card is stored before it is made, and counts against the month's limit in the same transaction. So each is
//! made once, whatever fails and however many processes look for low balances. Only the card's ids at the processor, its brand
//! and its last four digits are stored.

use std::fmt;

use crate::access::account::AccountId;
use crate::chains::transaction::TxHash;
use crate::clock::Timestamp;
use crate::money::credits::Credits;
use crate::money::currency::Currency;
use crate::named_enum::named_enum;
use crate::random_id::random_id;

/// A card that may be charged without its owner.
#[derive(Clone, PartialEq, Eq)]
pub struct SavedCard {
    /// The processor's id of the customer.
    pub customer: String,
    /// The processor's id of the card.
    pub method: String,
    /// The card's brand, such as `visa`.
    pub brand: String,
    /// The last four digits of its number.
    pub last4: String,
}

impl fmt::Debug for SavedCard {
    /// Without the processor's ids, which must not be logged.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SavedCard({} {})", self.brand, self.last4)
    }
}

/// The agreement with the owner of an account: when its card is charged, for what, and how often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopUpRule {
    /// The plan that is bought.
    pub plan_id: String,
    /// Its credits, as of the agreement.
    pub credits: Credits,
    /// Its price, as of the agreement, in the currency's smallest unit.
    pub amount: u64,
    /// The currency of the price.
    pub currency: Currency,
    /// The balance below which it is bought.
    pub threshold: Credits,
    /// The most that is charged in a calendar month (UTC), in the currency's smallest unit.
    pub monthly_limit: u64,
}

named_enum! {
    /// Why automatic top-ups stopped. They resume when their owner turns them on again.
    pub enum TopUpStop {
        /// The card was declined.
        Declined = "declined",
        /// The card's bank requires its owner to authenticate.
        AuthenticationRequired = "authentication_required",
        /// The processor does not charge the card.
        Refused = "refused",
        /// A payment of the account was refunded or disputed, whether an automatic top-up made it or not.
        Reversed = "reversed",
        /// The plan's terms have changed since they were turned on, or it is no longer sold.
        PlanChanged = "plan_changed",
    }
}

impl TopUpStop {
    /// Why, in a sentence for the owner of the account.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Self::Declined => "The card was declined.",
            Self::AuthenticationRequired => "The card's bank wants you to confirm payments yourself.",
            Self::Refused => "The card processor does not charge the card.",
            Self::Reversed => "A payment was refunded or disputed.",
            Self::PlanChanged => "The plan has changed, or is no longer sold.",
        }
    }
}

/// The saved card of an account, and its automatic top-ups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AutoTopUp {
    /// The account.
    pub account: AccountId,
    /// Its card.
    pub card: Option<SavedCard>,
    /// When to charge it; `None` while that is turned off.
    pub rule: Option<TopUpRule>,
    /// Why it is not charged, although there is a rule.
    pub stopped: Option<TopUpStop>,
}

impl AutoTopUp {
    /// No card and no rule.
    #[must_use]
    pub const fn none(account: AccountId) -> Self {
        Self { account, card: None, rule: None, stopped: None }
    }
}

/// The id of a charge of a saved card: `atu_` and 32 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopUpChargeId([u8; 16]);

/// The text is not the id of a charge of a saved card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the id of an automatic top-up is atu_ followed by 32 lower-case hex digits")]
pub struct TopUpChargeIdError;

random_id!(TopUpChargeId, TopUpChargeIdError, "atu_");

named_enum! {
    /// The known state of a charge of a saved card.
    pub enum TopUpChargeState {
        /// It is being made, or its outcome is not known.
        Open = "open",
        /// It was paid.
        Paid = "paid",
        /// It was not paid, and never will be.
        Failed = "failed",
    }
}

/// A charge of a saved card. It does not change except for its state and payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopUpCharge {
    /// Its id, which is the idempotency key at the processor.
    pub id: TopUpChargeId,
    /// The account.
    pub account: AccountId,
    /// The card.
    pub card: SavedCard,
    /// The plan that is bought.
    pub plan_id: String,
    /// Its credits.
    pub credits: Credits,
    /// Its price, in the currency's smallest unit.
    pub amount: u64,
    /// The currency.
    pub currency: Currency,
    /// When it was decided.
    pub started_at: Timestamp,
    /// Its known state.
    pub state: TopUpChargeState,
    /// The hash that represents the processor's payment ([`ProcessorRef::tx`](crate::payments::ProcessorRef::tx)), once
    /// it was paid.
    pub payment: Option<TxHash>,
}
