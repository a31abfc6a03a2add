//! Sets aside arrivals that cannot be read, so the watcher can continue, and retries them later.
//!
//! A failure of one transaction must be distinguished from a failure of the whole chain. An unreadable transaction is
//! set aside. A failure of the chain keeps the watcher at its position, so nothing is missed.

use std::collections::{BTreeMap, BTreeSet};

use crate::chains::chain::{Chain, ChainError, ChainReader};
use crate::chains::transaction::TxRef;
use crate::error::Error;
use crate::payments::payment::{ArrivalLocation, PaymentTarget, UnreadableArrival};
use crate::payments::plan::Plan;
use crate::service::Payments;
use crate::service::payments::arrivals::{Arrivals, arrivals, arrivals_in, check_chain_is_readable};
use crate::service::payments::watch::WatchReport;

/// After this many rounds with a failure that may be temporary, an arrival is set aside. Only rounds in which the rest
/// of the chain could be read are counted.
const MAX_HELD_ROUNDS: u32 = 3;
/// The most arrivals that one round retries.
const RETRIES_MAX: u32 = 20;

impl Payments<'_> {
    /// Records arrivals that could not be read. If the failure may be temporary, it holds the watcher for a few rounds
    /// first.
    pub(super) async fn set_aside(
        self,
        unread: BTreeMap<ArrivalLocation, ChainError>,
        report: &mut WatchReport,
    ) -> Result<(), Error> {
        for (location, error) in unread {
            let lasting = matches!(error, ChainError::Unreadable(_));
            if !lasting && self.state.failed_rounds(location) < MAX_HELD_ROUNDS {
                tracing::warn!(place = %location, %error, "an arrival could not be read; trying again");
                report.held = true;
                continue;
            }
            self.record_unreadable(location, &error, report).await?;
        }
        Ok(())
    }

    async fn record_unreadable(
        self,
        location: ArrivalLocation,
        error: &ChainError,
        report: &mut WatchReport,
    ) -> Result<(), Error> {
        self.state
            .store()?
            .put_unreadable(UnreadableArrival::new(location, &error.to_string(), self.access.now()))
            .await?;
        tracing::error!(place = %location, %error, "an arrival cannot be read; metering admin payments list shows it");
        report.unreadable += 1;
        Ok(())
    }

    /// The arrivals of a chain that were set aside and are due for a retry.
    pub(super) async fn unreadable_due(self, chain_id: u64) -> Result<Vec<UnreadableArrival>, Error> {
        Ok(self.state.store()?.unreadable_due(chain_id, self.access.now(), RETRIES_MAX).await?)
    }

    /// Retries the arrivals that are due.
    ///
    /// A block that can be searched now may hold transactions that cannot be read. They are recorded immediately,
    /// whatever the reason, because the watcher has passed their block.
    pub(super) async fn retry_unreadable(
        self,
        chain: &Chain,
        plans: &[Plan],
        targets: &BTreeSet<PaymentTarget>,
        due: Vec<UnreadableArrival>,
        report: &mut WatchReport,
    ) -> Result<(), Error> {
        let reader = self.state.reader(chain.chain_id)?;
        for arrival in due {
            match read_again(&**reader, targets, arrival.location).await {
                Ok(Arrivals { read, unread }) => {
                    for arrival in read {
                        self.settle_arrival(chain, plans, arrival, report).await?;
                    }
                    for (location, error) in unread {
                        self.record_unreadable(location, &error, report).await?;
                    }
                    self.state.store()?.forget_unreadable(&arrival.location).await?;
                }
                // The whole chain fails, which does not concern the arrival: it stays due.
                Err(error) if check_chain_is_readable(&**reader, &error).await.is_err() => return Ok(()),
                Err(error) => self.retry_later_or_give_up(arrival, &error).await?,
            }
        }
        Ok(())
    }

    async fn retry_later_or_give_up(self, arrival: UnreadableArrival, error: &ChainError) -> Result<(), Error> {
        let arrival = arrival.failed_again(&error.to_string(), self.access.now());
        if arrival.next_attempt_at.is_none() {
            tracing::error!(
                place = %arrival.location, %error, attempts = arrival.attempts,
                "gave up reading an arrival; if it is a payment, credit it by hand"
            );
        }
        Ok(self.state.store()?.put_unreadable(arrival).await?)
    }
}

/// Reads one place again; fails if it still cannot be read.
async fn read_again(
    reader: &dyn ChainReader,
    targets: &BTreeSet<PaymentTarget>,
    location: ArrivalLocation,
) -> Result<Arrivals, ChainError> {
    let ArrivalLocation { chain_id, block_number, hash } = location;
    if let Some(hash) = hash {
        let read = arrivals_in(reader, targets, TxRef { chain_id, hash }).await?;
        return Ok(Arrivals { read, unread: BTreeMap::new() });
    }
    let mut arrivals = arrivals(reader, targets, block_number, block_number).await?;
    arrivals.unread.remove(&location).map_or(Ok(arrivals), Err)
}
