//! Runs the statements of scripts.

use std::future::ready;
use std::sync::Arc;

use metering_core::access::Totals;
use metering_core::backend::OperationsSums;
use metering_core::backend::decision::EntryChanges;
use metering_core::events::NewEvent;
use metering_core::money::NewLedgerEntry;
use metering_core::usage::DayRange;
use metering_core::{Account, StoreError, Timestamp, UsageLine};
use metering_sql::{BoxFuture, Executor, Result, Row, Value, WriteMode, outbox, usage, usage_lines, values, words};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ToSql, params_from_iter};

/// Ledger entries and recent usage share one sequence, so that both sort into one history.
pub(crate) const NEXT_ID: &str = "(SELECT 1 + max(coalesce((SELECT max(id) FROM ledger), 0), \
     coalesce((SELECT max(id) FROM history), 0)))";

/// The replacements of the words in statements; [`Executor`] lists them. Without exports, some are not needed.
const WORDS: [(&str, &str); 18] = [
    ("{bytes}", ""),
    ("{lock m}", ""),
    ("{lock webhook}", ""),
    ("{key_id}", "public_id"),
    ("{budget}", "budget_limit"),
    ("{join}", "JOIN"),
    ("{is}", "IS"),
    ("{no_account}", "NULL"),
    ("{webhook_account}", "coalesce(webhook.account, 0)"),
    ("{state,}", ""),
    ("{old_secret_until}", "old_secret_until"),
    ("{of_days}", "day BETWEEN ?2 AND ?3"),
    ("{place}", ""),
    ("{entry}", "id"),
    ("{activity}", "history"),
    ("{held}", "CAST(NULL AS BIGINT)"),
    ("{in_bytes ", "IN (SELECT unhex(value) FROM json_each("),
    ("{in ", "IN (SELECT value FROM json_each("),
];

/// The statements of one transaction.
pub(crate) struct Statements<'c>(pub(crate) &'c mut Connection);

impl Statements<'_> {
    fn pass(&self, sql: &str, values: &[Value], mut read: impl FnMut(Row) -> Result<()>) -> Result<()> {
        let mut statement = self.0.prepare_cached(&words::replaced(sql, &WORDS, "))")).map_err(store_error)?;
        let names: Arc<[String]> = statement.column_names().map(str::to_owned).collect();
        let mut rows = statement.query(params_from_iter(values.iter().map(Parameter))).map_err(store_error)?;
        while let Some(row) = rows.next().map_err(store_error)? {
            let columns = (0..names.len()).map(|index| column(row.get_ref(index).map_err(store_error)?));
            read(Row::new(Arc::clone(&names), columns.collect::<Result<_>>()?))?;
        }
        Ok(())
    }

    fn run(&self, sql: &str, rows: &[Vec<Value>]) -> Result<u64> {
        let mut statement = self.0.prepare_cached(&words::replaced(sql, &WORDS, "))")).map_err(store_error)?;
        let mut changed = 0;
        for values in rows {
            let count = statement.execute(params_from_iter(values.iter().map(Parameter))).map_err(store_error)?;
            changed += u64::try_from(count).unwrap_or(u64::MAX);
        }
        Ok(changed)
    }
}

