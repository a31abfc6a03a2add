//! The call that transfers a part of a signed permit: `settle` of x402's proxy for the scheme `upto`.

use metering_core::chains::{Address, TokenUnits};
use metering_core::offers::{Authorization, SignedAuthorization, UPTO_PROXY};

use super::transfer_call::{bytes, key_signature, number};
use crate::call::word_of;

/// `settle(((address,uint256),uint256,uint256),uint256,address,(address,address,uint256),bytes)`.
const SETTLE: [u8; 4] = [0xff, 0x11, 0xe7, 0xb4];

/// The proxy, and the input of the call that transfers `amount`. `facilitator` must send the transaction.
pub(super) fn permit_call(
    signed: &SignedAuthorization,
    facilitator: Address,
    amount: TokenUnits,
) -> (Address, Vec<u8>) {
    let Authorization { from, to, value, valid_after, valid_before, nonce } = signed.authorization;
    let arguments = [
        word_of(signed.token),
        number(value.get()),
        *nonce.as_bytes(),
        number(valid_before.into()),
        number(amount.get()),
        word_of(from),
        word_of(to),
        word_of(facilitator),
        number(valid_after.into()),
        // The signature follows the ten words of the arguments.
        number(10 * 32),
    ];
    // Permit2 accepts only 27 and 28 as v.
    let signature = match key_signature(signed.signature.as_bytes()) {
        Some((r, s, v)) => [r, s, &[v]].concat(),
        None => signed.signature.as_bytes().to_vec(),
    };
    (UPTO_PROXY, [&SETTLE[..], arguments.as_flattened(), &bytes(&signature)].concat())
}

#[cfg(test)]
mod tests {
    use metering_core::chains::WalletSignature;
    use metering_core::offers::AuthorizationNonce;
    use serde_json::Value;
    use sha3::{Digest, Keccak256};

    use super::*;

    const VECTOR: &str = include_str!("../../../metering-pay/tests/vectors/payments/x402-v2-upto.json");

    #[test]
    fn the_selector_is_the_hash_of_the_signature() {
        let text = "settle(((address,uint256),uint256,uint256),uint256,address,(address,address,uint256),bytes)";
        assert_eq!(SETTLE, Keccak256::digest(text)[..4]);
    }

    /// The permit of a published client, with this as the v of its signature.
    fn signed(v: &str) -> SignedAuthorization {
        let vector: Value = serde_json::from_str(VECTOR).unwrap();
        let payload = &vector["payload"]["payload"];
        let permit = &payload["permit2Authorization"];
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let authorization = Authorization {
            from: text(&permit["from"]).parse().unwrap(),
            to: text(&permit["witness"]["to"]).parse().unwrap(),
            value: text(&permit["permitted"]["amount"]).parse().unwrap(),
            valid_after: text(&permit["witness"]["validAfter"]).parse().unwrap(),
            valid_before: text(&permit["deadline"]).parse().unwrap(),
            nonce: AuthorizationNonce::of_permit(&text(&permit["nonce"])).unwrap(),
        };
        let signature = text(&payload["signature"]);
        let signature = WalletSignature::parse(&format!("{}{v}", &signature[..signature.len() - 2])).unwrap();
        let token = text(&permit["permitted"]["token"]).parse().unwrap();
        SignedAuthorization { chain_id: 84_532, token, authorization, signature }
    }

    #[test]
    fn the_call_is_the_one_that_viem_encodes() {
        let vector: Value = serde_json::from_str(VECTOR).unwrap();
        for v in ["1c", "01"] {
            let (to, input) = permit_call(&signed(v), Address::from_bytes([0x99; 20]), TokenUnits::new(3_100));
            assert_eq!(to, UPTO_PROXY);
            assert_eq!(format!("0x{}", hex::encode(input)), vector["settle_3100"].as_str().unwrap(), "{v}");
        }
    }
}
