//! Requests to sources: methods of the Ethereum execution APIs (EIP-1474), as JSON-RPC 2.0.

use metering_core::chains::{Address, TxHash};
use metering_core::offers::AuthorizationId;
use serde_json::{Value, json};

use crate::encoding::{data, quantity};
use crate::log::{AUTHORIZATION_USED_TOPIC, TRANSFER_TOPIC};

/// One request of a batch.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    /// The method's name.
    pub(crate) method: &'static str,
    params: Value,
}

impl Call {
    pub(crate) const fn new(method: &'static str, params: Value) -> Self {
        Self { method, params }
    }

    /// The chain's id.
    pub(crate) fn chain_id() -> Self {
        Self::new("eth_chainId", json!([]))
    }

    /// The number of the newest block.
    pub(crate) fn block_number() -> Self {
        Self::new("eth_blockNumber", json!([]))
    }

    /// The receipt of a transaction.
    pub(crate) fn receipt(hash: &TxHash) -> Self {
        Self::new("eth_getTransactionReceipt", json!([hash]))
    }

    /// A transaction as it was sent.
    pub(crate) fn transaction(hash: &TxHash) -> Self {
        Self::new("eth_getTransactionByHash", json!([hash]))
    }

    /// The block with this number, with its transactions' hashes or with the transactions themselves.
    pub(crate) fn block(number: u64, with_transactions: bool) -> Self {
        Self::new("eth_getBlockByNumber", json!([quantity(number), with_transactions]))
    }

    /// The block that a tag such as `safe` names.
    pub(crate) fn tagged_block(tag: &'static str) -> Self {
        Self::new("eth_getBlockByNumber", json!([tag, false]))
    }

    /// The `Transfer` logs of these tokens to `recipient`.
    pub(crate) fn transfers_to(recipient: Address, tokens: &[Address], from_block: u64, to_block: u64) -> Self {
        let topics = json!([data(&TRANSFER_TOPIC), null, data(&word_of(recipient))]);
        Self::logs(tokens, &topics, from_block, to_block)
    }

    /// This token's logs that it executed the payer's authorization with this nonce (EIP-3009).
    pub(crate) fn executions(id: &AuthorizationId, from_block: u64, to_block: u64) -> Self {
        let (payer, nonce) = (data(&word_of(id.payer)), data(id.nonce.as_bytes()));
        let topics = json!([data(&AUTHORIZATION_USED_TOPIC), payer, nonce]);
        Self::logs(&[id.token], &topics, from_block, to_block)
    }

    fn logs(contracts: &[Address], topics: &Value, from_block: u64, to_block: u64) -> Self {
        let filter = json!({
            "fromBlock": quantity(from_block),
            "toBlock": quantity(to_block),
            "address": contracts,
            "topics": topics,
        });
        Self::new("eth_getLogs", json!([filter]))
    }

    /// The code at an address, at the newest block.
    pub(crate) fn code(address: Address) -> Self {
        Self::new("eth_getCode", json!([address, "latest"]))
    }

    /// A contract call at the newest block.
    pub(crate) fn contract(to: Address, input: &[u8]) -> Self {
        Self::new("eth_call", json!([{ "to": to, "data": data(input) }, "latest"]))
    }
}

/// An address as a word, as contracts encode it.
pub(crate) fn word_of(address: Address) -> [u8; 32] {
    let mut word = [0; 32];
    word[12..].copy_from_slice(address.as_bytes());
    word
}

/// The body of a batch. The ids are the positions of the calls in it. A single call is not sent as a batch, since some
/// sources accept none.
pub(crate) fn batch(calls: &[&Call], is_single: bool) -> Vec<u8> {
    let requests = calls
        .iter()
        .enumerate()
        .map(|(id, call)| json!({ "jsonrpc": "2.0", "id": id, "method": call.method, "params": call.params }));
    let mut requests: Vec<_> = requests.collect();
    let body = if is_single { requests.pop().unwrap_or_default() } else { Value::Array(requests) };
    body.to_string().into_bytes()
}
