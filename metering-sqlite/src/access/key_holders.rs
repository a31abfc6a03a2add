//! Who a secret belongs to: its account and the chain of its keys.

use metering_core::Timestamp;
use metering_core::access::{Key, KeyHash, KeyHolder};
use metering_core::charging::{KeyMeter, MeterState, RateWindows};

use crate::access::accounts;
use crate::access::keys::{self, Secret};
use crate::error::{Result, corrupt, store_error};
use crate::journal::Snapshot;
use crate::rows::{METER_COLUMNS, first, meter_state};

/// Who a secret belongs to.
pub(crate) fn holder(snapshot: &Snapshot<'_>, hash: &KeyHash) -> Result<Option<KeyHolder>> {
    let Some(Secret { account: row, key, expires_at }) = keys::secret(snapshot, hash)? else { return Ok(None) };
    let account = accounts::by_row(snapshot, row)?;
    if account.revoked_at.is_some() {
        return Ok(None);
    }
    let (windows, chain) = (windows(snapshot, row)?, keys::metered_chain(snapshot, row, &account.id, key)?);
    let of_key = |(key, meter): (Key, Option<KeyMeter>)| {
        let KeyMeter { minute, day, .. } = meter.unwrap_or_default();
        (key, RateWindows { minute, day })
    };
    let (chain, key_windows) = chain.into_iter().map(of_key).unzip();
    Ok(Some(KeyHolder { account, chain, secret_expires_at: expires_at, windows, key_windows }))
}

/// What counts against the rate limits of the account with this row number.
fn windows(snapshot: &Snapshot<'_>, row: i64) -> Result<RateWindows> {
    let sql = format!("SELECT {METER_COLUMNS} FROM meter m WHERE m.account = ?1");
    let mut statement = snapshot.prepare_cached(&sql).map_err(store_error)?;
    let stored = first(&mut statement, [row], |row| meter_state(row, 0))?;
    let stored = stored.ok_or_else(|| corrupt(format_args!("account {row} has no meter")))?;
    let MeterState { minute, day, .. } = snapshot.unfolded()?.state(row, stored)?;
    Ok(RateWindows { minute, day })
}

/// Whether each of these secrets works at `now`.
pub(crate) fn are_live(snapshot: &Snapshot<'_>, secrets: &[KeyHash], now: Timestamp) -> Result<Vec<bool>> {
    let is_live = |secret| Ok(holder(snapshot, secret)?.is_some_and(|holder| holder.is_live(now)));
    secrets.iter().map(is_live).collect()
}
