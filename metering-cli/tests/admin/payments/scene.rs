//! A store and a chain with everything that can happen to a payment.

use std::fs;
use std::time::Duration;

use metering_core::access::{AgentName, Payer};
use metering_core::chains::{Address, TokenUnits, TxRef};
use metering_core::money::{LedgerKind, NewLedgerEntry, PaymentRef};
use metering_core::payments::{Payment, PaymentTarget, PaymentUse, Quote, QuoteNonce, QuoteState};
use metering_core::store::{Created, PaymentCredit, PaymentCredited, QuoteOpened, QuotePrecedence};
use metering_core::{
    Account, AccountId, ApiKey, Credits, NewAccount, PaymentStore, Store, SystemRandomness, Timestamp,
};
use serde_json::Value;

use crate::fixture::{Fixture, Issued, RunOutput, block_on};
use crate::node::{Chain, GENESIS_SECONDS, Node, Tx, address, hash};

pub(crate) const CHAIN_ID: u64 = 8453;
pub(crate) const USDC: &str = "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913";
pub(crate) const RECIPIENT: &str = "0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed";
pub(crate) const NEWEST: u64 = 200;
/// With 12 confirmations, including its own block.
pub(crate) const SETTLED: u64 = 189;

/// The transactions, by the byte that each is made of.
pub(crate) const QUOTED: u8 = 1;
pub(crate) const UNKNOWN: u8 = 2;
pub(crate) const USED: u8 = 3;
pub(crate) const TWICE: u8 = 4;
pub(crate) const LINKED: u8 = 5;
pub(crate) const WITH_INPUT: u8 = 6;
pub(crate) const OWNED: u8 = 7;
pub(crate) const TOO_LITTLE: u8 = 8;
pub(crate) const REVERTED: u8 = 9;
pub(crate) const ELSEWHERE: u8 = 10;
pub(crate) const YOUNG: u8 = 11;
pub(crate) const BOTH: u8 = 12;

/// The wallets, by the byte that each one is made of.
const QUOTED_WALLET: u8 = 0x11;
pub(crate) const UNKNOWN_WALLET: u8 = 0x22;
const CUSTOMERS_WALLET: u8 = 0x33;
const OWNERS_WALLET: u8 = 0x77;

const PLANS: &str = r#"[
    {"id":"starter","chain_id":8453,"token_symbol":"USDC","payment_kind":"erc20","credits":10,"bonus_credits":0.5,
     "token_amount":"5","token_contract":"0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913","token_decimals":6,
     "label":"Starter"},
    {"id":"coin","chain_id":8453,"token_symbol":"ETH","payment_kind":"native_value","credits":10,
     "token_amount":"0.0025","token_decimals":18,"label":"Coin","active":false},
    {"id":"elsewhere","chain_id":1,"token_symbol":"ETH","payment_kind":"native_value","credits":10,
     "token_amount":"0.0025","token_decimals":18,"label":"On another chain"}]"#;

/// The transactions of the scene, out of order, so that the list has to sort them.
fn transactions() -> Vec<Tx> {
    let elsewhere = address(0xee);
    vec![
        Tx::new(YOUNG, SETTLED + 1, UNKNOWN_WALLET).moving(USDC, RECIPIENT, 5_000_000),
        Tx::new(QUOTED, 10, QUOTED_WALLET).moving(USDC, RECIPIENT, 5_003_817),
        Tx::new(UNKNOWN, 20, UNKNOWN_WALLET).moving(USDC, RECIPIENT, 5_000_000).moving(USDC, &elsewhere, 1),
        Tx::new(USED, 30, CUSTOMERS_WALLET).moving(USDC, RECIPIENT, 5_000_000),
        Tx::new(TWICE, 40, 0x44).moving(USDC, RECIPIENT, 5_000_000).moving(USDC, RECIPIENT, 5_000_000),
        Tx::new(LINKED, 50, CUSTOMERS_WALLET).sending(RECIPIENT, 2_500_000_000_000_000),
        Tx::new(WITH_INPUT, 60, 0x66).sending(RECIPIENT, 2_500_000_000_000_000).with_input(),
        Tx::new(OWNED, 70, OWNERS_WALLET).moving(USDC, RECIPIENT, 5_000_000),
        Tx::new(TOO_LITTLE, 80, 0x88).moving(USDC, RECIPIENT, 4_750_000),
        Tx::new(REVERTED, 90, 0x99).moving(USDC, RECIPIENT, 5_000_000).reverted(),
        Tx::new(BOTH, 110, 0xbb).sending(RECIPIENT, 2_500_000_000_000_000).moving(USDC, RECIPIENT, 5_000_000),
        Tx::new(ELSEWHERE, 100, 0xaa).moving(USDC, &elsewhere, 5_000_000).moving(&elsewhere, RECIPIENT, 5_000_000),
    ]
}

