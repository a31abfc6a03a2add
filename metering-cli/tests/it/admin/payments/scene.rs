//! A store and a chain with everything that can happen to a payment.

use std::time::Duration;

use metering_core::chains::{Address, TokenUnits};
use metering_core::payments::{PaymentTarget, Quote, QuoteNonce, QuoteState};
use metering_core::store::QuoteOpened;
use metering_core::{Credits, PaymentStore, SystemRandomness, Timestamp};

use crate::node::{Chain, GENESIS_SECONDS, SECRET, Tx, address, hash};
use crate::program::Program;
use crate::stand_in::StandIn;
use crate::store::block_on;

pub(crate) const CHAIN_ID: u64 = 8453;
pub(crate) const USDC: &str = "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913";
pub(crate) const RECIPIENT: &str = "0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed";
pub(crate) const NEWEST: u64 = 200;
/// With 12 confirmations, including its own block.
pub(crate) const SETTLED: u64 = 189;

/// The transactions; each is made of one byte, by its place from 1 on. The last one is on no chain.
const NAMES: [&str; 12] = [
    "QUOTED",
    "UNKNOWN",
    "USED",
    "TWICE",
    "COIN",
    "WITH_INPUT",
    "TOO_LITTLE",
    "REVERTED",
    "ELSEWHERE",
    "YOUNG",
    "BOTH",
    "MISSING",
];

/// A wallet, by the byte that it is made of.
const QUOTED_WALLET: u8 = 0x11;

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
    let tx = |name: &str, block, from| {
        let place = (1..).zip(NAMES).find(|(_, other)| *other == name);
        Tx::new(place.unwrap().0, block, from)
    };
    vec![
        tx("YOUNG", SETTLED + 1, 0x22).moving(USDC, RECIPIENT, 5_000_000),
        tx("QUOTED", 10, QUOTED_WALLET).moving(USDC, RECIPIENT, 5_003_817),
        tx("UNKNOWN", 20, 0x22).moving(USDC, RECIPIENT, 5_000_000).moving(USDC, &elsewhere, 1),
        tx("USED", 30, 0x33).moving(USDC, RECIPIENT, 5_000_000),
        tx("TWICE", 40, 0x44).moving(USDC, RECIPIENT, 5_000_000).moving(USDC, RECIPIENT, 5_000_000),
        tx("COIN", 50, 0x55).sending(RECIPIENT, 2_500_000_000_000_000),
        Tx { input: "0x01020304", ..tx("WITH_INPUT", 60, 0x66).sending(RECIPIENT, 2_500_000_000_000_000) },
        tx("TOO_LITTLE", 80, 0x88).moving(USDC, RECIPIENT, 4_750_000),
        Tx { succeeded: false, ..tx("REVERTED", 90, 0x99).moving(USDC, RECIPIENT, 5_000_000) },
        tx("BOTH", 110, 0xbb).sending(RECIPIENT, 2_500_000_000_000_000).moving(USDC, RECIPIENT, 5_000_000),
        tx("ELSEWHERE", 100, 0xaa).moving(USDC, &elsewhere, 5_000_000).moving(&elsewhere, RECIPIENT, 5_000_000),
    ]
}

/// A store with plans, an open quote, an account whose payment is used (`$customer`) and one without payments (`$owner`),
/// and the node of the chain. Transactions have names as well.
pub(crate) fn scene() -> (Program, StandIn) {
    let program = Program::without_store();
    for name in ["customer", "owner"] {
        program.call(name, program.create(name, "0").org_id);
    }
    program.reading("plan import -", PLANS).success();
    let node = Chain { id: CHAIN_ID, newest: NEWEST, transactions: transactions(), takes: None }.serve();
    program.write("metering.toml", configuration(&node));
    assert_eq!(block_on(program.store().open_quote(quote())).unwrap(), QuoteOpened::Opened);
    for (byte, name) in (1..).zip(NAMES) {
        program.call(name, hash(byte));
    }
    program.run(&assign("USED", "--plan starter").replace("$owner", "$customer")).success();
    (program, node)
}

/// The command that assigns a transaction to `$owner`.
pub(crate) fn assign(tx: &str, options: &str) -> String {
    format!("payments assign --config metering.toml --chain base --tx ${tx} --account $owner {options}")
}

/// How many payments the store has a record of.
pub(crate) fn records(program: &Program) -> usize {
    program.count("payments records", "payments")
}

/// The URL of a node, with a path like those that providers give to their customers.
pub(crate) fn url(node: &StandIn) -> String {
    format!("{}/v2/{SECRET}", node.url())
}

/// A chain that can be read, one that cannot, and server settings that the command ignores.
pub(crate) fn configuration(node: &StandIn) -> String {
    let url = url(node);
    format!(
        "listen = \"127.0.0.1:0\"\n[http]\nmax_body_bytes = 65536\n\
         [chains.base]\nchain_id = {CHAIN_ID}\nrecipient = \"{RECIPIENT}\"\nrpc_urls = [\"{url}\"]\n\
         attempts = 1\nrequest_timeout = \"5s\"\nconfirmations = 12\nfinality = 64\n\
         [chains.quiet]\nchain_id = 1\nrecipient = \"{RECIPIENT}\"\n"
    )
}

/// The time of a block.
pub(crate) fn time_of(block: u64) -> Timestamp {
    Timestamp::from_unix_millis(i64::try_from((GENESIS_SECONDS + 2 * block) * 1_000).unwrap())
}

fn quote() -> Quote {
    let (token, recipient) = (USDC.parse().unwrap(), RECIPIENT.parse().unwrap());
    Quote {
        nonce: QuoteNonce::generate(&SystemRandomness).hash(),
        agent_name: "quoted-agent".parse().unwrap(),
        email: None,
        payer: Address::from_bytes([QUOTED_WALLET; 20]),
        top_up: None,
        target: PaymentTarget { chain_id: CHAIN_ID, token, recipient },
        amount: TokenUnits::new(5_003_817),
        plan_id: "starter".to_owned(),
        credits: Credits::from_whole(10).unwrap(),
        bonus_credits: Credits::ZERO,
        created_at: time_of(0),
        expires_at: time_of(0).saturating_add(Duration::from_secs(1_800)),
        state: QuoteState::Open,
    }
}
