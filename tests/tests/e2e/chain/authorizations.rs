//! Signed transfers (EIP-3009) on a real chain: another library signs them, the gas wallet executes them, and the
//! reader finds out their outcomes.

use std::time::Duration;

use metering_core::Timestamp;
use metering_core::chains::{Address, TokenDomain, TokenUnits, TxHash, WalletSignature};
use metering_evm::{ChainConfig, EvmReader, GasWallet, Wallet};
use metering_pay::offers::{
    Asset, Authorization, SignedAuthorization, Submission, SubmitError, Submitter, TokenReader,
};
use metering_tests::chain::Chain;
use metering_tests::chain::account::Account;
use metering_tests::chain::wallet::authorizations::{TransferAuthorization, USDC};
use serde_json::json;
use tokio::runtime::{Builder, Runtime};

const CHAIN_ID: u64 = 84_532;
const PRICE: u128 = 50_000;

/// A chain with USDC, a payer who has 1 of it, and a gas wallet.
struct Scene {
    chain: Chain,
    runtime: Runtime,
    payer: Account,
    recipient: String,
    gas: GasWallet,
    reader: EvmReader,
    started: Timestamp,
}

impl Scene {
    fn new() -> Option<Self> {
        let chain = Chain::setup().chain_id(CHAIN_ID).start()?;
        let wallet = chain.wallet();
        wallet.place_usdc();
        let payer = wallet.poor_account();
        wallet.mint(USDC, &payer.address(), 1_000_000);
        let gas = gas_wallet(&chain, &wallet.new_account());
        let recipient = wallet.poor_account().address();
        let config = json!({ "chain_id": CHAIN_ID, "rpc_urls": [chain.url()], "recipient": recipient });
        let config: ChainConfig = serde_json::from_value(config).unwrap();
        let started = Timestamp::from_unix_millis(i64::try_from(chain.block_time()).unwrap() * 1_000);
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        Some(Self { runtime, payer, recipient, gas, reader: config.reader().unwrap().unwrap(), started, chain })
    }

    /// The payer's authorization: the price, for an hour.
    fn transfer(&self, nonce: u8) -> TransferAuthorization {
        TransferAuthorization {
            from: self.payer.address(),
            to: self.recipient.clone(),
            value: PRICE,
            valid_after: 0,
            valid_before: self.chain.block_time() + 3_600,
            nonce: format!("0x{}", format!("{nonce:02x}").repeat(32)),
        }
    }

    fn signed(&self, nonce: u8) -> SignedAuthorization {
        self.signed_by(&self.payer, &self.transfer(nonce))
    }

    fn signed_by(&self, signer: &Account, transfer: &TransferAuthorization) -> SignedAuthorization {
        with_signature(transfer, &self.chain.wallet().sign_transfer(signer, CHAIN_ID, transfer))
    }

    fn check(&self, signed: &SignedAuthorization) -> Result<(), SubmitError> {
        self.runtime.block_on(self.gas.check(signed, None))
    }

    fn sign(&self, signed: &SignedAuthorization, place: u64, replaced: &[Submission]) -> Submission {
        self.runtime.block_on(self.gas.sign(signed, None, place, replaced, self.started)).unwrap()
    }

    fn sign_nothing(&self, place: u64, replaced: &[Submission]) -> Submission {
        self.runtime.block_on(self.gas.sign_nothing(place, replaced, self.started)).unwrap()
    }

    fn send(&self, submission: &Submission) -> Result<(), SubmitError> {
        self.runtime.block_on(self.gas.send(submission))
    }

    fn mined(&self) -> u64 {
        self.runtime.block_on(self.gas.mined()).unwrap()
    }

    /// Whether the authorization is used, and the transaction that executed it.
    fn found(&self, signed: &SignedAuthorization) -> (bool, Option<TxHash>) {
        let used = self.runtime.block_on(self.reader.is_used(&signed.id())).unwrap();
        (used, self.runtime.block_on(self.reader.executed_in(&signed.id(), self.started)).unwrap())
    }

    /// Asserts that the contract would refuse it, and why.
    #[track_caller]
    fn is_refused(&self, signed: &SignedAuthorization, why: &str) {
        let error = self.check(signed).unwrap_err();
        assert!(matches!(&error, SubmitError::WouldFail(reason) if reason.contains(why)), "{error}");
        let signed = self.runtime.block_on(self.gas.sign(signed, None, 0, &[], self.started));
        assert!(matches!(signed, Err(SubmitError::WouldFail(_))), "{signed:?}");
    }

