//! Random operations about money that arrives by chain.
//!
//! There are so few wallets, amounts, targets, transactions and nonces that they collide all the time.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Strategy, any, prop_oneof};

use crate::address::Address;
use crate::ledger::LedgerKind;
use crate::payment::PaymentTarget;

use super::super::sale::TARGET;
use super::{EMAILS, amount, kind, number, stale_key};

/// How many wallets there are.
pub(in crate::conformance) const WALLETS: u8 = 4;
/// How many amounts are asked for, at how many targets.
const AMOUNTS: u8 = 2;
pub(in crate::conformance) const TARGETS: u8 = 3;
/// How many hashes transactions have, on each chain.
pub(in crate::conformance) const HASHES: u8 = 5;
/// How many nonces challenges have.
pub(in crate::conformance) const NONCES: u8 = 2;
/// How many chains are scanned.
pub(in crate::conformance) const CHAINS: u64 = 2;

/// The targets that operations name: of three, two share a chain.
pub(in crate::conformance) fn target(number: u8) -> PaymentTarget {
    match number {
        0 => TARGET,
        1 => PaymentTarget { token: Address::ZERO, ..TARGET },
        _ => PaymentTarget { chain_id: u64::MAX, ..TARGET },
    }
}

/// The chains that operations scan.
pub(in crate::conformance) fn chain(number: u64) -> u64 {
    u64::MAX - number
}

/// The nonces of challenges that operations name.
pub(in crate::conformance) fn nonce(number: u8) -> String {
    format!("nonce-{number}")
}

/// Something done about quotes, payments and challenges.
#[derive(Debug, Clone)]
pub enum Sale {
    /// A quote is opened.
    Quote {
        /// What is asked for.
        price: Price,
        /// The number of its email address, out of a few.
        email: Option<u8>,
        /// Whether its email address is written in capitals.
        capitals: bool,
    },
    /// A quote is claimed.
    Claim {
        /// The number of the quote, of all that were ever kept; one that was not if there is none.
        quote: Option<usize>,
        /// The number of the transaction's hash; the quote's own one if there is none.
        hash: Option<u8>,
        /// Whether nobody gets the key.
        late: bool,
        /// Kind and atoms of the account's first entries.
        entries: Vec<(LedgerKind, i64)>,
        /// The number of the key, of all that were ever made; a new one if there is none.
        key: Option<usize>,
    },
    /// A payment is credited.
    Credit {
        /// The number of the account, of all that were ever made; one that was not if there is none.
        account: Option<usize>,
        /// The number of the quote that asks for the payment, of all that were ever kept.
        quote: Option<usize>,
        /// What was paid, if there is no such quote.
        price: Price,
        /// The number of the transaction's hash.
        hash: u8,
        /// Whether an operator does it.
        assigned: bool,
        /// Kind and atoms of its entry.
        entry: (LedgerKind, i64),
        /// Whether the entry names the payment, and if so, whether a plan too.
        names_plan: Option<bool>,
        /// Whether the payer's wallet is linked.
        links: bool,
        /// Whether it yields to quotes.
        yields: bool,
    },
    /// Where a payment stands is changed.
    Settle {
        /// The number of the payment, of all that were credited.
        payment: usize,
        /// The number of the step: finalize, move, reverse or restore.
        step: u8,
        /// The number of the block that it names.
        block: u8,
        /// Whether it is based on a record that is no longer so.
        stale: bool,
    },
    /// A challenge is opened.
    Challenge {
        /// The number of the account.
        account: usize,
        /// The number of the wallet; the account's payer if there is none.
        wallet: Option<u8>,
        /// The number of its nonce.
        nonce: u8,
    },
    /// A challenge is answered wrongly, so many times.
    Fail {
        /// The number of its nonce.
        nonce: u8,
        /// How many times.
        times: u8,
    },
    /// A challenge is answered.
    Rotate {
        /// The number of its nonce.
        nonce: u8,
        /// The number of the key, of all that were ever made; a new one if there is none.
        key: Option<usize>,
    },
    /// A chain was scanned.
    Scan {
        /// The number of the chain.
        chain: u64,
        /// Up to which block.
        block: u64,
    },
}

/// Who pays how much, and where to.
#[derive(Debug, Clone, Copy)]
pub struct Price {
    /// The number of the payer's wallet.
    pub wallet: u8,
    /// The number of the amount.
    pub amount: u8,
    /// The number of the target.
    pub target: u8,
}

pub(super) fn sale() -> impl Strategy<Value = Sale> {
    prop_oneof![
        5 => quote(),
        6 => claim(),
        5 => credit(),
        5 => (number(), 0..4_u8, any::<u8>(), proptest::bool::weighted(0.1))
            .prop_map(|(payment, step, block, stale)| Sale::Settle { payment, step, block, stale }),
        3 => (number(), option::weighted(0.2, 0..WALLETS), 0..NONCES)
            .prop_map(|(account, wallet, nonce)| Sale::Challenge { account, wallet, nonce }),
        1 => (0..NONCES, 1..4_u8).prop_map(|(nonce, times)| Sale::Fail { nonce, times }),
        3 => (0..NONCES, stale_key()).prop_map(|(nonce, key)| Sale::Rotate { nonce, key }),
        1 => (0..CHAINS, prop_oneof![0..9_u64, any::<u64>()]).prop_map(|(chain, block)| Sale::Scan { chain, block }),
    ]
}

pub(super) fn quote() -> impl Strategy<Value = Sale> {
    (price(), option::weighted(0.3, 0..EMAILS), any::<bool>()).prop_map(|(price, email, capitals)| Sale::Quote {
        price,
        email,
        capitals,
    })
}

fn claim() -> impl Strategy<Value = Sale> {
    (nearly_any(), option::weighted(0.4, 0..HASHES), any::<bool>(), vec((kind(), amount()), 0..3), stale_key())
        .prop_map(|(quote, hash, late, entries, key)| Sale::Claim { quote, hash, late, entries, key })
}

fn credit() -> impl Strategy<Value = Sale> {
    let payment = (option::of(number()), price(), 0..HASHES);
    let what = (any::<bool>(), (kind(), amount()), option::weighted(0.8, any::<bool>()), any::<bool>(), any::<bool>());
    (nearly_any(), payment, what).prop_map(
        |(account, (quote, price, hash), (assigned, entry, names_plan, links, yields))| Sale::Credit {
            account,
            quote,
            price,
            hash,
            assigned,
            entry,
            names_plan,
            links,
            yields,
        },
    )
}

fn price() -> impl Strategy<Value = Price> {
    (0..WALLETS, 0..AMOUNTS, 0..TARGETS).prop_map(|(wallet, amount, target)| Price { wallet, amount, target })
}

/// Seldom one that is not there.
fn nearly_any() -> impl Strategy<Value = Option<usize>> {
    option::weighted(0.95, number())
}
