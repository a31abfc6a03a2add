//! The report for operators.

use metering_core::chains::{Address, TokenUnits};
use metering_core::money::Credits;
use metering_core::operators::{AccountTotal, DayRevenue, DaySales, DayValue, OperationsReport, PlanSales};
use metering_core::usage::DayRange;
use metering_core::wire::EndpointEntry;
use serde::Serialize;

/// The business of a range of days, read at one moment.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReportDocument {
    /// The first UTC day, `YYYY-MM-DD`.
    #[cfg_attr(feature = "openapi", schema(format = Date))]
    pub from: String,
    /// The last UTC day, `YYYY-MM-DD`.
    #[cfg_attr(feature = "openapi", schema(format = Date))]
    pub to: String,
    /// All accounts, revoked ones too.
    pub accounts: u64,
    /// Days with anything to report, oldest first.
    pub by_day: Vec<DayRow>,
    /// What was sold, by chain, plan and token; the most credits first.
    pub sales: Vec<SalesRow>,
    /// What was paid, by day, chain and token, in this order.
    pub revenue: Vec<RevenueRow>,
    /// What that was worth, by day and currency, in this order: the values of payments in the operator's currency, and the
    /// amounts of processors. Payments without a value are left out.
    pub values: Vec<ValueRow>,
    /// The 20 routes with the most credits used.
    pub top_routes: Vec<EndpointEntry>,
    /// The 20 accounts with the most credits used.
    pub top_accounts: Vec<AccountRow>,
    /// Charges that this server refused since it started, by kind. Null on the command line.
    pub refusals: Option<RefusalsDocument>,
    /// Requests to this server whose responses did not say what they cost. Null on the command line, and where no
    /// route is priced by usage.
    pub unreported: Option<UnreportedDocument>,
}

/// One UTC day.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DayRow {
    /// `YYYY-MM-DD`.
    #[cfg_attr(feature = "openapi", schema(format = Date))]
    pub day: String,
    /// Accounts created.
    pub new_accounts: u64,
    /// Credits sold, minus reversed payments.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credits_sold: Credits,
    /// Credits granted, corrections included; may be negative.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credits_granted: Credits,
    /// Accepted requests.
    pub usage_events: u64,
    /// Credits used, minus refunds.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credits_used: Credits,
}

/// The sales of a plan in one token.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SalesRow {
    /// The chain's id (EIP-155).
    pub chain_id: u64,
    /// The plan; null for payments that were assigned without one.
    pub plan_id: Option<String>,
    /// The token's contract; the zero address for the native coin.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub token_contract: Address,
    /// The token's symbol, if known.
    pub token_symbol: Option<String>,
    /// How many payments, without reversed ones.
    pub payments: u64,
    /// Their sum in the token's smallest unit.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub amount_atomic: TokenUnits,
    /// Their sum in tokens; null if the token's decimals are not known.
    pub amount_human: Option<String>,
    /// The credits that they bought, bonus included.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credits: Credits,
}

/// What was paid on a day in one token.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RevenueRow {
    /// The UTC day, `YYYY-MM-DD`.
    #[cfg_attr(feature = "openapi", schema(format = Date))]
    pub day: String,
    /// The chain's id (EIP-155).
    pub chain_id: u64,
    /// The token's contract; the zero address for the native coin.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub token_contract: Address,
    /// The token's symbol, if known.
    pub token_symbol: Option<String>,
    /// How many payments, without reversed ones.
    pub payments: u64,
    /// Their sum in the token's smallest unit.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub amount_atomic: TokenUnits,
    /// Their sum in tokens; null if the token's decimals are not known.
    pub amount_human: Option<String>,
}

/// What payments of a day were worth in a currency.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ValueRow {
    /// The UTC day, `YYYY-MM-DD`.
    #[cfg_attr(feature = "openapi", schema(format = Date))]
    pub day: String,
    /// The currency's code (ISO 4217).
    pub currency: String,
    /// How many payments, without reversed ones.
    pub payments: u64,
    /// The sum of their values, an exact decimal.
    pub amount: String,
}

