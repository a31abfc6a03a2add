//! Why buying was refused, or rotating a key.

use std::collections::BTreeMap;

use crate::address::Address;
use crate::chain::ChainError;
use crate::payment::PaymentFault;
use crate::wire::{ErrorBody, ErrorCode, Required};

/// Seconds after which a payment that is not there or not deep enough is worth another look: about a block's time.
const RETRY_NEXT_BLOCK_SECONDS: u64 = 12;
/// Seconds after which a chain that could not be read is worth another try.
const RETRY_CHAIN_SECONDS: u64 = 5;
/// Seconds after which quotes may have expired and made room.
const RETRY_QUOTES_SECONDS: u64 = 60;

/// Why a quote, a claim or a top-up was refused.
#[derive(Debug, Clone, thiserror::Error)]
pub enum PaymentError {
    /// What is needed to register a payment is missing: what, by name, and where plans are listed.
    #[error("The request is not valid: {}.", crate::error::list(fields))]
    Incomplete {
        /// What is wrong, by field.
        fields: BTreeMap<String, String>,
        /// Where plans are listed.
        plans_url: String,
    },
    /// Plans are not paid on that chain.
    #[error("Plans are not paid on chain {0}; GET /credits/plans lists the chains.")]
    UnsupportedChain(u64),
    /// There is no such plan.
    #[error("There is no plan of that name on that chain; GET /credits/plans lists those on sale.")]
    UnknownPlan,
    /// The plan is paid with another token.
    #[error("The plan is paid in {expected}, not in {found}.")]
    UnsupportedToken {
        /// The plan's.
        expected: String,
        /// The request's.
        found: String,
    },
    /// Payments on that chain are not set up, or not as they should be.
    #[error("Payments are not set up for this plan; the operator's log says why, or choose another plan.")]
    NotConfigured,
    /// An account has the email address.
    #[error("An account with this email address exists already; use its key, or another address.")]
    EmailTaken,
    /// The wallet has an account.
    #[error(
        "This wallet owns an account already: register the payment with POST /credits/topup, or get a new key for \
         it with POST /api-key/recover/challenge."
    )]
    PayerTaken,
    /// A contract would pay with the native coin.
    #[error(
        "{} is a contract on chain {chain_id}, and a contract's payment in the native coin cannot be credited; do not pay. \
         Choose a plan that is paid in a token, or pay from a wallet whose private key you hold.",
        payer.to_checksummed()
    )]
    ContractPayer {
        /// The contract.
        payer: Address,
        /// Where it is one.
        chain_id: u64,
    },
    /// No amount is free.
    #[error("Too many quotes for this price are open; try again later, or choose another plan.")]
    QuotesExhausted,
    /// The text is no transaction's hash.
    #[error("tx_hash must be a transaction's hash: 0x followed by 64 hexadecimal digits.")]
    InvalidTxHash,
    /// No quote has that nonce.
    #[error("There is no quote of this signup_nonce; ask for a new one with POST /signup/pay/quote.")]
    UnknownQuote,
    /// The quote was claimed before.
    #[error(
        "This quote was claimed already. If its key is lost, prove the paying wallet for a new one with \
         POST /api-key/recover/challenge."
    )]
    AlreadyClaimed,
    /// The chain could not be read.
    #[error("{}", chain_trouble(.0))]
    Chain(ChainError),
    /// The chain does not know the transaction.
    #[error("The chain knows no such transaction, yet; if it was just sent, try again.")]
    TxNotFound,
    /// The transaction is not the payment that was expected.
    #[error(transparent)]
    Unfit(PaymentFault),
    /// The transaction was used before.
    #[error("This transaction was used already; each pays once.")]
    TxUsed,
    /// A quote waits for this payment.
    #[error(
        "A quote waits for exactly this payment: claim it with POST /signup/pay/claim, or send the paying wallet's \
         signature to have it credited here."
    )]
    Reserved,
    /// The payer has not consented: the text to sign.
    #[error("{message}")]
    ProofRequired {
        /// The text, to be signed as it is (EIP-191).
        message: String,
        /// What to do with it.
        hint: String,
    },
    /// The signature is none.
    #[error("signature {0}.")]
    MalformedProof(crate::signature::WalletSignatureError),
}

