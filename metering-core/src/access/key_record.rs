use crate::access::issued_key::Key;
use crate::charging::key_meter::KeyMeter;

/// A key, and the usage that counts against its terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRecord {
    /// The key.
    pub key: Key,
    /// Its meter, if its terms are counted.
    pub meter: Option<KeyMeter>,
}
