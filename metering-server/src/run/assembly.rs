//! Builds the parts of a server from its configuration, before anything is served.

use std::net::SocketAddr;
use std::sync::Arc;

use metering_core::events::Wake;
use metering_core::prices::PriceNumber;
use metering_core::service::UsedRoutes;
use metering_core::{Catalogue, Clock, FullStore, Meter, MeterConfig, Service};
use metering_pay::{OfferSettings, SignedPayments};
use metering_sample::SampleFeed;
use url::Url;

use super::ending::RunError;
use super::settings;
use crate::access::limits::Limits;
use crate::api::Documents;
use crate::api::app::{App, BillingSecret};
use crate::api::openapi::Description;
use crate::chains::Readers;
use crate::chains::progress::ChainProgress;
use crate::config::{Config, CurrencyConfig, Surface};
use crate::gateway::{Gateway, HeaderSettings, HttpUpstream, NamedUpstreams, Source};
use crate::http::Bodies;
use crate::log::PostingLog;
use crate::mail;
use crate::oauth::{self, Issuer};
use crate::operations::metrics;
use crate::pages::Pages;
use crate::pay;
use crate::signed_receipts::SignedReceipts;
use crate::signups::bot::BotChallenge;
use crate::stripe::Stripe;

pub(super) fn assemble(
    config: &Config,
    store: Arc<dyn FullStore>,
    readers: Readers,
    clock: Arc<dyn Clock>,
    address: SocketAddr,
    (catalogue, version, used): (Arc<Catalogue>, PriceNumber, Arc<UsedRoutes>),
    wake: Wake,
) -> Result<(App, Option<mail::Unstarted>, Option<pay::Unread>), RunError> {
    let recorder = metrics::install().map_err(|error| RunError::Setup(Box::new(error)))?;
    let urls = settings::Urls::new(config, address);
    let pages = Pages::new(config, &catalogue, &used, urls.public());
    let pages = pages.map_err(|error| RunError::Setup(Box::new(error)))?;
    let documents = documents(config, &catalogue)?;
    let meter_limits = MeterConfig { queue: config.meter.queue, batch: config.meter.batch };
    let meter = Arc::new(Meter::start(Arc::clone(&store) as _, Arc::clone(&clock), meter_limits));
    let service = settings::service(config, &urls);
    let service = Service::new(Arc::clone(&store) as _, Arc::clone(&meter), catalogue, Arc::clone(&clock), service);
    let service = service.with_prices(Arc::clone(&store) as _, version).with_used_routes(used);
    metrics::price_version(Some(version));
    let bot_challenge = BotChallenge::new(&config.signup).map_err(RunError::Setup)?;
    let rates = config.receipts.currency.as_ref().map(CurrencyConfig::exchange_rates).transpose()?.map(Arc::new);
    let selling = settings::payments(config, rates.clone());
    let service = service.with_payments(Arc::clone(&store) as _, readers.clone(), selling);
    let service = service.with_webhooks(Arc::clone(&store) as _, settings::webhooks(config, wake.clone()));
    let service = service.with_billing(settings::billing(config));
    let limits = Arc::new(Limits::new(&config.limits, config.signup.poll_interval));
    let offers = pay::prepare(config, &readers, urls.public(), Arc::clone(&limits) as _);
    let offers = offers.map_err(|error| RunError::Setup(Box::new(error)))?;
    let (settings, unread) = offers.unzip();
    let settings = OfferSettings { rates, ..settings.unwrap_or_default() };
    let payments = SignedPayments::new(Arc::clone(&store) as _, Arc::clone(&clock), service.public_url(), settings);
    let payments = Arc::new(payments);
    let service = service.with_request_payments(Arc::clone(&payments) as _);
    let mailer = mail::new(config, &limits, urls.pages()).map_err(RunError::Setup)?;
    let (outbox, mail) = mailer.unzip();
    let signup = settings::signup(config, &urls, &bot_challenge);
    let signup = mail::settings(config, outbox.as_ref(), signup);
    let service = service.with_signup(Arc::clone(&store) as _, signup);
    let service = service.with_browser_sessions(Arc::clone(&store) as _);
    let service = service.with_child_accounts(Arc::clone(&store) as _);
    let service = service.with_notes(Arc::clone(&store) as _);
    let sign_in_page = format!("{}{}", urls.pages(), mail::RECOVER_PAGE);
    let service = service.with_members(Arc::clone(&store) as _, &sign_in_page);
    let issuer = Issuer::new(config, address);
    let service = match &issuer {
        Some(_) => {
            let documents = oauth::Documents::new(&config.webhooks).map_err(RunError::Setup)?;
            let origins = config.oauth.resources.iter().map(|origin| origin.as_str().to_owned()).collect();
            service.with_oauth(Arc::clone(&store), Arc::new(documents), origins)
        }
        None => service,
    };
    let log = Arc::new(PostingLog::new(config, &store)?);
    let receipts = SignedReceipts::start(config, &store, &clock, log.running())?;
    let service = Arc::new(SignedReceipts::in_service(receipts.as_ref(), service));
    let stripe = |stripe| Stripe::new(stripe, urls.pages(), Arc::clone(&store) as _);
    let stripe = config.stripe.as_ref().map(stripe).transpose();
    let stripe = stripe.map_err(RunError::Setup)?;
    let upstreams = (source(config, Arc::clone(&clock))?, named_upstreams(config, &NamedUpstreams::default())?);
    let headers = HeaderSettings::new(&config.gateway)?;
    let bodies = Bodies::new(&config.http);
    let gateway = Gateway::new(Arc::clone(&service), upstreams, &config.gateway, headers, &config.http, bodies.clone());
    let app = App {
        service,
        payments,
        gateway: Arc::new(gateway),
        bodies,
        meter,
        store,
        limits,
        billing_secret: config.billing.internal_secret.as_ref().map(BillingSecret::new),
        payments_secret: config.billing.payments_secret.as_ref().map(BillingSecret::new),
        issuer,
        receipts,
        log,
        published_keys: Arc::default(),
        stripe: stripe.map(Arc::new),
        metrics: recorder,
        metrics_here: config.admin_listen.is_none(),
        documents: Arc::new(documents),
        clock,
        clock_watch: Arc::default(),
        readiness: Arc::default(),
        gas: Arc::default(),
        progress: Arc::new(ChainProgress::new(config.payments.stalled_after.duration())),
        readers,
        bot_challenge,
        courier: None,
        wake_courier: wake,
        pages: Arc::new(pages),
    };
    Ok((app, mail, unread))
}

