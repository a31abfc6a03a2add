//! The bytes of a bundle: the byte 1 for the format, then the following in postcard. Where an account's leaves begin is
//! stored once; the numbers and funds of its leaves follow by counting.
//!
//! ```text
//! base       i64                                        time of the first leaf, ms since the epoch
//! accounts   [number u32, leaves u64, funds i64]        by their first leaves here; leaves and funds before those
//! leaves     [place u8, later i64, kind u8, content]    place in `accounts`, 0 for public entries; ms since the leaf before
//!
//! kind 0-3   charged, refunded, expired, released: line u32, days before i64, key u32, calls u64, change of the funds i64
//!      4     the same as an earlier leaf but for account and time: back u8, the number of leaves between them
//!      5     ledger entry: id i64, kind u8, change of the funds i64, payment or none: chain u64, hash of 32 bytes
//!      6, 7  opening funds, imported usage: change of the funds i64
//!      8     public entry: text
//! ```

use std::collections::HashMap;

use metering_core::access::KeyNumber;
use metering_core::chains::{TxHash, TxRef};
use metering_core::charging::UsageKind;
use metering_core::money::LedgerKind;
use metering_core::{Credits, Day, Timestamp};
use serde::{Deserialize, Serialize};

use super::{Bundle, ChainHead, Leaf, MalformedBundle};
use crate::leaf::Posting;

const FORMAT: u8 = 1;
/// How many earlier leaves a leaf is compared with.
const NEAR: usize = 16;

#[derive(Serialize, Deserialize)]
struct Packed {
    /// The time of the first leaf.
    base: i64,
    /// Accounts in the order of their first leaves: number, leaves and funds before the bundle.
    accounts: Vec<(u32, u64, i64)>,
    leaves: Vec<PackedLeaf>,
}

#[derive(Serialize, Deserialize)]
struct PackedLeaf {
    /// The place of its account in the list; 0 for public entries.
    place: u8,
    /// Milliseconds since the previous leaf.
    later: i64,
    what: What,
}

/// Kind and content of a leaf. The order of the variants is part of the format.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
enum What {
    Charged(Usage),
    Refunded(Usage),
    Expired(Usage),
    Released(Usage),
    /// A repetition of an earlier leaf, with this many leaves between them.
    Again(u8),
    Ledger {
        id: i64,
        kind: u8,
        atoms: i64,
        tx: Option<(u64, [u8; 32])>,
    },
    Opening(i64),
    Imported(i64),
    Public(String),
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
struct Usage {
    line: u32,
    /// How many days before the commit the usage is booked.
    days_before: i64,
    key: u32,
    calls: u64,
    atoms: i64,
}

impl Bundle {
    /// Its bytes, as a store keeps them.
    #[must_use]
    pub fn pack(&self) -> Vec<u8> {
        let base = self.leaves.first().map_or(0, |leaf| leaf.at().unix_millis());
        let mut packed = Packed { base, accounts: Vec::new(), leaves: Vec::with_capacity(self.leaves.len()) };
        let (mut places, mut whats, mut last) = (HashMap::new(), Vec::<What>::new(), base);
        for leaf in &self.leaves {
            let place = match leaf {
                Leaf::Public { .. } => 0,
                Leaf::Posted { account, before, .. } => *places.entry(*account).or_insert_with(|| {
                    packed.accounts.push((*account, before.leaves, before.funds.atoms()));
                    // At most 256 leaves have at most 256 accounts.
                    u8::try_from(packed.accounts.len() - 1).unwrap_or(u8::MAX)
                }),
            };
            let at = leaf.at().unix_millis();
            let what = What::of(leaf);
            let back = whats.iter().rev().take(NEAR).position(|earlier| *earlier == what);
            let again = back.and_then(|back| u8::try_from(back).ok()).map(What::Again);
            whats.push(what.clone());
            packed.leaves.push(PackedLeaf { place, later: at.wrapping_sub(last), what: again.unwrap_or(what) });
            last = at;
        }
        let mut bytes = vec![FORMAT];
        bytes.extend(postcard::to_allocvec(&packed).expect("all of its lengths are known"));
        bytes
    }

