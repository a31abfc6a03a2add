//! Reads back what a transaction that this wallet signed would pay.

use alloy_rlp::{Decodable, Header};
use metering_core::chains::TokenUnits;

use super::transaction::{DYNAMIC_FEE, GasPrice};

/// The parts of a signed transaction that matter for sending and replacing it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SignedTransaction {
    pub(super) nonce: u64,
    pub(super) price: GasPrice,
    gas: u64,
}

impl SignedTransaction {
    /// Reads the bytes of a signed transaction; `None` if it is not a kind that our wallets sign.
    pub(super) fn read(raw: &[u8]) -> Option<Self> {
        let (is_dynamic, list) = match raw.split_first()? {
            (&DYNAMIC_FEE, list) => (true, list),
            _ => (false, raw),
        };
        Self::read_list(list, is_dynamic).ok()
    }

    fn read_list(mut list: &[u8], is_dynamic: bool) -> Result<Self, alloy_rlp::Error> {
        let mut fields = Header::decode_bytes(&mut list, true)?;
        let fields = &mut fields;
        if is_dynamic {
            u64::decode(fields)?; // the chain's id
        }
        let nonce = u64::decode(fields)?;
        let price = if is_dynamic {
            GasPrice::Dynamic { tip: u128::decode(fields)?, most: u128::decode(fields)? }
        } else {
            GasPrice::Legacy(u128::decode(fields)?)
        };
        Ok(Self { nonce, price, gas: u64::decode(fields)? })
    }

    /// The highest possible fee, in the smallest unit of the chain's coin.
    pub(super) fn fee_max(self) -> TokenUnits {
        fee_max(self.gas, self.price)
    }
}

/// The highest possible fee of a transaction, in the smallest unit of the chain's coin.
pub(super) fn fee_max(gas: u64, price: GasPrice) -> TokenUnits {
    TokenUnits::new(u128::from(gas).saturating_mul(price.most()))
}

#[cfg(test)]
mod tests {
    use metering_core::chains::Address;

    use super::*;
    use crate::wallet::key::Wallet;
    use crate::wallet::transaction::Transaction;

    #[test]
    fn what_was_signed_is_read_back() {
        let wallet = Wallet::from_hex(&"46".repeat(32)).unwrap();
        let dynamic = GasPrice::Dynamic { tip: 0, most: u128::MAX };
        for (price, nonce, gas) in [(GasPrice::Legacy(20_000_000_000), 9, 21_000), (dynamic, 0, u64::MAX)] {
            let to = Address::from_bytes([0x35; 20]);
            let transaction = Transaction { chain_id: 84_532, nonce, price, gas, to, value: 7, input: vec![1; 300] };
            let raw = transaction.signed(&wallet.sign_digest(transaction.digest()));
            assert_eq!(SignedTransaction::read(&raw), Some(SignedTransaction { nonce, price, gas }));
            assert_eq!(SignedTransaction::read(&raw[..raw.len() - 1]), None);
        }
        for raw in [&[][..], &[2], &[2, 0x80], &[1, 0xc0], &[0xc0], &[2, 0xc3, 1, 1, 1]] {
            assert_eq!(SignedTransaction::read(raw), None, "{raw:?}");
        }
    }
}
