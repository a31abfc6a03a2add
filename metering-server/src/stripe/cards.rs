//! Saved cards: saved with a payment, charged for a plan, and removed.
//!
//! Stripe's ids of customers and cards must not be logged.

use metering_core::payments::{AutoTopUp, SavedCard, TopUpCharge, TopUpStop};
use metering_core::store::{AutoTopUpChange, AutoTopUpSet};
use metering_core::{AccountId, Error};

use super::api::{ApiError, Card, PaymentFailure, PaymentIntent, PaymentMethod};
use super::checkout::{Stripe, unavailable};
use crate::http::Problem;

/// The outcome of a request to charge a card.
#[derive(Debug)]
pub(super) enum Charged {
    /// There is this payment.
    Payment(Box<PaymentIntent>),
    /// It was not paid, and never will be.
    Failed(TopUpStop),
    /// No one knows yet.
    Unknown(ApiError),
}

impl Stripe {
    /// Saves the card of a session's payment, replacing an older one, unless the card was removed since. The same again
    /// changes nothing.
    pub(super) async fn save_card(&self, account: &str, payment: &str, customer: &str) -> Result<(), Problem> {
        let Ok(account) = account.parse::<AccountId>() else { return Ok(()) };
        let paid_with = self.api.paid_with(payment).await.map_err(|error| unavailable(&error))?;
        let Some(PaymentMethod { id: method, customer: Some(owner), card: Some(Card { brand, last4 }) }) = paid_with
        else {
            return Ok(());
        };
        let before = self.card(&account).await?;
        if owner != customer || before.as_ref().is_some_and(|before| before.method == method) {
            return Ok(());
        }
        let card = SavedCard { customer: owner, method: method.clone(), brand, last4 };
        let saved = self.store.set_auto_top_up(&account, AutoTopUpChange::Card(Some(card))).await;
        let unused = match saved.map_err(Error::from)? {
            AutoTopUpSet::Set(_) => {
                tracing::info!(%account, "saved a card");
                before.map(|before| before.method)
            }
            // A revoked account can pay, but its card is never charged again.
            AutoTopUpSet::NoCard | AutoTopUpSet::NoSuchAccount => Some(method),
        };
        if let Some(unused) = unused
            && let Err(error) = self.api.detach(&unused).await
        {
            tracing::warn!(%account, %error, "could not remove a card at Stripe that is not used any more");
        }
        Ok(())
    }

    /// Turns automatic top-ups off, and removes the card of an account, here after it is removed at Stripe.
    pub(crate) async fn remove_card(&self, account: &AccountId) -> Result<(), Problem> {
        let Some(SavedCard { method, .. }) = self.card(account).await? else { return Ok(()) };
        for change in [AutoTopUpChange::Rule(None), AutoTopUpChange::Card(None)] {
            if change == AutoTopUpChange::Card(None) {
                self.api.detach(&method).await.map_err(|error| unavailable(&error))?;
            }
            self.store.set_auto_top_up(account, change).await.map_err(Error::from)?;
        }
        tracing::info!(%account, "removed a card");
        Ok(())
    }

    async fn card(&self, account: &AccountId) -> Result<Option<SavedCard>, Problem> {
        let settings: Option<AutoTopUp> = self.store.auto_top_up(account).await.map_err(Error::from)?;
        Ok(settings.and_then(|settings| settings.card))
    }

    /// Charges a saved card. The same charge again, within a day, has the same outcome.
    pub(super) async fn charge(&self, charge: &TopUpCharge) -> Charged {
        match self.api.create_payment(&form(charge), &charge.id.to_string()).await {
            Ok(payment) => Charged::Payment(Box::new(payment)),
            Err(ApiError::Refused { status: 402, failure, .. }) => Charged::Failed(stop(&failure)),
            // Nothing was charged: Stripe checks parameters first.
            Err(ApiError::Refused { status: 400, kind, .. }) if kind != "idempotency_error" => {
                Charged::Failed(TopUpStop::Refused)
            }
            Err(error) => Charged::Unknown(error),
        }
    }
}

