//! The terms of a key as arguments.

use std::fmt;
use std::str::FromStr;

use clap::Args;
use metering_core::access::{BudgetReset, KeyName, Networks, RoutePatterns, Scope};
use metering_core::money::DecimalError;
use metering_core::wire::{ChangeKeyRequest, CreateKeyRequest};
use metering_core::{Credits, Timestamp};

/// Removes a limit, the period of a limit, or an expiry.
const NONE: &str = "none";
/// Removes the restriction to some routes or networks.
const ANY: &str = "any";

/// The terms of a new key.
#[derive(Debug, Args)]
pub(crate) struct NewTerms {
    /// Its name: 1 to 100 characters.
    #[arg(long, value_name = "NAME")]
    name: KeyName,
    /// The credits that it and its child keys may spend, with up to eight decimal places.
    #[arg(long, value_name = "N", value_parser = credits, allow_negative_numbers = true)]
    limit: Option<Credits>,
    /// When the limit resets: daily, weekly (on Monday) or monthly, in UTC.
    #[arg(long, value_name = "PERIOD", requires = "limit")]
    limit_reset: Option<BudgetReset>,
    /// Send the event balance.low to webhooks when the rest of the limit falls below this many credits.
    #[arg(long, value_name = "N", requires = "limit", value_parser = threshold, allow_negative_numbers = true)]
    alert_below: Option<Credits>,
    /// When it expires, such as 2026-12-31T00:00:00Z.
    #[arg(long, value_name = "TIME")]
    expires_at: Option<Timestamp>,
    /// What it may be used for, separated by commas: call, read, manage, topup [default: call,read].
    #[arg(long, value_name = "SCOPES", value_delimiter = ',', value_parser = scope)]
    scopes: Vec<Scope>,
    /// A route that it may call, such as /quotes/{number}, "GET /search" or "/quotes/*"; may be repeated.
    #[arg(long = "route", value_name = "PATTERN", value_parser = route)]
    routes: Vec<String>,
    /// An address or network that it may be used from, such as 203.0.113.0/24; may be repeated.
    #[arg(long = "network", value_name = "CIDR", value_parser = network)]
    networks: Vec<String>,
    /// Requests per calendar minute; 0 for no limit besides those of its parent keys.
    #[arg(long, value_name = "N")]
    rpm: Option<u32>,
    /// Requests per UTC day; 0 for no limit besides those of its parent keys.
    #[arg(long, value_name = "N")]
    rpd: Option<u32>,
    /// Tokens per calendar minute; 0 for no limit besides those of its parent keys.
    #[arg(long, value_name = "N")]
    tpm: Option<u32>,
    /// Requests and streams in flight at once; 0 for no limit besides those of its parent keys.
    #[arg(long, value_name = "N")]
    max_in_flight: Option<u32>,
}

/// Terms to change. Omitted terms do not change.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub(crate) struct ChangedTerms {
    /// Its name: 1 to 100 characters.
    #[arg(long, value_name = "NAME")]
    name: Option<KeyName>,
    /// The credits that it and its child keys may spend; none to remove the limit.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    limit: Option<OrNone<Limit>>,
    /// When the limit resets: daily, weekly (on Monday) or monthly, in UTC; none for never.
    #[arg(long, value_name = "PERIOD")]
    limit_reset: Option<OrNone<BudgetReset>>,
    /// Send the event balance.low to webhooks when the rest of the limit falls below this many credits; none for never.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    alert_below: Option<OrNone<Threshold>>,
    /// When it expires, such as 2026-12-31T00:00:00Z; none for when its parent key does.
    #[arg(long, value_name = "TIME")]
    expires_at: Option<OrNone<Timestamp>>,
    /// What it may be used for, separated by commas: call, read, manage, topup.
    #[arg(long, value_name = "SCOPES", value_delimiter = ',', value_parser = scope)]
    scopes: Option<Vec<Scope>>,
    /// A route that it may call, such as /quotes/{number}, "GET /search" or "/quotes/*"; may be repeated. Replaces all
    /// routes; any removes the restriction.
    #[arg(long = "route", value_name = "PATTERN", value_parser = route_or_any)]
    routes: Option<Vec<String>>,
    /// An address or network that it may be used from, such as 203.0.113.0/24; may be repeated. Replaces all networks;
    /// any removes the restriction.
    #[arg(long = "network", value_name = "CIDR", value_parser = network_or_any)]
    networks: Option<Vec<String>>,
    /// Requests per calendar minute; 0 for no limit besides those of its parent keys.
    #[arg(long, value_name = "N")]
    rpm: Option<u32>,
    /// Requests per UTC day; 0 for no limit besides those of its parent keys.
    #[arg(long, value_name = "N")]
    rpd: Option<u32>,
    /// Tokens per calendar minute; 0 for no limit besides those of its parent keys.
    #[arg(long, value_name = "N")]
    tpm: Option<u32>,
    /// Requests and streams in flight at once; 0 for no limit besides those of its parent keys.
    #[arg(long, value_name = "N")]
    max_in_flight: Option<u32>,
}

