//! `metering signup-pay`, `topup` and `rotate` against the real server and a real chain, killed at every step.

mod gate;

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use metering_tests::answer::Answer;
use metering_tests::chain::Chain;
use metering_tests::chain::account::Account;
use metering_tests::program::program;
use serde_json::{Value, json};

use crate::market::{Kind, Market};
use gate::{Gate, Held};

/// A user with a wallet, the program and a profile.
struct Payer {
    wallet: Account,
    home: PathBuf,
    service_url: String,
    rpc_url: String,
}

impl Payer {
    fn new(market: &Market, wallet: Account, service_url: &str, rpc_url: &str) -> Self {
        let home = market.site.path(&format!("home-{}", wallet.address()));
        Self { wallet, home, service_url: service_url.to_owned(), rpc_url: rpc_url.to_owned() }
    }

    /// A payer that sends its requests directly to the market.
    fn at(market: &Market) -> Self {
        let url = format!("http://{}", market.server.address());
        Self::new(market, market.customer(), &url, &market.chain.url())
    }

    fn spawn(&self, args: &[&str]) -> Child {
        let mut command = Command::new(program("metering"));
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("METERING_")) {
            command.env_remove(name);
        }
        command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.env("METERING_CLIENT_HOME", &self.home).env("METERING_CLIENT_URL", &self.service_url);
        command.env("METERING_CLIENT_RPC_URL", &self.rpc_url);
        command.env("METERING_CLIENT_WALLET_KEY", self.wallet.private_key());
        command.spawn().unwrap()
    }

    /// Runs a command that must succeed, and returns the document that it prints.
    #[track_caller]
    fn run(&self, args: &[&str]) -> Value {
        let output = self.spawn(&[args, &["--json"]].concat()).wait_with_output().unwrap();
        let (stdout, stderr) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert_eq!(output.status.code(), Some(0), "{args:?}: {stdout}{stderr}");
        for secret in [&self.wallet.private_key()[2..], "sk_live_", "sqn_"] {
            assert!(!stdout.contains(secret) && !stderr.contains(secret), "{args:?}: {stdout}{stderr}");
        }
        serde_json::from_str(&stdout).unwrap()
    }

    /// Starts a command, and kills it once the gate holds back one of its requests.
    #[track_caller]
    fn run_and_kill(&self, args: &[&str], gate: &Gate) {
        let mut child = self.spawn(args);
        gate.wait();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// The API key in the profile.
    #[track_caller]
    fn key(&self) -> String {
        let text = std::fs::read_to_string(self.home.join("profiles/default/profile.toml")).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("api_key = ")).expect("the profile has a key");
        line.trim_matches('"').to_owned()
    }

    fn has_something_pending(&self) -> bool {
        self.home.join("profiles/default/payment.json").exists()
    }

    fn signup(kind: Kind) -> Vec<&'static str> {
        vec!["signup-pay", "--plan", kind.plan(), "--agent-name", "agent", "--yes"]
    }
}

/// How many transactions of a wallet the chain has.
fn transactions(chain: &Chain, wallet: &Account) -> Value {
    chain.rpc("eth_getTransactionCount", json!([wallet.address(), "latest"]))
}

fn balance(market: &Market, key: &str) -> Answer {
    market.server.client_with(key).get("/credits/balance")
}

#[test]
fn the_whole_life_of_an_account_that_pays() {
    let Some(market) = Market::open() else { return };
    for kind in Kind::BOTH {
        let payer = Payer::at(&market);
        let approved = payer.run(&Payer::signup(kind));
        let key = payer.key();
        // Includes the two free credits.
        let bought = if kind == Kind::Token { "12.5" } else { "6" };
        assert_eq!(market.balance(&key), bought);
        assert_eq!(transactions(&market.chain, &payer.wallet), "0x1");
        assert!(market.chain.receipt(approved["tx_hash"].as_str().unwrap()).is_some());

        let credited = payer.run(&["topup", "--plan", kind.plan(), "--yes"]);
        assert_eq!(credited["amount_added"].to_string(), kind.credits());
        assert_eq!(transactions(&market.chain, &payer.wallet), "0x2");

        let rotated = payer.run(&["rotate"]);
        assert_eq!(rotated["org_id"], approved["org_id"]);
        let _ = balance(&market, &key).expect(401);
        let _ = balance(&market, &payer.key()).expect(200);
        assert!(!payer.has_something_pending());
    }
    market.site.verify();
}

#[test]
fn another_wallet_tops_an_account_up_and_is_linked_by_its_proof() {
    let Some(market) = Market::open() else { return };
    let owner = Payer::at(&market);
    owner.run(&Payer::signup(Kind::Token));
    let before = market.balance(&owner.key());
    assert_eq!(before, "12.5");
    let sponsor = Payer { wallet: market.customer(), ..Payer::at(&market) };
    let sponsor = Payer { home: owner.home.clone(), ..sponsor };
    for (kind, after) in [(Kind::Token, "23"), (Kind::Native, "27")] {
        let credited = sponsor.run(&["topup", "--plan", kind.plan(), "--yes"]);
        assert_eq!(credited["credit_balance"].to_string(), after);
        let again = sponsor.run(&["topup", "--plan", kind.plan(), "--tx", credited["tx_hash"].as_str().unwrap()]);
        assert_eq!((&again["already_credited"], again["amount_added"].to_string()), (&json!(true), "0".to_owned()));
    }
    assert_eq!(transactions(&market.chain, &sponsor.wallet), "0x2");
    // A wallet that is linked for top-ups cannot take over the account.
    let refused = sponsor.spawn(&["rotate"]).wait_with_output().unwrap();
    assert_ne!(refused.status.code(), Some(0));
    market.site.verify();
}

