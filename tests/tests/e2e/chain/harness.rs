//! Checks the chain harness itself: its node and its wallet do what they claim.

use metering_tests::chain::Chain;
use metering_tests::chain::account::Account;
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
