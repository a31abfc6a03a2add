//! Fixtures: a service with two routes, a customer without credits, and requests with payments.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{Request, Response, StatusCode};
use metering_core::chains::ChainReader;
use metering_core::payments::{ExchangeRates, TokenAmount};
use metering_core::service::PaymentSettings;
use metering_core::store::AuthorizationStore;
use metering_core::{
    Account, AccountId, ApiKey, Catalogue, Clock, Meter, MeterConfig, MeteringLayer, NewAccount, PaymentStore, Service,
    ServiceConfig, Store, SystemRandomness, Timestamp,
};
use metering_pay::offers::{
    Asset, AuthorizationRecord, Offer, Offers, PaymentLimit, RevertLimits, SignedAuthorization,
};
use metering_pay::wire::mpp::ChallengeSecret;
use metering_pay::{ChallengeSettings, OfferChain, OfferSettings, Settler, SignedPayments};
use metering_sqlite::SqliteStore;
use serde_json::{Value, json};
use tokio::time::Instant;
use tower::{Layer, ServiceExt, service_fn};

use super::ledger::{CHAIN, RECIPIENT, TOKEN, domain};
use super::node::Node;
use super::wallet::Wallet;

const CATALOGUE: &str = r#"{"market": "M", "version": 1, "endpoints": [
    {"path": "/quote", "method": "GET", "metered": true, "price": "0.02", "description": "A quote", "params": [
        {"name": "symbol", "in": "query", "type": "string", "example": "ETH"}], "example": {"usd": "1.5"}},
    {"path": "/dear", "method": "GET", "metered": true, "price": "0.4"},
    {"path": "/tiered", "method": "GET", "metered": true, "price": [
        {"up_to": 1, "credits": "0.01"}, {"credits": "0.02"}]},
    {"path": "/tokens", "method": "GET", "metered": true, "price": {"max": "0.02", "report": {"header": "x-cost"}}},
    {"path": "/free", "method": "GET", "metered": false}]}"#;

/// The smaller and the larger offer, in units of the token. Each unit of the token buys one credit.
pub(super) const SMALL: u128 = 50_000;
pub(super) const LARGE: u128 = 500_000;

/// The time of the runtime, which tests pause.
#[derive(Debug)]
struct RuntimeClock(Instant);

impl Clock for RuntimeClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_millis(1_795_262_400_000).saturating_add(self.0.elapsed())
    }
}

#[derive(Debug, Clone)]
pub(super) struct Scene {
    pub(super) service: Arc<Service>,
    pub(super) payments: Arc<SignedPayments>,
    pub(super) store: Arc<SqliteStore>,
    pub(super) node: Arc<Node>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) key: ApiKey,
    pub(super) account: AccountId,
    is_facilitated: bool,
    served: Arc<AtomicU32>,
}

impl Scene {
    /// The service submits payments itself. Wallets 1 to 9 have 10 tokens each.
    pub(super) async fn new() -> Self {
        Self::with(false).await
    }

    /// A facilitator executes payments.
    pub(super) async fn facilitated() -> Self {
        Self::with(true).await
    }

