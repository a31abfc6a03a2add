//! The operators' report: credits sold, granted and used, by day, plan, route and account.

use crate::access::account::{AccountId, AgentName};
use crate::chains::address::Address;
use crate::chains::units::TokenUnits;
use crate::clock::Day;
use crate::money::credits::Credits;
use crate::money::currency::Currency;
use crate::payments::exchange_rate::CurrencyAmount;
use crate::usage::EndpointUsage;

/// The business of a range of days, read at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OperationsReport {
    /// All accounts at that moment, revoked ones too.
    pub accounts: u64,
    /// The days with anything to report, oldest first.
    pub by_day: Vec<DaySales>,
    /// Sales, by chain, plan and token; the most credits first.
    pub sales: Vec<PlanSales>,
    /// Payments, by day, chain and token, in this order.
    pub revenue: Vec<DayRevenue>,
    /// Their value, where known, by day and currency, in this order.
    pub values: Vec<DayValue>,
    /// The routes with the most credits used, most first; at most [`OperationsReport::TOP`].
    pub top_routes: Vec<EndpointUsage>,
    /// The accounts with the most credits used, most first; at most [`OperationsReport::TOP`].
    pub top_accounts: Vec<AccountTotal>,
}

impl OperationsReport {
    /// How many routes and accounts a report lists.
    pub const TOP: usize = 20;
}

/// One day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DaySales {
    /// The UTC day.
    pub day: Day,
    /// Accounts created.
    pub new_accounts: u64,
    /// Credits sold: purchases, minus reversed ones, plus restored ones.
    pub sold: Credits,
    /// Credits granted: signup bonuses and adjustments, which may be negative.
    pub granted: Credits,
    /// Accepted requests, including refunded ones.
    pub usage_events: u64,
    /// Their charges, minus refunds.
    pub used: Credits,
}

/// The sales of a plan, in one token of one chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanSales {
    /// The chain's id (EIP-155).
    pub chain_id: u64,
    /// The plan; `None` for payments that were assigned without one.
    pub plan_id: Option<String>,
    /// The token's contract; the zero address for the native coin.
    pub token: Address,
    /// The token's symbol and decimals as sold, if known.
    pub unit: Option<(String, u8)>,
    /// How many payments, without those that are reversed now.
    pub payments: u64,
    /// Their sum.
    pub amount: TokenUnits,
    /// The credits that they bought, bonus included.
    pub credits: Credits,
}

/// The payments of one day, in one token of one chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DayRevenue {
    /// The UTC day on which the payments were recorded.
    pub day: Day,
    /// The chain's id (EIP-155).
    pub chain_id: u64,
    /// The token's contract; the zero address for the native coin.
    pub token: Address,
    /// The token's symbol and decimals as sold, if known.
    pub unit: Option<(String, u8)>,
    /// How many payments, without those that are reversed now.
    pub payments: u64,
    /// Their sum.
    pub amount: TokenUnits,
}

/// The value of one day's payments in a currency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DayValue {
    /// The UTC day on which the payments were recorded.
    pub day: Day,
    /// The currency.
    pub currency: Currency,
    /// How many payments have a value in it, without those that are reversed now.
    pub payments: u64,
    /// The sum of their values.
    pub amount: CurrencyAmount,
}

/// An account's usage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountTotal {
    /// The account.
    pub account: AccountId,
    /// Its name.
    pub agent_name: AgentName,
    /// Accepted requests, including refunded ones.
    pub usage_events: u64,
    /// Their charges, minus refunds.
    pub used: Credits,
}
