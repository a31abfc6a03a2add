//! The check that meters are as this node left them, under their locks.

use futures_util::future::join;
use metering_core::Credits;
use tokio_postgres::error::SqlState;

use crate::charging::recent_meters::Meters;
use crate::connection::session::{Client, GenericClient, Prepared};
use crate::connection::value::Value;
use crate::error::{Failure, Result};

/// Locks the meters in account order, like every other writer. If any column has changed since this node wrote it, the
/// statement fails with a division by zero. It compares columns and not a version, because a failover that loses commits
/// could give out the same version again.
const CHECK: &str = "SELECT 1 / (count(*) = cardinality($1::BIGINT[]))::INT FROM \
     (SELECT * FROM meter m WHERE m.account = ANY($1) ORDER BY m.account FOR UPDATE) m \
     JOIN unnest($1::BIGINT[], $2::BIGINT[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[], $6::BIGINT[], $7::BIGINT[], \
     $8::BIGINT[], $9::BIGINT[], $10::BIGINT[], $11::BIGINT[], $12::BIGINT[], $13::BYTEA[], $14::BIGINT[], $15::BYTEA[], \
     $16::BIGINT[], $17::BIGINT[]) \
     AS seen (account, requests_per_minute, requests_per_day, balance, purchased, granted, used, minute, minute_count, \
     day, day_count, entries, access, tail_day, tail, alert_below, alert_raised) \
     ON m.account = seen.account AND m.requests_per_minute = seen.requests_per_minute \
     AND m.requests_per_day = seen.requests_per_day AND m.balance = seen.balance AND m.purchased = seen.purchased \
     AND m.granted = seen.granted AND m.used = seen.used AND m.minute = seen.minute \
     AND m.minute_count = seen.minute_count AND m.day = seen.day AND m.day_count = seen.day_count \
     AND m.entries = seen.entries AND m.access = seen.access \
     AND m.tail_day IS NOT DISTINCT FROM seen.tail_day AND m.tail = seen.tail \
     AND m.alert_below IS NOT DISTINCT FROM seen.alert_below AND m.alert_raised = seen.alert_raised";

/// The columns of the meters, as arrays.
pub(super) struct Check<'s> {
    statement: Prepared<'s>,
    begin: String,
    numbers: [Vec<i64>; 12],
    versions: Vec<&'s [u8]>,
    tail_days: Vec<Option<i64>>,
    tails: Vec<&'s [u8]>,
    thresholds: Vec<Option<i64>>,
    raised: Vec<i64>,
}

impl<'s> Check<'s> {
    /// Prepares the statement, so that running it can be pipelined with what follows.
    pub(super) async fn prepare(client: &'s Client, seen: &'s Meters) -> Result<Self> {
        let statement = client.prepare(CHECK).await?;
        let (versions, tail_days, tails) = (Vec::new(), Vec::new(), Vec::new());
        let (begin, numbers, thresholds, raised) = (client.begin(), Default::default(), Vec::new(), Vec::new());
        let mut check = Self { statement, begin, numbers, versions, tail_days, tails, thresholds, raised };
        for (account, meter) in seen {
            let (limits, totals) = (&meter.state.limits, &meter.state.totals);
            let values = [
                *account,
                i64::from(limits.requests_per_minute),
                i64::from(limits.requests_per_day),
                totals.balance.atoms(),
                totals.purchased.atoms(),
                totals.granted.atoms(),
                totals.used.atoms(),
                meter.state.minute.index,
                i64::from(meter.state.minute.count),
                meter.state.day.index,
                i64::from(meter.state.day.count),
                meter.entries,
            ];
            for (column, value) in check.numbers.iter_mut().zip(values) {
                column.push(value);
            }
            check.versions.push(&meter.access);
            check.tail_days.push(meter.tail.day);
            check.tails.push(&meter.tail.packed);
            check.thresholds.push(meter.state.alert.threshold.map(Credits::atoms));
            check.raised.push(meter.state.alert.raised.number().into());
        }
        Ok(check)
    }

    /// Begins the transaction, locks and checks.
    ///
    /// # Errors
    /// An error that [`is_stale`] when a meter has changed. The transaction then does nothing, also in statements that
    /// are on their way already.
    pub(super) async fn run(&self, client: &Client) -> Result<()> {
        let [a, b, c, d, e, f, g, h, i, j, k, l] = &self.numbers;
        let (versions, alerts): ([&dyn Value; 3], [&dyn Value; 2]) =
            ([&self.versions, &self.tail_days, &self.tails], [&self.thresholds, &self.raised]);
        let ([m, n, o], [p, q]) = (versions, alerts);
        let values: [&dyn Value; 17] = [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q];
        let (began, checked) = join(client.batch_execute(&self.begin), client.query(&self.statement, &values)).await;
        began?;
        checked?;
        Ok(())
    }
}

/// Whether a failure is that of the check, or of the one in `log_batch`: this node's cache is out of date.
pub(super) fn is_stale(failure: &Failure) -> bool {
    matches!(failure, Failure::Database(error) if error.code() == Some(&SqlState::DIVISION_BY_ZERO))
}
