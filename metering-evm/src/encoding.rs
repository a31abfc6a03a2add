//! Values as the execution APIs encode them (EIP-1474): quantities and data, both in hexadecimal.
//!
//! Parsing is strict: a value that a conforming node would not send must not become evidence.

use std::borrow::Cow;
use std::fmt;

use metering_core::chains::Address;
use serde::{Deserialize, Deserializer};

/// A quantity of up to 64 bits: `0x0`, `0x1b4`; no leading zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Quantity(pub(crate) u64);

/// The number of a block, or another count that fits into a signed 64-bit integer, so that arithmetic on it is safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Height(pub(crate) u64);

/// A quantity of up to 256 bits, as a big-endian word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Amount(pub(crate) [u8; 32]);

/// 32 bytes of data: a hash or a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Word(pub(crate) [u8; 32]);

/// 20 bytes of data. Upper and lower case are accepted: sources need not use the checksum of EIP-55.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AddressData(pub(crate) Address);

/// Data of any length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Data(pub(crate) Vec<u8>);

/// A value is not encoded correctly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not {0}")]
pub(crate) struct EncodingError(&'static str);

/// Encodes a number as a quantity.
pub(crate) fn quantity(number: u64) -> String {
    format!("{number:#x}")
}

/// Encodes bytes as data.
pub(crate) fn data(bytes: &[u8]) -> String {
    format!("0x{}", hex::encode(bytes))
}

fn digits_of_quantity(text: &str) -> Option<&str> {
    let digits = text.strip_prefix("0x")?;
    let canonical = digits == "0" || !digits.starts_with('0');
    (!digits.is_empty() && canonical && digits.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(digits)
}

impl TryFrom<&str> for Quantity {
    type Error = EncodingError;

    fn try_from(text: &str) -> Result<Self, EncodingError> {
        let digits = digits_of_quantity(text).and_then(|digits| u64::from_str_radix(digits, 16).ok());
        digits.map(Self).ok_or(EncodingError("a quantity of 64 bits"))
    }
}

impl TryFrom<&str> for Height {
    type Error = EncodingError;

    fn try_from(text: &str) -> Result<Self, EncodingError> {
        match Quantity::try_from(text) {
            Ok(Quantity(number)) if i64::try_from(number).is_ok() => Ok(Self(number)),
            _ => Err(EncodingError("a quantity of 63 bits")),
        }
    }
}

impl TryFrom<&str> for Amount {
    type Error = EncodingError;

    fn try_from(text: &str) -> Result<Self, EncodingError> {
        let mut word = [0; 32];
        let digits = digits_of_quantity(text).filter(|digits| digits.len() <= 64);
        digits
            .and_then(|digits| hex::decode_to_slice(format!("{digits:0>64}"), &mut word).ok())
            .map(|()| Self(word))
            .ok_or(EncodingError("a quantity of 256 bits"))
    }
}

impl TryFrom<&str> for Word {
    type Error = EncodingError;

    fn try_from(text: &str) -> Result<Self, EncodingError> {
        fixed(text).map(Self).ok_or(EncodingError("32 bytes of data"))
    }
}

impl TryFrom<&str> for AddressData {
    type Error = EncodingError;

    fn try_from(text: &str) -> Result<Self, EncodingError> {
        fixed(text).map(|bytes| Self(Address::from_bytes(bytes))).ok_or(EncodingError("20 bytes of data"))
    }
}

impl TryFrom<&str> for Data {
    type Error = EncodingError;

    fn try_from(text: &str) -> Result<Self, EncodingError> {
        let bytes = text.strip_prefix("0x").and_then(|digits| hex::decode(digits).ok());
        bytes.map(Self).ok_or(EncodingError("data"))
    }
}

fn fixed<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    hex::decode_to_slice(text.strip_prefix("0x")?, &mut bytes).ok()?;
    Some(bytes)
}

fn from_text<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: for<'t> TryFrom<&'t str, Error: fmt::Display>,
{
    let text = Cow::<'de, str>::deserialize(deserializer)?;
    T::try_from(&text).map_err(serde::de::Error::custom)
}

macro_rules! deserialize_from_text {
    ($($value:ident),+) => {$(
        impl<'de> Deserialize<'de> for $value {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                from_text(deserializer)
            }
        }
    )+};
}

deserialize_from_text!(Quantity, Height, Amount, Word, AddressData, Data);

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T: for<'de> Deserialize<'de>>(text: &str) -> Option<T> {
        serde_json::from_value(serde_json::Value::String(text.to_owned())).ok()
    }

    #[test]
    fn quantities_are_read_as_the_specification_writes_them() {
        let most = "0xffffffffffffffff";
        // text, number
        let table = [("0x0", Some(0)), ("0x1b4", Some(436)), ("0xFf", Some(255)), (most, Some(u64::MAX))];
        let wrong =
            ["", "0x", "0x00", "0x01", "1", "0X1", "0x1g", "-0x1", "0x-1", "0x+1", " 0x1", "0x10000000000000000"];
        for (text, number) in table.into_iter().chain(wrong.map(|text| (text, None))) {
            assert_eq!(read(text).map(|Quantity(number)| number), number, "{text:?}");
        }
        assert_eq!(read::<Height>("0x7fffffffffffffff").map(|Height(number)| number), Some(i64::MAX.unsigned_abs()));
        assert_eq!(read::<Height>("0x8000000000000000"), None);
        assert_eq!(quantity(436), "0x1b4");
    }

    #[test]
    fn amounts_have_256_bits_at_most() {
        let mut word = [0; 32];
        word[31] = 0xb4;
        word[30] = 1;
        assert_eq!(read("0x1b4"), Some(Amount(word)));
        assert_eq!(read(&format!("0x{}", "f".repeat(64))), Some(Amount([0xff; 32])));
        for text in ["", "0x", "0x01", "0xé", &format!("0x{}", "f".repeat(65))] {
            assert_eq!(read::<Amount>(text), None, "{text:?}");
        }
    }

    #[test]
    fn data_has_whole_bytes_and_its_length() {
        assert_eq!(read("0x"), Some(Data(Vec::new())));
        assert_eq!(read("0x00Ff"), Some(Data(vec![0, 255])));
        assert_eq!(data(&[0, 255]), "0x00ff");
        for text in ["", "0", "0x0", "00ff", "0xgg", "0x€"] {
            assert_eq!(read::<Data>(text), None, "{text:?}");
        }
        assert_eq!(read(&format!("0x{}", "Ab".repeat(32))), Some(Word([0xab; 32])));
        assert_eq!(read::<Word>(&format!("0x{}", "ab".repeat(31))), None);
        // Mixed case whose EIP-55 checksum is wrong.
        assert_eq!(read(&format!("0x{}", "aB".repeat(20))), Some(AddressData(Address::from_bytes([0xab; 20]))));
        assert_eq!(read::<AddressData>(&format!("0x{}", "ab".repeat(21))), None);
    }
}
