//! The packed rows of the charge journal.

use metering_core::access::{KeyNumber, Totals};
use metering_core::backend::StoredPath;
use metering_core::charging::{UsageChange, UsageKind};
use metering_core::money::NewLedgerEntry;
use metering_core::{Day, Timestamp};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::{Result, corrupt};
use crate::journal::Holds;
use crate::usage::kind;

/// The changes of one commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Row {
    /// The id of the row before it, so that a missing row is noticed.
    pub(crate) after: i64,
    /// The time of the commit, in milliseconds since the Unix epoch.
    pub(crate) at: i64,
    #[serde(serialize_with = "serialize_changes", deserialize_with = "deserialize_changes")]
    pub(crate) changes: Vec<(i64, Change)>,
}

/// A change of one account. [`Packed`] is how it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// Charged or refunded requests, and settled holds.
    Usage(Usage),
    /// Holds that were opened or settled. In a row, this comes before the account's usage.
    Holds(Holds),
    /// A new ledger entry.
    Entry(Added),
    /// The account's keys or rate limits changed. They are in the tables already; other processes must read them again.
    Settings,
}

/// The amounts that a ledger entry adds to its account's totals, in atoms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Added {
    pub(crate) balance: i64,
    pub(crate) purchased: i64,
    pub(crate) granted: i64,
}

/// Requests of one line, day, key and kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Usage {
    line: u32,
    days_before: i32,
    calls: Calls,
    pub(crate) key: KeyNumber,
    /// Negative for refunds. A refund is of at least one atom.
    atoms: i64,
    pub(crate) path: Path,
}

/// How many requests, and their kind in the two lowest bits: a million changes may be in memory.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Calls(u32);

impl Calls {
    const MAX: u32 = u32::MAX >> 2;

    fn new(count: u32, kind: UsageKind) -> Option<Self> {
        (count <= Self::MAX).then(|| Self(count << 2 | u32::from(kind::number(kind))))
    }

    const fn count(self) -> u32 {
        self.0 >> 2
    }

    const fn kind(self) -> UsageKind {
        match self.0 & 3 {
            0 => UsageKind::Charged,
            1 => UsageKind::Refunded,
            2 => UsageKind::Expired,
            _ => UsageKind::Released,
        }
    }
}

impl std::fmt::Debug for Calls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?}", self.count(), self.kind())
    }
}

/// The path of the requests that an entry covers.
pub(crate) type Path = StoredPath<Box<str>>;

impl Usage {
    /// `template` is that of the change's line.
    pub(crate) fn of(change: &UsageChange<i64, i64>, template: &str, now: Timestamp) -> Result<Self> {
        let days_before = now.day().unix_days().saturating_sub(change.day.unix_days());
        let too_large = |number: &dyn std::fmt::Display| corrupt(format_args!("{number} is too large for the journal"));
        let calls = change.calls.try_into().ok().and_then(|calls| Calls::new(calls, change.kind));
        Ok(Self {
            line: change.line.try_into().map_err(|_| too_large(&change.line))?,
            days_before: days_before.try_into().map_err(|_| too_large(&days_before))?,
            calls: calls.ok_or_else(|| too_large(&change.calls))?,
            key: change.key,
            atoms: change.added_credits().atoms(),
            path: Path::of(change.request_path.as_deref(), template),
        })
    }

    /// The row number of its line.
    pub(crate) fn line(&self) -> i64 {
        self.line.into()
    }

    /// The UTC day that it counts for, if it was committed at `at`.
    pub(crate) fn day(&self, at: Timestamp) -> Day {
        Day::from_unix_days(at.day().unix_days().saturating_sub(self.days_before.into()))
    }

    /// How it came about.
    pub(crate) const fn kind(&self) -> UsageKind {
        self.calls.kind()
    }

    /// How many requests it is about.
    pub(crate) fn calls(&self) -> u64 {
        self.calls.count().into()
    }

    /// Calls to add to the day; refunded calls still count.
    pub(crate) fn added_calls(&self) -> u64 {
        match self.kind() {
            UsageKind::Charged | UsageKind::Expired | UsageKind::Released => self.calls(),
            UsageKind::Refunded => 0,
        }
    }

    /// Atoms to add to the day; negative for refunds.
    pub(crate) const fn added_atoms(&self) -> i64 {
        self.atoms
    }
}

/// Begins a change that repeats an earlier one: the number of [`Packed::Again`].
pub(crate) const AGAIN: u8 = 5;
/// How many earlier changes a change is compared with.
const NEAR: usize = 16;

impl Change {
    /// The amounts that a ledger entry adds to its account's totals.
    pub(crate) fn of_entry(entry: &NewLedgerEntry) -> Self {
        let added = entry.applied_to(Totals::default()).unwrap_or_default();
        Self::Entry(Added {
            balance: added.balance.atoms(),
            purchased: added.purchased.atoms(),
            granted: added.granted.atoms(),
        })
    }

