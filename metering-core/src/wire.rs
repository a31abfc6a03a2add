//! The wire types: requests and responses as clients see them. Every transport uses these, and the OpenAPI document is
//! generated from them.

mod account;
mod billing;
mod chain_id;
mod error;
mod error_code;
mod headers;
mod payment;
mod plans;
mod recovery;
mod secret;
mod signup;
mod usage;

pub use account::BalanceDocument;
pub use billing::{DeductRequest, DeductResponse, LookupResponse};
pub use chain_id::ChainIdInput;
pub use error::{ErrorBody, Required};
pub use error_code::ErrorCode;
pub use headers::{
    BALANCE_HEADER, CHARGED_HEADER, IDEMPOTENCY_HEADER, SOURCE_HEADER, metered_headers, rate_headers, refunded_headers,
};
pub use payment::{ClaimRequest, ClaimResponse, QuoteRequest, QuoteResponse, TopUpRequest, TopUpResponse};
pub use plans::{ChainDocument, EpochUnit, PlanDocument, PlansDocument};
pub use recovery::{ChallengeRequest, ChallengeResponse, VerifyRequest, VerifyResponse};
pub use secret::IssuedKey;
pub use signup::{ApproveRequest, ApproveResponse, InitiateRequest, InitiateResponse, PendingResponse, StatusResponse};
pub use usage::{
    ActivityDocument, ActivityEntry, ByEndpointDocument, DayEntry, EndpointEntry, UsageSummary, UsageTotals,
};
