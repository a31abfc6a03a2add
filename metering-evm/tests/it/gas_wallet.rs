//! The wallet that pays the gas, against scripted nodes: what it signs, what it refuses, and how it sends.

use std::time::Duration;

use metering_core::Timestamp;
use metering_core::chains::{Address, ChainError, TokenUnits, TxHash, WalletSignature};
use metering_evm::{GasWallet, Wallet};
use metering_pay::offers::{Authorization, SignedAuthorization, Submission, SubmitError, Submitter};
use serde_json::{Value, json};

use crate::node::{Chain, Fault, Node, Tx, address};

const KEY: &str = "0x4646464646464646464646464646464646464646464646464646464646464646";

/// What `@x402/evm` 2.27.0 signed.
const BY_KEY: &str = "0x37ee65cd4e139b9478e44acabdd5f6802993591aaeb2f01a38b38069ba9501a513649d70b1d7e4b6ffa34836f9d218bdee8263d490cbe1fca234446e13c137801b";

/// The highest fee of a transaction: 62,500 gas at up to 2,003 wei.
const FEE: u128 = 62_500 * 2_003;

fn token() -> Address {
    address(0xaa)
}

fn signed_as(signature: &str) -> SignedAuthorization {
    let authorization = Authorization {
        from: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8".parse().unwrap(),
        to: "0x209693Bc6afc0C5328bA36FaF03C514EF312287C".parse().unwrap(),
        value: TokenUnits::new(50_000),
        valid_after: 0,
        valid_before: 1_750_000_300,
        nonce: "0x01080f161d242b323940474e555c636a71787f868d949ba2a9b0b7bec5ccd3da".parse().unwrap(),
    };
    let signature = WalletSignature::parse(signature).unwrap();
    SignedAuthorization { chain_id: 1, token: token(), authorization, signature }
}

fn signed() -> SignedAuthorization {
    signed_as(BY_KEY)
}

fn now() -> Timestamp {
    Timestamp::from_unix_millis(1_750_000_000_000)
}

fn chain() -> Chain {
    let mut chain = Chain::default();
    chain.wallet_state.gas = Ok(json!("0xc350"));
    chain
}

fn gas_wallet(url: &str) -> GasWallet {
    let wallet = Wallet::from_hex(KEY).unwrap();
    GasWallet::new(wallet, &[url.parse().unwrap()], 1, Duration::from_secs(20)).unwrap()
}

async fn scene(chain: Chain) -> (Node, GasWallet) {
    let node = Node::start(chain).await;
    let gas = gas_wallet(&node.url());
    (node, gas)
}

/// A transaction that executes the authorization, with nonce 7.
async fn submission(chain: Chain) -> (Node, GasWallet, Submission) {
    let (node, gas) = scene(chain).await;
    let submission = gas.sign(&signed(), None, 7, &[], now()).await.unwrap();
    (node, gas, submission)
}

#[tokio::test]
async fn transactions_are_those_that_another_library_signs() {
    // Hashes of what viem signed with the same key and fees.
    let (by_key, by_bytes) = (
        "0x309d4449f0dbaf37df53b8ab073a558526a665e2e37f74142de1b5e090655822",
        "0x2c40ac7c381033237c83b44c20554dac3e3e8443302a4694f8546908eb99180f",
    );
    let (replacement, nothing, second) = (
        "0x846c1b594b0ffa2e5e81adc4a7298ea734804585cd75a7624eadbf1b7713df07",
        "0x9f58d0f2fb877b2ab178c2e2d0934525aa912b7ff5acf21985b2d15b03414f5f",
        "0x735229e2520d219e49a2ac89dc9ad889566080aabbb7738254cd1df3eea57717",
    );
    let (node, gas) = scene(chain()).await;
    let first = gas.sign(&signed(), None, 3, &[], now()).await.unwrap();
    assert_eq!((first.hash.to_string(), first.signed_at), (by_key.to_owned(), now()));
    let of_contract = gas.sign(&signed_as(&format!("0x{}", "07".repeat(70))), None, 3, &[], now()).await.unwrap();
    assert_eq!(of_contract.hash.to_string(), by_bytes);
    assert_eq!(gas.sign_nothing(3, &[], now()).await.unwrap().hash.to_string(), nothing);
    // 3 and 2,003 wei become 4 and 2,254, and then 5 and 2,536.
    let replaced = gas.sign(&signed(), None, 3, std::slice::from_ref(&first), now()).await.unwrap();
    assert_eq!(replaced.hash.to_string(), replacement);
    let nothing_more = gas.sign_nothing(3, &[replaced, first], now()).await.unwrap();
    assert_eq!(nothing_more.hash.to_string(), second);
    assert_eq!(node.state().chain.wallet_state.received, [""; 0]);
}

