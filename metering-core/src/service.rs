//! The service's operations, without a transport. The server's handlers, the layer and the tools all call these.
//!
//! [`Service`](crate::Service) builds the service and charges requests. The rest is in handles by subject, such as
//! [`Keys`], each with the parts of the service that it needs.

mod access;
mod accounts;
mod billing;
mod browser_sessions;
mod charged_request;
mod child_accounts;
pub(crate) mod config;
mod emails;
mod export;
mod fields;
mod gate;
mod holds;
mod keys;
mod members;
pub(crate) mod metering;
mod notes;
mod oauth;
mod offers;
mod payments;
mod prices;
mod receipt_setup;
mod receipts;
mod recovery;
mod refund;
mod request_payments;
mod settings;
mod signups;
mod usage;
mod used_routes;
mod webhooks;

pub use crate::payments::Seller;
pub use access::Access;
pub use browser_sessions::{BrowserSessions, OpenedSession};
pub use charged_request::ChargedRequest;
pub use child_accounts::ChildAccounts;
pub use config::Links;
pub use emails::{Emails, link_accepted};
pub use gate::{Admission, AdmissionKind, MatchedRequest, Proxied, RequestContent, RequestHead};
pub use holds::Holds;
pub use keys::{Keys, TermsReader, end_of_grace, wider_terms};
pub use members::{BegunAction, Members};
pub use notes::account_notes;
pub use oauth::{OAuth, OAuthError, TokenForm};
pub use offers::Offers;
pub use payments::{Arrivals, Payments, SettlementReport, WatchReport, arrivals, payment_targets};
pub use recovery::Recovery;
pub use refund::RefundResult;
pub use request_payments::{
    ChallengeClient, HeaderValues, Paid, PaymentNotice, RequestPayment, RequestPayments, RequestedResource,
};
pub use settings::{BillingSettings, PaymentSettings, SignupSettings, WebhookSettings};
pub use signups::Signups;
pub use usage::{ActivityQuery, Usage, lifetime_events};
pub use used_routes::UsedRoutes;
pub use webhooks::{Webhooks, described_webhook, find_delivery, read_threshold};
