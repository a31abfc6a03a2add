//! The published clients of MPP pay with a key in either header, without one, and for a stream; never twice.

use std::process::{Command, Stdio};

use metering_tests::chain::Chain;
use metering_tests::chain::account::Account;
use metering_tests::worker;
use serde_json::{Value, json};

use super::market::{Call, Market, OFFER, PURSE, Terms, UNITS, chain, folder};
use crate::support::wait::until;
use crate::support::wire::{BASE, BASE_CALL, CREDIT, STREAM, amount, balance};

/// A published client.
#[derive(Debug, Clone, Copy)]
enum Client {
    /// npm `mppx`.
    Mppx,
    /// PyPI `pympp` with httpx.
    Pympp,
}

/// The header with the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyIn {
    Authorization,
    XApiKey,
}

impl KeyIn {
    /// The header of a payment next to the key.
    const fn payment(self) -> &'static str {
        match self {
            Self::Authorization => "Payment-Authorization",
            Self::XApiKey => "Authorization",
        }
    }
}

impl Client {
    /// Makes calls, one after another in one process.
    #[track_caller]
    fn calls(self, market: &Market, payer: &Account, key: Option<(KeyIn, &str)>, path: &str, calls: u32) -> Vec<Call> {
        let folder = folder().join("mpp");
        let mut command = match self {
            Self::Mppx => {
                let packages = folder.join("node_modules");
                assert!(packages.is_dir(), "{} is missing: run `npm ci` there, or ./test.sh", packages.display());
                let mut command = Command::new("node");
                command.arg(folder.join("call.mjs"));
                command
            }
            Self::Pympp => worker::python("mpp-venv", &folder.join("call.py")),
        };
        let url = format!("http://{}{path}", market.server.address());
        let mut request = json!({"url": url, "payerKey": payer.private_key(), "calls": calls});
        if let Some((place, key)) = key {
            request["apiKey"] = key.into();
            request["keyHeader"] = if place == KeyIn::XApiKey { "X-API-Key" } else { "Authorization" }.into();
        }
        Call::all(&mut command, &request).unwrap_or_else(|error| panic!("{self:?}: {error}"))
    }
}

/// Checks a call that was paid: two requests, and a receipt with the transaction.
#[track_caller]
fn assert_paid(market: &Market, call: &Call, key: Option<KeyIn>, left: &str) {
    assert_eq!(call.status(), 200, "{call:?}");
    let header = key.map_or("Authorization", KeyIn::payment);
    assert_eq!(call.requests(), [(key.is_some(), None), (key.is_some(), Some(header))], "{call:?}");
    let receipt = call.receipt();
    assert_eq!((&receipt["status"], &receipt["method"]), (&"success".into(), &"evm".into()), "{receipt}");
    let transaction = market.chain.rpc("eth_getTransactionReceipt", json!([receipt["reference"]]));
    assert_eq!(transaction["status"], "0x1", "{receipt}");
    assert_eq!(call.balance(), Some(left), "{call:?}");
}

/// With an empty balance the client pays once; the remaining credits pay for its next calls.
fn pays_with_a_key(market: &Market, client: Client, place: KeyIn) {
    let (payer, account) = (market.payer(), market.site.account("0"));
    let calls = client.calls(market, &payer, Some((place, &*account.api_key)), BASE, 2);
    assert_paid(market, &calls[0], Some(place), &amount(OFFER - BASE_CALL));
    assert_eq!((calls[1].status(), calls[1].requests()), (200, vec![(true, None)]), "{calls:?}");
    assert!(calls[1].receipt().is_null() && calls[0].body().contains("block_number"), "{calls:?}");
    assert_eq!(market.held_by(&payer), PURSE - UNITS, "{client:?}");
    assert_eq!(balance(&market.server.client_with(&account.api_key)), amount(OFFER - 2 * BASE_CALL));
}

/// Without a key each call is paid, and the rest is on one account: that of the wallet.
fn pays_without_a_key(market: &Market, client: Client) {
    let payer = market.payer();
    let calls = client.calls(market, &payer, None, BASE, 2);
    assert_paid(market, &calls[0], None, &amount(OFFER - BASE_CALL));
    assert_paid(market, &calls[1], None, &amount(2 * (OFFER - BASE_CALL)));
    assert_eq!(market.held_by(&payer), PURSE - 2 * UNITS, "{client:?}");
    let listed = market.site.admin_json(&["account", "list"]);
    assert!(listed.to_string().contains(&payer.address()), "{listed}");
}

/// A stream is paid as any call is, and arrives.
fn pays_for_a_stream(market: &Market, client: Client) {
    let (payer, account) = (market.payer(), market.site.account("0"));
    let key = Some((KeyIn::Authorization, &*account.api_key));
    let calls = client.calls(market, &payer, key, STREAM, 1);
    assert_paid(market, &calls[0], Some(KeyIn::Authorization), &amount(OFFER - CREDIT / 100));
    assert!(calls[0].body().contains("event: block"), "{calls:?}");
    assert_eq!(market.held_by(&payer), PURSE - UNITS, "{client:?}");
}

/// While its payment is not confirmed, the client is notified, and does not pay again.
fn does_not_pay_twice_for_a_pending_payment(client: Client) {
    let Some(chain) = chain(Chain::setup()) else { return };
    let market = Market::on(chain, &Terms { more: "wait = '1s'\n".to_owned(), ..Terms::default() });
    market.wait_for_offers();
    let (payer, account) = (market.payer(), market.site.account("0"));
    market.chain.set_automine(false);
    let key = Some((KeyIn::Authorization, &*account.api_key));
    let call = client.calls(&market, &payer, key, BASE, 1).remove(0);
    assert_eq!((call.status(), call.error()), (503, "settlement_pending".to_owned()), "{call:?}");
    assert_eq!(call.requests(), [(true, None), (true, Some("Payment-Authorization"))]);
    assert!(call.receipt().is_null() && call.retry_after().is_some(), "{call:?}");
    market.chain.mine(1);
    market.chain.set_automine(true);
    let customer = market.server.client_with(&account.api_key);
    until("the payment is credited", || balance(&customer) == amount(OFFER));
    let calls = client.calls(&market, &payer, key, BASE, 1);
    assert_eq!((calls[0].status(), calls[0].requests()), (200, vec![(true, None)]), "{calls:?}");
    market.assert_paid(&payer, UNITS);
}

