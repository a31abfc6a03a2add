//! Payable refusals: what a 402 offers to agents that pay automatically, and the signed authorizations that they pay
//! with.
//!
//! An agent signs an [`Authorization`] to transfer the amount of an [`Offer`] (EIP-3009), and sends it with its
//! request. The service submits it to the token's contract and credits what the offer says. An authorization is
//! executed once by its contract and credited once by the store. The formats on the wire, such as x402, are in
//! [`wire`](crate::wire).
//!
//! The steps: a charge is refused, and `Service::payment_notice` adds offers to the 402. The client repeats the request
//! with an authorization, which `Service::pay` checks before anything is written: offer, recipient, amount, times,
//! signature, and whether it could be executed. `open_authorization` stores it with a claim; its nonce is the key, so
//! two servers open it once. A task that outlives the request takes the steps that [`next_step`] returns, and stores a
//! transaction before it sends it. `credit_authorization` writes payment, ledger entry and state in one transaction.
//! Then the request is charged like any other. If the process dies, `Service::settle_authorizations` of another one
//! claims the authorization and continues.

pub(crate) mod authorization;
pub(crate) mod limit;
pub(crate) mod offer;
pub(crate) mod progress;
pub(crate) mod record;
pub(crate) mod refusal;
pub(crate) mod reverts;
pub(crate) mod settler;
pub(crate) mod sign_in_refusal;

pub use authorization::{
    Authorization, AuthorizationFault, AuthorizationNonce, AuthorizationNonceError, ExpectedTransfer,
};
pub use limit::{PaymentAttempt, PaymentLimit, PaymentSource, TooManyPayments};
pub use offer::{Asset, Network, NetworkError, Offer, OfferError, Offers};
pub use progress::{NextStep, Observation, OwnTransaction, SettlementPolicy, next_step};
pub use record::{
    AuthorizationId, AuthorizationRecord, AuthorizationState, GasPlace, IdentifierHash, SettlementFailure,
    SignedAuthorization, Submission,
};
pub use refusal::PayRefusal;
pub use reverts::{CodeHash, Exposure, RevertBook, RevertLimits, RevertPause, RevertSubject, RevertTurn};
pub use settler::{Facilitator, FacilitatorError, GasFunds, SubmitError, Submitter, TokenReader};
pub use sign_in_refusal::SignInRefusal;
