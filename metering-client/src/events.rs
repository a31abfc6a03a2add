//! Server-sent events, as the WHATWG HTML standard defines them.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use http::{HeaderMap, header};

use crate::error::ClientError;
use crate::response::{OpenResponse, header as text};
use crate::transport::Unreachable;

/// The largest event that is read, in bytes. Bounds memory when a stream never ends an event.
const EVENT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// An event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its type; `message` when the stream names none.
    pub kind: String,
    /// Its data.
    pub data: String,
    /// The event id to resume after, if the stream sends ids.
    pub id: Option<String>,
}

/// A stream of events. Dropping it closes the stream.
pub struct Events {
    /// The headers of the response; they contain the stream's charge.
    pub headers: HeaderMap,
    events: BoxStream<'static, Result<sse_stream::Sse, sse_stream::Error>>,
    /// Bytes received since the last event.
    pending_bytes: Arc<AtomicUsize>,
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Events")
    }
}

impl Events {
    /// The events of a response.
    ///
    /// # Errors
    /// When the response is not an event stream.
    pub(crate) fn read(response: OpenResponse) -> Result<Self, ClientError> {
        if !is_event_stream(&response.headers) {
            let media = text(&response.headers, header::CONTENT_TYPE.as_str()).unwrap_or_default();
            return Err(ClientError::Garbled(format!("its content type is {media:?}, not an event stream")));
        }
        let pending_bytes = Arc::new(AtomicUsize::new(0));
        let pending = Arc::clone(&pending_bytes);
        let body = response.body.map(move |chunk| {
            let chunk = chunk.map_err(std::io::Error::other)?;
            if pending.fetch_add(chunk.len(), Ordering::Relaxed) + chunk.len() > EVENT_BYTES_MAX {
                return Err(std::io::Error::other(format!("an event is longer than {EVENT_BYTES_MAX} bytes")));
            }
            Ok(chunk)
        });
        let events = sse_stream::SseStream::from_bytes_stream(body).boxed();
        Ok(Self { headers: response.headers, events, pending_bytes })
    }

    /// The next event that has data; `None` when the stream has ended.
    ///
    /// # Errors
    /// When the stream breaks off, or is not an event stream.
    pub async fn next(&mut self) -> Result<Option<Event>, ClientError> {
        while let Some(event) = self.events.next().await {
            let event = event.map_err(|error| match error {
                sse_stream::Error::Body(cause) => {
                    ClientError::from(Unreachable(format!("the stream broke off: {cause}")))
                }
                other => ClientError::Garbled(format!("not an event stream: {other}")),
            })?;
            self.pending_bytes.store(0, Ordering::Relaxed);
            let kind = event.event.filter(|kind| !kind.is_empty()).unwrap_or_else(|| "message".to_owned());
            if let Some(data) = event.data {
                return Ok(Some(Event { kind, data, id: event.id }));
            }
        }
        Ok(None)
    }
}

/// Whether a response with these headers is an event stream.
pub(crate) fn is_event_stream(headers: &HeaderMap) -> bool {
    let media = text(headers, header::CONTENT_TYPE.as_str()).unwrap_or_default();
    media.split(';').next().is_some_and(|media| media.trim().eq_ignore_ascii_case("text/event-stream"))
}