#[tokio::test]
async fn v_of_zero_or_one_is_written_as_contracts_expect_it() {
    let (_node, gas) = scene(chain()).await;
    let usual = gas.sign(&signed(), None, 3, &[], now()).await.unwrap();
    let zero = gas.sign(&signed_as(&BY_KEY.replace("c137801b", "c1378000")), None, 3, &[], now()).await.unwrap();
    assert_eq!(usual, zero);
}

#[tokio::test]
async fn what_the_contract_refuses_is_not_submitted() {
    let refusing = |message| Chain::default().with_contract(token(), "0xe3ee160e", Err((3, message)));
    let mut failing = chain();
    failing.wallet_state.gas = Err((-32_000, "execution reverted: Blacklistable: account is blacklisted"));
    for (chain, why) in [
        (refusing("execution reverted: FiatTokenV2: authorization is expired"), "authorization is expired"),
        (failing, "account is blacklisted"),
    ] {
        let (node, gas) = scene(chain).await;
        let (checked, signed) = (gas.check(&signed(), None).await, gas.sign(&signed(), None, 3, &[], now()).await);
        for error in [checked.unwrap_err(), signed.unwrap_err()] {
            assert!(matches!(&error, SubmitError::WouldFail(reason) if reason.contains(why)), "{error}");
        }
        assert!(node.state().requests.iter().flatten().all(|method| method != "eth_sendRawTransaction"));
    }
    let (node, gas) = scene(chain()).await;
    assert_eq!(gas.check(&signed(), None).await, Ok(()));
    let called = node.state().parameters[0][0].clone();
    assert_eq!((&called["from"], &called["to"]), (&json!(gas.wallet()), &json!(token())));
}

#[tokio::test]
async fn fees_are_paid_up_to_the_limit_and_the_balance() {
    let units = TokenUnits::new;
    let with = |balance: u128| {
        let mut chain = chain();
        chain.wallet_state.balance = json!(format!("{balance:#x}"));
        chain
    };
    let (_node, gas) = scene(with(FEE)).await;
    assert_eq!(gas.check(&signed(), None).await, Ok(()));
    let short = |have, need| SubmitError::ShortOfGas { have: units(have), need: units(need) };
    let (node, gas) = scene(with(FEE - 1)).await;
    assert_eq!(gas.check(&signed(), None).await, Err(short(FEE - 1, FEE)));
    assert_eq!(gas.sign(&signed(), None, 3, &[], now()).await, Err(short(FEE - 1, FEE)));
    assert_eq!(gas.sign_nothing(3, &[], now()).await, Err(short(FEE - 1, FEE)));
    // A replacement costs more.
    node.state().chain.wallet_state.balance = json!(format!("{FEE:#x}"));
    let first = gas.sign(&signed(), None, 3, &[], now()).await.unwrap();
    let more = 62_500 * 2_254;
    assert_eq!(gas.sign_nothing(3, std::slice::from_ref(&first), now()).await, Err(short(FEE, more)));
    node.state().chain.wallet_state.balance = json!("0xde0b6b3a7640000");
    let limit = units(more - 1);
    let gas = gas.with_fee_limit(limit);
    let above = Err(SubmitError::FeesAboveLimit { need: units(more), limit });
    assert_eq!(gas.sign(&signed(), None, 3, &[first], now()).await, above);
}

