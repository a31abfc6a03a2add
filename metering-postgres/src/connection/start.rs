//! Checks the database connection when a store is opened, so that a hopeless start fails quickly with a clear error.
//!
//! A running node waits longer, for failovers. At startup, an operator is there to read the error.

use std::time::{Duration, Instant};

use metering_core::StoreError;
use tokio_postgres::{Client, Error, SimpleQueryMessage};

use crate::connection::hosts::{Hosts, Unusable};
use crate::connection::session::Statements;
use crate::error::{Failure, Result, SHARED, is_lasting, reason};
use crate::transactions::retry::{Backoff, RETRY_TIMEOUT};

/// How long to try to reach the database.
const START_TIMEOUT: Duration = Duration::from_millis(2_500);

/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(100);

/// Part of PgBouncer's error for a transaction in its mode `statement`.
const STATEMENT_POOLING: &str = "statement pooling";

const STATEMENT_MODE: &str = "the connection pooler in front of the database is in statement mode, which has no \
     transactions; set pool_mode = transaction in PgBouncer, and add statement_cache=off to the database URL";

/// Connects to the database, and fails if a pooler in front of it would not work.
///
/// # Errors
/// Within three seconds. Names the host and port of each host that was tried.
pub(crate) async fn reach(hosts: &Hosts) -> Result<(), StoreError> {
    let (mut tries, mut until) = (Backoff::for_at_most(RETRY_TIMEOUT), Instant::now() + START_TIMEOUT);
    loop {
        let left = until.saturating_duration_since(Instant::now()).max(PAUSE);
        let unusable = match hosts.find(left).await {
            Ok(client) => match tokio::time::timeout(left, check(hosts, &client)).await {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(failure)) => {
                    // The database can be reached, although this connection failed.
                    tries.again(failure).await?;
                    until = Instant::now() + START_TIMEOUT;
                    continue;
                }
                Err(_) => return Err(Failure::Silent(START_TIMEOUT).into()),
            },
            Err(unusable) => unusable,
        };
        let failure = of_all(unusable);
        if !matches!(failure, Failure::Unreachable(_)) || Instant::now() + PAUSE >= until {
            return Err(failure.into());
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// The error if no host can be used. Permanent errors come first: an unreachable standby must not hide a wrong
/// password.
fn of_all(unusable: Vec<Unusable>) -> Failure {
    let is_lasting = |unusable: &Unusable| unusable.error.as_ref().is_some_and(is_lasting);
    let (lasting, passing): (Vec<_>, Vec<_>) = unusable.into_iter().partition(is_lasting);
    if let Some(error) = lasting.into_iter().find_map(|unusable| unusable.error) {
        return Failure::Database(error);
    }
    let reports = passing.iter().map(|Unusable { name, error, .. }| match error {
        Some(error) => format!("{name}: {}", reason(error)),
        None => format!("{name}: no response"),
    });
    Failure::Unreachable(format!(
        "could not connect to the database at {}; check that PostgreSQL is running there, and the host and port in the \
         database URL",
        reports.collect::<Vec<_>>().join("; ")
    ))
}

/// Detects a pooler in front of the database, and fails if its mode is not supported or not configured. Does not use
/// prepared statements, since a pooler may mix them up.
async fn check(hosts: &Hosts, client: &Client) -> Result<()> {
    if hosts.statements() == Statements::Unnamed {
        return begin(client).await.map(drop);
    }
    let other = hosts.another().await?;
    let own = backend(client, "").await?;
    // While this transaction is open, no other client gets its server connection.
    let others = begin(&other).await?;
    let is_shared = others == own || backend(client, "").await? != own;
    // Engines without processes report 0 or a negative number.
    let is_process = own.parse::<i64>().is_ok_and(|pid| pid > 0);
    if is_shared && is_process {
        return Err(Failure::Store(StoreError::Unavailable(SHARED.into())));
    }
    Ok(())
}

/// Begins a transaction, which ends with the connection, and returns the server process that runs it.
async fn begin(client: &Client) -> Result<String> {
    backend(client, "BEGIN;").await.map_err(|error| {
        let is_statement_mode = error.as_db_error().is_some_and(|error| error.message().contains(STATEMENT_POOLING));
        if is_statement_mode { Failure::Store(StoreError::Unavailable(STATEMENT_MODE.into())) } else { error.into() }
    })
}

/// Runs `first`, and then returns the server process that is currently behind the connection.
async fn backend(client: &Client, first: &str) -> Result<String, Error> {
    let messages = client.simple_query(&format!("{first} SELECT pg_backend_pid()")).await?;
    let pid = messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    });
    Ok(pid.unwrap_or_default())
}