/// An account's usage.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AccountRow {
    /// The account's id.
    pub org_id: String,
    /// Its name.
    pub agent_name: String,
    /// Accepted requests.
    pub usage_events: u64,
    /// Credits used, minus refunds.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credits_used: Credits,
}

/// Charges refused, by kind.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RefusalsDocument {
    /// Since when, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub since: String,
    /// The balance was not above zero, or did not cover the hold (402).
    pub insufficient_credits: u64,
    /// A rate limit was reached (429).
    pub rate_limited: u64,
    /// The key was not live (401).
    pub unknown_key: u64,
    /// The idempotency key was used before (409).
    pub repeated: u64,
    /// Too many requests waited to be charged (503).
    pub overloaded: u64,
}

/// Requests to routes priced by usage whose responses did not say what they cost.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UnreportedDocument {
    /// Since when they are counted, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub since: String,
    /// The routes that had such requests, those with the most first.
    pub routes: Vec<UnreportedRow>,
}

/// A route that had such requests.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UnreportedRow {
    /// The route's path, with its parameters in braces.
    pub route_template: String,
    /// How many such requests it had.
    pub requests: u64,
    /// How many of them cost all that was held.
    pub in_full: u64,
    /// When the last one was settled, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub last_at: String,
}

impl ReportDocument {
    /// The document of a report about `days`.
    #[must_use]
    pub fn new(days: DayRange, report: OperationsReport) -> Self {
        Self {
            from: days.first.to_string(),
            to: days.last.to_string(),
            accounts: report.accounts,
            by_day: report.by_day.into_iter().map(DayRow::from).collect(),
            sales: report.sales.into_iter().map(SalesRow::from).collect(),
            revenue: report.revenue.into_iter().map(RevenueRow::from).collect(),
            values: report.values.iter().map(ValueRow::from).collect(),
            top_routes: report.top_routes.iter().map(EndpointEntry::from).collect(),
            top_accounts: report.top_accounts.into_iter().map(AccountRow::from).collect(),
            refusals: None,
            unreported: None,
        }
    }
}

impl From<DaySales> for DayRow {
    fn from(day: DaySales) -> Self {
        Self {
            day: day.day.to_string(),
            new_accounts: day.new_accounts,
            credits_sold: day.sold,
            credits_granted: day.granted,
            usage_events: day.usage_events,
            credits_used: day.used,
        }
    }
}

impl From<PlanSales> for SalesRow {
    fn from(sales: PlanSales) -> Self {
        let (symbol, decimals) = sales.unit.unzip();
        Self {
            chain_id: sales.chain_id,
            plan_id: sales.plan_id,
            token_contract: sales.token,
            token_symbol: symbol,
            payments: sales.payments,
            amount_atomic: sales.amount,
            amount_human: decimals.map(|decimals| sales.amount.to_human(decimals)),
            credits: sales.credits,
        }
    }
}

impl From<DayRevenue> for RevenueRow {
    fn from(revenue: DayRevenue) -> Self {
        let (symbol, decimals) = revenue.unit.unzip();
        Self {
            day: revenue.day.to_string(),
            chain_id: revenue.chain_id,
            token_contract: revenue.token,
            token_symbol: symbol,
            payments: revenue.payments,
            amount_atomic: revenue.amount,
            amount_human: decimals.map(|decimals| revenue.amount.to_human(decimals)),
        }
    }
}

impl From<&DayValue> for ValueRow {
    fn from(value: &DayValue) -> Self {
        Self {
            day: value.day.to_string(),
            currency: value.currency.to_string(),
            payments: value.payments,
            amount: value.amount.to_string(),
        }
    }
}

impl From<AccountTotal> for AccountRow {
    fn from(total: AccountTotal) -> Self {
        Self {
            org_id: total.account.to_string(),
            agent_name: total.agent_name.to_string(),
            usage_events: total.usage_events,
            credits_used: total.used,
        }
    }
}
