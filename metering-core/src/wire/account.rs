//! The account, as its owner sees it.

use serde::Serialize;

use crate::access::account::{Account, RateLimits};
use crate::access::role::{MemberRole, Right};
use crate::money::credits::Credits;
use crate::wire::email::EmailVerification;

/// The response to `GET /credits/balance`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BalanceDocument {
    /// The account's id.
    pub org_id: String,
    /// The name that its owner gave it.
    pub agent_name: String,
    /// Its owner's email address, if any.
    pub email: Option<String>,
    /// Whether that address is verified, if the service verifies addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email_verification: Option<EmailVerification>,
    /// The wallet that paid for it, in lower case, if any.
    pub payer_address: Option<String>,
    /// Credits left; may be negative by less than the price of one request, or by more after an adjustment or the
    /// reversal of a payment.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credit_balance: Credits,
    /// Credits held for requests in flight, whose cost is not known yet. They are not part of the balance.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credits_held: Credits,
    /// Credits bought in total.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub total_credits_purchased: Credits,
    /// Credits granted in total: bonuses, refills and adjustments.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub total_credits_granted: Credits,
    /// Credits used in total, minus refunds.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub total_credits_used: Credits,
    /// The event `balance.low` is sent when the balance falls below this; null for never.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<f64>))]
    pub alert_below: Option<Credits>,
    /// Rate limits on accepted requests; 0 means no limit.
    pub rate_limits: RateLimits,
    /// The limit on the tokens that requests use per calendar minute; 0 means no limit.
    pub tokens_per_minute: u32,
    /// The member's rights, for a request with a member's session. Left out for a key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member: Option<MemberRights>,
}

/// The role and the rights of a member of an account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MemberRights {
    /// The member's role.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub role: MemberRole,
    /// Its rights: `read`; `develop` for keys and webhooks; `pay` to buy, and for alerts and billing details; `own` for
    /// members, child accounts, the first key and the export.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>))]
    pub may: Vec<Right>,
}

impl From<MemberRole> for MemberRights {
    fn from(role: MemberRole) -> Self {
        Self { role, may: Right::ALL.into_iter().filter(|right| role.may(*right)).collect() }
    }
}

impl From<&Account> for BalanceDocument {
    fn from(account: &Account) -> Self {
        Self {
            org_id: account.id.to_string(),
            agent_name: account.agent_name.to_string(),
            email: account.email.as_ref().map(ToString::to_string),
            email_verification: EmailVerification::of(account).filter(|known| *known != EmailVerification::UNCHECKED),
            payer_address: account.payer.map(|payer| payer.address.to_string()),
            credit_balance: account.totals.balance,
            credits_held: account.totals.held,
            total_credits_purchased: account.totals.purchased,
            total_credits_granted: account.totals.granted,
            total_credits_used: account.totals.used,
            alert_below: account.alert.threshold,
            rate_limits: account.limits,
            tokens_per_minute: account.tokens_per_minute,
            member: None,
        }
    }
}
