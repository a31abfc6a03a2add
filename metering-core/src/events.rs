//! Events: what happened to an account that its owner should hear about, and the webhooks that they are sent to.
//!
//! Events are written in the transaction that causes them. Any process of the service then delivers them, at least once
//! and in order per account, following the [Standard Webhooks] specification.
//!
//! Customers choose where their webhooks go, so a URL is untrusted input: it may name only public addresses, unless the
//! operator allows more. [`WebhookUrl`] checks the text; the sender must also check each address that the host's name
//! resolves to with [`AddressPolicy`].
//!
//! [Standard Webhooks]: https://www.standardwebhooks.com

pub(crate) mod address;
pub(crate) mod courier;
pub(crate) mod delivery;
pub(crate) mod delivery_shares;
pub(crate) mod event;
pub(crate) mod event_data;
pub(crate) mod kinds;
pub(crate) mod secret;
pub(crate) mod signature;
pub(crate) mod url;
pub(crate) mod usage_courier;
pub(crate) mod usage_sink;
pub(crate) mod webhook;
pub(crate) mod webhook_health;

pub use address::{AddressPolicy, is_public};
pub use courier::{Courier, CourierSettings, CourierStats, Wake, WebhookMessage, WebhookSender};
pub use delivery::{
    AttemptOutcome, AttemptResult, Delivery, DeliveryBacklog, DeliveryFilter, DeliveryId, DeliveryState, DueDelivery,
    Progress,
};
pub use delivery_shares::DeliveryShares;
pub use event::{Event, EventId, NewEvent};
pub use event_data::{BudgetEvent, EventData, EventKind, EventKindError, KeyEvent, MemberEvent, PaymentEvent};
pub use kinds::EventKinds;
pub use secret::{MalformedWebhookSecret, WebhookSecret};
pub use signature::signature;
pub use url::{WebhookUrl, WebhookUrlError};
pub use usage_courier::{UsageCourier, UsageCourierSettings, UsageSender};
pub use usage_sink::{SentUsage, SinkTurn, StagedTotal, UsageSink, UsageTotal};
pub use webhook::{
    NewWebhook, SigningSecret, Webhook, WebhookChange, WebhookId, WebhookIdError, WebhookOwner, WebhookState,
    WebhookTerms,
};
pub use webhook_health::{DeliveryCounts, WebhookHealth};
