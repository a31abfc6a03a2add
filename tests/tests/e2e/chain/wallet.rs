//! The built-in wallet on a real chain: the chain accepts what it signs, to the last unit, and only once.

use std::time::Duration;

use metering_core::chains::{Address, TokenUnits};
use metering_evm::{PayError, Payer, PaymentOrder, PaymentStatus, SignedPayment, Wallet};
use metering_tests::chain::Chain;
use metering_tests::chain::account::Account;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

use crate::chain::harness::Fixture;
use crate::support::wait::until;

/// A payer, and the wallet that pays for it.
struct Purse {
    runtime: Runtime,
    payer: Payer,
    wallet: Wallet,
    chain_id: u64,
    recipient: Address,
}

impl Purse {
    fn new(chain: &Chain, by: &Account, recipient: &str) -> Self {
        let payer = Payer::new(&chain.url().parse().unwrap(), chain.chain_id(), Duration::from_secs(20)).unwrap();
        Self {
            runtime: Builder::new_current_thread().enable_all().build().unwrap(),
            payer,
            wallet: Wallet::from_hex(by.private_key()).unwrap(),
            chain_id: chain.chain_id(),
            recipient: recipient.parse().unwrap(),
        }
    }

    fn prepare(&self, token: Option<&str>, amount: u128) -> Result<SignedPayment, PayError> {
        let token = token.map(|token| token.parse().unwrap());
        let order =
            PaymentOrder { chain_id: self.chain_id, recipient: self.recipient, token, amount: TokenUnits::new(amount) };
        self.runtime.block_on(self.payer.prepare(&self.wallet, &order))
    }

    fn broadcast(&self, payment: &SignedPayment) -> Result<(), PayError> {
        self.runtime.block_on(self.payer.broadcast(payment))
    }

    fn status(&self, payment: &SignedPayment) -> PaymentStatus {
        self.runtime.block_on(self.payer.status(payment)).unwrap()
    }
}

