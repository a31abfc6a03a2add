use metering_core::Timestamp;
use metering_core::chains::{Address, Block, NativeTransfer, TokenUnits};

use super::*;

/// A transaction in the given block, with the given confirmations; 12 are required.
fn mined(block: u8, confirmations: u64) -> TransactionStatus {
    let address = Address::from_bytes([7; 20]);
    TransactionStatus::Mined(Evidence {
        succeeded: true,
        block: Block { number: 5, hash: [block; 32], time: Timestamp::from_unix_millis(0) },
        depth: Depth { confirmations, required: 12 },
        native: Some(NativeTransfer { from: address, to: None, value: TokenUnits::ZERO, has_input: false }),
        transfers: Vec::new(),
    })
}

fn pending() -> TransactionStatus {
    TransactionStatus::Pending { required: 12, transaction: None }
}

fn say<T>(results: impl IntoIterator<Item = T>) -> Vec<SourceResponse<T>> {
    results.into_iter().map(|value| SourceResponse { host: "rpc.example.com".to_owned(), value }).collect()
}

/// The agreed status as text: `?` for disagreement, `…` for too few responses.
fn judged(agree: usize, results: &[TransactionStatus]) -> String {
    match agreed_status(agree, &say(results.to_vec())) {
        None => "…".to_owned(),
        Some(Err(ChainError::Disagreement(_))) => "?".to_owned(),
        Some(Err(error)) => panic!("{error}"),
        Some(Ok(TransactionStatus::Unknown)) => "unknown".to_owned(),
        Some(Ok(TransactionStatus::Pending { required, .. })) => format!("pending {required}"),
        Some(Ok(TransactionStatus::Mined(evidence))) => {
            format!("block {} at {}", evidence.block.hash[0], evidence.depth.confirmations)
        }
    }
}

#[test]
fn only_values_from_enough_sources_are_believed() {
    use TransactionStatus::Unknown;
    // agree, responses, agreed status
    let table: [(usize, &[TransactionStatus], &str); 25] = [
        (1, &[], "…"),
        (1, &[Unknown], "unknown"),
        (1, &[pending()], "pending 12"),
        (1, &[mined(1, 3)], "block 1 at 3"),
        // If one source is enough, the one with more information is believed.
        (1, &[Unknown, pending()], "pending 12"),
        (1, &[Unknown, mined(1, 3)], "block 1 at 3"),
        (1, &[pending(), mined(1, 3)], "block 1 at 3"),
        (1, &[mined(1, 3), mined(1, 9)], "block 1 at 9"),
        // But not if two contradict each other.
        (1, &[mined(1, 3), mined(2, 3)], "?"),
        (2, &[mined(1, 3)], "…"),
        (2, &[Unknown, Unknown], "unknown"),
        (2, &[pending(), pending()], "pending 12"),
        (2, &[mined(1, 3), mined(1, 2)], "block 1 at 2"),
        (2, &[mined(1, 3), mined(2, 3)], "?"),
        // Both know it; for one of them it is in a block.
        (2, &[mined(1, 3), pending()], "pending 12"),
        // If two sources require different depths, the deeper one counts.
        (2, &[pending(), TransactionStatus::Pending { required: 40, transaction: None }], "pending 40"),
        (2, &[mined(1, 3), Unknown], "?"),
        (2, &[pending(), Unknown], "?"),
        (2, &[mined(1, 30), Unknown, Unknown], "unknown"),
        (2, &[mined(1, 30), pending(), Unknown], "pending 12"),
        // Two against one, at the depth that two of them report.
        (2, &[mined(2, 30), mined(1, 5), mined(1, 4)], "block 1 at 4"),
        (2, &[mined(1, 3), mined(1, 9), mined(1, 6)], "block 1 at 6"),
        (2, &[mined(1, 3), mined(2, 3), mined(3, 3)], "?"),
        (3, &[mined(1, 3), mined(1, 9), mined(1, 6)], "block 1 at 3"),
        (3, &[mined(1, 3), mined(2, 9)], "?"),
    ];
    for (agree, results, agreed_status) in table {
        assert_eq!(judged(agree, results), agreed_status, "{agree} of {results:?}");
        let reversed: Vec<_> = results.iter().rev().cloned().collect();
        assert_eq!(judged(agree, &reversed), agreed_status, "{agree} of {reversed:?}");
    }
}

