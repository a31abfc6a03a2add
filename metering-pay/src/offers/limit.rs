//! A limit on new payments: checking one costs requests to a chain's node before any money has moved.

use std::fmt;
use std::net::IpAddr;

use metering_core::chains::Address;

/// Limits how many new payments are checked. Known ones are not counted, so a client that waits for a payment may send
/// it again as often as needed.
pub trait PaymentLimit: Send + Sync + fmt::Debug {
    /// Counts a payment.
    ///
    /// # Errors
    /// When a limit is reached. The payment is then neither checked nor stored.
    fn count(&self, attempt: &PaymentAttempt) -> Result<(), TooManyPayments>;
}

/// A payment to check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PaymentAttempt {
    /// The sender's address, if known.
    pub client: Option<IpAddr>,
    /// The claimed owner of the tokens that it moves.
    pub payer: Address,
    /// Whether the payer's private key signed it. Otherwise it may be made up, until the chain confirms that the payer
    /// is a contract that accepts it.
    pub is_signed: bool,
}

/// Too many new payments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("Too many payments from {source_of}; nothing was taken. Try again in {retry_after_seconds} s.")]
pub struct TooManyPayments {
    /// Their common property.
    pub source_of: PaymentSource,
    /// How long until another one is checked.
    pub retry_after_seconds: u64,
}

/// The common property of payments under one limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaymentSource {
    /// The client's network address.
    Client,
    /// The wallet that pays.
    Payer,
}

impl fmt::Display for PaymentSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Client => "your network address",
            Self::Payer => "this wallet",
        })
    }
}
