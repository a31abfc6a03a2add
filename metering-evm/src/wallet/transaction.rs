//! Encodes transactions for signing and sending: RLP lists (Yellow Paper, appendix B), hashed with Keccak-256.

use alloy_rlp::{Encodable, Header};
use metering_core::chains::Address;
use sha3::{Digest, Keccak256};

use super::key::Signature;

/// The first byte of an EIP-1559 transaction (EIP-2718).
pub(super) const DYNAMIC_FEE: u8 = 2;

/// An unsigned transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Transaction {
    pub(crate) chain_id: u64,
    pub(crate) nonce: u64,
    pub(crate) price: GasPrice,
    pub(crate) gas: u64,
    pub(crate) to: Address,
    /// In the native coin's smallest unit.
    pub(crate) value: u128,
    pub(crate) input: Vec<u8>,
}

/// The price per unit of gas, in the native coin's smallest unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GasPrice {
    /// Exactly this, in a legacy transaction without a type, bound to its chain (EIP-155).
    Legacy(u128),
    /// Up to `most`, of which up to `tip` goes to the block's proposer (EIP-1559).
    Dynamic { tip: u128, most: u128 },
}

impl GasPrice {
    /// The highest price per unit.
    pub(crate) const fn most(self) -> u128 {
        match self {
            Self::Legacy(price) => price,
            Self::Dynamic { most, .. } => most,
        }
    }

    /// The highest tip per unit.
    pub(crate) const fn tip(self) -> u128 {
        match self {
            Self::Legacy(price) => price,
            Self::Dynamic { tip, .. } => tip,
        }
    }
}

impl Transaction {
    /// The digest to sign.
    pub(crate) fn digest(&self) -> [u8; 32] {
        let bytes = match self.price {
            // EIP-155: the chain id and two zeros instead of the signature.
            GasPrice::Legacy(_) => self.encode(&[&self.chain_id, &0_u8, &0_u8]),
            GasPrice::Dynamic { .. } => self.encode(&[]),
        };
        Keccak256::digest(bytes).into()
    }

    /// The bytes to send.
    pub(crate) fn signed(&self, signature: &Signature) -> Vec<u8> {
        let parity = u64::from(signature.y_is_odd);
        let v = match self.price {
            GasPrice::Legacy(_) => u128::from(self.chain_id) * 2 + 35 + u128::from(parity),
            GasPrice::Dynamic { .. } => u128::from(parity),
        };
        self.encode(&[&v, &number(&signature.r), &number(&signature.s)])
    }

    fn encode(&self, end: &[&dyn Encodable]) -> Vec<u8> {
        let (to, input) = (self.to.as_bytes(), self.input.as_slice());
        match &self.price {
            GasPrice::Legacy(price) => list(Vec::new(), &[&self.nonce, price, &self.gas, to, &self.value, &input], end),
            GasPrice::Dynamic { tip, most } => {
                let fields: [&dyn Encodable; 9] =
                    [&self.chain_id, &self.nonce, tip, most, &self.gas, to, &self.value, &input, &AccessList];
                list(vec![DYNAMIC_FEE], &fields, end)
            }
        }
    }
}

/// The empty access list of EIP-2930.
struct AccessList;

impl Encodable for AccessList {
    fn encode(&self, out: &mut dyn alloy_rlp::BufMut) {
        Header { list: true, payload_length: 0 }.encode(out);
    }

    fn length(&self) -> usize {
        1
    }
}

/// Appends a list of these fields to `out`.
fn list(mut out: Vec<u8>, fields: &[&dyn Encodable], end: &[&dyn Encodable]) -> Vec<u8> {
    let all = || fields.iter().chain(end);
    let payload_length = all().map(|field| field.length()).sum();
    Header { list: true, payload_length }.encode(&mut out);
    for field in all() {
        field.encode(&mut out);
    }
    out
}

/// A 256-bit number without its leading zeros, as RLP encodes numbers.
fn number(word: &[u8; 32]) -> &[u8] {
    let zeros = word.iter().take_while(|byte| **byte == 0).count();
    &word[zeros..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wallet::key::Wallet;
    use crate::wallet::payment::hash_of;

    fn bytes<const N: usize>(digits: &str) -> [u8; N] {
        hex::decode(digits).unwrap().try_into().unwrap()
    }

    #[test]
    fn eip_155_example_is_signed_as_specified() {
        let wallet = Wallet::from_hex(&"46".repeat(32)).unwrap();
        let transaction = Transaction {
            chain_id: 1,
            nonce: 9,
            price: GasPrice::Legacy(20_000_000_000),
            gas: 21_000,
            to: Address::from_bytes([0x35; 20]),
            value: 1_000_000_000_000_000_000,
            input: Vec::new(),
        };
        let digest = transaction.digest();
        assert_eq!(hex::encode(digest), "daf5a779ae972f972197303d7b574746c7ef83eadac0f2791ad23db92e4c8e53");
        let expected = concat!(
            "f86c098504a817c800825208943535353535353535353535353535353535353535880de0b6b3a76400008025a0",
            "28ef61340bd939bc2195fe537567866003e1a15d3c71ff63e1590620aa636276a0",
            "67cbe9d8997f761aecb703304b3800ccf555c9f3dc64214b297fb1966a3b6d83",
        );
        assert_eq!(hex::encode(transaction.signed(&wallet.sign_digest(digest))), expected);
    }

    #[test]
    fn ethereum_transaction_has_the_right_hash() {
        let input = concat!(
            "a22cb465",
            "0000000000000000000000005eee75727d804a2b13038928d36f8b188945a57a",
            "0000000000000000000000000000000000000000000000000000000000000000",
        );
        let transaction = Transaction {
            chain_id: 1,
            nonce: 0x42,
            price: GasPrice::Dynamic { tip: 1_000_000_000, most: 20_000_000_000 },
            gas: 44_386,
            to: "0x6069a6c32cf691f5982febae4faf8a6f3ab2f0f6".parse().unwrap(),
            value: 0,
            input: hex::decode(input).unwrap(),
        };
        let signature = Signature {
            r: bytes("840cfc572845f5786e702984c2a582528cad4b49b2a10b9db1be7fca90058565"),
            s: bytes("25e7109ceb98168d95b09b18bbf6b685130e0562f233877d492b94eee0c5b6d1"),
            y_is_odd: false,
        };
        let digest = "0d5688ac3897124635b6cf1bc0e29d6dfebceebdc10a54d74f2ef8b56535b682";
        assert_eq!(hex::encode(transaction.digest()), digest);
        let hash = "0x0ec0b6a2df4d87424e5f6ad2a654e27aaeb7dac20ae9e8385cc09087ad532ee0";
        assert_eq!(hash_of(&transaction.signed(&signature)).to_string(), hash);
    }

    #[test]
    fn numbers_have_no_leading_zeros() {
        let mut word = [0; 32];
        assert_eq!(number(&word), &[] as &[u8]);
        word[30] = 1;
        assert_eq!(number(&word), [1, 0]);
        assert_eq!(number(&[7; 32]), [7; 32]);
    }
}
