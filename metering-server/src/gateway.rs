//! The metered gateway: charges requests, forwards them to the upstream, and refunds those that could not be delivered.

mod delivery;
mod forward;
mod headers;
mod policy;
mod reachable;
mod streams;
mod upstream;

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use http_body::Body;
use metering_core::wire::metered_headers;
use metering_core::{Admission, AdmissionKind, Credentials, Receipt, RequestHead, Service};

use crate::config::{GatewayConfig, HttpConfig};
use crate::credentials;
use crate::http::{Connection, Problem, Response, into_response, read_capped, with_headers};
use policy::ResponsePolicy;

pub(crate) use reachable::warn_about_upstream;
pub(crate) use streams::Streams;
pub(crate) use upstream::{HttpUpstream, Upstream};

/// Serves the routes of the catalogue.
#[derive(Debug)]
pub(crate) struct Gateway {
    service: Arc<Service>,
    upstream: Upstream,
    streams: Arc<Streams>,
    prefixes: BTreeSet<String>,
    policy: ResponsePolicy,
    limits: HttpConfig,
}

impl Gateway {
    /// A gateway in front of `upstream`.
    #[must_use]
    pub(crate) fn new(service: Arc<Service>, upstream: Upstream, config: &GatewayConfig, limits: HttpConfig) -> Self {
        let prefixes = service.catalogue().prefixes().into_iter().map(str::to_owned).collect();
        let streams = Arc::new(Streams::new(config.max_streams_per_key.get()));
        let policy = ResponsePolicy::new(config);
        Self { service, upstream, streams, prefixes, policy, limits }
    }

    /// Whether the gateway serves a path: its first segment is that of a metered route.
    #[must_use]
    pub(crate) fn handles(&self, path: &str) -> bool {
        path.split('/').nth(1).is_some_and(|first| self.prefixes.contains(first))
    }

    /// The open streams.
    #[must_use]
    pub(crate) fn streams(&self) -> &Arc<Streams> {
        &self.streams
    }

    /// Responds to a request.
    pub(crate) async fn respond<B>(&self, request: Request<B>) -> Response
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        match self.serve(request).await {
            Ok(response) => response,
            Err(problem) => into_response(problem.into_reply()),
        }
    }

    async fn serve<B>(&self, request: Request<B>) -> Result<Response, Problem>
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (head, body) = request.into_parts();
        // Read the body before the charge: a request whose body never arrives must not be charged.
        let body = read_capped(body, self.limits.max_body_bytes, self.limits.body_timeout.duration()).await?;
        let credentials = credentials::of(&head.headers);
        let Credentials { key, source, .. } = &credentials;
        let path = head.uri.path();
        let permit = match key {
            Some(key) if self.is_stream(head.method.as_str(), path) => Some(self.streams.reserve(key.hash())?),
            _ => None,
        };
        let admission = self
            .service
            .admit(RequestHead {
                key: key.as_ref(),
                idempotency_key: credentials.idempotency_key(),
                method: head.method.as_str(),
                path,
                query: head.uri.query(),
                source: *source,
            })
            .await
            .map_err(|error| credentials.explain(error))?;
        let Admission { route, target, kind } = admission;
        let receipt = match kind {
            AdmissionKind::Charged(receipt) => Some(receipt),
            AdmissionKind::Free => None,
        };
        let account = receipt.as_ref().map(|receipt| &receipt.account);
        let call = forward::Call { head: &head, target: &target, body, account, streams: route.sse };
        match self.upstream.call(call).await {
            Ok(reply) => {
                let reply = self.policy.apply(reply);
                let headers = receipt.as_ref().map(metered_headers).unwrap_or_default();
                if let Some(receipt) = &receipt {
                    self.service.delivered(receipt);
                }
                let response = match receipt {
                    Some(receipt) => delivery::refunded_if_broken(reply, receipt, &self.service),
                    None => reply,
                };
                let response = match permit {
                    Some(permit) => permit.hold(response, head.extensions.get::<Connection>()),
                    None => response,
                };
                Ok(with_headers(response, headers))
            }
            Err(problem) => Err(match receipt {
                Some(receipt) => self.refund_undelivered(receipt, problem).await,
                None => problem,
            }),
        }
    }

    fn is_stream(&self, method: &str, path: &str) -> bool {
        let path = metering_core::RequestPath::parse(path);
        path.is_ok_and(|path| self.service.catalogue().find(method, &path).is_ok_and(|route| route.sse))
    }

    /// Refunds the charge in full before the error is sent, and adds the resulting charge and balance as headers.
    async fn refund_undelivered(&self, receipt: Receipt, problem: Problem) -> Problem {
        let refund = self.service.refund_undelivered(receipt).await;
        match refund.outcome {
            Ok(()) => problem,
            Err(error) => error.into(),
        }
        .with_headers(refund.headers)
    }
}
