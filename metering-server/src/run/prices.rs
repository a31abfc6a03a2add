//! Which catalogue a server serves: the one that its configuration names, unless an applied one is in force. The served
//! catalogue is recorded as a price version.

use std::sync::Arc;

use metering_core::prices::{CatalogueHash, NewPriceVersion, PriceNumber, PriceRecorded, PriceVersion};
use metering_core::store::PriceStore;
use metering_core::{Catalogue, Clock, StoreError};

use super::catalogue::usable;
use super::ending::RunError;
use crate::config::Config;

/// The catalogue to serve: the given one of the configuration, unless an applied one is in force.
pub(super) async fn to_serve(
    store: &dyn PriceStore,
    clock: &dyn Clock,
    file: Catalogue,
    config: &Config,
) -> Result<Arc<Catalogue>, RunError> {
    let now = clock.now();
    let history = store.price_versions(now).await.map_err(unreadable)?;
    match history.in_force(now).filter(|current| current.applied_by.is_some()) {
        Some(current) => {
            report_unused(&file, current);
            load(store, current.number, config).await
        }
        None => Ok(Arc::new(file)),
    }
}

/// Records the catalogue that [`to_serve`] returned, and returns its number.
pub(super) async fn record(
    store: &dyn PriceStore,
    clock: &dyn Clock,
    catalogue: &Catalogue,
) -> Result<PriceNumber, RunError> {
    match recorded(store, clock, catalogue).await? {
        PriceRecorded::Recorded(version) | PriceRecorded::Unchanged(version) => Ok(version.number),
        PriceRecorded::AppliedInForce(version) | PriceRecorded::SameTime(version)
            if version.hash == CatalogueHash::of(catalogue.json()) =>
        {
            Ok(version.number)
        }
        PriceRecorded::AppliedInForce(version) | PriceRecorded::SameTime(version) => Err(RunError::Setup(
            format!("price version {}, which was applied, has just taken effect; try again", version.number).into(),
        )),
    }
}

/// Records the catalogue of the configuration at the start of a server. Returns the catalogue to serve and its number.
pub(super) async fn at_start(
    store: &dyn PriceStore,
    clock: &dyn Clock,
    file: Catalogue,
    config: &Config,
) -> Result<(Arc<Catalogue>, PriceNumber), RunError> {
    match recorded(store, clock, &file).await? {
        PriceRecorded::Recorded(version) | PriceRecorded::Unchanged(version) => Ok((Arc::new(file), version.number)),
        PriceRecorded::AppliedInForce(version) | PriceRecorded::SameTime(version) => {
            report_unused(&file, &version);
            Ok((load(store, version.number, config).await?, version.number))
        }
    }
}

async fn recorded(store: &dyn PriceStore, clock: &dyn Clock, file: &Catalogue) -> Result<PriceRecorded, RunError> {
    let now = clock.now();
    let new = NewPriceVersion { catalogue: file.json().into(), since: now, recorded_at: now, applied_by: None };
    store.record_prices(new).await.map_err(unreadable)
}

fn report_unused(file: &Catalogue, applied: &PriceVersion) {
    if CatalogueHash::of(file.json()) != applied.hash {
        tracing::warn!(
            version = %applied.number,
            "the configured catalogue is not used, because an operator applied another one; to change prices, run \
             `metering admin catalogue apply`"
        );
    }
}

/// Reads the catalogue of a version, and checks that this server can serve it.
pub(super) async fn load(
    store: &dyn PriceStore,
    version: PriceNumber,
    config: &Config,
) -> Result<Arc<Catalogue>, RunError> {
    let unusable = |problem: String| RunError::Setup(format!("price version {version}: {problem}").into());
    let text = store.price_catalogue(version).await.map_err(unreadable)?;
    let text = text.ok_or_else(|| unusable("its catalogue is missing from the store".to_owned()))?;
    let catalogue = Catalogue::from_json(&text).map_err(|error| unusable(error.to_string()))?;
    usable(catalogue, config).map(Arc::new).map_err(unusable)
}

fn unreadable(error: StoreError) -> RunError {
    RunError::Setup(Box::new(error))
}
