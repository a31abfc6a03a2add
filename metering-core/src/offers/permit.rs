//! Signed permits to transfer at most an amount (Permit2, `permitWitnessTransferFrom`), as x402's scheme `upto` uses them.
//!
//! The owner of tokens has approved the contract Permit2, and signs the recipient, the facilitator, and the maximum
//! amount. One facilitator, which is part of the signed message, lets a proxy contract transfer any part of the amount,
//! once.

use crate::chains::address::Address;
use crate::chains::signature::signer_of_digest;
use crate::chains::typed_data::{address, keccak, number};
use crate::offers::authorization::AuthorizationNonce;
use crate::offers::record::SignedAuthorization;

/// Permit2, which has this address on every chain: `0x000000000022D473030F116dDEE9F6B43aC78BA3`.
pub const PERMIT2: Address = Address::from_bytes([
    0x00, 0x00, 0x00, 0x00, 0x00, 0x22, 0xd4, 0x73, 0x03, 0x0f, 0x11, 0x6d, 0xde, 0xe9, 0xf6, 0xb4, 0x3a, 0xc7, 0x8b,
    0xa3,
]);

/// x402's proxy for `upto`, the spender of such permits, on every chain: `0x4020A4f3b7b90ccA423B9fabCc0CE57C6C240002`.
pub const UPTO_PROXY: Address = Address::from_bytes([
    0x40, 0x20, 0xa4, 0xf3, 0xb7, 0xb9, 0x0c, 0xca, 0x42, 0x3b, 0x9f, 0xab, 0xcc, 0x0c, 0xe5, 0x7c, 0x6c, 0x24, 0x00,
    0x02,
]);

/// Permit2's domain has no version.
const DOMAIN_TYPE: &[u8] = b"EIP712Domain(string name,uint256 chainId,address verifyingContract)";
const PERMISSIONS_TYPE: &[u8] = b"TokenPermissions(address token,uint256 amount)";
const WITNESS_TYPE: &[u8] = b"Witness(address to,address facilitator,uint256 validAfter)";
const PERMIT_TYPE: &[u8] = b"PermitWitnessTransferFrom(TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline,Witness witness)";

/// A permit: an authorization whose value is the most, and whose `valid_before` is the deadline. The spender is
/// [`UPTO_PROXY`].
#[derive(Debug, Clone, Copy)]
pub struct Permit<'s> {
    /// The signed fields, except for the facilitator.
    pub signed: &'s SignedAuthorization,
    /// The facilitator that may execute it.
    pub facilitator: Address,
}

impl Permit<'_> {
    /// The message that the owner of the tokens signs (EIP-712).
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        let SignedAuthorization { chain_id, token, authorization, .. } = self.signed;
        let domain =
            keccak(&[keccak(&[DOMAIN_TYPE]), keccak(&[b"Permit2"]), number((*chain_id).into()), address(PERMIT2)]);
        let permitted = keccak(&[keccak(&[PERMISSIONS_TYPE]), address(*token), number(authorization.value.get())]);
        let witness = keccak(&[
            keccak(&[WITNESS_TYPE]),
            address(authorization.to),
            address(self.facilitator),
            number(authorization.valid_after.into()),
        ]);
        let message = keccak(&[
            keccak(&[PERMIT_TYPE, PERMISSIONS_TYPE, WITNESS_TYPE]),
            permitted,
            address(UPTO_PROXY),
            *authorization.nonce.as_bytes(),
            number(authorization.valid_before.into()),
            witness,
        ]);
        keccak::<&[u8]>(&[b"\x19\x01", &domain, &message])
    }

    /// Whether the owner's private key signed it. Only the chain can verify the signature of a contract wallet.
    #[must_use]
    pub fn is_signed_by_key(&self) -> bool {
        signer_of_digest(&self.digest(), &self.signed.signature) == Some(self.signed.authorization.from)
    }
}

