use std::collections::BTreeMap;

use metering_core::money::CreditSum;
use serde::Serialize;

use crate::transfer::section::Record;

/// The number of records in a section, and the sums of their amounts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Sums {
    /// The number of records.
    pub records: u64,
    /// The sums, by the name of the amount.
    pub amounts: BTreeMap<&'static str, CreditSum>,
}

impl Sums {
    /// Adds a record.
    pub fn add(&mut self, record: &Record) {
        self.records += 1;
        for (name, amount) in record.amounts() {
            self.amounts.entry(name).or_default().add(amount);
        }
    }
}
