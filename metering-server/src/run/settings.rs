//! Turns the configuration into the settings of the metering service.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use metering_core::ServiceConfig;
use metering_core::events::Wake;
use metering_core::payments::ExchangeRates;
use metering_core::service::{BillingSettings, Links, PaymentSettings, SignupSettings, WebhookSettings};
use metering_core::wire::CardPlanDocument;

use crate::config::{CardPlan, Config, Surface};
use crate::pages::COMPLETE_PAGE;
use crate::signups::bot::BotChallenge;

/// A request with an idempotency key counts as in progress for the upstream's timeouts and this much longer. The margin
/// covers the commits before and after it, and clock differences between nodes.
const DELIVERY_MARGIN: Duration = Duration::from_secs(10);

/// Where clients and people reach the server. Neither has a trailing slash.
pub(super) struct Urls {
    public: String,
    pages: String,
}

impl Urls {
    /// The configured URLs; by default those of the listening address.
    pub(super) fn new(config: &Config, address: SocketAddr) -> Self {
        let public = config.public_url.clone().unwrap_or_else(|| format!("{}://{address}", config.scheme()));
        let pages = config.pages_url.as_ref().unwrap_or(&public);
        let [public, pages] = [&public, pages].map(|url| url.trim_end_matches('/').to_owned());
        Self { public, pages }
    }

    /// The URL of the API.
    pub(super) fn public(&self) -> &str {
        &self.public
    }

    /// The URL of the pages.
    pub(super) fn pages(&self) -> &str {
        &self.pages
    }
}

/// The service's URLs, terms, chains and delivery lease.
pub(super) fn service(config: &Config, urls: &Urls) -> ServiceConfig {
    let Urls { public, pages } = urls;
    let links = Links {
        plans: Some(format!("{public}/credits/plans")),
        top_up: Some(format!("{public}/credits/topup")),
        complete: config.serves(Surface::Metering).then(|| format!("{pages}{COMPLETE_PAGE}")),
        routes: Some("`metering routes` or /endpoints.json".into()),
    };
    let terms_version = config.terms.version.clone();
    let terms_url = config.terms.url.clone().unwrap_or_else(|| format!("{pages}/agents-tos/{terms_version}"));
    let mut chains: Vec<_> = config.chains.iter().collect();
    chains.sort_by_key(|(section, chain)| (Some(*section) != config.primary_chain.as_ref(), chain.chain_id));
    let chains = chains.into_iter().map(|(section, chain)| chain.chain(section)).collect();
    // The response head and the first byte of the body may take upstream_timeout each.
    let delivery_lease = config.gateway.upstream_timeout.duration() * 2 + DELIVERY_MARGIN;
    let seller = config.operator.seller(&config.brand);
    let max_keys_per_account = config.limits.max_keys_per_account.get();
    let public_url = public.clone();
    let cards = config.stripe.iter().flat_map(|stripe| &stripe.plans).map(card_plan).collect();
    let hold_lease = config.gateway.hold_lease.duration();
    ServiceConfig {
        public_url,
        links,
        terms_url,
        terms_version,
        chains,
        cards,
        delivery_lease,
        hold_lease,
        seller,
        max_keys_per_account,
        max_child_accounts: config.limits.max_child_accounts,
    }
}

fn card_plan(plan: &CardPlan) -> CardPlanDocument {
    CardPlanDocument {
        id: plan.id.clone(),
        label: plan.label.clone(),
        credits: plan.credits.credits(),
        amount: plan.amount.clone(),
        currency: plan.currency.to_ascii_uppercase(),
    }
}

pub(super) fn payments(config: &Config, rates: Option<Arc<ExchangeRates>>) -> PaymentSettings {
    PaymentSettings {
        quote_lifetime: config.payments.quote_lifetime.duration(),
        claim_wait: config.payments.claim_wait.duration(),
        claim_poll: config.payments.claim_poll.duration(),
        signup_bonus: config.signup.free_credits.credits(),
        require_payer_proof: config.topup.require_payer_proof,
        challenge_lifetime: config.recovery.challenge_lifetime.duration(),
        not_before: config.chains.values().filter_map(|chain| Some((chain.chain_id, chain.not_before?))).collect(),
        rates,
    }
}

pub(super) fn billing(config: &Config) -> BillingSettings {
    let mut settings = BillingSettings::default();
    settings.default_weight = config.billing.default_weight.get();
    settings.max_weight = config.billing.max_weight.get();
    settings.max_multiplier = config.billing.max_multiplier.get();
    settings.templates_per_account = config.billing.templates_per_account.get();
    settings
}

pub(super) fn webhooks(config: &Config, wake: Wake) -> WebhookSettings {
    let mails = config.smtp.is_some();
    let config = &config.webhooks;
    WebhookSettings { max_per_account: config.max_per_account, addresses: config.addresses(), mails, wake }
}

pub(super) fn signup(config: &Config, urls: &Urls, bot_challenge: &BotChallenge) -> SignupSettings {
    SignupSettings {
        verification_url: format!("{}/verify", urls.pages),
        session_lifetime: config.signup.session_lifetime.duration(),
        poll_interval: config.signup.poll_interval.duration(),
        bot_check: bot_challenge.check(),
        ..SignupSettings::default()
    }
}