    async fn with(is_facilitated: bool) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(RuntimeClock(Instant::now()));
        let node = Arc::new(Node::new(Arc::clone(&clock)));
        node.ledger().genesis = (1..10).map(|number| (Wallet::of(number).address, 10_000_000)).collect();
        node.mine();
        let store = Arc::new(SqliteStore::in_memory().unwrap());
        let (service, payments) = service(&store, &node, &clock, is_facilitated, terms());
        let (key, account) = customer(&store, &*clock).await;
        Self { service, payments, store, node, clock, key, account, is_facilitated, served: Arc::default() }
    }

    /// The next process on the same store and chain.
    pub(super) fn restarted(&self) -> Self {
        let node = Arc::new(self.node.another());
        let (service, payments) = service(&self.store, &node, &self.clock, self.is_facilitated, terms());
        Self { service, payments, node, ..self.clone() }
    }

    /// The same service, where only requests with a key can pay.
    pub(super) fn with_keys_only(&self) -> Self {
        self.on(OfferSettings { keyless: false, ..terms() })
    }

    /// The same service, with a limit on new payments.
    pub(super) fn limited(&self, limit: Arc<dyn PaymentLimit>) -> Self {
        self.on(OfferSettings { limit: Some(limit), ..terms() })
    }

    /// The same service, whose receipts have values by these rates.
    pub(super) fn with_rates(&self, rates: ExchangeRates) -> Self {
        self.on(OfferSettings { rates: Some(Arc::new(rates)), ..terms() })
    }

    /// The same service, which takes payments for usage.
    pub(super) fn with_usage(&self) -> Self {
        self.on(OfferSettings { usage: true, ..terms() })
    }

    /// The same service, with other limits on reverts.
    pub(super) fn with_reverts(&self, reverts: RevertLimits) -> Self {
        self.on(OfferSettings { reverts, ..terms() })
    }

    /// The same service, which refuses payments of wallets with code.
    pub(super) fn without_contract_wallets(&self) -> Self {
        self.on(OfferSettings { contract_wallets: false, ..terms() })
    }

    /// The same service, with another secret or name for challenges.
    pub(super) fn with_challenges(&self, secret: u8, realm: &str) -> Self {
        self.on(OfferSettings { challenges: Some(challenges(secret, realm)), ..terms() })
    }

    /// The same service, which signs its offers and receipts with the key of a wallet.
    pub(super) fn with_signer(&self, wallet: u8) -> Self {
        self.on(OfferSettings { signer: Some(Arc::new(Wallet::of(wallet))), ..terms() })
    }

    fn on(&self, terms: OfferSettings) -> Self {
        let (service, payments) = service(&self.store, &self.node, &self.clock, self.is_facilitated, terms);
        Self { service, payments, ..self.clone() }
    }

    pub(super) fn seconds(&self) -> u64 {
        u64::try_from(self.clock.now().unix_millis() / 1_000).unwrap()
    }

    /// An authorization that takes an offer now.
    pub(super) fn signed(&self, wallet: u8, units: u128, nonce: u8) -> SignedAuthorization {
        let wallet = Wallet::of(wallet);
        wallet.sign(wallet.authorization(units, nonce, self.seconds()))
    }

    /// Sends a request, whose response is `served` if it is admitted.
    pub(super) async fn ask(&self, request: Request<String>) -> Response<String> {
        let served = Arc::clone(&self.served);
        let inner = service_fn(move |_: Request<String>| {
            served.fetch_add(1, Ordering::SeqCst);
            async { Ok::<_, std::convert::Infallible>(Response::new("served".to_owned())) }
        });
        MeteringLayer::new(Arc::clone(&self.service)).layer(inner).oneshot(request).await.unwrap()
    }

    /// A request with or without a key, and with a payment of version 2, or none.
    pub(super) async fn send(
        &self,
        path: &str,
        key: Option<&ApiKey>,
        signed: Option<&SignedAuthorization>,
    ) -> Response<String> {
        let mut request = Request::get(path);
        if let Some(key) = key {
            request = request.header("authorization", format!("Bearer {}", key.expose()));
        }
        if let Some(signed) = signed {
            request = request.header("payment-signature", payment(&accepted(signed), signed));
        }
        self.ask(request.body(String::new()).unwrap()).await
    }

    pub(super) fn served(&self) -> u32 {
        self.served.load(Ordering::SeqCst)
    }

    pub(super) async fn balance(&self, account: &AccountId) -> String {
        self.store.account(account).await.unwrap().unwrap().totals.balance.to_string()
    }

    pub(super) async fn account_of(&self, wallet: u8) -> Option<Account> {
        self.store.account_by_payer(&Wallet::of(wallet).address).await.unwrap()
    }

    pub(super) async fn balance_of(&self, wallet: u8) -> String {
        self.balance(&self.account_of(wallet).await.expect("the wallet has an account").id).await
    }

    pub(super) async fn record(&self, signed: &SignedAuthorization) -> Option<AuthorizationRecord> {
        self.store.authorization(&signed.id()).await.unwrap()
    }

    /// How many units the recipient has.
    pub(super) fn received(&self) -> u128 {
        self.node.ledger().world().balances.get(&RECIPIENT).copied().unwrap_or_default()
    }

    pub(super) async fn wait(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    /// Runs the regular tasks until nothing is left to do.
    pub(super) async fn keep_up(&self) {
        for _ in 0..4 {
            self.wait(70).await;
            self.payments.settle_authorizations().await.unwrap();
            self.service.payments().settle(CHAIN).await.unwrap();
            self.node.mine();
        }
        self.wait(20).await;
    }

    /// The credits of all accounts together equal the recipient's receipts.
    pub(super) async fn assert_credited_what_was_received(&self) {
        let accounts = self.store.accounts(None, 1_000).await.unwrap().items;
        let credited: i64 = accounts.iter().map(|account| account.totals.purchased.atoms()).sum();
        assert_eq!(i128::from(credited), atoms(self.received()), "credits and tokens");
        assert!(self.store.verify().await.unwrap().discrepancies.is_empty());
    }
}

