//! Webhooks: URLs that an account, or the operator, has events sent to.
//!
//! Requests follow the [Standard Webhooks](https://github.com/standard-webhooks/standard-webhooks) specification.

use crate::access::account::AccountId;
use crate::clock::Timestamp;
use crate::events::kinds::EventKinds;
use crate::events::secret::WebhookSecret;
use crate::events::url::WebhookUrl;
use crate::named_enum::named_enum;
use crate::random_id::random_id;

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

random_id!(WebhookId, WebhookIdError, "we_");

impl WebhookId {
    /// The operator's own webhook.
    pub const OPERATOR: Self = Self([0; 16]);
}

/// A webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// Its id.
    pub id: WebhookId,
    /// The account whose events it receives; `None` for the operator's own one ([`WebhookId::OPERATOR`]), which
    /// receives the events of all accounts.
    pub account: Option<AccountId>,
    /// The receiving URL, and which events.
    pub terms: WebhookTerms,
    /// Whether events are sent to it.
    pub state: WebhookState,
    /// The secrets that sign its requests, newest first. Empty for the operator's own one, whose secrets are in the
    /// configuration.
    pub secrets: Vec<SigningSecret>,
    /// When it was created.
    pub created_at: Timestamp,
}

/// The settings of a webhook that its owner decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookTerms {
    /// Where events are sent.
    pub url: WebhookUrl,
    /// Which events.
    pub kinds: EventKinds,
}

named_enum! {
    /// Whether events are sent to a webhook.
    pub enum WebhookState {
        /// They are.
        Active = "active",
        /// It was switched off: new events are not sent to it, and pending ones wait.
        Disabled = "disabled",
        /// Its URL responded 410 Gone, which switched it off.
        Gone = "gone",
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

/// The owner of webhooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WebhookOwner {
    /// Webhooks of accounts.
    Customers,
    /// The operator's own one.
    Operator,
}

impl WebhookOwner {
    /// Whether a webhook of this account, or with `None` of the operator, is one of them.
    #[must_use]
    pub const fn owns(self, account: Option<&AccountId>) -> bool {
        account.is_none() == matches!(self, Self::Operator)
    }
}

/// A webhook to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewWebhook {
    /// Its id, which no webhook ever had.
    pub id: WebhookId,
    /// The account whose events it receives.
    pub account: AccountId,
    /// The receiving URL, and which events.
    pub terms: WebhookTerms,
    /// The secrets that sign its requests.
    pub secret: WebhookSecret,
    /// How many webhooks the account may have.
    pub max_webhooks: u32,
    /// When it is created.
    pub created_at: Timestamp,
}

