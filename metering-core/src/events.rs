//! Events that a service tells others about by webhook, as the [Standard Webhooks] specification has it.
//!
//! Customers choose where their webhooks go, so a URL is untrusted input: it may name only public addresses, unless the
//! operator allows more. [`WebhookUrl`] checks what the text shows; whoever connects asks [`AddressPolicy`] again about
//! each address that the host's name resolves to.
//!
//! [Standard Webhooks]: https://www.standardwebhooks.com

pub(crate) mod address;
pub(crate) mod secret;
pub(crate) mod signature;
pub(crate) mod url;

pub use address::{AddressPolicy, is_public};
pub use secret::{MalformedWebhookSecret, WebhookSecret};
pub use signature::signature;
pub use url::{WebhookUrl, WebhookUrlError};
