//! Signed authorizations of token transfers (EIP-3009, `transferWithAuthorization`).
//!
//! The owner of tokens signs the recipient, amount and time; anyone may submit that to the token's contract, which
//! executes it once. The submitter pays the gas and cannot change anything.

use crate::chains::address::Address;
use crate::chains::signature::{WalletSignature, signer_of_digest};
use crate::chains::typed_data::{TokenDomain, address, keccak, number};
use crate::chains::units::TokenUnits;
use crate::clock::Timestamp;
use crate::hex_word::hex_word;

const TRANSFER_TYPE: &[u8] = b"TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)";

/// A number that the signer chose. A token's contract executes one authorization per signer and nonce.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AuthorizationNonce([u8; 32]);

/// The text is not a nonce.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be 0x followed by 64 hexadecimal digits")]
pub struct AuthorizationNonceError;

hex_word!(AuthorizationNonce, AuthorizationNonceError);

/// The message that the owner of tokens signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Authorization {
    /// The owner of the tokens, who signs.
    pub from: Address,
    /// Who receives them.
    pub to: Address,
    /// How many units.
    pub value: TokenUnits,
    /// Not valid up to and including this time, in seconds since 1970.
    pub valid_after: u64,
    /// Not valid from this time on, in seconds since 1970.
    pub valid_before: u64,
    /// The signer's nonce.
    pub nonce: AuthorizationNonce,
}

/// The requirements for a payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpectedTransfer {
    /// The required recipient.
    pub to: Address,
    /// How many units, exactly.
    pub value: TokenUnits,
}

/// Why an authorization is refused. Nothing was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AuthorizationFault {
    /// It pays another recipient.
    #[error("it pays {found}, not {expected}")]
    Recipient {
        /// The required recipient.
        expected: Address,
        /// The named recipient.
        found: Address,
    },
    /// The amount is too large or too small.
    #[error("it pays {} units, not {}", found.get(), expected.get())]
    Amount {
        /// The amount on offer.
        expected: TokenUnits,
        /// The amount it names.
        found: TokenUnits,
    },
    /// It is not valid yet.
    #[error("it is not valid before {valid_after} (seconds since 1970)")]
    NotYetValid {
        /// Its `validAfter`.
        valid_after: u64,
    },
    /// It has expired, or expires before it could be in a block.
    #[error("it expires at {valid_before} (seconds since 1970), too soon to be executed")]
    Expired {
        /// Its `validBefore`.
        valid_before: u64,
    },
    /// The signature is a contract's, but the payer's address has no contract.
    #[error("the signature is that of a contract, and there is none at {payer} on this chain; deploy the wallet first")]
    NotDeployed {
        /// The expected signer.
        payer: Address,
    },
    /// The signature is not the payer's.
    #[error("the signature is not that of {payer}")]
    Signature {
        /// The expected signer.
        payer: Address,
    },
}

impl AuthorizationFault {
    /// Whether it would be valid at another time. It may have been executed then.
    #[must_use]
    pub const fn is_about_time(&self) -> bool {
        matches!(self, Self::NotYetValid { .. } | Self::Expired { .. })
    }
}

impl Authorization {
    /// An authorization that expires sooner than this is refused: it could expire before it is in a block. The x402
    /// facilitators use the same margin.
    pub const MARGIN_SECONDS: u64 = 6;

    /// The hash of the message (`hashStruct`, EIP-712).
    #[must_use]
    pub fn message(&self) -> [u8; 32] {
        keccak(&[
            keccak(&[TRANSFER_TYPE]),
            address(self.from),
            address(self.to),
            number(self.value.get()),
            number(self.valid_after.into()),
            number(self.valid_before.into()),
            *self.nonce.as_bytes(),
        ])
    }

    /// The digest that its owner signs.
    #[must_use]
    pub fn digest(&self, domain: &TokenDomain) -> [u8; 32] {
        domain.digest(self.message())
    }

    /// Checks its fields, without its signature and without a chain.
    ///
    /// # Errors
    /// The first rule that it breaks: recipient, amount, times.
    pub fn check(&self, expected: ExpectedTransfer, now: Timestamp) -> Result<(), AuthorizationFault> {
        if self.to != expected.to {
            return Err(AuthorizationFault::Recipient { expected: expected.to, found: self.to });
        }
        if self.value != expected.value {
            return Err(AuthorizationFault::Amount { expected: expected.value, found: self.value });
        }
        let now = u64::try_from(now.unix_millis() / 1_000).unwrap_or(0);
        if now <= self.valid_after {
            return Err(AuthorizationFault::NotYetValid { valid_after: self.valid_after });
        }
        if self.valid_before <= now.saturating_add(Self::MARGIN_SECONDS) {
            return Err(AuthorizationFault::Expired { valid_before: self.valid_before });
        }
        Ok(())
    }

