//! Our own client pays: a server with the middleware of the reference implementation, and our server.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use metering_tests::chain::account::Account;
use metering_tests::chain::wallet::authorizations::USDC;
use metering_tests::chain::{Chain, ChainSetup};
use metering_tests::program::program;
use metering_tests::site::Site;
use serde_json::{Value, json};

use super::facilitator::{Facilitator, TIMEOUT};
use super::market::{Market, chain, folder};
use crate::support::wire::{BASE, BASE_CALL, CREDIT, amount, balance};

/// A payer's initial funds, in units of USDC: a dollar.
const PURSE: u128 = 1_000_000;

/// A person with a wallet, and the program.
struct Customer<'s> {
    site: &'s Site,
    wallet: Account,
}

/// A result of the program.
#[derive(Debug)]
struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// A shop of the reference implementation. Dropping it ends it.
struct Shop {
    child: Child,
    _input: ChildStdin,
    url: String,
    lines: Receiver<String>,
}

impl Customer<'_> {
    /// Runs the program with the wallet, and a key if there is one.
    fn run(&self, key: Option<(&str, String)>, args: &[&str]) -> Ran {
        let mut command = Command::new(program("metering"));
        let settings = std::env::vars_os().map(|(name, _)| name);
        for setting in settings.filter(|name| name.to_string_lossy().starts_with("METERING_")) {
            command.env_remove(setting);
        }
        command.env("METERING_CLIENT_HOME", self.site.path("client"));
        command.env("METERING_CLIENT_WALLET_KEY", self.wallet.private_key());
        if let Some((key, url)) = key {
            command.env("METERING_CLIENT_API_KEY", key).env("METERING_CLIENT_URL", url);
        }
        let output = command.args(args).stdin(Stdio::null()).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    #[track_caller]
    fn succeed(&self, key: Option<(&str, String)>, args: &[&str]) -> Ran {
        let ran = self.run(key, args);
        assert_eq!(ran.code, Some(0), "{args:?}: {ran:?}");
        ran
    }
}

