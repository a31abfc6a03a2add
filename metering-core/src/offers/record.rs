//! Authorizations as the store keeps them, from acceptance until they are credited or have failed.

use std::fmt;

use sha3::{Digest, Sha3_256};

use crate::access::account::AccountId;
use crate::chains::address::Address;
use crate::chains::signature::WalletSignature;
use crate::chains::transaction::{TxHash, TxRef};
use crate::chains::units::TokenUnits;
use crate::charging::delivery::Fingerprint;
use crate::charging::hold::HoldId;
use crate::charging::request_id::RequestId;
use crate::clock::Timestamp;
use crate::money::credits::Credits;
use crate::named_enum::named_enum;
use crate::offers::authorization::{Authorization, AuthorizationNonce};
use crate::raw_bytes::raw_bytes;
use crate::shown_fields::shown_fields;

/// The identity of an authorization. The token's contract executes only one with these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AuthorizationId {
    /// The chain's id (EIP-155).
    pub chain_id: u64,
    /// The token's contract.
    pub token: Address,
    /// The owner of the tokens.
    pub payer: Address,
    /// The payer's nonce.
    pub nonce: AuthorizationNonce,
}

impl AuthorizationId {
    /// The id for charging a request that came without a key and was paid for with this authorization.
    #[must_use]
    pub fn request_id(&self) -> RequestId {
        let text = format!("{}:{}:{}:{}", self.chain_id, self.token, self.payer, self.nonce);
        RequestId::of_key(&format!("payment-{}", hex::encode(Sha3_256::digest(text))))
    }
}

/// The hash of the id that a client gave its payment (the extension `payment-identifier` of x402).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdentifierHash([u8; 32]);

raw_bytes!(IdentifierHash, 32);

impl IdentifierHash {
    /// The hash of an id.
    #[must_use]
    pub fn of(identifier: &str) -> Self {
        Self(Sha3_256::digest(identifier).into())
    }
}

/// An authorization with its signature. Anyone who has it can execute it, but not change it.
#[derive(Clone, PartialEq, Eq)]
pub struct SignedAuthorization {
    /// The chain's id (EIP-155).
    pub chain_id: u64,
    /// The token's contract.
    pub token: Address,
    /// The signed authorization.
    pub authorization: Authorization,
    /// The payer's signature.
    pub signature: WalletSignature,
}

impl SignedAuthorization {
    /// Its id.
    #[must_use]
    pub const fn id(&self) -> AuthorizationId {
        let Authorization { from: payer, nonce, .. } = self.authorization;
        AuthorizationId { chain_id: self.chain_id, token: self.token, payer, nonce }
    }
}

impl fmt::Debug for SignedAuthorization {
    /// Leaves out the signature, because anyone who has it can execute the authorization, even for another account.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignedAuthorization").field("id", &self.id()).finish_non_exhaustive()
    }
}

/// An accepted authorization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorizationRecord {
    /// The authorization.
    pub signed: SignedAuthorization,
    /// The account to credit.
    pub account: AccountId,
    /// The credits that it buys.
    pub credits: Credits,
    /// The request that it came with, if that had no key. It pays for this request only.
    pub request: Option<Fingerprint>,
    /// The id that its client gave it. No other authorization of this payer has it.
    pub identifier: Option<IdentifierHash>,
    /// When it was accepted.
    pub received_at: Timestamp,
    /// Its progress.
    pub state: AuthorizationState,
    /// The transaction whose payment was credited for it. If a reorganisation removed that transaction, the payment was
    /// reversed, and the authorization is pending again.
    pub tx: Option<TxRef>,
    /// The place of its transaction among those of the wallet that pays the gas, once it has one.
    pub gas: Option<GasPlace>,
    /// The transactions that were signed to execute it, oldest first. At most one can succeed, because the token's
    /// contract executes the authorization once.
    pub submissions: Vec<Submission>,
    /// Set if it is for the usage of one request, instead of a fixed amount.
    pub usage: Option<AuthorizedUsage>,
}

