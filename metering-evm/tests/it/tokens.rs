//! Tokens with signed authorizations (EIP-3009): their names, and which authorizations they have executed.

use metering_core::Timestamp;
use metering_core::chains::{Address, ChainError, TokenDomain, TokenUnits, TxHash};
use metering_pay::offers::{Asset, AuthorizationId, AuthorizationNonce, PERMIT2, Spendable, TokenReader};
use serde_json::{Value, json};
use sha3::{Digest, Keccak256};

use crate::node::{Chain, Fault, Tx, address, word};
use crate::scene::{alone, among, unavailable};

const DECIMALS: &str = "0x313ce567";
const SEPARATOR: &str = "0x3644e515";
const OWN_DOMAIN: &str = "0x84b0196e";
const NAME: &str = "0x06fdde03";
const VERSION: &str = "0x54fd4d50";
const STATE: &str = "0xe94a0102";

const REVERTED: Result<Value, (i64, &str)> = Err((3, "execution reverted"));

fn token() -> Address {
    address(0xaa)
}

fn domain(name: &str) -> TokenDomain {
    TokenDomain { name: name.to_owned(), version: "2".to_owned(), chain_id: 1, contract: token() }
}

/// A length and a text, padded to a word.
fn padded(text: &str) -> String {
    format!("{}{:0<64}", &word(&format!("{:x}", text.len()))[2..], hex::encode(text))
}

fn text(text: &str) -> Value {
    json!(format!("{}{}", word("20"), padded(text)))
}

/// What `eip712Domain()` returns.
fn own_domain(fields: &str, name: &str, chain_id: &str, contract: Address) -> Value {
    let fields = format!("{fields:0<64}");
    let offsets = [word("e0"), word("120"), word(chain_id), word(&contract.to_string()), word("0"), word("160")];
    let head: Vec<_> = offsets.iter().map(|word| &word[2..]).collect();
    json!(format!("0x{fields}{}{}{}{}", head.concat(), padded(name), padded("2"), &word("0")[2..]))
}

/// A chain with a token of 6 decimals, whose signatures are bound to the domain with this name.
fn chain(name: &str) -> Chain {
    let separator = format!("0x{}", hex::encode(domain(name).separator()));
    Chain::default()
        .with_contract(token(), DECIMALS, Ok(json!(word("6"))))
        .with_contract(token(), SEPARATOR, Ok(json!(separator)))
        .with_contract(token(), OWN_DOMAIN, REVERTED)
        .with_contract(token(), NAME, Ok(text("USDC")))
        .with_contract(token(), VERSION, Ok(text("2")))
        .with_contract(token(), STATE, Ok(json!(word("0"))))
}

fn asset(name: &str) -> Option<Asset> {
    Some(Asset { domain: domain(name), decimals: 6 })
}

fn id() -> AuthorizationId {
    AuthorizationId {
        chain_id: 1,
        token: token(),
        payer: address(0xbb),
        nonce: AuthorizationNonce::from_bytes([7; 32]),
    }
}

/// A transaction that executed the authorization.
fn execution(byte: u8) -> Tx {
    let topic = format!("0x{}", hex::encode(Keccak256::digest("AuthorizationUsed(address,bytes32)")));
    let topics = [topic, word(&id().payer.to_string()), id().nonce.to_string()];
    Tx::new(byte).logging(json!({ "address": token(), "topics": topics, "data": "0x" }))
}

/// The time of a block of the chain.
fn time_of(block: i64) -> Timestamp {
    Timestamp::from_unix_millis((1_700_000_000 + 12 * block) * 1_000)
}

