//! A cached account. There may be hundreds of thousands, so it is small.

use metering_core::AccountId;
use metering_core::charging::MeterState;
use rusqlite::Connection;

use crate::charging::cached_keys::CachedKeys;
use crate::charging::inline_text::InlineText;
use crate::error::{Result, corrupt, store_error};
use crate::rows::{METER_COLUMNS, first, meter_state, parse};

/// The parts of an account that the charge path needs.
#[derive(Debug, Clone)]
pub(crate) struct CachedAccount {
    /// At most 28 bytes.
    id: InlineText<28>,
    /// Which load of an account it is from: secrets that were read for an earlier one do not count any more.
    pub(super) load: u32,
    pub(crate) state: MeterState,
    pub(super) keys: CachedKeys,
}

const _: () = assert!(size_of::<CachedAccount>() <= 176, "there may be hundreds of thousands");

impl CachedAccount {
    /// Reads what the tables have of an account.
    pub(super) fn read(connection: &Connection, row: i64) -> Result<Option<Self>> {
        let sql =
            format!("SELECT a.org_id, {METER_COLUMNS} FROM account a JOIN meter m ON m.account = a.id WHERE a.id = ?1");
        let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
        first(&mut statement, [row], |row| {
            let (org_id, state): (String, _) = (row.get(0)?, meter_state(row, 1)?);
            let cached = || {
                let id: AccountId = parse(&org_id)?;
                let id = InlineText::of(id.as_str()).ok_or_else(|| corrupt(format_args!("{org_id:?} is too long")))?;
                Ok(Self { id, load: 0, state: state?, keys: CachedKeys::default() })
            };
            Ok(cached())
        })
    }

    /// The account's id.
    pub(crate) fn id(&self) -> Result<AccountId> {
        parse(self.id.as_str())
    }

    /// The account's id as text, and its keys.
    pub(super) fn keys_of(&mut self) -> (&str, &mut CachedKeys) {
        (self.id.as_str(), &mut self.keys)
    }
}
