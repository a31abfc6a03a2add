//! Automatic top-ups, as the owner of an account sees and sets them. The card processor's part saves and charges cards.

use crate::access::account::AccountId;
use crate::access::credentials::Caller;
use crate::access::role::Right;
use crate::access::scope::Scope;
use crate::clock::Timestamp;
use crate::error::Error;
use crate::money::currency::Currency;
use crate::payments::auto_top_up::{AutoTopUp, TopUpRule};
use crate::payments::plan::TokenAmount;
use crate::service::Payments;
use crate::service::fields::Fields;
use crate::store::{AutoTopUpChange, AutoTopUpSet};
use crate::wire::{AutoTopUpRequest, AutoTopUpResponse, CardChargeDocument, CardPlanDocument};

impl Payments<'_> {
    /// The saved card of the caller's account, and its automatic top-ups.
    ///
    /// # Errors
    /// [`Error::Unauthorized`] without a live key, [`Error::KeyNotAllowed`] when it may not read, or when the store fails.
    pub async fn auto_top_up(self, caller: impl Into<Caller<'_>>) -> Result<AutoTopUpResponse, Error> {
        let account = self.access.authorize(caller, Scope::Read).await?;
        let settings = self.state.store()?.auto_top_up(&account.id).await?;
        self.described(&settings.unwrap_or_else(|| AutoTopUp::none(account.id))).await
    }

    /// Turns automatic top-ups on, with a plan at its present price.
    ///
    /// # Errors
    /// As [`Payments::auto_top_up`], but the key must be the account's first one; and [`Error::ValidationFailed`], also when the
    /// account has no saved card.
    pub async fn set_auto_top_up(
        self,
        caller: impl Into<Caller<'_>>,
        request: &AutoTopUpRequest,
    ) -> Result<AutoTopUpResponse, Error> {
        let account = self.access.first_holder(caller.into(), Right::Pay).await?.account;
        let rule = read(request, &self.config.cards)?;
        self.change_auto_top_up(&account.id, AutoTopUpChange::Rule(Some(rule))).await
    }

    /// Turns automatic top-ups off. The card is kept.
    ///
    /// # Errors
    /// As [`Payments::set_auto_top_up`].
    pub async fn end_auto_top_up(self, caller: impl Into<Caller<'_>>) -> Result<AutoTopUpResponse, Error> {
        let account = self.access.first_holder(caller.into(), Right::Pay).await?.account;
        if self.state.store()?.auto_top_up(&account.id).await?.is_none() {
            return self.described(&AutoTopUp::none(account.id)).await;
        }
        self.change_auto_top_up(&account.id, AutoTopUpChange::Rule(None)).await
    }

    /// The charges of an account's cards that were paid or may be, the oldest first.
    pub(in crate::service) async fn card_charges(self, account: &AccountId) -> Result<Vec<CardChargeDocument>, Error> {
        let charges = self.state.store()?.top_up_charges(account, Timestamp::from_unix_millis(0)).await?;
        Ok(charges.iter().map(CardChargeDocument::from).collect())
    }

    async fn change_auto_top_up(self, id: &AccountId, change: AutoTopUpChange) -> Result<AutoTopUpResponse, Error> {
        match self.state.store()?.set_auto_top_up(id, change).await? {
            AutoTopUpSet::Set(settings) => self.described(&settings).await,
            AutoTopUpSet::NoCard => Err(Error::field(
                "card",
                "is not saved; buy a plan with POST /credits/checkout and \"save_card\": true first",
            )),
            AutoTopUpSet::NoSuchAccount => Err(Error::Unauthorized),
        }
    }

    async fn described(self, settings: &AutoTopUp) -> Result<AutoTopUpResponse, Error> {
        let month = self.access.now().day().month().start();
        let charges = self.state.store()?.top_up_charges(&settings.account, month).await?;
        Ok(AutoTopUpResponse::new(settings, &charges))
    }
}

