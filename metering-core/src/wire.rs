//! The wire: what clients see, as types. Every transport answers with these, and the OpenAPI document is made of them.

mod account;
mod billing;
mod error;
mod headers;
mod plans;
mod usage;

pub use account::BalanceDocument;
pub use billing::{DeductAnswer, DeductRequest, LookupAnswer};
pub use error::{ErrorBody, ErrorCode};
pub use headers::{BALANCE_HEADER, CHARGED_HEADER, SOURCE_HEADER, metered_headers, rate_headers, refunded_headers};
pub use plans::{ChainDocument, EpochUnit, PlanDocument, PlansDocument};
pub use usage::{
    ActivityDocument, ActivityEntry, ByEndpointDocument, DayEntry, EndpointEntry, UsageSummary, UsageTotals,
};