    fn packed(&self) -> Packed<&Path> {
        match self {
            Self::Usage(usage) => {
                let Usage { line, days_before, calls, key, atoms, ref path } = *usage;
                let (kind, calls, amount) = (calls.kind(), calls.count(), atoms.saturating_abs());
                let packed = PackedUsage { line, days_before, kind, calls, amount, path };
                if key.is_first() { Packed::Usage(packed) } else { Packed::KeyUsage(key.get(), packed) }
            }
            Self::Holds(holds) => Packed::Holds(*holds),
            Self::Entry(added) => Packed::Entry(*added),
            Self::Settings => Packed::Settings,
        }
    }

    /// The change after the `earlier` ones of its row.
    fn unpacked<E: serde::de::Error>(packed: Packed<Path>, earlier: &[(i64, Self)]) -> Result<Self, E> {
        let (key, packed) = match packed {
            Packed::Usage(packed) => (KeyNumber::FIRST, packed),
            Packed::KeyUsage(number, packed) => (KeyNumber::new(number), packed),
            Packed::Holds(holds) => return Ok(Self::Holds(holds)),
            Packed::Entry(added) => return Ok(Self::Entry(added)),
            Packed::Settings => return Ok(Self::Settings),
            Packed::Again(back) => {
                let repeated = earlier.iter().rev().nth(back.into()).ok_or_else(|| E::custom("no change to repeat"))?;
                return Ok(repeated.1.clone());
            }
        };
        let PackedUsage { line, days_before, kind, calls, amount, path } = packed;
        let is_refund = kind == UsageKind::Refunded;
        if amount < i64::from(is_refund) {
            return Err(E::custom("an amount is too small"));
        }
        let atoms = if is_refund { -amount } else { amount };
        let calls = Calls::new(calls, kind).ok_or_else(|| E::custom("too many calls"))?;
        Ok(Self::Usage(Usage { line, days_before, calls, key, atoms, path }))
    }
}

/// The stored form of a change. Rows of schema 8 have the first three variants: all of their usage is of first keys,
/// and such usage is still stored like that. Schema 9 has the first four; the last is of schema 23.
#[derive(Serialize, Deserialize)]
enum Packed<P> {
    Usage(PackedUsage<P>),
    Entry(Added),
    Settings,
    /// Usage of another key than the account's first, and the key's number.
    KeyUsage(u32, PackedUsage<P>),
    Holds(Holds),
    /// The same as an earlier change, with so many between them. Most charges of a commit have a few lines and prices.
    Again(u8),
}

/// The stored form of usage, without its key.
#[derive(Serialize, Deserialize)]
struct PackedUsage<P> {
    line: u32,
    /// How many days before the commit the requests were charged: usually none, but a refund may come later.
    days_before: i32,
    #[serde(with = "kind")]
    kind: UsageKind,
    calls: u32,
    /// Their price in atoms, zero or more.
    amount: i64,
    path: P,
}

impl Serialize for Change {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.packed().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Change {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::unpacked(Packed::deserialize(deserializer)?, &[])
    }
}

