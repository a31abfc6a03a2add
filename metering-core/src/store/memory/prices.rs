//! Price versions on a memory store.

use std::sync::Arc;

use async_trait::async_trait;

use super::MemoryStore;
use crate::clock::Timestamp;
use crate::decision::{self, Decided};
use crate::prices::{NewPriceVersion, PriceHistory, PriceNumber, PriceRecorded, PriceVersion};
use crate::store::{PriceStore, StoreError};

/// The price versions of a memory store, with the texts of their catalogues: the version with number n is at n − 1.
#[derive(Debug, Default)]
pub(super) struct PriceState(Vec<(PriceVersion, Arc<str>)>);

impl PriceState {
    fn history(&self, from: Timestamp) -> PriceHistory {
        let all = PriceHistory::new(self.0.iter().map(|(version, _)| version.clone()).collect());
        let current = all.in_force(from).map(|version| version.number);
        let wanted = |version: &&PriceVersion| version.since > from || Some(version.number) == current;
        PriceHistory::new(all.versions().iter().filter(wanted).cloned().collect())
    }

    fn record(&mut self, new: &NewPriceVersion) -> PriceRecorded {
        let all = PriceHistory::new(self.0.iter().map(|(version, _)| version.clone()).collect());
        match decision::record_prices(new, &all) {
            Decided::Accepted(version) => {
                self.0.push((version.clone(), Arc::clone(&new.catalogue)));
                PriceRecorded::Recorded(version)
            }
            Decided::Refused(refusal) => refusal,
        }
    }

    fn get(&self, number: PriceNumber) -> Option<&(PriceVersion, Arc<str>)> {
        self.0.iter().find(|(version, _)| version.number == number)
    }

    fn cancel(&mut self, number: PriceNumber, now: Timestamp) -> Option<PriceVersion> {
        match decision::cancel_prices(self.get(number).map(|(version, _)| version.clone()), now) {
            Decided::Accepted(cancelled) => {
                let found = self.0.iter_mut().find(|(version, _)| version.number == number);
                if let Some((version, _)) = found {
                    version.clone_from(&cancelled);
                }
                Some(cancelled)
            }
            Decided::Refused(found) => found,
        }
    }
}

#[async_trait]
impl PriceStore for MemoryStore {
    async fn record_prices(&self, new: NewPriceVersion) -> Result<PriceRecorded, StoreError> {
        Ok(self.state()?.prices.record(&new))
    }

    async fn price_versions(&self, from: Timestamp) -> Result<PriceHistory, StoreError> {
        Ok(self.state()?.prices.history(from))
    }

    async fn price_catalogue(&self, number: PriceNumber) -> Result<Option<Arc<str>>, StoreError> {
        Ok(self.state()?.prices.get(number).map(|(_, catalogue)| Arc::clone(catalogue)))
    }

    async fn cancel_prices(&self, number: PriceNumber, now: Timestamp) -> Result<Option<PriceVersion>, StoreError> {
        Ok(self.state()?.prices.cancel(number, now))
    }
}
