//! The members that a payment hook adds to the body of an error.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

/// Members of a JSON object, in their order, as the payment hook has written them.
#[derive(Debug, Clone, Default)]
pub struct PayableMembers(Vec<(&'static str, Box<RawValue>)>);

impl PayableMembers {
    /// The same members and one more.
    ///
    /// # Errors
    /// When the value cannot be written as JSON.
    pub fn with(mut self, name: &'static str, value: &impl Serialize) -> serde_json::Result<Self> {
        self.0.push((name, to_raw_value(value)?));
        Ok(self)
    }
}

impl Serialize for PayableMembers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            members.serialize_entry(name, value)?;
        }
        members.end()
    }
}
