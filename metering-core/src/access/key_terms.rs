//! The terms of a key: its permissions, the networks it may be used from, its rate limits and its budget.

use std::str::FromStr;

use serde::Serialize;

use crate::access::account::RateLimits;
use crate::access::budget::Budget;
use crate::access::invisible::is_invisible;
use crate::access::network::Networks;
use crate::access::route_pattern::RoutePatterns;
use crate::access::scope::Scopes;
use crate::clock::Timestamp;
use crate::money::credits::Credits;
use crate::text_traits::text_traits;

/// The name of a key, for its owner: 1 to 100 visible characters on one line.
///
/// ```
/// use metering_core::access::KeyName;
///
/// let name: KeyName = " Sub-agent 7 ".parse()?;
/// assert_eq!(name.as_str(), "Sub-agent 7");
/// assert!("".parse::<KeyName>().is_err());
/// # Ok::<(), metering_core::access::KeyNameError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct KeyName(String);

/// The text is not the name of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be 1 to 100 visible characters on one line")]
pub struct KeyNameError;

impl KeyName {
    const MAX_CHARS: usize = 100;

    /// The name of the key that an account is created with.
    #[must_use]
    pub fn first() -> Self {
        Self("First key".to_owned())
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for KeyName {
    type Err = KeyNameError;

    fn from_str(text: &str) -> Result<Self, KeyNameError> {
        let text = text.trim();
        let valid = (1..=Self::MAX_CHARS).contains(&text.chars().count()) && !text.chars().any(is_invisible);
        if valid { Ok(Self(text.to_owned())) } else { Err(KeyNameError) }
    }
}

text_traits!(KeyName: Display);

/// The scopes of a key. Its parent keys restrict it further: a request must be allowed by all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyTerms {
    /// Its name.
    pub name: KeyName,
    /// Its scopes.
    pub scopes: Scopes,
    /// The routes that it may call.
    pub routes: RoutePatterns,
    /// The networks that it may be used from.
    pub networks: Networks,
    /// When it expires, if ever. It is refused from that instant on.
    pub expires_at: Option<Timestamp>,
    /// Whether it is switched off.
    pub disabled: bool,
    /// Its rate limits, which the requests of its child keys count towards; 0 means no limit. The account's limits
    /// apply too.
    pub limits: RateLimits,
    /// How many tokens its requests, and those of its child keys, may use in a calendar minute; 0 means no limit.
    pub tokens_per_minute: u32,
    /// How many requests and streams of it and of its child keys may be in flight in one process; 0 means no limit.
    pub max_in_flight: u32,
    /// How many credits may be spent with it and with its child keys.
    pub budget: Option<Budget>,
    /// The event `balance.low` is sent when less than this remains of the budget; `None` for never. Has no effect
    /// without a budget.
    pub alert_below: Option<Credits>,
}

/// Which part of a key's terms is wider than its parent's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WiderTerms {
    /// The scopes.
    #[error("must be among the scopes of the parent key")]
    Scopes,
    /// The routes.
    #[error("must be among the routes of the parent key")]
    Routes,
    /// The networks.
    #[error("must be within the networks of the parent key")]
    Networks,
    /// The time of expiry.
    #[error("must not be later than that of the parent key")]
    ExpiresAt,
    /// The budget.
    #[error("must not be more than that of the parent key")]
    Limit,
    /// The budget's period.
    #[error("a key cannot change the period of its own budget")]
    LimitReset,
    /// The requests per minute.
    #[error("must not be more than those of the parent key")]
    RequestsPerMinute,
    /// The requests per day.
    #[error("must not be more than those of the parent key")]
    RequestsPerDay,
    /// The tokens per minute.
    #[error("must not be more than those of the parent key")]
    TokensPerMinute,
    /// The requests in flight.
    #[error("must not be more than those of the parent key")]
    MaxInFlight,
}

impl WiderTerms {
    /// The name of the field on the wire.
    #[must_use]
    pub const fn field(self) -> &'static str {
        match self {
            Self::Scopes => "scopes",
            Self::Routes => "routes",
            Self::Networks => "networks",
            Self::ExpiresAt => "expires_at",
            Self::Limit => "limit",
            Self::LimitReset => "limit_reset",
            Self::RequestsPerMinute => "requests_per_minute",
            Self::RequestsPerDay => "requests_per_day",
            Self::TokensPerMinute => "tokens_per_minute",
            Self::MaxInFlight => "max_in_flight",
        }
    }
}

