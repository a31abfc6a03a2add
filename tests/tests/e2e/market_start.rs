//! Startup errors for chains and plans that differ from their configuration.

use metering_tests::chain::Chain;
use metering_tests::chain::proxy::Proxy;
use metering_tests::chain::proxy::fault::Fault;
use metering_tests::site::{Ran, Site};
use serde_json::json;

use crate::market::{Kind, Market};

/// The configuration section of a chain.
fn section(chain_id: u64, url: &str, more: &str) -> String {
    format!(
        "[chains.devnet]\nchain_id = {chain_id}\nrecipient = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'\n\
         rpc_urls = ['{url}']\nattempts = 1\nrequest_timeout = '1s'\n{more}\n"
    )
}

fn run(site: &Site, config: &str) -> Ran {
    let file = site.write("metering.toml", config);
    site.server().args(["--config", file.to_str().unwrap()]).run()
}

#[test]
fn a_chain_or_plan_that_is_another_stops_the_start() {
    let Some(chain) = Chain::start() else { return };
    let site = Site::new();
    let ran = run(&site, &section(1, &chain.url(), ""));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("chain 31337") && ran.stderr.contains("chain 1"), "{ran:?}");

    let token = chain.wallet().deploy_token("USDC", 6);
    for (contract, decimals, said) in
        [(token.as_str(), 18, "6 decimals"), (&chain.wallet().account(1).address(), 6, "no contract")]
    {
        let plan = json!([{"id": "p", "chain_id": 31337, "token_symbol": "USDC", "payment_kind": "erc20", "credits": 1,
            "token_amount": "1", "token_contract": contract, "token_decimals": decimals, "label": "P"}]);
        let file = site.write("plan.json", &plan.to_string());
        assert_eq!(site.admin(&["plan", "import", file.to_str().unwrap()]).code, Some(0));
        let ran = run(&site, &section(31337, &chain.url(), ""));
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.stderr.contains(said) && ran.stderr.contains("plan p on chain 31337"), "{ran:?}");
    }
}

#[test]
fn a_chain_that_cannot_be_read_is_told_by_ready_and_tried_again() {
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
    let begun = std::time::Instant::now();
    while server.client().get("/ready").status != 200 {
        assert!(begun.elapsed().as_secs() < 20, "the server did not recover: {}", server.log());
        std::thread::sleep(std::time::Duration::from_millis(500));
    }
    let printed = site.server().args(["--config", file.to_str().unwrap(), "--print-config"]).run();
    assert!(printed.stdout.contains("devnet") && !printed.stdout.contains("KEY-THAT-NOBODY-SEES"), "{printed:?}");
}

#[test]
fn wrong_settings_of_a_chain_are_named_by_their_key() {
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
        let ran = run(&site, &config);
        assert_eq!(ran.code, Some(1), "{config}: {ran:?}");
        assert!(ran.stderr.contains(key), "{key}: {ran:?}");
    }
}

#[test]
fn a_chain_without_a_source_lists_its_plans_and_sells_none() {
    let Some(market) = Market::open() else { return };
    let Market { chain, site, server, .. } = market;
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