impl Executor for Statements<'_> {
    fn query<'a>(&'a mut self, sql: &'a str, values: &'a [Value]) -> BoxFuture<'a, Result<Vec<Row>>> {
        let mut found = Vec::new();
        let read = self.pass(sql, values, |row| {
            found.push(row);
            Ok(())
        });
        Box::pin(ready(read.map(|()| found)))
    }

    fn each<'a>(
        &'a mut self,
        sql: &'a str,
        values: &'a [Value],
        read: &'a mut (dyn FnMut(&Row) -> Result<()> + Send),
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(ready(self.pass(sql, values, |row| read(&row))))
    }

    fn execute<'a>(&'a mut self, sql: &'a str, rows: &'a [Vec<Value>]) -> BoxFuture<'a, Result<u64>> {
        Box::pin(ready(self.run(sql, rows)))
    }

    fn line_numbers<'a>(&'a mut self, lines: &'a [&'a UsageLine]) -> BoxFuture<'a, Result<Vec<i64>>> {
        Box::pin(usage_lines::numbers_of(self, lines))
    }

    fn append_entries<'a>(
        &'a mut self,
        account: i64,
        entries: &'a [(NewLedgerEntry, Timestamp)],
    ) -> BoxFuture<'a, Result<()>> {
        let sql = format!(
            "INSERT INTO ledger (id, account, kind, amount, description, created_at, tx_chain_id, tx_hash, plan_id) \
             VALUES ({NEXT_ID}, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
        );
        let row = |(NewLedgerEntry { kind, amount, description, payment }, at): &(_, Timestamp)| {
            let (tx, plan) = payment.as_ref().map(|payment| (payment.tx, payment.plan_id.as_deref())).unzip();
            let mut values = values![account, kind, amount, description, at];
            values.extend(values![tx.map(|tx| tx.chain_id), tx.map(|tx| tx.hash), plan.flatten()]);
            values
        };
        Box::pin(ready(self.run(&sql, &entries.iter().map(row).collect::<Vec<_>>()).map(drop)))
    }

    fn post_entries<'a>(&'a mut self, changes: &'a [EntryChanges<i64>]) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let sql =
                "UPDATE meter SET balance = ?2, purchased = ?3, granted = ?4, alert_raised = ?5 WHERE account = ?1";
            for EntryChanges { row, account: Account { totals, alert, .. }, entry, written_at, events } in changes {
                self.append_entries(*row, &[(entry.clone(), *written_at)]).await?;
                let Totals { balance, purchased, granted, .. } = totals;
                self.run(sql, &[values![row, balance, purchased, granted, alert.raised.number()]])?;
                outbox::write(self, Some(*row), events).await?;
            }
            Ok(())
        })
    }

    fn write_events<'a>(&'a mut self, account: Option<i64>, events: &'a [NewEvent]) -> BoxFuture<'a, Result<()>> {
        Box::pin(outbox::write(self, account, events))
    }

    fn erase_paths(&mut self, account: i64, until: Timestamp, mode: WriteMode) -> BoxFuture<'_, Result<u64>> {
        let template = "(SELECT n.route_template FROM usage_line n WHERE n.id = history.line)";
        let old = format!("account = ?1 AND created_at <= ?2 AND request_path <> {template}");
        let values = values![account, until];
        let found = match mode {
            WriteMode::Write => {
                self.run(&format!("UPDATE history SET request_path = {template} WHERE {old}"), &[values])
            }
            WriteMode::DryRun => {
                let mut count = 0;
                let note = |_| {
                    count += 1;
                    Ok(())
                };
                self.pass(&format!("SELECT 1 FROM history WHERE {old}"), &values, note).map(|()| count)
            }
        };
        Box::pin(ready(found))
    }

    fn add_daily_totals<'a>(
        &'a mut self,
        days: DayRange,
        sums: &'a mut OperationsSums<i64, i64>,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(usage::add_rows(self, days, sums))
    }
}

fn column(value: ValueRef<'_>) -> Result<Value> {
    let corrupt = |problem: &str| StoreError::Corrupt(problem.to_owned());
    Ok(match value {
        ValueRef::Null => Value::Integer(None),
        ValueRef::Integer(number) => Value::Integer(Some(number)),
        ValueRef::Text(text) => {
            Value::Text(Some(String::from_utf8(text.to_vec()).map_err(|_| corrupt("a text is not UTF-8"))?))
        }
        ValueRef::Blob(bytes) => Value::Bytes(Some(bytes.to_vec())),
        ValueRef::Real(_) => return Err(corrupt("a column holds a floating-point number").into()),
    })
}

struct Parameter<'v>(&'v Value);

impl ToSql for Parameter<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let list = |items: Vec<String>| ToSqlOutput::from(format!("[{}]", items.join(",")));
        let hex = |bytes: &Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        match self.0 {
            Value::Integer(number) => number.to_sql(),
            Value::Text(text) => text.to_sql(),
            Value::Bytes(bytes) => bytes.to_sql(),
            Value::Boolean(truth) => truth.to_sql(),
            Value::Integers(numbers) => Ok(list(numbers.iter().map(i64::to_string).collect())),
            Value::ManyBytes(many) => Ok(list(many.iter().map(|bytes| format!("\"{}\"", hex(bytes))).collect())),
        }
    }
}

/// Nothing is left of a transaction with an error.
pub(crate) fn store_error(error: rusqlite::Error) -> StoreError {
    StoreError::Unavailable(Box::new(error))
}
