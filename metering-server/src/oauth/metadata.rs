//! What clients read before they request a token: RFC 9728 for the resource, RFC 8414 for the server.

use http::{HeaderValue, StatusCode, header};
use metering_core::oauth::RequestedAuthorization;
use serde::Serialize;

use crate::http::{Reply, json};

/// The authorization servers of a resource of this service.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ResourceMetadata {
    /// The URL of the resource.
    resource: String,
    /// The issuer of its tokens.
    authorization_servers: [String; 1],
    /// The scopes that a client needs to use it.
    scopes_supported: [&'static str; 2],
    /// How a token is sent.
    bearer_methods_supported: [&'static str; 1],
}

/// How this service gives tokens.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ServerMetadata {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    registration_endpoint: String,
    revocation_endpoint: String,
    scopes_supported: Vec<&'static str>,
    response_types_supported: [&'static str; 1],
    response_modes_supported: [&'static str; 1],
    grant_types_supported: [&'static str; 3],
    token_endpoint_auth_methods_supported: [&'static str; 1],
    revocation_endpoint_auth_methods_supported: [&'static str; 1],
    code_challenge_methods_supported: [&'static str; 1],
    /// RFC 9207.
    authorization_response_iss_parameter_supported: bool,
    /// draft-ietf-oauth-client-id-metadata-document-00.
    client_id_metadata_document_supported: bool,
}

/// The response with a document. It is the same for all clients, except for the name that a client uses for its own
/// machine.
pub(crate) fn published<T: Serialize>(document: &T) -> Reply {
    let mut reply = json(StatusCode::OK, document);
    reply.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=60"));
    reply.headers_mut().insert(header::VARY, HeaderValue::from_static("host"));
    reply
}

impl ResourceMetadata {
    /// The metadata of the resource at this path of an origin, for tokens of this issuer; an empty path is all of it.
    pub(crate) fn new(origin: &str, path: &str, issuer: &str) -> Self {
        Self {
            resource: format!("{origin}{path}"),
            authorization_servers: [issuer.to_owned()],
            scopes_supported: ["call", "read"],
            bearer_methods_supported: ["header"],
        }
    }
}

impl ServerMetadata {
    pub(crate) fn new(issuer: &str) -> Self {
        let at = |path: &str| format!("{issuer}{path}");
        Self {
            issuer: issuer.to_owned(),
            authorization_endpoint: at("/oauth/authorize"),
            token_endpoint: at("/oauth/token"),
            registration_endpoint: at("/oauth/register"),
            revocation_endpoint: at("/oauth/revoke"),
            scopes_supported: RequestedAuthorization::OFFERED.iter().map(|scope| scope.as_str()).collect(),
            response_types_supported: ["code"],
            response_modes_supported: ["query"],
            grant_types_supported: [
                "authorization_code",
                "refresh_token",
                "urn:ietf:params:oauth:grant-type:token-exchange",
            ],
            token_endpoint_auth_methods_supported: ["none"],
            revocation_endpoint_auth_methods_supported: ["none"],
            code_challenge_methods_supported: ["S256"],
            authorization_response_iss_parameter_supported: true,
            client_id_metadata_document_supported: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A client that finds `iss` or S256 missing here must not begin, or must not check the response.
    #[test]
    fn what_clients_rely_on_against_mix_up_and_downgrades_is_published() {
        let document = serde_json::to_value(ServerMetadata::new("https://api.example")).unwrap();
        assert_eq!(document["issuer"], "https://api.example");
        assert_eq!(document["authorization_response_iss_parameter_supported"], true);
        assert_eq!(document["code_challenge_methods_supported"], json!(["S256"]));
        assert_eq!(document["response_types_supported"], json!(["code"]));
        let endpoints = document.as_object().unwrap().iter().filter(|(name, _)| name.ends_with("_endpoint"));
        assert!(endpoints.clone().all(|(_, url)| url.as_str().unwrap().starts_with("https://api.example/oauth/")));
        assert_eq!(endpoints.count(), 4);
    }
}