/// A value, or the word that removes it.
#[derive(Debug, Clone, Copy)]
struct OrNone<T>(Option<T>);

impl<T: FromStr<Err: fmt::Display>> FromStr for OrNone<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == NONE {
            return Ok(Self(None));
        }
        text.parse().map(|value| Self(Some(value))).map_err(|problem| format!("{problem}, or {NONE}"))
    }
}

/// The credits of a limit: zero or more.
#[derive(Debug, Clone, Copy)]
struct Limit(Credits);

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        credits(text).map(Self)
    }
}

/// The credits of an alert: above zero.
#[derive(Debug, Clone, Copy)]
struct Threshold(Credits);

impl FromStr for Threshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        threshold(text).map(Self)
    }
}

/// Reads credits above zero.
pub(crate) fn threshold(text: &str) -> Result<Credits, String> {
    let credits: Credits = text.parse().map_err(|error: DecimalError| error.to_string())?;
    if credits.is_positive() { Ok(credits) } else { Err("must be above zero".to_owned()) }
}

fn credits(text: &str) -> Result<Credits, String> {
    let credits: Credits = text.parse().map_err(|error: DecimalError| error.to_string())?;
    if credits.is_negative() { Err("must not be negative".to_owned()) } else { Ok(credits) }
}

fn scope(text: &str) -> Result<Scope, &'static str> {
    let named = Scope::ALL.into_iter().find(|scope| scope.as_str() == text);
    named.ok_or("must be call, read, manage or topup")
}

