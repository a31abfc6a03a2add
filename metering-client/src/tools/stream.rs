//! Gathers the events that a stream tool returns, within its bounds.

use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::document::{Document, Json};
use super::failure::RESULT_BYTES_MAX;
use crate::error::ClientError;
use crate::events::{Event, Events};

/// Why no more events were gathered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndedBy {
    Count,
    Time,
    End,
    Size,
    Break,
}

impl EndedBy {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Time => "time",
            Self::End => "end",
            Self::Size => "size",
            Self::Break => "break",
        }
    }
}

/// The events of a stream.
pub(super) struct Gathered {
    pub(super) document: Document,
    /// Whether the stream has ended, so its cost is known.
    pub(super) is_ended: bool,
}

/// Gathers up to `max_events` events until `deadline`, and closes the stream.
///
/// # Errors
/// When the stream breaks off before its first event. After that, it returns the events so far instead of an error.
pub(super) async fn gather(mut events: Events, max_events: usize, deadline: Instant) -> Result<Gathered, ClientError> {
    let mut gathered = Vec::new();
    let mut bytes = 0;
    let ended_by = loop {
        if gathered.len() >= max_events {
            break EndedBy::Count;
        }
        match timeout_at(deadline, events.next()).await {
            Err(_) => break EndedBy::Time,
            Ok(Ok(None)) => break EndedBy::End,
            Ok(Err(error)) if gathered.is_empty() => return Err(error),
            Ok(Err(_)) => break EndedBy::Break,
            Ok(Ok(Some(event))) => {
                bytes += event.data.len();
                if bytes > RESULT_BYTES_MAX {
                    break EndedBy::Size;
                }
                gathered.push(document(event));
            }
        }
    };
    let count = Json::from(Value::from(gathered.len()));
    let is_ended = matches!(ended_by, EndedBy::End);
    let ended_by = Json::from(Value::from(ended_by.as_str()));
    let document = Document::new().with("events", Json::list(gathered)).with("count", count).with("ended_by", ended_by);
    Ok(Gathered { document, is_ended })
}

fn document(event: Event) -> Json {
    let document = Document::new().with("event", Json::from(Value::from(event.kind)));
    let document = match event.id {
        Some(id) => document.with("id", Json::from(Value::from(id))),
        None => document,
    };
    document.with("data", Json::or_text(event.data.as_bytes())).into()
}
