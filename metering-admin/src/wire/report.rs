//! The report for operators.

use metering_core::chains::{Address, TokenUnits};
use metering_core::money::Credits;
use metering_core::operators::{AccountTotal, DayRevenue, DaySales, DayValue, OperationsReport, PlanSales};
use metering_core::usage::DayRange;
use metering_core::wire::EndpointEntry;
use serde::Serialize;

use crate::wire::document::document;

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
    /// Sales by chain, plan and token, by credits in descending order.
    pub sales: Vec<SalesRow>,
    /// Amounts paid, by day, chain and token, in this order.
    pub revenue: Vec<RevenueRow>,
    /// Their values, by day and currency, in this order: the values of payments in the operator's currency, and the
    /// amounts of processors. Payments without a value are left out.
    pub values: Vec<ValueRow>,
    /// The 20 routes with the most credits used.
    pub top_routes: Vec<EndpointEntry>,
    /// The 20 accounts with the most credits used.
    pub top_accounts: Vec<AccountRow>,
    /// Charges that this server refused since it started, by kind. Null on the command line.
    pub refusals: Option<RefusalsDocument>,
    /// Requests to this server whose responses did not report their cost. Null on the command line, and where no route
    /// is priced by usage.
    pub unreported: Option<UnreportedDocument>,
}

document! {
    /// One UTC day.
    #[derive(Debug, Clone, Serialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub struct DayRow from day: DaySales;

    /// `YYYY-MM-DD`.
    #[cfg_attr(feature = "openapi", schema(format = Date))]
    day: String = day.day.to_string(),
    /// Accounts created.
    new_accounts: u64 = day.new_accounts,
    /// Credits sold, minus reversed payments.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    credits_sold: Credits = day.sold,
    /// Credits granted, corrections included; may be negative.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    credits_granted: Credits = day.granted,
    /// Accepted requests.
    usage_events: u64 = day.usage_events,
    /// Credits used, minus refunds.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    credits_used: Credits = day.used,
}

document! {
    /// The sales of a plan in one token.
    #[derive(Debug, Clone, Serialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub struct SalesRow from sales: PlanSales;

    /// The chain's id (EIP-155).
    chain_id: u64 = sales.chain_id,
    /// The plan; null for payments that were assigned without one.
    plan_id: Option<String> = sales.plan_id,
    /// The token's contract; the zero address for the native coin.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    token_contract: Address = sales.token,
    /// The token's symbol, if known.
    token_symbol: Option<String> = sales.unit.as_ref().map(|(symbol, _)| symbol.clone()),
    /// How many payments, without reversed ones.
    payments: u64 = sales.payments,
    /// Their sum in the token's smallest unit.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    amount_atomic: TokenUnits = sales.amount,
    /// Their sum in tokens; null if the token's decimals are unknown.
    amount_human: Option<String> = sales.unit.map(|(_, decimals)| sales.amount.to_human(decimals)),
    /// The credits that they bought, bonus included.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    credits: Credits = sales.credits,
}

document! {
    /// The amount paid on a day in one token.
    #[derive(Debug, Clone, Serialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub struct RevenueRow from revenue: DayRevenue;

    /// The UTC day, `YYYY-MM-DD`.
    #[cfg_attr(feature = "openapi", schema(format = Date))]
    day: String = revenue.day.to_string(),
    /// The chain's id (EIP-155).
    chain_id: u64 = revenue.chain_id,
    /// The token's contract; the zero address for the native coin.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    token_contract: Address = revenue.token,
    /// The token's symbol, if known.
    token_symbol: Option<String> = revenue.unit.as_ref().map(|(symbol, _)| symbol.clone()),
    /// How many payments, without reversed ones.
    payments: u64 = revenue.payments,
    /// Their sum in the token's smallest unit.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    amount_atomic: TokenUnits = revenue.amount,
    /// Their sum in tokens; null if the token's decimals are unknown.
    amount_human: Option<String> = revenue.unit.map(|(_, decimals)| revenue.amount.to_human(decimals)),
}

document! {
    /// The value of a day's payments in a currency.
    #[derive(Debug, Clone, Serialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub struct ValueRow from value: &DayValue;

    /// The UTC day, `YYYY-MM-DD`.
    #[cfg_attr(feature = "openapi", schema(format = Date))]
    day: String = value.day.to_string(),
    /// The currency's code (ISO 4217).
    currency: String = value.currency.to_string(),
    /// How many payments, without reversed ones.
    payments: u64 = value.payments,
    /// The sum of their values, an exact decimal.
    amount: String = value.amount.to_string(),
}

document! {
    /// An account's usage.
    #[derive(Debug, Clone, Serialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub struct AccountRow from total: AccountTotal;

    /// The account's id.
    org_id: String = total.account.to_string(),
    /// Its name.
    agent_name: String = total.agent_name.to_string(),
    /// Accepted requests.
    usage_events: u64 = total.usage_events,
    /// Credits used, minus refunds.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    credits_used: Credits = total.used,
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

/// Requests to routes priced by usage whose responses did not report their cost.
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
    /// How many of them cost the whole hold.
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
