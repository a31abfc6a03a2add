//! What goes wrong for those who pay. Each error is a sentence that says what to do.

use metering_core::{Address, TokenUnits};

/// There is no wallet to be had of what was given. Never repeats any of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WalletError {
    /// It is no private key.
    #[error("This is no private key: it must be 64 hexadecimal digits, with or without 0x.")]
    Malformed,
    /// It looks like a private key, but is none.
    #[error("This is no private key: its number is zero or beyond the curve's order.")]
    OutOfRange,
    /// The file cannot be read.
    #[error("The key file is damaged: {0}. Export it from the wallet again.")]
    Damaged(String),
    /// The file is made in a way that is not known here.
    #[error("The key file cannot be used: {0}. Export it from the wallet as Web3 Secret Storage, version 3.")]
    Unsupported(String),
    /// Opening the file would take more memory or time than any wallet asks for.
    #[error("The key file wants {0} to be opened, which is more than any wallet asks for: it was not opened.")]
    TooCostly(String),
    /// The password does not open the file.
    #[error("The password does not open the key file: try another. If it is right, the file has been changed.")]
    WrongPassword,
    /// The file's key is not the key of the file's address.
    #[error("The key file is damaged: its key is of another address than the one it names.")]
    OtherAddress,
}

/// Why a payment was not made, or nobody knows yet.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PayError {
    /// The source cannot be used at all.
    #[error("The RPC URL cannot be used: {0}.")]
    Source(String),
    /// The source is of another chain than the payment.
    #[error("The payment is for chain {expected}, but the RPC URL is of chain {found}: name one of chain {expected}.")]
    WrongChain {
        /// The chain of the payment.
        expected: u64,
        /// The chain of the source.
        found: u64,
    },
    /// Nothing can be paid so: nothing at all, or to nobody.
    #[error("This cannot be paid: {0}.")]
    Order(&'static str),
    /// There is no token at that address.
    #[error("There is no token at {0} on this chain: nothing was sent.")]
    NoToken(Address),
    /// The wallet has too little of what is to be paid, in smallest units.
    #[error("The wallet has {have} of the {need} smallest units to pay: fund it, then try again. Nothing was sent.")]
    ShortOfTokens {
        /// What it has.
        have: TokenUnits,
        /// What is to be paid.
        need: TokenUnits,
    },
    /// The wallet has too little of the native coin for the fee, in its smallest unit.
    #[error(
        "The wallet has {have} wei and may need {need} with the fee: fund it with the chain's coin, then try again. \
         Nothing was sent."
    )]
    ShortOfFees {
        /// What it has.
        have: TokenUnits,
        /// What the payment can cost at most; with the payment itself where that is native.
        need: TokenUnits,
    },
    /// The fee is more than the payer wants to spend.
    #[error("The fee could be {need} wei, more than the limit of {limit}: try again later. Nothing was sent.")]
    FeesAboveLimit {
        /// What the fee can be at most.
        need: TokenUnits,
        /// What it may be.
        limit: TokenUnits,
    },
    /// The payment was tried out, and refused.
    #[error("The payment would fail, so it was not sent: {0}.")]
    WouldRevert(String),
    /// Another transaction of the wallet waits in this one's place.
    #[error("Another transaction of the wallet waits in this payment's place: wait for it, then try again.")]
    PlaceTaken,
    /// Another transaction of the wallet took this one's place. It will never be mined.
    #[error("Another transaction of the wallet took this payment's place: it was not made, and can be made anew.")]
    Replaced,
    /// The signed payment is not whole.
    #[error("The signed payment is damaged: it is not the transaction that it names.")]
    Damaged,
    /// The node refused the transaction, in its own words.
    #[error("The node refused the payment: {0}.")]
    Refused(String),
    /// The source failed; the same can be asked again. Whether a payment that was to be sent was sent is not known.
    #[error("The chain could not be asked: {0}. Try again; a payment that was signed is never made twice.")]
    Rpc(String),
}
