//! Signs the authorization of a chosen offer.

use metering_core::chains::{Address, WalletSignature};
use metering_core::offers::{Authorization, AuthorizationNonce};
use metering_core::{Randomness, Timestamp};
use metering_evm::Wallet;

use crate::client::paying::terms::Chosen;

/// An authorization is valid for at most this long, even if the service requests more: until it expires, it can be
/// executed at any time.
const VALID_SECONDS_MAX: u64 = 600;

/// The authorization that the payer signs for an offer.
pub(super) fn authorization(
    chosen: &Chosen<'_>,
    payer: Address,
    now: Timestamp,
    randomness: &impl Randomness,
) -> Authorization {
    let mut nonce = [0; 32];
    randomness.fill(&mut nonce);
    let now = u64::try_from(now.unix_seconds()).unwrap_or(0);
    Authorization {
        from: payer,
        to: chosen.offer.pay_to,
        value: chosen.offer.amount,
        valid_after: 0,
        valid_before: now.saturating_add(chosen.offer.timeout_seconds.min(VALID_SECONDS_MAX)),
        nonce: AuthorizationNonce::from_bytes(nonce),
    }
}

/// The payer's signature.
pub(super) fn sign(wallet: &Wallet, authorization: &Authorization, chosen: &Chosen<'_>) -> WalletSignature {
    wallet.sign_authorization(authorization, &chosen.domain)
}
