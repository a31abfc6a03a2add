//! Runs the scripts of `metering-sql`.

use std::sync::Arc;

use metering_core::backend::OperationsSums;
use metering_core::backend::decision::EntryChanges;
use metering_core::events::NewEvent;
use metering_core::money::NewLedgerEntry;
use metering_core::usage::DayRange;
use metering_core::{Day, StoreError, Timestamp, UsageLine};
use metering_sql::{Backend, BoxFuture, ChargesStopped, Erased, Executor, Row, Script, UsagePart, Value, WriteMode};

use crate::access::keys::DRAW_ACCESS;
use crate::charging::known;
use crate::connection::session::GenericClient;
use crate::connection::wait::REPORT_TIMEOUT;
use crate::error::Result;
use crate::events::outbox;
use crate::money::ledger;
use crate::operators;
use crate::rows::execute;
use crate::statements::{Statements, fault};
use crate::store::PostgresStore;
use crate::transactions::serialized;
use crate::usage::{activity, tails};

/// Rows per table that one transaction deletes. All other serialized writes wait for it.
pub(crate) const DELETED_AT_ONCE: u64 = 5_000;

impl<C: GenericClient> Executor for Statements<'_, C> {
    fn query<'a>(&'a mut self, sql: &'a str, values: &'a [Value]) -> BoxFuture<'a, metering_sql::Result<Vec<Row>>> {
        Box::pin(async move { self.rows(sql, values).await.map_err(fault) })
    }

    fn each<'a>(
        &'a mut self,
        sql: &'a str,
        values: &'a [Value],
        read: &'a mut (dyn FnMut(&Row) -> metering_sql::Result<()> + Send),
    ) -> BoxFuture<'a, metering_sql::Result<()>> {
        Box::pin(async move { self.pass(sql, values, read).await.map_err(fault) })
    }

    fn execute<'a>(&'a mut self, sql: &'a str, rows: &'a [Vec<Value>]) -> BoxFuture<'a, metering_sql::Result<u64>> {
        Box::pin(async move { self.run(sql, rows).await.map_err(fault) })
    }

    /// Nothing is cached: the transaction may fail.
    fn line_numbers<'a>(&'a mut self, lines: &'a [&'a UsageLine]) -> BoxFuture<'a, metering_sql::Result<Vec<i64>>> {
        Box::pin(async move { known::numbers_of(self.0, lines).await.map_err(fault) })
    }

    fn next_ids(&mut self, count: usize) -> BoxFuture<'_, metering_sql::Result<Vec<Option<i64>>>> {
        Box::pin(async move {
            let ids = serialized::next_ids(self.0, count).await.map_err(fault)?;
            Ok(ids.into_iter().map(Some).collect())
        })
    }

    fn append_entries<'a>(
        &'a mut self,
        account: i64,
        entries: &'a [(NewLedgerEntry, Timestamp)],
    ) -> BoxFuture<'a, metering_sql::Result<()>> {
        Box::pin(async move { ledger::append(self.0, account, entries).await.map_err(fault) })
    }

    fn post_entries<'a>(&'a mut self, changes: &'a [EntryChanges<i64>]) -> BoxFuture<'a, metering_sql::Result<()>> {
        Box::pin(async move { ledger::write(self.0, changes).await.map_err(fault) })
    }

    fn write_events<'a>(
        &'a mut self,
        account: Option<i64>,
        events: &'a [NewEvent],
    ) -> BoxFuture<'a, metering_sql::Result<()>> {
        let account = account.unwrap_or(outbox::NO_ACCOUNT);
        Box::pin(async move { outbox::write(self.0, account, events).await.map_err(fault) })
    }

    fn add_daily_totals<'a>(
        &'a mut self,
        days: DayRange,
        sums: &'a mut OperationsSums<i64, i64>,
    ) -> BoxFuture<'a, metering_sql::Result<()>> {
        Box::pin(operators::add_daily_totals(self, days, sums))
    }

    /// It is in tails.
    fn unfolded_usage(&mut self, account: Option<i64>) -> BoxFuture<'_, metering_sql::Result<Vec<(i64, UsagePart)>>> {
        Box::pin(async move { tails::of(self.0, account).await.map_err(fault) })
    }

    fn first_unfolded_usage(
        &mut self,
        first: (Day, i64),
        last: Day,
        pairs: i64,
    ) -> BoxFuture<'_, metering_sql::Result<Vec<(i64, UsagePart)>>> {
        Box::pin(async move { tails::first(self.0, first, last, pairs).await.map_err(fault) })
    }

    /// Charges lock rows of `meter` first, which waits for this lock. Later reads of the same transaction see what is
    /// committed with it.
    fn stop_charges(&mut self) -> BoxFuture<'_, metering_sql::Result<ChargesStopped>> {
        Box::pin(async move {
            let locked = self.0.batch_execute("LOCK TABLE meter IN EXCLUSIVE MODE").await;
            locked.map(|()| ChargesStopped::default()).map_err(|error| fault(error.into()))
        })
    }

    fn erase_paths(
        &mut self,
        account: i64,
        until: Timestamp,
        mode: WriteMode,
    ) -> BoxFuture<'_, metering_sql::Result<u64>> {
        Box::pin(async move { activity::erase_paths(self.0, account, until, mode).await.map_err(fault) })
    }

    /// Nodes compare `access` with the value in their caches.
    fn settings_changed(&mut self, account: i64) -> BoxFuture<'_, metering_sql::Result<()>> {
        Box::pin(async move { execute(self.0, DRAW_ACCESS, &[&[account].as_slice()]).await.map(drop).map_err(fault) })
    }
}

impl Backend for PostgresStore {
    fn write(&self, script: Script) -> BoxFuture<'_, Result<Erased, StoreError>> {
        Box::pin(async move {
            self.write(|write| {
                let script = Arc::clone(&script);
                Box::pin(async move { Ok(script(&mut Statements(write.client())).await?) })
            })
            .await
        })
    }

    fn delete(&self, script: Script) -> BoxFuture<'_, Result<Erased, StoreError>> {
        Box::pin(async move {
            self.write_within(REPORT_TIMEOUT, |write| {
                let script = Arc::clone(&script);
                Box::pin(async move { Ok(script(&mut Statements(write.client())).await?) })
            })
            .await
        })
    }

    fn deleted_at_once(&self) -> u64 {
        DELETED_AT_ONCE
    }

    fn read(&self, script: Script) -> BoxFuture<'_, Result<Erased, StoreError>> {
        Box::pin(async move {
            self.read(|client| {
                let script = Arc::clone(&script);
                Box::pin(async move { Ok(script(&mut Statements(client)).await?) })
            })
            .await
        })
    }

    fn snapshot(&self, script: Script) -> BoxFuture<'_, Result<Erased, StoreError>> {
        Box::pin(async move {
            self.read_at_once(|client| {
                let script = Arc::clone(&script);
                Box::pin(async move { Ok(script(&mut Statements(client)).await?) })
            })
            .await
        })
    }
}