/// A change of a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebhookChange {
    /// Changes to the owner's settings. `None` leaves a field unchanged.
    Terms {
        /// Where events are sent.
        url: Option<WebhookUrl>,
        /// Which events.
        kinds: Option<EventKinds>,
        /// Whether it is switched off. `false` also turns a webhook in the state `gone` back on.
        disabled: Option<bool>,
    },
    /// Replaces its secret. Requests are signed with both until `old_until`; `None` ends the old one now.
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
    /// The most secrets that requests are signed with: the new one and the replaced one.
    const MAX_SECRETS: usize = 2;

    /// Whether a change may have repaired this webhook: it has another URL, or is switched on again.
    #[must_use]
    pub fn may_be_repaired(&self, before: &Self) -> bool {
        let is_new = self.terms.url != before.terms.url || before.state != WebhookState::Active;
        self.state == WebhookState::Active && is_new
    }

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

    /// Whether events of this kind are stored for it.
    #[must_use]
    pub fn receives(&self, kind: crate::events::event_data::EventKind) -> bool {
        self.state == WebhookState::Active && self.terms.kinds.has(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::event_data::EventKind;
    use crate::random::SystemRandomness;

    const fn at(seconds: i64) -> Timestamp {
        Timestamp::from_unix_millis(1_795_262_400_000 + seconds * 1_000)
    }

    fn secret() -> WebhookSecret {
        WebhookSecret::generate(&SystemRandomness)
    }

    fn webhook(secret: &WebhookSecret) -> Webhook {
        let url = WebhookUrl::parse_trusted("https://example.com/").unwrap();
        let terms = WebhookTerms { url, kinds: [EventKind::KeyLeaked].into_iter().collect() };
        let (id, account) = (WebhookId::generate(&SystemRandomness), AccountId::generate(&SystemRandomness));
        NewWebhook { id, account, terms, secret: secret.clone(), max_webhooks: 1, created_at: at(0) }.into_webhook()
    }

    fn rotated(webhook: Webhook, secret: &WebhookSecret, old_until: Option<i64>, now: i64) -> Webhook {
        let old_until = old_until.map(at);
        webhook.after(WebhookChange::Rotate { secret: secret.clone(), old_until }, at(now))
    }

    fn expiries(webhook: &Webhook) -> Vec<Option<Timestamp>> {
        webhook.secrets.iter().map(|secret| secret.expires_at).collect()
    }

    #[test]
    fn a_webhook_starts_active_with_its_secret() {
        let secret = secret();
        let webhook = webhook(&secret);
        assert_eq!((webhook.state, webhook.created_at), (WebhookState::Active, at(0)));
        assert!(webhook.signing_secrets(at(9_999_999)).eq([&secret]));
    }

    #[test]
    fn only_an_active_webhook_receives_the_kinds_it_asks_for() {
        for state in WebhookState::ALL {
            let webhook = Webhook { state, ..webhook(&secret()) };
            let active = state == WebhookState::Active;
            assert_eq!(webhook.receives(EventKind::KeyLeaked), active, "{state:?}");
            assert!(!webhook.receives(EventKind::KeyCreated), "{state:?}");
            assert_eq!(WebhookState::from_name(state.as_str()), Some(state));
        }
    }

    #[test]
    fn a_change_keeps_what_it_does_not_name() {
        let before = webhook(&secret());
        let nothing = WebhookChange::Terms { url: None, kinds: None, disabled: None };
        for state in WebhookState::ALL {
            let before = Webhook { state, ..before.clone() };
            assert_eq!(before.clone().after(nothing.clone(), at(1)), before);
        }
        let switch = |state, disabled| {
            let change = WebhookChange::Terms { url: None, kinds: None, disabled: Some(disabled) };
            Webhook { state, ..before.clone() }.after(change, at(1)).state
        };
        assert_eq!(switch(WebhookState::Gone, false), WebhookState::Active);
        assert_eq!(switch(WebhookState::Gone, true), WebhookState::Disabled);
    }

    #[test]
    fn a_rotation_signs_with_both_secrets_until_the_old_one_ends() {
        let [first, second, third] = [secret(), secret(), secret()];
        let with_grace = rotated(webhook(&first), &second, Some(100), 0);
        assert!(with_grace.signing_secrets(at(99)).eq([&second, &first]));
        assert!(with_grace.signing_secrets(at(100)).eq([&second]));
        // until when the second rotation keeps the old secrets, at what time, expiries after it
        let table = [
            (Some(50), 10, vec![None, Some(at(50))]),
            (Some(200), 10, vec![None, Some(at(200))]),
            (Some(200), 100, vec![None, Some(at(200))]),
            (Some(10), 10, vec![None]),
            (Some(9), 10, vec![None]),
            (None, 10, vec![None]),
        ];
        for (old_until, now, expected) in table {
            let twice = rotated(with_grace.clone(), &third, old_until, now);
            assert_eq!(expiries(&twice), expected, "{old_until:?} at {now}");
            assert_eq!(twice.secrets[0].secret, third);
            assert!(twice.secrets.iter().skip(1).all(|old| old.secret == second), "the oldest one is dropped");
        }
    }
}
