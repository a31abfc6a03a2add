//! Commits a batch of charges, refunds and holds: core decides, with what is in the tables.

use std::collections::HashMap;
use std::slice::from_ref;

use metering_core::access::KeyNumber;
use metering_core::charging::{
    Changes, CountedRoute, Facts, Hold, HoldChange, HoldId, KeyState, MeterState, Outcome, Posting, Remembered,
    StoredHold, TokenScope, Volume, Window, decide,
};
use metering_core::{Account, AccountId, Charge, RequestId, StoreError, Timestamp, UsageLine};
use metering_sql::transfer::{IdempotencyRecord, VolumeRecord};
use metering_sql::{Executor, accounts, find, holds, keys, log, now, outbox, put, usage_lines, values};

use crate::history;
use crate::statements::Statements;

type Result<T> = std::result::Result<T, StoreError>;

/// Decides and records a batch.
pub(crate) fn commit(db: &mut Statements<'_>, postings: Vec<Posting>, at: Timestamp) -> Result<Vec<Outcome>> {
    let mut stored = Stored { db, now: at, ids: HashMap::new() };
    let (outcomes, changes) = decide(&mut stored, postings, at)?;
    let Stored { db, ids, .. } = stored;
    now(write(db, &changes, &ids, at))?;
    Ok(outcomes)
}

/// The data for deciding a batch.
struct Stored<'a, 'c> {
    db: &'a mut Statements<'c>,
    now: Timestamp,
    /// The ids of the accounts of the batch, by row number.
    ids: HashMap<i64, AccountId>,
}

impl Facts for Stored<'_, '_> {
    type Account = i64;
    type Line = i64;
    type Error = StoreError;

    fn charged(&mut self, charge: &Charge) -> Result<Option<(i64, KeyNumber)>> {
        let found = now(keys::working_secret(self.db, &charge.key, self.now))?;
        Ok(found.map(|(account, key, _)| (account, key)))
    }

    fn account(&mut self, id: &AccountId) -> Result<Option<i64>> {
        let Some((row, _)) = now(accounts::by_id(self.db, id))? else { return Ok(None) };
        self.ids.insert(row, id.clone());
        Ok(Some(row))
    }

    fn meter(&mut self, account: i64) -> Result<Option<(AccountId, MeterState)>> {
        let Account { id, limits, totals, alert, .. } = now(accounts::by_row(self.db, account))?;
        let (minute, day) = now(windows(self.db, account))?;
        self.ids.insert(account, id.clone());
        Ok(Some((id, MeterState { limits, totals, alert, minute, day })))
    }

    fn key(&mut self, account: i64, key: KeyNumber) -> Result<Option<KeyState>> {
        let found = now(keys::numbered(self.db, account, key))?;
        Ok(found.map(|(key, meter)| KeyState::of(&key, meter.unwrap_or_default())))
    }

    fn line(&mut self, line: &UsageLine) -> Result<i64> {
        now(usage_lines::number_of(self.db, line)).map(|(number, _)| number)
    }

    fn remembered(&mut self, account: i64, request: &RequestId) -> Result<Option<Remembered>> {
        let rest = "WHERE account = ?1 AND request_id = ?2 AND expires_at > ?3";
        let found: Option<IdempotencyRecord> = now(find(self.db, rest, &values![account, request, self.now]))?;
        Ok(found.map(|IdempotencyRecord { result, expires_at, .. }| Remembered { result, expires_at }))
    }

    fn hold(&mut self, id: &HoldId) -> Result<Option<StoredHold<i64, i64>>> {
        let Some(hold) = now(holds::by_id(self.db, id))? else { return Ok(None) };
        let (Some(account), line) = (self.account(&hold.account)?, self.line(&hold.line)?) else { return Ok(None) };
        Ok(Some(StoredHold { account, line, hold }))
    }

    fn volume(&mut self, account: i64, route: &CountedRoute) -> Result<Volume> {
        let rest = "WHERE account = ?1 AND route_template = ?2 AND http_method = ?3";
        let values = values![account, &*route.route_template, &*route.http_method];
        let found: Option<VolumeRecord> = now(find(self.db, rest, &values))?;
        Ok(found.map(|record| record.volume).unwrap_or_default())
    }

    fn token_limit(&mut self, account: i64) -> Result<u32> {
        Ok(now(accounts::by_row(self.db, account))?.tokens_per_minute)
    }

    fn token_window(&mut self, account: i64, scope: TokenScope) -> Result<Window> {
        now(token_window(self.db, account, scope))
    }
}

