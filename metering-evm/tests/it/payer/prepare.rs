//! Which payments are signed, and which are refused.

use metering_core::chains::{Address, TokenUnits};
use metering_evm::{PayError, PaymentOrder};
use serde_json::{Value, json};

use super::{BALANCE_OF, TRANSFER, chain, native, payer_at, prepared, scene, token, tokens, wallet};
use crate::node::{Chain, Fault, Node, word};
use crate::scene::SHORT;

/// Signed by viem with the same key and order: 26,250 or 62,500 gas at up to 2,003 wei, 3 of them as tip; nonce 7.
const NATIVE: &str = concat!(
    "02f86b0107038207d382668a9470707070707070707070707070707070707070708708e1bd7f730c4080c001",
    "a096b08181b3cdd42f50e79b87b3950460bb6f1851b105f70030aa4db06c004644",
    "a00e3280c63d5144f3a74c5b5aec4294535719191cff9facdfb103b613743737b2",
);
const TOKENS: &str = concat!(
    "02f8a90107038207d382f42494aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa80b844a9059cbb",
    "0000000000000000000000007070707070707070707070707070707070707070",
    "00000000000000000000000000000000000000000000000000000000004c5a29",
    "c001a0e1c148519d96e33b3414677620e7345ed2e3684ac00b40ac6ec278971dbff628",
    "a06e827f9015c661fbffc747ba7f392b5829d75caec49cee59ebd1b5be4b13c635",
);
/// The same native payment on a chain without a base fee, at 1,500 wei.
const LEGACY: &str = concat!(
    "f868078205dc82668a9470707070707070707070707070707070707070708708e1bd7f730c408025",
    "a0cd376906c6f1c30a71b867f6dc8befc17b0e24ac1ceb8d03908c2fd76b6888bc",
    "a04250476731509791dce42020df27e23938055db2c145efd01b71bad74f68b4fe",
);