/// The credits that this many units of the token buy.
pub(super) fn atoms(units: u128) -> i128 {
    let one: metering_core::Credits = "0.000001".parse().unwrap();
    i128::try_from(units).unwrap() * i128::from(one.atoms())
}

async fn customer(store: &SqliteStore, clock: &dyn Clock) -> (ApiKey, AccountId) {
    let (key, id) = (ApiKey::generate(&SystemRandomness), AccountId::generate(&SystemRandomness));
    let new = NewAccount::new(id.clone(), "agent".parse().unwrap(), key.hash(), clock.now());
    store.create_account(new).await.unwrap();
    (key, id)
}

impl Scene {
    /// Another account without credits.
    pub(super) async fn another_customer(&self) -> (ApiKey, AccountId) {
        customer(&self.store, &*self.clock).await
    }

    /// The same service, as another customer.
    pub(super) async fn of_another_customer(&self) -> Self {
        let (key, account) = self.another_customer().await;
        Self { key, account, ..self.clone() }
    }
}

fn challenges(secret: u8, realm: &str) -> ChallengeSettings {
    let secret = ChallengeSecret::new(&[secret; 32]).unwrap();
    ChallengeSettings { secret, realm: realm.parse().unwrap() }
}

/// Terms without offers.
fn terms() -> OfferSettings {
    let challenges = Some(challenges(1, "api.example"));
    OfferSettings { challenges, contract_wallets: true, ..OfferSettings::default() }
}

fn service(
    store: &Arc<SqliteStore>,
    node: &Arc<Node>,
    clock: &Arc<dyn Clock>,
    is_facilitated: bool,
    terms: OfferSettings,
) -> (Arc<Service>, Arc<SignedPayments>) {
    let meter = Meter::start(Arc::clone(store) as _, Arc::clone(clock), MeterConfig::default());
    let config = ServiceConfig { public_url: "https://api.example".to_owned(), ..ServiceConfig::default() };
    let catalogue = Arc::new(Catalogue::from_json(CATALOGUE).unwrap());
    let readers: BTreeMap<u64, Arc<dyn ChainReader>> = BTreeMap::from([(CHAIN, Arc::clone(node) as _)]);
    let settler = match is_facilitated {
        true => Settler::Facilitator(Arc::clone(node) as _),
        false => Settler::Own(Arc::clone(node) as _),
    };
    let chain = OfferChain { reader: Arc::clone(node) as _, tokens: Arc::clone(node) as _, settler };
    let offer = |amount: &str| {
        let asset = Asset { domain: domain(), decimals: 6 };
        Offer::new(asset, RECIPIENT, TokenAmount::parse(amount).unwrap(), 1.into()).unwrap()
    };
    let offers = Offers::new(vec![offer("0.5"), offer("0.05")]);
    let chains = BTreeMap::from([(CHAIN, chain)]);
    let settings = OfferSettings { offers, chains, ..terms };
    let service = Service::new(Arc::clone(store) as _, Arc::new(meter), catalogue, Arc::clone(clock), config);
    let service = service.with_payments(Arc::clone(store) as _, readers, PaymentSettings::default());
    let payments = SignedPayments::new(Arc::clone(store) as _, Arc::clone(clock), service.public_url(), settings);
    let payments = Arc::new(payments);
    (Arc::new(service.with_request_payments(Arc::clone(&payments) as _)), payments)
}