#[tokio::test]
async fn gas_and_fees_of_a_transfer_have_limits_of_their_own() {
    let with_gas = |gas: u64| {
        let mut chain = chain();
        chain.wallet_state.gas = Ok(json!(format!("{gas:#x}")));
        chain
    };
    // A contract wallet may use any gas in its simulation.
    let (node, gas) = scene(with_gas(200_001)).await;
    let above = SubmitError::GasAboveLimit { need: 200_001, limit: 200_000 };
    assert_eq!(gas.check(&signed(), None).await, Err(above.clone()));
    assert_eq!(gas.sign(&signed(), None, 3, &[], now()).await, Err(above.clone()));
    assert!(above.refusal().is_some_and(|why| why.contains("needs 200001 gas")));
    assert!(gas.sign_nothing(3, &[], now()).await.is_ok());
    // The transaction's gas limit does not exceed it either, and the fee is computed from that limit.
    node.state().chain = with_gas(190_000);
    node.state().chain.wallet_state.balance = json!(format!("{:#x}", 200_000_u128 * 2_003));
    assert_eq!(gas.check(&signed(), None).await, Ok(()));
    node.state().chain = with_gas(50_000);
    let gas = gas.with_gas_limit(49_999);
    assert!(matches!(gas.check(&signed(), None).await, Err(SubmitError::GasAboveLimit { .. })));
    let gas = gas.with_gas_limit(60_000);
    // With a price, no fee exceeds the value of the payment: 50,000 units.
    let fee = 60_000 * 2_003;
    let price = 50_000 * 1_000_000_000_000_000_000 / fee;
    gas.set_coin_price(token(), TokenUnits::new(price));
    assert_eq!(gas.check(&signed(), None).await, Ok(()));
    gas.set_coin_price(token(), TokenUnits::new(price + price / 100));
    let refused = gas.check(&signed(), None).await.unwrap_err();
    assert!(matches!(refused, SubmitError::FeesAboveLimit { need, .. } if need.get() == fee), "{refused}");
    gas.set_coin_price(address(0xbb), TokenUnits::new(1));
    assert!(gas.check(&signed(), None).await.is_err(), "each token has its price");
}

#[tokio::test]
async fn by_default_a_fee_is_at_most_a_hundredth_of_a_coin() {
    let mut chain = chain();
    chain.wallet_state.base_fee = json!("0x174876e800"); // 100 gwei
    let (node, gas) = scene(chain).await;
    let limit = TokenUnits::new(10_000_000_000_000_000);
    let error = gas.check(&signed(), None).await.unwrap_err();
    assert!(matches!(error, SubmitError::FeesAboveLimit { limit: found, .. } if found == limit), "{error}");
    node.state().chain.wallet_state.base_fee = json!("0x12a05f2000"); // 80 gwei
    assert!(matches!(gas.check(&signed(), None).await, Err(SubmitError::FeesAboveLimit { .. })));
    node.state().chain.wallet_state.base_fee = json!("0x1176592e00"); // 75 gwei
    assert_eq!(gas.check(&signed(), None).await, Ok(()));
}

#[tokio::test]
async fn chains_without_a_base_fee_are_paid_too() {
    let mut chain = chain();
    (chain.wallet_state.base_fee, chain.wallet_state.tip) = (json!(null), Err((-32_601, "no such method")));
    let (_node, gas, first) = submission(chain).await;
    let second = gas.sign(&signed(), None, 7, std::slice::from_ref(&first), now()).await.unwrap();
    assert!(first.raw[0] >= 0xc0 && second.raw[0] >= 0xc0, "legacy transactions are lists");
    assert_ne!(first.hash, second.hash);
}

