//! Recurring credits: shows, sets and removes the rule.

use metering_core::money::Refill;

use crate::action::Action;
use crate::administration::Administration;
use crate::audited::{Step, Target, json, requested};
use crate::calls::refills::{RemoveRefill, SetRefill};
use crate::error::AdminError;

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
        let target = match &refill {
            Some(refill) => Target::of::<SetRefill>("refill", action).asked(requested(refill)),
            None => Target::of::<RemoveRefill>("refill", action),
        };
        let before: Step<Option<Refill>, _, _> =
            |store, _| Box::pin(async move { Ok(store.refill().await?.as_ref().and_then(json)) });
        let set: Step<Option<Refill>, _, AdminError> = |store, refill| {
            Box::pin(async move {
                store.set_refill(*refill).await?;
                Ok(*refill)
            })
        };
        self.audited(target, refill, before, set, |refill| refill.as_ref().and_then(json)).await.map(drop)
    }
}
