//! A server that offers payments with requests, on a chain with USDC, and the published clients that pay it.

use std::path::{Path, PathBuf};
use std::process::Command;

use metering_tests::chain::account::Account;
use metering_tests::chain::wallet::authorizations::USDC;
use metering_tests::chain::{Chain, ChainSetup};
use metering_tests::response::Response;
use metering_tests::server::Server;
use metering_tests::site::Site;
use metering_tests::{skipped, worker};
use serde_json::{Value, json};

use crate::support::wait::until;
use crate::support::wire::{BASE, CREDIT};

/// Set by `./test.sh` on a machine without Node.js or Python.
const SKIP: &str = "TESTS_SKIP_X402";
/// Base Sepolia, the chain where stock clients pay [`USDC`] by default.
pub(crate) const CHAIN_ID: u64 = 84_532;

/// The cheapest offer, in credits and in units of USDC.
pub(crate) const OFFER: i64 = CREDIT / 20;
pub(crate) const UNITS: u128 = 50_000;
/// A payer's initial funds, in units of USDC: a dollar.
pub(super) const PURSE: u128 = 1_000_000;

/// A published client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stock {
    /// npm `@x402/fetch`.
    Fetch,
    /// npm `@x402/fetch` with `@x402/extensions`: its wallet signs in, and pays only if that is not enough.
    FetchSigning,
    /// The same, with a signer that spells its address in lower case.
    FetchSigningLower,
    /// npm `@x402/extensions` alone: its wallet signs in, and never pays.
    FetchSigningOnly,
    /// The same wallet, which gets a key from `POST /keys`.
    KeyForWallet,
    /// npm `@x402/fetch`, whose payment has an id. It pays with its first call, and sends that payment again with the
    /// others.
    FetchIdentified,
    /// npm `@x402/fetch` with `@x402/extensions`, which checks the service's signatures: its body has the result.
    FetchReceipts,
    /// npm `@x402/fetch` with the scheme `upto` of `@x402/evm`.
    FetchUpto,
    /// npm `@x402/axios`.
    Axios,
    /// npm `x402-fetch`, which speaks version 1.
    FetchV1,
    /// PyPI `x402` with httpx.
    Httpx,
    /// PyPI `x402` with requests.
    Requests,
}

/// A call of a published client, as its script reported it.
#[derive(Debug, Clone)]
pub(crate) struct Call(Value);

/// The deployment.
#[derive(Debug)]
pub(crate) struct Market {
    pub(crate) chain: Chain,
    pub(crate) site: Site,
    pub(crate) server: Server,
    pub(crate) recipient: Account,
    settings: String,
}

/// How payments are settled in a [`Market`].
#[derive(Debug, Clone, Default)]
pub(crate) struct Terms {
    /// Lines of the section `[pay]` that say who executes payments. By default the server, with a wallet that has
    /// coins.
    pub(crate) settle: Option<String>,
    /// More lines of that section.
    pub(crate) more: String,
    /// Other lines of the configuration, before all sections.
    pub(crate) first: String,
    /// More sections.
    pub(crate) sections: String,
    /// Where the chain is read, if not at its node.
    pub(crate) rpc_url: Option<String>,
}

/// The folder with the scripts and packages.
#[track_caller]
pub(crate) fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("x402");
    let packages = folder.join("node_modules");
    assert!(packages.is_dir(), "{} is missing: run `npm ci` in tests/x402, or ./test.sh", packages.display());
    folder
}

/// A chain with USDC, unless these tests are skipped.
pub(crate) fn chain(setup: ChainSetup) -> Option<Chain> {
    if skipped::by(SKIP) {
        return None;
    }
    let chain = setup.chain_id(CHAIN_ID).start()?;
    chain.wallet().place_usdc();
    Some(chain)
}

impl Market {
    /// A market whose server executes payments itself, and offers 0.05 and 0.5 credits for as many USDC.
    pub(crate) fn open() -> Option<Self> {
        let market = Self::on(chain(Chain::setup())?, &Terms::default());
        market.wait_for_offers();
        Some(market)
    }

    /// A market on this chain. It may have no offers yet.
    pub(crate) fn on(chain: Chain, terms: &Terms) -> Self {
        let (site, recipient) = (Site::verified(), chain.wallet().poor_account());
        let settle = terms.settle.clone().unwrap_or_else(|| own(&site, &chain.wallet().new_account()));
        let rpc_url = terms.rpc_url.clone().unwrap_or_else(|| chain.url());
        let settings = format!(
            "{}[sample]\nblock_time = '50ms'\n[payments]\nwatch_interval = '200ms'\n[chains.base-sepolia]\nchain_id = {CHAIN_ID}\nrecipient = '{}'\n\
             rpc_urls = ['{rpc_url}']\nconfirmations = 1\nfinality = 1\n\
             [pay]\n{settle}poll = '100ms'\n{}\
             [[pay.offers]]\nchain = 'base-sepolia'\nasset = '{USDC}'\namounts = ['0.05', '0.5']\n\
             credits_per_unit = '1'\n{}",
            terms.first,
            recipient.checksummed(),
            terms.more,
            terms.sections,
        );
        let server = start(&site, &settings);
        Self { chain, site, server, recipient, settings }
    }

    /// Ends the server without warning, does something, and starts it again on the same data.
    pub(crate) fn restart_after(self, between: impl FnOnce(&Chain, &Site)) -> Self {
        let Self { chain, site, server, recipient, settings } = self;
        server.kill();
        between(&chain, &site);
        let server = start(&site, &settings);
        Self { chain, site, server, recipient, settings }
    }

    /// Waits until requests without a key can pay.
    #[track_caller]
    pub(crate) fn wait_for_offers(&self) {
        until("the server makes offers", || self.without_key().status == 402);
    }

