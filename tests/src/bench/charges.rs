//! Durable charges per second through the store: batches of several sizes, over more and fewer accounts.
//!
//! Only commits are timed; each returns once it is on disk. Building a batch is not timed: in a service, callers build
//! the next batch while the previous one commits. All charges are for one route, so a batch touches as many usage rows
//! as it has distinct accounts. Each account is charged once beforehand: the first charge of a day inserts a row and
//! all others update it, and a service spends its day on the updates. These charges are folded into the tables before
//! anything is timed.

use std::io::Write;
use std::time::{Duration, Instant};

use metering_core::access::KeyHash;
use metering_core::charging::{Outcome, Posting};
use metering_core::{Charge, ClientSource, Clock, Credits, Decision, Store, SystemClock, UsageLine};
use metering_sql::transfer::{Export, Section};

use super::accounts::{Populated, require_recorded, verified_calls};
use super::arguments::rising;
use super::chooser::{Chooser, Spread};
use super::random::SEED;
use super::rounds::Rounds;
use super::table::{Row, Table};
use super::{Arguments, Failure, disk, format, interrupt};
use crate::latency::Latencies;

/// Charges per commit while warming up.
const WARM_UP_BATCH: usize = 8_192;

/// One way to charge.
struct Case {
    spread: Spread,
    batch: usize,
    chooser: Chooser,
    rounds: Vec<Round>,
    /// Charges for each flush that the disk can do when nothing else uses it, taken within each round.
    per_flush: Vec<f64>,
}

/// The result of one round of a case.
pub(super) struct Round {
    pub(super) charges: usize,
    pub(super) charges_per_second: f64,
    commits: Latencies,
}

