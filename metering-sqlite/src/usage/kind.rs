//! How usage came about, as a number in packed rows. In rows of schema 9 and earlier it is a flag for refunds, whose
//! two values are the first two numbers.

use metering_core::charging::UsageKind;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serializer};

/// The number of a kind.
pub(crate) const fn number(kind: UsageKind) -> u8 {
    match kind {
        UsageKind::Charged => 0,
        UsageKind::Refunded => 1,
        UsageKind::Expired => 2,
        UsageKind::Released => 3,
    }
}

/// The kind with this number.
pub(crate) fn of_number(number: u8) -> Option<UsageKind> {
    UsageKind::ALL.into_iter().find(|kind| self::number(*kind) == number)
}

/// For `#[serde(with)]`.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
pub(crate) fn serialize<S: Serializer>(kind: &UsageKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u8(number(*kind))
}

/// For `#[serde(with)]`.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<UsageKind, D::Error> {
    of_number(u8::deserialize(deserializer)?).ok_or_else(|| D::Error::custom("not a kind of usage"))
}
