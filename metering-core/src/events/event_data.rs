//! The contents of events, each declared here: its name, its description and its fields. Pages and commands list them
//! from these declarations.

use std::str::FromStr;

use serde::Serialize;

use crate::access::budget::{Budget, BudgetReset};
use crate::access::issued_key::Key;
use crate::access::key_id::KeyId;
use crate::access::key_terms::KeyName;
use crate::access::member::{Identity, Member, MemberId};
use crate::access::role::MemberRole;
use crate::charging::hold::{Hold, HoldId};
use crate::clock::Timestamp;
use crate::money::alert::AlertLevel;
use crate::money::credits::Credits;
use crate::money::ledger::{LedgerKind, NewLedgerEntry};
use crate::named_enum::named_enum;
use crate::payments::auto_top_up::TopUpStop;

/// Declares the kinds of events: each has a description in its doc comment, of one line, and a name that receivers see.
macro_rules! event_kinds {
    ($(#[doc = $description:literal] $Variant:ident = $name:literal,)+) => {
        named_enum! {
            /// What happened.
            pub enum EventKind {
                $(#[doc = $description] $Variant = $name,)+
            } unlisted {
                /// The owner of a webhook sent a test.
                WebhookTest = "webhook.test",
            }
        }

        impl EventKind {
            /// What happened, in a sentence for people.
            #[must_use]
            pub const fn description(self) -> &'static str {
                match self {
                    $(Self::$Variant => $description.trim_ascii(),)+
                    Self::WebhookTest => "The owner of a webhook sent a test.",
                }
            }
        }
    };
}

event_kinds! {
    /// The balance, or a key's remaining budget, fell below its threshold.
    BalanceLow = "balance.low",
    /// The balance is used up, or did not cover a request.
    BalanceExhausted = "balance.exhausted",
    /// The budget of a key is used up.
    BudgetExhausted = "budget.exhausted",
    /// A payment was credited.
    PaymentCredited = "payment.credited",
    /// A payment was reversed: its transaction is no longer on the chain, or it was refunded or disputed.
    PaymentReversed = "payment.reversed",
    /// Automatic top-ups stopped, and resume only when they are turned on again.
    TopUpStopped = "top_up.stopped",
    /// A key was created.
    KeyCreated = "key.created",
    /// A key was deleted or revoked.
    KeyRevoked = "key.revoked",
    /// A key was reported as leaked, and no longer works.
    KeyLeaked = "key.leaked",
    /// A request's cost was not reported in time.
    HoldExpired = "hold.expired",
    /// Somebody accepted an invitation, and is a member now.
    MemberJoined = "member.joined",
    /// A member got another role.
    MemberChanged = "member.changed",
    /// A member left or was removed.
    MemberRemoved = "member.removed",
}

/// The text names no kind of event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a kind of event; the kinds are {kinds}", kinds = EventKind::ALL.map(EventKind::as_str).join(", "))]
pub struct EventKindError(String);

impl FromStr for EventKind {
    type Err = EventKindError;

    /// A kind of event that a webhook can receive.
    fn from_str(text: &str) -> Result<Self, EventKindError> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or_else(|| EventKindError(text.to_owned()))
    }
}

