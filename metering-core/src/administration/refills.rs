//! Recurring credits: shows, sets and removes the rule.

use super::action::{Action, NOTHING, Target, json, requested};
use super::{AdminError, Administration};
use crate::money::refill::Refill;

impl Administration {
    /// How accounts are refilled; `None` when they are not.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn refill(&self) -> Result<Option<Refill>, AdminError> {
        Ok(self.store.refill().await?)
    }

    /// Replaces the rule. `None` stops refills.
    ///
    /// # Errors
    /// [`AdminError::Invalid`], or when the store fails.
    pub async fn set_refill(&self, action: &Action, refill: Option<Refill>) -> Result<(), AdminError> {
        if let Some(refill) = &refill {
            refill.validate().map_err(|error| AdminError::Invalid(error.to_string()))?;
        }
        let target = Target {
            name: if refill.is_some() { "refill.set" } else { "refill.remove" },
            subject: "refill".to_owned(),
            request: refill.as_ref().map_or(NOTHING.to_owned(), requested),
            before: self.refill().await?.as_ref().and_then(json),
            action,
        };
        let taken = async { Ok(self.store.set_refill(refill).await?) };
        self.audited(target, taken, |()| refill.as_ref().and_then(json)).await
    }
}
