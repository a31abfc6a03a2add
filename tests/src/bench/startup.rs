//! How soon a store with many accounts charges after it was opened, and how much memory accounts take once they are idle.
//!
//! The store is opened after a server on it was killed, and again after that was closed in order. Memory is that of a
//! server: its growth from the first charge to when every account was charged once and the journal is folded.

use std::io::Write;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use metering_core::access::KeyHash;
use metering_core::{Clock, Store, SystemClock};

use super::accounts::{Populated, verified_calls};
use super::charges::{charge, line, require_accepted};
use super::deduct::requests;
use super::generator::{Target, require_success};
use super::rounds::Rounds;
use super::serving::{BILLING_SECRET, BILLING_SECRET_SETTING, end, server, start};
use super::table::{Column, Table};
use super::{Arguments, Failure, format, interrupt};
use crate::load::{LoadPlan, Stop, run};
use crate::process::memory;
use crate::server::Server;

/// Accounts in the store.
const ACCOUNTS: usize = 1_000_000;
/// Connections that charge before the server is killed.
const CONNECTIONS: usize = 64;
/// A store that has not charged for ten seconds folds its journal. Once memory has not fallen for so long, that is done.
const SETTLED: Duration = Duration::from_secs(15);
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

/// Measures, and writes the table.
pub(super) async fn write(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Failure> {
    let accounts = if arguments.quick { ACCOUNTS / 5_000 } else { ACCOUNTS };
    eprintln!("startup: creating {accounts} accounts");
    let program = arguments.servers()?.swap_remove(0);
    let populated = Populated::make(&arguments.data_dir, accounts).await?;
    let (key, requests) = (populated.accounts[0].1.hash(), requests(&populated));
    let serve = || start(server(&program, populated.folder()).set(BILLING_SECRET_SETTING, BILLING_SECRET));

    eprintln!("startup: charging each account once");
    let server = serve()?;
    Target::new(server.address(), Arc::from(&requests[..1])).warm_up()?;
    let at_first = resident(&server)?;
    let mut responses = 1 + Target::new(server.address(), Arc::clone(&requests)).warm_up()?.responses;
    let growth = settled(&server, arguments.quick)?.saturating_sub(at_first);
    end(server)?;

    let (mut after_kill, mut after_close) = (Vec::new(), Vec::new());
    for round in 1..=arguments.rounds.get() {
        eprintln!("startup: round {round}");
        let server = serve()?;
        let stop = Stop::After(arguments.time);
        let load = run(LoadPlan::new(server.address(), CONNECTIONS, stop, Arc::clone(&requests)));
        responses += require_success(load)?.responses();
        server.kill();
        for times in [&mut after_kill, &mut after_close] {
            interrupt::check()?;
            times.push(first_charge(&populated, key).await?);
            responses += 1;
        }
    }
    // A killed server may have charged for requests without a response.
    let recorded = verified_calls(&populated.open()?).await?;
    if recorded < responses {
        return Err(format!("{responses} requests were accepted, but only {recorded} are on record").into());
    }

    let mut table = Table::new([
        Column::Number("Accounts"),
        Column::Number("First charge after a clean close"),
        Column::Number("First charge after a kill"),
        Column::Number("Memory at the first charge"),
        Column::Number("Memory per idle account"),
    ]);
    let median = |times| *Rounds::new(times, |took: &Duration| format::per_second(1, *took)).median();
    table.row([
        format::count(accounts),
        format::latency(Some(median(after_close))),
        format::latency(Some(median(after_kill))),
        format::size(at_first),
        format!("{} B", format::with_separators(growth / u64::try_from(accounts)?)),
    ]);
    Ok(table.write("Opening a store with many accounts", out)?)
}

/// How long it takes to open the store and to charge once. Closes it again.
async fn first_charge(populated: &Populated, key: KeyHash) -> Result<Duration, Failure> {
    let started = Instant::now();
    let store = populated.open()?;
    let outcomes = store.commit(vec![charge(key, &line())], SystemClock.now()).await?;
    let took = started.elapsed();
    require_accepted(&outcomes, 1)?;
    Ok(took)
}

fn resident(server: &Server) -> Result<u64, Failure> {
    memory(&[server.id()]).ok_or_else(|| "a server has ended".into())
}

/// The memory of an idle server, once it falls no more.
fn settled(server: &Server, quick: bool) -> Result<u64, Failure> {
    let (mut least, mut since) = (resident(server)?, Instant::now());
    while !quick && since.elapsed() < SETTLED {
        interrupt::check()?;
        sleep(BETWEEN_LOOKS);
        let found = resident(server)?;
        if found < least {
            (least, since) = (found, Instant::now());
        }
    }
    Ok(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_store_charges_after_it_was_opened_again() {
        let populated = Populated::make(&std::env::temp_dir(), 2).await.unwrap();
        let key = populated.accounts[1].1.hash();
        for _ in 0..2 {
            assert!(first_charge(&populated, key).await.unwrap() > Duration::ZERO);
        }
        assert_eq!(verified_calls(&populated.open().unwrap()).await.unwrap(), 2);
    }
}
