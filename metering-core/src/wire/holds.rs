//! Requests whose credits are held, for the accounts that pay for them and for the services that serve them.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::catalogue::Counts;
use crate::charging::hold::{Hold, SettleReason, SettledHold};
use crate::clock::Timestamp;
use crate::money::credits::{Credits, printed};
use crate::wire::billing::DeductRequest;

/// The state of a request whose credits are or were held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum RequestState {
    /// Its cost is not known yet.
    Held,
    /// It was charged.
    Captured,
    /// It cost nothing: it was not served, or its cost was not reported.
    Released,
}

impl RequestState {
    /// The state's name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Captured => "captured",
            Self::Released => "released",
        }
    }
}

/// A request whose credits are held, or were held until it was settled, or one that was charged at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RequestDocument {
    /// Its id, from the header `X-BDS-Request-Id` or `X-Request-Id`.
    pub id: String,
    /// Its state.
    pub state: RequestState,
    /// The credits held now; zero once it is settled.
    #[serde(deserialize_with = "printed")]
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub held: Credits,
    /// The credits charged.
    #[serde(deserialize_with = "printed")]
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub charged: Credits,
    /// The credits that were held and have returned to the balance.
    #[serde(deserialize_with = "printed")]
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub released: Credits,
    /// Why it was settled: `report` (the response reported its cost), `no_report`, `release`, or `expiry` (the service
    /// that served it did not settle it in time); null while it is held, and for a request that held nothing.
    pub settled_by: Option<String>,
    /// Its route.
    pub route_template: String,
    /// Its method.
    pub http_method: String,
    /// Its path.
    pub request_path: String,
    /// When it was accepted, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
    /// When its lease ends, as RFC 3339. The lease is renewed while the request is in progress.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub expires_at: Timestamp,
    /// When it was settled, as RFC 3339; null while it is held.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub settled_at: Option<Timestamp>,
    /// Why it was charged, in words, for a request that held no credits; null for a request that did.
    pub explanation: Option<String>,
    /// The name of the upstream that served it, if its route names upstreams. For a request that held no credits, the
    /// server that served it remembers it for a while.
    pub upstream: Option<String>,
    /// The signed receipt of the amount captured from a hold, for clients that send `Prefer: metering-receipt`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipt: Option<String>,
}

impl From<&Hold> for RequestDocument {
    fn from(hold: &Hold) -> Self {
        let charged = hold.settled.map_or(Credits::ZERO, |settled| settled.captured);
        let released = match hold.settled {
            Some(_) => hold.amount.checked_sub(charged).unwrap_or(Credits::ZERO).max(Credits::ZERO),
            None => Credits::ZERO,
        };
        Self {
            id: hold.id.to_string(),
            state: match hold.settled {
                None => RequestState::Held,
                // A report of zero is a price like any other.
                Some(SettledHold { reason: SettleReason::Report, .. }) => RequestState::Captured,
                Some(_) if charged == Credits::ZERO => RequestState::Released,
                Some(_) => RequestState::Captured,
            },
            held: hold.held(),
            charged,
            released,
            settled_by: hold.settled.map(|settled| settled.reason.as_str().to_owned()),
            route_template: hold.line.template().to_owned(),
            http_method: hold.line.http_method.to_string(),
            request_path: hold.request_path.to_string(),
            created_at: hold.created_at,
            expires_at: hold.expires_at,
            settled_at: hold.settled.map(|settled| settled.at),
            explanation: None,
            upstream: hold.upstream.as_deref().map(str::to_owned),
            receipt: None,
        }
    }
}

/// The response to `GET /requests`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RequestsDocument {
    /// The requests, newest first.
    pub data: Vec<RequestDocument>,
}

/// The body of `POST /internal/billing/hold`: that of `POST /internal/billing/deduct`, and the amount to hold.
#[derive(Debug, Clone, Serialize)]
pub struct HoldRequest {
    /// The request that the credits are held for. With a `request_id`, a retry gets the first hold, unless that was
    /// settled without a report: then credits are held anew.
    #[serde(flatten)]
    pub of: DeductRequest,
    /// The amount to hold.
    #[serde(flatten)]
    pub terms: HoldFields,
}

/// The additional fields of `POST /internal/billing/hold`, next to those of `POST /internal/billing/deduct`.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HoldFields {
    /// The most that the request may cost, in credits above 0, as text or as a number. By default the price that
    /// `POST /internal/billing/deduct` would charge, or the maximum of a route that is priced by usage.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "super::field::amount")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub amount: Option<Credits>,
    /// The amount to charge if it is neither captured nor released before its lease ends. By default nothing, or the
    /// catalogue's amount for a route that is priced by usage.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "super::field::amount")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub fallback: Option<Credits>,
    /// How many seconds it may stay open, 10 to 86400; by default 900.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_seconds: Option<u32>,
}

/// The fields of a [`HoldRequest`]. Other fields are refused, so a misspelt amount is not ignored.
const FIELDS: [&str; 12] = [
    "path",
    "method",
    "route_template",
    "credit_weight",
    "history_multiplier",
    "lookback_seconds",
    "client_source",
    "client_ip",
    "request_id",
    "amount",
    "fallback",
    "lease_seconds",
];

/// Fields that a hold requires, although a deduction does not.
const REQUIRED: [&str; 2] = ["path", "method"];