impl Ran {
    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl Shop {
    fn start(facilitator: &Facilitator, pay_to: &Account) -> Self {
        let mut command = Command::new("node");
        command.arg(folder().join("server.mjs")).arg(facilitator.url()).env("PAY_TO", pay_to.checksummed());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let (sender, lines) = channel();
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let url = lines.recv_timeout(TIMEOUT).expect("the shop reports its URL");
        Self { child, _input: input, url, lines }
    }

    /// The next requests, such as `GET /weather true 200`: whether they had a payment, and the status.
    #[track_caller]
    fn next(&self, count: usize) -> Vec<String> {
        (0..count).map(|_| self.lines.recv_timeout(TIMEOUT).expect("another request")).collect()
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A wallet with a dollar and without coins.
fn payer(chain: &Chain) -> Account {
    let payer = chain.wallet().poor_account();
    chain.wallet().mint(USDC, &payer.address(), PURSE);
    payer
}

fn start(setup: ChainSetup) -> Option<(Chain, Facilitator)> {
    let chain = chain(setup)?;
    let facilitator = Facilitator::start(&chain);
    Some((chain, facilitator))
}

#[test]
fn shop_of_the_reference_implementation_is_paid_once_for_each_call() {
    let Some((chain, facilitator)) = start(Chain::setup()) else { return };
    let (site, recipient) = (Site::new(), chain.wallet().poor_account());
    let shop = Shop::start(&facilitator, &recipient);
    let customer = Customer { site: &site, wallet: payer(&chain) };
    let paid = |units: u128| {
        let wallet = chain.wallet();
        let held = [&customer.wallet, &recipient].map(|account| wallet.token_balance(USDC, &account.address()));
        assert_eq!(held, [(PURSE - units).to_string(), units.to_string()]);
    };
    let weather = format!("{}/weather?city=Paris", shop.url);
    let ran = customer.succeed(None, &["call", &weather, "--pay", "--max", "0.05"]);
    assert_eq!(ran.json(), json!({"city": "Paris", "served": 1}));
    assert!(
        ran.stderr.contains("Paid 0.05 USDC on chain 84532") && ran.stderr.contains(" in transaction 0x"),
        "{ran:?}"
    );
    assert_eq!(shop.next(2), ["GET /weather?city=Paris false 402", "GET /weather?city=Paris true 200"]);
    paid(50_000);

    let forecast = format!("{}/forecast", shop.url);
    let args = ["call", &forecast, "--pay", "--max", "0.05", "--data", r#"{"days":3}"#];
    assert_eq!(customer.run(None, &args).code, Some(9), "it costs more");
    paid(50_000);
    let args = ["call", &forecast, "--pay", "--max", "0.2", "--data", r#"{"days":3}"#];
    assert_eq!(customer.succeed(None, &args).json(), json!({"asked": {"days": 3}, "served": 2}));
    paid(250_000);
    let _ = shop.next(3);

    // A handler that fails is not paid by that implementation, and the same payment is sent each time.
    let broken = format!("{}/broken", shop.url);
    for requests in [2, 1] {
        assert_eq!(customer.run(None, &["call", &broken, "--pay", "--max", "0.05"]).code, Some(1));
        assert_eq!(shop.next(requests).last().map(String::as_str), Some("GET /broken true 500"));
    }
    paid(250_000);
    // 0.3 dollars are signed, so the daily limit of 0.32 has no room for another 0.05.
    let args = ["call", &weather, "--pay", "--max", "0.05", "--daily-limit", "0.32"];
    assert_eq!(customer.run(None, &args).code, Some(9));
    paid(250_000);
}

#[test]
fn payment_whose_response_was_lost_is_not_made_again() {
    let Some((chain, facilitator)) = start(Chain::setup()) else { return };
    let (site, recipient) = (Site::new(), chain.wallet().poor_account());
    let shop = Shop::start(&facilitator, &recipient);
    let customer = Customer { site: &site, wallet: payer(&chain) };
    let weather = format!("{}/weather", shop.url);
    let args = ["call", &weather, "--pay", "--max", "0.05"];
    let ran = customer.succeed(None, &args);
    assert!(ran.stderr.contains("Paid"), "{ran:?}");
    // As if the program had been killed before it read the response.
    let journal = site.path("client/profiles/default/pay/journal.jsonl");
    let text = std::fs::read_to_string(&journal).unwrap();
    std::fs::write(&journal, format!("{}\n", text.lines().next().unwrap())).unwrap();
    let ran = customer.run(None, &args);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    let held = chain.wallet().token_balance(USDC, &recipient.address());
    assert_eq!(held, "50000");
    customer.succeed(None, &[&args[..], &["--again"]].concat());
    assert_eq!(chain.wallet().token_balance(USDC, &recipient.address()), "100000");
}

#[test]
fn our_server_is_paid_with_a_key_and_without_one() {
    let Some(market) = Market::open() else { return };
    let (account, url) = (market.site.account("0"), format!("http://{}", market.server.address()));
    let customer = Customer { site: &market.site, wallet: market.payer() };
    let with_key = || Some((account.api_key.as_str(), url.clone()));
    let args = ["call", BASE, "--pay", "--max", "0.25"];
    let ran = customer.succeed(with_key(), &args);
    assert!(ran.stdout.contains("block_number") && ran.stderr.contains("Paid 0.05 USDC"), "{ran:?}");
    let left = amount(CREDIT / 20 - BASE_CALL);
    assert!(ran.stderr.contains(&format!("the balance is {left}")), "{ran:?}");
    // The rest is credit: the next call needs no payment.
    let ran = customer.succeed(with_key(), &args);
    assert!(!ran.stderr.contains("Pay"), "{ran:?}");
    assert_eq!(balance(&market.server.client_with(&account.api_key)), amount(CREDIT / 20 - 2 * BASE_CALL));
    market.assert_paid(&customer.wallet, 50_000);

    let target = format!("{url}{BASE}");
    let ran = customer.succeed(None, &["call", &target, "--pay", "--max", "0.25"]);
    assert!(ran.stdout.contains("block_number") && ran.stderr.contains("Paid 0.05 USDC"), "{ran:?}");
    market.assert_paid(&customer.wallet, 100_000);
}

#[test]
fn credits_are_bought_by_signature() {
    let Some(market) = Market::open() else { return };
    let (account, url) = (market.site.account("0"), format!("http://{}", market.server.address()));
    let customer = Customer { site: &market.site, wallet: market.payer() };
    let key = || Some((account.api_key.as_str(), url.clone()));
    let ran = customer.run(key(), &["topup", "--sign"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("--amount: 0.05 USDC, 0.5 USDC"), "{ran:?}");
    market.assert_paid(&customer.wallet, 0);
    let args = ["topup", "--sign", "--amount", "0.5", "--yes"];
    let ran = customer.succeed(key(), &args);
    assert!(ran.stdout.starts_with("Credited     0.5\nBalance      0.5\nTransaction  0x"), "{ran:?}");
    market.assert_paid(&customer.wallet, 500_000);
    // As if the program had been killed before it read the response: the service has the payment.
    let journal = market.site.path("client/profiles/default/pay/journal.jsonl");
    let text = std::fs::read_to_string(&journal).unwrap();
    std::fs::write(&journal, format!("{}\n", text.lines().next().unwrap())).unwrap();
    assert_eq!(customer.succeed(key(), &args).stdout, ran.stdout);
    market.assert_paid(&customer.wallet, 500_000);
    assert_eq!(balance(&market.server.client_with(&account.api_key)), "0.5");
}
