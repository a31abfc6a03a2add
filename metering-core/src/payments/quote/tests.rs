//! Whether a payment pays a quote, case by case.

use std::time::Duration;

use crate::access::account::AccountId;
use crate::chains::address::Address;
use crate::chains::chain::{Block, Depth, Evidence, NativeTransfer, TokenTransfer};
use crate::chains::transaction::{TxHash, TxRef};
use crate::chains::units::TokenUnits;
use crate::clock::Timestamp;
use crate::money::credits::Credits;
use crate::payments::payment::{PaymentFault, PaymentSettlement, PaymentTarget};
use crate::random::SystemRandomness;
use crate::wire::ErrorCode;

use super::{Quote, QuoteNonce, QuoteState};

const TOKEN: Address = Address::from_bytes([0x70; 20]);
const RECIPIENT: Address = Address::from_bytes([0x11; 20]);
const PAYER: Address = Address::from_bytes([0xaa; 20]);
const THIEF: Address = Address::from_bytes([0xbb; 20]);
const TX: TxRef = TxRef { chain_id: 1, hash: TxHash::from_bytes([7; 32]) };
const AMOUNT: u128 = 5_003_817;
/// 2026-11-21T12:00:00Z.
const QUOTED_AT: Timestamp = Timestamp::from_unix_millis(1_795_262_400_000);
const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn quote() -> Quote {
    Quote {
        nonce: QuoteNonce::generate(&SystemRandomness).hash(),
        agent_name: "agent".parse().unwrap(),
        email: None,
        payer: PAYER,
        top_up: None,
        target: PaymentTarget { chain_id: 1, token: TOKEN, recipient: RECIPIENT },
        amount: TokenUnits::new(AMOUNT),
        plan_id: "starter".to_owned(),
        credits: Credits::from_whole(10).unwrap(),
        bonus_credits: Credits::ZERO,
        created_at: QUOTED_AT,
        expires_at: QUOTED_AT.saturating_add(30 * MINUTE),
        state: QuoteState::Open,
    }
}

fn evidence(mined_at: Timestamp) -> Evidence {
    let transfer = TokenTransfer { token: TOKEN, from: PAYER, to: RECIPIENT, value: TokenUnits::new(AMOUNT) };
    Evidence {
        succeeded: true,
        block: Block { number: 100, hash: [1; 32], time: mined_at },
        depth: Depth { confirmations: 12, required: 12 },
        native: Some(NativeTransfer { from: PAYER, to: Some(TOKEN), value: TokenUnits::ZERO, has_input: true }),
        transfers: vec![transfer],
    }
}

#[test]
fn block_time_decides_not_claim_time() {
    let quote = quote();
    let (early, late) = (QUOTED_AT.saturating_sub(2 * MINUTE), quote.expires_at.saturating_add(7 * DAY));
    let millisecond = Duration::from_millis(1);
    // mined at, expected error code
    let table = [
        (QUOTED_AT.saturating_add(MINUTE), None),
        (early, None),
        (early.saturating_sub(millisecond), Some(ErrorCode::PaymentPredatesQuote)),
        (quote.expires_at.saturating_add(MINUTE), None),
        (late, None),
        (late.saturating_add(millisecond), Some(ErrorCode::QuoteExpired)),
    ];
    for (mined_at, refusal) in table {
        let judged = quote.judge(TX, &evidence(mined_at));
        assert_eq!(judged.err().map(|fault| fault.code()), refusal, "{mined_at}");
    }
}

#[test]
fn payer_and_amount_must_be_the_quotes_exactly() {
    type Change = fn(&mut TokenTransfer);
    let table: [(&str, Change, ErrorCode); 4] = [
        ("another payer", |t| t.from = THIEF, ErrorCode::PayerMismatch),
        ("a unit too little", |t| t.value = TokenUnits::new(AMOUNT - 1), ErrorCode::PaymentMismatch),
        ("a unit too much", |t| t.value = TokenUnits::new(AMOUNT + 1), ErrorCode::PaymentMismatch),
        ("the largest amount", |t| t.value = TokenUnits::MAX, ErrorCode::PaymentMismatch),
    ];
    for (what, change, code) in table {
        let mut seen = evidence(QUOTED_AT);
        change(&mut seen.transfers[0]);
        assert_eq!(quote().judge(TX, &seen).unwrap_err().code(), code, "{what}");
    }
}

#[test]
fn several_transfers_to_the_recipient_pay_nothing() {
    let mut seen = evidence(QUOTED_AT);
    for count in [2, 3] {
        let first = seen.transfers[0];
        seen.transfers.push(first);
        let fault = quote().judge(TX, &seen).unwrap_err();
        assert_eq!(fault, PaymentFault::SeveralTransfers { count });
    }
    // Transfers of other tokens and to others do not count.
    seen.transfers.truncate(1);
    seen.transfers.push(TokenTransfer { token: THIEF, ..seen.transfers[0] });
    seen.transfers.push(TokenTransfer { to: THIEF, ..seen.transfers[0] });
    assert!(quote().judge(TX, &seen).is_ok());
}

#[test]
fn wrong_payment_is_refused_before_waiting_for_confirmations() {
    let mut seen = evidence(QUOTED_AT);
    seen.depth = Depth { confirmations: 11, required: 12 };
    assert_eq!(quote().judge(TX, &seen).unwrap_err().code(), ErrorCode::PaymentUnconfirmed);
    seen.transfers[0].from = THIEF;
    assert_eq!(quote().judge(TX, &seen).unwrap_err().code(), ErrorCode::PayerMismatch);
}

