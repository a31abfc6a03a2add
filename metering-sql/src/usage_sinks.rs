//! The daily totals that were sent to the operator's sinks, and those that are staged for them.

use std::collections::HashMap;
use std::time::Duration;

use metering_core::access::{KeyId, KeyNumber};
use metering_core::events::{AttemptOutcome, SentUsage, SinkTurn, StagedTotal, UsageSink, UsageTotal};
use metering_core::store::{Cursor, StagedPage};
use metering_core::usage::DailyTotal;
use metering_core::{AccountId, ClientSource, Day, Timestamp, UsageLine};

use crate::daily_totals::{self, DailyKey};
use crate::executor::Executor;
use crate::fault::{Result, corrupt};
use crate::record::{Record, find, list, put, table};
use crate::row::Reader;
use crate::table::Table;
use crate::value::Value;
use crate::{key_status, progress, values};

/// The key of a total.
type TotalKey = (AccountId, Day, UsageLine, KeyNumber);

impl Record for UsageSink {
    const TABLE: Table = table!("usage_sink" by ["name"] {
        Own(name), Own(state), Own(attempts), Own(since), Own(next_at), Own(last_at), Own(last_status), Own(last_error),
        Own(last_response)
    });

    fn values(&self) -> Result<Vec<Value>> {
        Ok([values![self.name], progress::values(&self.progress)].concat())
    }

    fn read(row: &mut Reader<'_>) -> Result<Self> {
        Ok(Self { name: row.next()?, progress: progress::read(row)? })
    }
}

impl Record for SentUsage {
    const TABLE: Table = table!("usage_sent" by ["sink", "day", "account", "route_template", "http_method", "source", "key"] {
        Own(sink), Account(account), Own(day), Own(route_template), Own(http_method), Own(source), Own(key),
        Own(key_id), Own(sequence), Own(calls), Own(amount), Own(staged_calls), Own(staged_amount), Own(staged_at),
        Own(expires_at)
    });

    fn values(&self) -> Result<Vec<Value>> {
        let UsageLine { route_template, http_method, source } = &self.line;
        let staged = self.staged;
        let (calls, credits) = staged.map(|staged| (staged.total.calls, staged.total.credits)).unzip();
        let mut values = values![self.sink, self.account, self.day, **route_template, **http_method, source.as_str()];
        values.extend(values![self.key, self.key_id, self.sequence, self.sent.calls, self.sent.credits]);
        values.extend(values![calls, credits, staged.map(|staged| staged.at), self.expires_at()]);
        Ok(values)
    }

    fn read(row: &mut Reader<'_>) -> Result<Self> {
        let (sink, account, day) = (row.next()?, row.next()?, row.next()?);
        let (template, method, source): (String, String, String) = (row.next()?, row.next()?, row.next()?);
        let source = ClientSource::from_name(&source);
        let line = UsageLine { route_template: template.into(), http_method: method.into(), source };
        let (key, key_id, sequence) = (row.next()?, row.next()?, row.next()?);
        let sent = UsageTotal { calls: row.next()?, credits: row.next()? };
        let (calls, credits, at): (Option<_>, Option<_>, Option<_>) = (row.next()?, row.next()?, row.next()?);
        // It follows from the day.
        let _: Timestamp = row.next()?;
        let total = calls.zip(credits).map(|(calls, credits)| UsageTotal { calls, credits });
        let staged = total.zip(at).map(|(total, at)| StagedTotal { total, at });
        Ok(Self { sink, account, day, line, key, key_id, sequence, sent, staged })
    }
}

/// All sinks.
pub async fn all(db: &mut dyn Executor) -> Result<Vec<UsageSink>> {
    list(db, "ORDER BY name {bytes}", &[]).await
}

/// A sink.
pub async fn by_name(db: &mut dyn Executor, name: &str) -> Result<Option<UsageSink>> {
    find(db, "WHERE name = ?1", &values![name]).await
}