    fn received(&self) -> String {
        self.chain.wallet().token_balance(USDC, &self.recipient)
    }

    fn status(&self, submission: &Submission) -> Option<bool> {
        self.chain.receipt(&submission.hash.to_string()).map(|receipt| receipt["status"] == "0x1")
    }

    fn set_base_fee(&self, wei: u64) {
        let _ = self.chain.rpc("anvil_setNextBlockBaseFeePerGas", json!([format!("{wei:#x}")]));
    }
}

fn gas_wallet(chain: &Chain, account: &Account) -> GasWallet {
    let wallet = Wallet::from_hex(account.private_key()).unwrap();
    GasWallet::new(wallet, &[chain.url().parse().unwrap()], CHAIN_ID, Duration::from_secs(20)).unwrap()
}

fn usdc() -> Address {
    USDC.parse().unwrap()
}

fn with_signature(transfer: &TransferAuthorization, signature: &str) -> SignedAuthorization {
    let authorization = Authorization {
        from: transfer.from.parse().unwrap(),
        to: transfer.to.parse().unwrap(),
        value: TokenUnits::new(transfer.value),
        valid_after: transfer.valid_after,
        valid_before: transfer.valid_before,
        nonce: transfer.nonce.parse().unwrap(),
    };
    let signature = WalletSignature::parse(signature).unwrap();
    SignedAuthorization { chain_id: CHAIN_ID, token: usdc(), authorization, signature }
}

#[test]
fn only_a_token_with_signed_transfers_can_be_offered() {
    let Some(scene) = Scene::new() else { return };
    let plain = scene.chain.wallet().deploy_token("USDC", 6);
    let asset = |token: &str| scene.runtime.block_on(scene.reader.asset(token.parse().unwrap())).unwrap();
    let domain = TokenDomain { name: "USDC".to_owned(), version: "2".to_owned(), chain_id: CHAIN_ID, contract: usdc() };
    let signed = scene.signed(1);
    assert!(signed.authorization.is_signed_by_key(&domain, &signed.signature));
    assert_eq!(asset(USDC), Some(Asset { domain, decimals: 6 }));
    assert_eq!((asset(&plain), asset(&scene.recipient)), (None, None));
}

#[test]
fn an_authorization_is_executed_once() {
    let Some(scene) = Scene::new() else { return };
    let signed = scene.signed(1);
    assert_eq!((scene.check(&signed), scene.found(&signed), scene.mined()), (Ok(()), (false, None), 0));
    let submission = scene.sign(&signed, 0, &[]);
    assert_eq!(scene.found(&signed), (false, None), "nothing was sent");
    assert_eq!(scene.send(&submission), Ok(()));
    let receipt = scene.chain.mined(&submission.hash.to_string());
    assert_eq!(receipt["status"], "0x1");
    assert_eq!((scene.found(&signed), scene.mined()), ((true, Some(submission.hash)), 1));
    assert_eq!(scene.send(&submission), Ok(()), "it is in a block");
    scene.is_refused(&signed, "used or canceled");
    assert_eq!(scene.received(), PRICE.to_string());
    // Another authorization of the same payer was not executed.
    assert_eq!(scene.found(&scene.signed(2)), (false, None));
    // A reorganisation takes it back, and it can be executed by the same transaction.
    scene.chain.reorg(1);
    assert_eq!(scene.found(&signed), (false, None));
    assert_eq!((scene.check(&signed), scene.send(&submission)), (Ok(()), Ok(())));
    let _ = scene.chain.mined(&submission.hash.to_string());
    assert_eq!(scene.found(&signed), (true, Some(submission.hash)));
}

#[test]
fn an_execution_by_somebody_else_is_found() {
    let Some(scene) = Scene::new() else { return };
    let signed = scene.signed(1);
    let other = gas_wallet(&scene.chain, &scene.chain.wallet().new_account());
    let submission = scene.runtime.block_on(other.sign(&signed, None, 0, &[], scene.started)).unwrap();
    scene.runtime.block_on(other.send(&submission)).unwrap();
    let _ = scene.chain.mined(&submission.hash.to_string());
    // Much later, too.
    scene.chain.mine_apart(300, 2);
    scene.is_refused(&signed, "used or canceled");
    assert_eq!((scene.found(&signed), scene.mined()), ((true, Some(submission.hash)), 0));
    // But not from a much later time.
    let late = scene.started.saturating_add(Duration::from_secs(600));
    assert_eq!(scene.runtime.block_on(scene.reader.executed_in(&signed.id(), late)), Ok(None));
}

