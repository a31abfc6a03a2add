//! A deployment that sells plans: a real chain with a token, the real server, and customers with independent wallets.

mod inspect;

use metering_tests::chain::account::Account;
use metering_tests::chain::{Chain, ChainSetup};
use metering_tests::client::Client;
use metering_tests::response::Response;
use metering_tests::server::Server;
use metering_tests::site::Site;
use serde_json::{Value, json};

/// The price of the plan `starter`, in units of a token with six decimals.
pub(crate) const STARTER: u128 = 5_000_000;
/// The price of the plan `coin` in wei.
pub(crate) const COIN: u128 = 2_500_000_000_000_000;

/// How a plan is paid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Token,
    Native,
}

impl Kind {
    pub(crate) const BOTH: [Self; 2] = [Self::Token, Self::Native];

    pub(crate) const fn plan(self) -> &'static str {
        match self {
            Self::Token => "starter",
            Self::Native => "coin",
        }
    }

    pub(crate) const fn symbol(self) -> &'static str {
        match self {
            Self::Token => "usdc",
            Self::Native => "ETH",
        }
    }

    pub(crate) const fn price(self) -> u128 {
        match self {
            Self::Token => STARTER,
            Self::Native => COIN,
        }
    }

    /// The plan's credits and bonus, in all.
    pub(crate) const fn credits(self) -> &'static str {
        match self {
            Self::Token => "10.5",
            Self::Native => "4",
        }
    }
}

/// The parts of a quote that tests need.
#[derive(Debug, Clone)]
pub(crate) struct Quote {
    pub(crate) nonce: String,
    pub(crate) units: u128,
}

/// The deployment.
#[derive(Debug)]
pub(crate) struct Shop {
    pub(crate) chain: Chain,
    pub(crate) site: Site,
    pub(crate) server: Server,
    pub(crate) token: String,
    pub(crate) recipient: Account,
    settings: String,
}

impl Shop {
    /// Opens a shop on a chain that mines a block for each transaction; one confirmation is enough.
    pub(crate) fn open() -> Option<Self> {
        Self::with(Chain::setup(), "1", "")
    }

    /// Opens a shop on a chain with this setup, with more configuration. Payments are credited and final at this
    /// depth.
    pub(crate) fn with(setup: ChainSetup, depth: &str, more: &str) -> Option<Self> {
        let chain = setup.start()?;
        let urls = format!("'{}'", chain.url());
        Some(Self::on(chain, &urls, depth, more))
    }

    /// Opens a shop on a chain like that of [`Shop::open`], with a database elsewhere that further servers may
    /// share.
    pub(crate) fn open_on(site: Site) -> Option<Self> {
        let chain = Chain::setup().start()?;
        let urls = format!("'{}'", chain.url());
        Some(Self::at(site, chain, &urls, "1", ""))
    }

    /// Starts another server with the same settings on the same database.
    pub(crate) fn another(&self) -> Server {
        start(&self.site, &self.settings)
    }

    /// Opens a shop on this chain, read at these quoted URLs.
    pub(crate) fn on(chain: Chain, urls: &str, depth: &str, more: &str) -> Self {
        Self::at(Site::verified(), chain, urls, depth, more)
    }

    fn at(site: Site, chain: Chain, urls: &str, depth: &str, more: &str) -> Self {
        let token = chain.wallet().deploy_token("USDC", 6);
        Self::selling_for(&token, site, chain, urls, depth, more)
    }

    /// Opens a shop on this chain, where the plan `starter` is paid with an existing token.
    pub(crate) fn selling_for(token: &str, site: Site, chain: Chain, urls: &str, depth: &str, more: &str) -> Self {
        let depth = format!("confirmations = {depth}\nfinality = {depth}");
        Self::configured(token, site, chain, urls, &depth, more)
    }

    /// Opens a shop with the chain settings in the lines `depth`, or with all defaults if it is empty. If it is not
    /// empty, the watcher is off, unless `more` sets `watch`.
    pub(crate) fn configured(token: &str, site: Site, chain: Chain, urls: &str, depth: &str, more: &str) -> Self {
        let watch = if depth.is_empty() || more.contains("watch = ") { "" } else { "watch = false\n" };
        let (recipient, token) = (chain.wallet().account(9), token.to_owned());
        let settings = format!(
            "[payments]\nclaim_wait = '1s'\nclaim_poll = '100ms'\nwatch_interval = '200ms'\n[limits]\nsignup_per_ip = 'off'\n\
             recovery_per_ip = 'off'\nper_wallet = 'off'\nquotes_per_wallet_and_network = 'off'\n[chains.devnet]\nchain_id = {}\nrecipient = '{}'\nrpc_urls = [{urls}]\n\
             {depth}\n{watch}{more}\n",
            chain.chain_id(),
            recipient.checksummed(),
        );
        let plans = site.write("plans.json", &plans(chain.chain_id(), &token).to_string());
        let imported = site.admin(&["plan", "import", plans.to_str().unwrap()]);
        assert_eq!(imported.code, Some(0), "{imported:?}");
        let server = start(&site, &settings);
        Self { chain, site, server, token, recipient, settings }
    }

    /// Restarts it with the default wait for claims.
    pub(crate) fn with_default_claim_wait(self) -> Self {
        let settings = self.settings.replace("claim_wait = '1s'\n", "");
        Self { settings, ..self }.restart()
    }

    /// Restarts it with a public URL that differs from its own address.
    pub(crate) fn with_public_url(self, public_url: &str) -> Self {
        let settings = format!("public_url = '{public_url}'\n{}", self.settings);
        Self { settings, ..self }.restart()
    }

