//! The rows that a batch writes, as arrays: one statement per table for a batch of any size.

use metering_core::RequestId;
use metering_core::access::KeyNumber;
use metering_core::charging::{Changes, KeyMeter, Remembered, StoredResult};

use crate::charging::recent_meters::{Meter, Meters};
use crate::charging::tail::DailySums;
use crate::connection::value::Value;
use crate::rows::key_meter_columns;

pub(super) const DAILY: &str = "INSERT INTO usage_daily AS total (account, day, line, key, calls, amount) \
     SELECT * FROM unnest($1::BIGINT[], $2::BIGINT[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[], $6::BIGINT[]) \
     ON CONFLICT (account, day, line, key) \
     DO UPDATE SET calls = total.calls + excluded.calls, amount = total.amount + excluded.amount";

#[derive(Default)]
pub(super) struct DailyRows {
    accounts: Vec<i64>,
    days: Vec<i64>,
    lines: Vec<i64>,
    keys: Vec<i64>,
    calls: Vec<i64>,
    amounts: Vec<i64>,
}

/// The parameters of a statement over arrays.
pub(super) type ArrayValues<'v, const N: usize> = [&'v dyn Value; N];

impl DailyRows {
    pub(super) fn new(sums: &DailySums) -> Self {
        let mut rows = Self::default();
        for ((day, account, line, key), (calls, amount)) in sums {
            rows.accounts.push(*account);
            rows.days.push(*day);
            rows.lines.push(*line);
            rows.keys.push(key.get().into());
            rows.calls.push(*calls);
            rows.amounts.push(*amount);
        }
        rows
    }

    pub(super) fn values(&self) -> ArrayValues<'_, 6> {
        [&self.accounts, &self.days, &self.lines, &self.keys, &self.calls, &self.amounts]
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
    pub(super) fn new(meters: &'r Meters, changes: &Changes<i64, i64>) -> Self {
        let mut rows = Self::default();
        for account in changes.accounts.iter().map(|(account, _)| account) {
            let Some(Meter { state, entries, tail, .. }) = meters.get(account) else { continue };
            let values = [
                *account,
                state.totals.balance.atoms(),
                state.totals.used.atoms(),
                state.minute.index,
                i64::from(state.minute.count),
                state.day.index,
                i64::from(state.day.count),
                *entries,
            ];
            for (column, value) in rows.numbers.iter_mut().zip(values) {
                column.push(value);
            }
            rows.tail_days.push(tail.day);
            rows.tails.push(&tail.packed);
        }
        rows
    }

    pub(super) fn values(&self) -> ArrayValues<'_, 10> {
        let [account, balance, used, minute, minute_count, day, day_count, entries] = &self.numbers;
        [account, balance, used, minute, minute_count, day, day_count, entries, &self.tail_days, &self.tails]
    }
}

pub(super) const KEY_METERS: &str = "INSERT INTO key_meter \
     (account, key, spent_since, spent, minute, minute_count, day, day_count, raised) \
     SELECT * FROM unnest($1::BIGINT[], $2::BIGINT[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[], $6::BIGINT[], \
     $7::BIGINT[], $8::BIGINT[], $9::BIGINT[]) \
     ON CONFLICT (account, key) DO UPDATE SET spent_since = excluded.spent_since, spent = excluded.spent, \
     minute = excluded.minute, minute_count = excluded.minute_count, day = excluded.day, \
     day_count = excluded.day_count, raised = excluded.raised";

pub(super) struct KeyMeterRows {
    numbers: [Vec<i64>; 9],
}

impl KeyMeterRows {
    pub(super) fn new(meters: &[(i64, KeyNumber, KeyMeter)]) -> Self {
        let mut numbers: [Vec<i64>; 9] = Default::default();
        for (account, key, meter) in meters {
            let values = key_meter_columns(meter);
            for (column, value) in numbers.iter_mut().zip([*account, key.get().into()].into_iter().chain(values)) {
                column.push(value);
            }
        }
        Self { numbers }
    }

    pub(super) fn values(&self) -> ArrayValues<'_, 9> {
        self.numbers.each_ref().map(|column| column as &dyn Value)
    }
}

pub(super) const STORED_RESULTS: &str = "INSERT INTO request_id \
     (account, request_id, charged, balance, expires_at, fingerprint, tries, open_until, hold) \
     SELECT * FROM unnest($1::BIGINT[], $2::TEXT[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[], $6::BYTEA[], \
     $7::BIGINT[], $8::BIGINT[], $9::BYTEA[]) \
     ON CONFLICT (account, request_id) DO UPDATE \
     SET charged = excluded.charged, balance = excluded.balance, expires_at = excluded.expires_at, \
     fingerprint = excluded.fingerprint, tries = excluded.tries, open_until = excluded.open_until, \
     hold = excluded.hold";

pub(super) struct StoredResultRows<'a> {
    accounts: Vec<i64>,
    requests: Vec<&'a str>,
    charged: Vec<i64>,
    balances: Vec<i64>,
    expire_at: Vec<i64>,
    fingerprints: Vec<Option<&'a [u8]>>,
    tries: Vec<Option<i64>>,
    open_until: Vec<Option<i64>>,
    holds: Vec<Option<&'a [u8]>>,
}

impl<'a> StoredResultRows<'a> {
    pub(super) fn new(results: &'a [(i64, RequestId, Remembered)]) -> Self {
        let deliveries = || results.iter().map(|(.., remembered)| remembered.result.delivery.as_ref());
        Self {
            accounts: results.iter().map(|(account, ..)| *account).collect(),
            requests: results.iter().map(|(_, request, _)| request.as_str()).collect(),
            charged: results.iter().map(|(.., remembered)| remembered.result.charged.atoms()).collect(),
            balances: results.iter().map(|(.., remembered)| remembered.result.balance.atoms()).collect(),
            expire_at: results.iter().map(|(.., remembered)| remembered.expires_at.unix_millis()).collect(),
            fingerprints: deliveries().map(|delivery| Some(delivery?.fingerprint.as_bytes().as_slice())).collect(),
            tries: deliveries().map(|delivery| Some(i64::from(delivery?.tries))).collect(),
            open_until: deliveries().map(|delivery| Some(delivery?.open_until?.unix_millis())).collect(),
            holds: results.iter().map(|(.., remembered)| hold_column(&remembered.result)).collect(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.accounts.is_empty()
    }

    pub(super) fn values(&self) -> ArrayValues<'_, 9> {
        [
            &self.accounts,
            &self.requests,
            &self.charged,
            &self.balances,
            &self.expire_at,
            &self.fingerprints,
            &self.tries,
            &self.open_until,
            &self.holds,
        ]
    }
}

fn hold_column(result: &StoredResult) -> Option<&[u8]> {
    Some(result.hold.as_ref()?.as_bytes())
}
