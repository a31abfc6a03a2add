//! Signed authorizations that pay for requests, as stores keep them.
//!
//! An agent signs an [`Authorization`] to transfer an amount of a token (EIP-3009), and sends it with its request. It is
//! executed once by the token's contract and credited once by the store. How clients send it, what is offered, and how
//! it is executed, is in `metering-pay`.

pub(crate) mod authorization;
pub(crate) mod record;

pub use authorization::{
    Authorization, AuthorizationFault, AuthorizationNonce, AuthorizationNonceError, ExpectedTransfer,
};
pub use record::{
    AuthorizationId, AuthorizationRecord, AuthorizationState, GasPlace, IdentifierHash, SettlementFailure,
    SignedAuthorization, Submission,
};
