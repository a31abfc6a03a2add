//! The packed contents of `log_batch`, where commits wait until they are in the log.

use metering_core::access::KeyNumber;
use metering_core::charging::{UsageChange, UsageKind};
use metering_core::{Credits, Day, Timestamp};
use serde::{Deserialize, Serialize};

use crate::fault::{Result, corrupt};

/// The content of a row. A new format needs a new schema version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Batch {
    /// The usage of one commit.
    Commit(Vec<Usage>),
    /// An account's usage from before it was imported.
    Import { account: i64, atoms: i64 },
}

/// Requests of one account, line, day, key and kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Usage {
    account: i64,
    /// On PostgreSQL, line numbers are random.
    #[serde(with = "postcard::fixint::le")]
    line: i64,
    /// How many days before the commit the requests are booked.
    days_before: i64,
    key: u32,
    kind: u8,
    calls: u64,
    atoms: i64,
}

impl Batch {
    /// The usage of a commit.
    pub(super) fn of(changes: &[UsageChange<i64, i64>], at: Timestamp) -> Result<Self> {
        let today = at.day().unix_days();
        let usage = |change: &UsageChange<i64, i64>| {
            let UsageChange { account, day, line, key, kind, calls, amount, request_path: _ } = change;
            let place = UsageKind::ALL.iter().position(|known| known == kind);
            let kind = place.and_then(|place| u8::try_from(place).ok());
            Ok(Usage {
                account: *account,
                line: *line,
                days_before: today.saturating_sub(day.unix_days()),
                key: key.get(),
                kind: kind.ok_or_else(|| corrupt("a kind of usage has no number"))?,
                calls: *calls,
                atoms: amount.atoms(),
            })
        };
        changes.iter().map(usage).collect::<Result<_>>().map(Self::Commit)
    }

    pub(super) fn pack(&self) -> Result<Vec<u8>> {
        postcard::to_allocvec(self).map_err(|error| corrupt(format_args!("cannot pack a commit: {error}")))
    }

    pub(super) fn unpack(packed: &[u8]) -> Result<Self> {
        let broken = |problem: &dyn std::fmt::Display| {
            corrupt(format_args!("log_batch.changes: cannot read {} bytes: {problem}", packed.len()))
        };
        match postcard::take_from_bytes(packed) {
            Ok((batch, [])) => Ok(batch),
            Ok((_, rest)) => Err(broken(&format_args!("{} bytes too many", rest.len()))),
            Err(error) => Err(broken(&error)),
        }
    }
}

impl Usage {
    /// The change, if it was committed at `at`.
    pub(super) fn change(&self, at: Timestamp) -> Result<UsageChange<i64, i64>> {
        let Self { account, line, days_before, key, kind, calls, atoms } = *self;
        let unknown = || corrupt(format_args!("log_batch.changes: {kind} is not a kind of usage"));
        Ok(UsageChange {
            account,
            day: Day::from_unix_days(at.day().unix_days().saturating_sub(days_before)),
            line,
            key: KeyNumber::new(key),
            kind: UsageKind::ALL.get(usize::from(kind)).copied().ok_or_else(unknown)?,
            calls,
            amount: Credits::from_atoms(atoms),
            request_path: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Timestamp = Timestamp::from_unix_millis(1_795_262_400_000);

    fn change(kind: UsageKind) -> UsageChange<i64, i64> {
        UsageChange {
            account: 100_000,
            day: AT.day(),
            line: i64::MIN,
            key: KeyNumber::new(1),
            kind,
            calls: 2,
            amount: Credits::from_atoms(1_000_000),
            request_path: None,
        }
    }

    #[test]
    fn commits_come_back_as_they_were_and_damage_is_an_error() {
        let changes = UsageKind::ALL.map(|kind| UsageChange { day: AT.day().minus_days(3), ..change(kind) });
        let packed = Batch::of(&changes, AT).unwrap().pack().unwrap();
        let Batch::Commit(usage) = Batch::unpack(&packed).unwrap() else { panic!("it is a commit") };
        assert_eq!(usage.iter().map(|usage| usage.change(AT).unwrap()).collect::<Vec<_>>(), changes);
        let import = Batch::Import { account: 7, atoms: -1 };
        assert_eq!(Batch::unpack(&import.pack().unwrap()).unwrap(), import);
        for length in 0..packed.len() {
            assert!(Batch::unpack(&packed[..length]).is_err(), "{length} bytes");
        }
        assert!(Batch::unpack(&[&packed[..], &[0]].concat()).is_err());
    }

    #[test]
    fn a_charge_takes_few_bytes() {
        let packed = Batch::of(&[change(UsageKind::Charged)], AT).unwrap().pack().unwrap();
        assert!(packed.len() <= 22, "{} bytes", packed.len());
    }
}