impl PaymentError {
    pub(crate) const fn code(&self) -> ErrorCode {
        match self {
            Self::Incomplete { .. } => ErrorCode::ValidationFailed,
            Self::UnsupportedChain(_) => ErrorCode::UnsupportedChain,
            Self::UnknownPlan => ErrorCode::UnknownPlan,
            Self::UnsupportedToken { .. } => ErrorCode::UnsupportedToken,
            Self::NotConfigured => ErrorCode::PaymentNotConfigured,
            Self::EmailTaken => ErrorCode::EmailAlreadyRegistered,
            Self::PayerTaken => ErrorCode::PayerAlreadyRegistered,
            Self::ContractPayer { .. } => ErrorCode::PayerIsContract,
            Self::QuotesExhausted => ErrorCode::QuotesExhausted,
            Self::InvalidTxHash => ErrorCode::InvalidTxHash,
            Self::UnknownQuote => ErrorCode::NotFound,
            Self::AlreadyClaimed => ErrorCode::AlreadyClaimed,
            Self::Chain(error) => chain_code(error),
            Self::TxNotFound => ErrorCode::TxNotFound,
            Self::Unfit(fault) => fault.code(),
            Self::TxUsed => ErrorCode::TxAlreadyUsed,
            Self::Reserved => ErrorCode::PaymentReserved,
            Self::ProofRequired { .. } => ErrorCode::PayerProofRequired,
            Self::MalformedProof(_) => ErrorCode::InvalidSignature,
        }
    }

    pub(crate) const fn retry_after_seconds(&self) -> Option<u64> {
        match self {
            Self::Chain(_) => Some(RETRY_CHAIN_SECONDS),
            Self::TxNotFound | Self::Unfit(PaymentFault::Unconfirmed(_)) => Some(RETRY_NEXT_BLOCK_SECONDS),
            Self::QuotesExhausted => Some(RETRY_QUOTES_SECONDS),
            _ => None,
        }
    }

    pub(crate) fn add_context(&self, body: &mut ErrorBody) {
        match self {
            Self::Incomplete { fields, plans_url } => {
                body.fields = Some(fields.clone());
                body.plans_url = Some(plans_url.clone());
            }
            Self::UnsupportedToken { expected, found } => {
                (body.expected, body.found) = (Some(expected.clone()), Some(found.clone()));
            }
            Self::Unfit(fault) => {
                (body.expected, body.found) = fault.expected_and_found().unzip();
                if let PaymentFault::Unconfirmed(depth) = fault {
                    body.confirmations = Some(depth.confirmations);
                    body.required = Some(Required::Confirmations(depth.required));
                }
            }
            Self::ProofRequired { hint, .. } => body.hint = Some(hint.clone()),
            _ => {}
        }
    }
}

/// Why a key was not rotated.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RecoveryError {
    /// No account was paid for by that wallet.
    #[error("No account was paid for by this wallet; only the wallet that paid for the signup can rotate its key.")]
    NoLinkedWallet,
    /// There is no such challenge, or it was used.
    #[error("There is no open challenge of this nonce; ask for a new one with POST /api-key/recover/challenge.")]
    UnknownChallenge,
    /// The challenge was made for another address.
    #[error("The challenge was made for another address.")]
    AddressMismatch,
    /// The challenge expired.
    #[error("The challenge expired; ask for a new one with POST /api-key/recover/challenge.")]
    Expired,
    /// The signature is not the wallet's over the challenge's message.
    #[error(
        "The signature is not this address's over the challenge's message: sign the message as it is (EIP-191, \
         personal_sign) and send all 65 bytes, 0x first. A challenge takes five wrong ones."
    )]
    InvalidSignature,
    /// The chain of a smart-contract wallet could not be read.
    #[error("The chain cannot be read at the moment; nothing was consumed, try again.")]
    Chain(ChainError),
}

impl RecoveryError {
    pub(crate) const fn code(&self) -> ErrorCode {
        match self {
            Self::NoLinkedWallet => ErrorCode::NoLinkedWallet,
            Self::UnknownChallenge => ErrorCode::NotFound,
            Self::AddressMismatch => ErrorCode::AddressMismatch,
            Self::Expired => ErrorCode::ChallengeExpired,
            Self::InvalidSignature => ErrorCode::InvalidSignature,
            Self::Chain(error) => chain_code(error),
        }
    }

    pub(crate) const fn retry_after_seconds(&self) -> Option<u64> {
        match self {
            Self::Chain(_) => Some(RETRY_CHAIN_SECONDS),
            _ => None,
        }
    }
}

const fn chain_trouble(error: &ChainError) -> &'static str {
    match error {
        ChainError::Unreadable(_) => {
            "The chain's record of this transaction cannot be read: it is too large. Nothing was credited; ask the operator \
             to credit the payment."
        }
        _ => "The chain cannot be read at the moment; nothing was consumed, try again.",
    }
}

const fn chain_code(error: &ChainError) -> ErrorCode {
    match error {
        ChainError::WrongChain { .. } => ErrorCode::RpcChainMismatch,
        ChainError::Unavailable(_) | ChainError::Unreadable(_) | ChainError::Disagreement(_) => ErrorCode::RpcError,
    }
}

#[cfg(test)]
mod tests;