#[tokio::test]
async fn a_transaction_is_sent_as_often_as_necessary() {
    let (node, gas, submission) = submission(chain()).await;
    for _ in 0..3 {
        assert_eq!(gas.send(&submission).await, Ok(()));
    }
    let raw = format!("0x{}", hex::encode(&submission.raw));
    assert_eq!(node.state().chain.wallet_state.received, [raw.clone(), raw.clone(), raw]);
    // Nonces may be sent out of order.
    let later = gas.sign_nothing(9, &[], now()).await.unwrap();
    assert_eq!(gas.send(&later).await, Ok(()));
}

#[tokio::test]
async fn a_refused_transaction_is_judged_by_the_chain() {
    let low = (-32_000, "nonce too low");
    let poor = (-32_000, "insufficient funds for gas * price + value");
    let units = TokenUnits::new;
    let short = SubmitError::ShortOfGas { have: units(5), need: units(FEE) };
    // refusal, the transaction's block, the block since which its nonce is used, balance, outcome
    let table = [
        (low, Some(95), Some(95), "0x5", Ok(())),
        ((-32_000, "already known"), None, None, "0x5", Ok(())),
        (low, None, Some(89), "0x5", Err(SubmitError::PlaceTaken)),
        ((-32_000, "replacement transaction underpriced"), None, None, "0x5", Err(SubmitError::PlaceTaken)),
        (poor, None, None, "0x5", Err(short)),
    ];
    for (refusal, block, taken_since, balance, outcome) in table {
        let (node, gas, submission) = submission(chain()).await;
        {
            let chain = &mut node.state().chain;
            let tx = Tx { hash: submission.hash, ..Tx::new(0) };
            chain.transactions.extend(block.map(|block| (Some(block), tx)));
            chain.wallet_state.mined.extend(taken_since.map(|since| (since, 8)));
            (chain.wallet_state.refusal, chain.wallet_state.balance) = (Some(refusal), json!(balance));
        }
        assert_eq!(gas.send(&submission).await, outcome, "{refusal:?}");
    }
    for refusal in [poor, (-32_000, "transaction underpriced"), (-32_603, "Internal error")] {
        let (node, gas, submission) = submission(chain()).await;
        node.state().chain.wallet_state.refusal = Some(refusal);
        let error = gas.send(&submission).await.unwrap_err();
        let is_it = matches!(&error, SubmitError::Chain(ChainError::Unavailable(why)) if why.contains(refusal.1));
        assert!(is_it, "{refusal:?}: {error}");
    }
}

#[tokio::test]
async fn a_damaged_transaction_is_not_sent() {
    let (node, gas, submission) = submission(chain()).await;
    let mut cut = submission.raw.clone();
    cut.pop();
    let mut altered = submission.raw.clone();
    *altered.last_mut().unwrap() ^= 1;
    for raw in [cut, altered, Vec::new()] {
        let damaged = Submission { raw, ..submission.clone() };
        let error = gas.send(&damaged).await.unwrap_err();
        assert!(matches!(error, SubmitError::Chain(ChainError::Unreadable(_))), "{error}");
    }
    let odd = Submission { hash: TxHash::from_bytes([1; 32]), raw: vec![1, 2], signed_at: now() };
    assert!(gas.sign(&signed(), None, 7, &[odd], now()).await.is_err());
    assert_eq!(node.state().chain.wallet_state.received, [""; 0]);
}

