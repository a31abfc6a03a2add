//! The parts of a chain that payers read: balances, fees, and transaction counts.

use metering_core::chains::TxHash;
use serde_json::{Value, json};
use sha3::{Digest, Keccak256};

use super::chain::RpcResult;

/// The balances and counts that the chain reports for every address.
#[derive(Debug, Clone)]
pub(crate) struct WalletState {
    pub(crate) balance: Value,
    /// `null` on a chain without a base fee.
    pub(crate) base_fee: Value,
    pub(crate) tip: RpcResult,
    pub(crate) gas: RpcResult,
    /// The number of transactions, including pending ones.
    pub(crate) sent: u64,
    /// The number of mined transactions, and from which block on.
    pub(crate) mined: Vec<(u64, u64)>,
    /// The error for every transaction that is sent.
    pub(crate) refusal: Option<(i64, &'static str)>,
    /// The transactions that were sent to it.
    pub(crate) received: Vec<String>,
}

impl Default for WalletState {
    fn default() -> Self {
        Self {
            balance: json!("0xde0b6b3a7640000"),
            base_fee: json!("0x3e8"),
            tip: Ok(json!("0x3")),
            gas: Ok(json!("0x5208")),
            sent: 7,
            mined: vec![(0, 7)],
            refusal: None,
            received: Vec::new(),
        }
    }
}

impl WalletState {
    pub(super) fn respond(&self, method: &str, params: &Value, newest: u64) -> RpcResult {
        match method {
            "eth_getBalance" => Ok(self.balance.clone()),
            "eth_gasPrice" => Ok(json!("0x5dc")),
            "eth_maxPriorityFeePerGas" => self.tip.clone(),
            "eth_estimateGas" => self.gas.clone(),
            "eth_getTransactionCount" => Ok(json!(format!("{:#x}", self.count(params[1].as_str().unwrap(), newest)))),
            _ => Err((-32_601, "the method does not exist")),
        }
    }

    /// Accepts a transaction and returns its hash, unless it is refused.
    pub(super) fn take(&mut self, params: &Value) -> Result<TxHash, (i64, &'static str)> {
        if let Some(refusal) = self.refusal {
            return Err(refusal);
        }
        let raw = params[0].as_str().unwrap();
        self.received.push(raw.to_owned());
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
