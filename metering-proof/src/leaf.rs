//! The content of a leaf, as the bytes that the log commits to. The format is published: `docs/provable-bills.md`.
//!
//! Numbers: [`Opening::number`] counts the leaves of the account. The numbers of the key and of the ledger entry are
//! internal to the service. The opening does not contain the leaf's position in the log or the log's numbers of
//! accounts and lines; bundles do.

use metering_core::access::KeyNumber;
use metering_core::chains::{TxHash, TxRef};
use metering_core::charging::UsageKind;
use metering_core::money::LedgerKind;
use metering_core::{AccountId, ClientSource, Credits, Day, Timestamp, UsageLine};
use sha2::{Digest, Sha256};

use crate::salt::Salt;

/// The prefix of public entries. All others are 32-byte commitments.
pub const PUBLIC_PREFIX: &str = "metering-public-v1\n";

const VERSION: u8 = 1;
const PURPOSE: &[u8] = b"metering-leaf-v1\0";

/// The content of an account's leaf. The log contains only a commitment to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opening {
    /// The account.
    pub account: AccountId,
    /// The number of the leaf within its account: from 0, without gaps.
    pub number: u64,
    /// When it was committed.
    pub at: Timestamp,
    /// The change of the funds (the balance and open holds): negative for charges.
    pub amount: Credits,
    /// The funds after it.
    pub funds: Credits,
    /// What it is about.
    pub posting: Posting,
}

/// The subject of a leaf. Bundles use their own line numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Posting<L = UsageLine> {
    /// The account's funds when the log began.
    Opening,
    /// A ledger entry.
    Ledger {
        /// Its number.
        id: i64,
        /// Its kind.
        kind: LedgerKind,
        /// The payment behind it.
        tx: Option<TxRef>,
    },
    /// Usage of one line, key, day and kind in one commit.
    Usage {
        /// Route, method and source.
        line: L,
        /// How it came about.
        kind: UsageKind,
        /// The day on which the usage is booked.
        day: Day,
        /// The key.
        key: KeyNumber,
        /// How many requests.
        calls: u64,
    },
    /// Usage of an imported account from before the import.
    Imported,
}

impl<L> Posting<L> {
    /// The same subject with its usage line, if any, in a different form.
    ///
    /// # Errors
    /// That of `line`.
    pub fn with_line<M, E>(&self, line: impl FnOnce(&L) -> Result<M, E>) -> Result<Posting<M>, E> {
        Ok(match self {
            Self::Opening => Posting::Opening,
            Self::Ledger { id, kind, tx } => Posting::Ledger { id: *id, kind: *kind, tx: *tx },
            Self::Usage { line: of, kind, day, key, calls } => {
                Posting::Usage { line: line(of)?, kind: *kind, day: *day, key: *key, calls: *calls }
            }
            Self::Imported => Posting::Imported,
        })
    }
}

/// The bytes are not the opening of a leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not the opening of a leaf: {0}")]
pub struct MalformedOpening(&'static str);

impl Opening {
    /// Its bytes. Texts longer than 65,535 bytes are truncated, and days are clamped to 32 bits.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let kind = match self.posting {
            Posting::Opening => 1,
            Posting::Ledger { .. } => 2,
            Posting::Usage { .. } => 3,
            Posting::Imported => 4,
        };
        let mut bytes = vec![VERSION, kind];
        bytes.extend(self.number.to_be_bytes());
        for number in [self.at.unix_millis(), self.amount.atoms(), self.funds.atoms()] {
            bytes.extend(number.to_be_bytes());
        }
        push_text(&mut bytes, self.account.as_str());
        match &self.posting {
            Posting::Opening | Posting::Imported => {}
            Posting::Ledger { id, kind, tx } => {
                bytes.extend(id.to_be_bytes());
                push_text(&mut bytes, kind.as_str());
                bytes.push(u8::from(tx.is_some()));
                if let Some(tx) = tx {
                    bytes.extend(tx.chain_id.to_be_bytes());
                    push_text(&mut bytes, &tx.hash.to_string());
                }
            }
            Posting::Usage { line, kind, day, key, calls } => {
                bytes.push(usage_number(*kind));
                bytes.extend(day_number(*day).to_be_bytes());
                bytes.extend(key.get().to_be_bytes());
                bytes.extend(calls.to_be_bytes());
                for text in [&*line.http_method, &*line.route_template, line.source.as_str()] {
                    push_text(&mut bytes, text);
                }
            }
        }
        bytes
    }

    /// Reads an opening.
    ///
    /// # Errors
    /// When the bytes are not exactly those of an opening.
    pub fn parse(bytes: &[u8]) -> Result<Self, MalformedOpening> {
        let mut rest = Reader(bytes);
        let [version, kind] = rest.array()?;
        if version != VERSION {
            return Err(MalformedOpening("it has an unknown version; use a newer program"));
        }
        let number = u64::from_be_bytes(rest.array()?);
        let at = Timestamp::from_unix_millis(i64::from_be_bytes(rest.array()?));
        let amount = Credits::from_atoms(i64::from_be_bytes(rest.array()?));
        let funds = Credits::from_atoms(i64::from_be_bytes(rest.array()?));
        let account = rest.text()?.parse::<AccountId>().map_err(|_| MalformedOpening("it names no account"))?;
        let posting = match kind {
            1 => Posting::Opening,
            2 => rest.ledger()?,
            3 => rest.usage()?,
            4 => Posting::Imported,
            _ => return Err(MalformedOpening("its kind is unknown")),
        };
        let opening = Self { account, number, at, amount, funds, posting };
        // Each opening has exactly one encoding.
        if opening.to_bytes() == bytes {
            Ok(opening)
        } else {
            Err(MalformedOpening("it is not in the canonical encoding"))
        }
    }
}

