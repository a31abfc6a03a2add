//! Checks the chain harness itself: its node and its wallet do what they claim.

use metering_tests::chain::Chain;
use metering_tests::chain::account::Account;
use metering_tests::chain::write::Write;
use serde_json::{Value, json};

/// The hash of `Transfer(address,address,uint256)`.
const TRANSFER: &str = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";

/// A chain with a token, and a payer with 1,000 of its smallest unit.
pub(crate) struct Fixture {
    pub(crate) chain: Chain,
    pub(crate) token: String,
    pub(crate) payer: Account,
    pub(crate) recipient: String,
}

impl Fixture {
    pub(crate) fn new() -> Option<Self> {
        let chain = Chain::start()?;
        let wallet = chain.wallet();
        let (payer, recipient) = (wallet.new_account(), wallet.poor_account().address());
        let token = wallet.deploy_token("USDC", 6);
        wallet.mint(&token, &payer.address(), 1_000);
        Some(Self { chain, token, payer, recipient })
    }

    /// Pays, and returns the hash once a block includes it.
    pub(crate) fn pay(&self, amount: u64) -> String {
        let hash = self.chain.wallet().transfer(&self.payer, &self.token, &self.recipient, amount);
        let _ = self.chain.mined(&hash);
        hash
    }
}

/// The `Transfer` logs of a receipt: emitting contract, from, to, value.
fn transfers(receipt: &Value) -> Vec<(String, String, String, u64)> {
    let logs = receipt["logs"].as_array().unwrap().iter().filter(|log| log["topics"][0] == TRANSFER);
    let address = |topic: &Value| format!("0x{}", &topic.as_str().unwrap()[26..]);
    logs.map(|log| {
        let value = log["data"].as_str().unwrap().trim_start_matches("0x").trim_start_matches('0');
        let value = if value.is_empty() { 0 } else { u64::from_str_radix(value, 16).unwrap() };
        let reporter = log["address"].as_str().unwrap().to_owned();
        (reporter, address(&log["topics"][1]), address(&log["topics"][2]), value)
    })
    .collect()
}

fn runs(process: u32) -> bool {
    std::process::Command::new("kill").args(["-0", &process.to_string()]).output().unwrap().status.success()
}

#[test]
fn chain_has_the_requested_id_and_leaves_nothing_behind() {
    let Some(chain) = Chain::setup().chain_id(8453).start() else { return };
    assert_eq!((chain.chain_id(), chain.rpc("eth_chainId", json!([]))), (8453, json!("0x2105")));
    let (address, processes) = (chain.address(), chain.process_ids());
    assert!(processes.len() == 2 && processes.iter().copied().all(runs), "{processes:?}");
    drop(chain);
    assert!(!processes.iter().copied().any(runs), "{processes:?}");
    assert!(std::net::TcpStream::connect(address).is_err());
}

#[test]
fn payment_appears_in_its_receipt() {
    let Some(Fixture { chain, token, payer, recipient }) = Fixture::new() else { return };
    let hash = chain.wallet().transfer(&payer, &token, &recipient, "400");
    let receipt = chain.mined(&hash);
    assert_eq!((&receipt["status"], &receipt["transactionHash"]), (&json!("0x1"), &json!(hash)));
    assert_eq!(transfers(&receipt), [(token.clone(), payer.address(), recipient.clone(), 400)]);
    assert_eq!(chain.wallet().token_balance(&token, &recipient), "400");
    assert_eq!(chain.wallet().token_balance(&token, &payer.address()), "600");
    assert_eq!(chain.wallet().read("Token", &token, "decimals", json!([])), 6);
}

