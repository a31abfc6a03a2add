//! Fixtures: a service that sells plans on two chains, and customers with wallets.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use metering_core::chains::{Address, Chain, ChainReader, TxHash};
use metering_core::payments::{PaymentKind, Plan};
use metering_core::service::{Links, PaymentSettings};
use metering_core::store::KeyStore;
use metering_core::wire::{
    ChainIdInput, ChallengeRequest, ClaimRequest, ClaimResponse, QuoteRequest, QuoteResponse, TopUpQuoteDocument,
    TopUpQuoteRequest, TopUpRequest, TopUpResponse, VerifyRequest, VerifyResponse,
};
use metering_core::{
    AccountId, ApiKey, Catalogue, Clock, Error, Meter, MeterConfig, NewAccount, PaymentStore, Service, ServiceConfig,
    Store, SystemRandomness, Timestamp,
};
use metering_sqlite::SqliteStore;

use super::chain::FakeChain;
use super::wallet::Wallet;

pub(super) const MAIN: u64 = 1;
pub(super) const SIDE: u64 = 8453;
pub(super) const RECIPIENT: Address = Address::from_bytes([0x11; 20]);
/// The stablecoin, with six decimals, on both chains.
pub(super) const USDC: Address = Address::from_bytes([0x70; 20]);
pub(super) const NATIVE: Address = Address::ZERO;
/// The price of the plan `starter` in units of the stablecoin.
pub(super) const STARTER: u128 = 5_000_000;
/// The price of the plan `coin` in wei.
pub(super) const COIN: u128 = 2_500_000_000_000_000;

/// A manually advanced clock.
#[derive(Debug)]
pub(super) struct ManualClock(AtomicI64);

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_millis(self.0.load(Ordering::SeqCst))
    }
}

impl ManualClock {
    pub(super) fn pass(&self, time: Duration) {
        self.0.fetch_add(i64::try_from(time.as_millis()).unwrap(), Ordering::SeqCst);
    }
}

/// The service with its store, clock and chains.
#[derive(Debug)]
pub(super) struct Scene {
    pub(super) service: Arc<Service>,
    pub(super) store: Arc<SqliteStore>,
    pub(super) clock: Arc<ManualClock>,
    pub(super) main: Arc<FakeChain>,
    pub(super) side: Arc<FakeChain>,
    keys: Mutex<Vec<ApiKey>>,
}

impl Scene {
    pub(super) async fn new() -> Self {
        Self::with(PaymentSettings::default()).await
    }

    pub(super) async fn with(settings: PaymentSettings) -> Self {
        let clock = Arc::new(ManualClock(AtomicI64::new(1_795_262_400_000)));
        let shared: Arc<dyn Clock> = Arc::clone(&clock) as _;
        let main = FakeChain::new(Arc::clone(&shared), 3);
        let side = FakeChain::new(Arc::clone(&shared), 1);
        for chain in [&main, &side] {
            chain.deploy_token(USDC, 6);
        }
        Self::on(clock, [main, side], settings).await
    }

    /// Another service with its own store, on the same chains and with the same recipient.
    pub(super) async fn another(&self, settings: PaymentSettings) -> Self {
        let chains = [Arc::clone(&self.main), Arc::clone(&self.side)];
        Self::on(Arc::clone(&self.clock), chains, settings).await
    }

    async fn on(clock: Arc<ManualClock>, [main, side]: [Arc<FakeChain>; 2], settings: PaymentSettings) -> Self {
        let shared: Arc<dyn Clock> = Arc::clone(&clock) as _;
        let store = Arc::new(SqliteStore::in_memory().unwrap());
        let plans = [MAIN, SIDE].into_iter().flat_map(|chain| [plan("starter", chain), plan("coin", chain)]);
        store.put_plans(plans.collect()).await.unwrap();
        let readers: BTreeMap<u64, Arc<dyn ChainReader>> =
            BTreeMap::from([(MAIN, Arc::clone(&main) as _), (SIDE, Arc::clone(&side) as _)]);
        let meter = Meter::start(Arc::clone(&store) as _, Arc::clone(&shared), MeterConfig::default());
        let catalogue =
            r#"{"market": "M", "version": 1, "endpoints": [{"path": "/price", "method": "GET", "metered": true}]}"#;
        let config = ServiceConfig {
            public_url: "https://api.example".to_owned(),
            links: Links {
                plans: Some("https://api.example/plans".to_owned()),
                complete: Some("https://api.example/metering/complete".to_owned()),
                ..Links::default()
            },
            terms_url: "https://api.example/terms".to_owned(),
            terms_version: "1".to_owned(),
            chains: [MAIN, SIDE].map(chain).to_vec(),
            ..ServiceConfig::default()
        };
        let catalogue = Arc::new(Catalogue::from_json(catalogue).unwrap());
        let service = Service::new(Arc::clone(&store) as _, Arc::new(meter), catalogue, shared, config);
        let service = Arc::new(service.with_payments(Arc::clone(&store) as _, readers, settings));
        service.payments().register_recipients().await.unwrap();
        Self { service, store, clock, main, side, keys: Mutex::default() }
    }

