//! The plans sold by card, and the Checkout session for buying one.

use std::sync::{Arc, Mutex, PoisonError};

use metering_core::access::Account;
use metering_core::payments::TopUpRule;
use metering_core::wire::{CheckoutResponse, ErrorCode};
use metering_core::{Credits, Error, PaymentStore, Timestamp};
use tokio::time::Instant;
use zeroize::Zeroizing;

use super::api::{Api, ApiError};
use super::signature;
use crate::config::{CardPlan, Secret, StripeConfig};
use crate::http::Problem;
use crate::operations::metric::counter;
use crate::operations::rare_warning::RareWarning;

/// Seconds after which a request to Stripe may succeed.
const RETRY_SECONDS: u64 = 5;
/// Where a session has what it sells.
pub(super) const ACCOUNT: &str = "metering_account";
pub(super) const PLAN: &str = "metering_plan";
pub(super) const CREDITS: &str = "metering_credits";
pub(super) const AMOUNT: &str = "metering_amount";
pub(super) const CURRENCY: &str = "metering_currency";
/// Whether its card is saved, and which charge of a saved card a payment is.
pub(super) const SAVE_CARD: &str = "metering_save_card";
pub(super) const TOP_UP: &str = "metering_top_up";

/// Plans for sale by card, and the connection to Stripe.
#[derive(Debug)]
pub(crate) struct Stripe {
    pub(super) api: Api,
    /// Has saved cards, and their charges.
    pub(super) store: Arc<dyn PaymentStore>,
    webhook_secrets: Vec<Secret>,
    /// Anyone can send an event that Stripe did not sign.
    unsigned: Mutex<RareWarning>,
    plans: Vec<Plan>,
    /// The URL of the pages, without a slash at the end.
    pages: String,
}

/// A plan with its price in the currency's smallest unit.
#[derive(Debug)]
struct Plan {
    id: String,
    label: String,
    credits: Credits,
    amount: u64,
    currency: &'static str,
}

impl Stripe {
    /// # Errors
    /// When no HTTP client can be set up, or the section was not checked.
    pub(crate) fn new(
        config: &StripeConfig,
        pages: &str,
        store: Arc<dyn PaymentStore>,
    ) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let key = config.key.clone().ok_or("stripe.key is missing")?;
        let secrets = config.webhook_secret.as_ref().ok_or("stripe.webhook_secret is missing")?;
        let secrets = secrets.expose().lines().map(str::trim).filter(|line| !line.is_empty());
        let webhook_secrets = secrets.map(|secret| Secret::from(Zeroizing::new(secret.to_owned()))).collect();
        let plans = config.plans.iter().map(Plan::new).collect::<Result<_, _>>()?;
        let pages = pages.trim_end_matches('/').to_owned();
        let (api, unsigned) = (Api::new(&config.api_base, key)?, Mutex::default());
        Ok(Self { api, store, webhook_secrets, unsigned, plans, pages })
    }

    /// Creates a session for an account to buy a plan. With the same idempotency key, an account gets the same session
    /// again, unless the plan has changed.
    pub(crate) async fn checkout(
        &self,
        account: &Account,
        plan_id: &str,
        save_card: bool,
        key: Option<&str>,
    ) -> Result<CheckoutResponse, Problem> {
        let Some(plan) = self.plans.iter().find(|plan| plan.id == plan_id) else {
            let message =
                "No plan with this plan_id is sold by card; `cards` of GET /credits/plans lists those that are.";
            return Err(Problem::new(ErrorCode::UnknownPlan, message));
        };
        let mut form = plan.form(account, &self.pages);
        if save_card {
            let settings = self.store.auto_top_up(&account.id).await.map_err(Error::from)?;
            form.extend(saved_card(settings.and_then(|settings| settings.card).map(|card| card.customer)));
        }
        let session = self.api.create_session(&form, key).await.map_err(|error| unavailable(&error))?;
        let url = session.url.ok_or_else(|| {
            tracing::error!(session = session.id, "Stripe made a Checkout session without a URL");
            Problem::internal()
        })?;
        Ok(CheckoutResponse { url, session_id: session.id })
    }

    /// Whether a plan is sold on the terms to which the owner of an account agreed.
    pub(super) fn sells(&self, rule: &TopUpRule) -> bool {
        let is_same = |plan: &Plan| {
            (plan.credits, plan.amount, plan.currency) == (rule.credits, rule.amount, rule.currency.code())
        };
        self.plans.iter().any(|plan| plan.id == rule.plan_id && is_same(plan))
    }

    /// Checks that Stripe signed the body of an event. One that it did not sign is counted, and logged at most once a minute.
    pub(super) fn verify(&self, header: &str, body: &[u8], now: Timestamp) -> Result<(), Problem> {
        let secrets: Vec<&str> = self.webhook_secrets.iter().map(Secret::expose).collect();
        let Err(fault) = signature::verify(&secrets, header, body, now) else { return Ok(()) };
        counter!("metering_unsigned_stripe_events_total", "Requests to the webhook of Stripe that it did not sign")
            .increment(1);
        let warning = self.unsigned.lock().unwrap_or_else(PoisonError::into_inner).due(Instant::now());
        if let Some(others) = warning {
            tracing::warn!(%fault, others, "refused a webhook that Stripe did not sign");
        }
        Err(Problem::new(ErrorCode::Forbidden, format!("Not an event from Stripe: {fault}. Nothing was changed.")))
    }
}

