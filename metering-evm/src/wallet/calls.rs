//! The calls that only payers make.

use metering_core::chains::{Address, TokenUnits};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::call::{Call, word_of};
use crate::encoding::{Amount, Quantity, data, quantity};

/// `balanceOf(address)` (EIP-20).
const BALANCE_OF: [u8; 4] = [0x70, 0xa0, 0x82, 0x31];

/// `transfer(address,uint256)` (EIP-20).
const TRANSFER: [u8; 4] = [0xa9, 0x05, 0x9c, 0xbb];

/// The newest block: the parts that matter for fees.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FeeBlock {
    /// Its base fee per unit of gas (EIP-1559); `None` on chains without one.
    pub(crate) base_fee_per_gas: Option<Amount>,
}

impl Call {
    /// The native balance of an address.
    pub(crate) fn balance(of: Address) -> Self {
        Self::new("eth_getBalance", json!([of, "latest"]))
    }

    /// The token balance of an address.
    pub(crate) fn token_balance(token: Address, of: Address) -> Self {
        Self::contract(token, &[&BALANCE_OF[..], &word_of(of)].concat())
    }

    /// The number of transactions of an address, including pending ones: the next one's nonce.
    pub(crate) fn next_nonce(of: Address) -> Self {
        Self::new("eth_getTransactionCount", json!([of, "pending"]))
    }

    /// The number of mined transactions of an address.
    pub(crate) fn mined_count(of: Address) -> Self {
        Self::new("eth_getTransactionCount", json!([of, "latest"]))
    }

    /// The number of mined transactions of an address at a block.
    pub(crate) fn mined_count_at(of: Address, block: u64) -> Self {
        Self::new("eth_getTransactionCount", json!([of, quantity(block)]))
    }

    /// The newest block.
    pub(crate) fn newest_block() -> Self {
        Self::tagged_block("latest")
    }

    /// The usual price of a unit of gas.
    pub(crate) fn gas_price() -> Self {
        Self::new("eth_gasPrice", json!([]))
    }

    /// The suggested tip for the block's proposer, per unit of gas.
    pub(crate) fn tip() -> Self {
        Self::new("eth_maxPriorityFeePerGas", json!([]))
    }

    /// Simulates a transaction.
    pub(crate) fn simulate(transaction: &Attempt<'_>) -> Self {
        Self::new("eth_call", json!([transaction.json(), "latest"]))
    }

    /// How much gas a transaction would use on the newest block. By default, some nodes execute pending transactions
    /// first, including one that this transaction should replace.
    pub(crate) fn estimate(transaction: &Attempt<'_>) -> Self {
        Self::new("eth_estimateGas", json!([transaction.json(), "latest"]))
    }

    /// Sends a transaction.
    pub(crate) fn send(raw: &[u8]) -> Self {
        Self::new("eth_sendRawTransaction", json!([data(raw)]))
    }
}

/// A transaction to simulate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempt<'a> {
    pub(crate) from: Address,
    pub(crate) to: Address,
    pub(crate) value: u128,
    pub(crate) input: &'a [u8],
}

impl Attempt<'_> {
    fn json(&self) -> Value {
        json!({ "from": self.from, "to": self.to, "value": format!("{:#x}", self.value), "data": data(self.input) })
    }
}

/// The input of a token's transfer.
pub(crate) fn transfer(to: Address, amount: TokenUnits) -> Vec<u8> {
    let mut input = TRANSFER.to_vec();
    input.extend_from_slice(&word_of(to));
    input.extend_from_slice(&[0; 16]);
    input.extend_from_slice(&amount.get().to_be_bytes());
    input
}

/// Converts a quantity to token units. Every existing amount of wei fits into 128 bits.
pub(crate) fn units(Amount(word): Amount) -> TokenUnits {
    TokenUnits::from_word(word)
}

/// Converts a quantity to a count.
pub(crate) const fn count(Quantity(number): Quantity) -> u64 {
    number
}

#[cfg(test)]
mod tests {
    use sha3::{Digest, Keccak256};

    use super::*;

    #[test]
    fn selectors_are_the_hashes_of_the_signatures() {
        assert_eq!(BALANCE_OF, Keccak256::digest(b"balanceOf(address)")[..4]);
        assert_eq!(TRANSFER, Keccak256::digest(b"transfer(address,uint256)")[..4]);
    }

    #[test]
    fn a_transfer_is_encoded_as_the_abi_says() {
        let input = transfer(Address::from_bytes([0x11; 20]), TokenUnits::new(5_003_817));
        let expected = concat!(
            "a9059cbb",
            "0000000000000000000000001111111111111111111111111111111111111111",
            "00000000000000000000000000000000000000000000000000000000004c5a29",
        );
        assert_eq!(hex::encode(input), expected);
    }
}
