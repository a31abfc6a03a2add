//! `metering signup-pay`, `topup` and `rotate` against the real server and a real chain, killed at every step.

mod gate;

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use metering_tests::chain::Chain;
use metering_tests::chain::account::Account;
use metering_tests::program::program;
use serde_json::{Value, json};

use crate::support::shop::{Kind, Shop};
use gate::{Gate, HoldPoint};

/// A user with a wallet, the program and a profile.
struct Payer {
    wallet: Account,
    home: PathBuf,
    service_url: String,
    rpc_url: String,
}

impl Payer {
    fn new(shop: &Shop, wallet: Account, service_url: &str, rpc_url: &str) -> Self {
        let home = shop.site.path(&format!("home-{}", wallet.address()));
        Self { wallet, home, service_url: service_url.to_owned(), rpc_url: rpc_url.to_owned() }
    }

    /// A payer that sends its requests directly to the shop.
    fn at(shop: &Shop) -> Self {
        let url = format!("http://{}", shop.server.address());
        Self::new(shop, shop.customer(), &url, &shop.chain.url())
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

    fn has_pending_payment(&self) -> bool {
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

#[test]
fn top_up_by_another_wallet_links_it_by_its_proof() {
    let Some(shop) = Shop::open() else { return };
    let owner = Payer::at(&shop);
    owner.run(&Payer::signup(Kind::Token));
    let before = shop.balance(&owner.key());
    assert_eq!(before, "12.5");
    let sponsor = Payer { wallet: shop.customer(), ..Payer::at(&shop) };
    let sponsor = Payer { home: owner.home.clone(), ..sponsor };
    for (kind, after) in [(Kind::Token, "23"), (Kind::Native, "27")] {
        let credited = sponsor.run(&["topup", "--plan", kind.plan(), "--yes"]);
        assert_eq!(credited["credit_balance"].to_string(), after);
        let again = sponsor.run(&["topup", "--plan", kind.plan(), "--tx", credited["tx_hash"].as_str().unwrap()]);
        assert_eq!(
            (&again["already_credited"], again["amount_added"].to_string()),
            (&json!(true), kind.credits().to_owned())
        );
    }
    assert_eq!(transactions(&shop.chain, &sponsor.wallet), "0x2");
    // A wallet that is linked for top-ups cannot take over the account.
    let refused = sponsor.spawn(&["rotate"]).wait_with_output().unwrap();
    assert_ne!(refused.status.code(), Some(0));
    shop.site.verify();
}

#[test]
fn quote_paid_by_another_wallet_can_be_claimed() {
    let Some(shop) = Shop::open() else { return };
    let payer = Payer::at(&shop);
    let quote = payer.run(&["signup-pay", "--plan", "coin", "--agent-name", "agent", "--quote-only"]);
    assert_eq!(quote["recipient"], shop.recipient.checksummed());
    let units: u128 = quote["amount_atomic"].as_str().unwrap().parse().unwrap();
    let hash = shop.pay(Kind::Native, &payer.wallet, units);
    payer.run(&["signup-pay", "--tx", &hash]);
    assert_eq!(shop.balance(&payer.key()), "6");
    shop.site.verify();
}

#[test]
fn signup_killed_at_any_step_is_paid_once() {
    let Some(shop) = Shop::open() else { return };
    let (service, node) = (Gate::in_front_of(shop.server.address()), Gate::in_front_of(shop.chain.address()));
    let shop = shop.with_public_url(&service.url());
    service.forward_to(shop.server.address());
    // which server is called, the request, when it is held back
    let steps = [
        (&node, "eth_estimateGas", HoldPoint::Before),
        (&node, "eth_sendRawTransaction", HoldPoint::Before),
        (&node, "eth_sendRawTransaction", HoldPoint::After),
        (&service, "/signup/pay/claim", HoldPoint::Before),
        (&service, "/signup/pay/claim", HoldPoint::After),
    ];
    for (made, (gate, what, held)) in (1..).zip(steps) {
        let payer = Payer::new(&shop, shop.customer(), &service.url(), &node.url());
        gate.hold(what, held);
        payer.run_and_kill(&Payer::signup(Kind::Token), gate);
        assert!(payer.has_pending_payment(), "{what} {held:?}");
        payer.run(&["signup-pay", "--yes"]);
        assert_eq!(shop.balance(&payer.key()), "12.5", "{what} {held:?}");
        assert_eq!(transactions(&shop.chain, &payer.wallet), "0x1", "{what} {held:?}");
        assert_eq!(shop.accounts(), made, "{what} {held:?}");
        assert!(!payer.has_pending_payment());
    }
    shop.site.verify();
}

#[test]
fn topup_killed_at_any_step_is_paid_and_credited_once() {
    let Some(shop) = Shop::open() else { return };
    let (service, node) = (Gate::in_front_of(shop.server.address()), Gate::in_front_of(shop.chain.address()));
    let shop = shop.with_public_url(&service.url());
    service.forward_to(shop.server.address());
    let owner = Payer::new(&shop, shop.customer(), &service.url(), &node.url());
    owner.run(&Payer::signup(Kind::Token));
    let steps = [
        (&node, "eth_estimateGas", HoldPoint::Before),
        (&node, "eth_sendRawTransaction", HoldPoint::Before),
        (&node, "eth_sendRawTransaction", HoldPoint::After),
        (&service, "/credits/topup", HoldPoint::Before),
        (&service, "\"signature\"", HoldPoint::Before),
        (&service, "\"signature\"", HoldPoint::After),
    ];
    let topup = ["topup", "--plan", "coin", "--yes"];
    for (times, (gate, what, held)) in (1..).zip(steps) {
        // From a wallet that must prove its ownership.
        let sponsor = Payer { wallet: shop.customer(), ..Payer::at(&shop) };
        let url = (service.url(), node.url());
        let sponsor = Payer { home: owner.home.clone(), service_url: url.0, rpc_url: url.1, ..sponsor };
        gate.hold(what, held);
        sponsor.run_and_kill(&topup, gate);
        sponsor.run(&topup);
        assert_eq!(transactions(&shop.chain, &sponsor.wallet), "0x1", "{what} {held:?}");
        assert_eq!(shop.balance(&owner.key()), bought(times), "{what} {held:?}");
    }
    shop.site.verify();
}

/// The balance of an account that bought the plan `starter` and topped up `times` times by the plan `coin`.
fn bought(times: u32) -> String {
    format!("{}.5", 12 + 4 * times)
}

#[test]
fn pending_transaction_is_not_sent_again() {
    let Some(shop) = Shop::open() else { return };
    shop.chain.set_automine(false);
    let payer = Payer::at(&shop);
    let signup = [&Payer::signup(Kind::Native)[..], &["--wait", "0"]].concat();
    for _ in 0..2 {
        let waited = payer.spawn(&signup).wait_with_output().unwrap();
        assert_eq!(waited.status.code(), Some(8), "{waited:?}");
    }
    shop.chain.mine(1);
    payer.run(&signup);
    assert_eq!(transactions(&shop.chain, &payer.wallet), "0x1");
    assert_eq!(shop.balance(&payer.key()), "6");
    shop.site.verify();
}
