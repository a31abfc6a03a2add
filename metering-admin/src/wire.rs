//! The documents of administration: what `/admin` takes and returns, and what `metering admin --json` prints.
//!
//! Requests and responses can be written and read, because `metering admin --server` is a client of `/admin`.

mod accounts;
mod arrivals;
mod attention;
mod audit;
mod credited;
mod document;
mod erasure;
mod keys;
mod members;
mod operators;
mod payments;
mod plans;
mod prices;
mod refills;
mod rehearsal;
mod reload;
mod report;
mod requests;
mod search;
mod usage;
mod verification;
mod webhooks;

pub use accounts::{
    AccountDocument, AccountFamilyDocument, AccountsDocument, CreateAccountRequest, CreatedAccountDocument,
    EntryRequest, LimitsRequest, NoteRequest,
};
pub use arrivals::{ArrivalDocument, ArrivalsDocument, QuotedDocument, ScannedDocument, UnreadableDocument};
pub use attention::{
    AttentionDocument, AttentionNextDocument, FailingSinkDocument, FailingWebhookDocument, NearestPlanDocument,
    PaidBeforeDocument, RevokedPaymentDocument, RunwayDocument, UnclaimedDocument, UnpaidUsageDocument,
};
pub use audit::{AuditDocument, AuditEntryDocument, AuditOutcomeDocument};
pub use credited::{AssignmentDetails, AssignmentDocument, PaymentRecordDocument, PaymentRecordsDocument};
pub use erasure::{EraseRequest, ErasedRow, ErasureDocument};
pub use keys::{KeyChangeRequest, KeyRotationRequest, NewKeyRequest};
pub use members::AccountMembersDocument;
pub use operators::{
    CreateOperatorRequest, CreatedOperatorDocument, IssuedToken, OperatorDocument, OperatorsDocument, ReasonRequest,
};
pub use payments::AssignRequest;
pub use plans::{CatalogueCheckDocument, PlanReply, PlanRequest, PlanRow, PlansDocument, RouteChange};
pub use prices::{ApplyCatalogueRequest, PriceVersionDocument, PriceVersionsDocument};
pub use refills::{RefillDocument, RefillRequest, RefillRow};
pub use rehearsal::{RehearsalDocument, RehearsedAccount, RehearsedRoute, RehearsedUsage, RunOut};
pub use reload::ReloadDocument;
pub use report::{
    AccountRow, DayRow, RefusalsDocument, ReportDocument, RevenueRow, SalesRow, UnreportedDocument, UnreportedRow,
    ValueRow,
};
pub use requests::{AccountRequestDocument, AccountRequestsDocument};
pub use search::{ChargedRequestDocument, FoundKeyDocument, SearchDocument};
pub use usage::{AccountUsageDocument, AccountsUsageDocument, AllUsageDocument};
pub use verification::{DiscrepancyDocument, VerificationDocument};
pub use webhooks::AccountAlertRequest;

crate::call::reasoned!(
    AccountAlertRequest,
    ApplyCatalogueRequest,
    CreateAccountRequest,
    CreateOperatorRequest,
    EntryRequest,
    EraseRequest,
    KeyChangeRequest,
    KeyRotationRequest,
    LimitsRequest,
    NewKeyRequest,
    PlanRequest,
    ReasonRequest,
    RefillRequest,
);
