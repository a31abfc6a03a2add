//! The payer against scripted nodes: what it signs, what it refuses to sign, and how it interprets responses.

mod prepare;
mod send;

use std::time::Duration;

use metering_core::chains::{Address, TokenUnits};
use metering_evm::{PayError, Payer, PaymentOrder, SignedPayment, Wallet};
use serde_json::json;

use crate::node::{Chain, Node, address, word};

const KEY: &str = "0x4646464646464646464646464646464646464646464646464646464646464646";

/// `balanceOf(address)` and `transfer(address,uint256)`.
const BALANCE_OF: &str = "0x70a08231";
const TRANSFER: &str = "0xa9059cbb";

/// As in the scenes of readers: 20 seconds, so that nothing times out by accident.
const PATIENT: Duration = Duration::from_secs(20);

fn wallet() -> Wallet {
    Wallet::from_hex(KEY).unwrap()
}

fn token() -> Address {
    address(0xaa)
}

/// 0.002500003817 of the native coin.
fn native() -> PaymentOrder {
    PaymentOrder { chain_id: 1, recipient: address(0x70), token: None, amount: TokenUnits::new(2_500_003_817_000_000) }
}

/// 5.003817 of a token of 6 decimals.
fn tokens() -> PaymentOrder {
    PaymentOrder { token: Some(token()), amount: TokenUnits::new(5_003_817), ..native() }
}

/// A chain with a token; every address has 10 of it.
fn chain() -> Chain {
    let mut chain = Chain::default().with_contract(token(), BALANCE_OF, Ok(json!(word("989680")))).with_contract(
        token(),
        TRANSFER,
        Ok(json!(word("1"))),
    );
    chain.wallet_state.gas = Ok(json!("0xc350"));
    chain
}

fn payer_at(url: &str, timeout: Duration) -> Payer {
    Payer::new(&url.parse().unwrap(), 1, timeout).unwrap()
}

async fn scene(chain: Chain) -> (Node, Payer) {
    let node = Node::start(chain).await;
    let payer = payer_at(&node.url(), PATIENT);
    (node, payer)
}

/// Prepares an order on a chain, and checks that nothing was sent.
async fn prepared(chain: Chain, order: PaymentOrder) -> Result<SignedPayment, PayError> {
    let (node, payer) = scene(chain).await;
    let result = payer.prepare(&wallet(), &order).await;
    assert_eq!(node.state().chain.wallet_state.received, [""; 0]);
    result
}