/// Claims a sink. The condition on the attempts makes one of several callers get it, also where transactions run at the
/// same time.
pub async fn claim(db: &mut dyn Executor, name: &str, now: Timestamp, lease: Duration) -> Result<Option<UsageSink>> {
    let known = by_name(db, name).await?;
    let is_new = known.is_none();
    let before = known.unwrap_or_else(|| UsageSink::new(name.to_owned(), now));
    let attempts = before.progress.attempts;
    let Some(claimed) = before.claimed(now, lease) else { return Ok(None) };
    if is_new {
        let sql = format!("{} ON CONFLICT (name) DO NOTHING", UsageSink::TABLE.insert());
        return Ok((db.execute(&sql, &[claimed.values()?]).await? > 0).then_some(claimed));
    }
    Ok(replace(db, attempts, &claimed).await?.then_some(claimed))
}

/// Writes a sink unless another turn has begun. Whether it did.
async fn replace(db: &mut dyn Executor, attempts: u32, sink: &UsageSink) -> Result<bool> {
    let sql = "UPDATE usage_sink SET state = ?2, attempts = ?3, since = ?4, next_at = ?5, last_at = ?6, last_status = ?7, \
               last_error = ?8, last_response = ?9 WHERE name = ?1 AND attempts = ?10";
    let row = [sink.values()?, values![attempts]].concat();
    Ok(db.execute(sql, &[row]).await? > 0)
}

/// Totals after a position that a sink was not sent yet.
#[derive(Debug)]
pub struct Changes {
    rows: Vec<SentUsage>,
    next: Option<Cursor>,
}

impl Changes {
    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Their page.
    #[must_use]
    pub fn page(&self) -> StagedPage {
        StagedPage { items: self.rows.len(), next: self.next.clone() }
    }
}

/// Compares the totals from a day on, after a cursor, with what a sink was sent.
pub async fn changes(
    db: &mut dyn Executor,
    sink: &str,
    from: Day,
    after: Option<&Cursor>,
    limit: u32,
    now: Timestamp,
) -> Result<Changes> {
    let after = after.map(daily_totals::position_of).transpose()?.unwrap_or_else(|| daily_totals::before(from));
    let (totals, next) = whole_groups(db, after, limit).await?;
    let mut sent = sent_of(db, sink, &totals).await?;
    let mut rows = Vec::new();
    let mut labels: HashMap<AccountId, HashMap<KeyNumber, KeyId>> = HashMap::new();
    for (_, DailyTotal { account, day, line, key, calls, credits_used }) in totals {
        let total = UsageTotal { calls, credits: credits_used };
        let known = sent.remove(&(account.clone(), day, line.clone(), key));
        if known.as_ref().map_or(UsageTotal::ZERO, |known| known.sent) == total {
            continue;
        }
        let row = match known {
            Some(known) => known,
            None => {
                let key_id = key_id(db, &mut labels, &account, key).await?;
                let (sink, sent) = (sink.to_owned(), UsageTotal::ZERO);
                SentUsage { sink, account, day, line, key, key_id, sequence: 0, sent, staged: None }
            }
        };
        stage_if_free(&mut rows, row, total, now);
    }
    // The usage of a deleted key is another key's now.
    for (_, row) in sent {
        if row.sent != UsageTotal::ZERO {
            stage_if_free(&mut rows, row, UsageTotal::ZERO, now);
        }
    }
    Ok(Changes { rows, next: next.as_ref().map(daily_totals::cursor_of) })
}

fn stage_if_free(rows: &mut Vec<SentUsage>, row: SentUsage, total: UsageTotal, at: Timestamp) {
    if row.staged.is_none() {
        rows.push(SentUsage { staged: Some(StagedTotal { total, at }), ..row });
    }
}

/// Totals after a position, with all that an account has on a day, and where the next ones begin.
async fn whole_groups(
    db: &mut dyn Executor,
    after: DailyKey,
    mut limit: u32,
) -> Result<(Vec<(DailyKey, DailyTotal)>, Option<DailyKey>)> {
    loop {
        let mut found = daily_totals::first(db, Some(&after), limit).await?;
        let is_more = found.len() as u64 > u64::from(limit);
        let last = found.last().filter(|_| is_more).map(|((day, account, ..), _)| (*day, *account));
        let Some((day, account)) = last else { return Ok((found, None)) };
        let whole = found.partition_point(|((of, by, ..), _)| (*of, *by) < (day, account));
        found.truncate(whole);
        if let Some((last, _)) = found.last() {
            let last = last.clone();
            return Ok((found, Some(last)));
        }
        limit = limit.saturating_mul(2);
    }
}