#[test]
fn each_kind_of_payment_has_its_receipt() {
    let Some(Fixture { chain, token, payer, recipient }) = Fixture::new() else { return };
    let (wallet, other) = (chain.wallet(), chain.wallet().poor_account().address());
    let (from, relayer) = (payer.address(), wallet.new_account());
    let [batcher, forger, fees] = [wallet.deploy_batcher(), wallet.deploy_forger(), wallet.deploy_fee_token("FEE", 6)];
    let contract_wallet = wallet.deploy_contract_wallet(&payer);
    wallet.mint(&fees, &from, 1_000);
    wallet.mint(&token, &contract_wallet, 50);
    wallet.approve(&payer, &token, &relayer.address(), 100);
    wallet.approve(&payer, &token, &batcher, 100);
    let log =
        |reporter: &str, from: &str, to: &str, value| (reporter.to_owned(), from.to_owned(), to.to_owned(), value);
    let collector = wallet.account(0).address();
    // transaction, its logs
    let table = [
        (wallet.transfer_from(&relayer, &token, &from, &recipient, 7), vec![log(&token, &from, &recipient, 7)]),
        (
            wallet.transfer_twice(&payer, &batcher, &token, &recipient, 1, 2),
            vec![log(&token, &from, &recipient, 1), log(&token, &from, &recipient, 2)],
        ),
        (
            wallet.transfer_to_both(&payer, &batcher, &token, (&recipient, 3), (&other, 4)),
            vec![log(&token, &from, &recipient, 3), log(&token, &from, &other, 4)],
        ),
        (wallet.forge(&payer, &forger, &other, &recipient, 5), vec![log(&forger, &other, &recipient, 5)]),
        (
            wallet.transfer(&payer, &fees, &recipient, 200),
            vec![log(&fees, &from, &recipient, 198), log(&fees, &from, &collector, 2)],
        ),
        (
            wallet.transfer_by_contract(&payer, &contract_wallet, &token, &recipient, 50),
            vec![log(&token, &contract_wallet, &recipient, 50)],
        ),
        (wallet.forward_native(&payer, &batcher, &recipient, 9), vec![]),
        (wallet.send_native(&payer, &recipient, 10), vec![]),
        (wallet.send_native_with_data(&payer, &recipient, 11, "0xabcd"), vec![]),
    ];
    for (hash, logs) in table {
        let receipt = chain.mined(&hash);
        assert_eq!((&receipt["status"], transfers(&receipt)), (&json!("0x1"), logs));
    }
    assert_eq!(chain.rpc("eth_getBalance", json!([recipient, "latest"])), format!("{:#x}", 9 + 10 + 11));
    assert_eq!(wallet.token_balance(&fees, &recipient), "198");
}

#[test]
fn forged_transfer_logs_share_the_first_topic() {
    let Some(Fixture { chain, payer, recipient, .. }) = Fixture::new() else { return };
    let forger = chain.wallet().deploy_forger();
    // function, topics, bytes of data
    for (function, topics, data) in [("forgeNft", 4, 0), ("forgeUnindexed", 1, 96)] {
        let forged = Write::new("ForgedTransfers", &forger, function, json!([payer.address(), recipient, "8"]));
        let log = chain.mined(&chain.wallet().write(&payer, &forged))["logs"][0].clone();
        assert_eq!((&log["topics"][0], log["topics"].as_array().unwrap().len()), (&json!(TRANSFER), topics));
        assert_eq!(log["data"].as_str().unwrap().len(), 2 + 2 * data);
    }
}

#[test]
fn failed_transactions_are_mined_as_reverted() {
    let Some(Fixture { chain, token, payer, recipient }) = Fixture::new() else { return };
    let reverter = chain.wallet().deploy_reverter();
    let hashes = [
        chain.wallet().transfer_unsimulated(&payer, &token, &recipient, 1_001),
        chain.wallet().send_native_unsimulated(&payer, &reverter, 1),
        chain.wallet().write(&payer, &Write::new("Reverter", &reverter, "fail", json!([])).without_simulation()),
    ];
    for hash in hashes {
        let receipt = chain.mined(&hash);
        assert_eq!((&receipt["status"], &receipt["logs"]), (&json!("0x0"), &json!([])));
    }
}

#[test]
fn signatures_verify_for_signers_and_contract_owners() {
    let Some(chain) = Chain::start() else { return };
    let wallet = chain.wallet();
    // The first account of the default mnemonic of development nodes.
    assert_eq!(wallet.account(0).checksummed(), "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266");
    let signature = wallet.sign_message(&wallet.account(0), "hello");
    assert_eq!(signature.len(), 2 + 2 * 65);
    let (owner, other) = (wallet.account(1), wallet.poor_account());
    let contract = wallet.deploy_contract_wallet(&owner);
    // keccak256("\x19Ethereum Signed Message:\n5hello")
    let digest = "0x50b2c43fd39106bafbba0da34fc430e1f91e3c96ea2acee2bc34119f92b37750";
    let valid = |by| {
        let args = json!([digest, wallet.sign_message(by, "hello")]);
        wallet.read("ContractWallet", &contract, "isValidSignature", args)
    };
    assert_eq!((valid(&owner), valid(&other)), (json!("0x1626ba7e"), json!("0xffffffff")));
    assert!(!format!("{owner:?}").contains(&owner.private_key()[2..]));
}

