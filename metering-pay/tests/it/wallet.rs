//! A wallet that signs authorizations.

use k256::ecdsa::SigningKey;
use metering_core::chains::{Address, TokenUnits, WalletSignature, signer_of_digest};
use metering_core::offers::{Authorization, AuthorizationNonce, SignedAuthorization};
use metering_pay::offers::{StatementSignature, StatementSigner};

use super::ledger::{CHAIN, RECIPIENT, TOKEN, domain};

#[derive(Debug, Clone)]
pub(super) struct Wallet {
    key: SigningKey,
    pub(super) address: Address,
}

impl StatementSigner for Wallet {
    fn sign(&self, digest: [u8; 32], _json: &[u8]) -> StatementSignature {
        StatementSignature::Eip712(self.sign_digest(digest))
    }
}

impl Wallet {
    /// The wallet of a number from 1 to 254; always the same.
    pub(super) fn of(number: u8) -> Self {
        let key = SigningKey::from_slice(&[number; 32]).unwrap();
        let unsigned = Self { key, address: Address::ZERO };
        let address = signer_of_digest(&[7; 32], &unsigned.sign_digest([7; 32])).unwrap();
        Self { address, ..unsigned }
    }

    pub(super) fn sign_digest(&self, digest: [u8; 32]) -> WalletSignature {
        let (signature, recovery) = self.key.sign_prehash_recoverable(&digest);
        let text = format!("0x{}{:02x}", hex::encode(signature.to_bytes()), 27 + recovery.to_byte());
        WalletSignature::parse(&text).unwrap()
    }

    /// An authorization of this wallet, with this nonce, that is valid for five minutes from `now`.
    pub(super) fn authorization(&self, units: u128, nonce: u8, now: u64) -> Authorization {
        Authorization {
            from: self.address,
            to: RECIPIENT,
            value: TokenUnits::new(units),
            valid_after: now - 600,
            valid_before: now + 300,
            nonce: AuthorizationNonce::from_bytes([nonce; 32]),
        }
    }

    pub(super) fn sign(&self, authorization: Authorization) -> SignedAuthorization {
        let signature = self.sign_digest(authorization.digest(&domain()));
        SignedAuthorization { chain_id: CHAIN, token: TOKEN, authorization, signature }
    }
}
