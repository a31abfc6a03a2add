//! Settlement decisions, case by case.

use crate::access::account::AccountId;
use crate::chains::address::Address;
use crate::chains::chain::{Depth, TokenTransfer};
use crate::chains::transaction::TxHash;
use crate::chains::units::TokenUnits;

use super::*;

const TOKEN: Address = Address::from_bytes([0x70; 20]);
const RECIPIENT: Address = Address::from_bytes([0x11; 20]);
const PAYER: Address = Address::from_bytes([0xaa; 20]);
const OLD: BlockHash = [1; 32];
const NEW: BlockHash = [2; 32];
const NOW: Timestamp = Timestamp::from_unix_millis(9_000);
/// Fifteen confirmations, and 64 blocks until a block is final.
const HEIGHTS: Heights = Heights { newest: 114, confirmed: 100, finalized: 51 };

fn block(number: u64, hash: BlockHash) -> Block {
    Block { number, hash, time: Timestamp::from_unix_millis(1_000) }
}

fn record(settlement: PaymentSettlement) -> PaymentRecord {
    let account: AccountId = "org_xxxxxxxxxxxxxxxxxxxx".parse().unwrap();
    let payment = Payment {
        tx: TxRef { chain_id: 1, hash: TxHash::from_bytes([7; 32]) },
        payer: PAYER,
        recipient: RECIPIENT,
        token: TOKEN,
        amount: TokenUnits::new(5_003_817),
        block_number: 90,
        block_hash: Some(OLD),
        mined_at: Timestamp::from_unix_millis(1_000),
    };
    let plan_id = Some("starter".to_owned());
    PaymentRecord { plan_id, settlement, ..PaymentRecord::of(payment, account, PaymentUse::Topup, NOW) }
}

fn reversed() -> PaymentRecord {
    record(PaymentSettlement::Reversed { at: NOW })
}

fn mined(number: u64, hash: BlockHash, from: Address, value: u128) -> TransactionStatus {
    TransactionStatus::Mined(Evidence {
        succeeded: value > 0,
        block: block(number, hash),
        depth: Depth { confirmations: 1, required: 15 },
        native: None,
        transfers: vec![TokenTransfer { token: TOKEN, from, to: RECIPIENT, value: TokenUnits::new(value) }],
    })
}

#[test]
fn chain_view_follows_from_block_hash_and_transaction() {
    let pays = |number, hash| mined(number, hash, PAYER, 5_003_817);
    // block hash at the recorded height, transaction, expected result
    let table = [
        (Some(OLD), TransactionStatus::Unknown, ChainView::InPlace),
        (Some(OLD), pays(95, NEW), ChainView::InPlace),
        (Some(NEW), pays(95, NEW), ChainView::Elsewhere(block(95, NEW))),
        (Some(NEW), pays(90, NEW), ChainView::Elsewhere(block(90, NEW))),
        // The chain changed between the two reads.
        (Some(NEW), pays(90, OLD), ChainView::InPlace),
        (None, pays(85, NEW), ChainView::Elsewhere(block(85, NEW))),
        (Some(NEW), TransactionStatus::Unknown, ChainView::Missing),
        (Some(NEW), TransactionStatus::Pending { required: 15, transaction: None }, ChainView::Missing),
        // In its new block it failed, or had different transfers.
        (Some(NEW), mined(95, NEW, PAYER, 0), ChainView::Missing),
        (Some(NEW), mined(95, NEW, PAYER, 5_003_816), ChainView::Missing),
        (Some(NEW), mined(95, NEW, TOKEN, 5_003_817), ChainView::Missing),
        // The chain is shorter now, or sources lag or disagree about the block.
        (None, TransactionStatus::Unknown, ChainView::Unclear),
        (None, TransactionStatus::Pending { required: 15, transaction: None }, ChainView::Unclear),
        (None, mined(95, NEW, PAYER, 0), ChainView::Unclear),
    ];
    for (canonical, status, seen) in table {
        for record in [record(PaymentSettlement::Unsettled), reversed()] {
            assert_eq!(ChainView::of(&record, canonical, &status), seen, "{canonical:?} {status:?}");
            let known = (seen == ChainView::InPlace && canonical == Some(OLD)).then_some(ChainView::InPlace);
            assert_eq!(ChainView::in_place(&record, canonical), known, "{canonical:?}");
        }
    }
    for (status, confirmed) in [
        (pays(90, OLD), true),
        (pays(90, NEW), false),
        (TransactionStatus::Unknown, false),
        (TransactionStatus::Pending { required: 15, transaction: None }, false),
        (mined(90, OLD, PAYER, 0), false),
        (mined(90, OLD, PAYER, 5_003_818), false),
        (mined(90, OLD, TOKEN, 5_003_817), false),
    ] {
        assert_eq!(ChainView::is_confirmed_by(&record(PaymentSettlement::Unsettled), &status), confirmed, "{status:?}");
    }
    let mut nameless = record(PaymentSettlement::Unsettled);
    nameless.payment.block_hash = None;
    assert_eq!(ChainView::in_place(&nameless, None), None, "two unknown hashes are not equal");
}

