//! The moves of the theft game, in random order.

use proptest::collection::vec;
use proptest::prelude::*;

/// A move in the game. Numbers select wallets, quotes, transactions and keys, modulo how many exist.
#[derive(Debug, Clone)]
pub(super) enum Move {
    CustomerQuotes {
        customer: usize,
        plan: bool,
        chain: bool,
    },
    CustomerPays {
        quote: usize,
    },
    CustomerClaims {
        quote: usize,
    },
    CustomerPaysPrice {
        customer: usize,
        chain: bool,
    },
    /// Somebody with an account pays its top-up quote from any customer's wallet, as people who share one do.
    CustomerPaysTopUp {
        payer: usize,
        plan: bool,
        chain: bool,
    },
    ThiefTopUpQuotes {
        key: usize,
        plan: bool,
        chain: bool,
    },
    ThiefQuotesFor {
        wallet: usize,
        plan: bool,
        chain: bool,
    },
    ThiefPays {
        wallet: usize,
        amount_of: usize,
        chain: bool,
    },
    /// The thief claims each of its quotes with every transaction.
    ThiefClaims,
    ThiefTopsUp {
        key: usize,
        tx: usize,
        signer: Option<usize>,
    },
    ThiefRotates {
        wallet: usize,
        signer: usize,
    },
    ThiefAnswersForeignChallenge {
        wallet: usize,
        signer: usize,
    },
    Watch {
        chain: bool,
    },
    Pass {
        hours: u8,
    },
}

pub(super) fn moves() -> impl Strategy<Value = Vec<Move>> {
    let n = 0_usize..1_000;
    let one = prop_oneof![
        3 => (n.clone(), any::<bool>(), any::<bool>())
            .prop_map(|(customer, plan, chain)| Move::CustomerQuotes { customer, plan, chain }),
        3 => n.clone().prop_map(|quote| Move::CustomerPays { quote }),
        1 => n.clone().prop_map(|quote| Move::CustomerClaims { quote }),
        1 => (n.clone(), any::<bool>()).prop_map(|(customer, chain)| Move::CustomerPaysPrice { customer, chain }),
        2 => (n.clone(), any::<bool>(), any::<bool>())
            .prop_map(|(payer, plan, chain)| Move::CustomerPaysTopUp { payer, plan, chain }),
        1 => (n.clone(), any::<bool>(), any::<bool>())
            .prop_map(|(key, plan, chain)| Move::ThiefTopUpQuotes { key, plan, chain }),
        3 => (n.clone(), any::<bool>(), any::<bool>())
            .prop_map(|(wallet, plan, chain)| Move::ThiefQuotesFor { wallet, plan, chain }),
        2 => (n.clone(), n.clone(), any::<bool>())
            .prop_map(|(wallet, amount_of, chain)| Move::ThiefPays { wallet, amount_of, chain }),
        4 => Just(Move::ThiefClaims),
        5 => (n.clone(), n.clone(), proptest::option::of(n.clone()))
            .prop_map(|(key, tx, signer)| Move::ThiefTopsUp { key, tx, signer }),
        2 => (n.clone(), n.clone()).prop_map(|(wallet, signer)| Move::ThiefRotates { wallet, signer }),
        1 => (n.clone(), n).prop_map(|(wallet, signer)| Move::ThiefAnswersForeignChallenge { wallet, signer }),
        1 => any::<bool>().prop_map(|chain| Move::Watch { chain }),
        1 => (0_u8..60).prop_map(|hours| Move::Pass { hours }),
    ];
    vec(one, 1..60)
}