#[test]
fn payment_matches_only_its_own_quote() {
    let quote = quote();
    let payment = quote.judge(TX, &evidence(QUOTED_AT)).unwrap();
    assert!(quote.is_paid_by(&payment));
    let elsewhere = PaymentTarget { recipient: THIEF, ..quote.target };
    let others = [
        Quote { payer: THIEF, ..quote.clone() },
        Quote { amount: TokenUnits::new(AMOUNT + 1), ..quote.clone() },
        Quote { target: elsewhere, ..quote.clone() },
        Quote { created_at: QUOTED_AT.saturating_add(3 * MINUTE), ..quote.clone() },
    ];
    for other in others {
        assert!(!other.is_paid_by(&payment), "{other:?}");
    }
}

#[test]
fn quotes_are_kept_as_long_as_documented() {
    let times = [Quote::CLOCK_SKEW, Quote::GRACE, Quote::TOP_UP_GRACE, Quote::RETENTION];
    assert_eq!(times, [2 * MINUTE, 7 * DAY, DAY, 90 * DAY]);
    let account = AccountId::generate(&SystemRandomness);
    let top_up = Quote { payer: Quote::ANY_PAYER, top_up: Some(account), ..quote() };
    for (unpaid, days) in [(quote(), 8), (top_up, 32)] {
        assert_eq!(unpaid.forgotten_from(), Some(unpaid.expires_at.saturating_add(days * DAY)), "{unpaid:?}");
    }
    assert!(
        Quote::UNPAID_TOP_UP_RETENTION > Quote::TOP_UP_REST + Quote::CLOCK_SKEW,
        "kept while it reserves its amount"
    );
    assert!(Quote::RETENTION > Quote::TOP_UP_REST + Quote::CLOCK_SKEW, "a paid one too");
}

#[test]
fn unpaid_top_up_quotes_of_an_account_count_while_their_amount_is_reserved() {
    let [own, other] = [(); 2].map(|()| AccountId::generate(&SystemRandomness));
    let of = |account: &AccountId| Quote { payer: Quote::ANY_PAYER, top_up: Some(account.clone()), ..quote() };
    let (first, millisecond) = (of(&own), Duration::from_millis(1));
    let used = Quote { state: QuoteState::Claimed { account: own.clone(), tx: TX }, ..first.clone() };
    let at = |quote: Quote, created_at| Quote { created_at, ..quote };
    let until = first.expires_at.saturating_add(DAY + 2 * MINUTE);
    // stored quote, new quote, whether the first counts against the second
    let table = [
        (&first, of(&own), true),
        (&first, at(of(&own), until), true),
        (&first, at(of(&own), until.saturating_add(millisecond)), false),
        (&first, of(&other), false),
        (&first, quote(), false),
        (&used, of(&own), false),
        (&quote(), quote(), false),
    ];
    for (stored, new, counts) in table {
        assert_eq!(stored.counts_against(&new), counts, "{stored:?} {new:?}");
    }
}

#[test]
fn open_quotes_and_reversed_top_ups_wait_for_a_payment() {
    let account = AccountId::generate(&SystemRandomness);
    let [paid, claimed] = [
        QuoteState::Paid { account: account.clone(), tx: TX },
        QuoteState::Claimed { account: account.clone(), tx: TX },
    ];
    let top_up = || Quote { payer: Quote::ANY_PAYER, top_up: Some(account.clone()), ..quote() };
    let reversed = Some(PaymentSettlement::Reversed { at: QUOTED_AT });
    // quote, settlement of its payment, whether it waits
    let table = [
        (quote(), None, true),
        (top_up(), None, true),
        (Quote { state: paid, ..quote() }, reversed, false),
        (Quote { state: claimed.clone(), ..quote() }, reversed, false),
        (Quote { state: claimed.clone(), ..top_up() }, reversed, true),
        (Quote { state: claimed.clone(), ..top_up() }, Some(PaymentSettlement::Unsettled), false),
        (Quote { state: claimed.clone(), ..top_up() }, Some(PaymentSettlement::Final), false),
        (Quote { state: claimed, ..top_up() }, None, false),
    ];
    for (quote, settlement, waits) in table {
        assert_eq!(quote.waits(settlement), waits, "{quote:?} {settlement:?}");
    }
}

#[test]
fn states_are_stored_by_name_account_and_transaction() {
    let account = AccountId::generate(&SystemRandomness);
    let tx = TxRef { chain_id: 1, hash: TxHash::from_bytes([7; 32]) };
    let parts =
        |name: &str, is_set: bool| QuoteState::from_parts(name, is_set.then(|| account.clone()), is_set.then_some(tx));
    let states = [
        ("open", QuoteState::Open),
        ("paid", QuoteState::Paid { account: account.clone(), tx }),
        ("claimed", QuoteState::Claimed { account: account.clone(), tx }),
    ];
    for (name, state) in states {
        assert_eq!(state.as_str(), name);
        assert_eq!(parts(name, state != QuoteState::Open), Some(state));
        assert_eq!(parts(name, name == "open"), None, "{name}");
    }
    assert_eq!(parts("lost", false), None);
}
