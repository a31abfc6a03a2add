//! The authorization server of a process that serves only MCP: the service that its tools call. That one gives the
//! tokens, since it has the pages and the keys. It is requested each time, so the two never contradict each other.

use http::{HeaderMap, StatusCode};
use metering_client::{Client, ClientError};
use metering_core::wire::ErrorCode;
use serde::Deserialize;

use crate::http::{Problem, Reply, no_oauth};
use crate::oauth::{Issuer, RESOURCE_METADATA, ResourceMetadata, published};

/// The service's metadata about issuing tokens (RFC 8414).
const SERVER_METADATA: &str = "/.well-known/oauth-authorization-server";

/// The MCP server as a resource of OAuth (RFC 9728).
#[derive(Debug)]
pub(super) struct ProtectedResource {
    /// The URL of this process; `None` where OAuth is off.
    pub(super) own: Option<Issuer>,
    /// The service that has the pages.
    pub(super) service: Client,
}

/// The member of the service's metadata that is used here.
#[derive(Debug, Deserialize)]
struct AuthorizationServer {
    issuer: String,
}

impl ProtectedResource {
    /// The metadata of the resource at the path after the well-known one.
    pub(super) async fn respond(&self, path: &str, headers: &HeaderMap) -> Reply {
        let path = match path {
            "" => "",
            "mcp" => "/mcp",
            "sse" => "/sse",
            _ => return Problem::not_found().into_reply(),
        };
        let none = || no_oauth(RESOURCE_METADATA).unwrap_or_else(|| Problem::not_found().into_reply());
        let Some(own) = &self.own else { return none() };
        let problem = match self.service.get(SERVER_METADATA).await {
            Ok(response) => match serde_json::from_slice::<AuthorizationServer>(&response.body) {
                Ok(server) => return published(&ResourceMetadata::new(&own.of(headers), path, &server.issuer)),
                Err(problem) => problem.to_string(),
            },
            Err(ClientError::Refused(refusal)) if refusal.status == StatusCode::NOT_FOUND => return none(),
            Err(error) => error.to_string(),
        };
        tracing::warn!(%problem, "could not find out who gives tokens");
        let message = "The service behind the tools cannot be reached at the moment; try again.";
        Problem::new(ErrorCode::UpstreamUnreachable, message).retry_after(1).into_reply()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use futures_util::StreamExt;
    use metering_client::{BodyStream, Transport, Unreachable};
    use metering_core::ClientSource;
    use serde_json::{Value, json};

    use super::*;

    /// A service with this response, or one that does not respond.
    #[derive(Debug)]
    struct Responds(Option<(u16, &'static str)>);

    #[async_trait::async_trait]
    impl Transport for Responds {
        async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<BodyStream>, Unreachable> {
            assert_eq!(request.uri().path(), SERVER_METADATA);
            let (status, body) = self.0.ok_or_else(|| Unreachable("down".to_owned()))?;
            let body = futures_util::stream::iter([Ok(Bytes::from_static(body.as_bytes()))]).boxed();
            Ok(http::Response::builder().status(status).body(body).unwrap())
        }
    }

    async fn respond(toml: &str, service: Option<(u16, &'static str)>, path: &str) -> (u16, Value) {
        let own = Issuer::new(&toml::from_str(toml).unwrap(), ([127, 0, 0, 1], 8787).into());
        let service = Client::new(Arc::new(Responds(service)), ClientSource::Mcp);
        let reply = ProtectedResource { own, service }.respond(path, &HeaderMap::new()).await;
        (reply.status().as_u16(), serde_json::from_slice(reply.body()).unwrap())
    }

    #[tokio::test]
    async fn a_process_of_mcp_alone_names_the_service_that_has_the_pages() {
        let alone = "surfaces = ['mcp']\npublic_url = 'https://mcp.example'";
        let service = Some((200, r#"{"issuer": "https://api.example", "token_endpoint": "x"}"#));
        for (path, resource) in [("mcp", "https://mcp.example/mcp"), ("", "https://mcp.example")] {
            let (status, document) = respond(alone, service, path).await;
            assert_eq!((status, &document["resource"]), (200, &json!(resource)));
            assert_eq!(document["authorization_servers"], json!(["https://api.example"]));
        }
        assert_eq!(respond(alone, service, "other").await.0, 404);
        let off = respond(alone, Some((404, r#"{"error": "not_found", "message": "No."}"#)), "mcp").await;
        assert!(off.0 == 404 && off.1["message"].as_str().unwrap().contains("no OAuth"), "{off:?}");
        assert_eq!(respond(alone, None, "mcp").await.0, 502);
        assert_eq!(respond("surfaces = ['mcp']\noauth.enabled = false", service, "mcp").await.0, 404);
    }
}
