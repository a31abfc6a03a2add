//! The challenge that a wallet signs to replace the key of the account it paid for.

use std::time::Duration;

use crate::access::account::AccountId;
use crate::chains::address::Address;
use crate::clock::Timestamp;

/// A text to sign, and the account whose key the signature replaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge {
    /// Its unique id. Not a secret.
    pub nonce: String,
    /// The wallet that must sign.
    pub address: Address,
    /// The account whose key is replaced.
    pub account: AccountId,
    /// The exact text to sign.
    pub message: String,
    /// The latest time at which a signature is accepted.
    pub expires_at: Timestamp,
    /// How many wrong signatures were sent.
    pub failures: u32,
}

impl Challenge {
    /// After this many wrong signatures the challenge is void.
    pub const MAX_FAILURES: u32 = 5;
    /// How long an expired challenge is kept, so a late attempt gets the right error.
    pub const RETENTION: Duration = Duration::from_secs(24 * 60 * 60);

    /// The text to sign. It names the service and the effect of signing, so one service cannot pass off another's
    /// challenge as its own.
    #[must_use]
    pub fn message(service: &str, address: Address, nonce: &str, expires_at: Timestamp, terms_url: &str) -> String {
        format!(
            "{service} asks you to replace the API key of your account.\n\
             \n\
             Signing this gives whoever asked for it a new API key. The old key stops working at once.\n\
             It moves no money.\n\
             \n\
             Address: {}\n\
             Nonce: {nonce}\n\
             Expires: {expires_at}\n\
             Terms: {terms_url}",
            address.to_checksummed()
        )
    }
}
