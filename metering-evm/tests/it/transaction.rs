//! Looking up a transaction at one source.

use metering_core::Timestamp;
use metering_core::chains::{
    ChainError, ChainReader, Depth, NativeTransfer, TokenTransfer, TokenUnits, TransactionStatus,
};
use metering_evm::ChainConfig;
use serde_json::{Value, json};

use crate::node::{Chain, Fault, Node, Tx, address, block_hash, transfer_topic, word};
use crate::scene::{alone, config, evidence, reader, status, unavailable, unreadable};

const PENDING: TransactionStatus = TransactionStatus::Pending { required: 12, transaction: None };

#[tokio::test]
async fn token_payment_is_read_in_two_batches() {
    let tx = Tx { input: "0xa9059cbb00".to_owned(), ..Tx::new(1).moving(address(0x20), address(0x70), "0x4c5a69") };
    let (node, reader) = alone(Chain::default().with(97, Tx::new(9)).with(95, tx)).await;
    let evidence = evidence(&reader).await;
    assert!(evidence.succeeded);
    assert_eq!((evidence.block.number, evidence.block.hash), (95, block_hash(95, 0)));
    assert_eq!(evidence.block.time, Timestamp::from_unix_millis((1_700_000_000 + 12 * 95) * 1000));
    assert_eq!(evidence.depth, Depth { confirmations: 6, required: 12 });
    assert_eq!(
        evidence.native,
        Some(NativeTransfer { from: address(0xf0), to: Some(address(0x70)), value: TokenUnits::ZERO, has_input: true })
    );
    assert_eq!(
        evidence.transfers,
        [TokenTransfer {
            token: address(0x20),
            from: address(0xf0),
            to: address(0x70),
            value: TokenUnits::new(0x4c_5a69)
        }]
    );
    let first = ["eth_chainId", "eth_getTransactionReceipt", "eth_getTransactionByHash", "eth_blockNumber"];
    let second = ["eth_chainId", "eth_getBlockByNumber"];
    assert_eq!(node.state().requests, [first.to_vec(), second.to_vec()]);
}

#[tokio::test]
async fn native_payment_is_returned_with_its_value() {
    // value, units
    let table = [
        ("0x8e1bc9bf04000".to_owned(), TokenUnits::new(2_500_000_000_000_000)),
        (format!("0x1{}", "0".repeat(32)), TokenUnits::MAX),
        (format!("0x{}", "f".repeat(64)), TokenUnits::MAX),
    ];
    for (value, units) in table {
        let (_node, reader) = alone(Chain::default().with(95, Tx::new(1).sending(address(0x70), &value))).await;
        let native = evidence(&reader).await.native.unwrap();
        assert_eq!((native.value, native.to, native.has_input), (units, Some(address(0x70)), false));
    }
    let (_node, reader) = alone(Chain::default().with(95, Tx { to: None, ..Tx::new(1) })).await;
    assert_eq!(evidence(&reader).await.native.unwrap().to, None, "the transaction creates a contract");
}

/// Makes a transaction look like one with a list of calls: without its own target, value or input.
fn as_list_of_calls(transaction: &mut Value) {
    let fields = transaction.as_object_mut().unwrap();
    for field in ["to", "value", "input"] {
        fields.remove(field);
    }
    fields.insert("type".to_owned(), Value::from("0x76"));
    fields.insert("calls".to_owned(), json!([{ "to": address(0x20), "value": "0x0", "input": "0xa9059cbb" }]));
}

#[tokio::test]
async fn token_payment_is_proven_by_the_receipt_alone() {
    type Change = fn(&mut Value);
    let table: [(&str, Change); 5] = [
        ("a list of calls", as_list_of_calls),
        ("odd fields", |tx| (tx["from"], tx["value"], tx["input"]) = (json!({}), json!(5), json!("0xabc"))),
        ("no hash", |tx| _ = tx.as_object_mut().unwrap().remove("hash")),
        ("no block", |tx| _ = tx.as_object_mut().unwrap().remove("blockHash")),
        ("nothing at all", |tx| *tx = json!({})),
    ];
    for (what, change) in table {
        let tx = Tx::new(1).moving(address(0x20), address(0x70), "0x4c5a69");
        let (node, reader) = alone(Chain::default().with(95, tx)).await;
        let expected = evidence(&reader).await;
        node.change("eth_getTransactionByHash", change);
        let seen = evidence(&reader).await;
        assert_eq!(seen.transfers, expected.transfers, "{what}");
        assert_eq!((seen.succeeded, seen.block, seen.depth), (true, expected.block, expected.depth), "{what}");
        assert_eq!(seen.native.is_some(), what.starts_with("no "), "{what}");
    }
}