/// The payment of an authorization for the usage of one request (the scheme `upto` of x402): at most the signed amount,
/// and exactly the amount that the request's hold captures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuthorizedUsage {
    /// The hold that it backs. No other one has this id.
    pub hold: HoldId,
    /// The captured amount, at most the authorized one. `None` until the hold is settled; zero if nothing is to be
    /// paid.
    pub used: Option<Credits>,
}

impl AuthorizationRecord {
    /// The credits that it adds, once it is executed. `None` while that is not known.
    #[must_use]
    pub const fn credited(&self) -> Option<Credits> {
        match self.usage {
            None => Some(self.credits),
            Some(usage) => usage.used,
        }
    }

    /// How many units of the token to transfer: the signed amount, or the part of it that the request used, rounded up.
    /// `None` while that is not known.
    #[must_use]
    pub fn due(&self) -> Option<TokenUnits> {
        let signed = self.signed.authorization.value;
        let Some(usage) = self.usage else { return Some(signed) };
        let part = |credits: Credits| u128::try_from(credits.atoms()).unwrap_or(0);
        let (used, all) = (part(usage.used?), part(self.credits));
        if all == 0 {
            return Some(TokenUnits::ZERO);
        }
        let used = used.min(all);
        // Neither product overflows: the first is at most the amount, and both factors of the second are below 2^63.
        let (whole, rest) = (signed.get() / all, signed.get() % all);
        Some(TokenUnits::new(whole * used + (rest * used).div_ceil(all)))
    }

    /// Whether a request was served for it that is not paid, and will not be.
    #[must_use]
    pub fn is_unpaid(&self) -> bool {
        let used = self.usage.and_then(|usage| usage.used);
        matches!(self.state, AuthorizationState::Failed { .. }) && used.is_some_and(Credits::is_positive)
    }

    /// Whether one of its transactions may still be mined, if a transaction with its place is in the chain or not.
    #[must_use]
    pub const fn has_open_place(&self, is_place_used: bool) -> bool {
        !self.submissions.is_empty() && !is_place_used
    }
}

/// The progress of an authorization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AuthorizationState {
    /// Waiting to be executed, or for the execution to be confirmed.
    Pending,
    /// It was executed, and its account credited.
    Credited,
    /// It can no longer be executed. Nothing was taken, unless a reorganisation restores an earlier execution: then it
    /// is credited.
    Failed {
        /// Why.
        failure: SettlementFailure,
        /// Since when.
        at: Timestamp,
    },
}

named_enum! {
    /// Why an accepted authorization can no longer be executed.
    pub enum SettlementFailure {
        /// It expired first.
        Expired = "expired",
        /// Its payer cancelled it, or used its nonce for another transfer.
        Cancelled = "cancelled",
        /// The token's contract refuses it.
        Refused = "refused",
    }
}

/// A place among the transactions of a wallet: its nonce, as Ethereum calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GasPlace {
    /// The wallet that pays the gas.
    pub wallet: Address,
    /// How many of its transactions come before.
    pub nonce: u64,
}

/// A transaction that was signed and stored before it was sent, so it can be sent again after a crash.
#[derive(Clone, PartialEq, Eq)]
pub struct Submission {
    /// Its hash.
    pub hash: TxHash,
    /// Its bytes.
    pub raw: Vec<u8>,
    /// When it was signed.
    pub signed_at: Timestamp,
}