    /// Whether the owner's private key made this signature. Only the chain can verify the signature of a contract
    /// wallet (EIP-1271).
    #[must_use]
    pub fn is_signed_by_key(&self, domain: &TokenDomain, signature: &WalletSignature) -> bool {
        signer_of_digest(&self.digest(domain), signature) == Some(self.from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usdc() -> TokenDomain {
        let contract = "0x036CbD53842c5426634e7929541eC2318f3dCF7e".parse().unwrap();
        TokenDomain { name: "USDC".to_owned(), version: "2".to_owned(), chain_id: 84_532, contract }
    }

    fn authorization() -> Authorization {
        Authorization {
            from: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8".parse().unwrap(),
            to: "0x209693Bc6afc0C5328bA36FaF03C514EF312287C".parse().unwrap(),
            value: TokenUnits::new(50_000),
            valid_after: 0,
            valid_before: 1_750_000_300,
            nonce: "0x01080f161d242b323940474e555c636a71787f868d949ba2a9b0b7bec5ccd3da".parse().unwrap(),
        }
    }

    /// The signature of `@x402/evm` 2.27.0.
    const SIGNATURE: &str = "0x37ee65cd4e139b9478e44acabdd5f6802993591aaeb2f01a38b38069ba9501a513649d70b1d7e4b6ffa34836f9d218bdee8263d490cbe1fca234446e13c137801b";

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_unix_millis(seconds * 1_000)
    }

    #[test]
    fn the_signature_of_a_stock_client_is_verified() {
        let digest = "932f7e346d2a0462e75876db2636bc7d9a28416858154470653188d116e12725";
        assert_eq!(hex::encode(authorization().digest(&usdc())), digest);
        let signature = WalletSignature::parse(SIGNATURE).unwrap();
        assert!(authorization().is_signed_by_key(&usdc(), &signature));
    }

    #[test]
    fn a_signature_covers_every_field() {
        let signature = WalletSignature::parse(SIGNATURE).unwrap();
        let (signed, other) = (authorization(), Address::from_bytes([7; 20]));
        let mut nonce = *signed.nonce.as_bytes();
        nonce[31] ^= 1;
        let altered = [
            Authorization { from: other, ..signed },
            Authorization { to: other, ..signed },
            Authorization { value: TokenUnits::new(50_001), ..signed },
            Authorization { valid_after: 1, ..signed },
            Authorization { valid_before: 1_750_000_301, ..signed },
            Authorization { nonce: AuthorizationNonce::from_bytes(nonce), ..signed },
        ];
        for altered in altered {
            assert!(!altered.is_signed_by_key(&usdc(), &signature), "{altered:?}");
        }
        let domains = [
            TokenDomain { name: "USD Coin".to_owned(), ..usdc() },
            TokenDomain { version: "1".to_owned(), ..usdc() },
            TokenDomain { chain_id: 8_453, ..usdc() },
            TokenDomain { contract: other, ..usdc() },
        ];
        for domain in domains {
            assert!(!signed.is_signed_by_key(&domain, &signature), "{domain:?}");
        }
    }

    #[test]
    fn only_what_was_asked_for_and_is_valid_now_passes() {
        use AuthorizationFault::{Amount, Expired, NotYetValid, Recipient};
        let signed = Authorization { valid_after: 1_000, valid_before: 2_000, ..authorization() };
        let expected = ExpectedTransfer { to: signed.to, value: signed.value };
        let check = |expected, seconds| signed.check(expected, at(seconds));
        let other = Address::from_bytes([7; 20]);
        let recipient = ExpectedTransfer { to: other, ..expected };
        assert_eq!(check(recipient, 1_500), Err(Recipient { expected: other, found: signed.to }));
        for units in [49_999, 50_001] {
            let value = TokenUnits::new(units);
            let refused = check(ExpectedTransfer { value, ..expected }, 1_500);
            assert_eq!(refused, Err(Amount { expected: value, found: signed.value }));
        }
        let (early, late) = (NotYetValid { valid_after: 1_000 }, Expired { valid_before: 2_000 });
        let table = [
            (-1, Err(early)),
            (1_000, Err(early)),
            (1_001, Ok(())),
            (1_993, Ok(())),
            (1_994, Err(late)),
            (2_001, Err(late)),
        ];
        for (seconds, result) in table {
            assert_eq!(check(expected, seconds), result, "{seconds}");
            assert!(result.err().is_none_or(|fault| fault.is_about_time()));
        }
        assert!(!Recipient { expected: other, found: other }.is_about_time());
        let endless = Authorization { valid_before: u64::MAX, ..signed };
        assert_eq!(endless.check(expected, at(1_500)), Ok(()));
    }

    #[test]
    fn nonces_are_32_bytes_in_hexadecimal() {
        let text = format!("0x{}", "0f".repeat(32));
        let nonce: AuthorizationNonce = text.parse().unwrap();
        assert_eq!((nonce.to_string(), format!("{nonce:?}")), (text.clone(), text.clone()));
        for wrong in ["", "0x", &text[2..], &text[..65], &format!("{text}00"), &text.replace('f', "g")] {
            assert_eq!(wrong.parse::<AuthorizationNonce>(), Err(AuthorizationNonceError), "{wrong}");
        }
    }
}
