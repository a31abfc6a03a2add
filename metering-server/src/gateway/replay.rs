//! Retries get the response of an earlier attempt: on routes with `"replay": true`, and with a payment that has an id.
//!
//! Such a request is served by a separate task, which continues when its client has gone. The response is
//! recorded; the client reads the recording, and so does a request that is marked as a retry. The rules are in core
//! (`charging::replay`); here are the recordings, and the bounds on their memory and time.

mod reader;
mod recording;
mod shelf;

use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use http::{HeaderName, HeaderValue, header};
use http_body::Body;
use http_body_util::BodyExt;
use metering_core::access::{Caller, ClientAddress, Credentials, KeyHash, Scope};
use metering_core::catalogue::Route;
use metering_core::charging::{REPLAYED_HEADER, ReplayKey, Retry, is_kept};
use metering_core::wire::{AUTHORIZATION_HEADER, PAYMENT_SIGNATURE_HEADER, payment_credential};
use metering_core::{ApiKey, Service, trace};
use metering_pay::ReceivedPayment;
use sha3::{Digest, Sha3_256};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::config::GatewayConfig;
use crate::http::{BodyBudget, BodyShare, Connection, Response};
use crate::operations::metric::counter;
use reader::Reader;
use recording::{Head, Recording};
use shelf::Shelf;

/// Headers of payments, besides a credential of MPP in `Authorization`. Such a request is paid once by what it carries, so it is replayed only if its payment has an id.
const PAYMENTS: [&str; 3] = ["payment-signature", "x-payment", "payment-authorization"];

/// Separates the hashes of payments from those of keys.
const PAID: &[u8] = b"metering: a request with a payment ";

/// The responses that retries can get.
#[derive(Debug)]
pub(crate) struct Replays {
    shelf: Arc<Shelf>,
    time: Duration,
    closing: CancellationToken,
}

/// A request that may be a retry, or may be retried.
pub(super) struct Replayable {
    key: ReplayKey,
    retry: Retry,
    credentials: Credentials,
    address: Option<ClientAddress>,
    connection: Option<Connection>,
    /// The part of the memory budget that the response may use.
    share: BodyShare,
}

impl Replayable {
    /// `None` for a request that is served without replay: of another route, without a key, or with a payment that has
    /// no id.
    pub(super) fn read(service: &Service, head: &Parts, body: &[u8], budget: &BodyBudget) -> Option<Self> {
        let path = service.catalogue().path(head.uri.path()).ok()?;
        let route: &Route = service.catalogue().find(head.method.as_str(), &path).ok()?;
        let values = |name: &'static str| head.headers.get_all(name).iter().map(HeaderValue::as_bytes);
        let credentials = Credentials::read(values);
        let key = credentials.key.as_ref().map(ApiKey::hash);
        let pays = PAYMENTS.iter().any(|name| head.headers.contains_key(*name))
            || values(AUTHORIZATION_HEADER).any(|value| payment_credential(value).is_some());
        let (key, retry) = match pays {
            true => (paid_key(service, route, key, head)?, Retry::Keyed),
            false if route.replay => (key?, Retry::read(values)),
            false => return None,
        };
        let target = head.uri.path_and_query().map_or("/", |target| target.as_str());
        Some(Self {
            key: ReplayKey::of(&key, head.method.as_str(), target, body, values),
            retry,
            credentials,
            address: head.extensions.get::<ClientAddress>().copied(),
            connection: head.extensions.get::<Connection>().cloned(),
            share: budget.share(&head.extensions),
        })
    }
}

/// The substitute for the key of a request whose payment has an id (`payment-identifier` of x402): the payment itself.
/// Others can read it on the chain, but not its id, so only its client gets the response.
fn paid_key(service: &Service, route: &Route, key: Option<KeyHash>, head: &Parts) -> Option<KeyHash> {
    // A feed without an end would go on after its client.
    let ends = route.replay || !(route.sse || route.websocket);
    if !route.metered || !ends {
        return None;
    }
    let presented =
        service.offers().read(|name| head.headers.get_all(name).iter().map(HeaderValue::as_bytes)).ok()??;
    ReceivedPayment::of(&*presented)?.identifier.as_ref()?;
    let payment = head.headers.get(PAYMENT_SIGNATURE_HEADER)?;
    let mut hash = Sha3_256::new_with_prefix(PAID);
    hash.update(key.map_or([0; 32], |key| *key.as_bytes()));
    hash.update(payment.as_bytes());
    Some(KeyHash::from_bytes(hash.finalize().into()))
}

impl Replays {
    pub(super) fn new(config: &GatewayConfig) -> Self {
        Self {
            shelf: Arc::new(Shelf::new(config.replay_bytes)),
            time: config.replay_time.duration(),
            closing: CancellationToken::new(),
        }
    }

