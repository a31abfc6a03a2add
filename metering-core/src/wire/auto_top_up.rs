//! The saved card of an account, and its automatic top-ups.

use serde::{Deserialize, Serialize};

use crate::chains::units::TokenUnits;
use crate::money::credits::{Credits, printed};
use crate::money::currency::Currency;
use crate::payments::auto_top_up::{AutoTopUp, SavedCard, TopUpCharge};
use crate::wire::field::amount;

/// The body of `PUT /credits/auto-top-up`.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AutoTopUpRequest {
    /// The plan to buy, one of the `cards` of `GET /credits/plans`, at its present price.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "starter"))]
    pub plan_id: Option<String>,
    /// The balance below which it is bought, as text or as a number; above zero, and at most the credits of the plan.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "amount")]
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "5"))]
    pub threshold: Option<Credits>,
    /// The most to charge in a calendar month (UTC), in the currency of the plan, as exact decimal text.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "50.00"))]
    pub monthly_limit: Option<String>,
}

/// A saved card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SavedCardDocument {
    /// Its brand, such as `visa`.
    pub brand: String,
    /// The last four digits of its number.
    pub last4: String,
}

/// A charge of a saved card, in `GET /account/export`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CardChargeDocument {
    /// Its id.
    pub id: String,
    /// When it was decided, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub started_at: String,
    /// The card.
    pub card: SavedCardDocument,
    /// The plan that is bought.
    pub plan_id: String,
    /// Its credits.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credits: Credits,
    /// Its price, as a string.
    pub amount: String,
    /// The currency (ISO 4217).
    pub currency: String,
    /// `open` until its outcome is known, then `paid`.
    pub state: String,
}

/// When a saved card is charged, and for what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TopUpRuleDocument {
    /// The plan that is bought.
    pub plan_id: String,
    /// Its credits.
    #[serde(deserialize_with = "printed")]
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credits: Credits,
    /// Its price, as a string.
    pub amount: String,
    /// The currency (ISO 4217).
    pub currency: String,
    /// The balance below which it is bought.
    #[serde(deserialize_with = "printed")]
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub threshold: Credits,
    /// The most that is charged in a calendar month (UTC), as a string.
    pub monthly_limit: String,
    /// The amount charged this month, as a string. A charge in progress counts.
    pub charged_this_month: String,
}

/// The response to `GET`, `PUT` and `DELETE /credits/auto-top-up`, and to `DELETE /credits/card`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AutoTopUpResponse {
    /// The account's id.
    pub org_id: String,
    /// Whether the card is charged when the balance is low.
    pub enabled: bool,
    /// The saved card; null for none.
    pub card: Option<SavedCardDocument>,
    /// The settings in force; null while automatic top-ups are off.
    pub rule: Option<TopUpRuleDocument>,
    /// Why the card is not charged although there is a rule: `declined`, `authentication_required`, `refused`,
    /// `reversed` or `plan_changed`. Turn automatic top-ups on again to resume.
    pub stopped: Option<String>,
}

impl From<&SavedCard> for SavedCardDocument {
    fn from(card: &SavedCard) -> Self {
        Self { brand: card.brand.clone(), last4: card.last4.clone() }
    }
}

impl From<&TopUpCharge> for CardChargeDocument {
    fn from(charge: &TopUpCharge) -> Self {
        Self {
            id: charge.id.to_string(),
            started_at: charge.started_at.to_string(),
            card: (&charge.card).into(),
            plan_id: charge.plan_id.clone(),
            credits: charge.credits,
            amount: human(charge.amount, charge.currency),
            currency: charge.currency.code().to_owned(),
            state: charge.state.to_string(),
        }
    }
}

impl AutoTopUpResponse {
    /// `charges` are the charges of this month.
    pub(crate) fn new(settings: &AutoTopUp, charges: &[TopUpCharge]) -> Self {
        let rule = settings.rule.as_ref().map(|rule| {
            let of_currency = charges.iter().filter(|charge| charge.currency == rule.currency);
            let charged = of_currency.fold(0_u64, |sum, charge| sum.saturating_add(charge.amount));
            TopUpRuleDocument {
                plan_id: rule.plan_id.clone(),
                credits: rule.credits,
                amount: human(rule.amount, rule.currency),
                currency: rule.currency.code().to_owned(),
                threshold: rule.threshold,
                monthly_limit: human(rule.monthly_limit, rule.currency),
                charged_this_month: human(charged, rule.currency),
            }
        });
        Self {
            org_id: settings.account.to_string(),
            enabled: rule.is_some() && settings.stopped.is_none(),
            card: settings.card.as_ref().map(SavedCardDocument::from),
            rule,
            stopped: settings.stopped.map(|reason| reason.to_string()),
        }
    }
}

fn human(amount: u64, currency: Currency) -> String {
    TokenUnits::new(amount.into()).to_human(currency.decimals())
}
