//! Reads the terms of keys from requests: of the holders of keys, and of operators.

use std::time::Duration;

use crate::access::budget::Budget;
use crate::access::key_terms::{KeyTerms, WiderTerms};
use crate::access::network::Networks;
use crate::access::route_pattern::RoutePatterns;
use crate::access::scope::{Scopes, ScopesError};
use crate::catalogue::Catalogue;
use crate::clock::Timestamp;
use crate::error::Error;
use crate::money::credits::Credits;
use crate::service::fields::Fields;
use crate::store::TermsChange;
use crate::wire::{ChangeKeyRequest, CreateKeyRequest};

/// The longest time that an old secret works after a rotation: a week.
const MAX_GRACE_SECONDS: u32 = 7 * 24 * 60 * 60;

/// A script with an empty list by mistake must not lift a restriction.
const NOT_EMPTY: &str = "must have at least one entry; leave it out, or send null, for no restriction";

/// Reads terms at a point in time.
#[derive(Debug, Clone, Copy)]
pub struct TermsReader<'c> {
    /// The catalogue that route patterns are checked against, if known.
    pub catalogue: Option<&'c Catalogue>,
    /// Now.
    pub now: Timestamp,
}

impl TermsReader<'_> {
    /// The terms of a new key.
    ///
    /// # Errors
    /// [`Error::ValidationFailed`] with every problem.
    pub fn terms(&self, request: &CreateKeyRequest) -> Result<KeyTerms, Error> {
        let mut fields = Fields::default();
        let name = fields.parsed("name", request.name.as_deref());
        let reset = fields.optional("limit_reset", request.limit_reset.as_deref());
        let expires_at = self.expiry(&mut fields, request.expires_at.as_deref());
        let scopes = request.scopes.as_deref().and_then(|scopes| read_scopes(&mut fields, scopes));
        let routes = request.routes.as_deref().and_then(|routes| self.read_routes(&mut fields, routes));
        let networks = request.networks.as_deref().and_then(|networks| read_networks(&mut fields, networks));
        check_limit(&mut fields, request.limit);
        if reset.is_some() && request.limit.is_none() {
            fields.wrong("limit_reset", "needs a limit");
        }
        check_alert(&mut fields, request.alert_below);
        if request.alert_below.is_some() && request.limit.is_none() {
            fields.wrong("alert_below", "needs a limit");
        }
        let Some(name) = name.filter(|_| fields.is_empty()) else { return Err(fields.into_error()) };
        let mut terms = KeyTerms::new(name, scopes.unwrap_or_default());
        terms.routes = routes.unwrap_or_default();
        terms.networks = networks.unwrap_or_default();
        terms.expires_at = expires_at;
        terms.limits.requests_per_minute = request.requests_per_minute.unwrap_or(0);
        terms.limits.requests_per_day = request.requests_per_day.unwrap_or(0);
        terms.tokens_per_minute = request.tokens_per_minute.unwrap_or(0);
        terms.max_in_flight = request.max_in_flight.unwrap_or(0);
        terms.budget = request.limit.map(|limit| Budget { limit, reset });
        terms.alert_below = request.alert_below;
        Ok(terms)
    }

    /// A change of terms.
    ///
    /// # Errors
    /// [`Error::ValidationFailed`] with every problem.
    pub fn change(&self, request: &ChangeKeyRequest) -> Result<TermsChange, Error> {
        let mut fields = Fields::default();
        let change = TermsChange {
            name: fields.optional("name", request.name.as_deref()),
            scopes: request.scopes.as_deref().and_then(|scopes| read_scopes(&mut fields, scopes)),
            routes: request.routes.as_ref().map(|routes| {
                routes.as_deref().and_then(|routes| self.read_routes(&mut fields, routes)).unwrap_or_default()
            }),
            networks: request.networks.as_ref().map(|networks| {
                networks.as_deref().and_then(|networks| read_networks(&mut fields, networks)).unwrap_or_default()
            }),
            expires_at: request.expires_at.as_ref().map(|text| self.expiry(&mut fields, text.as_deref())),
            disabled: request.disabled,
            requests_per_minute: request.requests_per_minute.map(Option::unwrap_or_default),
            requests_per_day: request.requests_per_day.map(Option::unwrap_or_default),
            tokens_per_minute: request.tokens_per_minute.map(Option::unwrap_or_default),
            max_in_flight: request.max_in_flight.map(Option::unwrap_or_default),
            limit: request.limit,
            limit_reset: request.limit_reset.as_ref().map(|text| fields.optional("limit_reset", text.as_deref())),
            alert_below: request.alert_below,
        };
        check_limit(&mut fields, request.limit.flatten());
        check_alert(&mut fields, request.alert_below.flatten());
        if fields.is_empty() { Ok(change) } else { Err(fields.into_error()) }
    }

    fn expiry(&self, fields: &mut Fields, text: Option<&str>) -> Option<Timestamp> {
        let at: Timestamp = fields.optional("expires_at", text)?;
        if at <= self.now {
            fields.wrong("expires_at", "must be in the future");
        }
        Some(at)
    }

    /// Patterns that match at least one route each. Without a catalogue, any.
    fn read_routes(&self, fields: &mut Fields, routes: &[String]) -> Option<RoutePatterns> {
        if routes.is_empty() {
            fields.wrong("routes", NOT_EMPTY);
        }
        let patterns = RoutePatterns::parse(routes.iter().map(String::as_str));
        let patterns = patterns.map_err(|problem| fields.wrong("routes", problem)).ok()?;
        let Some(catalogue) = self.catalogue else { return Some(patterns) };
        let known = catalogue.routes().iter().filter(|route| route.metered);
        let known = known.map(|route| (&*route.method, &*route.template));
        if known.clone().next().is_some()
            && let Some(unmatched) = patterns.unmatched(known)
        {
            let path = unmatched.split(' ').next_back().unwrap_or_default();
            let nearest = catalogue.nearest_template(path);
            let hint = nearest.map(|nearest| format!("; did you mean {nearest}?")).unwrap_or_default();
            fields.wrong("routes", format_args!("has {unmatched:?}, which matches no metered route{hint}"));
        }
        Some(patterns)
    }
}