    /// Ends requests that no client waits for. Call it when no further request can arrive.
    pub(crate) fn close(&self) {
        self.closing.cancel();
    }

    /// Responds with an earlier attempt's response, or with that of `serving`, which continues without its client.
    pub(super) async fn respond<F>(&self, service: &Service, request: Replayable, serving: F) -> Response
    where
        F: Future<Output = Response> + Send + 'static,
    {
        let found = self.shelf.find(&request.key, request.retry);
        if let Some(recording) = found {
            // Before anything is replayed: the key may have been revoked since. Without one, the payment was the key.
            let key = request.credentials.key.as_ref();
            let caller = Caller { address: request.address.map(|at| at.0), ..Caller::from(key) };
            if key.is_some() && service.access().authorize(caller, Scope::Call).await.is_err() {
                // It is refused as any other request with this key.
                return serving.await;
            }
            if let Some(reader) = Reader::of(&recording, request.connection.clone(), true) {
                counter!("metering_replayed_requests_total", "Retries that got the response of an earlier attempt")
                    .increment(1);
                let mut response = reader.response().await;
                let name = HeaderName::from_static(REPLAYED_HEADER);
                response.headers_mut().insert(name, HeaderValue::from_static("true"));
                return response;
            }
        }
        let recording = Recording::new(request.key, request.retry == Retry::Keyed);
        let Some(reader) = Reader::of(&recording, request.connection, false) else {
            unreachable!("nobody reads it yet")
        };
        self.shelf.add(&recording);
        let served = Served { serving, share: request.share };
        let recording = record(recording, Arc::clone(&self.shelf), self.time, self.closing.clone(), served);
        // Below the span of the request.
        tokio::spawn(recording.instrument(trace::current()));
        reader.response().await
    }
}

/// A request that is being served.
struct Served<F> {
    serving: F,
    /// The part of the memory budget that the response may use.
    share: BodyShare,
}

/// Serves a request, records its response, and keeps the recording for a while.
async fn record<F>(
    recording: Arc<Recording>,
    shelf: Arc<Shelf>,
    time: Duration,
    closing: CancellationToken,
    served: Served<F>,
) where
    F: Future<Output = Response> + Send,
{
    let _ends = EndsAnyway(Arc::clone(&recording));
    let complete = tokio::select! {
        complete = receive(&recording, &shelf, served) => complete,
        () = recording.is_useless(time) => false,
        () = closing.cancelled() => false,
    };
    recording.end(complete);
    if complete {
        tokio::select! {
            () = tokio::time::sleep(time) => {}
            () = recording.is_dropped() => {}
            () = closing.cancelled() => {}
        }
    }
    let _ = shelf.remove(&recording);
}

/// Ends the recording even if the task panics, so that its readers do not hang.
struct EndsAnyway(Arc<Recording>);

impl Drop for EndsAnyway {
    fn drop(&mut self) {
        self.0.end(false);
    }
}

/// Receives a response. Returns `false` if it broke off.
async fn receive<F>(recording: &Arc<Recording>, shelf: &Shelf, served: Served<F>) -> bool
where
    F: Future<Output = Response> + Send,
{
    let Served { serving, share } = served;
    let (mut head, mut body) = serving.await.into_parts();
    announce_length(&mut head, body.size_hint().exact());
    if !is_kept(head.status.as_u16(), |name| head.headers.get(name)?.to_str().ok()) {
        let _ = shelf.remove(recording);
    }
    recording.begin(Head { status: head.status, headers: head.headers, extensions: head.extensions });
    loop {
        let frame = match body.frame().await {
            None => return true,
            Some(Err(error)) => {
                recording.breaks(&error);
                return false;
            }
            Some(Ok(frame)) => frame,
        };
        match frame.into_data() {
            Ok(data) => {
                // A piece may be a small part of a large allocation, so it is copied.
                let kept = share.keep(&data);
                let fits = match &kept {
                    Ok(_) => shelf.grow(recording, data.len()),
                    Err(_) => !shelf.remove(recording),
                };
                if !fits {
                    counter!("metering_replays_dropped_total", "Responses that were too large to be kept for retries")
                        .increment(1);
                }
                if kept.is_err() {
                    // Without memory for it, it is passed on as it arrives.
                    recording.is_read().await;
                }
                recording.push(kept.unwrap_or(data));
                recording.has_room().await;
            }
            Err(frame) => {
                recording.finish_with(frame.into_trailers().unwrap_or_default());
                return true;
            }
        }
    }
}

/// The recording has no length, so the head must have it.
fn announce_length(head: &mut http::response::Parts, length: Option<u64>) {
    let has_body = !head.status.is_informational() && !matches!(head.status.as_u16(), 204 | 304);
    if let Some(length) = length.filter(|_| has_body) {
        head.headers.entry(header::CONTENT_LENGTH).or_insert(HeaderValue::from(length));
    }
}

#[cfg(test)]
mod tests;