/// The names of the fields of a [`HoldRequest`], for a reader that reads its two parts itself.
#[derive(Debug, Clone, Copy)]
pub struct HoldFieldNames;

impl<'de> Deserialize<'de> for HoldFieldNames {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = BTreeMap::<String, IgnoredAny>::deserialize(deserializer)?;
        match fields.keys().find(|name| !FIELDS.contains(&name.as_str())) {
            Some(name) => {
                let known = FIELDS.join(", ");
                Err(serde::de::Error::custom(format_args!("unknown field {name}; known are {known}")))
            }
            None => match REQUIRED.into_iter().find(|name| !fields.contains_key(*name)) {
                Some(name) => Err(serde::de::Error::missing_field(name)),
                None => Ok(Self),
            },
        }
    }
}

impl<'de> Deserialize<'de> for HoldRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Twice from the same text: flattening would read the numbers as floats.
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let _: HoldFieldNames = serde_json::from_str(text.get()).map_err(serde::de::Error::custom)?;
        let of = serde_json::from_str(text.get()).map_err(serde::de::Error::custom)?;
        let terms = serde_json::from_str(text.get()).map_err(serde::de::Error::custom)?;
        Ok(Self { of, terms })
    }
}

/// Written by hand, because a derive would need `serde(flatten)`, which would read the numbers as floats.
#[cfg(feature = "openapi")]
impl utoipa::PartialSchema for HoldRequest {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        use utoipa::ToSchema;
        use utoipa::openapi::Ref;
        use utoipa::openapi::schema::{AllOfBuilder, Schema};

        let parts = [DeductRequest::name(), HoldFields::name()];
        let parts = parts.iter().map(|name| Ref::from_schema_name(name.as_ref()));
        Schema::AllOf(parts.fold(AllOfBuilder::new(), AllOfBuilder::item).build()).into()
    }
}

#[cfg(feature = "openapi")]
impl utoipa::ToSchema for HoldRequest {
    fn schemas(schemas: &mut Vec<(String, utoipa::openapi::RefOr<utoipa::openapi::schema::Schema>)>) {
        use utoipa::PartialSchema;

        schemas.push((DeductRequest::name().into_owned(), DeductRequest::schema()));
        schemas.push((HoldFields::name().into_owned(), HoldFields::schema()));
        DeductRequest::schemas(schemas);
        HoldFields::schemas(schemas);
    }
}

/// The body of `POST /internal/billing/capture`. Without `amount` and `units`, the fallback is charged.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CaptureRequest {
    /// The id of the held request.
    pub id: String,
    /// Its cost, in credits, as text or as a number.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "super::field::amount")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub amount: Option<Credits>,
    /// The count of each unit that it used, priced by the catalogue.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<std::collections::BTreeMap<String, f64>>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub units: Option<Counts>,
    /// The model that served it, on a route whose models have their own prices; by default the one in its path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// The body of `POST /internal/billing/release`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ReleaseRequest {
    /// The id of the held request.
    pub id: String,
}

/// The body of `POST /internal/billing/settle`: how the request that a proxy asked about ended.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SettleRequest {
    /// The id of the request, from the header `X-BDS-Request-Id` of the response that admitted it.
    pub request_id: String,
    /// The status of the response, 100 to 599. With one of the route's free statuses, by default
    /// 429 and 5xx, the request costs nothing.
    pub status: u16,
}

/// The response to `POST /internal/billing/hold`, `/capture`, `/release` and `/settle`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HoldResponse {
    /// Whether this request changed something. A repeated one gets the first outcome.
    pub changed: bool,
    /// The request whose credits are or were held.
    pub request: RequestDocument,
    /// Who pays.
    pub org_id: String,
    /// The balance after it.
    #[serde(deserialize_with = "printed")]
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credit_balance: Credits,
}

impl HoldResponse {
    /// The response about a hold.
    #[must_use]
    pub fn new(hold: &Hold, credit_balance: Credits, changed: bool) -> Self {
        Self { changed, request: hold.into(), org_id: hold.account.to_string(), credit_balance }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hold_is_read_exactly_and_misspelt_fields_are_refused() {
        let read = |json: &str| serde_json::from_str::<HoldRequest>(json);
        let request =
            read(r#"{"path": "/render", "method": "POST", "amount": 0.1, "fallback": "0.01", "request_id": "7"}"#);
        let HoldRequest { of, terms } = request.unwrap();
        assert_eq!((of.path.as_str(), of.request_id.as_deref()), ("/render", Some("7")));
        assert_eq!((terms.amount, terms.fallback), ("0.1".parse().ok(), "0.01".parse().ok()));
        let error = read(r#"{"path": "/render", "method": "POST", "amounts": "0.1"}"#).unwrap_err().to_string();
        assert!(error.contains("unknown field amounts"), "{error}");
        assert!(read(r#"{"method": "POST"}"#).is_err());
    }

    #[test]
    fn fields_are_those_that_are_read() {
        let all = FIELDS.map(|name| match name {
            "path" | "method" => format!("\"{name}\": \"/x\""),
            _ => format!("\"{name}\": null"),
        });
        assert!(serde_json::from_str::<HoldRequest>(&format!("{{{}}}", all.join(", "))).is_ok());
    }
}
