//! The wire types: requests and responses as clients see them. Every transport uses these, and the OpenAPI document is
//! generated from them.
//!
//! A handler, in any HTTP library:
//!
//! ```
//! use metering_core::wire::QuoteRequest;
//! use metering_core::{MemoryStore, Service};
//! # use std::sync::Arc;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let service = Service::with_defaults(Arc::new(MemoryStore::new()));
//! let request: QuoteRequest = serde_json::from_str(r#"{"agent_name": "my-agent", "plan_id": "starter"}"#)?;
//! let (status, body) = match service.quote(&request).await {
//!     Ok(quote) => (200, serde_json::to_value(quote)?),
//!     Err(error) => (error.code().status(), serde_json::to_value(error.body())?),
//! };
//! assert_eq!((status, &body["error"]), (400, &"validation_failed".into()));
//! assert_eq!(body["fields"]["payer_address"], "is required");
//! # Ok(())
//! # }
//! ```

mod account;
pub mod admin;
mod arrivals;
mod billing;
mod chain_id;
mod credited;
mod email;
mod error;
mod error_code;
mod field;
mod headers;
mod holds;
mod keys;
mod payment;
mod plans;
mod receipt;
mod recovery;
mod secret;
mod signup;
mod statement;
mod usage;
mod webhooks;

pub use account::BalanceDocument;
pub use arrivals::{ArrivalDocument, ArrivalsDocument, QuotedDocument, ScannedDocument, UnreadableDocument};
pub use billing::{DeductRequest, DeductResponse, LookupResponse};
pub use chain_id::ChainIdInput;
pub use credited::{AssignmentDetails, AssignmentDocument, PaymentRecordDocument, PaymentRecordsDocument};
pub use email::{
    EmailVerification, LinkRequest, RecoverByEmailRequest, RecoverByEmailResponse, SendLinkResponse, VerifiedResponse,
};
pub use error::{ErrorBody, Required};
pub use error_code::ErrorCode;
pub use headers::{
    BALANCE_HEADER, CHARGED_HEADER, HELD_HEADER, IDEMPOTENCY_HEADER, REQUEST_ID_HEADER, SOURCE_HEADER, metered_headers,
    rate_headers, refunded_headers, settled_headers, settled_trailers,
};
pub use holds::{
    CaptureRequest, HoldFieldNames, HoldFields, HoldRequest, HoldResponse, ReleaseRequest, RequestDocument,
    RequestState, RequestsDocument,
};
pub use keys::{
    ChangeKeyRequest, CreateKeyRequest, DeletedKeyResponse, IssuedKeyResponse, KeyDocument, KeyResponse, KeyState,
    KeysDocument, LeakedKeyRequest, LeakedKeyResponse, RemainingKeyDocument, RotateKeyRequest,
};
pub use payment::{
    ClaimRequest, ClaimResponse, QuoteRequest, QuoteResponse, TopUpQuoteDocument, TopUpQuoteRequest, TopUpQuoteStatus,
    TopUpRequest, TopUpResponse,
};
pub use plans::{ChainDocument, EpochUnit, PlanDocument, PlansDocument};
pub use receipt::{CustomerDocument, PaymentDocument, ReceiptDocument, ReceiptsDocument, SellerDocument};
pub use recovery::{ChallengeRequest, ChallengeResponse, VerifyRequest, VerifyResponse};
pub use secret::IssuedKey;
pub use signup::{ApproveRequest, ApproveResponse, InitiateRequest, InitiateResponse, PendingResponse, StatusResponse};
pub use statement::{DailyUsageDocument, DailyUsageEntry, LedgerDocument, LedgerEntryDocument};
pub use usage::{
    ActivityDocument, ActivityEntry, ByEndpointDocument, DayEntry, EndpointEntry, KeyEntry, UsageSummary, UsageTotals,
};
pub use webhooks::{
    BalanceAlertDocument, BalanceAlertRequest, ChangeWebhookRequest, CreateWebhookRequest, DeletedWebhookResponse,
    DeliveriesDocument, DeliveryDocument, DeliveryResponse, DeliveryStatus, EventDocument, EventsDocument,
    IssuedWebhookResponse, IssuedWebhookSecret, RotateWebhookRequest, WebhookDocument, WebhookResponse, WebhookStatus,
    WebhooksDocument,
};
