//! The column of a place, an unsigned number: SQLite stores the signed integer with the same bits, and PostgreSQL eight
//! big-endian bytes, which compare like the number.

use crate::value::{FromValue, ToValue, Value};

/// A place as its column has it. Written with `{place}(?1)`. Not for `free_gas_place`, where both databases store eight
/// bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoredPlace(pub(crate) u64);

impl ToValue for StoredPlace {
    const NULL: Value = u64::NULL;

    fn to_value(&self) -> Value {
        self.0.to_value()
    }
}

impl FromValue for StoredPlace {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Bytes(_) => <[u8; 8]>::from_value(value).map(|bytes| Self(u64::from_be_bytes(bytes))),
            _ => u64::from_value(value).map(Self),
        }
    }
}