/// Builds the descriptions of the service for programs.
pub(super) fn documents(config: &Config, catalogue: &Catalogue) -> Result<Documents, RunError> {
    let tools = (&config.mcp.tool_prefix, config.serves(Surface::Mcp));
    let documents = Documents::new(Description::new(catalogue, config), catalogue, tools);
    documents.map_err(|error| RunError::Setup(Box::new(error)))
}

fn source(config: &Config, clock: Arc<dyn Clock>) -> Result<Source, RunError> {
    let Some(url) = &config.upstream else {
        return Ok(Source::Sample(SampleFeed::new(clock, config.sample.block_time.duration())));
    };
    let url = Url::parse(url).map_err(|error| RunError::Setup(Box::new(error)))?;
    let upstream = HttpUpstream::new(
        &url,
        public_url(config)?,
        (&config.gateway, config.gateway.upstream_http2),
        config.worker_count(),
    );
    Ok(Source::Http(upstream.map_err(|error| RunError::Setup(Box::new(error)))?))
}

/// The upstreams that routes name. Unchanged parts are taken over from `before`.
pub(super) fn named_upstreams(config: &Config, before: &NamedUpstreams) -> Result<NamedUpstreams, RunError> {
    let public_url = public_url(config)?;
    Ok(NamedUpstreams::new(&config.gateway, public_url.as_ref(), config.worker_count(), before)?)
}

fn public_url(config: &Config) -> Result<Option<Url>, RunError> {
    let url = config.public_url.as_deref().map(Url::parse).transpose();
    url.map_err(|error| RunError::Setup(Box::new(error)))
}