#[tokio::test]
async fn logs_of_a_receipt_need_not_repeat_its_hash() {
    let (node, reader) = alone(Chain::default().with(95, Tx::new(1).moving(address(0x20), address(0x70), "0x5"))).await;
    node.change("eth_getTransactionReceipt", |result| {
        result["logs"][0].as_object_mut().unwrap().remove("transactionHash");
    });
    assert_eq!(evidence(&reader).await.transfers.len(), 1);
}

#[tokio::test]
async fn failed_transaction_is_reported_as_failed() {
    let (_node, reader) = alone(Chain::default().with(95, Tx { succeeded: false, ..Tx::new(1) })).await;
    assert!(!evidence(&reader).await.succeeded);
}

#[tokio::test]
async fn only_erc_20_transfers_are_returned_in_order() {
    let token = address(0x20);
    let (from, to) = (word(&address(0xf0).to_string()), word(&address(0x70).to_string()));
    let nft = json!({ "address": token, "topics": [transfer_topic(), from, to, word("0x7")], "data": "0x" });
    let removed =
        json!({ "address": token, "topics": [transfer_topic(), from, to], "data": word("1"), "removed": true });
    let approval = json!({ "address": token, "topics": [word("0xabcd"), from, to], "data": word("1") });
    let huge = format!("0x{}", "f".repeat(64));
    let tx = Tx::new(1).logging(nft).moving(token, address(0x71), "0x1").logging(removed).logging(approval).moving(
        address(0x21),
        address(0x70),
        &huge,
    );
    let (_node, reader) = alone(Chain::default().with(95, tx)).await;
    let transfers: Vec<_> = evidence(&reader).await.transfers.iter().map(|t| (t.token, t.to, t.value)).collect();
    assert_eq!(
        transfers,
        [(token, address(0x71), TokenUnits::new(1)), (address(0x21), address(0x70), TokenUnits::MAX)]
    );
}

#[tokio::test]
async fn transaction_without_block_is_unknown_or_pending() {
    let (node, reader) = alone(Chain::default()).await;
    assert_eq!(status(&reader).await, Ok(TransactionStatus::Unknown));
    assert_eq!(node.requests(), 1);

    let (node, reader) = alone(Chain::default().with_pending(Tx::new(1))).await;
    assert_eq!(status(&reader).await, Ok(PENDING));
    assert_eq!(node.requests(), 1);
}

#[tokio::test]
async fn pending_transaction_shows_its_transfer() {
    let pending = async |reader: &metering_evm::EvmReader| match reader.transaction(&Tx::new(1).hash).await.unwrap() {
        TransactionStatus::Pending { transaction, .. } => transaction,
        other => panic!("{other:?}"),
    };
    let (node, reader) = alone(Chain::default().with_pending(Tx::new(1).sending(address(0x71), "0x5"))).await;
    let transaction = pending(&reader).await.unwrap();
    let native = transaction.native;
    assert_eq!((native.from, native.to, native.has_input), (address(0xf0), Some(address(0x71)), false));
    assert_eq!((native.value, transaction.transfer), (TokenUnits::new(5), None));
    node.change("eth_getTransactionByHash", as_list_of_calls);
    assert_eq!(pending(&reader).await, None, "a list of calls may do anything");
}

#[tokio::test]
async fn source_with_inconsistent_state_reports_pending() {
    // what, method, result
    let table = [
        ("no receipt yet", "eth_getTransactionReceipt", Value::Null),
        ("transaction gone", "eth_getTransactionByHash", Value::Null),
        ("no block of that number", "eth_getBlockByNumber", Value::Null),
    ];
    for (what, method, result) in table {
        let (node, reader) = alone(Chain::default().with(95, Tx::new(1))).await;
        node.set(method, result);
        assert_eq!(status(&reader).await, Ok(PENDING), "{what}");
    }
    let (node, reader) = alone(Chain::default().with(95, Tx::new(1))).await;
    let other = Value::from(word("0xabc"));
    node.change("eth_getTransactionByHash", move |result| result["blockHash"] = other.clone());
    assert_eq!(status(&reader).await, Ok(PENDING), "the transaction names a different block from the receipt's");
}

#[tokio::test]
async fn receipt_of_a_reverted_block_proves_nothing() {
    let (node, reader) = alone(Chain::default().with(95, Tx::new(1))).await;
    let other = format!("0x{}", hex::encode(block_hash(95, 1)));
    node.change("eth_getBlockByNumber", move |result| result["hash"] = Value::from(other.clone()));
    assert_eq!(status(&reader).await, Ok(PENDING));

    // The new block contains it too: then it is mined.
    node.state().tamper = None;
    node.state().chain.forks.insert(95, 1);
    assert_eq!(evidence(&reader).await.block.hash, block_hash(95, 1));
}

