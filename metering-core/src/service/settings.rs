//! Settings of the parts of a service that not every service has.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::catalogue::price::{Multiplier, Weight};
use crate::events::{AddressPolicy, Wake};
use crate::money::credits::Credits;
use crate::payments::exchange_rates::ExchangeRates;
use crate::payments::not_before::NotBefore;
use crate::signups::bot::BotCheck;
use crate::signups::mail::Mailer;

/// How to charge requests that another service serves.
///
/// ```
/// use metering_core::service::BillingSettings;
/// use metering_core::{MemoryStore, Service};
/// # use std::sync::Arc;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut settings = BillingSettings::default();
/// settings.default_weight = "720".parse()?;
/// let service = Service::with_defaults(Arc::new(MemoryStore::new())).with_billing(settings);
/// # let (_, key) = service.open_account("my-agent", "2".parse()?).await?;
/// # let request = serde_json::from_str(r#"{"path": "/report", "method": "GET"}"#)?;
/// assert_eq!(service.deduct(Some(&key), &request, None).await?.charged.to_string(), "0.1");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BillingSettings {
    /// The weight of a request when neither the caller nor the catalogue gives one.
    pub default_weight: Weight,
    /// The largest weight of a caller. A larger one is cut to this.
    pub max_weight: Weight,
    /// The largest multiplier of a caller. A larger one is cut to this.
    pub max_multiplier: Multiplier,
    /// How many templates outside the catalogue an account's usage may be booked on. Beyond that, usage is booked on
    /// the catch-all `(other)`.
    pub templates_per_account: usize,
}

impl Default for BillingSettings {
    fn default() -> Self {
        Self {
            default_weight: Weight::ONE,
            max_weight: Weight::MAX,
            max_multiplier: Multiplier::HUNDRED,
            templates_per_account: 200,
        }
    }
}

/// Settings for selling plans on chains. The defaults are the same as in the standalone server.
///
/// ```
/// use std::collections::BTreeMap;
/// use std::time::Duration;
///
/// use metering_core::Credits;
/// use metering_core::service::PaymentSettings;
///
/// let settings = PaymentSettings {
///     claim_wait: Duration::from_secs(10),
///     signup_bonus: Credits::ZERO,
///     not_before: BTreeMap::from([(8453, "2026-11-21T00:00:00Z".parse()?)]),
///     ..PaymentSettings::default()
/// };
/// assert!(settings.require_payer_proof);
/// # Ok::<(), metering_core::payments::NotBeforeError>(())
/// ```
#[derive(Debug, Clone)]
pub struct PaymentSettings {
    /// How long a quote's price is promised.
    pub quote_lifetime: Duration,
    /// How long a claim or top-up waits for confirmations.
    pub claim_wait: Duration,
    /// How often it checks the chain meanwhile.
    pub claim_poll: Duration,
    /// Free credits for an account created by a payment.
    pub signup_bonus: Credits,
    /// Whether a payer that is not known to belong to the account must sign.
    pub require_payer_proof: bool,
    /// How long a key rotation challenge is valid.
    pub challenge_lifetime: Duration,
    /// The oldest payments to accept, by chain. Without an entry, payments are accepted from the time at which the
    /// store first recorded their recipient.
    pub not_before: BTreeMap<u64, NotBefore>,
    /// The rates of the currency in which receipts express payments. `None` by default: receipts then have no values.
    pub rates: Option<Arc<ExchangeRates>>,
}

impl Default for PaymentSettings {
    fn default() -> Self {
        Self {
            quote_lifetime: Duration::from_secs(30 * 60),
            claim_wait: Duration::from_secs(45),
            claim_poll: Duration::from_secs(1),
            signup_bonus: Credits::from_whole(2).expect("two credits are in range"),
            require_payer_proof: true,
            challenge_lifetime: Duration::from_secs(10 * 60),
            not_before: BTreeMap::new(),
            rates: None,
        }
    }
}

/// Signup settings. The default durations are the same as in the standalone server.
///
/// ```
/// use std::time::Duration;
///
/// use metering_core::service::SignupSettings;
/// use metering_core::wire::InitiateRequest;
/// use metering_core::Service;
/// use metering_sqlite::SqliteStore;
/// # use std::sync::Arc;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let settings = SignupSettings {
///     verification_url: "https://account.example.com/approve".to_owned(),
///     session_lifetime: Duration::from_secs(5 * 60),
///     ..SignupSettings::default()
/// };
/// let store = Arc::new(SqliteStore::in_memory()?);
/// let service = Service::with_defaults(store.clone()).with_signup(store, settings);
/// # let (email, agent_name) = (Some("jo@example.com".to_owned()), Some("my-agent".to_owned()));
/// # let request = InitiateRequest { email, agent_name };
/// let signup = service.signups().initiate(&request).await?;
/// assert_eq!(signup.verification_url, "https://account.example.com/approve");
/// assert_eq!(signup.expires_in, 300);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct SignupSettings {
    /// URL of the page where people approve signups. The link to a signup adds its code as `?code=`. Empty by default.
    pub verification_url: String,
    /// How long a session can be approved.
    pub session_lifetime: Duration,
    /// The status poll interval that clients are given.
    pub poll_interval: Duration,
    /// The bot challenge to pass before a signup is approved; with `None`, bots can sign up too.
    pub bot_check: Option<Arc<dyn BotCheck>>,
    /// Sends mail. Without it, no links are sent and keys cannot be recovered by email.
    pub mailer: Option<Arc<dyn Mailer>>,
    /// Whether new accounts must verify their email address: until then they have no free credits, and do not hold the
    /// address. Needs a `mailer`.
    pub verify_email: bool,
}

impl Default for SignupSettings {
    fn default() -> Self {
        Self {
            verification_url: String::new(),
            session_lifetime: Duration::from_secs(15 * 60),
            poll_interval: Duration::from_secs(2),
            bot_check: None,
            mailer: None,
            verify_email: false,
        }
    }
}

/// Limits on customers' webhooks.
#[derive(Debug, Clone)]
pub struct WebhookSettings {
    /// How many webhooks an account may have; 0 for none. 10 by default.
    pub max_per_account: u32,
    /// Which addresses a URL may name. Only public ones by default. The sender must also check the addresses that a
    /// host's name resolves to.
    pub addresses: AddressPolicy,
    /// Whether the sender also sends mail: to `mailto:` URLs, which are the verified addresses of accounts. Off by
    /// default.
    pub mails: bool,
    /// Wakes the courier when a webhook is tested or a delivery is resent.
    pub wake: Wake,
}

impl Default for WebhookSettings {
    fn default() -> Self {
        Self { max_per_account: 10, addresses: AddressPolicy::default(), mails: false, wake: Wake::default() }
    }
}
