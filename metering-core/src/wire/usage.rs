//! Usage and activity, as the account's owner sees them.

use serde::{Deserialize, Serialize};

use crate::access::account::AccountId;
use crate::money::credits::{Credits, printed};
use crate::prices::PriceHistory;
use crate::usage::{Activity, DayUsage, EndpointUsage, KeyLabels, KeyTotal, UsageReport};

/// The response to `GET /credits/usage/summary`. It is read at one moment, so it adds up exactly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UsageSummary {
    /// The account's id.
    pub org_id: String,
    /// Its owner's email address, if any.
    pub email: Option<String>,
    /// Credits left.
    #[serde(deserialize_with = "printed")]
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credit_balance: Credits,
    /// Credits bought in total.
    #[serde(deserialize_with = "printed")]
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub total_credits_purchased: Credits,
    /// Credits used in total, minus refunds.
    #[serde(deserialize_with = "printed")]
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub total_credits_used: Credits,
    /// Number of UTC days in the window, which ends today.
    pub window_days: u32,
    /// Sums over the account's lifetime.
    pub totals: UsageTotals,
    /// Sums over the window.
    #[serde(default)]
    pub window: UsageTotals,
    /// Days with usage, newest first.
    pub by_day: Vec<DayEntry>,
    /// Routes, most credits first.
    pub by_endpoint: Vec<EndpointEntry>,
    /// Keys, most credits first, each without its child keys.
    #[serde(default)]
    pub by_key: Vec<KeyEntry>,
}

/// One key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct KeyEntry {
    /// Its public id.
    pub key_id: String,
    /// Its name.
    pub key_name: String,
    /// Accepted requests.
    pub call_count: u64,
    /// Credits used, minus refunds.
    #[serde(deserialize_with = "printed")]
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credits_used: Credits,
}

/// Sums over a window, or over an account's lifetime.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UsageTotals {
    /// Accepted requests.
    pub usage_events: u64,
    /// Credits used, minus refunds.
    #[serde(deserialize_with = "printed")]
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credits_used: Credits,
    /// Credits bought and granted.
    #[serde(deserialize_with = "printed")]
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credits_added: Credits,
}

/// One UTC day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DayEntry {
    /// `YYYY-MM-DD`.
    #[cfg_attr(feature = "openapi", schema(format = Date))]
    pub day: String,
    /// Accepted requests.
    pub usage_events: u64,
    /// Credits used, minus refunds.
    #[serde(deserialize_with = "printed")]
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credits_used: Credits,
    /// The numbers of the price versions in force on that day, in the order in which they took effect.
    #[serde(default)]
    pub price_versions: Vec<u32>,
}

/// One route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EndpointEntry {
    /// The route's template.
    pub route_template: String,
    /// The model, or the pattern that its price is listed under; only on routes whose models have their own prices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The HTTP method.
    pub http_method: String,
    /// Accepted requests.
    pub call_count: u64,
    /// Credits used, minus refunds.
    #[serde(deserialize_with = "printed")]
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
    /// The value of `before` for the entries that follow; null when there are none.
    pub next: Option<String>,
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
    /// `usage`, `usage_refund`, `signup_bonus`, `purchase_pay_signup`, `purchase_topup`, `purchase_imported`,
    /// `refill`, `adjustment`, `payment_reversed` (a reorganisation removed the payment, or its processor reversed
    /// it), `payment_restored` (it was mined again, or the reversal ended), `transfer_in` or `transfer_out` (a parent or
    /// child account gave or got credits).
    #[serde(rename = "type")]
    pub kind: String,
    /// A sentence about it.
    pub description: Option<String>,
    /// The HTTP method, for usage.
    pub http_method: Option<String>,
    /// The route's template, for usage.
    pub route_template: Option<String>,
    /// The model, or the pattern that its price is listed under; only on routes whose models have their own prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The requested path, if it is the same for all requests of the entry.
    pub request_path: Option<String>,
    /// Which kind of client made the requests, for usage.
    pub client_source: Option<String>,
    /// The public id of the key that the requests came with, for usage.
    pub key_id: Option<String>,
    /// Its name.
    pub key_name: Option<String>,
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
    /// Converts a report of `window_days` days, and the requests of the account's lifetime
    /// ([`lifetime_events`](crate::service::lifetime_events)). `keys` names its keys.
    ///
    /// Returns `None` when a sum overflows, which cannot happen in a verified store.
    #[must_use]
    pub fn new(
        (report, lifetime_events): (UsageReport, u64),
        keys: &KeyLabels,
        prices: &PriceHistory,
        window_days: u32,
    ) -> Option<Self> {
        let window = UsageTotals::of(&report)?;
        let account = report.account;
        let totals = UsageTotals {
            usage_events: lifetime_events,
            credits_used: account.totals.used,
            credits_added: account.totals.purchased.checked_add(account.totals.granted)?,
        };
        Some(Self {
            org_id: account.id.to_string(),
            email: account.email.as_ref().map(ToString::to_string),
            credit_balance: account.totals.balance,
            total_credits_purchased: account.totals.purchased,
            total_credits_used: account.totals.used,
            window_days,
            totals,
            window,
            by_day: report.by_day.iter().map(|usage| DayEntry::new(usage, prices)).collect(),
            by_endpoint: report.by_endpoint.iter().map(EndpointEntry::from).collect(),
            by_key: report.by_key.iter().map(|total| KeyEntry::new(*total, keys)).collect(),
        })
    }
}

