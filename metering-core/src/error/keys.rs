//! What callers learn about their keys when these do not allow a request or a change.

use crate::access::budget::BudgetReset;
use crate::access::issued_key::Key;
use crate::access::key_use::KeyRefusal;
use crate::charging::key_meter::ExhaustedBudget;
use crate::charging::rate::RateStatus;
use crate::wire::{ErrorBody, Required};

/// A budget that does not cover a request.
#[derive(Debug, Clone, Copy)]
pub struct KeyBudget {
    /// The budget, and how much of it was spent.
    pub exhausted: ExhaustedBudget,
    /// The use of the rate limits.
    pub rate: RateStatus,
}

impl KeyBudget {
    /// Seconds until it starts again, at least one; `None` for never.
    pub(super) fn retry_after_seconds(&self) -> Option<u64> {
        self.exhausted.resets_at().map(|at| {
            let left = at.unix_millis().saturating_sub(self.exhausted.at.unix_millis());
            u64::try_from(left).unwrap_or(0).div_ceil(1_000).max(1)
        })
    }

    pub(super) fn add_context(&self, body: &mut ErrorBody) {
        let exhausted = &self.exhausted;
        body.required = Some(Required::Credits(exhausted.required));
        body.limit = Some(exhausted.budget.limit);
        body.limit_remaining = Some(exhausted.remaining());
        body.limit_reset = exhausted.budget.reset.map(BudgetReset::as_str);
        body.resets_at = exhausted.resets_at();
    }

    pub(super) fn advice(&self) -> String {
        let left = self.exhausted.remaining();
        let next = match self.exhausted.resets_at() {
            Some(at) => format!("It resets at {at}."),
            None => "It does not reset: ask whoever gave you the key to raise its limit.".to_owned(),
        };
        format!("The budget of this key has {left} credits left, less than the price; nothing was charged. {next}")
    }
}

/// Why the state of the keys does not allow a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyConflict {
    /// It is the account's first key.
    #[error(
        "This is the account's first key: it keeps all scopes, does not expire, and cannot be disabled or deleted. \
         Rotate it instead."
    )]
    FirstKey,
    /// It leaked.
    #[error("This key was reported as leaked, so its secret no longer works. Rotate it instead.")]
    Leaked,
    /// The account has as many keys as it may have.
    #[error("The account has as many keys as it may have. Delete one first.")]
    TooMany,
    /// The chain of keys would be too long.
    #[error(
        "A chain of keys has at most {} keys, and this key is the last of its chain. Use one of its parents instead.",
        Key::MAX_DEPTH
    )]
    TooDeep,
}

pub(super) fn advice(refusal: &KeyRefusal) -> String {
    let next = match refusal {
        KeyRefusal::Expired { .. } => "Use a newer key.",
        KeyRefusal::Network { .. } => "Call from one of its networks, or use another key.",
        _ => "Use another key, or ask its owner to change this one.",
    };
    format!("{refusal}. {next}")
}
