//! Startup errors for chains and plans that differ from their configuration.

use metering_tests::chain::Chain;
use metering_tests::chain::proxy::Proxy;
use metering_tests::chain::proxy::fault::Fault;
use metering_tests::command::ProgramOutput;
use metering_tests::site::Site;
use serde_json::json;

use crate::support::shop::{Kind, Shop};

/// The configuration section of a chain.
fn section(chain_id: u64, url: &str, more: &str) -> String {
    format!(
        "[chains.devnet]\nchain_id = {chain_id}\nrecipient = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'\n\
         rpc_urls = ['{url}']\nattempts = 1\nrequest_timeout = '1s'\n{more}\n"
    )
}

fn run(site: &Site, config: &str) -> ProgramOutput {
    let file = site.write("metering.toml", config);
    site.server().args(["--config", file.to_str().unwrap()]).run()
}

#[test]
fn wrong_chain_id_or_plan_stops_startup() {
    let Some(chain) = Chain::start() else { return };
    let site = Site::new();
    let output = run(&site, &section(1, &chain.url(), ""));
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.stderr.contains("chain 31337") && output.stderr.contains("chain 1"), "{output:?}");

    let token = chain.wallet().deploy_token("USDC", 6);
    for (contract, decimals, expected_text) in
        [(token.as_str(), 18, "6 decimals"), (&chain.wallet().account(1).address(), 6, "no contract")]
    {
        let plan = json!([{"id": "p", "chain_id": 31337, "token_symbol": "USDC", "payment_kind": "erc20", "credits": 1,
            "token_amount": "1", "token_contract": contract, "token_decimals": decimals, "label": "P"}]);
        let file = site.write("plan.json", &plan.to_string());
        assert_eq!(site.admin(&["plan", "import", file.to_str().unwrap()]).code, Some(0));
        let output = run(&site, &section(31337, &chain.url(), ""));
        assert_eq!(output.code, Some(1), "{output:?}");
        assert!(output.stderr.contains(expected_text) && output.stderr.contains("plan p on chain 31337"), "{output:?}");
    }
}

#[test]
fn unreachable_chain_fails_ready_and_is_retried() {
    let Some(chain) = Chain::start() else { return };
    let proxy = Proxy::start(&chain);
    proxy.set(Fault::HttpError(500));
    let site = Site::new();
    let config = section(31337, &format!("{}/KEY-THAT-NOBODY-SEES", proxy.url()), "");
    let file = site.write("metering.toml", &config);
    let server = site.server().args(["--config", file.to_str().unwrap()]).start();
    let ready = server.client().get("/ready").expect(503);
    assert_eq!(ready.error(), "chain_unreachable");
    let _ = server.client().get("/health").expect(200);
    assert!(!server.log().contains("KEY-THAT-NOBODY-SEES"), "{}", server.log());
    proxy.set(Fault::PassThrough);
    let started = std::time::Instant::now();
    while server.client().get("/ready").status != 200 {
        assert!(started.elapsed().as_secs() < 60, "the server did not recover: {}", server.log());
        std::thread::sleep(std::time::Duration::from_millis(500));
    }
    let printed = site.server().args(["--config", file.to_str().unwrap(), "--print-config"]).run();
    assert!(printed.stdout.contains("devnet") && !printed.stdout.contains("KEY-THAT-NOBODY-SEES"), "{printed:?}");
}

#[test]
fn invalid_chain_settings_are_named_by_key() {
    let site = Site::new();
    let url = "http://127.0.0.1:1";
    let table = [
        (section(1, url, "agree = 2"), "chains.devnet.agree"),
        (section(1, url, "finality = 0"), "chains.devnet.finality"),
        (section(1, url, "finality = 'soon'"), "chains.devnet.finality"),
        (section(1, url, "confirmations = 0"), "chains.devnet.confirmations"),
        (section(1, url, "confirmations = 3\nfinality = 2"), "chains.devnet.confirmations"),
        (section(1, url, "confirmation = 3"), "chains.devnet"),
        (section(1, "ftp://127.0.0.1", ""), "chains.devnet.rpc_urls"),
        (section(1, url, "").replace("0x5aA", "0x5AA"), "chains.devnet.recipient"),
    ];
    for (config, key) in table {
        let output = run(&site, &config);
        assert_eq!(output.code, Some(1), "{config}: {output:?}");
        assert!(output.stderr.contains(key), "{key}: {output:?}");
    }
}

#[test]
fn chain_without_source_lists_plans_but_sells_none() {
    let Some(shop) = Shop::open() else { return };
    let Shop { chain, site, server, .. } = shop;
    drop(server);
    let config = section(31337, "", "").replace("rpc_urls = ['']\n", "");
    let file = site.write("metering.toml", &config);
    let server = site.server().args(["--config", file.to_str().unwrap()]).start();
    let plans = server.client().get("/credits/plans").expect(200).json();
    assert_eq!(plans["plans"].as_array().map(Vec::len), Some(2));
    let body = json!({"agent_name": "a", "plan_id": Kind::Native.plan(), "chain_id": 31337, "token_symbol": "eth",
        "payer_address": chain.wallet().account(0).address()});
    assert_eq!(server.client().post("/signup/pay/quote", &body).expect(503).error(), "payment_not_configured");
    let elsewhere = json!({"agent_name": "a", "plan_id": "coin", "chain_id": 5, "token_symbol": "eth",
        "payer_address": chain.wallet().account(0).address()});
    assert_eq!(server.client().post("/signup/pay/quote", &elsewhere).expect(400).error(), "unsupported_chain");
}