/// The entry of the log that commits to an opening.
#[must_use]
pub fn entry(salt: &Salt, opening: &[u8]) -> [u8; 32] {
    Sha256::new().chain_update(PURPOSE).chain_update(salt.as_bytes()).chain_update(opening).finalize().into()
}

/// The number of a kind of usage.
const fn usage_number(kind: UsageKind) -> u8 {
    match kind {
        UsageKind::Charged => 0,
        UsageKind::Refunded => 1,
        UsageKind::Expired => 2,
        UsageKind::Released => 3,
    }
}

/// The kind of usage with a number.
fn usage_kind(number: u8) -> Option<UsageKind> {
    UsageKind::ALL.into_iter().find(|kind| usage_number(*kind) == number)
}

fn day_number(day: Day) -> i32 {
    i32::try_from(day.unix_days()).unwrap_or(if day.unix_days() < 0 { i32::MIN } else { i32::MAX })
}

fn push_text(bytes: &mut Vec<u8>, text: &str) {
    let text = &text[..text.floor_char_boundary(usize::from(u16::MAX))];
    bytes.extend(u16::try_from(text.len()).unwrap_or(u16::MAX).to_be_bytes());
    bytes.extend(text.as_bytes());
}

/// The bytes that are not read yet.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], MalformedOpening> {
        let (array, rest) = self.0.split_first_chunk().ok_or(MalformedOpening("it is cut short"))?;
        self.0 = rest;
        Ok(*array)
    }

    fn text(&mut self) -> Result<&'a str, MalformedOpening> {
        let length = u16::from_be_bytes(self.array()?);
        let (text, rest) = self.0.split_at_checked(length.into()).ok_or(MalformedOpening("it is cut short"))?;
        self.0 = rest;
        std::str::from_utf8(text).map_err(|_| MalformedOpening("a text is not UTF-8"))
    }

    fn ledger(&mut self) -> Result<Posting, MalformedOpening> {
        let id = i64::from_be_bytes(self.array()?);
        let kind = LedgerKind::from_name(self.text()?);
        let kind = kind.ok_or(MalformedOpening("its kind of ledger entry is unknown; use a newer program"))?;
        let [has_tx] = self.array()?;
        let tx = if has_tx == 0 { None } else { Some(self.tx()?) };
        Ok(Posting::Ledger { id, kind, tx })
    }

    fn tx(&mut self) -> Result<TxRef, MalformedOpening> {
        let chain_id = u64::from_be_bytes(self.array()?);
        let hash = self.text()?.parse::<TxHash>().map_err(|_| MalformedOpening("its transaction has no hash"))?;
        Ok(TxRef { chain_id, hash })
    }

    fn usage(&mut self) -> Result<Posting, MalformedOpening> {
        let [kind] = self.array()?;
        let kind = usage_kind(kind).ok_or(MalformedOpening("its kind of usage is unknown"))?;
        let day = Day::from_unix_days(i32::from_be_bytes(self.array()?).into());
        let key = KeyNumber::new(u32::from_be_bytes(self.array()?));
        let calls = u64::from_be_bytes(self.array()?);
        let (http_method, route_template) = (self.text()?.into(), self.text()?.into());
        let line = UsageLine { route_template, http_method, source: ClientSource::from_name(self.text()?) };
        Ok(Posting::Usage { line, kind, day, key, calls })
    }
}
