//! The one place where a key goes onto the wire: in the answer that gives it to its owner.

use serde::{Serialize, Serializer};

use crate::key::ApiKey;

/// A key that is being given out. Printing it shows nothing.
#[derive(Debug, Clone)]
pub struct IssuedKey(ApiKey);

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
