//! Startup when plans have a wrong price or a source serves the wrong chain, when plans become wrong later, and when
//! the chain cannot be reached.

use metering_tests::chain::proxy::Proxy;
use metering_tests::chain::proxy::fault::Fault;
use metering_tests::command::ProgramOutput;
use metering_tests::site::Site;
use serde_json::{Value, json};

use crate::support::shop::{Kind, Shop};
use crate::support::wait::until;
use crate::support::wire::BASE;
use crate::support::wire::retry_after;

#[track_caller]
fn import(site: &Site, plan: Value) {
    let file = site.write("plan.json", &json!([plan]).to_string());
    let output = site.admin(&["plan", "import", file.to_str().unwrap()]);
    assert_eq!(output.code, Some(0), "{output:?}");
}

/// The shop's plan `starter`, in this token with these decimals.
fn starter(token: &str, decimals: u8, active: bool) -> Value {
    json!({"id": "starter", "chain_id": 31337, "token_symbol": "USDC", "payment_kind": "erc20", "credits": 10,
        "token_amount": "5", "token_contract": token, "token_decimals": decimals, "label": "Starter", "active": active})
}

#[track_caller]
fn assert_refused(output: &ProgramOutput, expected: &[&str]) {
    assert_eq!(output.code, Some(1), "{output:?}");
    let last = output.stderr.lines().last().unwrap_or_default();
    assert!(last.starts_with("metering-server: "), "{output:?}");
    assert!(expected.iter().all(|text| last.contains(text)), "{expected:?}: {output:?}");
    assert!(!output.stdout.contains("listening"), "{output:?}");
}

#[test]
fn one_source_of_another_chain_stops_startup() {
    let Some(shop) = Shop::open() else { return };
    let proxy = Proxy::start(&shop.chain);
    proxy.set(Fault::WrongChainId(8453));
    let urls = format!("{}, {}", shop.chain.url(), proxy.url());
    let urls = ("METERING_CHAINS__DEVNET__RPC_URLS", urls.as_str());
    for agree in ["1", "2"] {
        let output = shop.server_with(&[urls, ("METERING_CHAINS__DEVNET__AGREE", agree)]).run();
        assert_refused(&output, &["chain 8453", "chain 31337", "rpc_urls", "chain_id"]);
    }
    assert_refused(
        &shop.server_with(&[("METERING_CHAINS__DEVNET__CHAIN_ID", "8453")]).run(),
        &["chain 8453", "chain 31337"],
    );
    proxy.set(Fault::PassThrough);
    let server = shop.server_with(&[urls, ("METERING_CHAINS__DEVNET__AGREE", "2")]).start();
    let _ = server.client().get("/ready").expect(200);
    assert!(proxy.count("eth_chainId") > 0, "a list in a variable is one string");
}

#[test]
fn plan_with_wrong_token_stops_startup_while_on_sale() {
    let Some(shop) = Shop::open() else { return };
    let wallet = shop.chain.wallet();
    let (batcher, no_contract) = (wallet.deploy_batcher(), wallet.poor_account());
    let other = wallet.deploy_token("DAI", 18);
    let key = shop.site.account("1").api_key;
    let customer = shop.customer();
    // token, decimals, part of the message
    let table = [
        (shop.token.as_str(), 18, "6 decimals"),
        (&other, 6, "18 decimals"),
        (&batcher, 6, "no contract with decimals()"),
        (no_contract.checksummed(), 6, "no contract with decimals()"),
    ];
    for (token, decimals, expected) in table {
        import(&shop.site, starter(token, decimals, true));
        assert_refused(&shop.server_with(&[]).run(), &["plan starter on chain 31337", expected, "metering admin plan"]);
        // Once it has noticed, the running server stops selling the plan and accepting payments for it. It keeps
        // selling the others.
        let refused = || shop.request_quote(Kind::Token, &customer.address());
        until("the plan is checked again", || refused().status != 201);
        assert_eq!(refused().expect(503).error(), "payment_not_configured");
        let hash = format!("0x{}", "12".repeat(32));
        let topped_up = shop.top_up(&key, Kind::Token, &hash, None).expect(503);
        assert_eq!(topped_up.error(), "payment_not_configured");
        let _ = shop.quote(Kind::Native, &customer.address());
    }
    until("the plan is logged as not sold", || shop.server.log().contains("the plan is not sold"));
    import(&shop.site, starter(no_contract.checksummed(), 6, false));
    drop(shop.server_with(&[]).start());
    // After a correction, the plan is sold without a restart.
    import(&shop.site, starter(&shop.token, 6, true));
    until("the plan is sold again", || shop.request_quote(Kind::Token, &customer.address()).status == 201);
}