/// A contract's return data, or the code and message of an error.
type RpcResult = Result<Value, (i64, &'static str)>;

/// A chain with a token whose contract responds like this.
fn token_chain(balance: RpcResult, transfer: RpcResult) -> Chain {
    let contracts = [((token(), BALANCE_OF.to_owned()), balance), ((token(), TRANSFER.to_owned()), transfer)];
    Chain { contracts: contracts.into(), ..chain() }
}

#[tokio::test]
async fn payment_signature_matches_another_wallet() {
    let legacy = || {
        let mut chain = Chain::default();
        chain.wallet_state.base_fee = json!(null);
        chain.wallet_state.tip = Err((-32_601, "the method does not exist"));
        chain
    };
    // chain, order, transaction, highest possible fee
    let table = [
        (Chain::default(), native(), NATIVE, 26_250 * 2_003),
        (chain(), tokens(), TOKENS, 62_500 * 2_003),
        (legacy(), native(), LEGACY, 26_250 * 1_500),
    ];
    for (chain, order, raw, fee_max) in table {
        let payment = prepared(chain, order).await.unwrap();
        assert_eq!(hex::encode(&payment.raw), raw);
        assert_eq!((payment.chain_id, payment.nonce, payment.from), (1, 7, wallet().address()));
        assert_eq!(payment.fee_max, TokenUnits::new(fee_max));
    }
}

#[tokio::test]
async fn without_suggested_tip_the_gas_price_is_used() {
    let mut chain = chain();
    chain.wallet_state.tip = Err((-32_601, "the method does not exist"));
    let payment = prepared(chain, tokens()).await.unwrap();
    assert_eq!(payment.fee_max, TokenUnits::new(62_500 * 2_500));
}

#[tokio::test]
async fn token_with_empty_transfer_result_can_be_paid() {
    let chain = token_chain(Ok(json!(word("4c5a29"))), Ok(json!("0x")));
    assert_eq!(hex::encode(prepared(chain, tokens()).await.unwrap().raw), TOKENS);
}

#[tokio::test]
async fn insufficient_funds_are_reported_before_signing() {
    let with = |balance: u128| {
        let mut chain = chain();
        chain.wallet_state.balance = json!(format!("{balance:#x}"));
        chain
    };
    let units = TokenUnits::new;
    let (native_fee, token_fee) = (62_500 * 2_003, 62_500 * 2_003);
    let total = native().amount.get() + native_fee;
    let short = |have, need| PayError::ShortOfTokens { have: units(have), need };
    let no_fees = |have, need| PayError::ShortOfFees { have: units(have), need: units(need) };
    // chain, order, error
    let table = [
        (token_chain(Ok(json!(word("4c5a28"))), Ok(json!(word("1")))), tokens(), short(5_003_816, tokens().amount)),
        (with(native().amount.get() - 1), native(), short(native().amount.get() - 1, native().amount)),
        (with(0), native(), short(0, native().amount)),
        (with(total - 1), native(), no_fees(total - 1, total)),
        (with(token_fee - 1), tokens(), no_fees(token_fee - 1, token_fee)),
    ];
    for (chain, order, error) in table {
        assert_eq!(prepared(chain, order).await.unwrap_err(), error);
    }
    assert!(prepared(with(total), native()).await.is_ok());
    assert!(prepared(with(token_fee), tokens()).await.is_ok());
}

#[tokio::test]
async fn a_balance_beyond_128_bits_is_enough() {
    let mut chain = chain();
    chain.wallet_state.balance = json!(format!("0x{}", "f".repeat(64)));
    chain.contracts.insert((token(), BALANCE_OF.to_owned()), Ok(json!(format!("0x{}", "f".repeat(64)))));
    assert!(prepared(chain.clone(), tokens()).await.is_ok());
    assert!(prepared(chain, native()).await.is_ok());
}

#[tokio::test]
async fn a_payment_that_would_fail_is_not_signed() {
    let rich = || Ok(json!(word("989680")));
    let estimate_fails = || {
        let mut chain = chain();
        chain.wallet_state.gas = Err((3, "execution reverted: paused"));
        chain
    };
    // chain, part of the reason
    let table = [
        (token_chain(rich(), Err((3, "execution reverted: blocked"))), "execution reverted: blocked"),
        (token_chain(rich(), Ok(json!(word("0")))), "reports that the transfer would fail"),
        (token_chain(rich(), Ok(json!(word("2")))), "reports that the transfer would fail"),
        (token_chain(rich(), Ok(json!("0x01"))), "reports that the transfer would fail"),
        (estimate_fails(), "execution reverted: paused"),
    ];
    for (chain, reason) in table {
        let error = prepared(chain, tokens()).await.unwrap_err();
        assert!(matches!(&error, PayError::WouldRevert(why) if why.contains(reason)), "{error}");
    }
    let refused = Chain::default().with_contract(native().recipient, "0x", Err((3, "execution reverted")));
    assert!(matches!(prepared(refused, native()).await.unwrap_err(), PayError::WouldRevert(_)));
    for balance in [Ok(json!("0x")), Ok(json!("0x01")), Err((3, "execution reverted"))] {
        let error = prepared(token_chain(balance, Ok(json!(word("1")))), tokens()).await.unwrap_err();
        assert_eq!(error, PayError::NoToken(token()));
    }
}

#[tokio::test]
async fn invalid_orders_are_refused_without_a_request() {
    let (node, payer) = scene(chain()).await;
    let orders = [
        (PaymentOrder { chain_id: 5, ..native() }, PayError::WrongChain { expected: 5, found: 1 }),
        (PaymentOrder { amount: TokenUnits::ZERO, ..tokens() }, PayError::Order("the amount is zero")),
        (
            PaymentOrder { recipient: Address::ZERO, ..tokens() },
            PayError::Order("payments to the zero address are lost"),
        ),
    ];
    for (order, error) in orders {
        assert_eq!(payer.prepare(&wallet(), &order).await.unwrap_err(), error);
    }
    assert_eq!(node.requests(), 0);
}

#[tokio::test]
async fn payment_is_not_sent_to_a_node_of_another_chain() {
    let other = Chain { id: 11_155_111, ..chain() };
    let error = prepared(other, tokens()).await.unwrap_err();
    assert_eq!(error, PayError::WrongChain { expected: 1, found: 11_155_111 });
}

#[tokio::test]
async fn lying_fee_source_is_limited_by_the_fee_limit() {
    let fees = |base_fee: &str, tip: &str, gas: &str| {
        let mut chain = chain();
        chain.wallet_state.balance = json!(format!("0x{}", "f".repeat(64)));
        chain.wallet_state.base_fee = json!(base_fee);
        (chain.wallet_state.tip, chain.wallet_state.gas) = (Ok(json!(tip)), Ok(json!(gas)));
        chain
    };
    let most = format!("0x{}", "f".repeat(64));
    for chain in [
        fees("0x2386f26fc10000", "0x0", "0xc350"),
        fees("0x3e8", "0x2386f26fc10000", "0xc350"),
        fees("0x3e8", "0x3", "0xffffffffffffffff"),
        fees(&most, &most, "0xffffffffffffffff"),
    ] {
        let error = prepared(chain, tokens()).await.unwrap_err();
        assert!(matches!(error, PayError::FeesAboveLimit { .. }), "{error}");
    }
    let (_node, payer) = scene(chain()).await;
    let fee = 62_500 * 2_003;
    let (limit, need) = (TokenUnits::new(fee - 1), TokenUnits::new(fee));
    let payer = payer.with_fee_limit(limit);
    assert_eq!(payer.prepare(&wallet(), &tokens()).await.unwrap_err(), PayError::FeesAboveLimit { need, limit });
    assert!(payer.with_fee_limit(need).prepare(&wallet(), &tokens()).await.is_ok());
}

#[tokio::test]
async fn transient_errors_are_retried_and_reported_without_the_url_key() {
    let secret = "topsecret-0123456789";
    let faults = [
        Fault::Status(503, None),
        Fault::Body("nonsense"),
        Fault::Hangs,
        Fault::Errs(-32_603, "Internal error of topsecret-0123456789"),
        Fault::Errs(-32_001, "unknown key topsecret-0123456789"),
    ];
    let scenes = faults.map(|fault| async move {
        let node = Node::start(chain()).await;
        let payer = payer_at(&format!("{}/v2/{secret}", node.url()), SHORT);
        node.always(fault.clone());
        let error = payer.prepare(&wallet(), &tokens()).await.unwrap_err();
        assert!(matches!(error, PayError::Rpc(_)), "{fault:?}: {error}");
        let shown = format!("{error} {error:?} {payer:?}");
        assert!(!shown.contains(secret) && shown.contains(&node.host()), "{shown}");
    });
    futures_util::future::join_all(scenes).await;
    let (node, payer) = scene(chain()).await;
    node.fail([Fault::Status(503, None), Fault::Body("nonsense")]);
    assert!(payer.prepare(&wallet(), &tokens()).await.is_ok());
}