pub(crate) struct Scene {
    pub(crate) fixture: Fixture,
    pub(crate) node: Node,
    /// The account that has the used payment.
    pub(crate) customer: Issued,
    /// The account that was created by a payment.
    pub(crate) owner: String,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let fixture = Fixture::new();
        let customer = fixture.create("customer", "0");
        fixture.admin_reading(&["plan", "import", "-"], PLANS).success();
        let node = Node::start(Chain { id: CHAIN_ID, newest: NEWEST, transactions: transactions(), takes: None });
        fs::write(fixture.path("metering.toml"), configuration(&node.url())).unwrap();
        let store = fixture.store();
        let customer_id: AccountId = customer.org_id.parse().unwrap();
        let owner = block_on(async {
            assert_eq!(store.open_quote(quote()).await.unwrap(), QuoteOpened::Opened);
            let used = store.credit_payment(used_payment(customer_id)).await.unwrap();
            assert!(matches!(used, PaymentCredited::Account(_)), "{used:?}");
            pay_signup(store.as_ref()).await
        });
        Self { fixture, node, customer, owner: owner.id.to_string() }
    }

    /// Runs `metering admin payments COMMAND --config metering.toml ARGS`.
    pub(crate) fn payments(&self, command: &str, args: &[&str]) -> RunOutput {
        self.fixture.admin(&[&["payments", command, "--config", "metering.toml"], args].concat())
    }

    /// Assigns a transaction to an account.
    pub(crate) fn assign(&self, tx: u8, account: &str, args: &[&str]) -> RunOutput {
        let tx = hash(tx);
        self.payments("assign", &[&["--chain", "base", "--tx", &tx, "--account", account], args].concat())
    }

    pub(crate) fn balance(&self, account: &str) -> String {
        let account: Value = self.fixture.json(&["account", "show", account]);
        account["credit_balance"].to_string()
    }

    pub(crate) fn records(&self) -> Vec<Value> {
        let records: Value = self.fixture.json(&["payments", "records"]);
        records["payments"].as_array().unwrap().clone()
    }
}

/// A chain that can be read, one that cannot, and server settings that the command ignores.
pub(crate) fn configuration(url: &str) -> String {
    format!(
        "listen = \"127.0.0.1:0\"\n[http]\nmax_body_bytes = 65536\n\
         [chains.base]\nchain_id = {CHAIN_ID}\nrecipient = \"{RECIPIENT}\"\nrpc_urls = [\"{url}\"]\n\
         attempts = 1\nrequest_timeout = \"5s\"\nconfirmations = 12\nfinality = 64\n\
         [chains.quiet]\nchain_id = 1\nrecipient = \"{RECIPIENT}\"\n"
    )
}

/// The time of a block.
pub(crate) fn time_of(block: u32) -> Timestamp {
    Timestamp::from_unix_millis((GENESIS_SECONDS + 2 * i64::from(block)) * 1_000)
}

fn wallet(byte: u8) -> Address {
    Address::from_bytes([byte; 20])
}

fn usdc() -> PaymentTarget {
    PaymentTarget { chain_id: CHAIN_ID, token: USDC.parse().unwrap(), recipient: RECIPIENT.parse().unwrap() }
}

fn quote() -> Quote {
    Quote {
        nonce: QuoteNonce::generate(&SystemRandomness).hash(),
        agent_name: "quoted-agent".parse().unwrap(),
        email: None,
        payer: wallet(QUOTED_WALLET),
        top_up: None,
        target: usdc(),
        amount: TokenUnits::new(5_003_817),
        plan_id: "starter".to_owned(),
        credits: Credits::from_whole(10).unwrap(),
        bonus_credits: Credits::ZERO,
        created_at: time_of(0),
        expires_at: time_of(0).saturating_add(Duration::from_secs(1_800)),
        state: QuoteState::Open,
    }
}

fn used_payment(account: AccountId) -> PaymentCredit {
    let tx = TxRef { chain_id: CHAIN_ID, hash: hash(USED).parse().unwrap() };
    let PaymentTarget { token, recipient, .. } = usdc();
    let payment = Payment {
        tx,
        payer: wallet(CUSTOMERS_WALLET),
        recipient,
        token,
        amount: TokenUnits::new(5_000_000),
        block_number: 30,
        block_hash: Some([30; 32]),
        mined_at: time_of(30),
    };
    PaymentCredit {
        account,
        payment,
        used_as: PaymentUse::Topup,
        entry: NewLedgerEntry {
            kind: LedgerKind::PurchaseTopup,
            amount: Credits::from_whole(10).unwrap(),
            description: "Plan starter".to_owned(),
            payment: Some(PaymentRef { tx, plan_id: Some("starter".to_owned()) }),
        },
        sold: None,
        link_payer: true,
        quotes: QuotePrecedence::Quote,
        now: time_of(40),
    }
}

async fn pay_signup(store: &dyn Store) -> Account {
    let id = AccountId::generate(&SystemRandomness);
    let name: AgentName = "owner".parse().unwrap();
    let mut account = NewAccount::new(id, name, ApiKey::generate(&SystemRandomness).hash(), time_of(0));
    account.payer = Some(Payer { address: wallet(OWNERS_WALLET), chain_id: CHAIN_ID });
    match store.create_account(account).await.unwrap() {
        Created::Account(account) => account,
        other => panic!("{other:?}"),
    }
}