/// The kind of event and its data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum EventData {
    /// [`EventKind::BalanceLow`] of an account.
    BalanceLow {
        /// The balance, after the change that made it low.
        balance: Credits,
        /// The threshold.
        threshold: Credits,
    },
    /// [`EventKind::BalanceExhausted`].
    BalanceExhausted {
        /// The balance.
        balance: Credits,
        /// The amount that the refused request would have held or cost, if one was refused.
        #[serde(skip_serializing_if = "Option::is_none")]
        required: Option<Credits>,
    },
    /// [`EventKind::BalanceLow`] of a key.
    BudgetLow {
        /// The budget.
        #[serde(flatten)]
        budget: BudgetEvent,
        /// The threshold.
        threshold: Credits,
    },
    /// [`EventKind::BudgetExhausted`].
    BudgetExhausted(BudgetEvent),
    /// [`EventKind::PaymentCredited`].
    PaymentCredited(PaymentEvent),
    /// [`EventKind::PaymentReversed`].
    PaymentReversed(PaymentEvent),
    /// [`EventKind::TopUpStopped`].
    TopUpStopped {
        /// Why.
        reason: TopUpStop,
        /// The plan that they bought.
        plan_id: String,
    },
    /// [`EventKind::KeyCreated`].
    KeyCreated(KeyEvent),
    /// [`EventKind::KeyRevoked`].
    KeyRevoked(KeyEvent),
    /// [`EventKind::KeyLeaked`].
    KeyLeaked(KeyEvent),
    /// [`EventKind::HoldExpired`].
    HoldExpired {
        /// The request.
        request_id: HoldId,
        /// The amount that was held.
        held: Credits,
        /// The amount that was charged.
        charged: Credits,
        /// Its route.
        route_template: String,
        /// Its method.
        http_method: String,
    },
    /// [`EventKind::MemberJoined`].
    MemberJoined(MemberEvent),
    /// [`EventKind::MemberChanged`].
    MemberChanged(MemberEvent),
    /// [`EventKind::MemberRemoved`].
    MemberRemoved(MemberEvent),
    /// [`EventKind::WebhookTest`].
    Test {
        /// Its message.
        message: &'static str,
    },
}

/// A key, in an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeyEvent {
    /// The key.
    pub key_id: KeyId,
    /// Its name.
    pub key_name: KeyName,
}

impl From<&Key> for KeyEvent {
    fn from(key: &Key) -> Self {
        Self { key_id: key.id.clone(), key_name: key.terms.name.clone() }
    }
}

/// A member, in an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MemberEvent {
    /// The member.
    pub member_id: MemberId,
    /// The member: an email address or a wallet.
    pub identity: Identity,
    /// Its role, after the change.
    pub role: MemberRole,
}

impl From<&Member> for MemberEvent {
    fn from(member: &Member) -> Self {
        Self { member_id: member.id, identity: member.identity.clone(), role: member.role }
    }
}

/// The budget of a key, in an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BudgetEvent {
    /// The key.
    #[serde(flatten)]
    pub key: KeyEvent,
    /// The budget's credits.
    pub limit: Credits,
    /// The credits that remain.
    pub limit_remaining: Credits,
    /// When it starts again; null for never.
    pub limit_reset: Option<BudgetReset>,
    /// The next time that it starts again; null for never.
    pub limit_resets_at: Option<Timestamp>,
}

impl BudgetEvent {
    pub(crate) fn new(key: KeyEvent, budget: &Budget, remaining: Credits, now: Timestamp) -> Self {
        let (limit, limit_reset) = (budget.limit, budget.reset);
        Self { key, limit, limit_remaining: remaining, limit_reset, limit_resets_at: budget.resets_at(now) }
    }
}

/// A payment, in an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PaymentEvent {
    /// The credits added, or taken back; above zero.
    pub credits: Credits,
    /// The balance after it.
    pub balance: Credits,
    /// The chain (EIP-155); 0 for a processor's payment.
    pub chain_id: u64,
    /// The transaction, or the hash that represents a processor's payment.
    pub tx_hash: String,
    /// The plan that was paid, if any.
    pub plan_id: Option<String>,
    /// The processor that took it; absent for a payment on a chain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processor: Option<String>,
    /// The processor's id of the payment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processor_id: Option<String>,
}

impl EventData {
    /// The data of a test event.
    pub const TEST: Self = Self::Test { message: "This is a test. Nothing happened." };

