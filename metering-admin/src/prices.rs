//! Price versions: lists them, applies a catalogue on all nodes, and cancels what has not taken effect.

use std::sync::Arc;
use std::time::Duration;

use metering_core::catalogue::Catalogue;
use metering_core::clock::Timestamp;
use metering_core::prices::{CatalogueHash, NewPriceVersion, PriceHistory, PriceNumber, PriceRecorded};
use metering_core::store::{FullStore, Pending};
use metering_core::usage::DayRange;
use serde_json::json as value;

use crate::action::Action;
use crate::administration::Administration;
use crate::audited::{Step, Target, json, nothing};
use crate::calls::prices::{ApplyCatalogue, CancelCatalogue};
use crate::error::{AdminError, wrong};
use crate::wire::{PriceVersionDocument, PriceVersionsDocument};

/// How far ahead a catalogue is applied at least, so that every node has read it by then.
pub const SWITCH_LEAD: Duration = Duration::from_secs(15);

/// How far ahead a catalogue is applied by default.
const DEFAULT_LEAD: Duration = Duration::from_secs(30);

impl Administration {
    /// All price versions, newest first.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn price_versions(&self) -> Result<PriceVersionsDocument, AdminError> {
        let history = self.store.price_versions(Timestamp::from_unix_millis(i64::MIN)).await?;
        Ok(PriceVersionsDocument::new(&history, self.clock.now()))
    }

    /// The price versions in force over the last `days` UTC days.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn price_history(&self, days: u32) -> Result<PriceHistory, AdminError> {
        let first = DayRange::last_days(self.clock.now(), days).first;
        Ok(self.store.price_versions(first.start()).await?)
    }

    /// The text of a version's catalogue.
    ///
    /// # Errors
    /// [`AdminError::NotFound`], or when the store fails.
    pub async fn price_catalogue(&self, number: PriceNumber) -> Result<Arc<str>, AdminError> {
        self.store.price_catalogue(number).await?.ok_or_else(|| no_version(number))
    }

    /// The text of the catalogue in force, if any is recorded.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn catalogue_in_force(&self) -> Result<Option<Arc<str>>, AdminError> {
        let now = self.clock.now();
        match self.store.price_versions(now).await?.in_force(now) {
            Some(version) => Ok(self.store.price_catalogue(version.number).await?),
            None => Ok(None),
        }
    }

    /// Has all nodes serve a catalogue from `at` on, at least [`SWITCH_LEAD`] from now; by default in 30 seconds. From
    /// then on, nodes no longer take the file that their configuration names.
    ///
    /// # Errors
    /// [`AdminError::Request`] when the catalogue is not valid, [`AdminError::Invalid`] when the time is too soon,
    /// [`AdminError::Conflict`] when the same catalogue is in force then, or another one takes effect at the same time, or
    /// when the store fails.
    pub async fn apply_catalogue(
        &self,
        action: &Action,
        catalogue: &str,
        at: Option<Timestamp>,
    ) -> Result<PriceVersionDocument, AdminError> {
        let read = Catalogue::from_json(catalogue).map_err(|error| wrong("catalogue", error))?;
        if let Some(problem) = (self.conflict)(&read) {
            return Err(wrong("catalogue", problem));
        }
        let now = self.clock.now();
        let since = at.unwrap_or_else(|| now.saturating_add(DEFAULT_LEAD));
        if since < now.saturating_add(SWITCH_LEAD) {
            let seconds = SWITCH_LEAD.as_secs();
            let problem = format!("at {since} is too soon: it must be at least {seconds} seconds ahead; now is {now}");
            return Err(AdminError::Invalid(problem));
        }
        // With presets and models written out: what they say may change with the version of the software.
        let catalogue = read.json();
        let hash = CatalogueHash::of(catalogue);
        let asked = value!({"hash": hash.to_string(), "at": since.to_string()}).to_string();
        let target = Target::of::<ApplyCatalogue>("catalogue", action).asked(asked);
        let applied_by = Some(action.actor().clone());
        let new = NewPriceVersion { catalogue: catalogue.into(), since, recorded_at: now, applied_by };
        self.audited(target, new, |store, new| Box::pin(in_force(store, new.recorded_at)), apply, json).await
    }

    /// Cancels a version before it takes effect.
    ///
    /// # Errors
    /// [`AdminError::NotFound`], [`AdminError::Conflict`] when it is too late, or when the store fails.
    pub async fn cancel_catalogue(
        &self,
        action: &Action,
        number: PriceNumber,
    ) -> Result<PriceVersionDocument, AdminError> {
        let request = value!({"version": number.0}).to_string();
        let target = Target::of::<CancelCatalogue>("catalogue", action).asked(request);
        let cancel: Step<(PriceNumber, Timestamp), _, _> = |store, (number, now)| {
            Box::pin(async move {
                let version = store.cancel_prices(*number, *now).await?.ok_or_else(|| no_version(*number))?;
                if version.cancelled_at.is_none() {
                    return Err(AdminError::Conflict(format!(
                        "version {number} took effect at {}; apply another catalogue instead",
                        version.since
                    )));
                }
                Ok(PriceVersionDocument::new(&version, &PriceHistory::default(), *now))
            })
        };
        self.audited(target, (number, self.clock.now()), nothing, cancel, json).await
    }
}

/// The version in force before an action.
async fn in_force(store: &dyn FullStore, now: Timestamp) -> Result<Option<String>, AdminError> {
    let history = store.price_versions(now).await?;
    Ok(history.in_force(now).and_then(|current| json(&PriceVersionDocument::new(current, &history, now))))
}

fn apply<'a>(
    store: &'a dyn FullStore,
    new: &'a NewPriceVersion,
) -> Pending<'a, Result<PriceVersionDocument, AdminError>> {
    Box::pin(async move {
        let (since, now) = (new.since, new.recorded_at);
        let history = store.price_versions(now).await?;
        let conflict = |problem: String| Err(AdminError::Conflict(problem));
        match store.record_prices(new.clone()).await? {
            PriceRecorded::Recorded(version) => Ok(PriceVersionDocument::new(&version, &history, now)),
            PriceRecorded::Unchanged(version) | PriceRecorded::AppliedInForce(version) => {
                conflict(format!("version {} has the same catalogue, and is in force at {since}", version.number))
            }
            PriceRecorded::SameTime(version) => conflict(format!(
                "version {} takes effect at {since} too; cancel it first, or choose another time",
                version.number
            )),
        }
    })
}

fn no_version(number: PriceNumber) -> AdminError {
    AdminError::NotFound(format!("no price version {number}"))
}
