//! Webhooks: URLs that an account, or the operator, has events sent to.
//!
//! Requests follow the [Standard Webhooks](https://github.com/standard-webhooks/standard-webhooks) specification.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::access::account::AccountId;
use crate::clock::Timestamp;
use crate::events::kinds::EventKinds;
use crate::events::secret::WebhookSecret;
use crate::events::url::WebhookUrl;
use crate::random::Randomness;

/// The id of a webhook: `we_` and 32 lower-case hex digits.
///
/// ```
/// use metering_core::SystemRandomness;
/// use metering_core::events::WebhookId;
///
/// let id = WebhookId::generate(&SystemRandomness);
/// assert_eq!(id.to_string().parse(), Ok(id));
/// assert!("we_42".parse::<WebhookId>().is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WebhookId([u8; 16]);

/// The text is not the id of a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the id of a webhook is we_ followed by 32 lower-case hex digits")]
pub struct WebhookIdError;

impl WebhookId {
    const PREFIX: &str = "we_";
    /// The operator's own webhook.
    pub const OPERATOR: Self = Self([0; 16]);

    /// A new id.
    #[must_use]
    pub fn generate(randomness: &dyn Randomness) -> Self {
        let mut bytes = [0; 16];
        randomness.fill(&mut bytes);
        Self(bytes)
    }

    /// Makes an id from its bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl FromStr for WebhookId {
    type Err = WebhookIdError;

    fn from_str(text: &str) -> Result<Self, WebhookIdError> {
        let digits = text.strip_prefix(Self::PREFIX).ok_or(WebhookIdError)?;
        let mut bytes = [0; 16];
        hex::decode_to_slice(digits, &mut bytes).map_err(|_| WebhookIdError)?;
        // One spelling per id: `hex` also reads upper-case digits.
        let id = Self(bytes);
        if id.to_string() == text { Ok(id) } else { Err(WebhookIdError) }
    }
}

impl fmt::Display for WebhookId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", Self::PREFIX, hex::encode(self.0))
    }
}

impl fmt::Debug for WebhookId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for WebhookId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// Its id.
    pub id: WebhookId,
    /// Whose events it receives; `None` for the operator's own one ([`WebhookId::OPERATOR`]), which receives those of
    /// all accounts.
    pub account: Option<AccountId>,
    /// Where to, and which events.
    pub terms: WebhookTerms,
    /// Whether events are sent to it.
    pub state: WebhookState,
    /// What its requests are signed with, newest first. Empty for the operator's own one, whose secrets are in the
    /// configuration.
    pub secrets: Vec<SigningSecret>,
    /// When it was created.
    pub created_at: Timestamp,
}

/// What the owner of a webhook decides about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookTerms {
    /// Where events are sent.
    pub url: WebhookUrl,
    /// Which events.
    pub kinds: EventKinds,
}

/// Whether events are sent to a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WebhookState {
    /// They are.
    Active,
    /// It was switched off: events are not kept for it, and those that wait are not sent.
    Disabled,
    /// Its URL responded 410 Gone, and it was switched off for that.
    Gone,
}

impl WebhookState {
    /// Every state.
    pub const ALL: [Self; 3] = [Self::Active, Self::Disabled, Self::Gone];

    /// Its name in stores and documents.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Disabled => "disabled",
            Self::Gone => "gone",
        }
    }

    /// The state with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }
}

/// A secret that requests are signed with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SigningSecret {
    /// The secret.
    pub secret: WebhookSecret,
    /// Until when, if it was replaced.
    pub expires_at: Option<Timestamp>,
}

/// A webhook to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewWebhook {
    /// Its id, which no webhook ever had.
    pub id: WebhookId,
    /// Whose events it receives.
    pub account: AccountId,
    /// Where to, and which events.
    pub terms: WebhookTerms,
    /// What its requests are signed with.
    pub secret: WebhookSecret,
    /// How many webhooks the account may have.
    pub max_webhooks: u32,
    /// When it is created.
    pub created_at: Timestamp,
}

/// A change of a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebhookChange {
    /// Changes what its owner decides. What is `None` stays as it is.
    Terms {
        /// Where events are sent.
        url: Option<WebhookUrl>,
        /// Which events.
        kinds: Option<EventKinds>,
        /// Whether it is switched off. One that is gone is switched on by `false`.
        disabled: Option<bool>,
    },
    /// Replaces its secret. Requests are signed with both until `old_until`; `None` means at once.
    Rotate {
        /// The new secret.
        secret: WebhookSecret,
        /// Until when requests are signed with the old one too.
        old_until: Option<Timestamp>,
    },
}

impl NewWebhook {
    /// The webhook.
    #[must_use]
    pub fn into_webhook(self) -> Webhook {
        let Self { id, account, terms, secret, created_at, max_webhooks: _ } = self;
        let secrets = vec![SigningSecret { secret, expires_at: None }];
        Webhook { id, account: Some(account), terms, state: WebhookState::Active, secrets, created_at }
    }
}

impl Webhook {
    /// The most secrets that requests are signed with: a new one, and the one that it replaced.
    const MAX_SECRETS: usize = 2;

    /// The webhook after a change at `now`.
    #[must_use]
    pub fn after(mut self, change: WebhookChange, now: Timestamp) -> Self {
        match change {
            WebhookChange::Terms { url, kinds, disabled } => {
                self.terms.url = url.unwrap_or(self.terms.url);
                self.terms.kinds = kinds.unwrap_or(self.terms.kinds);
                self.state = match disabled {
                    None => self.state,
                    Some(true) => WebhookState::Disabled,
                    Some(false) => WebhookState::Active,
                };
            }
            WebhookChange::Rotate { secret, old_until } => {
                let old = self.secrets.drain(..).filter(|old| old.expires_at.is_none_or(|at| now < at));
                let old = old.filter_map(|old| {
                    let until = old_until.filter(|until| *until > now)?;
                    Some(SigningSecret { expires_at: Some(old.expires_at.map_or(until, |at| at.min(until))), ..old })
                });
                let new = SigningSecret { secret, expires_at: None };
                self.secrets = std::iter::once(new).chain(old).take(Self::MAX_SECRETS).collect();
            }
        }
        self
    }

    /// The secrets to sign with at `now`.
    pub fn signing_secrets(&self, now: Timestamp) -> impl Iterator<Item = &WebhookSecret> {
        let works = move |secret: &&SigningSecret| secret.expires_at.is_none_or(|at| now < at);
        self.secrets.iter().filter(works).map(|secret| &secret.secret)
    }

    /// Whether events of this kind are kept for it.
    #[must_use]
    pub fn receives(&self, kind: crate::events::event::EventKind) -> bool {
        self.state == WebhookState::Active && self.terms.kinds.has(kind)
    }
}