/// Measures all cases and writes their table.
pub(super) async fn write(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Failure> {
    let mut table = Table::default();
    let mut populated = Populated::make(&arguments.data_dir, 0).await?;
    let mut recorded = 0;
    for accounts in rising(&arguments.accounts) {
        eprintln!("charges: growing to {accounts} accounts");
        populated.grow_to(accounts).await?;
        let (cases, charges) = measure(arguments, &populated).await?;
        recorded += u64::try_from(charges)?;
        require_recorded(verified_calls(&populated.open()?).await?, recorded)?;
        for case in cases {
            let per_flush = Rounds::new(case.per_flush, |ratio| *ratio);
            let rounds = Rounds::new(case.rounds, |round| round.charges_per_second);
            table.row(
                Row::default()
                    .count("Accounts", accounts)
                    .text("Spread", case.spread.to_string())
                    .count("Batch", case.batch)
                    .rate("Charges per second", rounds.median().charges_per_second)
                    .rate("Slowest round", rounds.slowest().charges_per_second)
                    .rate("Fastest round", rounds.fastest().charges_per_second)
                    .latency("Commit p50", rounds.median().commits.p50())
                    .latency("Commit p99", rounds.median().commits.p99())
                    .number("Charges per disk flush", format!("{:.1}", per_flush.median())),
            );
        }
    }
    Ok(table.write("Durable charges through the store", out)?)
}

/// Measures all cases over all accounts. Also returns how many charges this took.
async fn measure(arguments: &Arguments, populated: &Populated) -> Result<(Vec<Case>, usize), Failure> {
    let keys: Vec<KeyHash> = populated.accounts.iter().map(|(_, key)| key.hash()).collect();
    let (store, accounts) = (populated.open()?, keys.len());
    // With one account, all spreads are the same.
    let spreads: &[Spread] = if accounts == 1 { &[Spread::Uniform] } else { &[Spread::Uniform, Spread::Zipf] };
    let mut cases = Vec::new();
    for spread in spreads {
        for batch in &arguments.batches {
            let chooser = Chooser::new(*spread, accounts, SEED);
            cases.push(Case {
                spread: *spread,
                batch: batch.get(),
                chooser,
                rounds: Vec::new(),
                per_flush: Vec::new(),
            });
        }
    }
    let mut charges = charge_each_once(&store, &keys).await?;
    // An export folds the whole journal first, and what the store has in memory stays there.
    store.export(Section::Usage, None, 1).await?;
    for round in 1..=arguments.rounds.get() {
        eprintln!("charges: {accounts} accounts, round {round}");
        let flushes_per_second = disk::flushes_per_second(&arguments.data_dir, arguments.time)?;
        for case in &mut cases {
            interrupt::check()?;
            let found = run(&store, &keys, &mut case.chooser, case.batch, arguments.time).await?;
            case.per_flush.push(format::ratio(found.charges_per_second, flushes_per_second));
            charges += found.charges;
            case.rounds.push(found);
        }
    }
    Ok((cases, charges))
}

/// The first charge of a day to each account, which inserts a row; all others update it.
pub(super) async fn charge_each_once(store: &dyn Store, keys: &[KeyHash]) -> Result<usize, Failure> {
    let line = line();
    for batch in keys.chunks(WARM_UP_BATCH) {
        let postings = batch.iter().map(|key| charge(*key, &line)).collect();
        require_accepted(&store.commit(postings, SystemClock.now()).await?, batch.len())?;
    }
    Ok(keys.len())
}

/// Commits batches until the commits have taken `time` in all.
pub(super) async fn run(
    store: &dyn Store,
    keys: &[KeyHash],
    chooser: &mut Chooser,
    batch: usize,
    time: Duration,
) -> Result<Round, Failure> {
    let line = line();
    let (mut samples, mut charges, mut spent) = (Latencies::default(), 0, Duration::ZERO);
    while spent < time {
        let postings = (0..batch).map(|_| charge(keys[chooser.next()], &line)).collect();
        let now = SystemClock.now();
        let started = Instant::now();
        let outcomes = store.commit(postings, now).await?;
        let took = started.elapsed();
        require_accepted(&outcomes, batch)?;
        samples.record(took);
        spent += took;
        charges += batch;
    }
    Ok(Round { charges, charges_per_second: format::per_second(charges, spent), commits: samples })
}

/// The usage line that all charges are recorded on.
pub(super) fn line() -> UsageLine {
    let (route_template, http_method) = ("/mpp/ethPrice".into(), "GET".into());
    UsageLine { route_template, http_method, source: ClientSource::Direct }
}

/// A charge for one base call.
pub(super) fn charge(key: KeyHash, line: &UsageLine) -> Posting {
    Posting::Charge(Charge::of(key, Credits::BASE_CALL, line.clone()))
}

/// Fails unless every charge of a batch was accepted.
pub(super) fn require_accepted(outcomes: &[Outcome], batch: usize) -> Result<(), Failure> {
    let accepted = |outcome: &&Outcome| matches!(outcome, Outcome::Decided(Decision::Accepted(_)));
    match outcomes.iter().find(|outcome| !accepted(outcome)) {
        None if outcomes.len() == batch => Ok(()),
        None => Err(format!("{} outcomes for {batch} charges", outcomes.len()).into()),
        Some(other) => Err(format!("a charge was not accepted: {other:?}").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[tokio::test]
    async fn every_combination_has_a_row() {
        let arguments = "bench --time 5ms --rounds 2 --accounts 3,1 --batches 1,7";
        let arguments = Arguments::try_parse_from(arguments.split(' ')).unwrap();
        let mut out = Vec::new();
        write(&arguments, &mut out).await.unwrap();
        let text = String::from_utf8(out).unwrap();
        let cells = |line: &str| line.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
        let rows: Vec<_> = text.lines().filter(|line| line.starts_with('|')).skip(2).map(cells).collect();
        let cases: Vec<_> = rows.iter().map(|row| row[1..4].join(" ")).collect();
        assert_eq!(cases, ["1 uniform 1", "1 uniform 7", "3 uniform 1", "3 uniform 7", "3 Zipf 1", "3 Zipf 7"]);
        for row in &rows {
            let rates: Vec<u64> = row[4..7].iter().map(|cell| cell.replace(',', "").parse().unwrap()).collect();
            assert!(rates[1] > 0 && rates[1] <= rates[0] && rates[0] <= rates[2], "{row:?}");
        }
    }

    #[tokio::test]
    async fn refused_charge_is_an_error() {
        let populated = Populated::make(&std::env::temp_dir(), 1).await.unwrap();
        let store = populated.open().unwrap();
        let keys = [KeyHash::from_bytes([1; 32])];
        let mut chooser = Chooser::new(Spread::Uniform, 1, SEED);
        let failed = run(&store, &keys, &mut chooser, 5, Duration::from_secs(1)).await;
        assert!(failed.is_err_and(|error| error.to_string().contains("not accepted")));
        assert!(require_accepted(&[], 1).is_err());
    }

    #[tokio::test]
    async fn measured_charges_are_on_record() {
        let populated = Populated::make(&std::env::temp_dir(), 2).await.unwrap();
        let store = populated.open().unwrap();
        let keys: Vec<_> = populated.accounts.iter().map(|(_, key)| key.hash()).collect();
        let mut chooser = Chooser::new(Spread::Uniform, 2, SEED);
        let round = run(&store, &keys, &mut chooser, 10, Duration::from_millis(20)).await.unwrap();
        let mut used = 0;
        for (id, _) in &populated.accounts {
            used += store.account(id).await.unwrap().unwrap().totals.used.atoms();
        }
        assert_eq!(round.charges, round.commits.count() * 10);
        assert_eq!(used, i64::try_from(round.charges).unwrap() * Credits::BASE_CALL.atoms());
        assert_eq!(verified_calls(&store).await.unwrap(), u64::try_from(round.charges).unwrap());
    }
}