#[test]
fn a_quote_is_paid_by_another_wallet_and_claimed() {
    let Some(market) = Market::open() else { return };
    let payer = Payer::at(&market);
    let quote = payer.run(&["signup-pay", "--plan", "coin", "--agent-name", "agent", "--quote-only"]);
    assert_eq!(quote["recipient"], market.recipient.checksummed());
    let units: u128 = quote["amount_atomic"].as_str().unwrap().parse().unwrap();
    let hash = market.pay(Kind::Native, &payer.wallet, units);
    payer.run(&["signup-pay", "--tx", &hash]);
    assert_eq!(market.balance(&payer.key()), "6");
    market.site.verify();
}

#[test]
fn a_signup_that_is_killed_at_any_step_is_paid_once() {
    let Some(market) = Market::open() else { return };
    let (service, node) = (Gate::before(market.server.address()), Gate::before(market.chain.address()));
    let market = market.known_as(&service.url());
    service.lead_to(market.server.address());
    // which server is called, the request, when it is held back
    let steps = [
        (&node, "eth_estimateGas", Held::Before),
        (&node, "eth_sendRawTransaction", Held::Before),
        (&node, "eth_sendRawTransaction", Held::After),
        (&service, "/signup/pay/claim", Held::Before),
        (&service, "/signup/pay/claim", Held::After),
    ];
    for (made, (gate, what, held)) in (1..).zip(steps) {
        let payer = Payer::new(&market, market.customer(), &service.url(), &node.url());
        gate.hold(what, held);
        payer.run_and_kill(&Payer::signup(Kind::Token), gate);
        assert!(payer.has_something_pending(), "{what} {held:?}");
        payer.run(&["signup-pay", "--yes"]);
        assert_eq!(market.balance(&payer.key()), "12.5", "{what} {held:?}");
        assert_eq!(transactions(&market.chain, &payer.wallet), "0x1", "{what} {held:?}");
        assert_eq!(market.accounts(), made, "{what} {held:?}");
        assert!(!payer.has_something_pending());
    }
    market.site.verify();
}

#[test]
fn a_topup_that_is_killed_at_any_step_is_paid_and_credited_once() {
    let Some(market) = Market::open() else { return };
    let (service, node) = (Gate::before(market.server.address()), Gate::before(market.chain.address()));
    let market = market.known_as(&service.url());
    service.lead_to(market.server.address());
    let owner = Payer::new(&market, market.customer(), &service.url(), &node.url());
    owner.run(&Payer::signup(Kind::Token));
    let steps = [
        (&node, "eth_estimateGas", Held::Before),
        (&node, "eth_sendRawTransaction", Held::Before),
        (&node, "eth_sendRawTransaction", Held::After),
        (&service, "/credits/topup", Held::Before),
        (&service, "\"signature\"", Held::Before),
        (&service, "\"signature\"", Held::After),
    ];
    let topup = ["topup", "--plan", "coin", "--yes"];
    for (times, (gate, what, held)) in (1..).zip(steps) {
        // From a wallet that must prove its ownership.
        let sponsor = Payer { wallet: market.customer(), ..Payer::at(&market) };
        let url = (service.url(), node.url());
        let sponsor = Payer { home: owner.home.clone(), service_url: url.0, rpc_url: url.1, ..sponsor };
        gate.hold(what, held);
        sponsor.run_and_kill(&topup, gate);
        sponsor.run(&topup);
        assert_eq!(transactions(&market.chain, &sponsor.wallet), "0x1", "{what} {held:?}");
        assert_eq!(market.balance(&owner.key()), bought(times), "{what} {held:?}");
    }
    market.site.verify();
}

/// The balance of an account that bought the plan `starter` and topped up `times` times by the plan `coin`.
fn bought(times: u32) -> String {
    format!("{}.5", 12 + 4 * times)
}

#[test]
fn a_transaction_that_waits_for_a_block_is_not_made_again() {
    let Some(market) = Market::open() else { return };
    market.chain.set_automine(false);
    let payer = Payer::at(&market);
    let signup = [&Payer::signup(Kind::Native)[..], &["--wait", "0"]].concat();
    for _ in 0..2 {
        let waited = payer.spawn(&signup).wait_with_output().unwrap();
        assert_eq!(waited.status.code(), Some(8), "{waited:?}");
    }
    market.chain.mine(1);
    payer.run(&signup);
    assert_eq!(transactions(&market.chain, &payer.wallet), "0x1");
    assert_eq!(market.balance(&payer.key()), "6");
    market.site.verify();
}
