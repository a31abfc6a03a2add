//! How soon a store with many accounts charges after it was opened, and how much memory accounts take.
//!
//! The store is opened as a killed process leaves it, with a long journal, and after it was closed cleanly. Memory is
//! measured when the server's journal is folded, so that it is the cache's: once with fewer charged accounts than the
//! cache can hold, and once with more.

use std::io::Write;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use metering_core::access::KeyHash;
use metering_core::{Clock, Store, SystemClock};
use metering_sqlite::SqliteStore;
use rusqlite::{Connection, OpenFlags};

use super::accounts::{Populated, require_recorded, verified_calls};
use super::charges::{charge, line, require_accepted};
use super::deduct::requests;
use super::generator::Target;
use super::rounds::Rounds;
use super::serving::{BILLING_SECRET, BILLING_SECRET_SETTING, end, server, start};
use super::table::{Row, Table};
use super::{Arguments, Failure, format, interrupt};
use crate::process::memory;
use crate::server::Server;

/// So many that a server remembers all of them: fewer than a generation of its cache.
const CACHED: usize = 200_000;
/// So many that it can no longer remember all.
const OTHERS: usize = 300_000;
/// Changes in the journal of the killed process: about as many as begin a round of folding.
const CHANGES: usize = 2_359_296;
/// Charges per commit while the journal grows.
const BATCH: usize = 8_192;
/// A quick run has this much fewer changes.
const QUICK: usize = 5_000;
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

/// Measures, and writes the table.
pub(super) async fn write(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Failure> {
    let changes = if arguments.quick { CHANGES / QUICK } else { CHANGES };
    let accounts = arguments.stored.get();
    eprintln!("startup: creating {accounts} accounts");
    let populated = Populated::make(&arguments.data_dir, accounts).await?;
    let used = memory_used(arguments, &populated)?;

    let keys: Vec<KeyHash> = populated.accounts.iter().map(|(_, key)| key.hash()).collect();
    eprintln!("startup: recording {changes} charges");
    let store = populated.open()?;
    charge_all(&store, &keys, changes).await?;
    let mut recorded = used.responses + u64::try_from(changes)?;
    // The state that a kill between two commits would leave.
    let as_left = populated.duplicate(&arguments.data_dir)?;
    // Folds the journal.
    drop(store);
    let (mut after_kill, mut after_close) = (Vec::new(), Vec::new());
    for round in 1..=arguments.rounds.get() {
        interrupt::check()?;
        eprintln!("startup: round {round}");
        let killed = as_left.duplicate(&arguments.data_dir)?;
        let (store, took) = first_charge(&killed, keys[0]).await?;
        after_kill.push(took);
        if round == 1 {
            require_recorded(verified_calls(&store).await?, recorded + 1)?;
        }
        // Without its files, a store folds nothing when it is closed, which would take long.
        drop(killed);
        drop(store);
        after_close.push(first_charge(&populated, keys[0]).await?.1);
    }
    recorded += u64::try_from(after_close.len())?;
    require_recorded(verified_calls(&populated.open()?).await?, recorded)?;

    let mut table = Table::default();
    let median = |times| *Rounds::new(times, |took: &Duration| format::per_second(1, *took)).median();
    table.row(
        Row::default()
            .count("Accounts", accounts)
            .latency("First charge after a clean close", Some(median(after_close)))
            .latency("First charge after a kill", Some(median(after_kill)))
            .size("Memory at the first charge", Some(used.at_first))
            .number("Memory per cached account", format!("{} B", format::with_separators(used.per_cached)))
            .size("Memory after more were charged", Some(used.at_last)),
    );
    let (cached, charged) = (format::count(used.cached), format::count(used.charged));
    let title = format!(
        "Opening a store with many accounts: {} changes in the journal after the kill; memory with {cached} charged \
         accounts, and with {charged}",
        format::count(changes)
    );
    Ok(table.write(&title, out)?)
}

/// The memory of a server.
struct Used {
    /// How many accounts were charged in all, and how many of them are cached for `per_cached`.
    charged: usize,
    cached: usize,
    at_first: u64,
    per_cached: u64,
    at_last: u64,
    /// How many charges this took.
    responses: u64,
}

/// Charges accounts once, some before the others.
fn memory_used(arguments: &Arguments, populated: &Populated) -> Result<Used, Failure> {
    let (program, requests) = (arguments.servers()?.swap_remove(0), requests(populated));
    let server = start(server(&program, populated.folder()).set(BILLING_SECRET_SETTING, BILLING_SECRET))?;
    let mut responses = 0;
    let mut charge = |requests: &[Vec<u8>]| -> Result<u64, Failure> {
        responses += Target::new(server.address(), Arc::from(requests)).warm_up()?.responses;
        if !arguments.quick {
            wait_until_folded(populated)?;
        }
        resident(&server)
    };
    let cached = CACHED.min(requests.len().div_ceil(2));
    eprintln!("startup: charging {cached} accounts once");
    let (first, others) = requests.split_at(cached);
    let others = &others[..OTHERS.min(others.len())];
    let (at_first, at_cached) = (charge(&first[..1])?, charge(&first[1..])?);
    eprintln!("startup: charging {} others once", others.len());
    let at_last = charge(others)?;
    end(server)?;
    let per_cached = at_cached.saturating_sub(at_first) / u64::try_from(cached)?;
    Ok(Used { charged: cached + others.len(), cached, at_first, per_cached, at_last, responses })
}

/// Commits this many charges, spread evenly.
async fn charge_all(store: &dyn Store, keys: &[KeyHash], count: usize) -> Result<(), Failure> {
    let (line, mut keys, mut left) = (line(), keys.iter().cycle(), count);
    while left > 0 {
        interrupt::check()?;
        let batch = left.min(BATCH);
        let postings = keys.by_ref().take(batch).map(|key| charge(*key, &line)).collect();
        require_accepted(&store.commit(postings, SystemClock.now()).await?, batch)?;
        left -= batch;
    }
    Ok(())
}

/// How long it takes to open the store and to charge once. Also returns the store.
async fn first_charge(populated: &Populated, key: KeyHash) -> Result<(SqliteStore, Duration), Failure> {
    let started = Instant::now();
    let store = populated.open()?;
    let outcomes = store.commit(vec![charge(key, &line())], SystemClock.now()).await?;
    let took = started.elapsed();
    require_accepted(&outcomes, 1)?;
    Ok((store, took))
}

fn resident(server: &Server) -> Result<u64, Failure> {
    memory(&[server.id()]).ok_or_else(|| "a server has ended".into())
}

/// A server that has not charged for ten seconds folds its journal, and deletes what is folded.
fn wait_until_folded(populated: &Populated) -> Result<(), Failure> {
    let database = Connection::open_with_flags(populated.path(), OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    while database.query_row("SELECT EXISTS (SELECT 1 FROM charge_journal)", [], |row| row.get(0))? {
        interrupt::check()?;
        sleep(BETWEEN_LOOKS);
    }
    // The allocator returns what it has freed a little later.
    sleep(BETWEEN_LOOKS);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_store_charges_after_it_was_opened_again() {
        let populated = Populated::make(&std::env::temp_dir(), 2).await.unwrap();
        let key = populated.accounts[1].1.hash();
        for _ in 0..2 {
            let _ = first_charge(&populated, key).await.unwrap();
        }
        assert_eq!(verified_calls(&populated.open().unwrap()).await.unwrap(), 2);
    }
}