#[test]
fn the_payment_of_an_authorization_is_found_among_others() {
    let TransactionStatus::Mined(mut evidence) = mined(95, NEW, PAYER, 5_003_817) else { panic!("it is mined") };
    let transfer = evidence.transfers[0];
    let others = [TokenTransfer { from: TOKEN, ..transfer }, TokenTransfer { value: TokenUnits::new(1), ..transfer }];
    evidence.transfers.extend(others);
    let authorized = |settlement| PaymentRecord { used_as: PaymentUse::Authorization, ..record(settlement) };
    let view = |record: &PaymentRecord, evidence: &Evidence| {
        ChainView::of(record, Some(NEW), &TransactionStatus::Mined(evidence.clone()))
    };
    let elsewhere = ChainView::Elsewhere(block(95, NEW));
    assert_eq!(view(&authorized(PaymentSettlement::Unsettled), &evidence), elsewhere);
    assert_eq!(
        view(&record(PaymentSettlement::Unsettled), &evidence),
        ChainView::Missing,
        "it is unclear which is meant"
    );
    evidence.transfers = others.to_vec();
    assert_eq!(view(&authorized(PaymentSettlement::Unsettled), &evidence), ChainView::Missing);
    evidence.transfers = vec![transfer, transfer];
    evidence.succeeded = false;
    assert_eq!(view(&authorized(PaymentSettlement::Unsettled), &evidence), ChainView::Missing);
}

#[test]
fn settlement_decisions_follow_the_chain() {
    use SettlementDecision::{Keep, Step, Wait};
    let unsettled = || record(PaymentSettlement::Unsettled);
    let at = |number| ChainView::Elsewhere(block(number, NEW));
    let final_now = Heights { finalized: 90, ..HEIGHTS };
    let wait = |missing_since| Wait { missing_since };
    // record, what is seen, chain heights, missing since, expected decision
    let table = [
        (unsettled(), ChainView::InPlace, HEIGHTS, None, Keep),
        (unsettled(), ChainView::InPlace, HEIGHTS, Some(1), Keep),
        (unsettled(), ChainView::InPlace, Heights { finalized: 89, ..HEIGHTS }, None, Keep),
        (unsettled(), ChainView::InPlace, final_now, None, Step(SettlementStep::Finalize)),
        (unsettled(), at(95), HEIGHTS, None, Step(SettlementStep::Move(block(95, NEW)))),
        (unsettled(), at(95), HEIGHTS, Some(1), Step(SettlementStep::Move(block(95, NEW)))),
        // Missing for the first time, for a while, and past the time limit.
        (unsettled(), ChainView::Missing, HEIGHTS, None, wait(114)),
        (unsettled(), ChainView::Missing, HEIGHTS, Some(114), wait(114)),
        (unsettled(), ChainView::Missing, HEIGHTS, Some(101), wait(101)),
        (unsettled(), ChainView::Missing, HEIGHTS, Some(100), Step(SettlementStep::Reverse)),
        (unsettled(), ChainView::Missing, final_now, Some(100), Step(SettlementStep::Reverse)),
        // Unclear evidence reverses nothing, and keeps `missing_since`.
        (unsettled(), ChainView::Unclear, HEIGHTS, None, Keep),
        (unsettled(), ChainView::Unclear, HEIGHTS, Some(1), wait(1)),
        (reversed(), ChainView::Missing, HEIGHTS, None, Keep),
        (reversed(), ChainView::Unclear, HEIGHTS, None, Keep),
        // It is back, in another block or its old one. It is credited again once that block is confirmed.
        (reversed(), at(100), HEIGHTS, None, Step(SettlementStep::Restore(block(100, NEW)))),
        (reversed(), at(101), HEIGHTS, None, Keep),
        (reversed(), ChainView::InPlace, HEIGHTS, None, Step(SettlementStep::Restore(block(90, OLD)))),
        (reversed(), ChainView::InPlace, Heights { confirmed: 89, ..HEIGHTS }, None, Keep),
        (record(PaymentSettlement::Final), ChainView::Missing, HEIGHTS, None, Keep),
        (record(PaymentSettlement::Final), at(95), HEIGHTS, None, Keep),
    ];
    for (record, seen, heights, missing_since, expected) in table {
        let decision = decide(&record, seen, heights, missing_since);
        assert_eq!(decision, expected, "{:?} {seen:?} since {missing_since:?}", record.settlement);
        if let Step(step) = decision {
            assert!(record.after(&step, NOW).is_some(), "the record must allow the step that was decided");
        }
    }
}