    pub(super) fn chain(&self, chain_id: u64) -> &FakeChain {
        if chain_id == MAIN { &self.main } else { &self.side }
    }

    /// Opens a quote for a wallet.
    pub(super) async fn quote(&self, wallet: &Wallet, plan: &str, chain_id: u64) -> Result<QuoteResponse, Error> {
        self.service.payments().quote(&quote_request(wallet, plan, chain_id)).await
    }

    /// Pays a quote exactly, and adds enough blocks to confirm the payment.
    pub(super) fn pay(&self, wallet: &Wallet, quote: &QuoteResponse) -> TxHash {
        let units = quote.amount_atomic.parse().unwrap();
        let token = quote.token_contract.parse().unwrap();
        let chain = self.chain(quote.chain_id);
        let hash = chain.pay(token, wallet.address, RECIPIENT, units);
        chain.grow(10);
        hash
    }

    /// Pays a plan's price without a quote.
    pub(super) fn pay_price(&self, wallet: &Wallet, chain_id: u64) -> TxHash {
        let hash = self.chain(chain_id).pay(USDC, wallet.address, RECIPIENT, STARTER);
        self.chain(chain_id).grow(10);
        hash
    }

    pub(super) async fn claim(&self, nonce: &str, hash: TxHash) -> Result<ClaimResponse, Error> {
        self.service.payments().claim(&claim_request(nonce, hash)).await
    }

    /// Creates an account paid for by a wallet; returns its key.
    pub(super) async fn customer(&self, wallet: &Wallet, chain_id: u64) -> (ApiKey, ClaimResponse) {
        let quote = self.quote(wallet, "starter", chain_id).await.unwrap();
        let hash = self.pay(wallet, &quote);
        let response = self.claim(&quote.signup_nonce, hash).await.unwrap();
        (key_of(&response.api_key), response)
    }

    /// Creates an account without a wallet; returns its key.
    pub(super) async fn account_without_wallet(&self) -> (ApiKey, AccountId) {
        let key = ApiKey::generate(&SystemRandomness);
        let id = AccountId::generate(&SystemRandomness);
        let new = NewAccount::new(id.clone(), "agent".parse().unwrap(), key.hash(), self.clock.now());
        self.store.create_account(new).await.unwrap();
        self.keys.lock().unwrap().push(key.clone());
        (key, id)
    }

    /// A quote for any wallet to top up an account.
    pub(super) async fn top_up_quote(
        &self,
        key: &ApiKey,
        plan: &str,
        chain_id: u64,
    ) -> Result<TopUpQuoteDocument, Error> {
        let request = TopUpQuoteRequest { plan_id: Some(plan.to_owned()), chain_id: Some(ChainIdInput(chain_id)) };
        self.service.payments().top_up_quote(Some(key), &request).await
    }

    /// Pays a top-up quote exactly, and adds enough blocks to confirm the payment.
    pub(super) fn pay_top_up(&self, payer: Address, quote: &TopUpQuoteDocument) -> TxHash {
        let chain = self.chain(quote.chain_id);
        let token = quote.token_contract.parse().unwrap();
        let hash = chain.pay(token, payer, RECIPIENT, quote.amount_atomic.parse().unwrap());
        chain.grow(10);
        hash
    }

    pub(super) async fn top_up(
        &self,
        key: &ApiKey,
        chain_id: u64,
        hash: TxHash,
        signature: Option<String>,
    ) -> Result<TopUpResponse, Error> {
        self.service.payments().top_up(Some(key), &top_up_request(chain_id, hash, signature)).await
    }

