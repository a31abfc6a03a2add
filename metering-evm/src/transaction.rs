//! Transactions, as returned by sources.
//!
//! Not every transaction looks like Ethereum's: some types have a list of calls, others have no signature, value or
//! input. Token payments are proven by receipts alone, so a missing or unreadable field is not an error here. It only
//! means that the transaction shows no transfer of the native coin.

use metering_core::chains::{Address, NativeTransfer, PendingTransaction, TokenUnits, TxHash};
use serde::Deserialize;

use crate::encoding::{AddressData, Amount, Data, Quantity, Word};
use crate::lenient::Lenient;

/// A transaction, and its block if it is in one.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Transaction {
    #[serde(default)]
    hash: Lenient<Word>,
    /// `null` while the transaction is pending.
    #[serde(default)]
    block_hash: Lenient<Option<Word>>,
    #[serde(default)]
    from: Lenient<AddressData>,
    /// `null` if the transaction creates a contract.
    #[serde(default)]
    to: Lenient<Option<AddressData>>,
    #[serde(default)]
    value: Lenient<Amount>,
    #[serde(default)]
    input: Lenient<Data>,
    #[serde(default, rename = "type")]
    kind: Lenient<Quantity>,
}

/// `transfer(address,uint256)` (EIP-20).
const TRANSFER: [u8; 4] = [0xa9, 0x05, 0x9c, 0xbb];

impl Transaction {
    /// Whether its hash is not the requested one.
    pub(crate) fn has_other_hash_than(&self, hash: &TxHash) -> bool {
        self.hash.as_ref().is_some_and(|word| word.0 != *hash.as_bytes())
    }

    /// Whether it is consistent with a receipt from this block: it names the same block, or none at all.
    pub(crate) fn may_be_in(&self, block_hash: Word) -> bool {
        self.block_hash.as_ref().is_none_or(|block| *block == Some(block_hash))
    }

    /// What it will do, while it is pending. `None` unless it has one of the types that run only their target's code:
    /// legacy, with an access list (EIP-2930), with priority fees (EIP-1559), with blobs (EIP-4844).
    pub(crate) fn pending(&self) -> Option<PendingTransaction> {
        let Quantity(0..=3) = self.kind.as_ref()? else { return None };
        let native = self.native()?;
        Some(PendingTransaction { native, transfer: self.input.as_ref().and_then(|input| transfer(&input.0)) })
    }

    /// Its own transfer of the native coin; `None` if any part of that is missing.
    pub(crate) fn native(&self) -> Option<NativeTransfer> {
        Some(NativeTransfer {
            from: self.from.as_ref()?.0,
            to: self.to.as_ref()?.map(|to| to.0),
            value: TokenUnits::from_word(self.value.as_ref()?.0),
            has_input: !self.input.as_ref()?.0.is_empty(),
        })
    }
}

/// Recipient and amount, if the call data is a token's `transfer`.
fn transfer(input: &[u8]) -> Option<(Address, TokenUnits)> {
    let arguments = input.strip_prefix(&TRANSFER)?;
    let (receiver, rest) = arguments.split_first_chunk::<32>()?;
    let (padding, receiver) = receiver.split_first_chunk::<12>()?;
    let amount = TokenUnits::from_word(*rest.first_chunk::<32>()?);
    (*padding == [0; 12]).then_some((Address::from_bytes(receiver.try_into().ok()?), amount))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn ordinary() -> Value {
        json!({
            "hash": format!("0x{}", "01".repeat(32)), "blockHash": null, "from": format!("0x{}", "02".repeat(20)),
            "to": format!("0x{}", "03".repeat(20)), "value": "0x5", "input": "0x", "type": "0x2",
        })
    }

    fn read(value: Value) -> Transaction {
        serde_json::from_str(&value.to_string()).unwrap()
    }

    #[test]
    fn ordinary_transaction_shows_its_native_transfer() {
        let native = read(ordinary()).native().unwrap();
        assert_eq!((native.value, native.has_input), (TokenUnits::new(5), false));
        let creation = Value::Null;
        let mut transaction = ordinary();
        transaction["to"] = creation;
        assert_eq!(read(transaction).native().unwrap().to, None);
    }

    #[test]
    fn missing_or_odd_fields_mean_no_native_transfer() {
        for field in ["from", "to", "value", "input"] {
            let mut missing = ordinary();
            missing.as_object_mut().unwrap().remove(field);
            assert_eq!(read(missing).native(), None, "without {field}");
            for odd in [json!(7), json!("seven"), json!([]), json!({"to": []}), json!(true), json!("0x0g")] {
                let mut transaction = ordinary();
                transaction[field] = odd.clone();
                assert_eq!(read(transaction).native(), None, "{field}: {odd}");
            }
        }
        assert_eq!(read(json!({})).native(), None);
    }

    #[test]
    fn pending_transaction_is_shown_for_plain_types() {
        let call = format!("0xa9059cbb{}{}{:064x}", "0".repeat(24), "04".repeat(20), 7);
        let of = |kind: Value, input: &str| {
            let mut transaction = ordinary();
            (transaction["type"], transaction["input"]) = (kind, json!(input));
            read(transaction).pending()
        };
        let moved = Some((Address::from_bytes([4; 20]), TokenUnits::new(7)));
        assert_eq!(of(json!("0x2"), &call).unwrap().transfer, moved);
        assert_eq!(of(json!("0x0"), &format!("{call}ff")).unwrap().transfer, moved, "trailing data is ignored");
        assert_eq!(of(json!("0x1"), "0xa9059cbb").unwrap().transfer, None);
        assert_eq!(of(json!("0x2"), &call.replace("cbb0", "cbb1")).unwrap().transfer, None);
        // Set code (EIP-7702), a list of calls, an unknown type, no type, and a type that is not a string.
        for kind in [json!("0x4"), json!("0x76"), json!("0x7f"), Value::Null, json!(2)] {
            assert_eq!(of(kind.clone(), "0x"), None, "{kind}");
        }
    }

    #[test]
    fn a_block_that_is_named_must_be_the_receipts() {
        let hash = Word([7; 32]);
        let with = |block: Value| {
            let mut transaction = ordinary();
            transaction["blockHash"] = block;
            read(transaction)
        };
        assert!(with(json!(format!("0x{}", "07".repeat(32)))).may_be_in(hash));
        assert!(!with(json!(format!("0x{}", "08".repeat(32)))).may_be_in(hash));
        assert!(!with(Value::Null).may_be_in(hash), "it says that it is in no block");
        assert!(read(json!({})).may_be_in(hash), "it says nothing about its block");
    }
}
