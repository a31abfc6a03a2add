//! Things that need an operator's attention.

use metering_core::access::AccountId;
use metering_core::events::Delivery;
use metering_core::money::{Credits, printed};
use metering_core::offers::{AuthorizationRecord, AuthorizationState};
use metering_core::operators::AccountRunway;
use metering_core::payments::PaymentRecord;
use metering_core::wire::WebhookDocument;
use serde::{Deserialize, Serialize};

use crate::payments::Token;
use crate::wire::ArrivalDocument;

/// Things that need attention, a page of each kind. Certificates, gas and chains are in the metrics and the health.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AttentionDocument {
    /// Payments that the watcher saw arrive, and that no account has, newest first.
    pub unclaimed: Vec<UnclaimedDocument>,
    /// How many those are in all.
    pub unclaimed_count: u64,
    /// Payments for usage (`upto`) that failed although their requests were served, newest first, of accounts that still
    /// owe.
    #[serde(default)]
    pub unpaid: Vec<UnpaidUsageDocument>,
    /// Payments that processors took for accounts that were revoked before, and that are not refunded, newest first.
    #[serde(default)]
    pub to_refund: Vec<RevokedPaymentDocument>,
    /// Webhooks whose next event waits because an attempt failed, the one that fails longest first.
    pub webhooks: Vec<FailingWebhookDocument>,
    /// Sinks that do not take usage, by name.
    #[serde(default)]
    pub usage_sinks: Vec<FailingSinkDocument>,
    /// Accounts that run out within a week at the pace of the last one, the first to run out first.
    pub running_out: Vec<RunwayDocument>,
    /// Where each list continues: send it as `after`, with the list's name as `kind`.
    pub next: AttentionNextDocument,
}

/// Where the lists of what needs attention continue; null at their ends.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AttentionNextDocument {
    /// The payments.
    pub unclaimed: Option<String>,
    /// The webhooks.
    pub webhooks: Option<String>,
    /// The accounts.
    pub running_out: Option<String>,
}

/// An unclaimed payment.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UnclaimedDocument {
    /// The payment.
    pub payment: ArrivalDocument,
    /// When the watcher first saw it, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub seen_at: String,
    /// The plan on sale whose price is nearest; null if none is paid there in this token.
    pub nearest_plan: Option<NearestPlanDocument>,
    /// Earlier purchases of the paying wallet's accounts, newest first.
    pub paid_before: Vec<PaidBeforeDocument>,
}

/// A plan, and by how much a payment differs from its price.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NearestPlanDocument {
    /// The plan.
    pub plan_id: String,
    /// Its name.
    pub label: String,
    /// Its price in tokens, as a string.
    pub price: String,
    /// By how much the payment differs, in tokens, as a string.
    pub difference: String,
    /// Whether the payment is less than the price.
    pub is_short: bool,
}

/// A purchase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PaidBeforeDocument {
    /// The account that has it.
    pub org_id: String,
    /// The plan; null if an operator assigned the payment without one.
    pub plan_id: Option<String>,
    /// The plan's name when it was sold, if known.
    pub plan_label: Option<String>,
    /// The amount paid, such as `5 USDC`.
    pub paid: String,
    /// When it was credited, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub at: String,
}

/// A webhook that gets no events because it fails.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FailingWebhookDocument {
    /// Its account; null for the operator's own.
    pub org_id: Option<String>,
    /// The webhook.
    pub webhook: WebhookDocument,
    /// Since when its first waiting event is tried, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub since: String,
    /// How many attempts were made.
    pub attempts: u32,
    /// The status of the last response, if there was one.
    pub last_status: Option<u16>,
    /// Why the last attempt failed.
    pub last_error: Option<String>,
}

/// A sink that usage cannot be sent to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FailingSinkDocument {
    /// Its name in the configuration.
    pub name: String,
    /// Since when it fails, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub since: String,
    /// When the next attempt is due, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub next_attempt_at: String,
    /// The status of the last response, if there was one.
    pub last_status: Option<u16>,
    /// Why the last attempt failed.
    pub last_error: Option<String>,
}

/// A payment for usage that failed although its request was served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UnpaidUsageDocument {
    /// The account that owes it.
    pub org_id: String,
    /// The wallet that signed (EIP-55).
    pub payer_address: String,
    /// The chain's id.
    pub chain_id: u64,
    /// What was used.
    #[serde(deserialize_with = "printed")]
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credits_used: Credits,
    /// Why it was not paid: `expired`, `cancelled` or `refused`.
    pub reason: String,
    /// Since when, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub since: String,
}

/// A payment that a processor took for an account that was revoked before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RevokedPaymentDocument {
    /// The account, which has the credits.
    pub org_id: String,
    /// The processor.
    pub processor: String,
    /// The processor's id of the payment.
    pub processor_id: String,
    /// The amount paid, such as `10 EUR`.
    pub paid: String,
    /// When it was credited, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub at: String,
}

/// An account that runs out of credits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunwayDocument {
    /// The account's id.
    pub org_id: String,
    /// Its name.
    pub agent_name: String,
    /// Credits left.
    #[serde(deserialize_with = "printed")]
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credit_balance: Credits,
    /// Credits used in the last seven UTC days, today included.
    #[serde(deserialize_with = "printed")]
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credits_used: Credits,
    /// For how many whole days the balance lasts at this pace.
    pub days_left: u32,
}

impl FailingWebhookDocument {
    pub(crate) fn new(webhook: WebhookDocument, owner: Option<&AccountId>, delivery: &Delivery) -> Self {
        let last = delivery.progress.last.as_ref();
        Self {
            org_id: owner.map(ToString::to_string),
            webhook,
            since: delivery.progress.since.to_string(),
            attempts: delivery.progress.attempts,
            last_status: last.and_then(|last| last.status),
            last_error: last.and_then(|last| last.error.clone()),
        }
    }
}

impl UnpaidUsageDocument {
    /// `None` if it did not fail.
    pub(crate) fn new(record: &AuthorizationRecord) -> Option<Self> {
        let AuthorizationState::Failed { failure, at } = record.state else { return None };
        Some(Self {
            org_id: record.account.to_string(),
            payer_address: record.signed.authorization.from.to_checksummed(),
            chain_id: record.signed.chain_id,
            credits_used: record.credited()?,
            reason: failure.as_str().to_owned(),
            since: at.to_string(),
        })
    }
}

impl RevokedPaymentDocument {
    /// `None` if no processor took it.
    pub(crate) fn new(record: &PaymentRecord) -> Option<Self> {
        let processor = record.processor.as_ref()?;
        // A processor's currency does not depend on plans.
        let paid = Token::of(&[], &record.payment.target()).amount(record.payment.amount).to_string();
        Some(Self {
            org_id: record.account.to_string(),
            processor: processor.processor().to_owned(),
            processor_id: processor.id().to_owned(),
            paid,
            at: record.recorded_at.to_string(),
        })
    }
}

impl RunwayDocument {
    /// The runway of an account with this usage in `days`.
    #[must_use]
    pub fn new(runway: &AccountRunway, days: u32) -> Self {
        Self {
            org_id: runway.account.to_string(),
            agent_name: runway.agent_name.to_string(),
            credit_balance: runway.balance,
            credits_used: runway.used,
            days_left: runway.days_left(days),
        }
    }
}
