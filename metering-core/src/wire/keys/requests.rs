//! The bodies of requests about keys.

use serde::{Deserialize, Serialize};

use crate::money::credits::Credits;
use crate::shown_fields::shown_fields;
use crate::wire::field::{amount, present, present_amount};

/// The body of `POST /keys`. Omitted expiry, routes and networks are those of the key that makes it; without a limit,
/// there is none.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateKeyRequest {
    /// Its name, 1 to 100 characters.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How many credits may be spent with it and with its child keys, as text or as a number; null for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "amount")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub limit: Option<Credits>,
    /// When the limit starts again: `daily`, `weekly` (on Monday) or `monthly`, all in UTC; null for never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_reset: Option<String>,
    /// The event `balance.low` is sent when less than this remains of the limit; null for never.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "amount")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub alert_below: Option<Credits>,
    /// When it expires, as RFC 3339; null for its parent's expiry.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// Its scopes: `call`, `read`, `manage`, `topup`. By default `call` and `read`, if the key that makes it has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<String>>,
    /// The routes that it may call, such as `/quotes/*` or `GET /search`; at least one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routes: Option<Vec<String>>,
    /// The networks that it may be used from, such as `203.0.113.0/24`; at least one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub networks: Option<Vec<String>>,
    /// Accepted requests per calendar minute (UTC); 0 means no limit of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_minute: Option<u32>,
    /// Accepted requests per UTC day; 0 means no limit of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_day: Option<u32>,
    /// Tokens of requests per calendar minute (UTC); 0 means no limit of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_minute: Option<u32>,
    /// Requests and streams in flight in one process of the service; 0 means no limit of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_in_flight: Option<u32>,
}

/// The body of `PATCH /keys/{id}`. Omitted fields are unchanged; null removes a restriction.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ChangeKeyRequest {
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How many credits may be spent with it and with its child keys, as text or as a number; null for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present_amount")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub limit: Option<Option<Credits>>,
    /// When the limit starts again; null for never.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub limit_reset: Option<Option<String>>,
    /// The event `balance.low` is sent when less than this remains of the limit; null for never.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present_amount")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub alert_below: Option<Option<Credits>>,
    /// When it expires, as RFC 3339; null for when its parent key does.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub expires_at: Option<Option<String>>,
    /// Whether it is turned off, and its child keys with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
    /// Its scopes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<String>>,
    /// The routes that it may call; null for all that its parent key may call.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<String>>))]
    pub routes: Option<Option<Vec<String>>>,
    /// The networks that it may be used from; null for those of its parent key.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<String>>))]
    pub networks: Option<Option<Vec<String>>>,
    /// Accepted requests per calendar minute (UTC); 0 or null means no limit of its own.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<u32>))]
    pub requests_per_minute: Option<Option<u32>>,
    /// Accepted requests per UTC day; 0 or null means no limit of its own.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<u32>))]
    pub requests_per_day: Option<Option<u32>>,
    /// Tokens of requests per calendar minute (UTC); 0 or null means no limit of its own.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<u32>))]
    pub tokens_per_minute: Option<Option<u32>>,
    /// Requests and streams in flight in one process of the service; 0 or null means no limit of its own.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<u32>))]
    pub max_in_flight: Option<Option<u32>>,
}

/// The body of `POST /keys/{id}/rotate`.
#[derive(Debug, Clone, Copy, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct RotateKeyRequest {
    /// How many more seconds the old secret works, at most a week. 0 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace_seconds: Option<u32>,
}

/// The body of `POST /keys/leaked`.
#[derive(Clone, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct LeakedKeyRequest {
    /// The key that was found somewhere.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub key: Option<String>,
}

shown_fields!(LeakedKeyRequest:);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_exactly_from_text_and_numbers() {
        let limit = |json: &str| serde_json::from_str::<CreateKeyRequest>(json).map(|request| request.limit);
        let half = "0.5".parse().ok();
        assert_eq!(limit(r#"{"limit": "0.5"}"#).unwrap(), half);
        assert_eq!(limit(r#"{"limit": 0.5}"#).unwrap(), half);
        assert_eq!(limit(r#"{"limit": null}"#).unwrap(), None);
        assert_eq!(limit("{}").unwrap(), None);
        for wrong in [r#"{"limit": "much"}"#, r#"{"limit": true}"#, r#"{"limits": 1}"#, r#"{"limit": 1e400}"#] {
            assert!(limit(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn null_differs_from_a_field_that_is_left_out() {
        let read = |json: &str| serde_json::from_str::<ChangeKeyRequest>(json).unwrap();
        let nulls = read(r#"{"limit": null, "limit_reset": null, "expires_at": null}"#);
        assert_eq!((nulls.limit, nulls.limit_reset, nulls.expires_at), (Some(None), Some(None), Some(None)));
        let nothing = read("{}");
        assert_eq!((nothing.limit, nothing.limit_reset, nothing.expires_at), (None, None, None));
        assert_eq!(read(r#"{"limit_reset": "daily"}"#).limit_reset, Some(Some("daily".to_owned())));
    }

    #[test]
    fn requests_are_written_as_they_are_read() {
        let texts = [
            "{}",
            r#"{"name":"x","limit":null,"limit_reset":null,"expires_at":null}"#,
            r#"{"limit":0.5,"limit_reset":"daily","disabled":false,"routes":[],"max_in_flight":0}"#,
        ];
        for text in texts {
            let request: ChangeKeyRequest = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&request).unwrap(), text);
        }
        let request: CreateKeyRequest =
            serde_json::from_str(r#"{"name":"x","limit":"0.5","scopes":["call"]}"#).unwrap();
        assert_eq!(serde_json::to_string(&request).unwrap(), r#"{"name":"x","limit":0.5,"scopes":["call"]}"#);
    }

    #[test]
    fn a_leaked_key_is_not_printed() {
        let request: LeakedKeyRequest = serde_json::from_str(r#"{"key": "sk_live_x"}"#).unwrap();
        assert!(!format!("{request:?}").contains("sk_live_x"));
    }
}
