//! Signed authorizations that pay for requests, as stores keep them.
//!
//! An agent signs an [`Authorization`] to transfer an amount of a token (EIP-3009), and sends it with its request. It
//! is executed once by the token's contract and credited once by the store. For the usage of one request, it signs a
//! maximum with a [`Permit`], and the amount used is transferred. `metering-pay` defines how clients send it, what is
//! offered, and how it is executed.

pub(crate) mod authorization;
pub(crate) mod permit;
pub(crate) mod record;

pub use authorization::{
    Authorization, AuthorizationFault, AuthorizationNonce, AuthorizationNonceError, ExpectedTransfer,
};
pub use permit::{PERMIT2, Permit, UPTO_PROXY};
pub use record::{
    AuthorizationId, AuthorizationRecord, AuthorizationState, AuthorizedUsage, GasPlace, IdentifierHash,
    SettlementFailure, SignedAuthorization, Submission,
};
