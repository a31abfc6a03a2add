//! Who signs what a service states about its offers and receipts.

use std::fmt;

use metering_core::chains::{Address, WalletSignature};

/// A private key of the service, for the extension `offer-receipt` of x402. It needs no coins, and moves none.
pub trait StatementSigner: Send + Sync + fmt::Debug {
    /// Its address, which verifiers compare with the recipient of payments, or look up elsewhere.
    fn address(&self) -> Address;

    /// Signs a digest.
    fn sign(&self, digest: [u8; 32]) -> WalletSignature;
}
