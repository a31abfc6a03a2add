//! The signer of a service's statements about its offers and receipts.

use std::fmt;

use metering_core::chains::WalletSignature;

/// A private key of the service, for the extension `offer-receipt` of x402. It needs no coins, and moves none.
pub trait StatementSigner: Send + Sync + fmt::Debug {
    /// Signs a statement in the format of this key: its digest (EIP-712), or its canonical JSON (RFC 8785).
    fn sign(&self, digest: [u8; 32], json: &[u8]) -> StatementSignature;
}

/// A signature, in one of the formats of the extension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StatementSignature {
    /// For the digest, by a wallet. Verifiers compare its address with the recipient of payments, or look it up
    /// elsewhere.
    Eip712(WalletSignature),
    /// A JWS in the compact form, whose payload is the JSON. Its header names the key by a DID URL (`kid`).
    Jws(String),
}