    /// Rotates the key of a wallet's account.
    pub(super) async fn rotate(&self, wallet: &Wallet) -> Result<VerifyResponse, Error> {
        let request = ChallengeRequest { address: Some(wallet.address.to_string()) };
        let challenge = self.service.recovery().challenge(&request).await?;
        self.verify(wallet.address, &challenge.nonce, &wallet.sign(&challenge.message)).await
    }

    pub(super) async fn verify(&self, address: Address, nonce: &str, signature: &str) -> Result<VerifyResponse, Error> {
        let request = VerifyRequest {
            address: Some(address.to_string()),
            nonce: Some(nonce.to_owned()),
            signature: Some(signature.to_owned()),
        };
        self.service.recovery().verify(&request).await
    }

    pub(super) async fn balance(&self, key: &ApiKey) -> String {
        self.service.usage().balance(Some(key)).await.unwrap().credit_balance.to_string()
    }

    pub(super) async fn is_live(&self, key: &ApiKey) -> bool {
        self.store.live_keys(&[key.hash()], self.clock.now()).await.unwrap()[0]
    }

    /// Asserts that no account was created and no payment was used.
    pub(super) async fn assert_nothing_happened(&self) {
        assert!(self.store.accounts(None, 10).await.unwrap().items.is_empty());
        assert!(metering_core::PaymentStore::payments(&*self.store, None, 10).await.unwrap().items.is_empty());
    }
}

/// The key in a response that issues one.
pub(super) fn key_of(issued: &impl serde::Serialize) -> ApiKey {
    let text = serde_json::to_value(issued).unwrap();
    ApiKey::parse(text.as_str().unwrap()).unwrap()
}

pub(super) fn quote_request(wallet: &Wallet, plan: &str, chain_id: u64) -> QuoteRequest {
    QuoteRequest {
        agent_name: Some("agent".to_owned()),
        plan_id: Some(plan.to_owned()),
        chain_id: Some(ChainIdInput(chain_id)),
        token_symbol: Some(if plan == "coin" { "ETH" } else { "usdc" }.to_owned()),
        payer_address: Some(wallet.address.to_checksummed()),
        email: None,
    }
}

pub(super) fn claim_request(nonce: &str, hash: TxHash) -> ClaimRequest {
    ClaimRequest { signup_nonce: Some(nonce.to_owned().into()), tx_hash: Some(hash.to_string()), signature: None }
}

pub(super) fn top_up_request(chain_id: u64, hash: TxHash, signature: Option<String>) -> TopUpRequest {
    TopUpRequest {
        plan_id: Some("starter".to_owned()),
        chain_id: Some(ChainIdInput(chain_id)),
        tx_hash: Some(hash.to_string()),
        signature,
    }
}

/// The error code of a refusal.
pub(super) fn code<T: std::fmt::Debug>(response: Result<T, Error>) -> &'static str {
    match response {
        Ok(response) => panic!("accepted: {response:?}"),
        Err(error) => error.code().as_str(),
    }
}

pub(super) fn chain(chain_id: u64) -> Chain {
    Chain {
        chain_id,
        name: format!("chain {chain_id}"),
        public_rpc_url: String::new(),
        recipient: RECIPIENT,
        confirmations: 1,
        explorer_url: String::new(),
    }
}

/// `starter`: 10 credits and a bonus of half a credit for 5 USDC. `coin`: 4 credits for 0.0025 of the native coin.
pub(super) fn plan(id: &str, chain_id: u64) -> Plan {
    let native = id == "coin";
    let json = if native {
        r#"{"id":"coin","chain_id":1,"token_symbol":"ETH","payment_kind":"native_value","credits":4,
            "token_amount":"0.0025","token_decimals":18,"label":"Coin"}"#
    } else {
        r#"{"id":"starter","chain_id":1,"token_symbol":"USDC","payment_kind":"erc20","credits":10,"bonus_credits":0.5,
            "token_amount":"5","token_decimals":6,"label":"Starter",
            "token_contract":"0x7070707070707070707070707070707070707070"}"#
    };
    let plan: Plan = serde_json::from_str(json).unwrap();
    assert_eq!(plan.payment_kind == PaymentKind::NativeValue, native);
    Plan { chain_id, ..plan }
}
