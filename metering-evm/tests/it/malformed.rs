//! A source may send anything: the reader must terminate, and must never believe a broken response.

use metering_core::chains::{Address, ChainReader, TransactionStatus};
use metering_evm::EvmReader;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::node::{Chain, Node, Tx, address};
use crate::scene::{alone, found, status};

/// Any JSON value, often one that is nearly right.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "0x[0-9a-f]{0,3}".prop_map(Value::from),
        "0x[0-9a-f]{16,17}".prop_map(Value::from),
        "0x[0-9a-f]{40}".prop_map(Value::from),
        "0x[0-9a-f]{64,65}".prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(any::<String>(), inner, 0..4).prop_map(Value::from_iter),
        ]
    })
}

/// Puts `replacement` into `value` at the position that `dice` select.
fn spoil(value: &mut Value, dice: &[usize], replacement: Value) {
    let parts: Vec<&mut Value> = match value {
        Value::Array(list) => list.iter_mut().collect(),
        Value::Object(map) => map.values_mut().collect(),
        _ => Vec::new(),
    };
    let count = parts.len();
    match dice.split_first() {
        Some((die, rest)) if count > 0 => {
            let part = parts.into_iter().nth(die % count).expect("within the count");
            spoil(part, rest, replacement);
        }
        _ => *value = replacement,
    }
}

async fn query_everything(reader: &EvmReader) -> Option<TransactionStatus> {
    let tokens = [Address::ZERO, address(0x20)];
    let _ = reader.heights().await;
    let _ = reader.block_hashes(&[3, 99]).await;
    let _ = reader.payments_to(address(0x70), &tokens, 90, 99).await;
    let _ = reader.token_decimals(address(0x20)).await;
    let _ = reader.has_code(address(0x20)).await;
    assert_ne!(reader.accepts_signature(address(0x20), [1; 32], &[1; 65]).await, Ok(true));
    status(reader).await.ok()
}

fn scene() -> Chain {
    Chain { finalized: Some(97), ..Chain::default() }
        .with(95, Tx::new(1).moving(address(0x20), address(0x70), "0x5").sending(address(0x70), "0x1"))
        .with_contract(address(0x20), "0x313ce567", Ok(json!(crate::node::word("0x6"))))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn corrupted_responses_are_read_or_refused(
        method in prop::sample::select(vec![
            "eth_chainId", "eth_blockNumber", "eth_getTransactionReceipt", "eth_getTransactionByHash",
            "eth_getBlockByNumber", "eth_getLogs", "eth_call", "eth_getCode",
        ]),
        dice in prop::collection::vec(any::<usize>(), 0..4),
        replacement in anything(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (node, reader): (Node, _) = alone(scene()).await;
            node.change(method, move |result| spoil(result, &dice, replacement.clone()));
            query_everything(&reader).await;
        });
    }
}

#[tokio::test]
async fn honest_node_answers_all_queries() {
    let (_node, reader) = alone(scene()).await;
    assert!(matches!(query_everything(&reader).await, Some(TransactionStatus::Mined(_))));
    assert_eq!(reader.token_decimals(address(0x20)).await, Ok(Some(6)));
    let hashes = found(&reader, address(0x70), &[Address::ZERO, address(0x20)], 90, 99).await;
    assert_eq!(hashes, Ok(vec![Tx::new(1).hash]));
}
