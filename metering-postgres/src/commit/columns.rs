//! What a batch writes, as arrays: one statement per table, whatever its size.

use metering_core::{Answer, Changes, Credits, RequestId, Timestamp};
use tokio_postgres::types::ToSql;

use super::Read;
use crate::tail::DailySums;

pub(super) const DAILY: &str = "INSERT INTO usage_daily AS total (account, day, line, calls, amount) \
     SELECT * FROM unnest($1::BIGINT[], $2::BIGINT[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[]) \
     ON CONFLICT (account, day, line) \
     DO UPDATE SET calls = total.calls + excluded.calls, amount = total.amount + excluded.amount";

#[derive(Default)]
pub(super) struct DailyRows {
    accounts: Vec<i64>,
    days: Vec<i64>,
    lines: Vec<i64>,
    calls: Vec<i64>,
    amounts: Vec<i64>,
}

/// What a statement over arrays is given.
pub(super) type ArrayValues<'v, const N: usize> = [&'v (dyn ToSql + Sync); N];

impl DailyRows {
    pub(super) fn new(sums: &DailySums) -> Self {
        let mut rows = Self::default();
        for ((day, account, line), (calls, amount)) in sums {
            rows.accounts.push(*account);
            rows.days.push(*day);
            rows.lines.push(*line);
            rows.calls.push(*calls);
            rows.amounts.push(*amount);
        }
        rows
    }

    pub(super) fn values(&self) -> ArrayValues<'_, 5> {
        [&self.accounts, &self.days, &self.lines, &self.calls, &self.amounts]
    }
}

pub(super) const METERS: &str = "UPDATE meter SET balance = new.balance, used = new.used, minute = new.minute, \
     minute_count = new.minute_count, day = new.day, day_count = new.day_count, entries = new.entries, \
     tail_day = new.tail_day, tail = new.tail \
     FROM unnest($1::BIGINT[], $2::BIGINT[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[], $6::BIGINT[], $7::BIGINT[], \
     $8::BIGINT[], $9::BIGINT[], $10::BYTEA[]) \
     AS new (account, balance, used, minute, minute_count, day, day_count, entries, tail_day, tail) \
     WHERE meter.account = new.account";

#[derive(Default)]
pub(super) struct MeterRows<'r> {
    numbers: [Vec<i64>; 8],
    tail_days: Vec<Option<i64>>,
    tails: Vec<&'r [u8]>,
}

impl<'r> MeterRows<'r> {
    pub(super) fn new(read: &'r Read, changes: &Changes<i64, i64>) -> Self {
        let mut rows = Self::default();
        for (account, state) in &changes.accounts {
            let Some(locked) = read.accounts.get(account) else { continue };
            let values = [
                *account,
                state.totals.balance.atoms(),
                state.totals.used.atoms(),
                state.minute.index,
                i64::from(state.minute.count),
                state.day.index,
                i64::from(state.day.count),
                locked.entries,
            ];
            for (column, value) in rows.numbers.iter_mut().zip(values) {
                column.push(value);
            }
            rows.tail_days.push(locked.tail.day);
            rows.tails.push(&locked.tail.packed);
        }
        rows
    }

    pub(super) fn values(&self) -> ArrayValues<'_, 10> {
        let [account, balance, used, minute, minute_count, day, day_count, entries] = &self.numbers;
        [account, balance, used, minute, minute_count, day, day_count, entries, &self.tail_days, &self.tails]
    }
}

pub(super) const ANSWERS: &str = "INSERT INTO request_id (account, request_id, charged, balance, expires_at) \
     SELECT account, request_id, charged, balance, $5 FROM unnest($1::BIGINT[], $2::TEXT[], $3::BIGINT[], \
     $4::BIGINT[]) AS new (account, request_id, charged, balance) \
     ON CONFLICT (account, request_id) DO UPDATE \
     SET charged = excluded.charged, balance = excluded.balance, expires_at = excluded.expires_at";

pub(super) struct AnswerRows<'a> {
    accounts: Vec<i64>,
    requests: Vec<&'a str>,
    charged: Vec<i64>,
    balances: Vec<i64>,
    expires_at: i64,
}

impl<'a> AnswerRows<'a> {
    pub(super) fn new(answers: &'a [(i64, RequestId, Answer)], now: Timestamp) -> Self {
        let atoms = |amount: Credits| amount.atoms();
        Self {
            accounts: answers.iter().map(|(account, ..)| *account).collect(),
            requests: answers.iter().map(|(_, request, _)| request.as_str()).collect(),
            charged: answers.iter().map(|(.., answer)| atoms(answer.charged)).collect(),
            balances: answers.iter().map(|(.., answer)| atoms(answer.balance)).collect(),
            expires_at: now.saturating_add(RequestId::REMEMBERED).unix_millis(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.accounts.is_empty()
    }

    pub(super) fn values(&self) -> ArrayValues<'_, 5> {
        [&self.accounts, &self.requests, &self.charged, &self.balances, &self.expires_at]
    }
}
