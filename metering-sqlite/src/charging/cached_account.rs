//! A cached account. There may be hundreds of thousands, so it is small.

use std::sync::LazyLock;

use metering_core::access::Totals;
use metering_core::charging::{MeterState, Window};
use metering_core::money::{AlertLevel, BalanceAlert};
use metering_core::{AccountId, Credits, RateLimits};
use rusqlite::Connection;

use crate::charging::cached_keys::CachedKeys;
use crate::charging::inline_text::InlineText;
use crate::error::{Result, corrupt, store_error};
use crate::rows::{METER_COLUMNS, first, meter_state, parse};

static SELECT: LazyLock<String> = LazyLock::new(|| {
    format!("SELECT a.org_id, {METER_COLUMNS} FROM account a JOIN meter m ON m.account = a.id WHERE a.id = ?1")
});

/// The parts of an account that the charge path needs. Those of its [`MeterState`] are here without padding.
#[derive(Debug, Clone)]
pub(crate) struct CachedAccount {
    /// At most 28 bytes.
    id: InlineText<28>,
    pub(super) keys: CachedKeys,
    totals: Totals,
    limits: RateLimits,
    /// Zero if there is none.
    threshold: Credits,
    has_threshold: bool,
    raised: AlertLevel,
    minute: i64,
    day: i64,
    /// Accepted requests of the minute and of the day.
    counts: [u32; 2],
}

const _: () = assert!(size_of::<CachedAccount>() <= 136, "there may be hundreds of thousands");

impl CachedAccount {
    /// Reads an account from the tables.
    pub(super) fn read(connection: &Connection, row: i64) -> Result<Option<Self>> {
        let mut statement = connection.prepare_cached(&SELECT).map_err(store_error)?;
        first(&mut statement, [row], |row| {
            let (org_id, state): (String, _) = (row.get(0)?, meter_state(row, 1)?);
            let cached = || {
                let id: AccountId = parse(&org_id)?;
                let id = InlineText::of(id.as_str()).ok_or_else(|| corrupt(format_args!("{org_id:?} is too long")))?;
                Ok(Self::of(id, state?))
            };
            Ok(cached())
        })
    }

    fn of(id: InlineText<28>, state: MeterState) -> Self {
        let MeterState { totals, limits, alert: BalanceAlert { threshold, raised }, minute, day } = state;
        Self {
            id,
            keys: CachedKeys::default(),
            totals,
            limits,
            threshold: threshold.unwrap_or(Credits::ZERO),
            has_threshold: threshold.is_some(),
            raised,
            minute: minute.index,
            day: day.index,
            counts: [minute.count, day.count],
        }
    }

    /// The account's state for the charge rule.
    pub(crate) fn state(&self) -> MeterState {
        let [of_minute, of_day] = self.counts;
        MeterState {
            totals: self.totals,
            limits: self.limits,
            alert: BalanceAlert { threshold: self.has_threshold.then_some(self.threshold), raised: self.raised },
            minute: Window { index: self.minute, count: of_minute },
            day: Window { index: self.day, count: of_day },
        }
    }

    /// Changes the account's state for the charge rule.
    pub(crate) fn set_state(&mut self, state: MeterState) {
        *self = Self { keys: std::mem::take(&mut self.keys), ..Self::of(self.id, state) };
    }

    /// Reads all of it, for [`Cache::read_ahead`](crate::charging::cache::Cache::read_ahead).
    pub(super) fn read_ahead(&self) -> u64 {
        let ends =
            [self.minute.unsigned_abs(), self.keys.load.into(), self.counts[0].into(), self.id.is_empty().into()];
        ends.into_iter().fold(0, u64::wrapping_add)
    }

    /// The account's id.
    pub(crate) fn id(&self) -> Result<AccountId> {
        parse(self.id.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meter_round_trips() {
        let amount = |atoms| Credits::from_atoms(atoms);
        let [balance, purchased, granted, used, held] = [1, 2, 3, i64::MIN, i64::MAX].map(amount);
        let window = |index, count| Window { index, count };
        for threshold in [None, Some(amount(0)), Some(amount(-1)), Some(amount(i64::MAX))] {
            let state = MeterState {
                totals: Totals { balance, purchased, granted, used, held },
                limits: RateLimits::per_minute(4).and_per_day(u32::MAX),
                alert: BalanceAlert { threshold, raised: AlertLevel::Short },
                minute: window(i64::MAX, 5),
                day: window(i64::MIN, u32::MAX),
            };
            let mut cached = CachedAccount::of(InlineText::of("org_").unwrap(), state);
            assert_eq!(cached.state(), state);
            cached.keys.load = 7;
            let changed = MeterState { minute: state.day, ..state };
            cached.set_state(changed);
            assert_eq!((cached.state(), cached.keys.load), (changed, 7));
        }
    }
}
