//! The wire code of each refusal, and its `Retry-After`.

use std::collections::BTreeMap;

use crate::chains::chain::{ChainError, Depth};
use crate::payments::payment::PaymentFault;
use crate::payments::processor::ProcessorRef;
use crate::wire::ErrorCode;

use super::{PaymentError, RecoveryError};

fn unconfirmed() -> PaymentError {
    PaymentError::Unfit(PaymentFault::Unconfirmed(Depth { confirmations: 1, required: 2 }))
}

fn reference() -> ProcessorRef {
    ProcessorRef::new("stripe", "pi_1").unwrap()
}

fn unavailable() -> ChainError {
    ChainError::Unavailable("down".to_owned())
}

#[test]
fn only_transient_errors_are_retryable() {
    // refusal, code, seconds until a retry
    let table = [
        (PaymentError::Chain(unavailable()), ErrorCode::RpcError, Some(5)),
        (PaymentError::TxNotFound, ErrorCode::TxNotFound, Some(12)),
        (unconfirmed(), ErrorCode::PaymentUnconfirmed, Some(12)),
        (PaymentError::QuotesExhausted, ErrorCode::QuotesExhausted, Some(60)),
        (PaymentError::Unfit(PaymentFault::Reverted), ErrorCode::TxReverted, None),
        (PaymentError::Unfit(PaymentFault::HasInput), ErrorCode::PaymentMismatch, None),
        (PaymentError::UnsupportedChain(1), ErrorCode::UnsupportedChain, None),
        (PaymentError::UnknownPlan, ErrorCode::UnknownPlan, None),
        (PaymentError::NotConfigured, ErrorCode::PaymentNotConfigured, None),
        (PaymentError::EmailTaken, ErrorCode::EmailAlreadyRegistered, None),
        (PaymentError::PayerTaken, ErrorCode::PayerAlreadyRegistered, None),
        (PaymentError::InvalidTxHash, ErrorCode::InvalidTxHash, None),
        (PaymentError::UnknownQuote, ErrorCode::NotFound, None),
        (PaymentError::UnknownTopUpQuote, ErrorCode::NotFound, None),
        (PaymentError::AlreadyClaimed, ErrorCode::AlreadyClaimed, None),
        (PaymentError::TxUsed, ErrorCode::TxAlreadyUsed, None),
        (PaymentError::Reserved, ErrorCode::PaymentReserved, None),
        (PaymentError::NoCheckout { plans_url: None }, ErrorCode::CheckoutNotAvailable, None),
        (PaymentError::NoProcessorPayment(reference()), ErrorCode::NotFound, None),
        (
            PaymentError::OtherTerms { id: reference(), field: "amount", recorded: "1".to_owned() },
            ErrorCode::Conflict,
            None,
        ),
        (PaymentError::Incomplete { fields: BTreeMap::new(), plans_url: None }, ErrorCode::ValidationFailed, None),
    ];
    for (error, code, retry) in table {
        assert_eq!((error.code(), error.retry_after_seconds()), (code, retry), "{error}");
    }
}

#[test]
fn rotations_wait_for_the_chain_only() {
    let table = [
        (RecoveryError::NoLinkedWallet, ErrorCode::NoLinkedWallet, None),
        (RecoveryError::UnknownChallenge, ErrorCode::NotFound, None),
        (RecoveryError::AddressMismatch, ErrorCode::AddressMismatch, None),
        (RecoveryError::Expired, ErrorCode::ChallengeExpired, None),
        (RecoveryError::InvalidSignature, ErrorCode::InvalidSignature, None),
        (RecoveryError::Chain(unavailable()), ErrorCode::RpcError, Some(5)),
    ];
    for (error, code, retry) in table {
        assert_eq!((error.code(), error.retry_after_seconds()), (code, retry), "{error}");
    }
}