fn serialize_changes<S: Serializer>(changes: &[(i64, Change)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(changes.iter().enumerate().map(|(place, (account, change))| {
        let earlier = &changes[place.saturating_sub(NEAR)..place];
        let back = earlier.iter().rev().position(|(_, earlier)| earlier == change);
        let again = back.and_then(|back| u8::try_from(back).ok()).map(Packed::Again);
        (account, again.unwrap_or_else(|| change.packed()))
    }))
}

fn deserialize_changes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(i64, Change)>, D::Error> {
    let packed = Vec::<(i64, Packed<Path>)>::deserialize(deserializer)?;
    let mut changes: Vec<(i64, Change)> = Vec::with_capacity(packed.len());
    for (account, packed) in packed {
        let change = Change::unpacked::<D::Error>(packed, &changes)?;
        changes.push((account, change));
    }
    Ok(changes)
}

/// The stored form of a row: a format version, the change, and its CRC-32. A new format also needs a new schema
/// version, so that an older program refuses the whole database.
#[derive(Serialize, Deserialize)]
enum Stored<R> {
    First(R),
}

impl Row {
    pub(crate) fn pack(&self) -> Result<Vec<u8>> {
        let packed = postcard::to_allocvec(&Stored::First(self));
        let mut packed = packed.map_err(|error| corrupt(format_args!("{error}: {self:?}")))?;
        packed.extend(crc32fast::hash(&packed).to_le_bytes());
        Ok(packed)
    }

    pub(crate) fn unpack(packed: &[u8]) -> Result<Self> {
        let broken = |problem: &dyn std::fmt::Display| {
            corrupt(format_args!("cannot read {} bytes of the charge journal: {problem}", packed.len()))
        };
        let Some((packed, sum)) = packed.split_last_chunk() else { return Err(broken(&"too short")) };
        if crc32fast::hash(packed) != u32::from_le_bytes(*sum) {
            return Err(broken(&"their checksum is wrong"));
        }
        match postcard::take_from_bytes(packed) {
            Ok((Stored::First(row), [])) => Ok(row),
            Ok((_, rest)) => Err(broken(&format_args!("{} bytes too many", rest.len()))),
            Err(error) => Err(broken(&error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(path: Path) -> Change {
        Change::Usage(usage_of(KeyNumber::FIRST, path))
    }

    fn usage_of(key: KeyNumber, path: Path) -> Usage {
        Usage { line: 7, days_before: 0, calls: calls(1, UsageKind::Charged), key, atoms: 1_000_000, path }
    }

    fn calls(count: u32, kind: UsageKind) -> Calls {
        Calls::new(count, kind).unwrap()
    }

    fn row(changes: Vec<(i64, Change)>) -> Row {
        Row { after: 1, at: 1_795_262_400_000, changes }
    }

    #[test]
    fn rows_come_back_as_they_were() {
        let changes = [
            usage(Path::Several),
            usage(Path::Template),
            usage(Path::Other("/a/%C3%84".into())),
            Change::Usage(Usage {
                line: u32::MAX,
                days_before: -1,
                calls: calls(Calls::MAX, UsageKind::Refunded),
                key: KeyNumber::new(u32::MAX),
                atoms: -i64::MAX,
                path: Path::Other("".into()),
            }),
            Change::Usage(Usage { calls: calls(2, UsageKind::Expired), ..usage_of(KeyNumber::FIRST, Path::Several) }),
            Change::Usage(Usage {
                calls: calls(3, UsageKind::Released),
                atoms: 0,
                ..usage_of(KeyNumber::FIRST, Path::Several)
            }),
            Change::Holds(Holds { opened: u32::MAX, settled: u32::MAX, atoms: i64::MIN }),
            Change::Usage(usage_of(KeyNumber::new(1), Path::Template)),
            Change::Entry(Added { balance: i64::MIN, purchased: i64::MAX, granted: 0 }),
            Change::Settings,
        ];
        let twice = [changes.clone(), changes.clone()].concat();
        for row in [row((1..).zip(twice).collect()), row((1..).zip(changes).collect())] {
            assert_eq!(Row::unpack(&row.pack().unwrap()).unwrap(), row);
        }
    }

    #[test]
    fn the_first_change_of_a_row_repeats_none() {
        let packed = postcard::to_allocvec(&Packed::<&Path>::Again(0)).unwrap();
        assert_eq!(packed, [AGAIN, 0]);
        assert!(postcard::from_bytes::<Change>(&packed).is_err());
        let changes = vec![(3_i64, Packed::<&Path>::Settings), (3, Packed::Again(1))];
        let mut row = postcard::to_allocvec(&Stored::First((1_i64, 2_i64, changes))).unwrap();
        row.extend(crc32fast::hash(&row).to_le_bytes());
        assert!(Row::unpack(&row).is_err());
    }

    /// Two charges and a refund that a program of schema 8 wrote, without the checksum.
    #[test]
    fn a_row_of_schema_8_is_read_and_would_be_written_again() {
        let written = "00 02 8098d2dfbf68 03 02 00 01 00 00 02 8092f401 01 02 00 01 00 01 01 80897a 02 03 2f793f 04 02";
        let written: String = written.split(' ').collect();
        let mut bytes: Vec<u8> = (0..written.len())
            .step_by(2)
            .map(|place| u8::from_str_radix(&written[place..place + 2], 16).unwrap())
            .collect();
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        let first = |calls, atoms, path| {
            Change::Usage(Usage { line: 1, days_before: 0, calls, key: KeyNumber::FIRST, atoms, path })
        };
        let changes = [
            (1, first(calls(2, UsageKind::Charged), 2_000_000, Path::Template)),
            (1, first(calls(1, UsageKind::Refunded), -1_000_000, Path::Other("/y?".into()))),
            (2, Change::Settings),
        ];
        let expected = row(changes.into());
        assert_eq!(Row::unpack(&bytes).unwrap(), expected);
        assert_eq!(expected.pack().unwrap(), bytes);
    }

    #[test]
    fn a_typical_charge_takes_few_bytes() {
        let of_key = |key| {
            let usage = Change::Usage(usage_of(KeyNumber::new(key), Path::Template));
            let charges = (100_000..100_064).map(|account| (account, usage.clone())).collect();
            row(charges).pack().unwrap().len()
        };
        let (first, other) = (of_key(0), of_key(100));
        assert!(first <= 64 * 6, "{first} bytes for 64 charges");
        assert_eq!(other, first + 1, "the number of the key");
    }

    #[test]
    fn an_invalid_row_is_an_error() {
        let packed = row(vec![(1, usage(Path::Other("/a".into())))]).pack().unwrap();
        for length in 0..packed.len() {
            assert!(Row::unpack(&packed[..length]).is_err(), "{length} bytes");
        }
        for bit in 0..8 * packed.len() {
            let mut damaged = packed.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Row::unpack(&damaged).is_err(), "bit {bit}");
        }
        let with_sum = |packed: &[u8]| [packed, &crc32fast::hash(packed).to_le_bytes()].concat();
        let inner = &packed[..packed.len() - 4];
        assert_eq!(with_sum(inner), packed);
        assert!(Row::unpack(&with_sum(&[&[1], &inner[1..]].concat())).is_err(), "a later format");
        assert!(Row::unpack(&with_sum(&[inner, &[0]].concat())).is_err(), "a byte too many");
    }
}
