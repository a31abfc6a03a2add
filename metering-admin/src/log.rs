//! The log of every posting: begins its epochs, and deletes old entries.

use metering_core::clock::Timestamp;
use metering_core::store::{EpochReason, LogEpoch, LogSecret, NewEpoch, PreviousLog};
use zeroize::Zeroizing;

use crate::action::Action;
use crate::administration::Administration;
use crate::audited::{Step, Target, json, nothing, requested};
use crate::call::{LOG_BEGIN, LOG_PRUNE};
use crate::error::AdminError;

/// How many bundles are deleted in one transaction. Charges wait for it in some stores.
const SLICE: u32 = 256;

impl Administration {
    /// Begins an epoch of the log with a new secret, after the epoch with the number `after`, and ends that one. If the store
    /// was moved here and has no epoch yet, `previous` is how its log ended in the other database.
    ///
    /// # Errors
    /// [`AdminError::Conflict`] if `after` is not the last epoch, or another one has this origin; and when the store
    /// fails.
    pub async fn begin_log(
        &self,
        action: &Action,
        origin: String,
        reason: EpochReason,
        after: Option<u32>,
        previous: Option<PreviousLog>,
    ) -> Result<LogEpoch, AdminError> {
        let mut secret = Zeroizing::new([0_u8; LogSecret::BYTES]);
        self.randomness.fill(&mut *secret);
        let target = Target::named(LOG_BEGIN, &origin, action);
        let named = previous.as_ref().map(ToString::to_string);
        let asked = serde_json::json!({ "reason": reason, "after": after, "previous": named });
        let target = target.asked(requested(&asked));
        let new = NewEpoch { origin, secret: LogSecret::new(*secret), reason, previous };
        let begin: Step<(NewEpoch, Option<u32>, Timestamp), LogEpoch, AdminError> = |store, (new, after, now)| {
            Box::pin(async move {
                let begun = store.begin_log(new.clone(), *after, *now).await?;
                begun.ok_or_else(|| {
                    let problem = "has another last epoch than expected, or one with the same origin";
                    AdminError::Conflict(format!("the log {problem} ({}); nothing was changed", new.origin))
                })
            })
        };
        let args = (new, after, self.clock.now());
        self.audited(target, args, nothing, begin, |epoch| json(&serde_json::json!({ "epoch": epoch.number }))).await
    }

    /// Deletes the bundles of an epoch below an index, except those that the log needs to continue. Returns how many
    /// were deleted. After an interruption, call it again.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn prune_log(&self, action: &Action, epoch: &LogEpoch, below: u64) -> Result<u64, AdminError> {
        let target = Target::named(LOG_PRUNE, &epoch.origin, action);
        let target = target.asked(requested(&serde_json::json!({ "below_bundle": below })));
        // From now on they are not served; the rows are deleted afterwards, in slices.
        let withdraw: Step<(u32, u64), u64, AdminError> =
            |store, (epoch, below)| Box::pin(async move { Ok(store.prune_log(*epoch, *below, 0).await?) });
        self.audited(target, (epoch.number, below), nothing, withdraw, |_| None).await?;
        let mut deleted = 0;
        loop {
            let slice = self.store.prune_log(epoch.number, below, SLICE).await?;
            deleted += slice;
            if slice < u64::from(SLICE) {
                return Ok(deleted);
            }
        }
    }
}
