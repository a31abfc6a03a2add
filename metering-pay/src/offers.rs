//! The offers of a 402 for agents that pay automatically, the signed authorizations that they pay with, and the rules
//! for executing those.

pub(crate) mod limit;
pub(crate) mod listing;
pub(crate) mod offer;
pub(crate) mod progress;
pub(crate) mod refusal;
pub(crate) mod reverts;
pub(crate) mod settler;
pub(crate) mod sign_in_refusal;
pub(crate) mod statement_signer;

pub use limit::{PaymentAttempt, PaymentLimit, PaymentSource, TooManyPayments};
pub use listing::Listing;
pub use metering_core::offers::{
    Authorization, AuthorizationFault, AuthorizationId, AuthorizationNonce, AuthorizationNonceError,
    AuthorizationRecord, AuthorizationState, AuthorizedUsage, ExpectedTransfer, GasPlace, IdentifierHash, PERMIT2,
    Permit, SettlementFailure, SignedAuthorization, Submission, UPTO_PROXY,
};
pub use offer::{Asset, Network, NetworkError, Offer, OfferError, Offers, UsageOffer};
pub use progress::{NextStep, Observation, OwnTransaction, SettlementPolicy, next_step};
pub use refusal::PayRefusal;
pub use reverts::{CodeHash, Exposure, RevertBook, RevertLimits, RevertPause, RevertSubject, RevertTurn};
pub use settler::{Facilitator, FacilitatorError, GasFunds, Spendable, SubmitError, Submitter, TokenReader};
pub use sign_in_refusal::SignInRefusal;
pub use statement_signer::{StatementSignature, StatementSigner};
