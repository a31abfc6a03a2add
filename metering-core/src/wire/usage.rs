//! Usage and activity, as the account's owner sees them.

use serde::Serialize;

use crate::access::account::AccountId;
use crate::money::credits::Credits;
use crate::usage::{Activity, DayUsage, EndpointUsage, UsageReport};

/// The response to `GET /credits/usage/summary`. It is read at one moment, so it adds up exactly.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UsageSummary {
    /// The account's id.
    pub org_id: String,
    /// Its owner's email address, if any.
    pub email: Option<String>,
    /// Credits left.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credit_balance: Credits,
    /// Credits bought in total.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub total_credits_purchased: Credits,
    /// Credits used in total, minus refunds.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub total_credits_used: Credits,
    /// Number of UTC days in the window, which ends today.
    pub window_days: u32,
    /// Sums over the window.
    pub totals: UsageTotals,
    /// Days with usage, newest first.
    pub by_day: Vec<DayEntry>,
    /// Routes, most credits first.
    pub by_endpoint: Vec<EndpointEntry>,
}

/// Sums over a window.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UsageTotals {
    /// Accepted requests.
    pub usage_events: u64,
    /// Credits used, minus refunds.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credits_used: Credits,
    /// Credits bought and granted.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credits_added: Credits,
}

/// One UTC day.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DayEntry {
    /// `YYYY-MM-DD`.
    #[cfg_attr(feature = "openapi", schema(format = Date))]
    pub day: String,
    /// Accepted requests.
    pub usage_events: u64,
    /// Credits used, minus refunds.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credits_used: Credits,
}

/// One route.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EndpointEntry {
    /// The route's template.
    pub route_template: String,
    /// The HTTP method.
    pub http_method: String,
    /// Accepted requests.
    pub call_count: u64,
    /// Credits used, minus refunds.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credits_used: Credits,
}

/// The response to `GET /credits/usage/by-endpoint`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ByEndpointDocument {
    /// The account's id.
    pub org_id: String,
    /// Number of UTC days in the window.
    pub window_days: u32,
    /// Routes, most credits first.
    pub by_endpoint: Vec<EndpointEntry>,
}

/// The response to `GET /credits/usage`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ActivityDocument {
    /// The account's id.
    pub org_id: String,
    /// Recent activity, newest first.
    pub transactions: Vec<ActivityEntry>,
}

/// An entry of recent activity.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ActivityEntry {
    /// The entry's id, unique within the account.
    pub id: String,
    /// The change of the balance: negative for usage.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub amount: Credits,
    /// `usage`, `usage_refund`, `signup_bonus`, `purchase_pay_signup`, `purchase_topup`, `adjustment`,
    /// `payment_reversed` (a reorganisation removed the payment) or `payment_restored` (it was mined again).
    #[serde(rename = "type")]
    pub kind: String,
    /// A sentence about it.
    pub description: Option<String>,
    /// The HTTP method, for usage.
    pub http_method: Option<String>,
    /// The route's template, for usage.
    pub route_template: Option<String>,
    /// The requested path, if it is the same for all requests of the entry.
    pub request_path: Option<String>,
    /// Which kind of client made the requests, for usage.
    pub client_source: Option<String>,
    /// How many requests share the entry.
    pub calls: u64,
    /// The payment's transaction, for purchases.
    pub tx_hash: Option<String>,
    /// The payment's chain, for purchases.
    pub chain_id: Option<u64>,
    /// The plan, for purchases.
    pub plan_id: Option<String>,
    /// When it happened, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub created_at: String,
}

impl UsageSummary {
    /// Converts a report of `window_days` days.
    ///
    /// Returns `None` when a sum overflows, which cannot happen in a verified store.
    #[must_use]
    pub fn new(report: UsageReport, window_days: u32) -> Option<Self> {
        let account = report.account;
        let totals = UsageTotals {
            usage_events: report.by_day.iter().map(|day| day.usage_events).sum(),
            credits_used: Credits::checked_sum(report.by_day.iter().map(|day| day.credits_used))?,
            credits_added: report.credits_added,
        };
        Some(Self {
            org_id: account.id.to_string(),
            email: account.email.as_ref().map(ToString::to_string),
            credit_balance: account.totals.balance,
            total_credits_purchased: account.totals.purchased,
            total_credits_used: account.totals.used,
            window_days,
            totals,
            by_day: report.by_day.iter().map(DayEntry::from).collect(),
            by_endpoint: report.by_endpoint.iter().map(EndpointEntry::from).collect(),
        })
    }
}

impl From<&DayUsage> for DayEntry {
    fn from(usage: &DayUsage) -> Self {
        let DayUsage { day, usage_events, credits_used } = usage;
        Self { day: day.to_string(), usage_events: *usage_events, credits_used: *credits_used }
    }
}

impl From<&EndpointUsage> for EndpointEntry {
    fn from(usage: &EndpointUsage) -> Self {
        Self {
            route_template: usage.route_template.to_string(),
            http_method: usage.http_method.to_string(),
            call_count: usage.call_count,
            credits_used: usage.credits_used,
        }
    }
}

impl ActivityDocument {
    /// Lists an account's recent activity.
    #[must_use]
    pub fn new(account: &AccountId, activity: Vec<Activity>) -> Self {
        Self { org_id: account.to_string(), transactions: activity.into_iter().map(ActivityEntry::from).collect() }
    }
}

impl From<Activity> for ActivityEntry {
    fn from(activity: Activity) -> Self {
        let line = activity.line.as_ref();
        let payment = activity.payment.as_ref();
        Self {
            id: activity.id,
            amount: activity.amount,
            kind: activity.kind.as_str().to_owned(),
            description: activity.description,
            http_method: line.map(|line| line.http_method.to_string()),
            route_template: line.map(|line| line.route_template.to_string()),
            request_path: activity.request_path.map(|path| path.to_string()),
            client_source: line.map(|line| line.source.as_str().to_owned()),
            calls: activity.calls,
            tx_hash: payment.map(|payment| payment.tx.hash.to_string()),
            chain_id: payment.map(|payment| payment.tx.chain_id),
            plan_id: payment.and_then(|payment| payment.plan_id.clone()),
            created_at: activity.created_at.to_string(),
        }
    }
}
