//! A wallet: a private key, its address, and its signatures (EIP-191).

use k256::ecdsa::SigningKey;
use metering_core::chains::{Address, WalletSignature, signer, signing_digest};

/// A wallet derived from a number.
#[derive(Debug, Clone)]
pub(super) struct Wallet {
    key: SigningKey,
    pub(super) address: Address,
}

impl Wallet {
    /// The wallet of a number from 1 to 254; always the same.
    pub(super) fn of(number: u8) -> Self {
        let key = SigningKey::from_slice(&[number; 32]).unwrap();
        let unsigned = Self { key, address: Address::ZERO };
        let probe = WalletSignature::parse(&unsigned.sign("which address is this?")).unwrap();
        let address = signer("which address is this?", &probe).unwrap();
        Self { address, ..unsigned }
    }

    /// Its signature of a text, in the form wallets print.
    pub(super) fn sign(&self, text: &str) -> String {
        let (signature, recovery) = self.key.sign_prehash_recoverable(&signing_digest(text));
        format!("0x{}{:02x}", hex::encode(signature.to_bytes()), 27 + recovery.to_byte())
    }
}
