//! One price version.

use std::fmt;
use std::sync::Arc;

use sha3::{Digest, Sha3_256};

use crate::clock::Timestamp;
use crate::operators::audit::Actor;
use crate::prices::number::PriceNumber;
use crate::raw_bytes::raw_bytes;

/// The SHA3-256 of a catalogue's text, byte for byte (FIPS 202).
///
/// ```
/// use metering_core::prices::CatalogueHash;
///
/// let hash = CatalogueHash::of("{}");
/// assert_eq!(hash.to_string().len(), 64);
/// assert_ne!(hash, CatalogueHash::of("{ }"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CatalogueHash([u8; 32]);

raw_bytes!(CatalogueHash, 32);

impl CatalogueHash {
    /// The hash of a catalogue's text.
    #[must_use]
    pub fn of(catalogue: &str) -> Self {
        Self(Sha3_256::digest(catalogue).into())
    }
}

impl fmt::Display for CatalogueHash {
    /// 64 lower-case hex digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

/// A catalogue that was, is or will be in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriceVersion {
    /// Its number, in the order of recording.
    pub number: PriceNumber,
    /// The hash of its catalogue.
    pub hash: CatalogueHash,
    /// Since when it is in force, unless it was cancelled before.
    pub since: Timestamp,
    /// When it was recorded.
    pub recorded_at: Timestamp,
    /// Who applied it; `None` if a server took it from the file that its configuration names.
    pub applied_by: Option<Actor>,
    /// When it was cancelled, before it took effect.
    pub cancelled_at: Option<Timestamp>,
}

/// A price version to record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPriceVersion {
    /// The text of its catalogue.
    pub catalogue: Arc<str>,
    /// Since when it is in force.
    pub since: Timestamp,
    /// When it is recorded.
    pub recorded_at: Timestamp,
    /// Who applies it; `None` if a server takes it from the file that its configuration names.
    pub applied_by: Option<Actor>,
}

/// The outcome of recording a price version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PriceRecorded {
    /// It is recorded.
    Recorded(PriceVersion),
    /// Nothing was recorded: this version has the same catalogue, and is in force at that time.
    Unchanged(PriceVersion),
    /// Nothing was recorded: this version was applied, so configured catalogues are no longer recorded.
    AppliedInForce(PriceVersion),
    /// Nothing was recorded: this applied version takes effect at the same time.
    SameTime(PriceVersion),
}

impl NewPriceVersion {
    /// The version with this number.
    #[must_use]
    pub fn numbered(&self, number: PriceNumber) -> PriceVersion {
        let Self { catalogue, since, recorded_at, applied_by } = self;
        PriceVersion {
            number,
            hash: CatalogueHash::of(catalogue),
            since: *since,
            recorded_at: *recorded_at,
            applied_by: applied_by.clone(),
            cancelled_at: None,
        }
    }
}