/// A payment that would fail is refused. No matter how often the client tries, no payment is taken.
fn pays_nothing_from_an_empty_wallet(market: &Market, client: Client) {
    let (poor, account) = (market.chain.wallet().poor_account(), market.site.account("0"));
    let key = Some((KeyIn::XApiKey, &*account.api_key));
    let call = client.calls(market, &poor, key, BASE, 1).remove(0);
    assert_eq!((call.status(), call.error()), (402, "payment_refused".to_owned()), "{call:?}");
    assert!(call.requests().len() <= 4 && call.receipt().is_null(), "{call:?}");
    assert_eq!(balance(&market.server.client_with(&account.api_key)), "0");
}

/// The output of the command line of npm's `mppx`, unchanged, with the wallet of this payer.
#[track_caller]
fn mppx(payer: Option<&Account>, arguments: &[&str]) -> String {
    let (program, home) = (folder().join("mpp/node_modules/.bin/mppx"), tempfile::tempdir().unwrap());
    let mut command = Command::new(program);
    // Without settings from the caller's environment.
    command.args(arguments).env_clear().env("HOME", home.path()).env("CI", "1").env("NO_COLOR", "1");
    command.envs(std::env::var_os("PATH").map(|path| ("PATH", path))).stdin(Stdio::null());
    command.envs(payer.map(|payer| ("MPPX_PRIVATE_KEY", payer.private_key())));
    let output = command.output().expect("mppx can be run");
    let [printed, errors] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(output.status.success(), "mppx {arguments:?}: {printed}{errors}");
    printed
}

#[test]
fn command_line_of_mppx_pays_by_its_own_protocol() {
    let Some(market) = Market::open() else { return };
    let payer = market.payer();
    let url = format!("http://{}{BASE}", market.server.address());
    let printed = mppx(Some(&payer), &[&url, "--protocol", "mpp"]);
    assert!(printed.contains("block_number"), "{printed}");
    market.assert_paid(&payer, UNITS);
}

/// `mppx validate` without a wallet: it checks the challenges, and what a malformed credential gets.
#[test]
fn mppx_finds_the_service_valid() {
    let Some(market) = Market::open() else { return };
    let url = format!("http://{}", market.server.address());
    let report = mppx(None, &["validate", &url, "--endpoint", &format!("GET:{BASE}"), "-j"]);
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!((&report["summary"]["failed"], &report["discovery"]["valid"]), (&json!(0), &json!(true)), "{report:#}");
    let endpoint = &report["endpoints"][0];
    for (part, expected) in
        [("challenge", "Challenge parseable"), ("errorHandling", "Error response includes fresh challenge")]
    {
        let checks = endpoint[part].as_array().unwrap();
        assert!(checks.iter().any(|check| check["label"] == expected), "{endpoint:#}");
        // It also reads the offers of x402.
        let checks = checks.iter().filter(|check| !check["label"].as_str().unwrap().starts_with("x402"));
        let faulty: Vec<_> = checks.filter(|check| check["severity"] != "pass").collect();
        assert!(faulty.is_empty(), "{faulty:#?}");
    }
}

#[test]
fn challenges_are_in_each_402_and_are_never_cached() {
    let Some(market) = Market::open() else { return };
    let challenged = market.without_key();
    assert_eq!(challenged.status, 402);
    let challenge = challenged.header("www-authenticate").unwrap();
    assert!(challenge.starts_with("Payment id=\"") && challenge.contains("realm=\"127.0.0.1\""), "{challenge}");
    assert!(!challenge.contains("header="), "{challenge}");
    assert_eq!(challenged.header("cache-control"), Some("no-store"));
    assert!(challenged.header("payment-required").is_some());
    let account = market.site.account("0");
    let client = market.server.client_with(&account.api_key);
    let challenged = client.get(BASE).expect(402);
    let challenge = challenged.header("www-authenticate").unwrap();
    assert!(challenge.contains("header=\"Payment-Authorization\""), "{challenge}");
    // A single purchase can be paid in the same way: each offer has a line.
    let challenged = client.post("/credits/pay", &json!({})).expect(402);
    let lines = challenged.headers.iter().filter(|(name, _)| name == "www-authenticate").count();
    assert_eq!((lines, challenged.error().as_str()), (2, "payment_required"));
}

fn pays(client: Client) {
    let Some(market) = Market::open() else { return };
    for place in [KeyIn::Authorization, KeyIn::XApiKey] {
        pays_with_a_key(&market, client, place);
    }
    pays_without_a_key(&market, client);
    pays_for_a_stream(&market, client);
    pays_nothing_from_an_empty_wallet(&market, client);
}

#[test]
fn mppx_pays() {
    pays(Client::Mppx);
}

#[test]
fn pympp_pays() {
    pays(Client::Pympp);
}

#[test]
fn mppx_does_not_pay_twice_for_a_pending_payment() {
    does_not_pay_twice_for_a_pending_payment(Client::Mppx);
}

#[test]
fn pympp_does_not_pay_twice_for_a_pending_payment() {
    does_not_pay_twice_for_a_pending_payment(Client::Pympp);
}