    /// Reads the bytes of a bundle.
    ///
    /// # Errors
    /// When the bytes are not a bundle.
    pub fn unpack(bytes: &[u8]) -> Result<Self, MalformedBundle> {
        let broken = |problem: &str| MalformedBundle(problem.to_owned());
        let (format, bytes) = bytes.split_first().ok_or_else(|| broken("it is empty"))?;
        if *format != FORMAT {
            return Err(broken("it has an unknown format; use a newer program"));
        }
        let (packed, rest) =
            postcard::take_from_bytes::<Packed>(bytes).map_err(|error| MalformedBundle(error.to_string()))?;
        if !rest.is_empty() {
            return Err(broken("it has trailing bytes"));
        }
        let (mut bundle, mut whats, mut at, mut used) = (Self::default(), Vec::<What>::new(), packed.base, 0);
        for PackedLeaf { place, later, what } in packed.leaves {
            at = at.wrapping_add(later);
            let what = match what {
                What::Again(back) => {
                    let earlier = whats.iter().rev().nth(back.into()).cloned();
                    earlier.ok_or_else(|| broken("a leaf repeats none"))?
                }
                other => other,
            };
            whats.push(what.clone());
            let at = Timestamp::from_unix_millis(at);
            let leaf = if let What::Public(text) = what {
                if place != 0 {
                    return Err(broken("a public entry has an account"));
                }
                Leaf::Public { at, text }
            } else {
                let place = usize::from(place);
                let (account, leaves, funds) =
                    *packed.accounts.get(place).ok_or_else(|| broken("an account is missing"))?;
                let is_first = place == used;
                if place > used || (is_first && bundle.heads.contains_key(&account)) {
                    return Err(broken("its accounts are not in the order of their leaves"));
                }
                used += usize::from(is_first);
                let first = ChainHead { leaves, funds: Credits::from_atoms(funds) };
                let before = if is_first { first } else { bundle.heads.get(&account).copied().unwrap_or(first) };
                let (amount, posting) = what.posting(at).ok_or_else(|| broken("a leaf has an unknown kind"))?;
                Leaf::Posted { account, before, at, amount, posting }
            };
            bundle.push(leaf).map_err(|fault| MalformedBundle(fault.to_string()))?;
        }
        if used < packed.accounts.len() {
            return Err(broken("an account has no leaf"));
        }
        Ok(bundle)
    }
}

impl What {
    fn of(leaf: &Leaf) -> Self {
        let (at, amount, posting) = match leaf {
            Leaf::Public { text, .. } => return Self::Public(text.clone()),
            Leaf::Posted { at, amount, posting, .. } => (at, amount.atoms(), posting),
        };
        match posting {
            Posting::Opening => Self::Opening(amount),
            Posting::Imported => Self::Imported(amount),
            Posting::Ledger { id, kind, tx } => Self::Ledger {
                id: *id,
                kind: ledger_number(*kind),
                atoms: amount,
                tx: tx.map(|tx| (tx.chain_id, *tx.hash.as_bytes())),
            },
            Posting::Usage { line, kind, day, key, calls } => {
                let variant = match kind {
                    UsageKind::Charged => Self::Charged,
                    UsageKind::Refunded => Self::Refunded,
                    UsageKind::Expired => Self::Expired,
                    UsageKind::Released => Self::Released,
                };
                variant(Usage {
                    line: *line,
                    days_before: at.day().unix_days().wrapping_sub(day.unix_days()),
                    key: key.get(),
                    calls: *calls,
                    atoms: amount,
                })
            }
        }
    }

    /// The posting at a time, and its amount; `None` for an unknown kind.
    fn posting(self, at: Timestamp) -> Option<(Credits, Posting<u32>)> {
        let (kind, usage) = match self {
            Self::Charged(usage) => (UsageKind::Charged, usage),
            Self::Refunded(usage) => (UsageKind::Refunded, usage),
            Self::Expired(usage) => (UsageKind::Expired, usage),
            Self::Released(usage) => (UsageKind::Released, usage),
            Self::Opening(atoms) => return Some((Credits::from_atoms(atoms), Posting::Opening)),
            Self::Imported(atoms) => return Some((Credits::from_atoms(atoms), Posting::Imported)),
            Self::Ledger { id, kind, atoms, tx } => {
                let kind = LedgerKind::ALL.into_iter().find(|known| ledger_number(*known) == kind)?;
                let tx = tx.map(|(chain_id, hash)| TxRef { chain_id, hash: TxHash::from_bytes(hash) });
                return Some((Credits::from_atoms(atoms), Posting::Ledger { id, kind, tx }));
            }
            Self::Again(_) | Self::Public(_) => return None,
        };
        let Usage { line, days_before, key, calls, atoms } = usage;
        let day = Day::from_unix_days(at.day().unix_days().wrapping_sub(days_before));
        Some((Credits::from_atoms(atoms), Posting::Usage { line, kind, day, key: KeyNumber::new(key), calls }))
    }
}

/// The number of a kind of ledger entry in bundles.
const fn ledger_number(kind: LedgerKind) -> u8 {
    match kind {
        LedgerKind::SignupBonus => 0,
        LedgerKind::PurchasePaySignup => 1,
        LedgerKind::PurchaseTopup => 2,
        LedgerKind::PurchaseImported => 3,
        LedgerKind::Refill => 4,
        LedgerKind::Adjustment => 5,
        LedgerKind::PaymentReversed => 6,
        LedgerKind::PaymentRestored => 7,
        LedgerKind::TransferIn => 8,
        LedgerKind::TransferOut => 9,
    }
}
