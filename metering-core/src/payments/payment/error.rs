//! Why a purchase or a key rotation was refused.

use std::collections::BTreeMap;

use crate::chains::address::Address;
use crate::chains::chain::ChainError;
use crate::payments::payment::PaymentFault;
use crate::payments::processor::ProcessorRef;
use crate::payments::quote::Quote;
use crate::wire::{ErrorBody, ErrorCode, Required};

/// `Retry-After` for a payment that is not on the chain yet, or needs more confirmations: about one block.
const RETRY_NEXT_BLOCK_SECONDS: u64 = 12;
/// `Retry-After` when the chain could not be read.
const RETRY_CHAIN_SECONDS: u64 = 5;
/// `Retry-After` when too many quotes are open: some may have expired by then.
const RETRY_QUOTES_SECONDS: u64 = 60;

/// Why a quote, a claim or a top-up was refused.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum PaymentError {
    /// Fields that a top-up needs are missing.
    #[error("The request is not valid: {}.", crate::error::list(fields))]
    Incomplete {
        /// The problems, by field.
        fields: BTreeMap<String, String>,
        /// URL of the list of plans.
        plans_url: Option<String>,
    },
    /// A top-up names no transaction.
    #[error(
        "There is no checkout here, so nothing was charged: pay a plan from a wallet, and send plan_id, chain_id and the \
         payment's tx_hash. The plans say what to pay, and where."
    )]
    NoCheckout {
        /// URL of the list of plans.
        plans_url: Option<String>,
    },
    /// No plan can be paid on that chain.
    #[error("Plans cannot be paid on chain {0}.")]
    UnsupportedChain(u64),
    /// No active plan has that id on that chain.
    #[error("There is no plan with that id on that chain.")]
    UnknownPlan,
    /// The plan is paid with another token.
    #[error("The plan is paid in {expected}, not in {found}.")]
    UnsupportedToken {
        /// The plan's token.
        expected: String,
        /// The token in the request.
        found: String,
    },
    /// Payments are not configured for that chain, or the plan's configuration is wrong.
    #[error("Payments are not set up for this plan; choose another plan. The server's log has the cause.")]
    NotConfigured,
    /// An account already has the email address.
    #[error("An account with this email address already exists; use its key, or another address.")]
    EmailTaken,
    /// The wallet already has an account.
    #[error("This wallet already has an account: register the payment as a top-up, or get a new key with this wallet.")]
    PayerTaken,
    /// The payer is a contract, and the plan is paid in the native coin.
    #[error(
        "Do not pay: {} is a contract on chain {chain_id}, and a contract's payment in the native coin cannot be \
         credited. Choose a plan that is paid in a token, or pay from a wallet whose private key you hold.",
        payer.to_checksummed()
    )]
    ContractPayer {
        /// The contract.
        payer: Address,
        /// The chain that it is on.
        chain_id: u64,
    },
    /// Every amount that was tried is reserved by another quote.
    #[error("Too many quotes for this price are open; try again later, or choose another plan.")]
    QuotesExhausted,
    /// The account has reached its limit of unpaid top-up quotes.
    #[error(
        "This account has {} unpaid top-up quotes, the most it may have. Pay one of them, or try again in {retry_after_sec} s.",
        Quote::MAX_TOP_UPS
    )]
    TooManyTopUpQuotes {
        /// When the oldest one stops counting, in seconds.
        retry_after_sec: u64,
    },
    /// The text is not a transaction hash.
    #[error("tx_hash must be a transaction hash: 0x followed by 64 hexadecimal digits.")]
    InvalidTxHash,
    /// No quote has that nonce.
    #[error("No quote has this signup_nonce; get a new quote.")]
    UnknownQuote,
    /// The account has no top-up quote with that id.
    #[error("This account has no top-up quote with this quote_id; get a new one.")]
    UnknownTopUpQuote,
    /// The quote was already claimed.
    #[error("This quote was already claimed. If you lost the key, get a new one with the wallet that paid.")]
    AlreadyClaimed,
    /// The chain could not be read.
    #[error("{}", chain_problem(.0))]
    Chain(ChainError),
    /// The chain has no such transaction yet.
    #[error("The chain does not know this transaction yet; if you just sent it, try again.")]
    TxNotFound,
    /// The transaction is not the payment that was expected.
    #[error(transparent)]
    Unfit(PaymentFault),
    /// The transaction is not the claimed quote's payment, but that of another open quote of the same wallet.
    #[error(
        "{fault} Another open quote of this wallet expects exactly this payment: claim it with that quote's signup_nonce. \
         {failed}If you do not have it, sign `proof_message` unchanged with the wallet that paid (EIP-191, \
         personal_sign), and send the same claim again with the result as `signature`.",
        failed = if *.is_signed { "The signature is not by that wallet. " } else { "" }
    )]
    OtherQuote {
        /// Why the claimed quote is not paid.
        fault: PaymentFault,
        /// The text to sign, unchanged (EIP-191).
        message: String,
        /// Whether a signature came with the claim.
        is_signed: bool,
    },
    /// The transaction opened an account, by another quote of the claimed quote's wallet.
    #[error(
        "This payment already opened an account, by another quote of this wallet. Get its key with the wallet: \
         POST /api-key/recover/challenge, or `metering rotate`."
    )]
    OpenedAccount,
    /// The transaction was used before.
    #[error("This transaction was already used; each transaction pays once.")]
    TxUsed,
    /// An open quote expects this payment.
    #[error(
        "An open quote expects exactly this payment. If it is your signup quote, claim it; otherwise send the paying \
         wallet's signature to credit the payment to this account."
    )]
    Reserved,
    /// The payer has not consented yet, and must sign a message.
    #[error("{message}")]
    ProofRequired {
        /// The text to sign, unchanged (EIP-191).
        message: String,
        /// How to use the message.
        hint: String,
        /// The page where the payer can sign it in a browser.
        complete_url: Option<String>,
    },
    /// There is no account with that id, or it is revoked.
    #[error("No account has this org_id. Nothing was credited; check the address that you were sent.")]
    UnknownAccount,
    /// The processor's payment or reversal was recorded on other terms.
    #[error(
        "{} at {} was recorded with another {field}: {recorded}. Nothing was changed; each id counts once, on its first \
         terms.", .id.id(), .id.processor()
    )]
    OtherTerms {
        /// The payment or reversal.
        id: ProcessorRef,
        /// The difference.
        field: &'static str,
        /// What it was.
        recorded: String,
    },
    /// No such payment of a processor was recorded.
    #[error(
        "No payment {} at {} was recorded. Nothing was reversed; report the payment first, then this again.",
        .0.id(), .0.processor()
    )]
    NoProcessorPayment(ProcessorRef),
    /// The text is not a signature.
    #[error("signature {0}.")]
    MalformedProof(crate::chains::signature::WalletSignatureError),
}