/// Until when the old secrets of a key that is rotated now still work; `None` for no longer.
///
/// # Errors
/// [`Error::ValidationFailed`] when it is more than a week.
pub fn end_of_grace(grace_seconds: Option<u32>, now: Timestamp) -> Result<Option<Timestamp>, Error> {
    match grace_seconds.unwrap_or(0) {
        0 => Ok(None),
        seconds @ 1..=MAX_GRACE_SECONDS => Ok(Some(now.saturating_add(Duration::from_secs(seconds.into())))),
        _ => Err(Error::field("grace_seconds", format_args!("must be at most {MAX_GRACE_SECONDS}"))),
    }
}

/// The error for terms that allow more than they may.
#[must_use]
pub fn wider_terms(wider: WiderTerms) -> Error {
    Error::field(wider.field(), wider)
}

fn read_scopes(fields: &mut Fields, names: &[String]) -> Option<Scopes> {
    // Joined, since none of the names has a space.
    let joined = names.join(" ");
    joined.parse().map_err(|problem: ScopesError| fields.wrong("scopes", problem)).ok()
}

fn read_networks(fields: &mut Fields, networks: &[String]) -> Option<Networks> {
    if networks.is_empty() {
        fields.wrong("networks", NOT_EMPTY);
    }
    let networks = Networks::parse(networks.iter().map(String::as_str));
    networks.map_err(|problem| fields.wrong("networks", problem)).ok()
}

fn check_alert(fields: &mut Fields, alert_below: Option<Credits>) {
    if alert_below.is_some_and(|threshold| !threshold.is_positive()) {
        fields.wrong("alert_below", "must be above 0, or null for never");
    }
}

fn check_limit(fields: &mut Fields, limit: Option<Credits>) {
    if limit.is_some_and(Credits::is_negative) {
        fields.wrong("limit", "must not be negative");
    }
}
