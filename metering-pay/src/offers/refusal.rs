//! Why a payment that came with a request was not credited.

use std::sync::Arc;

use metering_core::chains::{Address, TokenUnits, TxHash};
use metering_core::offers::{AuthorizationFault, SettlementFailure};
use metering_core::wire::ErrorCode;
use metering_core::{Credits, Error, PaymentRefusal};

use crate::offers::limit::TooManyPayments;
use crate::offers::reverts::RevertSubject;
use crate::wire::MalformedPayment;
use crate::wire::mpp::ChallengeFault;

/// Seconds to wait before asking again for a payment that is not confirmed yet: about a block.
const SETTLEMENT_RETRY_SECONDS: u64 = 3;

/// Seconds to wait before paying again when payments cannot be executed: an operator has to act.
const UNAVAILABLE_RETRY_SECONDS: u64 = 60;

/// Why a payment that came with a request was not credited, or not yet.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PayRefusal {
    /// It cannot be read.
    #[error("{0}")]
    Malformed(MalformedPayment),
    /// It is a credential of MPP, and cannot be read.
    #[error("{0}")]
    Credential(MalformedPayment),
    /// It is not for a challenge of this service.
    #[error("The payment is not valid: {0}")]
    Challenge(ChallengeFault),
    /// The service offers no such payment.
    #[error("The payment takes none of the offers; nothing was taken. Pay one of those in this response.")]
    NotOffered,
    /// It buys less than the request costs, although another offer buys enough.
    #[error(
        "The payment buys {credits} credits, and this request needs {missing}; nothing was taken. Pay one of the offers \
         in this response."
    )]
    TooLittle {
        /// The credits that it buys.
        credits: Credits,
        /// The credits that the account lacks for the request.
        missing: Credits,
    },
    /// It pays for usage, and that is not on offer for this request.
    #[error(
        "Payments for usage (the scheme upto) are taken for requests without a key, on routes that offer them; nothing was \
         taken. Send the request without a payment to see what it offers."
    )]
    UsageNotOffered,
    /// It names another facilitator.
    #[error(
        "The payment names the facilitator {found}, and this service has {expected}; nothing was taken. Sign it again."
    )]
    OtherFacilitator {
        /// The wallet or facilitator that executes payments.
        expected: Address,
        /// The facilitator that the payment names.
        found: Address,
    },
    /// Permit2 may not transfer the payer's tokens.
    #[error(
        "The wallet allows Permit2 (0x000000000022D473030F116dDEE9F6B43aC78BA3) to transfer {} units of {token}, and the \
         payment needs {}; nothing was taken. Approve Permit2 for the token, then send the request again.",
        have.get(), need.get()
    )]
    Allowance {
        /// The token.
        token: Address,
        /// The amount that it may transfer.
        have: TokenUnits,
        /// The amount that the payment needs.
        need: TokenUnits,
    },
    /// The payer's tokens may be needed for payments that were accepted before.
    #[error(
        "The wallet has {} units that can be transferred, and its payments for requests in progress, with this one, may need \
         {}; nothing was taken for this one. Wait until those have ended, or add tokens.",
        have.get(), need.get()
    )]
    Outstanding {
        /// The amount that can be transferred.
        have: TokenUnits,
        /// The amount that all of them may need.
        need: TokenUnits,
    },
    /// The payer was served before and did not pay.
    #[error(
        "An earlier request of this wallet was served, and its payment could not be executed: the account owes {owed} \
         credits. Pay one of the fixed amounts first; nothing was taken for this request."
    )]
    Owes {
        /// How much.
        owed: Credits,
    },
    /// The authorization does not match the offer.
    #[error("The payment is not valid: {0}. Nothing was taken.")]
    Invalid(AuthorizationFault),
    /// Its payer's wallet is a contract, and the account of that address belongs to a wallet on another chain.
    #[error(
        "This wallet is a contract, and its account belongs to chain {chain_id}; nothing was taken. Send an API key."
    )]
    OtherChain {
        /// The chain of the account.
        chain_id: u64,
    },
    /// The payer's wallet is a contract, which decides itself whether a transfer succeeds, and the service does not
    /// accept those.
    #[error(
        "This wallet has code of its own (a contract, or a delegation of EIP-7702), and this service takes signed \
         payments only from wallets without; nothing was taken. Pay from another wallet, or buy credits by a transfer."
    )]
    ContractWallet,
    /// Payments reverted before, at the service's cost, so no more are executed for a while.
    #[error(
        "Payments of {subject} reverted on the chain at this service's cost, so none are accepted for now; nothing was \
         taken. Try again in {retry_after_seconds} s, or buy credits with a transfer."
    )]
    Paused {
        /// Whose.
        subject: RevertSubject,
        /// How long until they are accepted again.
        retry_after_seconds: u64,
    },
    /// The token's contract would refuse it.
    #[error("The payment would fail: {0}. Nothing was taken.")]
    WouldFail(String),
    /// It was accepted before, and can no longer be executed.
    #[error("The payment can no longer be executed ({}); nothing was taken for it. Sign a new one.", .0.as_str())]
    Failed(SettlementFailure),
    /// It was credited before, for another request or with a key, or too long ago to send the same request again.
    #[error(
        "The payment was already credited. Its credits are in the account: use its API key, or sign in with the wallet \
         that paid."
    )]
    AlreadyCredited,
    /// Another payment of this payer has the same id.
    #[error(
        "Another payment was sent with this id before; nothing was taken for this one. Send that payment again, or give \
         this one another id."
    )]
    IdentifierUsed,
    /// It is being executed.
    #[error(
        "The payment was sent and is not confirmed yet. Send the same request with the same payment again; do not pay \
         again."
    )]
    Pending {
        /// The transaction, if it is known.
        tx: Option<TxHash>,
    },
    /// The service cannot have payments executed at the moment.
    #[error("Payments cannot be executed at the moment; nothing was taken. Try again later, or pay in another way.")]
    Unavailable,
    /// A limit on new payments is reached, so it was not checked.
    #[error(transparent)]
    TooMany(TooManyPayments),
}

