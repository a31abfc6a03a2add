//! Responses on the paths where clients look for OAuth, which this service does not have.
//!
//! After a 401, MCP clients ask well-known paths for an authorization server (RFC 9728, RFC 8414, OpenID Connect
//! Discovery), and then register at the service itself (RFC 7591). They show their users only the response to the last
//! of these requests, not why their key was refused.

use http::StatusCode;
use metering_core::wire::ErrorCode;
use serde_json::json;

use crate::http::{Reply, json as reply};

/// Documents of authorization servers and protected resources. Clients append the path of the resource.
const DOCUMENTS: [&str; 3] = [
    "/.well-known/oauth-protected-resource",
    "/.well-known/oauth-authorization-server",
    "/.well-known/openid-configuration",
];

/// Where clients register if no document says otherwise.
const REGISTRATION: &str = "/register";

const MESSAGE: &str = "This service has no OAuth. Your client looked for it because its API key was refused, or because it \
    sent none: send a live key as 'Authorization: Bearer sk_live_...' in the client's headers for this server.";

/// The response to a client that looks for OAuth at this path; `None` for other paths.
pub(crate) fn no_oauth(path: &str) -> Option<Reply> {
    let is_document = DOCUMENTS.iter().any(|document| {
        path.strip_prefix(document).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            || path.ends_with(document)
    });
    // Older clients show the description, newer ones all of it.
    let error = ErrorCode::NotFound.as_str();
    let body = || json!({"error": error, "error_description": MESSAGE, "message": MESSAGE});
    (is_document || path == REGISTRATION).then(|| reply(StatusCode::NOT_FOUND, &body()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_of_oauth_are_answered() {
        // path, has a response
        let table = [
            ("/.well-known/oauth-protected-resource", true),
            ("/.well-known/oauth-protected-resource/mcp", true),
            ("/.well-known/oauth-authorization-server/mcp", true),
            ("/mcp/.well-known/openid-configuration", true),
            ("/register", true),
            ("/.well-known/oauth-protected-resources", false),
            ("/.well-known/x402", false),
            ("/register/me", false),
            ("/", false),
        ];
        for (path, answered) in table {
            assert_eq!(no_oauth(path).is_some_and(|reply| reply.status() == 404), answered, "{path}");
        }
    }
}