// Leaves out the bytes, which have the signature of the authorization.
shown_fields!(Submission: hash);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_stored_by_name() {
        assert_eq!(SettlementFailure::ALL.map(SettlementFailure::as_str), ["expired", "cancelled", "refused"]);
    }

    fn authorized(units: u128, credits: i64, usage: Option<AuthorizedUsage>) -> AuthorizationRecord {
        let address = Address::from_bytes([3; 20]);
        let (value, nonce) = (TokenUnits::new(units), AuthorizationNonce::from_bytes([4; 32]));
        let authorization = Authorization { from: address, to: address, value, valid_after: 0, valid_before: 6, nonce };
        let signature = WalletSignature::parse(&format!("0x{}", "ab".repeat(65))).unwrap();
        AuthorizationRecord {
            signed: SignedAuthorization { chain_id: 1, token: address, authorization, signature },
            account: "org_yyyyyyyyyyyyyyyyyyyy".parse().unwrap(),
            credits: Credits::from_atoms(credits),
            request: None,
            identifier: None,
            received_at: Timestamp::from_unix_millis(0),
            state: AuthorizationState::Pending,
            tx: None,
            gas: None,
            submissions: Vec::new(),
            usage,
        }
    }

    #[test]
    fn what_was_used_is_due_and_never_more_than_was_signed() {
        // signed units, authorized credits, used credits, units that are due
        let table = [
            (50_000, 5_000_000, 0, 0),
            (50_000, 5_000_000, 310_000, 3_100),
            (50_000, 5_000_000, 310_001, 3_101),
            (50_000, 5_000_000, 5_000_000, 50_000),
            (50_000, 5_000_000, 9_000_000, 50_000),
            (1, 5_000_000, 1, 1),
            (u128::MAX, i64::MAX, i64::MAX, u128::MAX),
            (7, i64::MAX, i64::MAX - 1, 7),
            (5, 0, 0, 0),
        ];
        let hold = HoldId::from_bytes([1; 16]);
        for (units, credits, used, due) in table {
            let used = Some(Credits::from_atoms(used));
            let record = authorized(units, credits, Some(AuthorizedUsage { hold, used }));
            assert_eq!(record.due(), Some(TokenUnits::new(due)), "{units} {credits} {used:?}");
            assert_eq!(record.credited(), used);
        }
        let open = authorized(5, 5, Some(AuthorizedUsage { hold, used: None }));
        assert_eq!((open.due(), open.credited()), (None, None));
        let fixed = authorized(5, 7, None);
        assert_eq!((fixed.due(), fixed.credited()), (Some(TokenUnits::new(5)), Some(Credits::from_atoms(7))));
    }

    #[test]
    fn only_usage_that_failed_is_unpaid() {
        let hold = HoldId::from_bytes([1; 16]);
        let failed =
            AuthorizationState::Failed { failure: SettlementFailure::Expired, at: Timestamp::from_unix_millis(9) };
        // state, used, whether it is unpaid
        let table = [
            (failed, Some(3), true),
            (failed, Some(0), false),
            (failed, None, false),
            (AuthorizationState::Pending, Some(3), false),
            (AuthorizationState::Credited, Some(3), false),
        ];
        for (state, used, is_unpaid) in table {
            let usage = Some(AuthorizedUsage { hold, used: used.map(Credits::from_atoms) });
            let record = AuthorizationRecord { state, ..authorized(5, 5, usage) };
            assert_eq!(record.is_unpaid(), is_unpaid, "{state:?} {used:?}");
        }
        assert!(!AuthorizationRecord { state: failed, ..authorized(5, 5, None) }.is_unpaid());
    }

    #[test]
    fn what_could_be_executed_by_others_is_not_printed() {
        let address = Address::from_bytes([3; 20]);
        let nonce = AuthorizationNonce::from_bytes([4; 32]);
        let (value, valid_before) = (TokenUnits::new(5), 6);
        let authorization = Authorization { from: address, to: address, value, valid_after: 0, valid_before, nonce };
        let signature = WalletSignature::parse(&format!("0x{}", "ab".repeat(65))).unwrap();
        let signed = SignedAuthorization { chain_id: 1, token: address, authorization, signature };
        assert_eq!(signed.id(), AuthorizationId { chain_id: 1, token: address, payer: address, nonce });
        let submission = Submission {
            hash: TxHash::from_bytes([7; 32]),
            raw: vec![0xab; 9],
            signed_at: Timestamp::from_unix_millis(0),
        };
        let printed = format!("{signed:?} {submission:?}");
        assert!(!printed.contains("abab") && !printed.contains("171"), "{printed}");
    }
}