/// The offer that an authorization takes, in the form of a 402.
pub(super) fn accepted(signed: &SignedAuthorization) -> Value {
    json!({
        "scheme": "exact", "network": "eip155:84532", "amount": signed.authorization.value.get().to_string(),
        "asset": TOKEN.to_checksummed(), "payTo": RECIPIENT.to_checksummed(), "maxTimeoutSeconds": 300,
        "extra": {"name": "USDC", "paymentFlow": "upfront", "version": "2"},
    })
}

/// The signed message, as in both versions.
pub(super) fn payload(signed: &SignedAuthorization) -> Value {
    let authorization = &signed.authorization;
    json!({
        "signature": format!("0x{}", hex::encode(signed.signature.as_bytes())),
        "authorization": {
            "from": authorization.from.to_checksummed(), "to": authorization.to.to_checksummed(),
            "value": authorization.value.get().to_string(), "validAfter": authorization.valid_after.to_string(),
            "validBefore": authorization.valid_before.to_string(), "nonce": authorization.nonce.to_string(),
        },
    })
}

/// The value of `PAYMENT-SIGNATURE`.
pub(super) fn payment(accepted: &Value, signed: &SignedAuthorization) -> String {
    encoded(&json!({"x402Version": 2, "accepted": accepted, "payload": payload(signed)}))
}

/// The value of `X-PAYMENT`.
pub(super) fn payment_v1(signed: &SignedAuthorization) -> String {
    encoded(&json!({"x402Version": 1, "scheme": "exact", "network": "base-sepolia", "payload": payload(signed)}))
}

pub(super) fn encoded(value: &Value) -> String {
    STANDARD.encode(value.to_string())
}

/// The JSON in a header of a response; null if it has none.
pub(super) fn decoded(response: &Response<String>, name: &str) -> Value {
    response.headers().get(name).map_or(Value::Null, |value| json_of(value.as_bytes()))
}

/// The JSON that the value of a header encodes.
pub(super) fn json_of(value: &[u8]) -> Value {
    serde_json::from_slice(&STANDARD.decode(value).unwrap()).unwrap()
}

pub(super) fn body(response: &Response<String>) -> Value {
    serde_json::from_str(response.body()).unwrap()
}

/// Status, error code, and whether there are offers.
pub(super) fn refusal(response: &Response<String>) -> (u16, String, bool) {
    let body = body(response);
    let is_offered = response.headers().contains_key("payment-required");
    assert_eq!(is_offered, body.get("accepts").is_some(), "{body}");
    (response.status().as_u16(), body["error"].as_str().unwrap().to_owned(), is_offered)
}

/// The reason in the header that reports the payment's outcome.
pub(super) fn reason(response: &Response<String>) -> String {
    let settled = decoded(response, "payment-response");
    assert_eq!(settled["success"], false, "{settled}");
    settled["errorReason"].as_str().unwrap().to_owned()
}

pub(super) fn assert_served(response: &Response<String>) {
    assert_eq!((response.status(), response.body().as_str()), (StatusCode::OK, "served"));
}
