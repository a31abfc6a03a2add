//! Accounts: who owns a balance, and the rate limits on spending it.

use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::access::email::Email;
use crate::access::email_status::EmailStatus;
use crate::chains::address::Address;
use crate::clock::Timestamp;
use crate::lower_hex::is_lower_hex;
use crate::money::alert::BalanceAlert;
use crate::money::credits::Credits;
use crate::random::{Randomness, push_base62};
use crate::text_traits::text_traits;

/// The public id of an account: `org_` and 20 base-62 digits. An account that was imported may have `org_` and 24
/// lower-case hex digits instead, as it had at its source; such ids are never generated.
///
/// ```
/// use metering_core::{AccountId, SystemRandomness};
///
/// let id = AccountId::generate(&SystemRandomness);
/// assert_eq!(id.as_str().parse(), Ok(id));
/// assert!("org_42".parse::<AccountId>().is_err());
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountId(Arc<str>);

/// The text is not an account id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an account id is org_ followed by 20 letters and digits, or by 24 hexadecimal digits in lower case")]
pub struct AccountIdError;

impl AccountId {
    const PREFIX: &str = "org_";
    const DIGITS: usize = 20;
    const IMPORTED_DIGITS: usize = 24;

    /// Generates an id. Its 119 random bits make it unique.
    #[must_use]
    pub fn generate(randomness: &dyn Randomness) -> Self {
        let mut text = Self::PREFIX.to_owned();
        push_base62(randomness, Self::DIGITS, &mut text);
        Self(text.into())
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for AccountId {
    type Err = AccountIdError;

    fn from_str(text: &str) -> Result<Self, AccountIdError> {
        match text.strip_prefix(Self::PREFIX) {
            Some(rest) if rest.len() == Self::DIGITS && rest.bytes().all(|b| b.is_ascii_alphanumeric()) => {
                Ok(Self(text.into()))
            }
            Some(rest) if rest.len() == Self::IMPORTED_DIGITS && is_lower_hex(rest) => Ok(Self(text.into())),
            _ => Err(AccountIdError),
        }
    }
}

text_traits!(AccountId: Display, Debug, Serialize);

/// The name of an account: 1 to 64 of `A-Z a-z 0-9 _ -`.
///
/// ```
/// use metering_core::access::AgentName;
///
/// let name: AgentName = "my-agent_01".parse()?;
/// assert_eq!(name.as_str(), "my-agent_01");
/// assert!("my agent".parse::<AgentName>().is_err());
/// # Ok::<(), metering_core::access::AgentNameError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct AgentName(String);

/// The text is not an agent name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be 1 to 64 letters, digits, hyphens or underscores")]
pub struct AgentNameError;

impl AgentName {
    const MAX_BYTES: usize = 64;
    /// The name of every account whose owner was erased.
    pub const ERASED: &str = "erased";

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for AgentName {
    type Err = AgentNameError;

    fn from_str(text: &str) -> Result<Self, AgentNameError> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        if text.is_empty() || text.len() > Self::MAX_BYTES || !text.bytes().all(allowed) {
            return Err(AgentNameError);
        }
        Ok(Self(text.to_owned()))
    }
}

text_traits!(AgentName: Display);

/// An account's rate limits: accepted requests per calendar minute and per UTC day. 0 means no limit.
///
/// ```
/// use metering_core::charging::LimitWindow;
/// use metering_core::{Charge, Credits, Error, MemoryStore, RateLimits, Refusal, Service, Store};
/// # use std::sync::Arc;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let store = Arc::new(MemoryStore::new());
/// # let service = Service::with_defaults(store.clone());
/// # let (account, key) = service.open_account("my-agent", "2".parse()?).await?;
/// let limits = RateLimits::default().and_per_day(1);
/// store.set_limits(&account.id, limits).await?;
///
/// let charge = Charge::new(&key, Credits::BASE_CALL, "GET", "/price");
/// let receipt = service.charge(charge.clone()).await?;
/// assert_eq!(receipt.rate.remaining(LimitWindow::Day), Some(0));
/// let Err(error) = service.charge(charge).await else { return Err("the second request is above the limit".into()) };
/// let Error::Refused(refusal) = &error else { return Err("it is refused for another reason".into()) };
/// assert!(matches!(**refusal, Refusal::RateLimited { window: LimitWindow::Day, .. }));
/// assert!(error.retry_after_seconds() <= Some(24 * 60 * 60));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct RateLimits {
    /// Accepted requests per calendar minute (UTC); 0 means no limit.
    pub requests_per_minute: u32,
    /// Accepted requests per UTC day; 0 means no limit.
    pub requests_per_day: u32,
}

impl RateLimits {
    /// No limits.
    pub const NONE: Self = Self { requests_per_minute: 0, requests_per_day: 0 };

    /// This many requests per calendar minute, and no other limit.
    #[must_use]
    pub const fn per_minute(requests: u32) -> Self {
        Self { requests_per_minute: requests, ..Self::NONE }
    }

