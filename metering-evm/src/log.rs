//! Logs, and the EIP-20 `Transfer` events among them.

use metering_core::chains::{Address, TokenTransfer, TokenUnits};
use serde::Deserialize;

use crate::encoding::{AddressData, Data, Height, Word};

/// keccak-256 of `Transfer(address,address,uint256)` (EIP-20).
pub(crate) const TRANSFER_TOPIC: [u8; 32] = [
    0xdd, 0xf2, 0x52, 0xad, 0x1b, 0xe2, 0xc8, 0x9b, 0x69, 0xc2, 0xb0, 0x68, 0xfc, 0x37, 0x8d, 0xaa, 0x95, 0x2b, 0xa7,
    0xf1, 0x63, 0xc4, 0xa1, 0x16, 0x28, 0xf5, 0x5a, 0x4d, 0xf5, 0x23, 0xb3, 0xef,
];

/// keccak-256 of `AuthorizationUsed(address,bytes32)` (EIP-3009).
pub(crate) const AUTHORIZATION_USED_TOPIC: [u8; 32] = [
    0x98, 0xde, 0x50, 0x35, 0x28, 0xee, 0x59, 0xb5, 0x75, 0xef, 0x0c, 0x0a, 0x25, 0x76, 0xa8, 0x24, 0x97, 0xbf, 0xc0,
    0x29, 0xa5, 0x68, 0x5b, 0x20, 0x9e, 0x9e, 0xc3, 0x33, 0x47, 0x9b, 0x10, 0xa5,
];

/// A log, as it appears in receipts and in results of `eth_getLogs`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Log {
    address: AddressData,
    topics: Vec<Word>,
    data: Data,
    pub(crate) transaction_hash: Option<Word>,
    pub(crate) transaction_index: Option<Height>,
    pub(crate) block_number: Option<Height>,
    pub(crate) block_hash: Option<Word>,
    /// Whether a reorganisation removed it.
    removed: Option<bool>,
}

impl Log {
    /// The transfer that it reports; `None` if it reports anything else. The `Transfer` event of EIP-721 has the same
    /// first topic, but also a fourth, since its value is indexed. Some old tokens index nothing.
    pub(crate) fn transfer(&self) -> Option<TokenTransfer> {
        let [Word(TRANSFER_TOPIC), Word(from), Word(to)] = self.topics.as_slice() else { return None };
        if self.removed == Some(true) {
            return None;
        }
        Some(TokenTransfer {
            token: self.address.0,
            from: address(*from)?,
            to: address(*to)?,
            value: TokenUnits::from_word(self.data.0.as_slice().try_into().ok()?),
        })
    }

    /// Whether it says that this contract executed the payer's authorization with this nonce (EIP-3009).
    pub(crate) fn is_execution(&self, token: Address, payer: Address, nonce: &[u8; 32]) -> bool {
        let [Word(AUTHORIZATION_USED_TOPIC), Word(authorizer), Word(used)] = self.topics.as_slice() else {
            return false;
        };
        let is_it = address(*authorizer) == Some(payer) && used == nonce;
        self.address.0 == token && is_it && self.removed != Some(true)
    }
}

/// The address in a word; `None` if the padding bytes before it are not zero.
fn address(word: [u8; 32]) -> Option<Address> {
    let (padding, address) = word.split_at(12);
    padding.iter().all(|byte| *byte == 0).then(|| address.try_into().ok().map(Address::from_bytes))?
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use sha3::{Digest, Keccak256};

    use super::*;
    use crate::encoding::data;

    fn word(last: u8) -> String {
        let mut word = [0; 32];
        word[31] = last;
        data(&word)
    }

    fn transfer_log() -> Value {
        json!({
            "address": data(&[7; 20]), "topics": [data(&TRANSFER_TOPIC), word(1), word(2)], "data": word(9),
            "transactionHash": data(&[3; 32]), "logIndex": "0x0", "removed": false,
        })
    }

    #[test]
    fn topics_are_the_hashes_of_the_events() {
        let hash = |event: &str| <[u8; 32]>::from(Keccak256::digest(event));
        assert_eq!(TRANSFER_TOPIC, hash("Transfer(address,address,uint256)"));
        assert_eq!(AUTHORIZATION_USED_TOPIC, hash("AuthorizationUsed(address,bytes32)"));
    }

    #[test]
    fn only_the_transfers_of_eip_20_are_transfers() {
        let log: Log = serde_json::from_value(transfer_log()).unwrap();
        let transfer = log.transfer().unwrap();
        assert_eq!(transfer.token, Address::from_bytes([7; 20]));
        assert_eq!((transfer.from.as_bytes()[19], transfer.to.as_bytes()[19]), (1, 2));
        assert_eq!(transfer.value, TokenUnits::new(9));

        let topic = data(&TRANSFER_TOPIC);
        let dirty = format!("0x01{}", "00".repeat(31));
        // what, key, value
        let table = [
            ("an EIP-721 transfer", "topics", json!([topic, word(1), word(2), word(3)])),
            ("two topics", "topics", json!([topic, word(1)])),
            ("no topic", "topics", json!([])),
            ("another event", "topics", json!([word(5), word(1), word(2)])),
            ("a dirty sender", "topics", json!([topic, dirty, word(2)])),
            ("a dirty receiver", "topics", json!([topic, word(1), dirty])),
            ("a short value", "data", json!("0x09")),
            ("no value", "data", json!("0x")),
            ("a long value", "data", json!(format!("{}00", word(9)))),
            ("a removed log", "removed", json!(true)),
        ];
        for (what, key, value) in table {
            let mut log = transfer_log();
            log[key] = value;
            let log: Log = serde_json::from_value(log).unwrap();
            assert_eq!(log.transfer(), None, "{what}");
        }
    }
}
