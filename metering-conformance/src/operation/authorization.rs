//! Random operations about authorizations.
//!
//! There are so few authorizations, wallets and transactions that they collide often.

use metering_core::offers::SettlementFailure;
use proptest::prelude::{Strategy, any, prop_oneof};

use super::sale::HASHES;
use super::values::{amount, number};

/// How many authorizations operations choose from, and how many wallets pay gas.
pub(crate) const AUTHORIZATIONS: u8 = 6;
const GAS_WALLETS: u8 = 2;

/// An operation on authorizations.
#[derive(Debug, Clone, Copy)]
pub enum AuthorizationOperation {
    /// Store an authorization.
    Open {
        /// Its number, from a small set.
        number: u8,
        /// The number of the account.
        account: usize,
        /// For how many seconds it is claimed.
        lease: u8,
        /// The id that its client gave it, from a small set.
        identifier: Option<u8>,
    },
    /// Use up a sign-in.
    SignIn {
        /// The number of its nonce.
        nonce: u8,
    },
    /// Claim all authorizations that are free.
    Claim {
        /// For how many seconds.
        lease: u8,
    },
    /// Move the end of a claim.
    Extend {
        /// The number of the authorization.
        number: u8,
        /// To so many seconds from now.
        seconds: u8,
    },
    /// Assign a place among the transactions of a wallet.
    Place {
        /// The number of the authorization.
        number: u8,
        /// The number of the wallet.
        wallet: u8,
        /// How many of its transactions are in the chain.
        lowest: u8,
    },
    /// Store a transaction.
    Submit {
        /// The number of the authorization.
        number: u8,
        /// The number of the transaction's hash.
        hash: u8,
    },
    /// Credit an authorization.
    Credit {
        /// Its number.
        number: u8,
        /// The number of an account that need not be its own; `None` for its own.
        account: Option<usize>,
        /// The number of the transaction's hash.
        hash: u8,
        /// The atoms to credit.
        atoms: i64,
    },
    /// Fail an authorization.
    Fail {
        /// Its number.
        number: u8,
        /// Why.
        failure: SettlementFailure,
    },
}

pub(super) fn authorization_operation() -> impl Strategy<Value = AuthorizationOperation> {
    use AuthorizationOperation::{Claim, Credit, Extend, Fail, Open, Place, SignIn, Submit};
    let which = || 0..AUTHORIZATIONS;
    let other = proptest::option::weighted(0.1, number());
    let failures = proptest::sample::select(SettlementFailure::ALL.to_vec());
    prop_oneof![
        5 => (which(), number(), any::<u8>(), proptest::option::of(0..2_u8))
            .prop_map(|(number, account, lease, identifier)| Open { number, account, lease, identifier }),
        1 => (0..3_u8).prop_map(|nonce| SignIn { nonce }),
        2 => any::<u8>().prop_map(|lease| Claim { lease }),
        1 => (which(), any::<u8>()).prop_map(|(number, seconds)| Extend { number, seconds }),
        5 => (which(), 0..GAS_WALLETS, 0..5_u8)
            .prop_map(|(number, wallet, lowest)| Place { number, wallet, lowest }),
        2 => (which(), 0..3_u8).prop_map(|(number, hash)| Submit { number, hash }),
        5 => (which(), other, 0..HASHES, amount())
            .prop_map(|(number, account, hash, atoms)| Credit { number, account, hash, atoms }),
        2 => (which(), failures).prop_map(|(number, failure)| Fail { number, failure }),
    ]
}
