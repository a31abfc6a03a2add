//! The nonce that the payer of a challenge signs.

use sha3::{Digest, Keccak256};

use crate::offers::AuthorizationNonce;
use crate::wire::mpp::realm::Realm;

/// The nonces that are valid for a challenge. Two formulas are in use: draft-evm-charge-01 and npm's mppx 0.11 hash the
/// id followed by the realm; `PyPI`'s pympp 0.16 and later versions of mppx hash both as a JSON list. Ids have a fixed
/// length, so neither is ambiguous.
pub(super) fn nonces(id: &str, realm: &Realm) -> [AuthorizationNonce; 2] {
    let list = serde_json::json!([id, realm.as_str()]).to_string();
    let keccak = |text: String| AuthorizationNonce::from_bytes(Keccak256::digest(text).into());
    [keccak(format!("{id}{}", realm.as_str())), keccak(list)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::vectors::vector;

    #[test]
    fn both_formulas_are_those_of_published_clients() {
        for file in ["mpp-evm-authorization", "mpp-evm-payment-authorization-header", "mpp-evm-authorization-pympp"] {
            let vector = vector(file);
            let id = vector["credential"]["challenge"]["id"].as_str().unwrap();
            let [concatenated, list] = nonces(id, &"api.example.com".parse().unwrap()).map(|nonce| nonce.to_string());
            assert_eq!(list, vector["challenge_hash_json"].as_str().unwrap(), "{file}");
            if let Some(hash) = vector.get("challenge_hash_concat") {
                assert_eq!(&concatenated, hash.as_str().unwrap(), "{file}");
            }
        }
    }
}