    /// A metered request without a key and a payment.
    pub(crate) fn without_key(&self) -> Response {
        self.server.client().get(BASE)
    }

    /// A wallet with USDC and without coins, so that it cannot pay gas.
    pub(crate) fn payer(&self) -> Account {
        let payer = self.chain.wallet().poor_account();
        self.chain.wallet().mint(USDC, &payer.address(), PURSE);
        payer
    }

    /// How many units of USDC an account has.
    pub(crate) fn held_by(&self, account: &Account) -> u128 {
        self.chain.wallet().token_balance(USDC, &account.address()).parse().unwrap()
    }

    /// Asserts how many units of USDC a payer has paid, and that only it has paid.
    #[track_caller]
    pub(crate) fn assert_paid(&self, payer: &Account, units: u128) {
        let wallet = self.chain.wallet();
        let held = [payer, &self.recipient].map(|account| wallet.token_balance(USDC, &account.address()));
        assert_eq!(held, [(PURSE - units).to_string(), units.to_string()]);
    }

    /// Makes calls with a published client, one after another in one process.
    #[track_caller]
    pub(crate) fn call(&self, stock: Stock, payer: &Account, key: Option<&str>, path: &str, calls: u32) -> Vec<Call> {
        let request = self.request(stock, payer, key, path, calls);
        Call::all(&mut stock.program(), &request).unwrap_or_else(|error| panic!("{stock:?}: {error}"))
    }

    /// Makes a POST request without a body with a published client.
    #[track_caller]
    pub(crate) fn post(&self, stock: Stock, payer: &Account, key: Option<&str>, path: &str) -> Call {
        let mut request = self.request(stock, payer, key, path, 1);
        request["method"] = "POST".into();
        let calls = Call::all(&mut stock.program(), &request);
        calls.unwrap_or_else(|error| panic!("{stock:?}: {error}")).remove(0)
    }

    /// A request to [`Stock::program`]: to make these calls.
    pub(crate) fn request(&self, stock: Stock, payer: &Account, key: Option<&str>, path: &str, calls: u32) -> Value {
        let url = format!("http://{}{path}", self.server.address());
        json!({"client": stock.name(), "url": url, "payerKey": payer.private_key(), "apiKey": key, "calls": calls})
    }
}

impl Stock {
    /// The program that makes its calls, for [`worker::ask`].
    pub(crate) fn program(self) -> Command {
        match self {
            Self::Httpx | Self::Requests => worker::python("x402-venv", &folder().join("call.py")),
            _ => {
                let mut command = Command::new("node");
                command.arg(folder().join("call.mjs"));
                command
            }
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Fetch => "fetch",
            Self::FetchSigning => "fetch-signing",
            Self::FetchSigningLower => "fetch-signing-lower",
            Self::FetchSigningOnly => "fetch-signing-only",
            Self::KeyForWallet => "key-for-wallet",
            Self::FetchIdentified => "fetch-identified",
            Self::FetchReceipts => "fetch-receipts",
            Self::FetchUpto => "fetch-upto",
            Self::Axios => "axios",
            Self::FetchV1 => "fetch-v1",
            Self::Httpx => "httpx",
            Self::Requests => "requests",
        }
    }

    /// The header that it pays with.
    pub(crate) const fn header(self) -> &'static str {
        match self {
            Self::FetchV1 => "X-PAYMENT",
            _ => "PAYMENT-SIGNATURE",
        }
    }
}

impl Call {
    /// The calls that a program made.
    pub(crate) fn all(program: &mut Command, request: &Value) -> Result<Vec<Self>, String> {
        let calls = worker::ask(program, request)?;
        Ok(calls.as_array().expect("a list of calls").iter().cloned().map(Self).collect())
    }

    pub(crate) fn status(&self) -> u64 {
        self.0["status"].as_u64().unwrap()
    }

    pub(crate) fn body(&self) -> &str {
        self.0["body"].as_str().unwrap()
    }

    /// The code of an error.
    pub(crate) fn error(&self) -> String {
        let body: Value = serde_json::from_str(self.body()).unwrap();
        body["error"].as_str().unwrap_or_default().to_owned()
    }

    /// The requests that the client made: whether each had a key, and the header that it paid with.
    pub(crate) fn requests(&self) -> Vec<(bool, Option<&str>)> {
        let requests = self.0["requests"].as_array().unwrap();
        requests.iter().map(|sent| (sent["key"] == true, sent["payment"].as_str())).collect()
    }

    /// The sign-in of each request that the client made.
    pub(crate) fn sign_ins(&self) -> Vec<Option<&str>> {
        let requests = self.0["requests"].as_array().unwrap();
        requests.iter().map(|sent| sent["signIn"].as_str()).collect()
    }

    /// The client's data about its payment.
    pub(crate) fn receipt(&self) -> &Value {
        &self.0["receipt"]
    }

    /// Whether it is the response to an earlier request.
    pub(crate) fn is_replayed(&self) -> bool {
        self.0["replayed"] == "true"
    }

    /// The balance after the call.
    pub(crate) fn balance(&self) -> Option<&str> {
        self.0["balance"].as_str()
    }

    /// After how many seconds to try again.
    pub(crate) fn retry_after(&self) -> Option<&str> {
        self.0["retryAfter"].as_str()
    }
}

/// The lines of a server that executes payments itself, with this wallet.
pub(crate) fn own(site: &Site, gas: &Account) -> String {
    let key = site.write("gas.key", gas.private_key());
    format!("settle = 'self'\ngas_key_file = '{}'\n", key.display())
}

fn start(site: &Site, settings: &str) -> Server {
    let file = site.write("metering.toml", settings);
    site.server().args(["--config", file.to_str().unwrap()]).start()
}
