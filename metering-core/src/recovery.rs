//! Key rotation by the wallet that paid: the challenge, and who may answer it.

use std::time::Duration;

use crate::account::AccountId;
use crate::address::Address;
use crate::clock::Timestamp;

/// A text to sign, and what signing it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge {
    /// What names it: unique, and no secret.
    pub nonce: String,
    /// The wallet that must sign.
    pub address: Address,
    /// The account whose key is replaced.
    pub account: AccountId,
    /// The very text to sign.
    pub message: String,
    /// Until when it can be answered.
    pub expires_at: Timestamp,
    /// How many wrong signatures came.
    pub failures: u32,
}

impl Challenge {
    /// Wrong signatures that use a challenge up.
    pub const MAX_FAILURES: u32 = 5;
    /// How long after its expiry a challenge is remembered, so that a late answer is told what happened.
    pub const REMEMBERED: Duration = Duration::from_secs(24 * 60 * 60);

    /// The text to sign. It says what signing it does, so that nobody does it unawares, and names the service, so
    /// that a challenge of one cannot be passed off as another's.
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