#[tokio::test]
async fn another_source_is_used_when_one_fails() {
    let (down, up) = (Node::start(chain()).await, Node::start(chain()).await);
    let with = |urls: &[String]| {
        let urls: Vec<_> = urls.iter().map(|url| url.parse().unwrap()).collect();
        GasWallet::new(Wallet::from_hex(KEY).unwrap(), &urls, 1, Duration::from_secs(20))
    };
    down.always(Fault::Status(403, None));
    let gas = with(&[down.url(), up.url()]).unwrap();
    assert_eq!((gas.check(&signed(), None).await, gas.mined().await), (Ok(()), Ok(7)));
    let submission = gas.sign(&signed(), None, 7, &[], now()).await.unwrap();
    assert_eq!(gas.send(&submission).await, Ok(()));
    assert_eq!(up.state().chain.wallet_state.received.len(), 1);
    // A refusal by the contract is not a failure of the source.
    let other = Node::start(chain()).await;
    let gas = with(&[up.url(), other.url()]).unwrap();
    up.refuse(|method, _| (method == "eth_call").then_some((3, "execution reverted: expired")));
    assert!(matches!(gas.check(&signed(), None).await, Err(SubmitError::WouldFail(_))));
    assert_eq!(other.requests(), 0);
    // All fail.
    up.always(Fault::Status(403, None));
    let gas = with(&[down.url(), up.url()]).unwrap();
    for error in [gas.check(&signed(), None).await.unwrap_err(), gas.send(&submission).await.unwrap_err()] {
        let text = error.to_string();
        assert!(matches!(error, SubmitError::Chain(ChainError::Unavailable(_))), "{error}");
        assert!(text.contains(&down.host()) && text.contains(&up.host()), "{text}");
    }
    assert!(with(&[]).is_err());
}

#[tokio::test]
async fn mined_transactions_are_counted() {
    let (node, gas) = scene(chain()).await;
    assert_eq!(gas.mined().await, Ok(7));
    // Those that are pending do not count.
    node.state().chain.wallet_state.sent = 12;
    node.state().chain.wallet_state.mined.push((100, 9));
    assert_eq!(gas.mined().await, Ok(9));
}

#[tokio::test]
async fn nothing_is_done_on_another_chain() {
    let (node, gas) = scene(chain()).await;
    let other = SignedAuthorization { chain_id: 5, ..signed() };
    let wrong = SubmitError::Chain(ChainError::WrongChain { expected: 5, found: 1 });
    assert_eq!(gas.check(&other, None).await, Err(wrong.clone()));
    assert_eq!(gas.sign(&other, None, 3, &[], now()).await, Err(wrong));
    assert_eq!(node.requests(), 0);
    let first = gas.sign(&signed(), None, 3, &[], now()).await.unwrap();
    node.state().chain.id = 10;
    let wrong = SubmitError::Chain(ChainError::WrongChain { expected: 1, found: 10 });
    assert_eq!(gas.mined().await, Err(wrong.clone()));
    assert_eq!(gas.check(&signed(), None).await, Err(wrong.clone()));
    assert_eq!(gas.send(&first).await, Err(wrong));
}

#[tokio::test]
async fn errors_and_debug_output_show_no_secret() {
    let (key, secret) = (&KEY[2..], "topsecret-0123456789");
    let node = Node::start(chain()).await;
    let gas = gas_wallet(&format!("{}/v2/{secret}", node.url()));
    node.always(Fault::Errs(-32_001, "unknown key topsecret-0123456789"));
    let error = gas.check(&signed(), None).await.unwrap_err();
    assert!(matches!(error, SubmitError::Chain(ChainError::Unavailable(_))), "{error}");
    let shown: Value = json!(format!("{error} {error:?} {gas:?}"));
    let shown = shown.as_str().unwrap();
    assert!(!shown.contains(secret) && !shown.contains(key) && shown.contains(&node.host()), "{shown}");
}

#[tokio::test]
async fn a_wallet_says_what_it_has_and_what_a_payment_may_cost() {
    // 100,000 gas and a quarter more.
    let cost = 125_000 * 2_003;
    let mut poor = chain();
    poor.wallet_state.balance = json!(format!("{:#x}", 20 * cost - 1));
    let (_node, gas) = scene(poor).await;
    let funds = gas.funds().await.unwrap();
    assert_eq!((funds.balance.get(), funds.cost.get(), funds.transactions()), (20 * cost - 1, cost, 19));
    let (node, gas) = scene(chain()).await;
    node.always(Fault::Status(403, None));
    assert!(matches!(gas.funds().await, Err(SubmitError::Chain(ChainError::Unavailable(_)))));
}
