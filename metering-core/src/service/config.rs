//! The public information about a service.

use std::sync::Arc;
use std::time::Duration;

use crate::chains::chain::Chain;
use crate::payments::seller::Seller;
use crate::wire::CardPlanDocument;

/// The public information about a [`Service`](crate::Service).
///
/// The default has no chains, no terms and no links.
///
/// ```
/// use metering_core::service::Links;
/// use metering_core::wire::ErrorCode;
/// use metering_core::{Catalogue, Charge, Error, MemoryStore, Service, ServiceConfig};
/// # use std::sync::Arc;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let links = Links { plans: Some("https://api.example.com/plans".to_owned()), ..Links::default() };
/// let config = ServiceConfig { links, ..ServiceConfig::default() };
/// let service = Service::start(Arc::new(MemoryStore::new()), Catalogue::default(), config);
/// let (_, key) = service.open_account("my-agent", "0".parse()?).await?;
/// let charge = Charge::new(&key, "0.25".parse()?, "GET", "/price");
/// let Err(error) = service.charge(charge).await else { return Err("the account has no credits".into()) };
/// assert_eq!(error.code(), ErrorCode::InsufficientCredits);
/// assert_eq!(error.body().plans_url.as_deref(), Some("https://api.example.com/plans"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ServiceConfig {
    /// Where clients reach the service, without a trailing slash. Messages to sign contain it.
    pub public_url: String,
    /// The links in refusals.
    pub links: Links,
    /// The URL of the terms.
    pub terms_url: String,
    /// The version of the terms that applies.
    pub terms_version: String,
    /// The chains that plans are paid on, the primary one first.
    pub chains: Vec<Chain>,
    /// The plans that are sold by card, in the order of display. The operator of the checkout credits the accounts
    /// ([`Payments::credit_from_processor`](crate::service::Payments::credit_from_processor)).
    pub cards: Vec<CardPlanDocument>,
    /// How long a request with an idempotency key may take before a retry is forwarded in its place. Must be longer
    /// than the upstream can take to respond. One minute by default.
    pub delivery_lease: Duration,
    /// The lease of a hold, for routes that are priced by usage. It is renewed while the request is in progress; when a
    /// process ends without settling its holds, another one settles them after this time. One minute by default.
    pub hold_lease: Duration,
    /// Who sells the credits, for receipts.
    pub seller: Seller,
    /// How many keys an account may have. 1,000 by default.
    pub max_keys_per_account: u32,
    /// How many child accounts an account may have that are not closed; 0, the default, for none.
    pub max_child_accounts: u32,
}

impl ServiceConfig {
    /// The service's name in texts to sign, so signers see which service they sign for.
    pub(super) fn name(&self) -> String {
        match self.public_url.as_str() {
            "" => "The metering service".to_owned(),
            url => format!("The metering service at {url}"),
        }
    }
}

impl Default for ServiceConfig {
    fn default() -> Self {
        let (public_url, links, terms_url, terms_version, chains, seller) = Default::default();
        Self {
            public_url,
            links,
            terms_url,
            terms_version,
            chains,
            cards: Vec::new(),
            delivery_lease: Duration::from_secs(60),
            hold_lease: Duration::from_secs(60),
            seller,
            max_keys_per_account: 1_000,
            max_child_accounts: 0,
        }
    }
}

/// The links in refusals, so clients know the next step. A link that is `None` is left out.
#[derive(Debug, Clone, Default)]
pub struct Links {
    /// URL of the list of plans.
    pub plans: Option<String>,
    /// URL to register a payment at.
    pub top_up: Option<String>,
    /// URL of the page where a payer signs for a top-up
    /// ([`Payments::complete_top_up`](crate::service::Payments::complete_top_up)).
    pub complete: Option<String>,
    /// Where all routes are listed, as a phrase for messages: `/endpoints.json`, or "the API reference".
    pub routes: Option<Arc<str>>,
}
