//! The chain access needed to settle authorizations: a reader of tokens, and an executor of authorizations.

use std::fmt;

use async_trait::async_trait;
use metering_core::chains::Address;
use metering_core::chains::ChainError;
use metering_core::chains::TokenUnits;
use metering_core::chains::TxHash;
use metering_core::clock::Timestamp;
use metering_core::offers::{AuthorizationId, SignedAuthorization, Submission};

use crate::offers::listing::Listing;
use crate::offers::offer::{Asset, Offer};

/// Reads tokens with signed authorizations (EIP-3009) on one chain. As with a
/// [`ChainReader`](metering_core::chains::ChainReader), callers trust its results, and anything uncertain is an error.
#[async_trait]
pub trait TokenReader: Send + Sync + fmt::Debug {
    /// A token as it can be offered: its decimals, and the name and version that its signatures are bound to. These are
    /// the contract's own values (`eip712Domain()` of EIP-5267, or else `name()` and `version()`), and they yield its
    /// own `DOMAIN_SEPARATOR()`. `None` when there is no such token, or its authorizations cannot be checked.
    async fn asset(&self, token: Address) -> Result<Option<Asset>, ChainError>;

    /// Whether the contract has executed or cancelled an authorization (`authorizationState`).
    async fn is_used(&self, id: &AuthorizationId) -> Result<bool, ChainError>;

    /// The transaction that executed an authorization, by its `AuthorizationUsed` event in the blocks since about this
    /// time. `None` when there is none: the authorization is unused, was cancelled, or was executed before that block.
    async fn executed_in(&self, id: &AuthorizationId, since: Timestamp) -> Result<Option<TxHash>, ChainError>;

    /// Whether Permit2 has executed or cancelled a permit with this payer and nonce (`nonceBitmap`), for any token.
    async fn is_permit_used(&self, id: &AuthorizationId) -> Result<bool, ChainError>;

    /// The amount of a token that Permit2 could transfer now.
    async fn spendable(&self, token: Address, owner: Address) -> Result<Spendable, ChainError>;
}

/// The amount of a wallet's tokens that Permit2 could transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spendable {
    /// The wallet's balance.
    pub balance: TokenUnits,
    /// The amount of it that Permit2 may transfer (`allowance`).
    pub allowance: TokenUnits,
}

/// Executes authorizations with transactions of its own wallet, which holds only coins for gas.
///
/// With `used`, an authorization is a permit ([`Permit`](crate::offers::Permit)) whose facilitator is the wallet, and that
/// much of it is transferred.
///
/// Every transaction is signed and stored before it is sent, and has a place among those of the wallet, so it can be
/// sent again at any time and is executed at most once.
#[async_trait]
pub trait Submitter: Send + Sync + fmt::Debug {
    /// The wallet.
    fn wallet(&self) -> Address;

    /// How many of the wallet's transactions are in the chain.
    async fn mined(&self) -> Result<u64, SubmitError>;

    /// The wallet's balance, and the maximum cost of a transaction now.
    async fn funds(&self) -> Result<GasFunds, SubmitError>;

    /// Checks whether the contract would execute an authorization now, and whether the wallet can pay for it.
    async fn check(&self, signed: &SignedAuthorization, used: Option<TokenUnits>) -> Result<(), SubmitError>;

    /// Signs the transaction that executes an authorization, at this place. It pays more than `replaced`, which have
    /// the same place, so nodes accept it instead of them.
    async fn sign(
        &self,
        signed: &SignedAuthorization,
        used: Option<TokenUnits>,
        place: u64,
        replaced: &[Submission],
        now: Timestamp,
    ) -> Result<Submission, SubmitError>;

    /// Signs a transaction that does nothing except use up this place.
    async fn sign_nothing(
        &self,
        place: u64,
        replaced: &[Submission],
        now: Timestamp,
    ) -> Result<Submission, SubmitError>;

    /// Sends a transaction. It is not an error if it was sent before, or is already in a block.
    async fn send(&self, submission: &Submission) -> Result<(), SubmitError>;
}

