//! Sets aside arrivals that cannot be read, so that the watcher can go on, and retries them later.
//!
//! A failure of one transaction must be told apart from a failure of the whole chain. The first is set aside. The
//! second holds the watcher's position, so that nothing is missed.

use std::collections::{BTreeMap, BTreeSet};

use crate::chain::{Chain, ChainError, ChainReader};
use crate::error::Error;
use crate::payment::{ArrivalPlace, PaymentTarget, UnreadableArrival};
use crate::plan::Plan;
use crate::service::Service;
use crate::service::arrivals::{Arrivals, arrivals, arrivals_in, is_of_this_alone};
use crate::service::watch::Watched;
use crate::transaction::TxRef;

/// After this many rounds with a failure that may be temporary, an arrival is set aside. Only rounds in which the rest
/// of the chain could be read count.
const ROUNDS_HELD: u32 = 3;
/// The most arrivals that one round retries.
const RETRIES_MAX: u32 = 20;

impl Service {
    /// Records arrivals that could not be read. If the failure may be temporary, it holds the watcher for a few rounds
    /// first.
    pub(super) async fn set_aside(
        &self,
        unread: BTreeMap<ArrivalPlace, ChainError>,
        watched: &mut Watched,
    ) -> Result<(), Error> {
        for (place, error) in unread {
            let lasting = matches!(error, ChainError::Unreadable(_));
            if !lasting && self.desk.failed_rounds(place) < ROUNDS_HELD {
                tracing::warn!(%place, %error, "an arrival could not be read; trying again");
                watched.held = true;
                continue;
            }
            self.record_unreadable(place, &error, watched).await?;
        }
        Ok(())
    }

    async fn record_unreadable(
        &self,
        place: ArrivalPlace,
        error: &ChainError,
        watched: &mut Watched,
    ) -> Result<(), Error> {
        self.store.put_unreadable(UnreadableArrival::new(place, &error.to_string(), self.clock.now())).await?;
        tracing::error!(%place, %error, "an arrival cannot be read; metering admin payments list shows it");
        watched.unreadable += 1;
        Ok(())
    }

    /// The arrivals of a chain that were set aside and are due for a retry.
    pub(super) async fn unreadable_due(&self, chain_id: u64) -> Result<Vec<UnreadableArrival>, Error> {
        Ok(self.store.unreadable_due(chain_id, self.clock.now(), RETRIES_MAX).await?)
    }

    /// Retries the arrivals that are due.
    ///
    /// A block that can be searched now may hold transactions that cannot be read. They are recorded at once, whatever
    /// the reason, because the watcher has passed their block.
    pub(super) async fn retry_unreadable(
        &self,
        chain: &Chain,
        plans: &[Plan],
        targets: &BTreeSet<PaymentTarget>,
        due: Vec<UnreadableArrival>,
        watched: &mut Watched,
    ) -> Result<(), Error> {
        let reader = self.desk.reader(chain.chain_id)?;
        for arrival in due {
            match read_again(&**reader, targets, arrival.place).await {
                Ok(Arrivals { read, unread }) => {
                    for arrival in read {
                        self.settle_arrival(chain, plans, arrival, watched).await?;
                    }
                    for (place, error) in unread {
                        self.record_unreadable(place, &error, watched).await?;
                    }
                    self.store.forget_unreadable(&arrival.place).await?;
                }
                // The whole chain fails, which says nothing about the arrival: it stays due.
                Err(error) if is_of_this_alone(&**reader, &error).await.is_err() => return Ok(()),
                Err(error) => self.give_up_or_wait(arrival, &error).await?,
            }
        }
        Ok(())
    }

    async fn give_up_or_wait(&self, arrival: UnreadableArrival, error: &ChainError) -> Result<(), Error> {
        let arrival = arrival.failed_again(&error.to_string(), self.clock.now());
        if arrival.next_attempt_at.is_none() {
            tracing::error!(
                place = %arrival.place, %error, attempts = arrival.attempts,
                "gave up reading an arrival; if it is a payment, credit it by hand"
            );
        }
        Ok(self.store.put_unreadable(arrival).await?)
    }
}

/// Reads one place again; fails if it still cannot be read.
async fn read_again(
    reader: &dyn ChainReader,
    targets: &BTreeSet<PaymentTarget>,
    place: ArrivalPlace,
) -> Result<Arrivals, ChainError> {
    let ArrivalPlace { chain_id, block_number, hash } = place;
    if let Some(hash) = hash {
        let read = arrivals_in(reader, targets, TxRef { chain_id, hash }).await?;
        return Ok(Arrivals { read, unread: BTreeMap::new() });
    }
    let mut arrivals = arrivals(reader, targets, block_number, block_number).await?;
    arrivals.unread.remove(&place).map_or(Ok(arrivals), Err)
}