impl KeyTerms {
    /// Terms that allow everything in `scopes`.
    #[must_use]
    pub fn new(name: KeyName, scopes: Scopes) -> Self {
        Self {
            name,
            scopes,
            routes: RoutePatterns::default(),
            networks: Networks::default(),
            expires_at: None,
            disabled: false,
            limits: RateLimits::NONE,
            tokens_per_minute: 0,
            max_in_flight: 0,
            budget: None,
            alert_below: None,
        }
    }

    /// The terms of the key that an account is created with: it may do everything.
    #[must_use]
    pub fn first() -> Self {
        Self::new(KeyName::first(), Scopes::ALL)
    }

    /// Whether spending or requests with it must be counted on every request. Tokens are not: see
    /// [`HeldTokens`](crate::charging::HeldTokens).
    #[must_use]
    pub fn is_counted(&self) -> bool {
        self.budget.is_some() || self.limits != RateLimits::NONE
    }

    /// These terms, with unset ones taken from `outer`: expiry, routes and networks.
    #[must_use]
    pub fn completed_from(mut self, outer: &Self) -> Self {
        self.expires_at = self.expires_at.or(outer.expires_at);
        if self.routes.is_empty() {
            self.routes = outer.routes.clone();
        }
        if self.networks.is_empty() {
            self.networks = outer.networks.clone();
        }
        self
    }

    /// Checks that these terms allow nothing that `outer` does not.
    ///
    /// A budget, rate limit or limit on requests in flight that is left open is not wider: `outer` restricts it anyway.
    ///
    /// # Errors
    /// The first part that is wider.
    pub fn check_within(&self, outer: &Self) -> Result<(), WiderTerms> {
        let capped = |own: u32, outer: u32| outer == 0 || own <= outer;
        let expires_in_time = outer.expires_at.is_none_or(|outer| self.expires_at.is_some_and(|own| own <= outer));
        let limit_is_within = self.budget.zip(outer.budget).is_none_or(|(own, outer)| own.limit <= outer.limit);
        let parts = [
            (self.scopes.is_within(outer.scopes), WiderTerms::Scopes),
            (self.routes.is_within(&outer.routes), WiderTerms::Routes),
            (self.networks.is_within(&outer.networks), WiderTerms::Networks),
            (expires_in_time, WiderTerms::ExpiresAt),
            (limit_is_within, WiderTerms::Limit),
            (capped(self.limits.requests_per_minute, outer.limits.requests_per_minute), WiderTerms::RequestsPerMinute),
            (capped(self.limits.requests_per_day, outer.limits.requests_per_day), WiderTerms::RequestsPerDay),
            (capped(self.tokens_per_minute, outer.tokens_per_minute), WiderTerms::TokensPerMinute),
            (capped(self.max_in_flight, outer.max_in_flight), WiderTerms::MaxInFlight),
        ];
        first_wider(parts)
    }

    /// Checks that terms that were `before`, and are changed to these, allow nothing new that `outer` does not.
    ///
    /// Unchanged terms are not checked: `outer` may have been narrowed since.
    ///
    /// # Errors
    /// The first part that is wider.
    pub fn check_change(&self, before: &Self, outer: &Self) -> Result<(), WiderTerms> {
        /// The terms of `outer` itself, if nothing changed.
        fn changed<T: Clone + PartialEq>(after: &T, before: &T, outer: &T) -> T {
            if after == before { outer.clone() } else { after.clone() }
        }
        let rate = |of: fn(&RateLimits) -> u32| changed(&of(&self.limits), &of(&before.limits), &of(&outer.limits));
        let checked = Self {
            scopes: changed(&self.scopes, &before.scopes, &outer.scopes),
            routes: changed(&self.routes, &before.routes, &outer.routes),
            networks: changed(&self.networks, &before.networks, &outer.networks),
            expires_at: changed(&self.expires_at, &before.expires_at, &outer.expires_at),
            limits: RateLimits::per_minute(rate(|limits| limits.requests_per_minute))
                .and_per_day(rate(|limits| limits.requests_per_day)),
            tokens_per_minute: changed(&self.tokens_per_minute, &before.tokens_per_minute, &outer.tokens_per_minute),
            max_in_flight: changed(&self.max_in_flight, &before.max_in_flight, &outer.max_in_flight),
            budget: changed(&self.budget, &before.budget, &outer.budget),
            ..self.clone()
        };
        checked.check_within(outer)
    }