#[test]
fn a_cancelled_authorization_is_used_but_was_not_executed() {
    let Some(scene) = Scene::new() else { return };
    let wallet = scene.chain.wallet();
    let (payer, mut transfer) = (wallet.new_account(), scene.transfer(1));
    wallet.mint(USDC, &payer.address(), 1_000_000);
    transfer.from = payer.address();
    let signed = scene.signed_by(&payer, &transfer);
    assert_eq!(scene.check(&signed), Ok(()));
    wallet.cancel_transfer(&payer, CHAIN_ID, &transfer.nonce);
    assert_eq!(scene.found(&signed), (true, None));
    scene.is_refused(&signed, "used or canceled");
}

#[test]
fn what_the_token_refuses_is_not_submitted() {
    let Some(scene) = Scene::new() else { return };
    let (wallet, good, now) = (scene.chain.wallet(), scene.transfer(1), scene.chain.block_time());
    let poor = wallet.poor_account();
    // signer, transfer, reason
    let table = [
        (&poor, TransferAuthorization { from: poor.address(), ..good.clone() }, "exceeds balance"),
        (&poor, good.clone(), "invalid signature"),
        (&scene.payer, TransferAuthorization { value: 1_000_001, ..good.clone() }, "exceeds balance"),
        (&scene.payer, TransferAuthorization { valid_before: now - 1, ..good.clone() }, "expired"),
        (&scene.payer, TransferAuthorization { valid_after: now + 600, ..good.clone() }, "not yet valid"),
    ];
    for (signer, transfer, why) in table {
        scene.is_refused(&scene.signed_by(signer, &transfer), why);
    }
    let signed = scene.signed(1);
    assert_eq!(scene.check(&signed), Ok(()));
    wallet.blacklist(&scene.payer.address());
    scene.is_refused(&signed, "account is blacklisted");
    assert_eq!((scene.received(), scene.mined()), ("0".to_owned(), 0));
}

#[test]
fn contract_wallets_pay_with_signatures_of_any_length() {
    let Some(scene) = Scene::new() else { return };
    let wallet = scene.chain.wallet();
    let owner = wallet.poor_account();
    let short = wallet.deploy_contract_wallet(&owner);
    let long = wallet.deploy_smart_wallet(&owner);
    for (place, contract, prefix) in [(0, short, String::new()), (1, long, "00".repeat(32))] {
        wallet.mint(USDC, &contract, PRICE);
        let transfer = TransferAuthorization { from: contract, ..scene.transfer(1) };
        let signature = wallet.sign_transfer(&owner, CHAIN_ID, &transfer);
        let signed = with_signature(&transfer, &format!("0x{prefix}{}", &signature[2..]));
        assert_eq!(scene.check(&signed), Ok(()));
        let submission = scene.sign(&signed, place, &[]);
        assert_eq!(scene.send(&submission), Ok(()));
        let _ = scene.chain.mined(&submission.hash.to_string());
        assert_eq!(scene.found(&signed), (true, Some(submission.hash)));
        scene.is_refused(&with_signature(&transfer, &format!("0x{prefix}{}", "11".repeat(65))), "");
    }
    assert_eq!(scene.received(), (2 * PRICE).to_string());
}

#[test]
fn a_transaction_that_pays_too_little_is_replaced() {
    let Some(scene) = Scene::new() else { return };
    scene.chain.set_automine(false);
    let signed = scene.signed(1);
    let first = scene.sign(&signed, 0, &[]);
    assert_eq!(scene.send(&first), Ok(()));
    scene.set_base_fee(20_000_000_000);
    scene.chain.mine(1);
    assert_eq!(scene.status(&first), None, "the base fee is above its limit");
    let second = scene.sign(&signed, 0, std::slice::from_ref(&first));
    assert_eq!(scene.send(&second), Ok(()));
    // The fees have not changed, and yet the node takes another one.
    let both = [first.clone(), second.clone()];
    let third = scene.sign(&signed, 0, &both);
    assert_eq!(scene.send(&third), Ok(()));
    assert_eq!(scene.send(&second), Err(SubmitError::PlaceTaken), "the node has one that pays more");
    scene.chain.mine(1);
    assert_eq!((scene.status(&first), scene.status(&second), scene.status(&third)), (None, None, Some(true)));
    assert_eq!((scene.found(&signed), scene.mined()), ((true, Some(third.hash)), 1));
    scene.chain.mine(12);
    assert_eq!(scene.send(&second), Err(SubmitError::PlaceTaken));
    assert_eq!(scene.received(), PRICE.to_string());
}

