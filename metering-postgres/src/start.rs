//! The first contact with the database, before anything else: a start that cannot succeed fails soon and says why.
//!
//! A running node waits longer, for failovers; whoever starts one is there to read an error.

use std::time::{Duration, Instant};

use metering_core::StoreError;
use tokio_postgres::{Client, Error, SimpleQueryMessage};

use crate::error::{Failure, Result, is_lasting, reason};
use crate::hosts::{Hosts, Unusable};
use crate::retry::Tries;
use crate::session::Statements;
use crate::turn::TRIED_FOR;

/// How long the database may take to be reached.
const START_WAIT: Duration = Duration::from_millis(2_500);

/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(100);

/// What PgBouncer says when a transaction begins in its mode `statement`.
const STATEMENT_POOLING: &str = "statement pooling";

const STATEMENT_MODE: &str = "the connection pooler in front of the database is in statement mode, which has no \
     transactions; set pool_mode = transaction in PgBouncer, and add statement_cache=off to the database URL";

/// What to do about a pooler whose transactions are spread over connections.
pub(crate) const SHARED: &str = "a connection pooler in transaction mode, such as PgBouncer, is in front of the \
     database; add statement_cache=off to the options of the database URL \
     (postgres://USER@HOST/DATABASE?statement_cache=off), or set pool_mode = session";

/// Reaches the database, and refuses a way to it that would not work.
///
/// # Errors
/// Within three seconds, with the host and port of each host that was tried.
pub(crate) async fn reach(hosts: &Hosts) -> Result<(), StoreError> {
    let (mut tries, mut until) = (Tries::for_at_most(TRIED_FOR), Instant::now() + START_WAIT);
    loop {
        let left = until.saturating_duration_since(Instant::now()).max(PAUSE);
        let unusable = match hosts.find(left).await {
            Ok(client) => match tokio::time::timeout(left, check(hosts, &client)).await {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(failure)) => {
                    // It is there, whatever happened to this connection.
                    tries.again(failure).await?;
                    until = Instant::now() + START_WAIT;
                    continue;
                }
                Err(_) => return Err(Failure::Silent(START_WAIT).into()),
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

/// What to say of hosts none of which can be used. What does not pass by itself comes first: that a standby cannot be
/// reached says nothing of a wrong password.
fn of_all(unusable: Vec<Unusable>) -> Failure {
    let is_lasting = |unusable: &Unusable| unusable.error.as_ref().is_some_and(is_lasting);
    let (lasting, passing): (Vec<_>, Vec<_>) = unusable.into_iter().partition(is_lasting);
    if let Some(error) = lasting.into_iter().find_map(|unusable| unusable.error) {
        return Failure::Database(error);
    }
    let told = passing.iter().map(|Unusable { name, error, .. }| match error {
        Some(error) => format!("{name}: {}", reason(error)),
        None => format!("{name}: no response"),
    });
    Failure::Unreachable(format!(
        "could not connect to the database at {}; check that PostgreSQL is running there, and the host and port in the \
         database URL",
        told.collect::<Vec<_>>().join("; ")
    ))
}

/// Finds out whether a pooler is in between, and whether it is in a mode that is supported and configured. Without
/// prepared statements, which a pooler may confuse.
async fn check(hosts: &Hosts, client: &Client) -> Result<()> {
    if hosts.statements() == Statements::Unnamed {
        return begin(client).await.map(drop);
    }
    let other = hosts.another().await?;
    let own = backend(client, "").await?;
    // As long as this transaction is open, nobody else gets its connection to the server.
    let others = begin(&other).await?;
    let is_shared = others == own || backend(client, "").await? != own;
    // Engines that have no processes number them 0 or below.
    let is_process = own.parse::<i64>().is_ok_and(|pid| pid > 0);
    if is_shared && is_process {
        return Err(Failure::Store(StoreError::Unavailable(SHARED.into())));
    }
    Ok(())
}

/// Begins a transaction, which ends with the connection, and says by which process.
async fn begin(client: &Client) -> Result<String> {
    backend(client, "BEGIN;").await.map_err(|error| {
        let is_statement_mode = error.as_db_error().is_some_and(|error| error.message().contains(STATEMENT_POOLING));
        if is_statement_mode { Failure::Store(StoreError::Unavailable(STATEMENT_MODE.into())) } else { error.into() }
    })
}

/// The server's process behind a connection at this moment, after another statement.
async fn backend(client: &Client, first: &str) -> Result<String, Error> {
    let messages = client.simple_query(&format!("{first} SELECT pg_backend_pid()")).await?;
    let pid = messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    });
    Ok(pid.unwrap_or_default())
}