#[test]
fn reorganisation_removes_or_moves_a_payment() {
    let Some(fixture) = Fixture::new() else { return };
    let (kept, gone) = (fixture.pay(1), fixture.pay(2));
    let before = fixture.chain.mined(&kept);
    fixture.chain.reorg_keeping(2, &[&kept]);
    assert_eq!(fixture.chain.receipt(&gone), None);
    assert_eq!(fixture.chain.rpc("eth_getTransactionByHash", json!([gone])), Value::Null);
    assert_ne!(fixture.chain.mined(&kept)["blockHash"], before["blockHash"]);
    fixture.chain.reorg(2);
    assert_eq!(fixture.chain.receipt(&kept), None);
    assert_eq!(fixture.chain.wallet().token_balance(&fixture.token, &fixture.recipient), "0");
}

#[test]
fn payment_waits_with_manual_mining() {
    let Some(chain) = Chain::setup().manual_mining().start() else { return };
    let wallet = chain.wallet();
    let (payer, recipient) = (wallet.account(1), wallet.poor_account().address());
    // Setup transactions are mined even so.
    let token = wallet.deploy_token("USDC", 6);
    wallet.mint(&token, &payer.address(), 5);
    let height = chain.block_number();
    let (first, second) =
        (wallet.transfer(&payer, &token, &recipient, 2), wallet.transfer(&payer, &token, &recipient, 3));
    assert_eq!((chain.receipt(&first), chain.block_number()), (None, height));
    chain.mine(3);
    assert_eq!(chain.block_number(), height + 3);
    for hash in [first, second] {
        assert_eq!(chain.receipt(&hash).unwrap()["status"], "0x1");
    }
    chain.set_automine(true);
    let third = wallet.send_native(&payer, &recipient, 1);
    assert_eq!(chain.mined(&third)["status"], "0x1");
}

#[test]
fn clock_and_state_can_be_changed() {
    let genesis = 1_700_000_000;
    let Some(chain) = Chain::setup().genesis_time(genesis).start() else { return };
    assert_eq!(chain.block_time(), genesis);
    let close = |expected: u64| {
        chain.mine(1);
        let time = chain.block_time();
        assert!((expected..expected + 60).contains(&time), "{time} is not {expected}");
    };
    close(genesis);
    let snapshot = chain.snapshot();
    chain.increase_time(86_400);
    close(genesis + 86_400);
    chain.set_time(genesis + 1_000_000);
    close(genesis + 1_000_000);
    assert_eq!(chain.block_number(), 3);
    chain.revert(&snapshot);
    assert_eq!(chain.block_number(), 1);
    close(genesis);
}

#[test]
fn interval_mining_produces_and_finalises_blocks() {
    let Some(chain) = Chain::setup().block_time(1).slots_in_an_epoch(2).hardfork("london").accounts(1).start() else {
        return;
    };
    assert_eq!(chain.rpc("eth_accounts", json!([])).as_array().unwrap().len(), 1);
    let payment = chain.wallet().send_native(&chain.wallet().account(0), &chain.wallet().poor_account().address(), 1);
    assert_eq!(chain.mined(&payment)["status"], "0x1");
    let height = chain.block_number();
    let _ = chain.wallet().deploy_token("USDC", 6);
    assert!(chain.block_number() > height);
    // No further blocks are mined from here on.
    let _ = chain.rpc("evm_setIntervalMining", json!([0]));
    chain.mine(10);
    let block = |tag: &str| chain.rpc("eth_getBlockByNumber", json!([tag, false]))["number"].clone();
    let newest = chain.block_number();
    let expected = [newest, newest - 2, newest - 4].map(|number| json!(format!("{number:#x}")));
    assert_eq!(["latest", "safe", "finalized"].map(block), expected);
}
