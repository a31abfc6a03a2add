//! What is sent, how often, and with which outcome.

use metering_core::chains::TxHash;
use metering_evm::{PayError, Payer, PaymentStatus, SignedPayment};
use serde_json::json;

use super::{chain, payer_at, scene, tokens, wallet};
use crate::node::{Chain, Fault, Node, Tx};
use crate::scene::SHORT;

/// A signed payment with nonce 7, and a payer whose node has not seen it.
async fn signed() -> (Node, Payer, SignedPayment) {
    let (node, payer) = scene(chain()).await;
    let payment = payer.prepare(&wallet(), &tokens()).await.unwrap();
    (node, payer, payment)
}

/// Puts the payment into a block.
fn mine(node: &Node, payment: &SignedPayment, block: u64, succeeded: bool) {
    let chain = &mut node.state().chain;
    chain.transactions.retain(|(_, tx)| tx.hash != payment.hash);
    chain.transactions.push((Some(block), Tx { hash: payment.hash, succeeded, ..Tx::new(0) }));
    chain.wallet_state.mined.push((block, 8));
}

#[tokio::test]
async fn resending_a_payment_sends_identical_bytes() {
    let (node, payer, payment) = signed().await;
    assert_eq!(payer.status(&payment).await, Ok(PaymentStatus::Unknown));
    for _ in 0..3 {
        assert_eq!(payer.broadcast(&payment).await, Ok(()));
        assert_eq!(payer.status(&payment).await, Ok(PaymentStatus::Pending));
    }
    let raw = format!("0x{}", hex::encode(&payment.raw));
    assert_eq!(node.state().chain.wallet_state.received, [raw.clone(), raw.clone(), raw]);
    mine(&node, &payment, 99, true);
    assert_eq!(payer.status(&payment).await, Ok(PaymentStatus::Mined { succeeded: true, confirmations: 2 }));
    assert_eq!(payer.broadcast(&payment).await, Ok(()));
}

#[tokio::test]
async fn a_payment_read_back_from_disk_is_the_same() {
    let (node, payer, payment) = signed().await;
    let written = serde_json::to_vec(&payment).unwrap();
    drop(payment);
    let payment: SignedPayment = serde_json::from_slice(&written).unwrap();
    assert_eq!(payer.broadcast(&payment).await, Ok(()));
    assert_eq!(node.state().chain.wallet_state.received, [format!("0x{}", hex::encode(&payment.raw))]);
}

#[tokio::test]
async fn lost_broadcast_response_loses_no_payment() {
    let faults = [Fault::Hangs, Fault::Stalls, Fault::Status(502, None), Fault::Body("<html>"), Fault::Short];
    let scenes = faults.map(|fault| async move {
        let (node, _, payment) = signed().await;
        let payer = payer_at(&node.url(), SHORT);
        node.fail([fault.clone()]);
        assert_eq!(payer.broadcast(&payment).await, Ok(()), "{fault:?}");
        assert_eq!(node.state().chain.wallet_state.received.len(), 2, "{fault:?}");
        assert_eq!(node.state().chain.transactions.len(), 1, "{fault:?}");
    });
    futures_util::future::join_all(scenes).await;
}

#[tokio::test]
async fn payment_can_be_resent_after_the_node_was_unreachable() {
    let faults = [Fault::Hangs, Fault::Status(502, None), Fault::Body("<html>"), Fault::OtherIds];
    let scenes = faults.map(|fault| async move {
        let (node, _, payment) = signed().await;
        let payer = payer_at(&node.url(), SHORT);
        node.always(fault.clone());
        let error = payer.broadcast(&payment).await.unwrap_err();
        assert!(matches!(error, PayError::Rpc(_)), "{fault:?}: {error}");
        assert!(matches!(payer.status(&payment).await, Err(PayError::Rpc(_))), "{fault:?}");
        node.state().always = None;
        assert_eq!(payer.broadcast(&payment).await, Ok(()), "{fault:?}");
        assert_eq!(payer.status(&payment).await, Ok(PaymentStatus::Pending), "{fault:?}");
    });
    futures_util::future::join_all(scenes).await;
}

#[tokio::test]
async fn rejected_broadcast_is_judged_by_the_chain() {
    let low = (-32_000, "nonce too low");
    let odd = (-32_010, "OldNonce");
    let busy = (-32_000, "replacement transaction underpriced");
    let poor = (-32_000, "insufficient funds for gas * price + value");
    // refusal, the payment's block, the block since which its nonce is used, outcome
    let table = [
        (low, Some(95), Some(95), "sent"),
        (odd, Some(95), Some(95), "sent"),
        (poor, Some(95), Some(95), "sent"),
        ((-32_603, "Internal error"), Some(95), Some(95), "sent"),
        ((-32_000, "already known"), None, None, "sent"),
        (low, None, Some(89), "replaced"),
        (odd, None, Some(89), "replaced"),
        // Its nonce may become free again.
        (low, None, Some(90), "sent"),
        // The node that refuses is ahead of the node that the status is read from.
        (low, None, None, "refused"),
        (busy, None, None, "nonce taken"),
        (poor, None, None, "refused"),
        ((-32_603, "Internal error"), None, None, "failed"),
    ];
    for (refusal, block, taken_since, outcome) in table {
        let (node, payer, payment) = signed().await;
        if let Some(block) = block {
            mine(&node, &payment, block, true);
        }
        node.state().chain.wallet_state.mined.extend(taken_since.map(|since| (since, 8)));
        node.state().chain.wallet_state.refusal = Some(refusal);
        let found = match payer.broadcast(&payment).await {
            Ok(()) => "sent",
            Err(PayError::Replaced) => "replaced",
            Err(PayError::NonceTaken) => "nonce taken",
            Err(PayError::Refused(why)) if why.contains(refusal.1) => "refused",
            Err(PayError::Rpc(why)) if why.contains(refusal.1) => "failed",
            Err(error) => panic!("{refusal:?}: {error}"),
        };
        assert_eq!(found, outcome, "{refusal:?} {block:?} {taken_since:?}");
    }
}

