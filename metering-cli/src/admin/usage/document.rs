//! Usage in JSON. A report has the field names of `GET /credits/usage/summary`.

use std::sync::Arc;

use metering_core::access::{AgentName, Email};
use metering_core::usage::{DayUsage, EndpointUsage, UsageReport};
use metering_core::{AccountId, Credits, Day};
use serde::Serialize;

use crate::failure::Failure;

/// The totals of a range of days.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Totals {
    pub(crate) usage_events: u64,
    pub(crate) credits_used: Credits,
    pub(crate) credits_added: Credits,
}

impl Totals {
    pub(crate) fn of(report: &UsageReport) -> Result<Self, Failure> {
        let added = Self { credits_added: report.credits_added, ..Self::default() };
        let of_day = |day: &DayUsage| Self {
            usage_events: day.usage_events,
            credits_used: day.credits_used,
            credits_added: Credits::ZERO,
        };
        Self::sum(report.by_day.iter().map(of_day).chain([added]))
    }

    pub(crate) fn sum(parts: impl IntoIterator<Item = Self>) -> Result<Self, Failure> {
        let add = |sum: Self, part: Self| {
            Some(Self {
                usage_events: sum.usage_events.checked_add(part.usage_events)?,
                credits_used: sum.credits_used.checked_add(part.credits_used)?,
                credits_added: sum.credits_added.checked_add(part.credits_added)?,
            })
        };
        let sum = parts.into_iter().try_fold(Self::default(), add);
        sum.ok_or_else(|| Failure::Failed("the sum of the usage is out of range; request fewer days".to_owned()))
    }
}

/// The totals of one account.
#[derive(Debug, Serialize)]
pub(crate) struct AccountUsage {
    pub(crate) org_id: AccountId,
    pub(crate) agent_name: AgentName,
    pub(crate) credit_balance: Credits,
    pub(crate) totals: Totals,
}

/// The totals of all accounts.
#[derive(Debug, Serialize)]
pub(crate) struct AllUsage {
    pub(crate) window_days: u32,
    pub(crate) totals: Totals,
    pub(crate) accounts: Vec<AccountUsage>,
}

/// One account's report.
#[derive(Debug, Serialize)]
pub(crate) struct ReportDocument<'a> {
    org_id: &'a AccountId,
    email: Option<&'a Email>,
    credit_balance: Credits,
    total_credits_purchased: Credits,
    total_credits_used: Credits,
    window_days: u32,
    totals: Totals,
    by_day: Vec<DayDocument>,
    by_endpoint: Vec<EndpointDocument>,
}

#[derive(Debug, Serialize)]
struct DayDocument {
    day: Day,
    usage_events: u64,
    credits_used: Credits,
}

#[derive(Debug, Serialize)]
struct EndpointDocument {
    route_template: Arc<str>,
    http_method: Arc<str>,
    call_count: u64,
    credits_used: Credits,
}

impl<'a> ReportDocument<'a> {
    pub(crate) fn new(report: &'a UsageReport, window_days: u32, totals: Totals) -> Self {
        let account = &report.account;
        Self {
            org_id: &account.id,
            email: account.email.as_ref(),
            credit_balance: account.totals.balance,
            total_credits_purchased: account.totals.purchased,
            total_credits_used: account.totals.used,
            window_days,
            totals,
            by_day: report.by_day.iter().map(DayDocument::from).collect(),
            by_endpoint: report.by_endpoint.iter().map(EndpointDocument::from).collect(),
        }
    }
}

impl From<&DayUsage> for DayDocument {
    fn from(usage: &DayUsage) -> Self {
        Self { day: usage.day, usage_events: usage.usage_events, credits_used: usage.credits_used }
    }
}

impl From<&EndpointUsage> for EndpointDocument {
    fn from(usage: &EndpointUsage) -> Self {
        Self {
            route_template: usage.route_template.clone(),
            http_method: usage.http_method.clone(),
            call_count: usage.call_count,
            credits_used: usage.credits_used,
        }
    }
}