/// The usage that counts towards the rate limits of an account.
async fn windows(db: &mut Statements<'_>, account: i64) -> metering_sql::Result<(Window, Window)> {
    let sql = "SELECT minute, minute_count, day, day_count FROM meter WHERE account = ?1";
    let rows = db.query(sql, &values![account]).await?;
    let Some(row) = rows.first() else { return Err(StoreError::Corrupt("an account has no meter".to_owned()).into()) };
    let window = |first| Ok::<_, metering_sql::Fault>(Window { index: row.get(first)?, count: row.get(first + 1)? });
    Ok((window(0)?, window(2)?))
}

/// The usage that counts towards the limit on tokens of an account or a key.
async fn token_window(db: &mut Statements<'_>, account: i64, scope: TokenScope) -> metering_sql::Result<Window> {
    let sql = "SELECT minute, tokens FROM token_window WHERE account = ?1 AND key = ?2";
    let rows = db.query(sql, &values![account, scope.number()]).await?;
    match rows.first() {
        Some(row) => Ok(Window { index: row.get(0)?, count: row.get(1)? }),
        None => Ok(Window::default()),
    }
}

async fn write(
    db: &mut Statements<'_>,
    changes: &Changes<i64, i64>,
    ids: &HashMap<i64, AccountId>,
    at: Timestamp,
) -> metering_sql::Result<()> {
    let sql = "UPDATE meter SET balance = ?2, used = ?3, minute = ?4, minute_count = ?5, day = ?6, day_count = ?7 \
               WHERE account = ?1";
    let meter = |(account, MeterState { totals, minute, day, .. }): &(i64, MeterState)| {
        let mut values = values![account, totals.balance, totals.used, minute.index, minute.count];
        values.extend(values![day.index, day.count]);
        values
    };
    db.execute(sql, &changes.accounts.iter().map(meter).collect::<Vec<_>>()).await?;
    for (account, raised) in &changes.alerts {
        accounts::change_alert_level(db, *account, *raised).await?;
    }
    let meters: Vec<_> = changes.keys.iter().map(|(row, key, meter)| (ids[row].clone(), *key, *meter)).collect();
    put(db, &meters).await?;
    let result = |(row, request, remembered): &(i64, RequestId, Remembered)| {
        let Remembered { result, expires_at } = *remembered;
        IdempotencyRecord { account: ids[row].clone(), request: request.clone(), result, expires_at }
    };
    put(db, &changes.results.iter().map(result).collect::<Vec<_>>()).await?;
    let volume = |(row, route, volume): &(i64, CountedRoute, Volume)| VolumeRecord {
        account: ids[row].clone(),
        route: route.clone(),
        volume: volume.clone(),
    };
    put(db, &changes.volumes.iter().map(volume).collect::<Vec<_>>()).await?;
    let tokens =
        |(row, scope, window): &(i64, TokenScope, Window)| values![row, scope.number(), window.index, window.count];
    let sql = "INSERT INTO token_window (account, key, minute, tokens) VALUES (?1, ?2, ?3, ?4) \
               ON CONFLICT (account, key) DO UPDATE SET minute = excluded.minute, tokens = excluded.tokens";
    db.execute(sql, &changes.tokens.iter().map(tokens).collect::<Vec<_>>()).await?;
    write_holds(db, &changes.holds).await?;
    history::write(db, &changes.usage, at).await?;
    log::note_commit(db, &changes.usage, at).await?;
    for (account, event) in &changes.events {
        outbox::write(db, Some(*account), from_ref(event)).await?;
    }
    Ok(())
}

async fn write_holds(db: &mut Statements<'_>, changes: &[HoldChange<i64, i64>]) -> metering_sql::Result<()> {
    let sql = "INSERT INTO hold (id, account, key, amount, fallback, line, request_path, created_at, expires_at, \
                 captured, reason, settled_at, tokens, upstream) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14) \
               ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at, captured = excluded.captured, \
                 reason = excluded.reason, settled_at = excluded.settled_at, upstream = excluded.upstream";
    let row = |HoldChange { account, line, hold, .. }: &HoldChange<i64, i64>| {
        let Hold { id, key, amount, fallback, request_path, created_at, expires_at, settled, tokens, upstream, .. } =
            hold;
        let mut values = values![id, account, key, amount, fallback, line, &**request_path, created_at, expires_at];
        values.extend(values![settled.map(|settled| settled.captured), settled.map(|settled| settled.reason)]);
        values.extend(values![settled.map(|settled| settled.at), tokens, upstream.as_deref()]);
        values
    };
    db.execute(sql, &changes.iter().map(row).collect::<Vec<_>>()).await.map(drop)
}