impl PaymentError {
    pub(crate) const fn code(&self) -> ErrorCode {
        match self {
            Self::Incomplete { .. } => ErrorCode::ValidationFailed,
            Self::NoCheckout { .. } => ErrorCode::CheckoutNotAvailable,
            Self::UnsupportedChain(_) => ErrorCode::UnsupportedChain,
            Self::UnknownPlan => ErrorCode::UnknownPlan,
            Self::UnsupportedToken { .. } => ErrorCode::UnsupportedToken,
            Self::NotConfigured => ErrorCode::PaymentNotConfigured,
            Self::EmailTaken => ErrorCode::EmailAlreadyRegistered,
            Self::PayerTaken => ErrorCode::PayerAlreadyRegistered,
            Self::ContractPayer { .. } => ErrorCode::PayerIsContract,
            Self::QuotesExhausted | Self::TooManyTopUpQuotes { .. } => ErrorCode::QuotesExhausted,
            Self::InvalidTxHash => ErrorCode::InvalidTxHash,
            Self::UnknownQuote | Self::UnknownTopUpQuote | Self::UnknownAccount | Self::NoProcessorPayment(_) => {
                ErrorCode::NotFound
            }
            Self::OtherTerms { .. } => ErrorCode::Conflict,
            Self::AlreadyClaimed => ErrorCode::AlreadyClaimed,
            Self::Chain(error) => chain_code(error),
            Self::TxNotFound => ErrorCode::TxNotFound,
            Self::Unfit(fault) => fault.code(),
            Self::OtherQuote { fault, .. } => fault.code(),
            Self::TxUsed | Self::OpenedAccount => ErrorCode::TxAlreadyUsed,
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
            Self::TooManyTopUpQuotes { retry_after_sec } => Some(*retry_after_sec),
            _ => None,
        }
    }

    pub(crate) fn add_context(&self, body: &mut ErrorBody) {
        match self {
            Self::Incomplete { fields, plans_url } => {
                body.fields = Some(fields.clone());
                body.plans_url.clone_from(plans_url);
            }
            Self::NoCheckout { plans_url } => body.plans_url.clone_from(plans_url),
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
            Self::OtherQuote { fault, message, .. } => {
                (body.expected, body.found) = fault.expected_and_found().unzip();
                body.proof_message = Some(message.clone());
            }
            Self::ProofRequired { hint, complete_url, .. } => {
                (body.hint, body.complete_url) = (Some(hint.clone()), complete_url.clone());
            }
            _ => {}
        }
    }
}

/// Why a key was not rotated.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum RecoveryError {
    /// The wallet has not paid for an account.
    #[error(
        "This wallet has not paid for an account; only the wallet that paid for an account's signup can rotate its key."
    )]
    NoLinkedWallet,
    /// There is no such challenge, or it was used.
    #[error("No open challenge has this nonce; get a new one.")]
    UnknownChallenge,
    /// The challenge was made for another address.
    #[error("The challenge was made for another address.")]
    AddressMismatch,
    /// The challenge expired.
    #[error("The challenge expired; get a new one.")]
    Expired,
    /// The wallet did not sign the challenge's message.
    #[error(
        "This address did not sign the challenge's message: sign the message unchanged (EIP-191, personal_sign) and \
         send all 65 bytes as hexadecimal digits after 0x. After five wrong signatures the challenge is void."
    )]
    InvalidSignature,
    /// The chain of a smart-contract wallet could not be read.
    #[error("The chain cannot be read right now, so the signature was not checked. Nothing has changed; try again.")]
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

const fn chain_problem(error: &ChainError) -> &'static str {
    match error {
        ChainError::Unreadable(_) => {
            "The chain's record of this transaction is too large to read. Nothing was credited; ask the operator to \
             credit the payment."
        }
        _ => "The chain cannot be read right now. Nothing was credited and nothing is lost; try again.",
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
