//! The only type that writes a key into a response, the one that issues it to its owner.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use zeroize::Zeroizing;

use crate::access::key::ApiKey;

/// A key in the response that issues it. Its debug output does not show the key.
#[derive(Debug, Clone)]
pub struct IssuedKey(ApiKey);

impl IssuedKey {
    /// The key.
    #[must_use]
    pub fn key(&self) -> &ApiKey {
        &self.0
    }
}

impl From<ApiKey> for IssuedKey {
    fn from(key: ApiKey) -> Self {
        Self(key)
    }
}

impl Serialize for IssuedKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.expose())
    }
}

impl<'de> Deserialize<'de> for IssuedKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Zeroizing::new(String::deserialize(deserializer)?);
        // Does not quote the text, which may be a key.
        ApiKey::parse(&text).map(Self).map_err(|_| serde::de::Error::custom("not an API key"))
    }
}
