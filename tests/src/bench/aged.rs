//! Charges through a store that has recorded many, next to a fresh one.

use std::io::Write;

use metering_core::access::KeyHash;
use metering_core::{Clock, Store, SystemClock};
use metering_sqlite::SqliteStore;

use super::accounts::{Populated, require_recorded, verified_calls};
use super::charges::{charge, charge_each_once, line, require_accepted, run};
use super::chooser::{Chooser, Spread};
use super::random::SEED;
use super::rounds::Rounds;
use super::table::{Row, Table};
use super::turns::order;
use super::{Arguments, Failure, format, interrupt};

/// Accounts in both stores.
const ACCOUNTS: usize = 10_000;
/// Charges per commit while the older store is charged.
const AGEING_BATCH: usize = 8_192;

/// A store, and what its charges go to.
struct Aged {
    populated: Populated,
    store: SqliteStore,
    keys: Vec<KeyHash>,
    chooser: Chooser,
    recorded: usize,
}

/// Measures both stores in turns, and writes the table.
pub(super) async fn write(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Failure> {
    let before = arguments.charged.get();
    let accounts = if arguments.quick { ACCOUNTS / 100 } else { ACCOUNTS };
    let mut stores = [Aged::make(arguments, accounts, 0).await?, Aged::make(arguments, accounts, before).await?];
    let mut rates: Vec<[Vec<f64>; 2]> = arguments.batches.iter().map(|_| Default::default()).collect();
    for round in 0..arguments.rounds.get() {
        eprintln!("aged: round {}", round + 1);
        for (batch, rates) in arguments.batches.iter().zip(&mut rates) {
            for which in order(round, stores.len()) {
                interrupt::check()?;
                let Aged { store, keys, chooser, recorded, .. } = &mut stores[which];
                let found = run(store, keys, chooser, batch.get(), arguments.time).await?;
                *recorded += found.charges;
                rates[which].push(found.charges_per_second);
            }
        }
    }
    for aged in stores {
        aged.finish().await?;
    }
    let mut table = Table::default();
    for (batch, [fresh, aged]) in arguments.batches.iter().zip(rates) {
        let ratios = Rounds::new(aged.iter().zip(&fresh).map(|(a, f)| format::ratio(*a, *f)).collect(), |ratio| *ratio);
        let [fresh, aged] = [fresh, aged].map(|rates| Rounds::new(rates, |rate| *rate));
        table.row(
            Row::default()
                .count("Batch", batch.get())
                .rate("Fresh, charges per second", *fresh.median())
                .rate("Aged, charges per second", *aged.median())
                .number("Of fresh", format!("{:.2}", ratios.median()))
                .number("Of all rounds", format!("{:.2}–{:.2}", ratios.slowest(), ratios.fastest())),
        );
    }
    let (accounts, before) = (format::count(accounts), format::count(before));
    let title = format!("Durable charges over {accounts} accounts: a fresh store, and one aged by {before} charges");
    Ok(table.write(&title, out)?)
}

impl Aged {
    /// Makes a store and records `charges` in it. It is closed and opened again, which brings its tables up to date.
    async fn make(arguments: &Arguments, accounts: usize, charges: usize) -> Result<Self, Failure> {
        let populated = Populated::make(&arguments.data_dir, accounts).await?;
        let keys: Vec<KeyHash> = populated.accounts.iter().map(|(_, key)| key.hash()).collect();
        let (store, mut chooser) = (populated.open()?, Chooser::new(Spread::Uniform, accounts, SEED));
        let recorded = charge_each_once(&store, &keys).await? + charges;
        eprintln!("aged: recording {charges} charges");
        let (line, mut left) = (line(), charges);
        while left > 0 {
            interrupt::check()?;
            let batch = left.min(AGEING_BATCH);
            let postings = (0..batch).map(|_| charge(keys[chooser.next()], &line)).collect();
            require_accepted(&store.commit(postings, SystemClock.now()).await?, batch)?;
            left -= batch;
        }
        drop(store);
        Ok(Self { store: populated.open()?, populated, keys, chooser, recorded })
    }

    /// Checks that every charge is on record.
    async fn finish(self) -> Result<(), Failure> {
        drop(self.store);
        require_recorded(verified_calls(&self.populated.open()?).await?, u64::try_from(self.recorded)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[tokio::test]
    async fn each_batch_size_has_a_row_with_a_ratio() {
        let arguments = "bench --quick --time 5ms --rounds 2 --batches 1,7 --charged 100";
        let arguments = Arguments::try_parse_from(arguments.split(' ')).unwrap();
        let mut out = Vec::new();
        write(&arguments, &mut out).await.unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("aged by 100 charges"), "{text}");
        let rows: Vec<_> = text.lines().filter(|line| line.starts_with('|')).skip(2).collect();
        assert_eq!(rows.len(), 2, "{text}");
        for row in rows {
            let ratio: f64 = row.split('|').nth(4).unwrap().trim().parse().unwrap();
            assert!(ratio > 0.0, "{row}");
        }
    }
}
