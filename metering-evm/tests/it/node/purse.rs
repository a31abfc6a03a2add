//! What payers find on a chain: balances, fees, and a place for their transactions.

use metering_core::TxHash;
use serde_json::{Value, json};
use sha3::{Digest, Keccak256};

use super::chain::Answer;

/// The purse of every address, all of which are alike.
#[derive(Debug, Clone)]
pub(crate) struct Purse {
    pub(crate) balance: Value,
    /// `null` on a chain without.
    pub(crate) base_fee: Value,
    pub(crate) tip: Answer,
    pub(crate) gas: Answer,
    /// How many transactions there are, those that wait included.
    pub(crate) sent: u64,
    /// How many transactions are in the chain, and from which block on.
    pub(crate) mined: Vec<(u64, u64)>,
    /// What it says instead of taking a transaction.
    pub(crate) refusal: Option<(i64, &'static str)>,
    /// The transactions that it was sent.
    pub(crate) taken: Vec<String>,
}

impl Default for Purse {
    fn default() -> Self {
        Self {
            balance: json!("0xde0b6b3a7640000"),
            base_fee: json!("0x3e8"),
            tip: Ok(json!("0x3")),
            gas: Ok(json!("0x5208")),
            sent: 7,
            mined: vec![(0, 7)],
            refusal: None,
            taken: Vec::new(),
        }
    }
}

impl Purse {
    pub(super) fn answer(&self, method: &str, params: &Value, newest: u64) -> Answer {
        match method {
            "eth_getBalance" => Ok(self.balance.clone()),
            "eth_gasPrice" => Ok(json!("0x5dc")),
            "eth_maxPriorityFeePerGas" => self.tip.clone(),
            "eth_estimateGas" => self.gas.clone(),
            "eth_getTransactionCount" => Ok(json!(format!("{:#x}", self.count(params[1].as_str().unwrap(), newest)))),
            _ => Err((-32_601, "the method does not exist")),
        }
    }

    /// The hash of a transaction that was sent, unless it is refused.
    pub(super) fn take(&mut self, params: &Value) -> Result<TxHash, (i64, &'static str)> {
        if let Some(refusal) = self.refusal {
            return Err(refusal);
        }
        let raw = params[0].as_str().unwrap();
        self.taken.push(raw.to_owned());
        Ok(TxHash::from_bytes(Keccak256::digest(hex::decode(&raw[2..]).unwrap()).into()))
    }

    fn count(&self, tag: &str, newest: u64) -> u64 {
        let block = match tag {
            "pending" => return self.sent,
            "latest" => newest,
            number => u64::from_str_radix(&number[2..], 16).unwrap(),
        };
        self.mined.iter().filter(|(since, _)| *since <= block).map(|(_, count)| *count).max().unwrap_or_default()
    }
}
