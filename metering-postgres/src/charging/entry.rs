//! Packed usage entries, as stored in the tail of a meter row and in blocks of recent activity.
//!
//! Entries are numbered per account, together with ledger entries. Sixteen consecutive numbers form a block: those with
//! the same quotient when divided by sixteen.

use metering_core::access::KeyNumber;
use metering_core::backend::StoredPath;
use metering_core::charging::UsageKind;
use postcard::take_from_bytes;
use serde::{Deserialize, Serialize};

use crate::error::{Result, corrupt};

/// How many entry numbers a block covers.
pub(crate) const BLOCK: i64 = 16;

/// A usage entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry<'b> {
    /// Number within the account, shared by usage and ledger.
    pub(crate) number: i64,
    #[serde(with = "postcard::fixint::le")]
    pub(crate) line: i64,
    /// The change of the balance, in atoms; positive only for a refund.
    pub(crate) amount: i64,
    #[serde(with = "kind_byte")]
    pub(crate) kind: UsageKind,
    pub(crate) calls: i64,
    /// In milliseconds since the Unix epoch.
    pub(crate) created_at: i64,
    #[serde(borrow)]
    pub(crate) path: Path<'b>,
    /// The key that the requests came with. Not stored for an account's first key.
    #[serde(skip)]
    pub(crate) key: KeyNumber,
}

/// The path of the requests that an entry covers.
pub(crate) type Path<'b> = StoredPath<&'b str>;

/// The stored form of an entry, with a format version. A new format also needs a new schema version, so that an older
/// program refuses the whole database and does not fail on single accounts.
#[derive(Serialize, Deserialize)]
enum Stored<'b> {
    /// Usage of an account's first key. The only form before there were other keys.
    #[serde(borrow)]
    First(Entry<'b>),
    /// Usage of the key with this number.
    OfKey(u32, Entry<'b>),
}

impl Entry<'_> {
    /// How many calls this adds to the day's count.
    pub(crate) const fn added_calls(&self) -> u64 {
        match self.kind {
            UsageKind::Refunded => 0,
            UsageKind::Charged | UsageKind::Expired | UsageKind::Released => self.calls.unsigned_abs(),
        }
    }

    pub(crate) const fn block(&self) -> i64 {
        self.number.div_euclid(BLOCK)
    }

    /// Appends the packed entry to `to`.
    pub(crate) fn pack(self, to: Vec<u8>) -> Result<Vec<u8>> {
        let stored = if self.key.is_first() { Stored::First(self) } else { Stored::OfKey(self.key.get(), self) };
        postcard::to_extend(&stored, to).map_err(|error| corrupt(format_args!("{self:?}: {error}")))
    }
}

/// The byte that encodes a kind. Before there were holds, it said whether the entry is a refund.
mod kind_byte {
    use metering_core::charging::UsageKind;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(kind: &UsageKind, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(match kind {
            UsageKind::Charged => 0,
            UsageKind::Refunded => 1,
            UsageKind::Expired => 2,
            UsageKind::Released => 3,
        })
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<UsageKind, D::Error> {
        match u8::deserialize(deserializer)? {
            0 => Ok(UsageKind::Charged),
            1 => Ok(UsageKind::Refunded),
            2 => Ok(UsageKind::Expired),
            3 => Ok(UsageKind::Released),
            other => Err(D::Error::custom(format_args!("{other} is not a kind of usage"))),
        }
    }
}

/// The entries in these bytes, in order.
pub(crate) fn unpack(packed: &[u8]) -> Result<Vec<Entry<'_>>> {
    let (mut entries, mut rest) = (Vec::new(), packed);
    while !rest.is_empty() {
        let (entry, after) = unpack_first(rest)?;
        entries.push(entry);
        rest = after;
    }
    Ok(entries)
}

/// The first entry in these bytes, and the bytes after it.
pub(crate) fn unpack_first(packed: &[u8]) -> Result<(Entry<'_>, &[u8])> {
    match take_from_bytes(packed) {
        Ok((Stored::First(entry), rest)) => Ok((entry, rest)),
        Ok((Stored::OfKey(key, entry), rest)) => Ok((Entry { key: KeyNumber::new(key), ..entry }, rest)),
        Err(error) => Err(corrupt(format_args!("cannot read {} bytes of packed usage: {error}", packed.len()))),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn entry(number: i64, amount: i64) -> Entry<'static> {
        Entry {
            number,
            line: 0x1234_5678_9abc_def0,
            amount,
            kind: if amount > 0 { UsageKind::Refunded } else { UsageKind::Charged },
            calls: 1,
            created_at: 1_795_262_400_000,
            path: Path::Template,
            key: KeyNumber::FIRST,
        }
    }

    #[test]
    fn entries_come_back_as_they_were() {
        let other = "/mpp/gas/%C3%84".repeat(100);
        for path in [Path::Several, Path::Template, Path::Other(""), Path::Other(&other)] {
            for number in [0, 1, i64::MAX] {
                for extreme in [0, 1, -1, i64::MIN, i64::MAX] {
                    let key = KeyNumber::new(u32::try_from(number.min(extreme).max(0)).unwrap_or(u32::MAX));
                    let entry = Entry { line: extreme, created_at: extreme, path, key, ..entry(number, extreme) };
                    for kind in UsageKind::ALL {
                        let entry = Entry { kind, ..entry };
                        let packed = entry.pack(entry.pack(Vec::new()).unwrap()).unwrap();
                        assert_eq!(unpack(&packed).unwrap(), [entry, entry]);
                    }
                }
            }
        }
        assert_eq!(unpack(&[]).unwrap(), []);
    }

    #[test]
    fn typical_entry_takes_few_bytes() {
        let packed = entry(1_000_000, -1_000_000).pack(Vec::new()).unwrap();
        assert!(packed.len() <= 27, "{} bytes", packed.len());
    }

    /// Entries of versions 3 to 6 are usage of the first key.
    #[test]
    fn entries_of_earlier_versions_are_those_of_the_first_key() {
        let line = [0xf0, 0xde, 0xbc, 0x9a, 0x78, 0x56, 0x34, 0x12];
        let time = [0x80, 0x98, 0xd2, 0xdf, 0xbf, 0x68];
        // Form and number; line; amount, kind and calls; time; path.
        let packed = [&[0, 10], &line[..], &[5, 0, 2], &time, &[1]].concat();
        assert_eq!(unpack(&packed).unwrap(), [entry(5, -3)]);
        assert_eq!(entry(5, -3).pack(Vec::new()).unwrap(), packed);
        let refund = [&packed[..10], &[6, 1], &packed[12..]].concat();
        assert_eq!(unpack(&refund).unwrap(), [entry(5, 3)]);
    }

    #[test]
    fn only_refunds_add_no_calls() {
        let calls = UsageKind::ALL.map(|kind| Entry { kind, calls: 3, ..entry(5, 0) }.added_calls());
        assert_eq!(calls, [3, 0, 3, 3]);
    }

    #[test]
    fn invalid_entry_is_an_error() {
        let packed = entry(5, -3).pack(Vec::new()).unwrap();
        for length in 1..packed.len() {
            assert!(unpack(&packed[..length]).is_err(), "{length} bytes");
        }
        let of_a_later_form = [&[2], &packed[1..]].concat();
        assert!(unpack(&of_a_later_form).is_err());
        let of_another_kind = [&packed[..11], &[4], &packed[12..]].concat();
        assert!(unpack(&of_another_kind).is_err());
        assert!(unpack(&[packed, vec![0xff; 9]].concat()).is_err());
    }
}
