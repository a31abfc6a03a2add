//! The last round trip of a commit: the rows to write, and the transaction's end.

use futures_util::future::{join, join3, join4, join5, try_join_all};
use metering_core::Timestamp;
use metering_core::charging::{Changes, UsageChange};

use super::batch::Lines;
use super::check::Check;
use super::columns::{DAILY, DailyRows, KEY_METERS, KeyMeterRows, METERS, MeterRows, STORED_RESULTS, StoredResultRows};
use super::log_batch::OutcomeWrite;
use super::notices::Notices;
use super::tokens::TokenWrite;
use super::volumes::VolumeWrite;
use crate::charging::entry::{Entry, Path};
use crate::charging::holds::{HOLDS, HoldRows};
use crate::charging::recent_meters::Meters;
use crate::charging::tail::Folds;
use crate::connection::session::{Client, GenericClient};
use crate::error::Result;
use crate::transactions::outcome::TransactionId;
use crate::usage::activity::{self, BlockRows};

/// The last round trip: writes and commits. If nothing is locked yet, it begins the transaction, locks, and checks that
/// the meters equal those that were `seen`. The failure [`is_stale`](super::check::is_stale) if they are not, or if a
/// log is open and this node has not found one so far (`has_log`).
pub(super) async fn write(
    client: &Client,
    (id, has_log): (TransactionId, bool),
    seen: Option<&Meters>,
    meters_after: &Meters,
    changes: &Changes<i64, i64>,
    folds: &Folds,
    now: Timestamp,
) -> Result<()> {
    let check = match seen {
        Some(seen) => Some(Check::prepare(client, seen).await?),
        None => None,
    };
    let prepared = join4(
        client.prepare(DAILY),
        client.prepare(activity::BLOCKS),
        client.prepare(METERS),
        client.prepare(STORED_RESULTS),
    );
    let (daily, blocks, meters, remembered_results) = prepared.await;
    let (daily, blocks, meters, remembered_results) = (daily?, blocks?, meters?, remembered_results?);
    // Most batches change no meter of a key and no hold, and need no statements for that.
    let key_meters = if changes.keys.is_empty() { None } else { Some(client.prepare(KEY_METERS).await?) };
    let holds = if changes.holds.is_empty() { None } else { Some(client.prepare(HOLDS).await?) };
    let (notices, volumes) = (Notices::prepare(client, changes).await?, VolumeWrite::prepare(client, changes).await?);
    let tokens = TokenWrite::prepare(client, changes).await?;
    let outcome = OutcomeWrite::prepare(client, (id, has_log), changes, now).await?;
    let (key_meter_rows, hold_rows) = (KeyMeterRows::new(&changes.keys), HoldRows::new(&changes.holds));
    let daily_rows: Vec<DailyRows> = folds.usage.iter().map(DailyRows::new).collect();
    let (block_rows, meter_rows) = (BlockRows::new(folds), MeterRows::new(meters_after, changes));
    let stored_result_rows = StoredResultRows::new(&changes.results);
    let daily_values: Vec<_> = daily_rows.iter().map(DailyRows::values).collect();
    let (block_values, meter_values) = (block_rows.values(), meter_rows.values());
    let (key_meter_values, stored_result_values) = (key_meter_rows.values(), stored_result_rows.values());
    let hold_values = hold_rows.values();
    // The statements are pipelined. After one fails, all later ones fail too.
    let checked = async { if let Some(check) = &check { check.run(client).await } else { Ok(()) } };
    let writing = join5(
        try_join_all(daily_values.iter().map(|values| client.execute(&daily, values))),
        client.execute_if_any(Some(&blocks).filter(|_| !block_rows.is_empty()), &block_values),
        join(client.execute(&meters, &meter_values), client.execute_if_any(key_meters.as_ref(), &key_meter_values)),
        join4(
            client.execute_if_any(holds.as_ref(), &hold_values),
            volumes.run(client),
            tokens.run(client),
            notices.run(client),
        ),
        join3(
            client.execute_if_any(
                Some(&remembered_results).filter(|_| !stored_result_rows.is_empty()),
                &stored_result_values,
            ),
            outcome.run(client),
            client.batch_execute("COMMIT"),
        ),
    );
    let (
        checked,
        (
            daily,
            blocks,
            (meters, key_meters),
            (holds, volumes, tokens, reported),
            (remembered_results, outcome, committed),
        ),
    ) = join(checked, writing).await;
    checked?;
    // The COMMIT of a failed transaction reports success although it rolls back, so check the other results first.
    daily?;
    blocks?;
    meters?;
    key_meters?;
    holds?;
    volumes?;
    tokens?;
    reported?;
    remembered_results?;
    outcome?;
    Ok(committed?)
}

/// Numbers the usage entries and adds them to the tails of their accounts. Returns what must be folded into other
/// tables.
pub(super) fn fold(
    meters: &mut Meters,
    usage: &[UsageChange<i64, i64>],
    lines: &Lines<'_>,
    now: Timestamp,
) -> Result<Folds> {
    let mut folds = Folds::default();
    // Usage is sorted, so entries of the same daily total are adjacent.
    for same in usage.chunk_by(|a, b| (a.account, a.day, a.line, a.key) == (b.account, b.day, b.line, b.key)) {
        let UsageChange { account, day, line, key, .. } = same[0];
        let Some(meter) = meters.get_mut(&account) else { continue };
        let template = lines.get(&line).map_or("", |line| &line.route_template);
        let entry = |(change, number): (_, i64)| {
            let UsageChange { kind, calls, request_path, .. }: &UsageChange<i64, i64> = change;
            Entry {
                number,
                line,
                amount: -change.added_credits().atoms(),
                kind: *kind,
                calls: i64::try_from(*calls).unwrap_or(i64::MAX),
                created_at: now.unix_millis(),
                path: Path::of(request_path.as_deref(), template),
                key,
            }
        };
        let entries: Vec<Entry<'_>> = same.iter().zip(meter.entries + 1..).map(entry).collect();
        meter.entries = entries.last().map_or(meter.entries, |last| last.number);
        meter.tail.push(account, day.unix_days(), &entries, &mut folds)?;
    }
    Ok(folds)
}
