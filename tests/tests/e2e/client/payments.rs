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
}

/// The balance of an account that bought the plan `starter` and topped up `times` times by the plan `coin`.
fn bought(times: u32) -> String {
    format!("{}.5", 12 + 4 * times)
}
