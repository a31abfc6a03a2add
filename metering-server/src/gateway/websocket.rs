//! WebSocket connections through the gateway.
//!
//! A handshake is admitted and charged like any other request, once per connection, and takes one of its key's stream
//! slots. When the upstream has switched, bytes are copied unchanged in both directions until one side, or the server,
//! ends the connection.

mod frames;
pub(crate) mod handshake;
mod tunnel;

use std::sync::{Arc, Mutex, PoisonError};

use http::Extensions;
use http::request::Parts;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use metering_core::catalogue::Route;
use metering_core::{ApiKey, Charged, Error, InFlightSlot, trace};
use tracing::Instrument;

use crate::gateway::streams::Streams;
use crate::gateway::streams::sockets::SocketSlot;
use crate::http::{Connection, Response};
use handshake::RequestedUpgrade;

/// A request for a WebSocket connection: an extension of a request that can switch, with its slot once it is admitted.
#[derive(Debug, Clone)]
pub(crate) struct Handshake {
    client: OnUpgrade,
    connection: Option<Connection>,
    slot: Option<SocketSlot>,
}

/// The upstream has switched: an extension of its response.
#[derive(Debug, Clone)]
pub(crate) struct Accepted {
    handshake: Handshake,
    upstream: Arc<Mutex<Option<Upgraded>>>,
}

/// Notes whether a request is a handshake, and finds the key of a browser's.
pub(super) fn read(head: &mut Parts) {
    let mut asked = handshake::asked(&head.method, head.version, &head.headers);
    if asked == RequestedUpgrade::WebSocket {
        handshake::take_key(head);
        let client = head.extensions.remove::<OnUpgrade>();
        let connection = head.extensions.get().cloned();
        match client {
            Some(client) => drop(head.extensions.insert(Handshake { client, connection, slot: None })),
            // It came from within the process.
            None => asked = RequestedUpgrade::Incomplete,
        }
    }
    if asked != RequestedUpgrade::Nothing {
        head.extensions.insert(asked);
    }
}

/// Admits a request that matches a route, before it is charged, or refuses it. A handshake gets a slot.
///
/// # Errors
/// When the route is of the other kind, or the key has its maximum of open streams.
pub(super) fn admit(
    key: Option<&ApiKey>,
    route: &Route,
    extensions: &mut Extensions,
    streams: &Arc<Streams>,
) -> Result<(), Error> {
    handshake::check(extensions.get().copied().unwrap_or(RequestedUpgrade::Nothing), route)?;
    if let Some(handshake) = extensions.get_mut::<Handshake>() {
        handshake.slot = Some(streams.reserve_socket(key.map(ApiKey::hash))?);
    }
    Ok(())
}

/// Connects client and upstream if the upstream has switched. Call it when nothing else may replace the response.
pub(super) fn open(mut response: Response) -> Response {
    if let Some(accepted) = response.extensions_mut().remove::<Accepted>() {
        // The request counts as in flight for as long as the connection is open.
        let in_flight_slot = response.extensions_mut().remove::<InFlightSlot>();
        accepted.open(in_flight_slot);
    }
    response
}

impl Accepted {
    /// `upstream` is its connection, and `charged` the charge of the request.
    pub(crate) fn new(handshake: &Handshake, upstream: Upgraded, charged: Option<&Charged>) -> Self {
        if let Some(slot) = &handshake.slot {
            slot.opened(charged.and_then(|charged| charged.balance));
        }
        Self { handshake: handshake.clone(), upstream: Arc::new(Mutex::new(Some(upstream))) }
    }

    /// Starts to copy once the response has been sent. Without the client, the upstream's connection is closed.
    fn open(self, in_flight_slot: Option<InFlightSlot>) {
        let Handshake { client, connection, slot } = self.handshake;
        let upstream = self.upstream.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (Some(upstream), Some(slot)) = (upstream, slot) else { return };
        let connection = connection.unwrap_or_else(Connection::new);
        let switched = connection.switches();
        let copying = async move {
            // Drop it last: until then the connection counts towards the client's limit.
            let _held = (switched, in_flight_slot);
            match client.await {
                Ok(client) => {
                    let (client, upstream) = (TokioIo::new(client), TokioIo::new(upstream));
                    let _ = connection.run(tunnel::run(client, upstream, slot.ended())).await;
                }
                Err(error) => {
                    tracing::debug!(%error, "the client of a WebSocket connection has gone before it was open")
                }
            }
        };
        tokio::spawn(copying.instrument(trace::current()));
    }
}
