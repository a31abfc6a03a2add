//! Random operations about on-chain payments.
//!
//! There are so few wallets, amounts, targets, transactions and nonces that they collide often.

use metering_core::chains::Address;
use metering_core::money::LedgerKind;
use metering_core::payments::PaymentTarget;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Strategy, any, prop_oneof};

use super::super::sale::TARGET;
use super::values::{EMAILS, amount, kind, number, stale_key};

/// How many wallets operations choose from.
pub(crate) const WALLETS: u8 = 4;
/// How many amounts and targets quotes choose from.
const AMOUNTS: u8 = 2;
pub(crate) const TARGETS: u8 = 3;
/// How many transaction hashes exist on each chain.
pub(crate) const HASHES: u8 = 5;
/// How many challenge nonces exist.
pub(crate) const NONCES: u8 = 2;
/// How many chains are scanned.
pub(crate) const CHAINS: u64 = 2;

/// The target with this number. Two of the three targets share a chain.
pub(crate) fn target(number: u8) -> PaymentTarget {
    match number {
        0 => TARGET,
        1 => PaymentTarget { token: Address::ZERO, ..TARGET },
        _ => PaymentTarget { chain_id: u64::MAX, ..TARGET },
    }
}

/// The id of the chain with this number.
pub(crate) fn chain(number: u64) -> u64 {
    u64::MAX - number
}

/// The challenge nonce with this number.
pub(crate) fn nonce(number: u8) -> String {
    format!("nonce-{number}")
}

/// An operation on quotes, payments or challenges.
#[derive(Debug, Clone)]
pub enum Sale {
    /// Open a quote.
    Quote {
        /// The payment it requires.
        price: Price,
        /// The number of its email address, from a small set.
        email: Option<u8>,
        /// Whether its email address is in upper case.
        capitals: bool,
    },
    /// Claim a quote.
    Claim {
        /// The number of the quote among all quotes ever stored; `None` for an unknown quote.
        quote: Option<usize>,
        /// The number of the transaction's hash; `None` for the quote's own one.
        hash: Option<u8>,
        /// Whether the watcher claims it, so that no one gets the key yet.
        late: bool,
        /// Kind and atoms of the account's first entries.
        entries: Vec<(LedgerKind, i64)>,
        /// The number of the key among all keys so far; `None` for a new key.
        key: Option<usize>,
    },
    /// Credit a payment.
    Credit {
        /// The number of the account among all accounts so far; `None` for an unknown account.
        account: Option<usize>,
        /// The number of the quote that the payment matches, among all quotes ever stored.
        quote: Option<usize>,
        /// The payment, if there is no such quote.
        price: Price,
        /// The number of the transaction's hash.
        hash: u8,
        /// Whether the operator assigns it.
        assigned: bool,
        /// Kind and atoms of its ledger entry.
        entry: (LedgerKind, i64),
        /// Whether the entry names the payment, and if so, whether it also names a plan.
        names_plan: Option<bool>,
        /// Whether it links the payer's wallet.
        links: bool,
        /// Whether it gives way to quotes.
        yields: bool,
    },
    /// Take a settlement step of a payment.
    Settle {
        /// The number of the payment among all credited ones.
        payment: usize,
        /// The number of the step: finalize, move, reverse or restore.
        step: u8,
        /// The number of the block it names.
        block: u8,
        /// Whether it is based on an outdated record.
        stale: bool,
    },
    /// Open a challenge.
    Challenge {
        /// The number of the account.
        account: usize,
        /// The number of the wallet; `None` for the account's payer.
        wallet: Option<u8>,
        /// The number of its nonce.
        nonce: u8,
    },
    /// Fail a challenge several times.
    Fail {
        /// The number of its nonce.
        nonce: u8,
        /// How many times.
        times: u8,
    },
    /// Rotate a key with a challenge.
    Rotate {
        /// The number of its nonce.
        nonce: u8,
        /// The number of the key among all keys so far; `None` for a new key.
        key: Option<usize>,
    },
    /// Record a scan of a chain.
    Scan {
        /// The number of the chain.
        chain: u64,
        /// The last block scanned.
        block: u64,
    },
}

/// The payer, the amount and the target of a payment.
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

/// Nearly always a number; rarely `None`.
fn nearly_any() -> impl Strategy<Value = Option<usize>> {
    option::weighted(0.95, number())
}
