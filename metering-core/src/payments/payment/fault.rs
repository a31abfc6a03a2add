//! Why a transaction is not the expected payment.

use crate::chains::address::Address;
use crate::chains::chain::{Depth, TokenTransfer};
use crate::chains::units::TokenUnits;
use crate::clock::Timestamp;
use crate::payments::not_before::NotBefore;
use crate::wire::ErrorCode;

/// The most transfers that a message lists.
const SHOWN: usize = 3;

/// A reason to reject a payment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PaymentFault {
    /// It is on another chain.
    #[error("The transaction is on chain {found}; the payment is due on chain {expected}.")]
    OtherChain {
        /// The chain to pay on.
        expected: u64,
        /// The transaction's chain.
        found: u64,
    },
    /// The transaction failed, and moved nothing.
    #[error("The transaction was reverted and paid nothing; pay again and claim with the new transaction.")]
    Reverted,
    /// It has no transfer of the token to the recipient.
    #[error("The transaction has no transfer of token {token} to {recipient}{}.", found_instead(.found))]
    NoTransfer {
        /// The token to pay with.
        token: Address,
        /// The expected recipient.
        recipient: Address,
        /// The transfers it has.
        found: Vec<TokenTransfer>,
    },
    /// It has more than one transfer of the token to the recipient, so it is unclear which one pays.
    #[error("The transaction has {count} transfers of the token to the recipient; exactly one was expected.")]
    SeveralTransfers {
        /// The number of transfers.
        count: usize,
    },
    /// The native coin went to another address.
    #[error("The payment should go to {expected}, but the transaction was sent to {}.", target(.found))]
    WrongRecipient {
        /// The expected recipient.
        expected: Address,
        /// Who was paid; `None` for a transaction that creates a contract.
        found: Option<Address>,
    },
    /// The transaction is of a type that does not show which native coin it moved.
    #[error(
        "The transaction shows no transfer of the native coin to {recipient}; a plain transfer from the wallet itself \
         is expected."
    )]
    NoNativeTransfer {
        /// The expected recipient.
        recipient: Address,
    },
    /// The native coin was sent with call data.
    #[error("The transaction carries call data; a plain transfer without call data is expected.")]
    HasInput,
    /// Another wallet paid.
    #[error("The payment should come from {expected}, but it came from {found}.")]
    WrongPayer {
        /// The quote's payer.
        expected: Address,
        /// The payment's payer.
        found: Address,
    },
    /// The amount differs from the quote's.
    #[error("Exactly {expected} units of the token were expected, but {found} were paid.")]
    WrongAmount {
        /// The quote's amount.
        expected: TokenUnits,
        /// The payment's amount.
        found: TokenUnits,
    },
    /// Less was paid than the plan costs.
    #[error("At least {expected} units of the token were expected, but {found} were paid.")]
    TooLittle {
        /// The plan's price.
        expected: TokenUnits,
        /// The payment's amount.
        found: TokenUnits,
    },
    /// It was made before the quote, so it cannot be for it.
    #[error("The payment was mined at {mined_at}, before the quote was made at {quoted_at}.")]
    PredatesQuote {
        /// When it was mined.
        mined_at: Timestamp,
        /// When the quote was made.
        quoted_at: Timestamp,
    },
    /// It was made after the quote's amount was released for other quotes.
    #[error(
        "The payment was mined at {mined_at}, but the quote was only honoured until {honoured_until}; ask the operator \
         to credit the payment to an account."
    )]
    QuoteExpired {
        /// When it was mined.
        mined_at: Timestamp,
        /// The latest time at which it could be mined.
        honoured_until: Timestamp,
    },
    /// It is older than the payments that this service accepts: it was made to another service, or to an earlier
    /// installation of this one.
    #[error(
        "The payment predates this service's not_before ({not_before}): it was mined in block {block_number} at \
         {mined_at}. It was not credited; if it was meant for this service, ask the operator to assign it."
    )]
    PredatesService {
        /// The payment's block.
        block_number: u64,
        /// When it was mined.
        mined_at: Timestamp,
        /// The oldest payment that is accepted.
        not_before: NotBefore,
    },
    /// It needs more confirmations.
    #[error("The payment has {} of {} confirmations; wait and try again.", .0.confirmations, .0.required)]
    Unconfirmed(Depth),
}

impl PaymentFault {
    /// The wire error code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Reverted => ErrorCode::TxReverted,
            Self::WrongPayer { .. } => ErrorCode::PayerMismatch,
            Self::PredatesQuote { .. } => ErrorCode::PaymentPredatesQuote,
            Self::PredatesService { .. } => ErrorCode::PaymentPredatesService,
            Self::QuoteExpired { .. } => ErrorCode::QuoteExpired,
            Self::Unconfirmed(_) => ErrorCode::PaymentUnconfirmed,
            Self::OtherChain { .. }
            | Self::NoTransfer { .. }
            | Self::SeveralTransfers { .. }
            | Self::WrongRecipient { .. }
            | Self::NoNativeTransfer { .. }
            | Self::HasInput
            | Self::WrongAmount { .. }
            | Self::TooLittle { .. } => ErrorCode::PaymentMismatch,
        }
    }

    /// The expected and the actual value, as text, for the faults that compare the two.
    #[must_use]
    pub fn expected_and_found(&self) -> Option<(String, String)> {
        match self {
            Self::OtherChain { expected, found } => Some((format!("chain {expected}"), format!("chain {found}"))),
            Self::NoTransfer { token, recipient, found } => {
                Some((format!("one transfer of {token} to {recipient}"), shown(found)))
            }
            Self::SeveralTransfers { count } => Some(("one transfer".to_owned(), format!("{count} transfers"))),
            Self::WrongRecipient { expected, found } => Some((expected.to_string(), target(found))),
            Self::NoNativeTransfer { recipient } => {
                Some((format!("a plain transfer to {recipient}"), "no transfer of the native coin".to_owned()))
            }
            Self::HasInput => Some(("no call data".to_owned(), "call data".to_owned())),
            Self::WrongPayer { expected, found } => Some((expected.to_string(), found.to_string())),
            Self::WrongAmount { expected, found } => Some((expected.to_string(), found.to_string())),
            Self::TooLittle { expected, found } => Some((format!("at least {expected}"), found.to_string())),
            Self::PredatesQuote { mined_at, quoted_at } => {
                Some((format!("mined at or after {quoted_at}"), format!("mined at {mined_at}")))
            }
            Self::PredatesService { block_number, mined_at, not_before } => {
                Some((format!("{not_before} or later"), format!("block {block_number}, mined at {mined_at}")))
            }
            Self::QuoteExpired { mined_at, honoured_until } => {
                Some((format!("mined by {honoured_until}"), format!("mined at {mined_at}")))
            }
            Self::Reverted | Self::Unconfirmed(_) => None,
        }
    }
}

fn target(to: &Option<Address>) -> String {
    to.map_or_else(|| "a new contract".to_owned(), |to| to.to_string())
}

fn found_instead(found: &[TokenTransfer]) -> String {
    if found.is_empty() { String::new() } else { format!("; it has: {}", shown(found)) }
}

fn shown(found: &[TokenTransfer]) -> String {
    if found.is_empty() {
        return "no transfer".to_owned();
    }
    let transfer = |t: &TokenTransfer| format!("{} units of {} to {}", t.value, t.token, t.to);
    let mut text: Vec<String> = found.iter().take(SHOWN).map(transfer).collect();
    if found.len() > SHOWN {
        text.push(format!("and {} more", found.len() - SHOWN));
    }
    text.join(", ")
}