#[tokio::test]
async fn source_of_another_chain_is_not_retried_or_believed() {
    let node = Node::start(Chain { id: 8453, ..Chain::default() }.with(95, Tx::new(1))).await;
    let reader = reader(&ChainConfig { attempts: 3, ..config(&[node.url()]) });
    let wrong = ChainError::WrongChain { expected: 1, found: 8453 };
    assert_eq!(status(&reader).await, Err(wrong.clone()));
    assert_eq!(reader.heights().await, Err(wrong.clone()));
    assert_eq!(reader.payments_to(address(0x70), &[address(0x20)], 1, 2).await, Err(wrong.clone()));
    assert_eq!(reader.token_decimals(address(0x20)).await, Err(wrong.clone()));
    assert_eq!(reader.has_code(address(0x20)).await, Err(wrong.clone()));
    assert_eq!(reader.accepts_signature(address(0x20), [0; 32], &[]).await, Err(wrong.clone()));
    assert_eq!(reader.check().await, Err(wrong));
    assert_eq!(node.requests(), 7);
}

#[tokio::test]
async fn a_source_that_changes_its_chain_between_two_batches_is_not_believed() {
    let (node, reader) = alone(Chain::default().with(95, Tx::new(1))).await;
    let mut batches = 0;
    node.tamper(move |method, result| {
        batches += u32::from(method == "eth_chainId");
        if method == "eth_chainId" && batches > 1 { json!("0x5") } else { result }
    });
    assert_eq!(status(&reader).await, Err(ChainError::WrongChain { expected: 1, found: 5 }));
}

#[tokio::test]
async fn responses_about_something_else_are_refused() {
    // method, JSON pointer into its result, value, fragment of the error
    let table = [
        ("eth_getTransactionReceipt", "/transactionHash", word("0x2"), "a transaction other than"),
        ("eth_getTransactionReceipt", "/logs/0/transactionHash", word("0x2"), "a log of another transaction"),
        ("eth_getTransactionReceipt", "/logs/0/blockHash", word("0x2"), "a log of another transaction or block"),
        ("eth_getTransactionReceipt", "/status", "0x2".to_owned(), "a status other than"),
        ("eth_getTransactionReceipt", "/blockNumber", "0x0095".to_owned(), "not a quantity"),
        ("eth_getTransactionReceipt", "/blockNumber", "0xffffffffffffffff".to_owned(), "not a quantity of 63 bits"),
        ("eth_getTransactionReceipt", "/logs/0/data", "0x1".to_owned(), "not data"),
        ("eth_getTransactionReceipt", "/logs/0/topics/1", "0x1234".to_owned(), "not 32 bytes"),
        ("eth_getTransactionByHash", "/hash", word("0x2"), "a transaction other than"),
        ("eth_getBlockByNumber", "/number", "0x60".to_owned(), "a block other than"),
        ("eth_getBlockByNumber", "/timestamp", "0xffffffffffffffff".to_owned(), "a timestamp"),
        ("eth_getBlockByNumber", "/hash", "0x".to_owned(), "not 32 bytes"),
    ];
    for (method, place, value, problem) in table {
        let (node, reader) = alone(Chain::default().with(95, Tx::new(1).moving(address(1), address(2), "0x1"))).await;
        node.change(method, move |result| *result.pointer_mut(place).unwrap() = Value::from(value.clone()));
        let why = unavailable(status(&reader).await);
        assert!(why.contains(problem) && why.contains(method), "{method} {place}: {why}");
    }
}

#[tokio::test]
async fn a_receipt_without_status_is_refused() {
    let (node, reader) = alone(Chain::default().with(95, Tx::new(1))).await;
    node.change("eth_getTransactionReceipt", |result| {
        result.as_object_mut().unwrap().remove("status");
    });
    assert!(unreadable(status(&reader).await).contains("no status (EIP-658)"));
}

#[tokio::test]
async fn error_in_any_call_is_a_source_failure() {
    let (node, reader) = alone(Chain::default().with(95, Tx::new(1))).await;
    node.fail([Fault::Errs(-32_000, "transaction indexing is in progress")]);
    assert!(unavailable(status(&reader).await).contains("error -32000: transaction indexing is in progress"));
}

#[tokio::test]
async fn reordered_responses_give_the_same_results() {
    let (node, reader) = alone(Chain::default().with(95, Tx::new(1))).await;
    node.always(Fault::Backwards);
    assert_eq!(evidence(&reader).await.block.number, 95);
}