#[test]
fn every_part_of_the_evidence_must_be_the_same() {
    let TransactionStatus::Mined(evidence) = mined(1, 20) else { unreachable!("`mined` returns a mined sighting") };
    let block = evidence.block;
    let native = evidence.native.unwrap();
    let transfer = metering_core::chains::TokenTransfer {
        token: Address::ZERO,
        from: Address::ZERO,
        to: Address::ZERO,
        value: TokenUnits::new(1),
    };
    let others = [
        Evidence { succeeded: false, ..evidence.clone() },
        Evidence { block: Block { number: 6, ..block }, ..evidence.clone() },
        Evidence { block: Block { time: Timestamp::from_unix_millis(1000), ..block }, ..evidence.clone() },
        Evidence { native: Some(NativeTransfer { value: TokenUnits::new(1), ..native }), ..evidence.clone() },
        Evidence { native: Some(NativeTransfer { has_input: true, ..native }), ..evidence.clone() },
        Evidence { native: None, ..evidence.clone() },
        Evidence { transfers: vec![transfer], ..evidence.clone() },
    ];
    for other in others {
        assert_eq!(
            judged(2, &[TransactionStatus::Mined(evidence.clone()), TransactionStatus::Mined(other.clone())]),
            "?",
            "{other:?}"
        );
    }
}

#[test]
fn poll_is_final_only_when_it_cannot_improve() {
    // agree, responses, standing
    let table: [(usize, &[TransactionStatus], PollState); 7] = [
        (1, &[], PollState::Open),
        (1, &[TransactionStatus::Unknown], PollState::Sufficient),
        (1, &[pending()], PollState::Sufficient),
        (1, &[mined(1, 11)], PollState::Sufficient),
        (1, &[mined(1, 12)], PollState::Final),
        (2, &[mined(1, 12)], PollState::Open),
        (2, &[mined(1, 12), mined(2, 12)], PollState::Open),
    ];
    for (agree, results, expected) in table {
        assert_eq!(state(agree, &say(results.to_vec())), expected, "{agree} of {results:?}");
    }
}

#[test]
fn height_is_one_that_enough_sources_reached() {
    // agree, heights, height
    let table: [(usize, &[u64], Option<u64>); 6] = [
        (1, &[], None),
        (1, &[5, 9, 7], Some(9)),
        (2, &[5, 9, 7], Some(7)),
        (3, &[5, 9, 7], Some(5)),
        (2, &[5], None),
        (0, &[5], None),
    ];
    for (agree, newest, expected) in table {
        let of = |newest: u64| Heights { newest, confirmed: newest - 1, finalized: 10 - newest };
        let found = heights(agree, &say(newest.iter().copied().map(of).collect::<Vec<_>>()));
        assert_eq!(found.map(|heights| heights.newest), expected, "{agree} of {newest:?}");
        assert_eq!(found.map(|heights| heights.confirmed + 1), expected, "{agree} of {newest:?}");
    }
    // Each height is judged separately: a source may be ahead at one and behind at another.
    let of = |newest, finalized| Heights { newest, confirmed: newest - 1, finalized };
    let found = heights(2, &say([of(9, 1), of(7, 3), of(5, 2)]));
    assert_eq!(found, Some(of(7, 2)));
}

#[test]
fn value_is_one_that_enough_sources_give() {
    assert_eq!(common(2, &say([Some(6), Some(18), Some(6)])), Some(Some(6)));
    assert_eq!(common(2, &say([Some(6), Some(18), None])), None);
    let error = disagreement(&say([Some(6), None])).to_string();
    assert!(error.contains("rpc.example.com says 6; rpc.example.com says none"), "{error}");
}

#[test]
fn pending_transaction_needs_agreement_of_enough_sources() {
    let showing = |units: u128| {
        let address = Address::from_bytes([1; 20]);
        let native = NativeTransfer { from: address, to: None, value: TokenUnits::new(units), has_input: false };
        let transaction = Some(Box::new(metering_core::chains::PendingTransaction { native, transfer: None }));
        TransactionStatus::Pending { required: 12, transaction }
    };
    // agree, responses, whether the transaction is believed
    let table = [
        (1, vec![showing(5)], true),
        (1, vec![pending(), showing(5)], true),
        (2, vec![showing(5), showing(5)], true),
        (2, vec![showing(5), pending()], false),
        (2, vec![showing(5), showing(5), showing(6)], false),
    ];
    for (agree, results, believed) in table {
        let Some(Ok(TransactionStatus::Pending { transaction, .. })) = agreed_status(agree, &say(results.clone()))
        else {
            panic!("{results:?}")
        };
        assert_eq!(transaction.is_some(), believed, "{results:?}");
    }
}
