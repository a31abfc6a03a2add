use metering_core::{Address, Block, NativeTransfer, Timestamp, TokenUnits};

use super::*;

/// A transaction in the given block, with the given confirmations; 12 are required.
fn mined(block: u8, confirmations: u64) -> Sighting {
    let address = Address::from_bytes([7; 20]);
    Sighting::Mined(Evidence {
        succeeded: true,
        block: Block { number: 5, hash: [block; 32], time: Timestamp::from_unix_millis(0) },
        depth: Depth { confirmations, required: 12 },
        native: Some(NativeTransfer { from: address, to: None, value: TokenUnits::ZERO, has_input: false }),
        transfers: Vec::new(),
    })
}

fn pending() -> Sighting {
    Sighting::Pending { required: 12, transaction: None }
}

fn say<T>(answers: impl IntoIterator<Item = T>) -> Vec<Said<T>> {
    answers.into_iter().map(|answer| Said { host: "rpc.example.com".to_owned(), answer }).collect()
}

/// The verdict as text: `?` for disagreement, `…` for too few responses.
fn judged(agree: usize, answers: &[Sighting]) -> String {
    match verdict(agree, &say(answers.to_vec())) {
        None => "…".to_owned(),
        Some(Err(ChainError::Disagreement(_))) => "?".to_owned(),
        Some(Err(error)) => panic!("{error}"),
        Some(Ok(Sighting::Unknown)) => "unknown".to_owned(),
        Some(Ok(Sighting::Pending { required, .. })) => format!("pending {required}"),
        Some(Ok(Sighting::Mined(evidence))) => {
            format!("block {} at {}", evidence.block.hash[0], evidence.depth.confirmations)
        }
    }
}

#[test]
fn what_enough_sources_say_alike_is_believed_and_nothing_else() {
    use Sighting::Unknown;
    // agree, responses, verdict
    let table: [(usize, &[Sighting], &str); 25] = [
        (1, &[], "…"),
        (1, &[Unknown], "unknown"),
        (1, &[pending()], "pending 12"),
        (1, &[mined(1, 3)], "block 1 at 3"),
        // If one source is enough, the one that knows more is believed.
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
        (2, &[pending(), Sighting::Pending { required: 40, transaction: None }], "pending 40"),
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
    for (agree, answers, verdict) in table {
        assert_eq!(judged(agree, answers), verdict, "{agree} of {answers:?}");
        let reversed: Vec<_> = answers.iter().rev().cloned().collect();
        assert_eq!(judged(agree, &reversed), verdict, "{agree} of {reversed:?}");
    }
}

#[test]
fn every_part_of_the_evidence_must_be_the_same() {
    let Sighting::Mined(evidence) = mined(1, 20) else { unreachable!("`mined` returns a mined sighting") };
    let block = evidence.block;
    let native = evidence.native.unwrap();
    let transfer = metering_core::TokenTransfer {
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
        assert_eq!(judged(2, &[Sighting::Mined(evidence.clone()), Sighting::Mined(other.clone())]), "?", "{other:?}");
    }
}

#[test]
fn only_what_cannot_get_better_is_final() {
    // agree, responses, standing
    let table: [(usize, &[Sighting], Standing); 7] = [
        (1, &[], Standing::Open),
        (1, &[Sighting::Unknown], Standing::Sufficient),
        (1, &[pending()], Standing::Sufficient),
        (1, &[mined(1, 11)], Standing::Sufficient),
        (1, &[mined(1, 12)], Standing::Final),
        (2, &[mined(1, 12)], Standing::Open),
        (2, &[mined(1, 12), mined(2, 12)], Standing::Open),
    ];
    for (agree, answers, expected) in table {
        assert_eq!(standing(agree, &say(answers.to_vec())), expected, "{agree} of {answers:?}");
    }
}

#[test]
fn a_height_is_one_that_enough_sources_have_come_to() {
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
    // Each height is judged separately: a source that is ahead with one may be behind with another.
    let of = |newest, finalized| Heights { newest, confirmed: newest - 1, finalized };
    let found = heights(2, &say([of(9, 1), of(7, 3), of(5, 2)]));
    assert_eq!(found, Some(of(7, 2)));
}

#[test]
fn an_answer_is_one_that_enough_sources_give() {
    assert_eq!(common(2, &say([Some(6), Some(18), Some(6)])), Some(Some(6)));
    assert_eq!(common(2, &say([Some(6), Some(18), None])), None);
    let error = disagreement(&say([Some(6), None])).to_string();
    assert!(error.contains("rpc.example.com says 6; rpc.example.com says none"), "{error}");
}

#[test]
fn what_a_pending_transaction_does_is_believed_when_enough_sources_say_it_alike() {
    let showing = |units: u128| {
        let address = Address::from_bytes([1; 20]);
        let native = NativeTransfer { from: address, to: None, value: TokenUnits::new(units), has_input: false };
        let transaction = Some(Box::new(metering_core::PendingTransaction { native, transfer: None }));
        Sighting::Pending { required: 12, transaction }
    };
    // agree, responses, whether the transaction is believed
    let table = [
        (1, vec![showing(5)], true),
        (1, vec![pending(), showing(5)], true),
        (2, vec![showing(5), showing(5)], true),
        (2, vec![showing(5), pending()], false),
        (2, vec![showing(5), showing(5), showing(6)], false),
    ];
    for (agree, answers, believed) in table {
        let Some(Ok(Sighting::Pending { transaction, .. })) = verdict(agree, &say(answers.clone())) else {
            panic!("{answers:?}")
        };
        assert_eq!(transaction.is_some(), believed, "{answers:?}");
    }
}
