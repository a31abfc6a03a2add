//! Who may charge, and how much: accounts, their API keys and rate limits, and the credentials of a request.
//!
//! A key exists in plain text only when it is issued and in the request that carries it; stores see its hash.

pub(crate) mod account;
pub(crate) mod credentials;
pub(crate) mod email_status;
pub(crate) mod invisible;
pub(crate) mod key;
pub(crate) mod succession;

pub use account::{
    Account, AccountId, AccountIdError, AgentName, AgentNameError, Email, EmailError, Payer, RateLimits, Totals,
};
pub use credentials::Credentials;
pub use email_status::EmailStatus;
pub use key::{ApiKey, ApiKeyKind, KeyFault, KeyHash, MalformedKey};
pub use succession::{ROTATION_KEY_MIN, ShortRotationKey};