    /// Checks that a key that changes its own terms from `before` to these only narrows them: nothing is wider, and no
    /// budget or limit is removed. The period of a budget stays the same, because a new period would allow more
    /// spending immediately.
    ///
    /// # Errors
    /// The first part that is wider.
    pub fn check_narrows(&self, before: &Self) -> Result<(), WiderTerms> {
        self.check_within(before)?;
        let keeps = |own: u32, before: u32| before == 0 || own != 0;
        let reset = |terms: &Self| terms.budget.map(|budget| budget.reset);
        let parts = [
            (before.budget.is_none() || self.budget.is_some(), WiderTerms::Limit),
            (before.budget.is_none() || reset(self) == reset(before), WiderTerms::LimitReset),
            (keeps(self.limits.requests_per_minute, before.limits.requests_per_minute), WiderTerms::RequestsPerMinute),
            (keeps(self.limits.requests_per_day, before.limits.requests_per_day), WiderTerms::RequestsPerDay),
            (keeps(self.tokens_per_minute, before.tokens_per_minute), WiderTerms::TokensPerMinute),
            (keeps(self.max_in_flight, before.max_in_flight), WiderTerms::MaxInFlight),
        ];
        first_wider(parts)
    }
}

/// The first part that is not within its bounds.
fn first_wider(parts: impl IntoIterator<Item = (bool, WiderTerms)>) -> Result<(), WiderTerms> {
    parts.into_iter().find(|(within, _)| !within).map_or(Ok(()), |(_, wider)| Err(wider))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::budget::BudgetReset;
    use crate::money::credits::Credits;

    fn changed(change: impl FnOnce(&mut KeyTerms)) -> KeyTerms {
        let mut terms = KeyTerms::new("k".parse().unwrap(), Scopes::default());
        change(&mut terms);
        terms
    }

    #[test]
    fn what_is_wider_is_named() {
        let at = Timestamp::from_unix_millis;
        let budget = |atoms| Some(Budget { limit: Credits::from_atoms(atoms), reset: None });
        let table = [
            (changed(|_| {}), changed(|_| {}), Ok(())),
            (changed(|_| {}), KeyTerms::first(), Ok(())),
            (KeyTerms::first(), changed(|_| {}), Err(WiderTerms::Scopes)),
            (changed(|_| {}), changed(|t| t.routes = "/a".parse().unwrap()), Err(WiderTerms::Routes)),
            (changed(|_| {}), changed(|t| t.networks = "10.0.0.0/8".parse().unwrap()), Err(WiderTerms::Networks)),
            (changed(|_| {}), changed(|t| t.expires_at = Some(at(1))), Err(WiderTerms::ExpiresAt)),
            (
                changed(|t| t.expires_at = Some(at(2))),
                changed(|t| t.expires_at = Some(at(1))),
                Err(WiderTerms::ExpiresAt),
            ),
            (changed(|t| t.expires_at = Some(at(1))), changed(|t| t.expires_at = Some(at(1))), Ok(())),
            (changed(|t| t.budget = budget(2)), changed(|t| t.budget = budget(1)), Err(WiderTerms::Limit)),
            (changed(|_| {}), changed(|t| t.budget = budget(1)), Ok(())),
            (changed(|t| t.max_in_flight = 3), changed(|t| t.max_in_flight = 2), Err(WiderTerms::MaxInFlight)),
            (changed(|_| {}), changed(|t| t.max_in_flight = 2), Ok(())),
        ];
        for (own, outer, expected) in table {
            assert_eq!(own.check_within(&outer), expected, "{own:?} in {outer:?}");
        }
    }

    #[test]
    fn a_key_that_changes_itself_removes_no_limit() {
        let budget = |atoms, reset| Some(Budget { limit: Credits::from_atoms(atoms), reset });
        let before = changed(|t| {
            t.budget = budget(10, Some(BudgetReset::Daily));
            t.limits = RateLimits::per_minute(2).and_per_day(20);
            t.tokens_per_minute = 50;
            t.max_in_flight = 3;
        });
        let after = |change: fn(&mut KeyTerms)| {
            let mut terms = before.clone();
            change(&mut terms);
            terms.check_narrows(&before)
        };
        assert_eq!(after(|_| {}), Ok(()));
        assert_eq!(after(|t| t.max_in_flight = 1), Ok(()));
        assert_eq!(after(|t| t.scopes = Scopes::ALL), Err(WiderTerms::Scopes));
        assert_eq!(after(|t| t.budget = None), Err(WiderTerms::Limit));
        assert_eq!(after(|t| t.limits.requests_per_minute = 0), Err(WiderTerms::RequestsPerMinute));
        assert_eq!(after(|t| t.limits.requests_per_day = 0), Err(WiderTerms::RequestsPerDay));
        assert_eq!(after(|t| t.tokens_per_minute = 0), Err(WiderTerms::TokensPerMinute));
        assert_eq!(after(|t| t.tokens_per_minute = 51), Err(WiderTerms::TokensPerMinute));
        assert_eq!(after(|t| t.tokens_per_minute = 49), Ok(()));
        assert_eq!(after(|t| t.max_in_flight = 0), Err(WiderTerms::MaxInFlight));
        let budgets = [
            (10, Some(BudgetReset::Daily), Ok(())),
            (9, Some(BudgetReset::Daily), Ok(())),
            (11, Some(BudgetReset::Daily), Err(WiderTerms::Limit)),
            (10, Some(BudgetReset::Monthly), Err(WiderTerms::LimitReset)),
            (10, None, Err(WiderTerms::LimitReset)),
        ];
        for (atoms, reset, expected) in budgets {
            let terms = KeyTerms { budget: budget(atoms, reset), ..before.clone() };
            assert_eq!(terms.check_narrows(&before), expected, "{atoms} {reset:?}");
        }
        let open = changed(|_| {});
        assert_eq!(before.check_narrows(&open), Ok(()), "a key may limit itself");
    }

    #[test]
    fn only_what_changes_is_compared_with_the_terms_above() {
        let narrow = changed(|t| {
            t.routes = "/a".parse().unwrap();
            t.max_in_flight = 2;
        });
        let before = changed(|t| t.max_in_flight = 5);
        let after = |change: fn(&mut KeyTerms)| {
            let mut terms = before.clone();
            change(&mut terms);
            terms.check_change(&before, &narrow)
        };
        assert_eq!(before.check_within(&narrow), Err(WiderTerms::Routes));
        assert_eq!(after(|t| t.disabled = true), Ok(()), "a key can be disabled after its parent was narrowed");
        assert_eq!(after(|t| t.routes = "/b".parse().unwrap()), Err(WiderTerms::Routes));
        assert_eq!(after(|t| t.routes = "/a".parse().unwrap()), Ok(()));
        assert_eq!(after(|t| t.max_in_flight = 4), Err(WiderTerms::MaxInFlight));
        assert_eq!(after(|t| t.max_in_flight = 1), Ok(()));
    }

    #[test]
    fn what_is_left_open_is_taken_from_above() {
        let outer = changed(|t| {
            t.routes = "/a/*".parse().unwrap();
            t.networks = "10.0.0.0/8".parse().unwrap();
            t.expires_at = Some(Timestamp::from_unix_millis(5));
        });
        let completed = changed(|_| {}).completed_from(&outer);
        assert_eq!(completed, outer);
        assert_eq!(completed.check_within(&outer), Ok(()));
    }

    #[test]
    fn names_are_one_visible_line() {
        for text in ["", "  ", "a\nb", "a\u{202E}b", &"x".repeat(101)] {
            assert!(text.parse::<KeyName>().is_err(), "{text:?}");
        }
        assert_eq!(" Grüße 😀 ".parse::<KeyName>().unwrap().as_str(), "Grüße 😀");
    }
}
