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
//! let (status, body) = match service.payments().quote(&request).await {
//!     Ok(quote) => (200, serde_json::to_value(quote)?),
//!     Err(error) => (error.code().status(), serde_json::to_value(error.body())?),
//! };
//! assert_eq!((status, &body["error"]), (400, &"validation_failed".into()));
//! assert_eq!(body["fields"]["payer_address"], "is required");
//! # Ok(())
//! # }
//! ```

mod account;
mod account_statement;
mod auto_top_up;
mod billing;
mod browser_sessions;
mod buyer;
mod cache_control;
#[cfg(feature = "calls")]
pub mod call;
mod chain_id;
mod checkout;
mod child_accounts;
mod deliveries;
mod email;
mod error;
mod error_code;
mod export;
mod factor;
mod field;
mod headers;
mod holds;
mod keys;
mod members;
mod metered_headers;
mod note;
mod oauth;
mod payable_members;
mod payment;
mod payment_headers;
mod plans;
mod preference;
mod processor;
mod receipt;
mod receipt_keys;
mod recovery;
mod secret;
mod shaped_error;
mod signup;
mod statement;
mod usage;
mod volumes;
mod webhook_health;
mod webhooks;

pub use account::{BalanceDocument, MemberRights};
pub use account_statement::{
    AccountStateDocument, AccountStatementDocument, PreviousLogDocument, StatementGapDocument, StatementLineDocument,
};
pub use auto_top_up::{AutoTopUpRequest, AutoTopUpResponse, CardChargeDocument, SavedCardDocument, TopUpRuleDocument};
pub use billing::{DeductRequest, DeductResponse, LookupResponse};
pub use browser_sessions::{
    BrowserSessionDocument, BrowserSessionResponse, BrowserSessionsDocument, EndedSessionsResponse,
};
pub use buyer::{BuyerDocument, BuyerRequest, BuyerResponse};
pub use cache_control::{TARGETED_CACHE_HEADERS, TARGETED_SUFFIX, private_cache_control};
pub use chain_id::ChainIdInput;
pub use checkout::{CardPlanDocument, CheckoutRequest, CheckoutResponse};
pub use child_accounts::{
    ChangeChildRequest, ChildAccountDocument, ChildAccountResponse, ChildAccountsDocument, ChildUsageEntry,
    ChildrenDay, ChildrenUsageDocument, ClosedChildResponse, CreateChildRequest, IssuedChildResponse,
    MoveCreditsRequest, MovedCreditsResponse,
};
pub use deliveries::{
    DeliveriesDocument, DeliveryDocument, DeliveryPayloadResponse, DeliveryResponse, DeliveryStatus,
    EarlierDeliveryDocument,
};
pub use email::{
    EmailVerification, LinkAccountResponse, LinkRequest, RecoverByEmailRequest, RecoverByEmailResponse,
    SendLinkResponse, SignInAccount, VerifiedResponse,
};
pub use error::{ErrorBody, Required};
pub use error_code::ErrorCode;
pub use export::AccountExportDocument;
pub use factor::Factor;
pub use headers::{
    BALANCE_HEADER, BILLING_SECRET_HEADER, CHARGED_HEADER, HELD_HEADER, IDEMPOTENCY_HEADER, MAX_COST_HEADER,
    PREFER_HEADER, PREFERENCE_APPLIED_HEADER, PRICE_VERSION_HEADER, RECEIPT_HEADER, REQUEST_ID_HEADER, SOURCE_HEADER,
    rate_headers, settled_trailers,
};
pub use holds::{
    CaptureRequest, HoldFieldNames, HoldFields, HoldRequest, HoldResponse, ReleaseRequest, RequestDocument,
    RequestState, RequestsDocument, SettleRequest,
};
pub use keys::{
    ChangeKeyRequest, CreateKeyRequest, DeletedKeyResponse, IssuedKeyResponse, KeyDocument, KeyResponse, KeyState,
    KeysDocument, LeakedKeyRequest, LeakedKeyResponse, RemainingKeyDocument, RotateKeyRequest,
};
pub use members::{
    AccountActionDocument, AccountLogDocument, ChangeMemberRequest, InvitationResponse, InviteMemberRequest,
    MemberDocument, MemberResponse, MembersDocument, RemovedMemberResponse, SignInLinkRequest, WalletSignInRequest,
    WalletSignInResponse,
};
pub use metered_headers::MeteredHeaders;
pub use note::NoteDocument;
pub use oauth::{
    AuthorizationDocument, AuthorizationRequest, ConsentRequest, ConsentResponse, OAuthErrorBody, OAuthGrantDocument,
    RegisteredClientDocument, TokenResponse,
};
pub use payable_members::PayableMembers;
pub use payment::{
    ClaimRequest, ClaimResponse, CompletionRequest, CompletionResponse, QuoteRequest, QuoteResponse,
    TopUpQuoteDocument, TopUpQuoteRequest, TopUpQuoteStatus, TopUpRequest, TopUpResponse,
};
pub use payment_headers::{
    ACCEPT_PAYMENT_HEADER, AUTHORIZATION_HEADER, CHALLENGE_HEADER, PAYMENT_AUTHORIZATION_HEADER,
    PAYMENT_RECEIPT_HEADER, PAYMENT_REQUEST_HEADERS, PAYMENT_REQUIRED_HEADER, PAYMENT_RESPONSE_HEADER,
    PAYMENT_RESPONSE_HEADERS, PAYMENT_SIGNATURE_HEADER, SIGN_IN_HEADER, X_PAYMENT_HEADER, X_PAYMENT_RESPONSE_HEADER,
    payment_credential,
};
pub use plans::{ChainDocument, EpochUnit, PlanDocument, PlansDocument};
pub use preference::prefers_receipt;
pub use processor::{
    ProcessorPaymentRequest, ProcessorPaymentResponse, ProcessorReversalRequest, ProcessorReversalResponse,
};
pub use receipt::{
    CreditNoteDocument, CustomerDocument, PaymentDocument, ReceiptDocument, ReceiptsDocument, SellerDocument,
    TaxDocument, ValueDocument,
};
pub use receipt_keys::{LogDocument, ReceiptKeyDocument, ReceiptKeysDocument};
pub use recovery::{ChallengeRequest, ChallengeResponse, VerifyRequest, VerifyResponse};
pub use secret::IssuedKey;
pub use signup::{ApproveRequest, ApproveResponse, InitiateRequest, InitiateResponse, PendingResponse, StatusResponse};
pub use statement::{DailyUsageDocument, DailyUsageEntry, LedgerDocument, LedgerEntryDocument};
pub use usage::{
    ActivityDocument, ActivityEntry, ByEndpointDocument, DayEntry, EndpointEntry, KeyEntry, UsageSummary, UsageTotals,
};
pub use volumes::{RouteVolume, VolumesDocument};
pub use webhook_health::{DeliveryCountsDocument, WebhookHealthDocument};
pub use webhooks::{
    BalanceAlertDocument, BalanceAlertRequest, ChangeWebhookRequest, CreateWebhookRequest, DeletedWebhookResponse,
    EventDocument, EventsDocument, IssuedWebhookResponse, IssuedWebhookSecret, RotateWebhookRequest, WebhookDocument,
    WebhookResponse, WebhookStatus, WebhooksDocument, present_amount,
};