/// The agreement of an account's owner.
fn read(request: &AutoTopUpRequest, plans: &[CardPlanDocument]) -> Result<TopUpRule, Error> {
    let mut fields = Fields::default();
    let plan_id = fields.required("plan_id", request.plan_id.as_deref());
    let plan = plan_id.and_then(|id| plans.iter().find(|plan| plan.id == id));
    if plan_id.is_some() && plan.is_none() {
        fields.wrong("plan_id", "is not sold by card; `cards` of GET /credits/plans lists the plans that are");
    }
    let threshold = fields.required("threshold", request.threshold);
    if threshold.is_some_and(|threshold| !threshold.is_positive()) {
        fields.wrong("threshold", "must be above zero");
    }
    let limit = fields.required("monthly_limit", request.monthly_limit.as_deref());
    let Some((plan, threshold, limit)) =
        plan.zip(threshold).zip(limit).map(|((plan, below), limit)| (plan, below, limit))
    else {
        return Err(fields.into_error());
    };
    if threshold > plan.credits {
        fields.wrong("threshold", format_args!("must be at most the credits of the plan, {}", plan.credits));
    }
    let currency: Currency = plan.currency.parse().map_err(|_| Error::Internal)?;
    let amount = units(&plan.amount, currency).ok_or(Error::Internal)?;
    match units(limit, currency) {
        Some(monthly_limit) if monthly_limit >= amount && fields.is_empty() => Ok(TopUpRule {
            plan_id: plan.id.clone(),
            credits: plan.credits,
            amount,
            currency,
            threshold,
            monthly_limit,
        }),
        Some(monthly_limit) => {
            if monthly_limit < amount {
                fields.wrong("monthly_limit", format_args!("must be at least the price, {} {currency}", plan.amount));
            }
            Err(fields.into_error())
        }
        None => {
            let decimals = currency.decimals();
            fields.wrong(
                "monthly_limit",
                format_args!("must be an amount in {currency}, with at most {decimals} decimals"),
            );
            Err(fields.into_error())
        }
    }
}

/// An amount in the currency's smallest unit. The largest are below 2^63, as stores have them.
fn units(text: &str, currency: Currency) -> Option<u64> {
    let units = TokenAmount::parse(text).ok()?.to_units(currency.decimals())?.get();
    u64::try_from(units).ok().filter(|units| i64::try_from(*units).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_within_its_plan() {
        let plan = CardPlanDocument {
            id: "starter".to_owned(),
            label: "Starter".to_owned(),
            credits: "100".parse().unwrap(),
            amount: "10.00".to_owned(),
            currency: "EUR".to_owned(),
        };
        // body, the fields at fault
        let table: [(&str, &[&str]); 9] = [
            (r#"{"plan_id": "starter", "threshold": 100, "monthly_limit": "10"}"#, &[]),
            (r#"{"plan_id": "starter", "threshold": "0.5", "monthly_limit": "50.00"}"#, &[]),
            ("{}", &["monthly_limit", "plan_id", "threshold"]),
            (r#"{"plan_id": "other", "threshold": 5, "monthly_limit": "50"}"#, &["plan_id"]),
            (r#"{"plan_id": "starter", "threshold": 0, "monthly_limit": "50"}"#, &["threshold"]),
            (r#"{"plan_id": "starter", "threshold": 100.5, "monthly_limit": "50"}"#, &["threshold"]),
            (r#"{"plan_id": "starter", "threshold": 5, "monthly_limit": "9.99"}"#, &["monthly_limit"]),
            (r#"{"plan_id": "starter", "threshold": 5, "monthly_limit": "50.001"}"#, &["monthly_limit"]),
            (r#"{"plan_id": "starter", "threshold": 5, "monthly_limit": "much"}"#, &["monthly_limit"]),
        ];
        for (body, wrong) in table {
            let read = read(&serde_json::from_str(body).unwrap(), std::slice::from_ref(&plan));
            match read {
                Ok(rule) => assert!(wrong.is_empty() && rule.amount == 1_000, "{body}: {rule:?}"),
                Err(Error::ValidationFailed(fields)) => assert!(fields.keys().eq(wrong), "{body}: {fields:?}"),
                Err(error) => panic!("{body}: {error:?}"),
            }
        }
    }
}