#[tokio::test]
async fn payment_status_follows_the_chain() {
    let mined = |succeeded, confirmations| PaymentStatus::Mined { succeeded, confirmations };
    // the payment's block, whether it succeeded, the block since which its nonce is used, status
    let table = [
        (None, true, None, PaymentStatus::Unknown),
        (Some(None), true, None, PaymentStatus::Pending),
        (Some(Some(100)), true, Some(100), mined(true, 1)),
        (Some(Some(80)), false, Some(80), mined(false, 21)),
        (None, true, Some(100), PaymentStatus::Pending),
        (None, true, Some(90), PaymentStatus::Pending),
        (None, true, Some(89), PaymentStatus::Replaced),
        (Some(None), true, Some(89), PaymentStatus::Pending),
    ];
    for (place, succeeded, taken_since, status) in table {
        let (node, payer, payment) = signed().await;
        {
            let chain = &mut node.state().chain;
            let tx = Tx { hash: payment.hash, succeeded, ..Tx::new(0) };
            chain.transactions.extend(place.map(|block| (block, tx)));
            chain.wallet_state.mined.extend(taken_since.map(|since| (since, 8)));
        }
        assert_eq!(payer.status(&payment).await, Ok(status), "{place:?} {taken_since:?}");
    }
}

#[tokio::test]
async fn payment_mined_between_two_requests_is_not_replaced() {
    let (node, payer, payment) = signed().await;
    let mut looks = 0;
    mine(&node, &payment, 80, true);
    // The first lookup comes too early. When the nonce is checked, the payment itself has used it.
    node.tamper(move |method, honest| match method {
        "eth_getTransactionReceipt" | "eth_getTransactionByHash" if looks < 2 => {
            looks += 1;
            json!(null)
        }
        _ => honest,
    });
    assert_eq!(payer.status(&payment).await, Ok(PaymentStatus::Mined { succeeded: true, confirmations: 21 }));
}

#[tokio::test]
async fn receipt_of_a_reverted_block_is_not_believed() {
    let (node, payer, payment) = signed().await;
    mine(&node, &payment, 95, true);
    node.change("eth_getBlockByNumber", |honest| honest["hash"] = json!(format!("0x{}", "ab".repeat(32))));
    assert_eq!(payer.status(&payment).await, Ok(PaymentStatus::Pending));
}

#[tokio::test]
async fn node_that_returns_another_hash_is_not_believed() {
    let (node, payer, payment) = signed().await;
    node.set("eth_sendRawTransaction", json!(TxHash::from_bytes([1; 32])));
    // The second time the node says that it already knows the payment, and is believed.
    assert_eq!(payer.broadcast(&payment).await, Ok(()));
    assert_eq!(payer.status(&payment).await, Ok(PaymentStatus::Pending));
}

#[tokio::test]
async fn a_payment_of_another_chain_or_with_other_bytes_is_not_sent() {
    let (node, payer, payment) = signed().await;
    let other = SignedPayment { chain_id: 5, ..payment.clone() };
    let damaged = SignedPayment { raw: vec![2, 0xc0], ..payment.clone() };
    let wrong_chain = PayError::WrongChain { expected: 5, found: 1 };
    for (payment, error) in [(&other, wrong_chain), (&damaged, PayError::Damaged)] {
        assert_eq!(payer.broadcast(payment).await, Err(error.clone()));
        assert_eq!(payer.status(payment).await, Err(error));
    }
    node.state().chain.id = 10;
    let wrong_node = PayError::WrongChain { expected: 1, found: 10 };
    assert_eq!(payer.broadcast(&payment).await, Err(wrong_node.clone()));
    assert_eq!(payer.status(&payment).await, Err(wrong_node));
    assert!(serde_json::from_value::<SignedPayment>(serde_json::to_value(&damaged).unwrap()).is_err());
}

#[tokio::test]
async fn next_payment_uses_the_next_nonce() {
    let mut chain = Chain { newest: 3, ..chain() };
    chain.wallet_state.sent = 9;
    let (_node, payer) = scene(chain).await;
    let payment = payer.prepare(&wallet(), &tokens()).await.unwrap();
    assert_eq!(payment.nonce, 9);
    // A chain with few blocks.
    assert_eq!(payer.status(&payment).await, Ok(PaymentStatus::Unknown));
}
