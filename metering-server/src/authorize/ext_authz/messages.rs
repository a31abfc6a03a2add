//! The messages of Envoy's `envoy.service.auth.v3.Authorization`, as far as they are used here.
//!
//! Fields keep the names and numbers of Envoy's files; other fields are skipped when a message is read. Written by
//! hand, because generated messages would bring all their imports (ADR 33).

use std::collections::HashMap;
use std::fmt;

/// `envoy.service.auth.v3.CheckRequest`
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct CheckRequest {
    #[prost(message, optional, tag = "1")]
    pub(super) attributes: Option<AttributeContext>,
}

/// `envoy.service.auth.v3.AttributeContext`
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct AttributeContext {
    #[prost(message, optional, tag = "4")]
    pub(super) request: Option<AttributeRequest>,
}

/// `envoy.service.auth.v3.AttributeContext.Request`
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct AttributeRequest {
    #[prost(message, optional, tag = "2")]
    pub(super) http: Option<HttpRequest>,
}

/// `envoy.service.auth.v3.AttributeContext.HttpRequest`
#[derive(Clone, PartialEq, prost::Message)]
#[prost(skip_debug)]
pub(super) struct HttpRequest {
    #[prost(string, tag = "2")]
    pub(super) method: String,
    /// Also has pseudo-headers. Envoy joins what was sent twice with commas.
    #[prost(map = "string, string", tag = "3")]
    pub(super) headers: HashMap<String, String>,
    /// With the query.
    #[prost(string, tag = "4")]
    pub(super) path: String,
    #[prost(string, tag = "5")]
    pub(super) host: String,
    /// Instead of `headers`, if Envoy's filter has `encode_raw_headers`.
    #[prost(message, optional, tag = "13")]
    pub(super) header_map: Option<HeaderMap>,
}

impl fmt::Debug for HttpRequest {
    /// Headers and paths have keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpRequest").field("method", &self.method).finish_non_exhaustive()
    }
}

/// `envoy.config.core.v3.HeaderMap`
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct HeaderMap {
    #[prost(message, repeated, tag = "1")]
    pub(super) headers: Vec<HeaderValue>,
}

/// `envoy.config.core.v3.HeaderValue`
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct HeaderValue {
    #[prost(string, tag = "1")]
    pub(super) key: String,
    #[prost(string, tag = "2")]
    pub(super) value: String,
    #[prost(bytes = "vec", tag = "3")]
    pub(super) raw_value: Vec<u8>,
}

/// `envoy.service.auth.v3.CheckResponse`
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct CheckResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) status: Option<Status>,
    #[prost(oneof = "HttpResponse", tags = "2, 3")]
    pub(super) http_response: Option<HttpResponse>,
}

/// `google.rpc.Status`
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Status {
    #[prost(int32, tag = "1")]
    pub(super) code: i32,
}

/// The alternatives of a [`CheckResponse`].
#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum HttpResponse {
    #[prost(message, tag = "2")]
    Denied(DeniedHttpResponse),
    #[prost(message, tag = "3")]
    Ok(OkHttpResponse),
}

/// `envoy.service.auth.v3.DeniedHttpResponse`
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct DeniedHttpResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) status: Option<HttpStatus>,
    #[prost(message, repeated, tag = "2")]
    pub(super) headers: Vec<HeaderValueOption>,
    #[prost(string, tag = "3")]
    pub(super) body: String,
}

/// `envoy.type.v3.HttpStatus`
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct HttpStatus {
    #[prost(int32, tag = "1")]
    pub(super) code: i32,
}

/// `envoy.service.auth.v3.OkHttpResponse`
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct OkHttpResponse {
    /// For the service.
    #[prost(message, repeated, tag = "2")]
    pub(super) headers: Vec<HeaderValueOption>,
    /// Of the request.
    #[prost(string, repeated, tag = "5")]
    pub(super) headers_to_remove: Vec<String>,
    /// For the client.
    #[prost(message, repeated, tag = "6")]
    pub(super) response_headers_to_add: Vec<HeaderValueOption>,
}

/// `envoy.config.core.v3.HeaderValueOption`
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct HeaderValueOption {
    #[prost(message, optional, tag = "1")]
    pub(super) header: Option<HeaderValue>,
    #[prost(int32, tag = "3")]
    pub(super) append_action: i32,
}