    /// The kind.
    #[must_use]
    pub const fn kind(&self) -> EventKind {
        match self {
            Self::BalanceLow { .. } | Self::BudgetLow { .. } => EventKind::BalanceLow,
            Self::BalanceExhausted { .. } => EventKind::BalanceExhausted,
            Self::BudgetExhausted(_) => EventKind::BudgetExhausted,
            Self::PaymentCredited(_) => EventKind::PaymentCredited,
            Self::PaymentReversed(_) => EventKind::PaymentReversed,
            Self::TopUpStopped { .. } => EventKind::TopUpStopped,
            Self::KeyCreated(_) => EventKind::KeyCreated,
            Self::KeyRevoked(_) => EventKind::KeyRevoked,
            Self::KeyLeaked(_) => EventKind::KeyLeaked,
            Self::HoldExpired { .. } => EventKind::HoldExpired,
            Self::MemberJoined(_) => EventKind::MemberJoined,
            Self::MemberChanged(_) => EventKind::MemberChanged,
            Self::MemberRemoved(_) => EventKind::MemberRemoved,
            Self::Test { .. } => EventKind::WebhookTest,
        }
    }

    /// The event of an alert of a balance. A refused request can exhaust a balance that is not low.
    pub(crate) fn of_balance(
        alert: AlertLevel,
        balance: Credits,
        threshold: Option<Credits>,
        required: Option<Credits>,
    ) -> Option<Self> {
        match alert {
            AlertLevel::None | AlertLevel::LowAndShort => None,
            AlertLevel::Low => {
                let threshold = threshold.filter(|threshold| balance < *threshold)?;
                Some(Self::BalanceLow { balance, threshold })
            }
            AlertLevel::Short | AlertLevel::Exhausted => Some(Self::BalanceExhausted { balance, required }),
        }
    }

    /// The event of an alert of a budget. A refused request can exhaust a budget that is not low.
    pub(crate) fn of_budget(alert: AlertLevel, budget: BudgetEvent, threshold: Option<Credits>) -> Option<Self> {
        match alert {
            AlertLevel::None | AlertLevel::LowAndShort => None,
            AlertLevel::Low => {
                let threshold = threshold.filter(|threshold| budget.limit_remaining < *threshold)?;
                Some(Self::BudgetLow { budget, threshold })
            }
            AlertLevel::Short | AlertLevel::Exhausted => Some(Self::BudgetExhausted(budget)),
        }
    }

    /// The event of a ledger entry that credits or reverses a payment; `None` for other entries.
    pub(crate) fn of_entry(entry: &NewLedgerEntry, balance: Credits) -> Option<Self> {
        let paid = entry.payment.as_ref()?;
        let reversed = entry.kind == LedgerKind::PaymentReversed;
        let event = PaymentEvent {
            credits: if reversed { entry.amount.checked_neg()? } else { entry.amount },
            balance,
            chain_id: paid.tx.chain_id,
            tx_hash: paid.tx.hash.to_string(),
            plan_id: paid.plan_id.clone(),
            processor: None,
            processor_id: None,
        };
        match reversed {
            true => Some(Self::PaymentReversed(event)),
            false => event.credits.is_positive().then_some(Self::PaymentCredited(event)),
        }
    }

    /// Names the processor of an event's payment, and the processor's id of the payment.
    pub(crate) fn paid_at(&mut self, processor: &str, id: &str) {
        if let Self::PaymentCredited(paid) | Self::PaymentReversed(paid) = self {
            (paid.processor, paid.processor_id) = (Some(processor.to_owned()), Some(id.to_owned()));
        }
    }

    /// The event of a hold that was settled because its lease ended.
    pub(crate) fn of_expired(hold: &Hold, charged: Credits) -> Self {
        Self::HoldExpired {
            request_id: hold.id,
            held: hold.amount,
            charged,
            route_template: hold.line.template().to_owned(),
            http_method: hold.line.http_method.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_read_by_their_names() {
        for kind in EventKind::ALL {
            assert_eq!((kind.as_str().parse(), EventKind::from_name(kind.as_str())), (Ok(kind), Some(kind)));
        }
        assert!("webhook.test".parse::<EventKind>().is_err(), "webhooks cannot select it");
        assert_eq!(EventKind::from_name("webhook.test"), Some(EventKind::WebhookTest));
        assert_eq!(EventKind::KeyCreated.description(), "A key was created.");
    }
}
