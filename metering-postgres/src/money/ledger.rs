//! Writes the ledger, and how its entries change an account's totals.

use metering_core::backend::decision::EntryChanges;
use metering_core::money::{NewLedgerEntry, PaymentRef};
use metering_core::{Account, Credits, Timestamp};
use metering_sql::values;

use crate::connection::session::GenericClient;
use crate::error::Result;
use crate::events::outbox::{self, EventRows};
use crate::rows::{execute, one};
use crate::statements::Statements;
use crate::transactions::serialized::next_ids;

/// Writes an entry and the account's new totals. The account was read with its meter locked.
pub(crate) async fn write<C: GenericClient>(client: &C, changes: &EntryChanges<i64>) -> Result<()> {
    let EntryChanges { row, account: Account { totals, alert, .. }, entry, written_at, events } = changes;
    append(client, *row, &[(entry.clone(), *written_at)]).await?;
    let sql = "UPDATE meter SET balance = $2, purchased = $3, granted = $4, alert_raised = $5::BIGINT \
               WHERE account = $1";
    let amounts = [totals.balance, totals.purchased, totals.granted].map(Credits::atoms);
    let raised = i64::from(alert.raised.number());
    execute(client, sql, &[row, &amounts[0], &amounts[1], &amounts[2], &raised]).await?;
    outbox::write(client, *row, events).await
}

/// Like [`write`], for an entry each of several accounts, in a few statements.
pub(crate) async fn write_all<C: GenericClient>(client: &C, changes: &[EntryChanges<i64>]) -> Result<()> {
    if changes.is_empty() {
        return Ok(());
    }
    let column = |of: fn(&EntryChanges<i64>) -> i64| changes.iter().map(of).collect::<Vec<i64>>();
    let rows = column(|changes| changes.row);
    let text = |of: fn(&EntryChanges<i64>) -> &str| changes.iter().map(of).collect::<Vec<&str>>();
    let payment = |changes: &EntryChanges<i64>| changes.entry.payment.clone();
    let payments: Vec<Option<PaymentRef>> = changes.iter().map(payment).collect();
    let payments = || payments.iter().map(Option::as_ref);
    let sql = "UPDATE meter m SET balance = new.balance, purchased = new.purchased, granted = new.granted, \
               entries = m.entries + 1, alert_raised = new.raised \
               FROM unnest($1::BIGINT[], $2::BIGINT[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[]) \
               AS new (account, balance, purchased, granted, raised) WHERE m.account = new.account";
    let totals = [
        column(|changes| changes.account.totals.balance.atoms()),
        column(|changes| changes.account.totals.purchased.atoms()),
        column(|changes| changes.account.totals.granted.atoms()),
    ];
    let raised = column(|changes| changes.account.alert.raised.number().into());
    execute(client, sql, &[&rows, &totals[0], &totals[1], &totals[2], &raised]).await?;
    let sql = "INSERT INTO ledger \
               (id, account, entry, kind, amount, description, created_at, tx_chain_id, tx_hash, plan_id) \
               SELECT new.id, new.account, m.entries, new.kind, new.amount, new.description, new.created_at, \
               new.chain_id, new.hash, new.plan_id \
               FROM unnest($1::BIGINT[], $2::BIGINT[], $3::TEXT[], $4::BIGINT[], $5::TEXT[], $6::BIGINT[], \
               $7::BIGINT[], $8::BYTEA[], $9::TEXT[]) \
               AS new (id, account, kind, amount, description, created_at, chain_id, hash, plan_id) \
               JOIN meter m ON m.account = new.account";
    let values: crate::rows::Values<'_> = &[
        &next_ids(client, changes.len()).await?,
        &rows,
        &text(|changes| changes.entry.kind.as_str()),
        &column(|changes| changes.entry.amount.atoms()),
        &text(|changes| &changes.entry.description),
        &column(|changes| changes.written_at.unix_millis()),
        &payments().map(|payment| Some(payment?.tx.chain_id.cast_signed())).collect::<Vec<_>>(),
        &payments().map(|payment| Some(payment?.tx.hash.as_bytes().as_slice())).collect::<Vec<_>>(),
        &payments().map(|payment| payment?.plan_id.as_deref()).collect::<Vec<_>>(),
    ];
    execute(client, sql, values).await?;
    let events = changes.iter().flat_map(|changes| changes.events.iter().map(|event| (changes.row, event)));
    outbox::write_rows(client, EventRows::new(events)).await
}

/// Writes only the entries, each with its time; the caller updates the totals.
pub(crate) async fn append<C: GenericClient>(
    client: &C,
    account: i64,
    entries: &[(NewLedgerEntry, Timestamp)],
) -> Result<()> {
    if entries.is_empty() {
        return Ok(());
    }
    let ids = next_ids(client, entries.len()).await?;
    let count = i64::try_from(entries.len()).unwrap_or(i64::MAX);
    let sql = "UPDATE meter SET entries = entries + $2 WHERE account = $1 RETURNING entries";
    let last: i64 = one(client, sql, &[&account, &count]).await?.try_get(0)?;
    let sql = "INSERT INTO ledger \
               (id, account, entry, kind, amount, description, created_at, tx_chain_id, tx_hash, plan_id) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
    let row = |((id, number), (entry, at)): ((i64, i64), &(NewLedgerEntry, Timestamp))| {
        let NewLedgerEntry { kind, amount, description, payment } = entry;
        let (tx, plan) = payment.as_ref().map(|payment| (payment.tx, payment.plan_id.as_deref())).unzip();
        let mut values = values![id, account, number, kind, amount, description, at];
        values.extend(values![tx.map(|tx| tx.chain_id), tx.map(|tx| tx.hash), plan.flatten()]);
        values
    };
    let rows: Vec<_> = ids.into_iter().zip(last - count + 1..).zip(entries).map(row).collect();
    Statements(client).run(sql, &rows).await.map(drop)
}
