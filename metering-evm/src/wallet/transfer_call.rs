//! The call that executes a signed authorization (EIP-3009).

use metering_core::chains::Address;
use metering_core::offers::{Authorization, SignedAuthorization};

use crate::call::word_of;

/// `transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)`.
const BY_KEY: [u8; 4] = [0xe3, 0xee, 0x16, 0x0e];

/// `transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)`, which only newer contracts have.
const BY_BYTES: [u8; 4] = [0xcf, 0x09, 0x29, 0x95];

const WORD: usize = 32;

/// The token's contract, and the input of the call.
///
/// The signature of a private key is passed as three numbers, which every such token understands. Any other is passed
/// unchanged: the signature of a contract (EIP-1271).
pub(super) fn transfer_call(signed: &SignedAuthorization) -> (Address, Vec<u8>) {
    let Authorization { from, to, value, valid_after, valid_before, nonce } = signed.authorization;
    let terms = [
        word_of(from),
        word_of(to),
        number(value.get()),
        number(valid_after.into()),
        number(valid_before.into()),
        *nonce.as_bytes(),
    ];
    let signature = signed.signature.as_bytes();
    let input = match key_signature(signature) {
        Some((r, s, v)) => [&BY_KEY[..], terms.as_flattened(), &number(v.into()), r, s].concat(),
        // The signature follows the seven words of the arguments.
        None => [&BY_BYTES[..], terms.as_flattened(), &number(7 * 32), &bytes(signature)].concat(),
    };
    (signed.token, input)
}

/// Bytes in the contract ABI: their length, and they themselves, padded to words.
pub(super) fn bytes(bytes: &[u8]) -> Vec<u8> {
    let length = u128::try_from(bytes.len()).unwrap_or(u128::MAX);
    let padding = vec![0; bytes.len().next_multiple_of(WORD) - bytes.len()];
    [&number(length)[..], bytes, &padding].concat()
}

/// The parts r, s and v of a signature that a key made. Contracts accept only 27 and 28 as v, but some clients write 0
/// and 1.
pub(super) fn key_signature(signature: &[u8]) -> Option<(&[u8], &[u8], u8)> {
    let (r, rest) = signature.split_at_checked(WORD)?;
    let (s, v) = rest.split_at_checked(WORD)?;
    match *v {
        [v @ (0 | 1)] => Some((r, s, v + 27)),
        [v @ (27 | 28)] => Some((r, s, v)),
        _ => None,
    }
}

pub(super) fn number(number: u128) -> [u8; WORD] {
    let mut word = [0; WORD];
    word[16..].copy_from_slice(&number.to_be_bytes());
    word
}

#[cfg(test)]
mod tests {
    use metering_core::chains::{TokenUnits, WalletSignature};
    use metering_core::offers::AuthorizationNonce;
    use sha3::{Digest, Keccak256};

    use super::*;

    #[test]
    fn selectors_are_the_hashes_of_the_signatures() {
        let signature = |end: &str| {
            let text = format!("transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,{end})");
            <[u8; 32]>::from(Keccak256::digest(text))
        };
        assert_eq!(BY_KEY, signature("uint8,bytes32,bytes32")[..4]);
        assert_eq!(BY_BYTES, signature("bytes")[..4]);
    }

    fn input(signature: &str) -> String {
        let authorization = Authorization {
            from: Address::from_bytes([0x11; 20]),
            to: Address::from_bytes([0x22; 20]),
            value: TokenUnits::new(50_000),
            valid_after: 1,
            valid_before: 0x684e_df2c,
            nonce: AuthorizationNonce::from_bytes([0x33; 32]),
        };
        let signature = WalletSignature::parse(signature).unwrap();
        let token = Address::from_bytes([0x44; 20]);
        let (to, input) = transfer_call(&SignedAuthorization { chain_id: 1, token, authorization, signature });
        assert_eq!(to, token);
        hex::encode(input)
    }

    const TERMS: &str = concat!(
        "0000000000000000000000001111111111111111111111111111111111111111",
        "0000000000000000000000002222222222222222222222222222222222222222",
        "000000000000000000000000000000000000000000000000000000000000c350",
        "0000000000000000000000000000000000000000000000000000000000000001",
        "00000000000000000000000000000000000000000000000000000000684edf2c",
        "3333333333333333333333333333333333333333333333333333333333333333",
    );

    #[test]
    fn signatures_of_keys_are_passed_as_numbers() {
        let (r, s) = ("55".repeat(32), "66".repeat(32));
        for (v, passed) in [("00", "1b"), ("01", "1c"), ("1b", "1b"), ("1c", "1c")] {
            let expected = format!("e3ee160e{TERMS}{passed:0>64}{r}{s}");
            assert_eq!(input(&format!("0x{r}{s}{v}")), expected, "{v}");
        }
    }

    #[test]
    fn other_signatures_are_passed_as_they_are() {
        // bytes, words of the signature
        for (bytes, words) in [(1, 1), (32, 1), (64, 2), (65, 3), (66, 3), (300, 10)] {
            let signature = "1d".repeat(bytes);
            let length = format!("{bytes:064x}");
            let padded = format!("{signature:0<width$}", width = words * 64);
            let expected = format!("cf092995{TERMS}{:0>64}{length}{padded}", "e0");
            assert_eq!(input(&format!("0x{signature}")), expected, "{bytes}");
        }
    }
}