#[test]
fn one_required_confirmation_still_needs_two_reads() {
    let heights = Heights { newest: 100, confirmed: 100, finalized: 37 };
    let first = decide(&record(PaymentSettlement::Unsettled), ChainView::Missing, heights, None);
    assert_eq!(first, SettlementDecision::Wait { missing_since: 100 });
    let second = decide(&record(PaymentSettlement::Unsettled), ChainView::Missing, heights, Some(100));
    assert_eq!(second, SettlementDecision::Step(SettlementStep::Reverse));
}

#[test]
fn each_settlement_allows_its_own_steps() {
    use SettlementStep::{Finalize, Move, Restore, Reverse};
    let to = block(95, NEW);
    let moved = |settlement| {
        let mut moved = record(settlement);
        (moved.payment.block_number, moved.payment.block_hash, moved.payment.mined_at) = (95, Some(NEW), to.time);
        moved
    };
    // from, step, to
    let table = [
        (PaymentSettlement::Unsettled, Finalize, Some(record(PaymentSettlement::Final))),
        (PaymentSettlement::Unsettled, Move(to), Some(moved(PaymentSettlement::Unsettled))),
        (PaymentSettlement::Unsettled, Reverse, Some(reversed())),
        (PaymentSettlement::Unsettled, Restore(to), None),
        (PaymentSettlement::Final, Finalize, None),
        (PaymentSettlement::Final, Move(to), None),
        (PaymentSettlement::Final, Reverse, None),
        (PaymentSettlement::Final, Restore(to), None),
        (PaymentSettlement::Reversed { at: NOW }, Finalize, None),
        (PaymentSettlement::Reversed { at: NOW }, Move(to), None),
        (PaymentSettlement::Reversed { at: NOW }, Reverse, None),
        (PaymentSettlement::Reversed { at: NOW }, Restore(to), Some(moved(PaymentSettlement::Unsettled))),
    ];
    for (from, step, to) in table {
        assert_eq!(record(from).after(&step, NOW), to, "{from:?} {step:?}");
    }
}

#[test]
fn entries_name_the_payment_and_the_reason() {
    let SettlementEntry::Entry(taken) = record(PaymentSettlement::Unsettled).entry_of(&SettlementStep::Reverse, 70)
    else {
        panic!("a reversal has an entry")
    };
    assert_eq!((taken.kind, taken.amount.atoms()), (LedgerKind::PaymentReversed, -70));
    assert!(taken.description.contains("chain 1 removed payment 0x0707"), "{}", taken.description);
    let SettlementEntry::Entry(given) = reversed().entry_of(&SettlementStep::Restore(block(95, NEW)), 70) else {
        panic!("a restored payment has an entry")
    };
    assert_eq!((given.kind, given.amount.atoms()), (LedgerKind::PaymentRestored, 70));
    assert!(given.description.contains("mined again, in block 95"), "{}", given.description);
    assert_eq!(given.payment, taken.payment);
    for step in [SettlementStep::Finalize, SettlementStep::Move(block(95, NEW))] {
        assert_eq!(record(PaymentSettlement::Unsettled).entry_of(&step, 70), SettlementEntry::Nothing);
    }
    let most = record(PaymentSettlement::Unsettled).entry_of(&SettlementStep::Reverse, i64::MIN.into());
    assert_eq!(most, SettlementEntry::OutOfRange);
}

#[test]
fn settlements_round_trip_by_name() {
    for settlement in [PaymentSettlement::Unsettled, PaymentSettlement::Final, PaymentSettlement::Reversed { at: NOW }]
    {
        assert_eq!(PaymentSettlement::from_parts(settlement.as_str(), settlement.reversed_at()), Some(settlement));
    }
    for (name, at) in [("reversed", None), ("final", Some(NOW)), ("unsettled", Some(NOW)), ("", None)] {
        assert_eq!(PaymentSettlement::from_parts(name, at), None, "{name}");
    }
}