fn quantity(value: &Value) -> u128 {
    u128::from_str_radix(value.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
}

fn coins(chain: &Chain, of: &str) -> u128 {
    quantity(&chain.rpc("eth_getBalance", json!([of, "latest"])))
}

/// The fee of a transaction.
fn fee(receipt: &Value) -> u128 {
    quantity(&receipt["gasUsed"]) * quantity(&receipt["effectiveGasPrice"])
}

#[test]
fn tokens_and_coins_can_be_spent_to_the_last_unit() {
    let Some(Fixture { chain, token, payer, recipient }) = Fixture::new() else { return };
    let purse = Purse::new(&chain, &payer, &recipient);
    assert_eq!(purse.wallet.address().to_string(), payer.address());
    let before = coins(&chain, &payer.address());

    let tokens = purse.prepare(Some(&token), 417).unwrap();
    purse.broadcast(&tokens).unwrap();
    let receipt = chain.mined(&tokens.hash.to_string());
    assert_eq!((&receipt["status"], &receipt["type"]), (&json!("0x1"), &json!("0x2")));
    assert_eq!(chain.wallet().token_balance(&token, &recipient), "417");
    assert_eq!(chain.wallet().token_balance(&token, &payer.address()), "583");
    assert_eq!(purse.status(&tokens), PaymentStatus::Mined { succeeded: true, confirmations: 1 });
    assert!(fee(&receipt) <= tokens.fee_max.get());

    let native = purse.prepare(None, 2_500_003_817_000_001).unwrap();
    assert_eq!(native.nonce, tokens.nonce + 1);
    purse.broadcast(&native).unwrap();
    let other = chain.mined(&native.hash.to_string());
    assert_eq!(coins(&chain, &recipient), 2_500_003_817_000_001);
    assert_eq!(coins(&chain, &payer.address()), before - 2_500_003_817_000_001 - fee(&receipt) - fee(&other));
    chain.mine(4);
    assert_eq!(purse.status(&native), PaymentStatus::Mined { succeeded: true, confirmations: 5 });
}

#[test]
fn chain_without_base_fees_is_supported() {
    let Some(chain) = Chain::setup().hardfork("berlin").start() else { return };
    let (payer, recipient) = (chain.wallet().new_account(), chain.wallet().poor_account().address());
    let purse = Purse::new(&chain, &payer, &recipient);
    let payment = purse.prepare(None, 1).unwrap();
    purse.broadcast(&payment).unwrap();
    assert_eq!(chain.mined(&payment.hash.to_string())["type"], "0x0");
    assert_eq!(coins(&chain, &recipient), 1);
}

#[test]
fn resent_payment_moves_money_once() {
    let Some(Fixture { chain, token, payer, recipient }) = Fixture::new() else { return };
    let purse = Purse::new(&chain, &payer, &recipient);
    chain.set_automine(false);
    let payment = purse.prepare(Some(&token), 400).unwrap();
    assert_eq!(purse.status(&payment), PaymentStatus::Unknown);
    // Before a block includes it, and after.
    for _ in 0..3 {
        purse.broadcast(&payment).unwrap();
        assert_eq!(purse.status(&payment), PaymentStatus::Pending);
    }
    chain.mine(1);
    let _ = chain.mined(&payment.hash.to_string());
    for _ in 0..3 {
        purse.broadcast(&payment).unwrap();
        chain.mine(1);
    }
    assert_eq!(purse.status(&payment), PaymentStatus::Mined { succeeded: true, confirmations: 4 });
    assert_eq!(chain.wallet().token_balance(&token, &recipient), "400");
    assert_eq!(chain.wallet().token_balance(&token, &payer.address()), "600");
}

#[test]
fn interrupted_payment_resumes_from_its_saved_form() {
    let Some(Fixture { chain, token, payer, recipient }) = Fixture::new() else { return };
    let written = {
        let purse = Purse::new(&chain, &payer, &recipient);
        serde_json::to_vec(&purse.prepare(Some(&token), 400).unwrap()).unwrap()
    };
    // Another process without the key: the saved payment is enough.
    let poor = chain.wallet().poor_account();
    let purse = Purse::new(&chain, &poor, &recipient);
    let payment: SignedPayment = serde_json::from_slice(&written).unwrap();
    assert_eq!(purse.status(&payment), PaymentStatus::Unknown);
    assert_eq!(chain.wallet().token_balance(&token, &recipient), "0");
    purse.broadcast(&payment).unwrap();
    let _ = chain.mined(&payment.hash.to_string());
    // Again, interrupted after sending.
    let payment: SignedPayment = serde_json::from_slice(&written).unwrap();
    // The node may have the receipt before it counts the block.
    let mined = PaymentStatus::Mined { succeeded: true, confirmations: 1 };
    until("the payment is mined", || purse.status(&payment) == mined);
    purse.broadcast(&payment).unwrap();
    assert_eq!(chain.wallet().token_balance(&token, &recipient), "400");
}

#[test]
fn payment_with_a_used_nonce_is_never_mined() {
    let Some(Fixture { chain, token, payer, recipient }) = Fixture::new() else { return };
    let purse = Purse::new(&chain, &payer, &recipient);
    let payment = purse.prepare(Some(&token), 400).unwrap();
    let rival = chain.wallet().send_native(&payer, &recipient, 1);
    let _ = chain.mined(&rival);
    // A new block may still be reorganised away.
    assert_eq!(purse.status(&payment), PaymentStatus::Pending);
    chain.mine(11);
    assert_eq!(purse.status(&payment), PaymentStatus::Replaced);
    assert_eq!(purse.broadcast(&payment), Err(PayError::Replaced));
    assert_eq!(chain.wallet().token_balance(&token, &recipient), "0");
    let anew = purse.prepare(Some(&token), 400).unwrap();
    assert_eq!(anew.nonce, payment.nonce + 1);
    purse.broadcast(&anew).unwrap();
    let _ = chain.mined(&anew.hash.to_string());
    assert_eq!(chain.wallet().token_balance(&token, &recipient), "400");
}

#[test]
fn payment_with_the_nonce_of_a_pending_one_is_reported() {
    let Some(Fixture { chain, token, payer, recipient }) = Fixture::new() else { return };
    let purse = Purse::new(&chain, &payer, &recipient);
    chain.set_automine(false);
    let (one, other) = (purse.prepare(Some(&token), 1).unwrap(), purse.prepare(Some(&token), 2).unwrap());
    assert_eq!(one.nonce, other.nonce);
    purse.broadcast(&one).unwrap();
    assert_eq!(purse.broadcast(&other), Err(PayError::NonceTaken));
    chain.mine(1);
    let _ = chain.mined(&one.hash.to_string());
    assert_eq!(chain.wallet().token_balance(&token, &recipient), "1");
}

#[test]
fn payment_removed_by_a_reorganisation_can_be_resent() {
    let Some(Fixture { chain, token, payer, recipient }) = Fixture::new() else { return };
    let purse = Purse::new(&chain, &payer, &recipient);
    let payment = purse.prepare(Some(&token), 400).unwrap();
    purse.broadcast(&payment).unwrap();
    let _ = chain.mined(&payment.hash.to_string());
    chain.reorg(1);
    assert!(!matches!(purse.status(&payment), PaymentStatus::Mined { .. } | PaymentStatus::Replaced));
    purse.broadcast(&payment).unwrap();
    chain.mine(1);
    let _ = chain.mined(&payment.hash.to_string());
    assert_eq!(chain.wallet().token_balance(&token, &recipient), "400");
}

#[test]
fn impossible_payment_is_refused_before_signing() {
    let Some(Fixture { chain, token, payer, recipient }) = Fixture::new() else { return };
    let units = TokenUnits::new;
    let purse = Purse::new(&chain, &payer, &recipient);
    let short = PayError::ShortOfTokens { have: units(1_000), need: units(1_001) };
    assert_eq!(purse.prepare(Some(&token), 1_001), Err(short));
    let reverter = chain.wallet().deploy_reverter();
    let to_reverter = Purse::new(&chain, &payer, &reverter);
    assert!(matches!(to_reverter.prepare(None, 1), Err(PayError::WouldRevert(_))));
    let no_token = PayError::NoToken(reverter.parse().unwrap());
    assert_eq!(purse.prepare(Some(&reverter), 1), Err(no_token));
    assert_eq!(purse.prepare(Some(&recipient), 1), Err(PayError::NoToken(recipient.parse().unwrap())));
    let whole = coins(&chain, &payer.address());
    assert!(matches!(purse.prepare(None, whole), Err(PayError::ShortOfFees { have, .. }) if have == units(whole)));
    let poor = chain.wallet().poor_account();
    chain.wallet().mint(&token, &poor.address(), 5);
    let poor = Purse::new(&chain, &poor, &recipient);
    assert!(matches!(poor.prepare(Some(&token), 5), Err(PayError::ShortOfFees { have, .. }) if have == units(0)));
    let elsewhere = Purse { chain_id: 1, ..Purse::new(&chain, &payer, &recipient) };
    assert_eq!(elsewhere.prepare(None, 1), Err(PayError::WrongChain { expected: 1, found: chain.chain_id() }));
    assert_eq!(chain.wallet().token_balance(&token, &recipient), "0");
}
