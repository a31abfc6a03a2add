//! Charges through the store: concurrent callers that each wait for their charge, like the tasks of an embedding
//! service.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use metering_core::{Charge, Clock, Credits, Decision, Meter, MeterConfig, Store, SystemClock};
use tokio::task::JoinSet;

use super::accounts::Accounts;
use super::measured::Measured;
use crate::bench::Failure;
use crate::bench::charges::{charge, line, require_accepted};
use crate::latency::Latencies;

/// Charges per commit while warming up.
const WARM_UP_BATCH: usize = 4_096;
/// How many charges of an account the store records together, at most.
const UNEVEN: usize = 16;

/// Charges the accounts in turn for `time`, as fast as `clients` callers can.
pub(super) async fn run(
    store: &(impl Store + Clone + 'static),
    accounts: &Accounts,
    callers: usize,
    time: Duration,
) -> Result<Measured, Failure> {
    let meter = Arc::new(Meter::start(Arc::new(store.clone()), Arc::new(SystemClock), MeterConfig::default()));
    let keys: Arc<[_]> = accounts.keys.iter().map(|key| key.hash()).collect();
    let line = line();
    let (started, mut tasks) = (Instant::now(), JoinSet::new());
    for _ in 0..callers {
        let (meter, keys, next_account) = (Arc::clone(&meter), Arc::clone(&keys), Arc::clone(&accounts.next_account));
        let line = line.clone();
        tasks.spawn(async move {
            let mut samples = Latencies::default();
            while started.elapsed() < time {
                let key = keys[next_account.fetch_add(1, Ordering::Relaxed) % keys.len()];
                let charge = Charge::of(key, Credits::BASE_CALL, line.clone());
                let sent = Instant::now();
                if let Decision::Refused(refusal) = meter.charge(charge).await? {
                    return Err(format!("a charge was refused: {refusal:?}").into());
                }
                samples.record(sent.elapsed());
            }
            Ok::<_, Failure>(samples)
        });
    }
    let mut all = Latencies::default();
    while let Some(samples) = tasks.join_next().await {
        all.append(&samples??);
    }
    let measured = Measured::new(all, started.elapsed());
    meter.drain().await;
    Ok(measured)
}

/// Charges each account once to sixteen times, and returns the number of charges. The work that is due on every
/// sixteenth charge of an account is then spread evenly over every run.
pub(super) async fn charge_unevenly(store: &impl Store, accounts: &Accounts) -> Result<u64, Failure> {
    let (line, mut charged) = (line(), 0);
    for round in 0..UNEVEN {
        let due: Vec<_> = accounts.keys.iter().enumerate().filter(|(index, _)| index % UNEVEN >= round).collect();
        for batch in due.chunks(WARM_UP_BATCH) {
            let postings = batch.iter().map(|(_, key)| charge(key.hash(), &line)).collect();
            require_accepted(&store.commit(postings, SystemClock.now()).await?, batch.len())?;
            charged += u64::try_from(batch.len())?;
        }
    }
    Ok(charged)
}