/// The totals of these days and accounts that a sink was sent.
async fn sent_of(
    db: &mut dyn Executor,
    sink: &str,
    totals: &[(DailyKey, DailyTotal)],
) -> Result<HashMap<TotalKey, SentUsage>> {
    let mut sent = HashMap::new();
    for of_day in totals.chunk_by(|(one, _), (other, _)| one.0 == other.0) {
        let Some(((day, ..), _)) = of_day.first() else { continue };
        let mut accounts: Vec<i64> = of_day.iter().map(|((_, account, ..), _)| *account).collect();
        accounts.dedup();
        let rest = "WHERE sink = ?1 AND day = ?2 AND account {in ?3}";
        let found: Vec<SentUsage> = list(db, rest, &values![sink, day, accounts]).await?;
        sent.extend(found.into_iter().map(|row| ((row.account.clone(), row.day, row.line.clone(), row.key), row)));
    }
    Ok(sent)
}

async fn key_id(
    db: &mut dyn Executor,
    labels: &mut HashMap<AccountId, HashMap<KeyNumber, KeyId>>,
    account: &AccountId,
    key: KeyNumber,
) -> Result<KeyId> {
    if !labels.contains_key(account) {
        let of_account = key_status::labels(db, account).await?;
        labels.insert(account.clone(), of_account.into_iter().map(|label| (label.number, label.id)).collect());
    }
    let found = labels.get(account).and_then(|keys| keys.get(&key));
    found.cloned().ok_or_else(|| corrupt(format_args!("no key {} of {account}", key.get())))
}

/// Stages changes, except for totals that another process has staged since.
pub async fn stage(db: &mut dyn Executor, changes: &Changes) -> Result<StagedPage> {
    let sql = format!(
        "{} ON CONFLICT (sink, day, account, route_template, http_method, source, key) DO UPDATE \
         SET staged_calls = excluded.staged_calls, staged_amount = excluded.staged_amount, staged_at = excluded.staged_at \
         WHERE usage_sent.staged_at IS NULL AND usage_sent.sequence = excluded.sequence",
        SentUsage::TABLE.insert()
    );
    let rows = changes.rows.iter().map(Record::values).collect::<Result<Vec<_>>>()?;
    db.execute(&sql, &rows).await?;
    Ok(changes.page())
}

/// The changes that are staged for a sink.
pub async fn staged(db: &mut dyn Executor, sink: &str, limit: u32) -> Result<Vec<SentUsage>> {
    let rest = "WHERE sink = ?1 AND staged_at IS NOT NULL ORDER BY day LIMIT ?2";
    list(db, rest, &values![sink, i64::from(limit)]).await
}

/// Records how a turn ended.
pub async fn finish(
    db: &mut dyn Executor,
    name: &str,
    attempt: u32,
    batch: &[SentUsage],
    turn: &SinkTurn,
    now: Timestamp,
) -> Result<Option<UsageSink>> {
    let before = by_name(db, name).await?;
    let Some(sink) = before.and_then(|sink| sink.finished(attempt, turn, now)) else { return Ok(None) };
    if !replace(db, attempt, &sink).await? {
        return Ok(None);
    }
    if let SinkTurn::Sent(AttemptOutcome::Delivered { .. }) = turn {
        let delivered = |row: &SentUsage| {
            let StagedTotal { total, .. } = row.staged?;
            Some(SentUsage { sequence: row.sequence.saturating_add(1), sent: total, staged: None, ..row.clone() })
        };
        put(db, &batch.iter().filter_map(delivered).collect::<Vec<_>>()).await?;
    }
    Ok(Some(sink))
}
