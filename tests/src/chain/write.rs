//! Transactions that call a contract.

use serde_json::{Map, Value, json};

/// Gas limit for a transaction that may fail: enough for any call of our contracts.
const ENOUGH_GAS: u64 = 500_000;

/// A contract call, sent as a transaction by [`Wallet::write`](super::wallet::Wallet::write).
#[derive(Debug, Clone)]
pub struct Write(Map<String, Value>);

impl Write {
    /// Calls `function` of the contract at `address` with `args`, a JSON array with numbers as decimal strings.
    /// `contract` is the name of a file in `tests/chain/contracts`.
    #[must_use]
    pub fn new(contract: &str, address: &str, function: &str, args: Value) -> Self {
        let mut params = Map::new();
        params.insert("contract".to_owned(), json!(contract));
        params.insert("address".to_owned(), json!(address));
        params.insert("function".to_owned(), json!(function));
        params.insert("args".to_owned(), args);
        Self(params)
    }

    /// Sends this amount of the native coin, in its smallest unit.
    #[must_use]
    pub fn value(mut self, amount: impl ToString) -> Self {
        self.0.insert("value".to_owned(), json!(amount.to_string()));
        self
    }

    /// Sends without simulation, so that a transaction that fails is mined as reverted.
    #[must_use]
    pub fn without_simulation(mut self) -> Self {
        self.0.insert("gas".to_owned(), json!(ENOUGH_GAS));
        self
    }

    pub(crate) fn params(&self) -> Value {
        Value::Object(self.0.clone())
    }
}