impl Plan {
    fn new(plan: &CardPlan) -> Result<Self, String> {
        let (amount, currency) = plan.price().map_err(|(key, problem)| format!("stripe.plans.{key}: {problem}"))?;
        Ok(Self {
            id: plan.id.clone(),
            label: plan.label.clone(),
            credits: plan.credits.credits(),
            amount,
            currency: currency.code(),
        })
    }

    /// The parameters of a session. The plan is in the metadata of the session, and for people in that of the payment.
    fn form(&self, account: &Account, pages: &str) -> Vec<(&'static str, String)> {
        let currency = self.currency.to_ascii_lowercase();
        let (org, page) = (account.id.to_string(), format!("{pages}/metering/account"));
        let (amount, credits) = (self.amount.to_string(), self.credits.to_string());
        vec![
            ("mode", "payment".to_owned()),
            ("client_reference_id", org.clone()),
            ("success_url", format!("{page}?checkout=paid#top-up")),
            ("cancel_url", format!("{page}?checkout=cancelled#top-up")),
            // The price is what is credited, so it is not converted.
            ("adaptive_pricing[enabled]", "false".to_owned()),
            ("line_items[0][quantity]", "1".to_owned()),
            ("line_items[0][price_data][currency]", currency.clone()),
            ("line_items[0][price_data][unit_amount]", amount.clone()),
            ("line_items[0][price_data][product_data][name]", self.label.clone()),
            ("metadata[metering_account]", org.clone()),
            ("metadata[metering_plan]", self.id.clone()),
            ("metadata[metering_credits]", credits),
            ("metadata[metering_amount]", amount),
            ("metadata[metering_currency]", currency),
            ("payment_intent_data[metadata][metering_account]", org),
            ("payment_intent_data[metadata][metering_plan]", self.id.clone()),
        ]
    }
}

/// The parameters of a session that saves its card, for a known or a new customer.
fn saved_card(customer: Option<String>) -> Vec<(&'static str, String)> {
    let customer = customer.map_or(("customer_creation", "always".to_owned()), |customer| ("customer", customer));
    vec![
        customer,
        ("payment_method_types[0]", "card".to_owned()),
        // Stripe's page states that the card will be charged later, too.
        ("payment_intent_data[setup_future_usage]", "off_session".to_owned()),
        ("metadata[metering_save_card]", "yes".to_owned()),
    ]
}

/// The error for a failed request to Stripe. Nothing was charged.
pub(super) fn unavailable(error: &ApiError) -> Problem {
    tracing::error!(%error, "a request to Stripe failed");
    let message = "The card processor cannot be reached at the moment. Nothing was charged; try again.";
    Problem::new(ErrorCode::UpstreamUnreachable, message).retry_after(RETRY_SECONDS)
}