impl AuthorizationNonce {
    /// The nonce of a permit, which is a number of 256 bits: decimal digits, or `0x` and hexadecimal ones.
    #[must_use]
    pub fn of_permit(text: &str) -> Option<Self> {
        let mut word = [0_u8; 32];
        if let Some(digits) = text.strip_prefix("0x") {
            let fits = (1..=64).contains(&digits.len());
            hex::decode_to_slice(format!("{digits:0>64}"), &mut word).ok().filter(|()| fits)?;
            return Some(Self::from_bytes(word));
        }
        if text.is_empty() || !text.bytes().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        for digit in text.bytes() {
            let mut carry = digit - b'0';
            for byte in word.iter_mut().rev() {
                [carry, *byte] = (u16::from(*byte) * 10 + u16::from(carry)).to_be_bytes();
            }
            if carry != 0 {
                return None;
            }
        }
        Some(Self::from_bytes(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chains::signature::WalletSignature;
    use crate::chains::units::TokenUnits;
    use crate::offers::authorization::Authorization;

    const FACILITATOR: Address = Address::from_bytes([0x99; 20]);
    /// The values that `@x402/evm` 2.27.0 chose, with fixed bytes for random ones.
    const NONCE: &str = "466551747484457411779709312914667156594490364973438335691470772934613455834";
    /// The message that it signed.
    const SIGNATURE: &str = "0xbb25a197565b1fdf7fe2c12a3ec235898f9a03ef6620124e27af0c0d7549651119368f4097526058ca1867d4a1c0e1031814a7fe1c968dab1b4d3431f015bd9d1c";

    fn signed() -> SignedAuthorization {
        let authorization = Authorization {
            from: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8".parse().unwrap(),
            to: "0x209693Bc6afc0C5328bA36FaF03C514EF312287C".parse().unwrap(),
            value: TokenUnits::new(20_000),
            valid_after: 0,
            valid_before: 1_750_003_600,
            nonce: AuthorizationNonce::of_permit(NONCE).unwrap(),
        };
        let token = "0x036CbD53842c5426634e7929541eC2318f3dCF7e".parse().unwrap();
        let signature = WalletSignature::parse(SIGNATURE).unwrap();
        SignedAuthorization { chain_id: 84_532, token, authorization, signature }
    }

    #[test]
    fn addresses_are_those_of_the_specification() {
        assert_eq!(PERMIT2.to_checksummed(), "0x000000000022D473030F116dDEE9F6B43aC78BA3");
        assert_eq!(UPTO_PROXY.to_checksummed(), "0x4020A4f3b7b90ccA423B9fabCc0CE57C6C240002");
    }

    #[test]
    fn the_permit_of_a_stock_client_is_verified() {
        let signed = signed();
        let permit = Permit { signed: &signed, facilitator: FACILITATOR };
        // By viem 2.57.20.
        let digest = "513fb7e64caa9572fac551ba3a9de8c387722cb530bb184a7aa540e39ac691b7";
        assert_eq!(hex::encode(permit.digest()), digest);
        assert!(permit.is_signed_by_key());
    }

    #[test]
    fn a_signature_covers_every_field_and_the_facilitator() {
        let (signed, other) = (signed(), Address::from_bytes([7; 20]));
        let of = |authorization| SignedAuthorization { authorization, ..signed.clone() };
        let good = signed.authorization;
        let altered = [
            SignedAuthorization { chain_id: 8_453, ..signed.clone() },
            SignedAuthorization { token: other, ..signed.clone() },
            of(Authorization { from: other, ..good }),
            of(Authorization { to: other, ..good }),
            of(Authorization { value: TokenUnits::new(20_001), ..good }),
            of(Authorization { valid_after: 1, ..good }),
            of(Authorization { valid_before: 1_750_003_601, ..good }),
            of(Authorization { nonce: AuthorizationNonce::from_bytes([1; 32]), ..good }),
        ];
        for signed in &altered {
            assert!(!Permit { signed, facilitator: FACILITATOR }.is_signed_by_key(), "{signed:?}");
        }
        assert!(!Permit { signed: &signed, facilitator: other }.is_signed_by_key());
    }

    #[test]
    fn nonces_of_permits_are_numbers_of_256_bits() {
        let most = "115792089237316195423570985008687907853269984665640564039457584007913129639935";
        let word = |byte: u8| {
            let mut word = [0; 32];
            word[31] = byte;
            Some(AuthorizationNonce::from_bytes(word))
        };
        // text, nonce
        let table = [
            ("0", word(0)),
            ("007", word(7)),
            ("255", word(255)),
            ("0x7", word(7)),
            ("0xFf", word(255)),
            (most, Some(AuthorizationNonce::from_bytes([0xff; 32]))),
            ("115792089237316195423570985008687907853269984665640564039457584007913129639936", None),
            ("", None),
            ("0x", None),
            ("-1", None),
            ("1e3", None),
        ];
        for (text, nonce) in table {
            assert_eq!(AuthorizationNonce::of_permit(text), nonce, "{text}");
        }
        let read = AuthorizationNonce::of_permit(NONCE).unwrap().to_string();
        assert_eq!(read, "0x01080f161d242b323940474e555c636a71787f868d949ba2a9b0b7bec5ccd3da");
        assert_eq!(AuthorizationNonce::of_permit(&format!("0x{}", "0".repeat(65))), None);
    }
}
