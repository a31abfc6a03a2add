//! Holds and captures through the store, compared with charges: the cost of prices that are known only afterwards.
//!
//! A held request is two postings in two commits, so at best it is half as fast as a charge. Each round commits a batch
//! of holds and then the batch of their captures; the charges next to it go to the same accounts.

use std::io::Write;
use std::time::{Duration, Instant};

use metering_core::access::KeyHash;
use metering_core::charging::{HoldAction, HoldTerms, Outcome, Posting};
use metering_core::{Clock, Credits, Decision, Store, SystemClock, SystemRandomness};

use super::accounts::{Populated, require_recorded, verified_calls};
use super::charges::{charge, charge_each_once, line, require_accepted, run};
use super::chooser::{Chooser, Spread};
use super::random::SEED;
use super::rounds::Rounds;
use super::table::{Row, Table};
use super::turns::order;
use super::{Arguments, Failure, format, interrupt};

/// Accounts in the store.
const ACCOUNTS: usize = 1_000;
/// How long a hold may stay open. Nothing here takes that long.
const LEASE: Duration = Duration::from_secs(3_600);

/// Measures charges and held requests in turns, and writes the table.
pub(super) async fn write(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Failure> {
    let accounts = if arguments.quick { ACCOUNTS / 100 } else { ACCOUNTS };
    let populated = Populated::make(&arguments.data_dir, accounts).await?;
    let store = populated.open()?;
    let keys: Vec<KeyHash> = populated.accounts.iter().map(|(_, key)| key.hash()).collect();
    let mut chooser = Chooser::new(Spread::Uniform, accounts, SEED);
    let mut recorded = charge_each_once(&store, &keys).await?;
    let mut rates: Vec<[Vec<f64>; 2]> = arguments.batches.iter().map(|_| Default::default()).collect();
    for round in 0..arguments.rounds.get() {
        eprintln!("holds: round {}", round + 1);
        for (batch, rates) in arguments.batches.iter().zip(&mut rates) {
            for which in order(round, rates.len()) {
                interrupt::check()?;
                let (requests, per_second) = match which {
                    0 => {
                        let found = run(&store, &keys, &mut chooser, batch.get(), arguments.time).await?;
                        (found.charges, found.charges_per_second)
                    }
                    _ => hold_and_capture(&store, &keys, &mut chooser, batch.get(), arguments.time).await?,
                };
                recorded += requests;
                rates[which].push(per_second);
            }
        }
    }
    require_recorded(verified_calls(&store).await?, u64::try_from(recorded)?)?;
    let mut table = Table::default();
    for (batch, rates) in arguments.batches.iter().zip(rates) {
        let [charges, held] = rates.map(|rates| *Rounds::new(rates, |rate| *rate).median());
        table.row(
            Row::default()
                .count("Batch", batch.get())
                .rate("Charges per second", charges)
                .rate("Held and captured per second", held)
                .number("Of charges", format!("{:.2}", format::ratio(held, charges))),
        );
    }
    let title = format!("Holds and captures beside charges, {} accounts", format::count(accounts));
    Ok(table.write(&title, out)?)
}

/// Holds and captures batches until the commits have taken `time` in all. Returns how many requests, in all and per
/// second.
async fn hold_and_capture(
    store: &dyn Store,
    keys: &[KeyHash],
    chooser: &mut Chooser,
    batch: usize,
    time: Duration,
) -> Result<(usize, f64), Failure> {
    let (mut requests, mut spent) = (0, Duration::ZERO);
    while spent < time {
        let holds = (0..batch).map(|_| hold(keys[chooser.next()])).collect();
        let (outcomes, took) = commit(store, holds).await?;
        require_accepted(&outcomes, batch)?;
        let captures = outcomes.iter().filter_map(capture).collect();
        let (outcomes, also_took) = commit(store, captures).await?;
        require_captured(&outcomes, batch)?;
        spent += took + also_took;
        requests += batch;
    }
    Ok((requests, format::per_second(requests, spent)))
}

async fn commit(store: &dyn Store, postings: Vec<Posting>) -> Result<(Vec<Outcome>, Duration), Failure> {
    let now = SystemClock.now();
    let started = Instant::now();
    let outcomes = store.commit(postings, now).await?;
    Ok((outcomes, started.elapsed()))
}

/// A hold of two base calls.
fn hold(key: KeyHash) -> Posting {
    let terms = HoldTerms::new(&SystemRandomness, LEASE, Credits::ZERO);
    match charge(key, &line()) {
        Posting::Charge(charge) => {
            let price = charge.price.checked_add(Credits::BASE_CALL).expect("two base calls are a small amount");
            Posting::Charge(charge.with_price(price).with_hold(terms))
        }
        other => other,
    }
}

/// The capture of half of the held amount.
fn capture(outcome: &Outcome) -> Option<Posting> {
    let Outcome::Decided(Decision::Accepted(receipt)) = outcome else { return None };
    receipt.hold_update(HoldAction::Capture { cost: Credits::BASE_CALL, may_exceed: false }).map(Posting::Hold)
}

/// Fails unless every capture of a batch was recorded.
fn require_captured(outcomes: &[Outcome], batch: usize) -> Result<(), Failure> {
    let captured = |outcome: &&Outcome| matches!(outcome, Outcome::Hold(Some(updated)) if updated.changed);
    match outcomes.iter().find(|outcome| !captured(outcome)) {
        None if outcomes.len() == batch => Ok(()),
        None => Err(format!("{} outcomes for {batch} captures", outcomes.len()).into()),
        Some(other) => Err(format!("a hold was not captured: {other:?}").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[tokio::test]
    async fn every_batch_has_a_row_and_what_was_held_is_on_record() {
        let arguments = "bench holds --quick --time 5ms --rounds 2 --batches 1,7";
        let arguments = Arguments::try_parse_from(arguments.split(' ')).unwrap();
        let mut out = Vec::new();
        write(&arguments, &mut out).await.unwrap();
        let text = String::from_utf8(out).unwrap();
        let rows: Vec<_> = text.lines().filter(|line| line.starts_with('|')).skip(2).collect();
        let batches: Vec<_> = rows.iter().map(|row| row.split('|').nth(1).unwrap().trim()).collect();
        assert_eq!(batches, ["1", "7"]);
    }

    #[test]
    fn an_outcome_that_is_no_capture_is_an_error() {
        assert!(require_captured(&[Outcome::Hold(None)], 1).is_err());
        assert!(require_captured(&[], 1).is_err());
    }
}