fn route(text: &str) -> Result<String, String> {
    RoutePatterns::parse([text]).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

fn route_or_any(text: &str) -> Result<String, String> {
    if text == ANY { Ok(text.to_owned()) } else { route(text) }
}

fn network(text: &str) -> Result<String, String> {
    Networks::parse([text]).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

fn network_or_any(text: &str) -> Result<String, String> {
    if text == ANY { Ok(text.to_owned()) } else { network(text) }
}

fn names(scopes: Vec<Scope>) -> Vec<String> {
    scopes.into_iter().map(|scope| scope.as_str().to_owned()).collect()
}

/// A list; `None` if it contains `any`, which means no restriction.
fn listed(entries: Vec<String>) -> Option<Vec<String>> {
    (!entries.iter().any(|entry| entry == ANY)).then_some(entries)
}

impl NewTerms {
    /// The request for such a key.
    pub(crate) fn request(self) -> CreateKeyRequest {
        let given = |list: Vec<String>| (!list.is_empty()).then_some(list);
        CreateKeyRequest {
            name: Some(self.name.to_string()),
            limit: self.limit,
            limit_reset: self.limit_reset.map(|reset| reset.to_string()),
            alert_below: self.alert_below,
            expires_at: self.expires_at.map(|at| at.to_string()),
            scopes: given(names(self.scopes)),
            routes: given(self.routes),
            networks: given(self.networks),
            requests_per_minute: self.rpm,
            requests_per_day: self.rpd,
            tokens_per_minute: self.tpm,
            max_in_flight: self.max_in_flight,
        }
    }
}

impl ChangedTerms {
    /// The request for this change.
    pub(crate) fn request(self) -> ChangeKeyRequest {
        ChangeKeyRequest {
            name: self.name.map(|name| name.to_string()),
            limit: self.limit.map(|OrNone(limit)| limit.map(|Limit(credits)| credits)),
            limit_reset: self.limit_reset.map(|OrNone(reset)| reset.map(|reset| reset.to_string())),
            alert_below: self.alert_below.map(|OrNone(below)| below.map(|Threshold(credits)| credits)),
            expires_at: self.expires_at.map(|OrNone(at)| at.map(|at| at.to_string())),
            disabled: None,
            scopes: self.scopes.map(names),
            routes: self.routes.map(listed),
            networks: self.networks.map(listed),
            requests_per_minute: self.rpm.map(Some),
            requests_per_day: self.rpd.map(Some),
            tokens_per_minute: self.tpm.map(Some),
            max_in_flight: self.max_in_flight.map(Some),
        }
    }
}

/// The request that disables a key, or enables it again.
pub(crate) fn disabled(disabled: bool) -> ChangeKeyRequest {
    ChangeKeyRequest { disabled: Some(disabled), ..ChangeKeyRequest::default() }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct New {
        #[command(flatten)]
        terms: NewTerms,
    }

    #[derive(Debug, Parser)]
    struct Change {
        #[command(flatten)]
        terms: ChangedTerms,
    }

    fn new(args: &[&str]) -> Result<String, clap::Error> {
        let parsed = New::try_parse_from([&["x"], args].concat())?;
        Ok(serde_json::to_string(&parsed.terms.request()).unwrap())
    }

    fn change(args: &[&str]) -> Result<String, clap::Error> {
        let parsed = Change::try_parse_from([&["x"], args].concat())?;
        Ok(serde_json::to_string(&parsed.terms.request()).unwrap())
    }

    #[test]
    fn what_is_not_given_is_left_out() {
        assert_eq!(new(&["--name", "a b"]).unwrap(), r#"{"name":"a b"}"#);
        assert_eq!(change(&["--rpm", "0"]).unwrap(), r#"{"requests_per_minute":0}"#);
    }

    #[test]
    fn all_terms_are_in_the_request() {
        let args = "--name b --limit 2.5 --limit-reset daily --alert-below 0.5 --expires-at 2030-01-01T00:00:00Z \
                    --scopes call,manage --route /a/* --route /b --network 10.0.0.0/8 --rpm 1 --rpd 2 --tpm 4 \
                    --max-in-flight 3";
        let args: Vec<_> = args.split(' ').filter(|arg| !arg.is_empty()).collect();
        let expected = r#"{"name":"b","limit":2.5,"limit_reset":"daily","alert_below":0.5,"expires_at":"2030-01-01T00:00:00.000Z","scopes":["call","manage"],"routes":["/a/*","/b"],"networks":["10.0.0.0/8"],"requests_per_minute":1,"requests_per_day":2,"tokens_per_minute":4,"max_in_flight":3}"#;
        assert_eq!(new(&args).unwrap(), expected);
        assert_eq!(change(&args).unwrap(), expected);
    }

    #[test]
    fn words_remove_restrictions() {
        let args = ["--limit", "none", "--limit-reset", "none", "--alert-below", "none", "--expires-at", "none"];
        let expected = r#"{"limit":null,"limit_reset":null,"alert_below":null,"expires_at":null}"#;
        assert_eq!(change(&args).unwrap(), expected);
        assert_eq!(change(&["--route", "any", "--network", "any"]).unwrap(), r#"{"routes":null,"networks":null}"#);
    }

    #[test]
    fn malformed_terms_are_refused() {
        for args in [
            &["--limit", "1"][..],
            &["--name", "b", "--limit", "-1"],
            &["--name", "b", "--limit-reset", "daily"],
            &["--name", "b", "--alert-below", "1"],
            &["--name", "b", "--limit", "1", "--alert-below", "0"],
            &["--name", "b", "--scopes", "admin"],
            &["--name", "b", "--route", "any"],
            &["--name", "b", "--network", "here"],
            &["--name", "b", "--expires-at", "tomorrow"],
        ] {
            assert!(new(args).is_err(), "{args:?}");
        }
        for args in
            [&[][..], &["--limit", "much"], &["--limit", "-1"], &["--limit-reset", "hourly"], &["--alert-below", "0"]]
        {
            assert!(change(args).is_err(), "{args:?}");
        }
    }
}