#[test]
fn places_may_be_sent_out_of_order() {
    let Some(scene) = Scene::new() else { return };
    let (one, other) = (scene.signed(1), scene.signed(2));
    let (first, second) = (scene.sign(&one, 0, &[]), scene.sign(&other, 1, &[]));
    assert_eq!(scene.send(&second), Ok(()));
    assert_eq!((scene.mined(), scene.found(&other)), (0, (false, None)));
    assert_eq!(scene.send(&second), Ok(()), "the node keeps it");
    assert_eq!(scene.send(&first), Ok(()));
    let _ = scene.chain.mined(&first.hash.to_string());
    let _ = scene.chain.mined(&second.hash.to_string());
    assert_eq!((scene.mined(), scene.received()), (2, (2 * PRICE).to_string()));
    assert_eq!((scene.found(&one).1, scene.found(&other).1), (Some(first.hash), Some(second.hash)));
}

#[test]
fn a_transaction_that_does_nothing_frees_the_line() {
    let Some(scene) = Scene::new() else { return };
    scene.chain.set_automine(false);
    let (stuck, next) = (scene.signed(1), scene.signed(2));
    let first = scene.sign(&stuck, 0, &[]);
    assert_eq!(scene.send(&first), Ok(()));
    scene.set_base_fee(20_000_000_000);
    scene.chain.mine(1);
    let second = scene.sign(&next, 1, &[]);
    assert_eq!(scene.send(&second), Ok(()));
    scene.chain.mine(1);
    assert_eq!((scene.status(&second), scene.mined()), (None, 0), "it waits for the first");
    let nothing = scene.sign_nothing(0, std::slice::from_ref(&first));
    assert_eq!(scene.send(&nothing), Ok(()));
    scene.chain.mine(1);
    assert_eq!((scene.status(&nothing), scene.status(&second), scene.mined()), (Some(true), Some(true), 2));
    assert_eq!((scene.found(&stuck), scene.found(&next)), ((false, None), (true, Some(second.hash))));
    let sent = scene.chain.rpc("eth_getTransactionByHash", json!([nothing.hash]));
    let own = json!(scene.gas.wallet());
    assert_eq!((&sent["from"], &sent["to"], &sent["value"], &sent["input"]), (&own, &own, &json!("0x0"), &json!("0x")));
}

#[test]
fn a_wallet_without_coins_executes_nothing() {
    let Some(scene) = Scene::new() else { return };
    let account = scene.chain.wallet().poor_account();
    let gas = gas_wallet(&scene.chain, &account);
    let signed = scene.signed(1);
    let short = scene.runtime.block_on(gas.check(&signed, None)).unwrap_err();
    assert!(matches!(short, SubmitError::ShortOfGas { have: TokenUnits::ZERO, .. }), "{short}");
    let refused = scene.runtime.block_on(gas.sign_nothing(0, &[], scene.started)).unwrap_err();
    assert!(matches!(refused, SubmitError::ShortOfGas { .. }), "{refused}");
    // Coins that are gone when the transaction is sent.
    let set = |wei: &str| _ = scene.chain.rpc("anvil_setBalance", json!([account.address(), wei]));
    set("0xde0b6b3a7640000");
    let submission = scene.runtime.block_on(gas.sign(&signed, None, 0, &[], scene.started)).unwrap();
    set("0x7");
    let late = scene.runtime.block_on(gas.send(&submission)).unwrap_err();
    assert!(matches!(late, SubmitError::ShortOfGas { have, .. } if have == TokenUnits::new(7)), "{late}");
    set("0xde0b6b3a7640000");
    assert_eq!(scene.runtime.block_on(gas.send(&submission)), Ok(()));
    let _ = scene.chain.mined(&submission.hash.to_string());
    assert_eq!(scene.received(), PRICE.to_string());
}
