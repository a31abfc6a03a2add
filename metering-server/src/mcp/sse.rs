//! The HTTP+SSE transport of MCP 2024-11-05: the server's messages go out on the stream that `GET /sse` opens, and the
//! client's messages come in by `POST /messages/`.
//!
//! rmcp has dropped its server for this transport but still serves any pair of channels; this file adds the HTTP part.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use http::request::Parts;
use http::{HeaderValue, StatusCode, header};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, StreamBody};
use metering_client::tools::McpServer;
use metering_core::ApiKey;
use metering_core::access::ClientAddress;
use metering_core::wire::ErrorCode;
use rmcp::model::{GetExtensions, JsonRpcMessage, ServerJsonRpcMessage};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::backlog::{Backlog, busy};
use super::caller::Caller;
use super::channel::Channel;
use super::message;
use super::sessions::{Inbox, SessionId, Sessions};
use crate::http::{Connection, EventStream, Problem, Reply, Response, bytes};
use crate::operations::metrics;

/// How many messages of a client may wait until its session accepts them.
const INBOX: usize = 32;

/// How many messages may be on their way to a client's connection; the [`Backlog`] counts the others.
const OUTBOX: usize = 1;

/// The interval of keep-alive comments, which keep proxies from closing the connection and detect clients that have
/// gone.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// How long the stream of an ended session may take to send its end before its connection is cut. A client that does
/// not read would take forever.
const END_GRACE: Duration = Duration::from_secs(1);

/// The sessions of this transport.
#[derive(Debug)]
pub(crate) struct Sse {
    sessions: Arc<Sessions>,
    server: McpServer,
    /// The path prefix under which clients reach this service, put in front of `/messages/`.
    prefix: String,
}

impl Sse {
    pub(crate) fn new(sessions: Arc<Sessions>, server: McpServer, prefix: String) -> Self {
        Self { sessions, server, prefix }
    }

    /// Opens a session for a caller. It lasts as long as the client of `connection` reads the response body.
    pub(crate) fn open(&self, caller: Caller, connection: Option<&Connection>) -> Result<Response, Problem> {
        let (inbox, received) = mpsc::channel(INBOX);
        let (outbox, messages) = mpsc::channel(OUTBOX);
        let backlog = Arc::new(Backlog::new());
        let inbox = Inbox { messages: inbox, backlog: Arc::clone(&backlog) };
        let (id, permit) = self.sessions.open(caller, Some(inbox))?;
        let end = permit.end().clone();
        let channel = Channel { received, outbox, backlog: Arc::clone(&backlog), end: end.clone() };
        let (server, serving) = (self.server.clone(), end.clone());
        let sent = CancellationToken::new();
        let (all_sent, open) = (sent.clone().drop_guard(), connection.cloned());
        tokio::spawn(async move {
            match rmcp::service::serve_server_with_ct(server, channel, serving).await {
                Ok(running) => drop(running.waiting().await),
                Err(error) => tracing::debug!(%error, "an MCP session did not start"),
            }
            // Released here and not in the body, which a client that stops reading keeps alive for as long as it likes.
            drop(permit);
            if let Some(connection) = open
                && tokio::time::timeout(END_GRACE, sent.cancelled()).await.is_err()
            {
                metrics::connection_closed("stream_ended");
                connection.cut();
            }
        });
        let first = format!("event: endpoint\ndata: {}/messages/?session_id={}\n\n", self.prefix, id.as_str());
        let ended = end.clone().cancelled_owned();
        let events = stream::once(std::future::ready(Bytes::from(first)));
        let events = events.chain(events_of(messages, backlog)).map(Ok::<_, Infallible>);
        let events = EventStream::new(events, connection).take_until(ended);
        Ok(reply(events, (end.drop_guard(), all_sent)))
    }

    /// The response to `HEAD`: the head of a session's stream, without a session.
    pub(crate) fn head() -> Response {
        event_stream(Empty::new().map_err(|never| match never {}).boxed_unsync())
    }

    /// Delivers a client's message to its session.
    pub(crate) fn take(&self, key: Option<&ApiKey>, mut head: Parts, body: &[u8]) -> Result<Reply, Problem> {
        let id = session_id(head.uri.query().unwrap_or_default());
        let inbox = id.and_then(|id| self.sessions.inbox(&id, key)).ok_or_else(no_session)?;
        let mut message = message::read(body)?;
        inbox.backlog.record(&message)?;
        // The tools read the caller's key and address from the request head.
        let address = head.extensions.remove::<ClientAddress>();
        head.extensions = http::Extensions::new();
        if let Some(address) = address {
            head.extensions.insert(address);
        }
        let mut call = None;
        match &mut message {
            JsonRpcMessage::Request(request) => {
                call = Some(request.id.clone());
                drop(request.request.extensions_mut().insert(head));
            }
            JsonRpcMessage::Notification(notification) => {
                drop(notification.notification.extensions_mut().insert(head));
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
        inbox.messages.try_send(message).map_err(|error| {
            if let Some(call) = &call {
                inbox.backlog.forget(call);
            }
            match error {
                TrySendError::Full(_) => {
                    busy("The session has not processed your earlier messages yet; try again in a moment.".to_owned())
                }
                TrySendError::Closed(_) => no_session(),
            }
        })?;
        let text = HeaderValue::from_static("text/plain; charset=utf-8");
        Ok(bytes(StatusCode::ACCEPTED, text, Bytes::from_static(b"Accepted")))
    }
}

/// A response that streams events and ends the session when it is dropped.
fn reply(
    events: impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static,
    ends: (DropGuard, DropGuard),
) -> Response {
    let mut events = Box::pin(events);
    let body = stream::poll_fn(move |context| {
        // Moved in, so that the session lasts as long as the body.
        let _ends = &ends;
        events.as_mut().poll_next(context)
    });
    let body = StreamBody::new(body.map(|event| match event {
        Ok(event) => Ok(Frame::data(event)),
        Err(never) => match never {},
    }));
    event_stream(body.boxed_unsync())
}

fn event_stream(body: UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>) -> Response {
    let mut response = http::Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Tells nginx and similar proxies not to buffer events.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// The server's messages as events, with keep-alive comments when there are none.
fn events_of(
    messages: mpsc::Receiver<ServerJsonRpcMessage>,
    backlog: Arc<Backlog>,
) -> impl Stream<Item = Bytes> + Send {
    stream::unfold((messages, backlog), |(mut messages, backlog)| async move {
        let event = match tokio::time::timeout(KEEP_ALIVE, messages.recv()).await {
            Ok(Some(message)) => {
                backlog.read();
                event(&message)
            }
            Ok(None) => return None,
            Err(_) => Bytes::from_static(b": still here\n\n"),
        };
        Some((event, (messages, backlog)))
    })
}

fn event(message: &ServerJsonRpcMessage) -> Bytes {
    match serde_json::to_string(message) {
        // The JSON is on one line: line breaks in strings are escaped.
        Ok(json) => Bytes::from(format!("event: message\ndata: {json}\n\n")),
        Err(error) => {
            tracing::error!(%error, "could not serialize an MCP message as JSON");
            Bytes::from_static(b": a message could not be sent\n\n")
        }
    }
}

fn session_id(query: &str) -> Option<SessionId> {
    let mut ids = form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name == "session_id");
    ids.next().map(|(_, id)| SessionId::read(&id))
}

/// The same error for a session that never existed, one that has ended, and one of another key.
fn no_session() -> Problem {
    Problem::new(ErrorCode::NotFound, "There is no such session, or it has ended; open one with GET /sse.")
}

#[cfg(test)]
mod tests;