impl UsageTotals {
    /// The sums of a report; `None` when one is out of range.
    #[must_use]
    pub fn of(report: &UsageReport) -> Option<Self> {
        let added = Self { credits_added: report.credits_added, ..Self::default() };
        let of_day = |day: &DayUsage| Self {
            usage_events: day.usage_events,
            credits_used: day.credits_used,
            credits_added: Credits::ZERO,
        };
        Self::checked_sum(report.by_day.iter().map(of_day).chain([added]))
    }

    /// The sum of `parts`; `None` when it is out of range.
    pub fn checked_sum(parts: impl IntoIterator<Item = Self>) -> Option<Self> {
        parts.into_iter().try_fold(Self::default(), |sum, part| {
            Some(Self {
                usage_events: sum.usage_events.checked_add(part.usage_events)?,
                credits_used: sum.credits_used.checked_add(part.credits_used)?,
                credits_added: sum.credits_added.checked_add(part.credits_added)?,
            })
        })
    }
}

impl KeyEntry {
    fn new(total: KeyTotal, keys: &KeyLabels) -> Self {
        let (key_id, key_name) = keys.id_and_name(total.key);
        Self { key_id, key_name, call_count: total.call_count, credits_used: total.credits_used }
    }
}

impl DayEntry {
    fn new(usage: &DayUsage, prices: &PriceHistory) -> Self {
        let DayUsage { day, usage_events, credits_used } = *usage;
        let price_versions = prices.on_day(day).into_iter().map(|version| version.number.0).collect();
        Self { day: day.to_string(), usage_events, credits_used, price_versions }
    }
}

impl From<&EndpointUsage> for EndpointEntry {
    fn from(usage: &EndpointUsage) -> Self {
        Self {
            route_template: usage.template().to_owned(),
            model: usage.model().map(str::to_owned),
            http_method: usage.http_method.to_string(),
            call_count: usage.call_count,
            credits_used: usage.credits_used,
        }
    }
}

impl ActivityDocument {
    /// Lists an account's recent activity, with none that follows. `keys` names its keys.
    #[must_use]
    pub fn new(account: &AccountId, activity: Vec<Activity>, keys: &KeyLabels) -> Self {
        let entry = |activity| ActivityEntry::new(activity, keys);
        Self { org_id: account.to_string(), transactions: activity.into_iter().map(entry).collect(), next: None }
    }
}

impl ActivityEntry {
    fn new(activity: Activity, keys: &KeyLabels) -> Self {
        let line = activity.line.as_ref();
        let payment = activity.payment.as_ref();
        let (key_id, key_name) = activity.key.map(|key| keys.id_and_name(key)).unzip();
        Self {
            id: activity.id,
            amount: activity.amount,
            kind: activity.kind.as_str().to_owned(),
            description: activity.description,
            http_method: line.map(|line| line.http_method.to_string()),
            route_template: line.map(|line| line.template().to_owned()),
            model: line.and_then(|line| line.model()).map(str::to_owned),
            request_path: activity.request_path.map(|path| path.to_string()),
            client_source: line.map(|line| line.source.as_str().to_owned()),
            key_id,
            key_name,
            calls: activity.calls,
            tx_hash: payment.map(|payment| payment.tx.hash.to_string()),
            chain_id: payment.map(|payment| payment.tx.chain_id),
            plan_id: payment.and_then(|payment| payment.plan_id.clone()),
            created_at: activity.created_at.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_added_exactly_and_read_back() {
        let part = |usage_events, atoms| UsageTotals {
            usage_events,
            credits_used: Credits::from_atoms(atoms),
            credits_added: Credits::from_atoms(1),
        };
        let sum = UsageTotals::checked_sum([part(2, 1_000_000), part(3, 27)]).unwrap();
        assert_eq!(
            (sum.usage_events, sum.credits_used, sum.credits_added.atoms()),
            (5, Credits::from_atoms(1_000_027), 2)
        );
        let text = serde_json::to_string(&sum).unwrap();
        assert_eq!(text, r#"{"usage_events":5,"credits_used":0.0001388926,"credits_added":0.0000000003}"#);
        assert_eq!(serde_json::from_str::<UsageTotals>(&text).unwrap(), sum);
        assert_eq!(UsageTotals::checked_sum([part(u64::MAX, 0), part(1, 0)]), None);
        assert_eq!(UsageTotals::checked_sum([part(1, i64::MAX), part(1, 1)]), None);
    }
}