    /// This many requests per UTC day, and no other limit.
    #[must_use]
    pub const fn per_day(requests: u32) -> Self {
        Self { requests_per_day: requests, ..Self::NONE }
    }

    /// These limits, with this many requests per UTC day.
    #[must_use]
    pub const fn and_per_day(self, requests: u32) -> Self {
        Self { requests_per_day: requests, ..self }
    }
}

impl Default for RateLimits {
    fn default() -> Self {
        Self { requests_per_minute: 240, requests_per_day: 1_500_000 }
    }
}

/// An account's balance and the totals behind it. Always `balance = purchased + granted − used`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Credits left to spend. Can go below zero: by less than the price of one request, or by more after an adjustment
    /// or a reversed payment.
    pub balance: Credits,
    /// The sum of all purchases.
    pub purchased: Credits,
    /// The sum of all bonuses, grants and adjustments.
    pub granted: Credits,
    /// The sum of all charges, minus refunds.
    pub used: Credits,
    /// The sum of all open holds: credits that requests in flight may cost. They are not part of the balance.
    pub held: Credits,
}

impl Totals {
    /// Unspent credits: the balance plus held credits, which may return to it. Alerts use this value, so releasing a
    /// hold raises none.
    #[must_use]
    pub fn unspent(&self) -> Credits {
        self.balance.checked_add(self.held).unwrap_or(Credits::MAX)
    }
}

/// The wallet that paid for an account, and the chain it paid on. It may rotate the account's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Payer {
    /// The wallet.
    pub address: Address,
    /// The chain's id (EIP-155). On another chain, someone else may control a contract's address.
    pub chain_id: u64,
}

/// A snapshot of an account.
///
/// ```
/// use std::sync::Arc;
///
/// use metering_core::{MemoryStore, RateLimits, Service, Store};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = Arc::new(MemoryStore::new());
/// let (opened, _) = Service::with_defaults(store.clone()).open_account("my-agent", "2".parse()?).await?;
/// let account = store.account(&opened.id).await?.ok_or("there is no such account")?;
/// assert_eq!(account.agent_name.as_str(), "my-agent");
/// assert_eq!(account.totals.granted, account.totals.balance);
/// assert_eq!(account.limits, RateLimits::default());
/// assert_eq!(account.revoked_at, None);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Account {
    /// Its public id.
    pub id: AccountId,
    /// The name that its owner gave it.
    pub agent_name: AgentName,
    /// Its owner's email address, for accounts created by browser or device signup.
    pub email: Option<Email>,
    /// Whether the address is verified.
    pub email_status: EmailStatus,
    /// The wallet that paid for it, for accounts created by pay-signup.
    pub payer: Option<Payer>,
    /// Its rate limits.
    pub limits: RateLimits,
    /// How many tokens its requests may use in a calendar minute; 0 means no limit.
    pub tokens_per_minute: u32,
    /// Its balance and totals.
    pub totals: Totals,
    /// When it gets the event `balance.low`.
    pub alert: BalanceAlert,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was revoked; its keys are rejected from then on.
    pub revoked_at: Option<Timestamp>,
    /// When the stored data about its owner was erased. It is revoked then.
    pub erased_at: Option<Timestamp>,
}

impl Account {
    /// An account without address, payer, credits and alert, with the [default limits](RateLimits::default).
    #[must_use]
    pub fn new(id: AccountId, agent_name: AgentName, created_at: Timestamp) -> Self {
        Self {
            id,
            agent_name,
            email: None,
            email_status: EmailStatus::Unchecked,
            payer: None,
            limits: RateLimits::default(),
            tokens_per_minute: 0,
            totals: Totals::default(),
            alert: BalanceAlert::default(),
            created_at,
            revoked_at: None,
            erased_at: None,
        }
    }

    /// Its email address, if it holds it: no other account that is not revoked does.
    #[must_use]
    pub fn held_email(&self) -> Option<&Email> {
        self.email.as_ref().filter(|_| self.email_status.is_holding())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SystemRandomness;

    #[test]
    fn generated_ids_parse_and_others_do_not() {
        let id = AccountId::generate(&SystemRandomness);
        assert_eq!(id.as_str().parse::<AccountId>(), Ok(id.clone()));
        for text in ["", "org_", "org_short", "user_aaaaaaaaaaaaaaaaaaaa", "org_aaaaaaaaaaaaaaaaaaa!"] {
            assert_eq!(text.parse::<AccountId>(), Err(AccountIdError), "{text}");
        }
    }

    #[test]
    fn agent_names_keep_to_their_alphabet() {
        let longest = "a".repeat(64);
        let too_long = "a".repeat(65);
        let table = [
            ("my-agent_01", true),
            (longest.as_str(), true),
            ("", false),
            (too_long.as_str(), false),
            ("with space", false),
            ("<b>", false),
            ("naïve", false),
        ];
        for (text, valid) in table {
            assert_eq!(text.parse::<AgentName>().is_ok(), valid, "{text:?}");
        }
    }
}
