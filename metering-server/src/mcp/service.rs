//! The service that tools call: this process, without a network in between, or another one.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use http::{HeaderValue, Request};
use http_body_util::{BodyExt, Full};
use metering_client::{BodyStream, HttpTransport, Transport, Unreachable};
use metering_core::access::ClientAddress;

use crate::front::Front;
use crate::run::Current;

/// This process, as clients see it: the same routes, served by the same code.
pub(crate) struct ThisProcess(pub(crate) Arc<Current<Front>>);

impl fmt::Debug for ThisProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ThisProcess")
    }
}

#[async_trait]
impl Transport for ThisProcess {
    async fn send(&self, request: Request<Bytes>) -> Result<http::Response<BodyStream>, Unreachable> {
        let front = self.0.load();
        let destination = front.destination(request.method(), request.uri().path());
        let (head, body) = front.respond(destination, request.map(Full::new)).await.into_parts();
        let body = body.into_data_stream().map_err(|error| Unreachable(error.to_string()));
        Ok(http::Response::from_parts(head, body.boxed()))
    }
}

/// The first segments of what tools, and this server for them, call of the account API.
const ACCOUNT_API: [&str; 3] = ["credits", "keys", "requests"];

/// Other processes: one for metered routes, one for accounts; they may be the same.
#[derive(Debug)]
pub(crate) struct OtherProcesses {
    pub(crate) gateway: HttpTransport,
    pub(crate) metering: HttpTransport,
}

#[async_trait]
impl Transport for OtherProcesses {
    async fn send(&self, mut request: Request<Bytes>) -> Result<http::Response<BodyStream>, Unreachable> {
        // The other process uses this if it trusts this one as a proxy.
        if let Some(address) = request.extensions_mut().remove::<ClientAddress>()
            && let Ok(address) = HeaderValue::try_from(address.0.to_string())
        {
            request.headers_mut().insert("x-forwarded-for", address);
        }
        // No route of a catalogue starts with a segment of the account API.
        let of_account = request.uri().path().split('/').nth(1).is_some_and(|first| ACCOUNT_API.contains(&first));
        if of_account { self.metering.send(request).await } else { self.gateway.send(request).await }
    }
}