#[test]
fn startup_without_the_chain_warns_and_sells_later() {
    let Some(mut shop) = Shop::open() else { return };
    let (proxy, customer, key) = (Proxy::start(&shop.chain), shop.customer(), shop.site.account("1").api_key);
    let (url, quote) = (proxy.url(), shop.quote(Kind::Token, &customer.address()));
    let hash = shop.pay(Kind::Token, &customer, quote.units);
    let _ = shop.chain.mined(&hash);
    let nowhere = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    for (url, fault) in [(&nowhere, Fault::PassThrough), (&url, Fault::Timeout), (&url, Fault::HttpError(503))] {
        proxy.set(fault.clone());
        shop.restart_with(&[
            ("METERING_CHAINS__DEVNET__RPC_URLS", url.as_str()),
            ("METERING_CHAINS__DEVNET__REQUEST_TIMEOUT", "1s"),
            ("METERING_CHAINS__DEVNET__ATTEMPTS", "1"),
        ]);
        let log = shop.server.log();
        assert!(log.contains("WARN") && log.contains("the chain cannot be read at the moment"), "{fault:?}: {log}");
        let unready = shop.client().get("/ready").expect(503);
        assert_eq!(unready.error(), "chain_unreachable", "{fault:?}");
        let _ = retry_after(&unready);
        // Endpoints that need no chain still work.
        for path in ["/health", "/credits/plans"] {
            let _ = shop.client().get(path).expect(200);
        }
        let _ = shop.server.client_with(&key).get(BASE).expect(200);
        for refused in [shop.request_quote(Kind::Token, &customer.address()), shop.claim(&quote, &hash)] {
            assert_eq!((refused.status, refused.error().as_str()), (502, "rpc_error"), "{fault:?}");
            let _ = retry_after(&refused);
        }
    }
    proxy.set(Fault::PassThrough);
    until("the chain is read again", || shop.client().get("/ready").status == 200);
    let _ = shop.claim(&quote, &hash).expect(200);
    let new_customer = shop.customer();
    let _ = shop.quote(Kind::Token, &new_customer.address());
}

#[test]
fn chain_without_source_lists_plans_but_sells_none() {
    let site = Site::new();
    import(&site, starter("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", 6, true));
    let config = "[chains.devnet]\nchain_id = 31337\nrecipient = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'\n";
    let file = site.write("metering.toml", config);
    let server = site.server().args(["--config", file.to_str().unwrap()]).start();
    let plans = server.client().get("/credits/plans").expect(200).json();
    assert_eq!(plans["plans"].as_array().map(Vec::len), Some(1));
    for (chain_id, status, code) in [(31337, 503, "payment_not_configured"), (5, 400, "unsupported_chain")] {
        let body = json!({"agent_name": "a", "plan_id": "starter", "chain_id": chain_id, "token_symbol": "USDC",
            "payer_address": "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"});
        assert_eq!(server.client().post("/signup/pay/quote", &body).expect(status).error(), code);
    }
}

#[test]
fn nothing_is_listed_or_sold_without_a_chain() {
    let site = Site::new();
    import(&site, starter("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", 6, true));
    let (server, key) = (site.server().start(), site.account("1").api_key);
    let listed = server.client().get("/credits/plans").expect(200).json();
    assert_eq!((&listed["plans"], &listed["chains"]), (&json!([]), &json!([])));
    let quote = json!({"agent_name": "a", "plan_id": "starter", "chain_id": 31337, "token_symbol": "USDC",
        "payer_address": "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"});
    let hash = format!("0x{}", "12".repeat(32));
    let top_up = json!({"plan_id": "starter", "chain_id": 31337, "tx_hash": hash});
    for (client, path, body) in
        [(server.client(), "/signup/pay/quote", quote), (server.client_with(&key), "/credits/topup", top_up)]
    {
        assert_eq!(client.post(path, &body).expect(503).error(), "payment_not_configured", "{path}");
    }
    let claim = json!({"signup_nonce": "sqn_unknown", "tx_hash": hash});
    assert_eq!(server.client().post("/signup/pay/claim", &claim).expect(404).error(), "not_found");
    let _ = server.client().get("/ready").expect(200);
}

#[test]
fn every_invalid_setting_is_named_by_its_key() {
    let site = Site::new();
    let chain = "[chains.base]\nchain_id = 8453\nrecipient = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'\n\
                 rpc_urls = ['http://127.0.0.1:1/a', 'http://127.0.0.1:1/b']\n";
    let with = |line: &str| format!("{chain}{line}\n");
    let instead = |from: &str, to: &str| chain.replace(from, to);
    let second = chain.replace("[chains.base]", "[chains.other]");
    let table = [
        (with("agree = 3"), "chains.base.agree"),
        (with("watch_from_block = 'genesis'"), "chains.base.watch_from_block"),
        (with("rpc_url = 'http://127.0.0.1:1'"), "rpc_url"),
        (instead("8453", "0"), "chains.base.chain_id"),
        (instead("8453", "'main'"), "chains.base.chain_id"),
        (instead("chain_id = 8453\n", ""), "chain_id"),
        (instead("recipient = ", "receiver = "), "receiver"),
        (
            instead("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "0x0000000000000000000000000000000000000000"),
            "chains.base.recipient",
        ),
        (instead("1BeAed", "1BeAe"), "chains.base.recipient"),
        (instead("1BeAed", "1bEAED"), "chains.base.recipient"),
        (instead("1/b", "1/a"), "chains.base.rpc_urls"),
        (instead("http://127.0.0.1:1/b", ""), "chains.base.rpc_urls"),
        (format!("{chain}{second}"), "chains: two chains have chain_id 8453"),
        (format!("primary_chain = 'other'\n{chain}"), "primary_chain"),
        ("[payments]\nclaim_wait = 'long'\n".to_owned(), "payments.claim_wait"),
        ("[payments]\nclaimwait = '1s'\n".to_owned(), "claimwait"),
        ("[signup]\nfree_credits = '-1'\n".to_owned(), "signup.free_credits"),
        ("[signup]\nfree_credits = 0.5\n".to_owned(), "signup.free_credits"),
        ("[topup]\nrequire_payer_proof = 'maybe'\n".to_owned(), "topup.require_payer_proof"),
        ("[recovery]\nchallenge_lifetime = '-1s'\n".to_owned(), "recovery.challenge_lifetime"),
    ];
    for (config, key) in table {
        let file = site.write("metering.toml", &config);
        let output = site.server().args(["--config", file.to_str().unwrap()]).run();
        assert_refused(&output, &[key]);
    }
    assert!(!site.database().exists(), "no database was created");
}