/// A wallet that can pay for fewer transactions than this is low.
const LOW: u128 = 20;

/// The remaining balance of a wallet that pays gas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GasFunds {
    /// Its coins, in the smallest unit of the chain's coin.
    pub balance: TokenUnits,
    /// The most that a usual transaction, which executes one authorization, may cost now; in the same unit.
    pub cost: TokenUnits,
}

impl GasFunds {
    /// How many usual transactions the wallet can pay for.
    ///
    /// ```
    /// use metering_core::chains::TokenUnits;
    /// use metering_pay::offers::GasFunds;
    ///
    /// let funds = GasFunds { balance: TokenUnits::new(1_999), cost: TokenUnits::new(100) };
    /// assert_eq!(funds.transactions(), 19);
    /// ```
    #[must_use]
    pub fn transactions(self) -> u128 {
        // Gas that costs nothing never runs out.
        self.balance.get().checked_div(self.cost.get()).unwrap_or(u128::MAX)
    }

    /// Whether the wallet should be refilled: it can pay for fewer than 20 usual transactions.
    #[must_use]
    pub fn is_low(self) -> bool {
        self.transactions() < LOW
    }
}

/// Why an authorization was not submitted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SubmitError {
    /// The token's contract would not execute it now: the payer has too few tokens, the token blocks the payer, or the
    /// authorization is invalid, used or expired.
    #[error("the token's contract would refuse it: {0}")]
    WouldFail(String),
    /// The transfer needs more gas than the operator pays for: the payer's wallet is an expensive contract.
    #[error("it needs {need} gas, and this service pays for {limit} at most")]
    GasAboveLimit {
        /// The gas that it would use.
        need: u64,
        /// The limit.
        limit: u64,
    },
    /// The wallet has too few coins for the gas.
    #[error("the gas wallet has {} wei, and needs {}", have.get(), need.get())]
    ShortOfGas {
        /// What it has.
        have: TokenUnits,
        /// The maximum cost of the transaction.
        need: TokenUnits,
    },
    /// The fees are above the operator's limit.
    #[error("the fee would be up to {} wei, above the limit of {}", need.get(), limit.get())]
    FeesAboveLimit {
        /// The maximum cost of the transaction.
        need: TokenUnits,
        /// The limit.
        limit: TokenUnits,
    },
    /// Another transaction has the place, so this one will not be executed.
    #[error("another transaction of the gas wallet has its place")]
    PlaceTaken,
    /// The chain could not be reached or read. It may have been sent.
    #[error(transparent)]
    Chain(#[from] ChainError),
}

impl SubmitError {
    /// Why this authorization is not executed, if that is its payer's doing and not a failure of the wallet or a
    /// source.
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        match self {
            Self::WouldFail(reason) => Some(reason.clone()),
            Self::GasAboveLimit { .. } => Some(self.to_string()),
            _ => None,
        }
    }
}

/// Executes authorizations for others: a facilitator of x402. With the `listing` of a payment, it may list the
/// resource.
#[async_trait]
pub trait Facilitator: Send + Sync + fmt::Debug {
    /// Asks whether it would execute a payment of an offer.
    async fn verify(
        &self,
        signed: &SignedAuthorization,
        offer: &Offer,
        listing: Option<&Listing>,
    ) -> Result<(), FacilitatorError>;

    /// Executes a payment. Returns its transaction. It may be called again for the same payment.
    async fn settle(
        &self,
        signed: &SignedAuthorization,
        offer: &Offer,
        listing: Option<&Listing>,
    ) -> Result<TxHash, FacilitatorError>;
}

/// Why a facilitator did not execute a payment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FacilitatorError {
    /// It refuses the payment.
    #[error("the facilitator refuses the payment: {0}")]
    Refused(String),
    /// The payment may have been executed, or may still be: the response was lost or inconclusive.
    #[error("the facilitator has not finished the payment: {0}")]
    Unfinished(String),
    /// It could not be reached.
    #[error("the facilitator is not available: {0}")]
    Unavailable(String),
}