impl PayRefusal {
    /// The refusal behind an error, if it is one.
    #[must_use]
    pub fn of(error: &Error) -> Option<&Self> {
        let Error::Offer(refusal) = error else { return None };
        let refusal: &(dyn std::error::Error + 'static) = &**refusal;
        refusal.downcast_ref()
    }

    /// Whether no payment was or will be taken, so another one may be offered.
    #[must_use]
    pub const fn allows_another(&self) -> bool {
        match self {
            Self::Credential(_)
            | Self::Challenge(_)
            | Self::NotOffered
            | Self::UsageNotOffered
            | Self::OtherFacilitator { .. }
            | Self::Allowance { .. }
            | Self::Outstanding { .. }
            | Self::Owes { .. }
            | Self::TooLittle { .. }
            | Self::Invalid(_)
            | Self::OtherChain { .. }
            | Self::ContractWallet
            | Self::WouldFail(_)
            | Self::Failed(_) => true,
            Self::Malformed(_)
            | Self::AlreadyCredited
            | Self::IdentifierUsed
            | Self::Pending { .. }
            | Self::Unavailable
            | Self::Paused { .. }
            | Self::TooMany(_) => false,
        }
    }
}

impl PaymentRefusal for PayRefusal {
    fn code(&self) -> ErrorCode {
        match self {
            Self::Malformed(_) => ErrorCode::ValidationFailed,
            Self::AlreadyCredited => ErrorCode::PaymentCredited,
            Self::IdentifierUsed => ErrorCode::Conflict,
            Self::Allowance { .. } => ErrorCode::Permit2AllowanceRequired,
            Self::Pending { .. } => ErrorCode::SettlementPending,
            Self::Unavailable => ErrorCode::SettlementUnavailable,
            Self::TooMany(_) | Self::Paused { .. } => ErrorCode::RateLimited,
            _ => ErrorCode::PaymentRefused,
        }
    }

    fn retry_after_seconds(&self) -> Option<u64> {
        match self {
            Self::Pending { .. } => Some(SETTLEMENT_RETRY_SECONDS),
            Self::Unavailable => Some(UNAVAILABLE_RETRY_SECONDS),
            Self::TooMany(too_many) => Some(too_many.retry_after_seconds),
            Self::Paused { retry_after_seconds, .. } => Some(*retry_after_seconds),
            _ => None,
        }
    }
}

impl From<PayRefusal> for Error {
    fn from(refusal: PayRefusal) -> Self {
        Self::Offer(Arc::new(refusal))
    }
}
