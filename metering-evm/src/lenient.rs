//! Optional fields that are parsed leniently: an invalid value is treated as missing.

use serde::de::{Deserialize, Deserializer, IgnoredAny};

/// A value, or nothing if the field is missing or invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lenient<T>(Option<T>);

impl<T> Lenient<T> {
    /// The value, if it could be parsed.
    pub(crate) const fn as_ref(&self) -> Option<&T> {
        self.0.as_ref()
    }
}

impl<T> Default for Lenient<T> {
    fn default() -> Self {
        Self(None)
    }
}

#[derive(serde::Deserialize)]
#[serde(untagged)]
enum Field<T> {
    Readable(T),
    Odd(IgnoredAny),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Field::<T>::deserialize(deserializer)? {
            Field::Readable(value) => Self(Some(value)),
            Field::Odd(_) => Self(None),
        })
    }
}
