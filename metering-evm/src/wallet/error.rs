//! Errors of wallets and payers. Each message says what to do next.

use metering_core::chains::{Address, TokenUnits};

/// Why a private key or key file cannot be used. Never repeats any part of either.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WalletError {
    /// The text is not a private key.
    #[error("This is not a private key: it must be 64 hexadecimal digits, with or without 0x.")]
    Malformed,
    /// The text looks like a private key, but its number is invalid.
    #[error("This is not a valid private key: its number is zero or not below the curve's order.")]
    OutOfRange,
    /// The file cannot be read.
    #[error("The key file is damaged: {0}. Export it from the wallet again.")]
    Damaged(String),
    /// The file has an unsupported format.
    #[error("The key file cannot be used: {0}. Export it from the wallet as Web3 Secret Storage, version 3.")]
    Unsupported(String),
    /// Decrypting the file would take far more memory or time than usual.
    #[error("The key file was not opened: decrypting it would take {0}, more than any wallet uses.")]
    TooCostly(String),
    /// The file is encrypted, and there is no password.
    #[error("The key file is encrypted, and needs its password.")]
    NoPassword,
    /// The password does not open the file.
    #[error("The password does not open the key file: try another. If it is right, the file has been modified.")]
    WrongPassword,
    /// The file's key does not belong to the file's address.
    #[error("The key file is damaged: its key does not belong to the address that it names.")]
    OtherAddress,
}

/// Why a payment was not made, or why its outcome is not known yet.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PayError {
    /// The source cannot be used at all.
    #[error("The RPC URL cannot be used: {0}.")]
    Source(String),
    /// The source does not serve the payment's chain.
    #[error("The payment is for chain {expected}, but the RPC URL serves chain {found}: use one for chain {expected}.")]
    WrongChain {
        /// The chain of the payment.
        expected: u64,
        /// The chain of the source.
        found: u64,
    },
    /// The order is invalid: its amount is zero, or its recipient is the zero address.
    #[error("This cannot be paid: {0}.")]
    Order(&'static str),
    /// There is no token at that address.
    #[error("There is no token at {0} on this chain. Nothing was sent.")]
    NoToken(Address),
    /// The wallet's balance is below the amount to pay, in smallest units.
    #[error(
        "The wallet has {have} of the {need} smallest units to pay. Nothing was sent. Fund the wallet, then try again."
    )]
    ShortOfTokens {
        /// The wallet's balance.
        have: TokenUnits,
        /// The amount to pay.
        need: TokenUnits,
    },
    /// The wallet has too little of the native coin for the fee, in its smallest unit.
    #[error(
        "The wallet has {have} wei, but may need {need} including the fee. Nothing was sent. Fund the wallet with the \
         chain's coin, then try again."
    )]
    ShortOfFees {
        /// The wallet's balance.
        have: TokenUnits,
        /// The highest possible fee, plus the payment itself if it is in the native coin.
        need: TokenUnits,
    },
    /// The fee may exceed the payer's limit.
    #[error("The fee could be {need} wei, more than the limit of {limit}. Nothing was sent. Try again later.")]
    FeesAboveLimit {
        /// The highest possible fee.
        need: TokenUnits,
        /// The limit.
        limit: TokenUnits,
    },
    /// A simulation of the payment failed.
    #[error("The payment would fail, so it was not sent: {0}.")]
    WouldRevert(String),
    /// Another transaction of the wallet with the same nonce is pending.
    #[error("Another transaction of the wallet with the same nonce is pending: wait for it, then try again.")]
    NonceTaken,
    /// Another transaction of the wallet with the same nonce was mined, so this one never will be.
    #[error("Another transaction of the wallet used this payment's nonce, so it was not made: make a new payment.")]
    Replaced,
    /// The bytes of the signed payment do not match its hash.
    #[error("The signed payment is damaged: its bytes do not match its hash.")]
    Damaged,
    /// The node refused the transaction, with this message.
    #[error("The node refused the payment: {0}.")]
    Refused(String),
    /// The source failed; a retry may succeed. It is not known whether the payment was sent.
    #[error("Could not reach the chain: {0}. Try again; a signed payment is never made twice.")]
    Rpc(String),
}