#[tokio::test]
async fn the_domain_is_the_one_that_gives_the_contracts_separator() {
    let with = |chain: Chain, function: &str, output| chain.with_contract(token(), function, output);
    let own = |name: &str| Ok(own_domain("0f", name, "1", token()));
    // chain, asset
    let table = [
        ("name and version", chain("USDC"), asset("USDC")),
        ("its own domain", with(chain("USD Coin"), OWN_DOMAIN, own("USD Coin")), asset("USD Coin")),
        ("only its own domain", with(with(chain("USDC"), OWN_DOMAIN, own("USDC")), NAME, REVERTED), asset("USDC")),
        ("its own domain is wrong", with(chain("USDC"), OWN_DOMAIN, own("USD Coin")), asset("USDC")),
        ("with a salt", with(chain("A"), OWN_DOMAIN, Ok(own_domain("1f", "A", "1", token()))), None),
        ("of another chain", with(chain("A"), OWN_DOMAIN, Ok(own_domain("0f", "A", "2", token()))), None),
        ("of another contract", with(chain("A"), OWN_DOMAIN, Ok(own_domain("0f", "A", "1", address(1)))), None),
        ("cut off", with(chain("A"), OWN_DOMAIN, Ok(json!(word("f")))), None),
        ("another name", chain("USD Coin"), None),
        ("no separator", with(chain("USDC"), SEPARATOR, REVERTED), None),
        ("no version", with(chain("USDC"), VERSION, REVERTED), None),
        ("no decimals", with(chain("USDC"), DECIMALS, REVERTED), None),
        ("no authorizations", with(chain("USDC"), STATE, REVERTED), None),
        ("no contract", Chain::default(), None),
    ];
    for (what, chain, expected) in table {
        let (node, reader) = alone(chain).await;
        assert_eq!(reader.asset(token()).await, Ok(expected), "{what}");
        assert_eq!(node.requests(), 1, "{what}");
    }
    let (node, reader) = alone(chain("USDC")).await;
    node.always(Fault::Errs(-32_000, "missing trie node"));
    assert!(unavailable(reader.asset(token()).await).contains("missing trie node"));
}

#[tokio::test]
async fn sources_must_agree_about_a_token() {
    let (_nodes, reader) = among(2, [chain("USD Coin"), chain("USDC"), chain("USDC")]).await;
    assert_eq!(reader.asset(token()).await, Ok(asset("USDC")));
    let (_nodes, reader) = among(2, [chain("USD Coin"), chain("USDC")]).await;
    let error = reader.asset(token()).await.unwrap_err();
    assert!(matches!(&error, ChainError::Disagreement(why) if why.contains("\"USDC\", version \"2\"")), "{error}");
}