/// Why the charge of a card failed. Banks request authentication in either of two ways.
pub(super) fn stop(failure: &PaymentFailure) -> TopUpStop {
    let authenticate = Some("authentication_required");
    match [failure.code.as_deref(), failure.decline_code.as_deref()].contains(&authenticate) {
        true => TopUpStop::AuthenticationRequired,
        false => TopUpStop::Declined,
    }
}

/// The parameters of a payment, from the stored charge alone: they must be the same when it is sent again.
fn form(charge: &TopUpCharge) -> Vec<(&'static str, String)> {
    let TopUpCharge { id, account, card, plan_id, credits, amount, currency, .. } = charge;
    let (amount, currency) = (amount.to_string(), currency.code().to_ascii_lowercase());
    vec![
        ("amount", amount.clone()),
        ("currency", currency.clone()),
        ("customer", card.customer.clone()),
        ("payment_method", card.method.clone()),
        ("payment_method_types[0]", "card".to_owned()),
        ("off_session", "true".to_owned()),
        ("confirm", "true".to_owned()),
        ("description", format!("Automatic top-up: {plan_id}")),
        ("metadata[metering_top_up]", id.to_string()),
        ("metadata[metering_account]", account.to_string()),
        ("metadata[metering_plan]", plan_id.clone()),
        ("metadata[metering_credits]", credits.to_string()),
        ("metadata[metering_amount]", amount),
        ("metadata[metering_currency]", currency),
    ]
}

#[cfg(test)]
mod tests {
    use metering_core::Timestamp;
    use metering_core::payments::{TopUpChargeId, TopUpChargeState};

    use super::super::checkout::{ACCOUNT, AMOUNT, CREDITS, CURRENCY, PLAN, TOP_UP};
    use super::*;

    #[test]
    fn a_charge_names_what_it_sells() {
        let [customer, method, brand, last4] = ["cus_1", "pm_1", "visa", "4242"].map(str::to_owned);
        let charge = TopUpCharge {
            id: TopUpChargeId::from_bytes([0xab; 16]),
            account: "org_xxxxxxxxxxxxxxxxxxxx".parse().unwrap(),
            card: SavedCard { customer, method, brand, last4 },
            plan_id: "starter".to_owned(),
            credits: "100".parse().unwrap(),
            amount: 1_000,
            currency: "EUR".parse().unwrap(),
            started_at: Timestamp::from_unix_millis(0),
            state: TopUpChargeState::Open,
            payment: None,
        };
        let form = form(&charge);
        let of = |name: &str| {
            let name = format!("metadata[{name}]");
            form.iter().find(|(key, _)| *key == name).map(|(_, value)| value.as_str())
        };
        let names = [TOP_UP, ACCOUNT, PLAN, CREDITS, AMOUNT, CURRENCY].map(of);
        let id = format!("atu_{}", "ab".repeat(16));
        let expected = [&id, "org_xxxxxxxxxxxxxxxxxxxx", "starter", "100", "1000", "eur"];
        assert_eq!(names, expected.map(Some));
        assert!(!format!("{charge:?}").contains("pm_1"), "logs do not name the card");
    }

    #[test]
    fn banks_ask_for_authentication_in_two_ways() {
        let failure = |code: &str, decline_code: Option<&str>| PaymentFailure {
            code: Some(code.to_owned()),
            decline_code: decline_code.map(str::to_owned),
        };
        let table = [
            (failure("authentication_required", None), TopUpStop::AuthenticationRequired),
            (failure("card_declined", Some("authentication_required")), TopUpStop::AuthenticationRequired),
            (failure("card_declined", Some("insufficient_funds")), TopUpStop::Declined),
            (PaymentFailure::default(), TopUpStop::Declined),
        ];
        for (failure, expected) in table {
            assert_eq!(stop(&failure), expected, "{failure:?}");
        }
    }
}