    /// Ends the server and starts it again on the same data.
    pub(crate) fn restart(self) -> Self {
        let Self { chain, site, server, token, recipient, settings } = self;
        drop(server);
        let server = start(&site, &settings);
        Self { chain, site, server, token, recipient, settings }
    }

    /// Ends the server, and opens the shop again on a new, empty store: on the same chain, for the same recipient.
    pub(crate) fn on_a_new_store(self, depth: &str) -> Self {
        let Self { chain, token, .. } = self;
        let urls = format!("'{}'", chain.url());
        Self::selling_for(&token, Site::verified(), chain, &urls, depth, "")
    }

    pub(crate) fn client(&self) -> Client {
        self.server.client()
    }

    /// A customer with a wallet, coins and a thousand tokens.
    pub(crate) fn customer(&self) -> Account {
        let customer = self.chain.wallet().new_account();
        self.chain.wallet().mint(&self.token, &customer.address(), 1_000 * STARTER);
        customer
    }

    pub(crate) fn request_quote(&self, kind: Kind, payer: &str) -> Response {
        let body = json!({
            "agent_name": "agent", "plan_id": kind.plan(), "chain_id": self.chain.chain_id().to_string(),
            "token_symbol": kind.symbol(), "payer_address": payer,
        });
        self.client().post("/signup/pay/quote", &body)
    }

    pub(crate) fn quote(&self, kind: Kind, payer: &str) -> Quote {
        let response = self.request_quote(kind, payer).expect(201).json();
        let text = |name: &str| response[name].as_str().unwrap().to_owned();
        assert_eq!(text("recipient"), self.recipient.checksummed());
        Quote { nonce: text("signup_nonce"), units: text("amount_atomic").parse().unwrap() }
    }

    /// Sends `units` units to the recipient.
    pub(crate) fn pay(&self, kind: Kind, from: &Account, units: u128) -> String {
        self.pay_to(kind, from, &self.recipient.address(), units)
    }

    pub(crate) fn pay_to(&self, kind: Kind, from: &Account, to: &str, units: u128) -> String {
        let wallet = self.chain.wallet();
        match kind {
            Kind::Token => wallet.transfer(from, &self.token, to, units),
            Kind::Native => wallet.send_native(from, to, units),
        }
    }

    pub(crate) fn claim(&self, quote: &Quote, hash: &str) -> Response {
        claim(&self.client(), &quote.nonce, hash)
    }

    /// The key of an account that this customer bought.
    pub(crate) fn signed_up(&self, kind: Kind, customer: &Account) -> String {
        let quote = self.quote(kind, &customer.address());
        let hash = self.pay(kind, customer, quote.units);
        key_of(&self.claim(&quote, &hash).expect(200))
    }

    pub(crate) fn top_up(&self, key: &str, kind: Kind, hash: &str, signature: Option<&str>) -> Response {
        top_up(&self.server.client_with(key), self.chain.chain_id(), kind, hash, signature)
    }

    /// A rotation challenge for a wallet: its nonce and its message.
    pub(crate) fn challenge(&self, address: &str) -> (String, String) {
        let response =
            self.client().post("/api-key/recover/challenge", &json!({"address": address})).expect(201).json();
        (response["nonce"].as_str().unwrap().to_owned(), response["message"].as_str().unwrap().to_owned())
    }

    pub(crate) fn verify(&self, address: &str, nonce: &str, signature: &str) -> Response {
        let body = json!({"address": address, "nonce": nonce, "signature": signature});
        self.client().post("/api-key/recover/verify", &body)
    }

    pub(crate) fn balance(&self, key: &str) -> String {
        self.server.client_with(key).get("/credits/balance").expect(200).member("credit_balance")
    }

    /// The number of accounts, according to the operator's program.
    pub(crate) fn accounts(&self) -> usize {
        let listed = self.site.admin_json(&["account", "list"]);
        listed["accounts"].as_array().or(listed.as_array()).expect("a list of accounts").len()
    }
}

fn start(site: &Site, settings: &str) -> Server {
    let file = site.write("metering.toml", settings);
    site.server().args(["--config", file.to_str().unwrap()]).start()
}

pub(crate) fn claim(client: &Client, nonce: &str, hash: &str) -> Response {
    client.post("/signup/pay/claim", &json!({"signup_nonce": nonce, "tx_hash": hash}))
}

pub(crate) fn top_up(client: &Client, chain_id: u64, kind: Kind, hash: &str, signature: Option<&str>) -> Response {
    let mut body = json!({"plan_id": kind.plan(), "chain_id": chain_id, "tx_hash": hash});
    if let Some(signature) = signature {
        body["signature"] = signature.into();
    }
    client.post("/credits/topup", &body)
}

pub(crate) fn key_of(response: &Response) -> String {
    response.json()["api_key"].as_str().unwrap_or_else(|| panic!("no key in {}", response.text())).to_owned()
}

/// `starter`: 10 credits and a bonus of a half for 5 tokens. `coin`: 4 credits for 0.0025 of the native coin.
fn plans(chain_id: u64, token: &str) -> Value {
    json!([
        {"id": "starter", "chain_id": chain_id, "token_symbol": "USDC", "payment_kind": "erc20", "credits": 10,
         "bonus_credits": 0.5, "token_amount": "5", "token_contract": token, "token_decimals": 6, "label": "Starter"},
        {"id": "coin", "chain_id": chain_id, "token_symbol": "ETH", "payment_kind": "native_value", "credits": 4,
         "token_amount": "0.0025", "token_decimals": 18, "label": "Coin"},
    ])
}
