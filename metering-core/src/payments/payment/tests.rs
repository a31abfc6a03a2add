//! Finding a payment in a transaction, case by case.

use crate::chains::address::Address;
use crate::chains::chain::{Block, Depth, Evidence, NativeTransfer, TokenTransfer};
use crate::chains::transaction::{TxHash, TxRef};
use crate::chains::units::TokenUnits;
use crate::clock::Timestamp;
use crate::wire::ErrorCode;

use super::{PaymentFault, PaymentTarget};

const TOKEN: Address = Address::from_bytes([0x70; 20]);
const OTHER_TOKEN: Address = Address::from_bytes([0x71; 20]);
const RECIPIENT: Address = Address::from_bytes([0x11; 20]);
const ELSEWHERE: Address = Address::from_bytes([0x12; 20]);
const PAYER: Address = Address::from_bytes([0xaa; 20]);
const RELAYER: Address = Address::from_bytes([0xbb; 20]);
const TX: TxRef = TxRef { chain_id: 1, hash: TxHash::from_bytes([7; 32]) };

fn evidence() -> Evidence {
    let transfer = TokenTransfer { token: TOKEN, from: PAYER, to: RECIPIENT, value: TokenUnits::new(5_003_817) };
    Evidence {
        succeeded: true,
        block: Block { number: 100, hash: [1; 32], time: Timestamp::from_unix_millis(1_000) },
        depth: Depth { confirmations: 1, required: 1 },
        native: Some(NativeTransfer { from: RELAYER, to: Some(TOKEN), value: TokenUnits::ZERO, has_input: true }),
        transfers: vec![transfer],
    }
}

fn native_evidence() -> Evidence {
    let native = NativeTransfer { from: PAYER, to: Some(RECIPIENT), value: TokenUnits::new(25), has_input: false };
    Evidence { native: Some(native), transfers: Vec::new(), ..evidence() }
}

fn target(token: Address) -> PaymentTarget {
    PaymentTarget { chain_id: 1, token, recipient: RECIPIENT }
}

#[test]
fn token_payment_belongs_to_the_token_owner() {
    let payment = target(TOKEN).payment(TX, &evidence()).unwrap();
    assert_eq!((payment.payer, payment.amount.get()), (PAYER, 5_003_817));
    assert_eq!((payment.tx, payment.token, payment.recipient, payment.block_number), (TX, TOKEN, RECIPIENT, 100));
}

#[test]
fn native_payment_belongs_to_its_sender() {
    let payment = target(Address::ZERO).payment(TX, &native_evidence()).unwrap();
    assert_eq!((payment.payer, payment.amount.get(), payment.token), (PAYER, 25, Address::ZERO));
}

#[test]
fn other_transfers_are_ignored() {
    let mut seen = evidence();
    let ours = seen.transfers[0];
    seen.transfers.insert(0, TokenTransfer { token: OTHER_TOKEN, ..ours });
    seen.transfers.push(TokenTransfer { to: ELSEWHERE, ..ours });
    assert_eq!(target(TOKEN).payment(TX, &seen).unwrap().amount.get(), 5_003_817);
}

#[test]
fn invalid_token_payment_is_refused_with_reason() {
    type Change = fn(&mut Evidence);
    // case, change, code
    let table: [(&str, Change, ErrorCode); 5] = [
        ("reverted", |e| e.succeeded = false, ErrorCode::TxReverted),
        ("no transfer", |e| e.transfers.clear(), ErrorCode::PaymentMismatch),
        ("a fake token", |e| e.transfers[0].token = OTHER_TOKEN, ErrorCode::PaymentMismatch),
        ("another recipient", |e| e.transfers[0].to = ELSEWHERE, ErrorCode::PaymentMismatch),
        ("two transfers", |e| e.transfers.push(e.transfers[0]), ErrorCode::PaymentMismatch),
    ];
    for (what, change, code) in table {
        let mut seen = evidence();
        change(&mut seen);
        let fault = target(TOKEN).payment(TX, &seen).unwrap_err();
        assert_eq!(fault.code(), code, "{what}");
        assert_eq!(fault.expected_and_found().is_some(), code == ErrorCode::PaymentMismatch, "{what}");
    }
    // The transaction itself does not matter: the receipt proves a payment in tokens.
    assert!(target(TOKEN).payment(TX, &Evidence { native: None, ..evidence() }).is_ok());
    // A transfer of the native coin is not a payment in tokens.
    assert!(target(TOKEN).payment(TX, &native_evidence()).is_err());
}

#[test]
fn invalid_native_payment_is_refused_with_reason() {
    type Change = fn(&mut Evidence);
    let table: [(&str, Change, ErrorCode); 5] = [
        ("reverted", |e| e.succeeded = false, ErrorCode::TxReverted),
        ("another recipient", |e| e.native.as_mut().unwrap().to = Some(ELSEWHERE), ErrorCode::PaymentMismatch),
        ("a new contract", |e| e.native.as_mut().unwrap().to = None, ErrorCode::PaymentMismatch),
        ("call data", |e| e.native.as_mut().unwrap().has_input = true, ErrorCode::PaymentMismatch),
        ("no native transfer", |e| e.native = None, ErrorCode::PaymentMismatch),
    ];
    for (what, change, code) in table {
        let mut seen = native_evidence();
        change(&mut seen);
        assert_eq!(target(Address::ZERO).payment(TX, &seen).unwrap_err().code(), code, "{what}");
    }
}

#[test]
fn the_same_hash_on_another_chain_is_another_transaction() {
    let elsewhere = TxRef { chain_id: 2, ..TX };
    let fault = target(TOKEN).payment(elsewhere, &evidence()).unwrap_err();
    assert_eq!(fault, PaymentFault::OtherChain { expected: 1, found: 2 });
}

#[test]
fn messages_name_findings_up_to_a_limit() {
    let mut seen = evidence();
    seen.transfers = vec![TokenTransfer { to: ELSEWHERE, ..seen.transfers[0] }; 500];
    let message = target(TOKEN).payment(TX, &seen).unwrap_err().to_string();
    assert!(message.contains("and 497 more") && message.len() < 1_000, "{message}");
}