fn with_state(output: Result<Value, (i64, &'static str)>) -> Chain {
    Chain::default().with_contract(token(), STATE, output)
}

#[tokio::test]
async fn an_authorization_is_used_when_the_contract_says_so() {
    for (output, used) in [("0", false), ("1", true)] {
        let (node, reader) = alone(with_state(Ok(json!(word(output))))).await;
        assert_eq!(reader.is_used(&id()).await, Ok(used));
        let call = ["e94a0102", &"00".repeat(12), &"bb".repeat(20), &"07".repeat(32)].concat();
        assert_eq!(node.state().parameters[0][0]["data"], format!("0x{call}"));
    }
    for output in [Ok(json!(word("2"))), Ok(json!("0x")), Ok(json!("0x01")), REVERTED] {
        let (_node, reader) = alone(with_state(output.clone())).await;
        let error = reader.is_used(&id()).await;
        assert!(matches!(error, Err(ChainError::Unavailable(_))), "{output:?}: {error:?}");
    }
}

#[tokio::test]
async fn a_permit_is_used_when_its_bit_is_set() {
    // the word of its nonces, whether it is used: its nonce ends with 7
    for (bitmap, used) in [("0", false), ("80", true), ("7f", false), ("f".repeat(64).as_str(), true)] {
        let permits = Chain::default().with_contract(PERMIT2, "0x4fe02b44", Ok(json!(word(bitmap))));
        let (node, reader) = alone(permits).await;
        assert_eq!(reader.is_permit_used(&id()).await, Ok(used), "{bitmap}");
        let call = ["4fe02b44", &"00".repeat(12), &"bb".repeat(20), "00", &"07".repeat(31)].concat();
        assert_eq!(node.state().parameters[0][0]["data"], format!("0x{call}"));
    }
    let (_node, reader) = alone(Chain::default().with_contract(PERMIT2, "0x4fe02b44", Ok(json!("0x")))).await;
    assert!(reader.is_permit_used(&id()).await.is_err(), "there is no such contract");
}

#[tokio::test]
async fn what_permit2_could_transfer_is_read() {
    let chain = Chain::default().with_contract(token(), "0x70a08231", Ok(json!(word("9"))));
    let chain = chain.with_contract(token(), "0xdd62ed3e", Ok(json!(word("7"))));
    let (_node, reader) = alone(chain).await;
    let expected = Spendable { balance: TokenUnits::new(9), allowance: TokenUnits::new(7) };
    assert_eq!(reader.spendable(token(), address(0xbb)).await, Ok(expected));
}

#[tokio::test]
async fn a_source_that_lags_behind_does_not_hide_an_execution() {
    let state = |digit: &str| with_state(Ok(json!(word(digit))));
    // agree, states, used
    let table = [
        (1, vec!["0", "1"], Some(true)),
        (1, vec!["0", "0"], Some(false)),
        (2, vec!["0", "1", "1"], Some(true)),
        (2, vec!["0", "0", "1"], Some(false)),
        (2, vec!["0", "1"], None),
    ];
    for (agree, states, used) in table {
        let (_nodes, reader) = among(agree, states.iter().map(|digit| state(digit))).await;
        assert_eq!(reader.is_used(&id()).await.ok(), used, "{agree} of {states:?}");
    }
    let executed = Chain::default().with(95, execution(1));
    let (_nodes, reader) = among(1, [Chain::default(), executed.clone()]).await;
    assert_eq!(reader.executed_in(&id(), time_of(90)).await, Ok(Some(execution(1).hash)));
    let (_nodes, reader) = among(2, [Chain::default(), executed]).await;
    let error = reader.executed_in(&id(), time_of(90)).await.unwrap_err();
    assert!(matches!(error, ChainError::Disagreement(_)), "{error}");
}

#[tokio::test]
async fn an_execution_is_found_in_the_blocks_since_a_time() {
    // The block, the time that the search starts from, and what it finds. A clock may be wrong by ten blocks; block 84
    // is the newest that is older than block 85 among those that are checked.
    let table = [
        (Some(100), time_of(95), true),
        (Some(84), time_of(95), true),
        (Some(83), time_of(95), false),
        (Some(83), time_of(94), true),
        (Some(0), time_of(0), true),
        (Some(0), Timestamp::from_unix_millis(0), true),
        (None, time_of(0), false),
    ];
    for (block, since, found) in table {
        let chain = block.into_iter().fold(Chain::default(), |chain, block| chain.with(block, execution(1)));
        let (_node, reader) = alone(chain).await;
        let expected = found.then(|| execution(1).hash);
        assert_eq!(reader.executed_in(&id(), since).await, Ok(expected), "{block:?} since {since:?}");
    }
}

#[tokio::test]
async fn a_long_range_is_searched_in_parts() {
    let chain = Chain { newest: 9_000, log_blocks_max: Some((700, -32_005, "block range too large")), ..chain("USDC") };
    let (node, reader) = alone(chain.with(8_500, execution(1))).await;
    assert_eq!(reader.executed_in(&id(), time_of(5_000)).await, Ok(Some(execution(1).hash)));
    let ranges = node.state().parameters.len();
    assert!((10..20).contains(&ranges), "{ranges}");
}

#[tokio::test]
async fn only_the_event_of_this_authorization_counts() {
    let change = |key: &str, value: Value| {
        let mut tx = execution(1);
        tx.logs[0][key] = value;
        tx
    };
    let topics = |index: usize, value: String| {
        let mut topics = execution(1).logs[0]["topics"].clone();
        topics[index] = json!(value);
        topics
    };
    let mut longer = topics(2, id().nonce.to_string());
    longer.as_array_mut().unwrap().push(json!(word("0")));
    // These sources ignore the filter.
    let others = [
        change("address", json!(address(1))),
        change("topics", topics(0, word("1"))),
        change("topics", topics(1, word("1"))),
        change("topics", topics(1, format!("0x01{}{}", "00".repeat(11), "bb".repeat(20)))),
        change("topics", topics(2, word("1"))),
        change("topics", longer),
        change("removed", json!(true)),
    ];
    for tx in others {
        let (node, reader) = alone(Chain::default()).await;
        let logs = logs_of(&tx, 95);
        node.set("eth_getLogs", json!([logs]));
        assert_eq!(reader.executed_in(&id(), time_of(90)).await, Ok(None), "{logs}");
    }
    let (node, reader) = alone(Chain::default()).await;
    node.set("eth_getLogs", json!([logs_of(&execution(1), 5)]));
    assert!(unavailable(reader.executed_in(&id(), time_of(90)).await).contains("was not requested"));
}

/// A transaction's log, as a source returns it.
fn logs_of(tx: &Tx, block: u64) -> Value {
    let mut log = json!({
        "transactionHash": tx.hash, "transactionIndex": "0x0", "blockNumber": format!("{block:#x}"), "removed": false,
    });
    log.as_object_mut().unwrap().extend(tx.logs[0].as_object().unwrap().clone());
    log
}

#[tokio::test]
async fn an_authorization_of_another_chain_is_not_looked_up() {
    let (node, reader) = alone(chain("USDC")).await;
    let other = AuthorizationId { chain_id: 5, ..id() };
    let wrong = ChainError::WrongChain { expected: 5, found: 1 };
    assert_eq!(reader.is_used(&other).await, Err(wrong.clone()));
    assert_eq!(reader.executed_in(&other, time_of(90)).await, Err::<Option<TxHash>, _>(wrong));
    assert_eq!(node.requests(), 0);
}
