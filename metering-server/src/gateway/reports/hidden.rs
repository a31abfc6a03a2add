//! Removes server-sent events that the client did not request, such as the usage that the gateway requested.
//!
//! An event is passed on as soon as it is complete, byte for byte. The rest of the stream is unchanged.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

/// A larger event is passed on: those that are hidden are small.
const EVENT_BYTES_MAX: usize = 64 << 10;

/// Says whether an event with this data is hidden.
#[derive(Clone)]
pub(in crate::gateway) struct Hides(Arc<dyn Fn(&str) -> bool + Send + Sync>);

impl Hides {
    pub(in crate::gateway) fn new(hides: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(hides))
    }
}

impl fmt::Debug for Hides {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hides")
    }
}

/// Filters a stream of events that arrives in pieces.
#[derive(Debug)]
pub(super) struct EventFilter {
    hides: Hides,
    /// The current event, as far as it has arrived.
    event: Vec<u8>,
    /// Whether the current line is empty so far.
    at_line_start: bool,
    /// Whether the current event is too large, and its rest is passed on.
    passes_event: bool,
    /// After a carriage return, whether it ended an event that was hidden, or else is passed on: a line feed right
    /// after it belongs to it.
    after_carriage_return: Option<bool>,
}

impl EventFilter {
    pub(super) const fn new(hides: Hides) -> Self {
        Self { hides, event: Vec::new(), at_line_start: true, passes_event: false, after_carriage_return: None }
    }

    /// Reads the next bytes, and returns what is passed on.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Bytes {
        let mut passed = Vec::with_capacity(bytes.len());
        for &byte in bytes {
            if let Some(was_hidden) = self.after_carriage_return.take()
                && byte == b'\n'
            {
                if self.event.is_empty() && !was_hidden {
                    passed.push(byte);
                } else if !self.event.is_empty() {
                    self.event.push(byte);
                }
                continue;
            }
            self.event.push(byte);
            match byte {
                b'\n' | b'\r' => {
                    let ends_event = std::mem::replace(&mut self.at_line_start, true);
                    let is_hidden = ends_event && self.end_event(&mut passed);
                    self.after_carriage_return = (byte == b'\r').then_some(is_hidden);
                }
                _ => self.at_line_start = false,
            }
            if self.passes_event || self.event.len() > EVENT_BYTES_MAX {
                self.passes_event = true;
                passed.append(&mut self.event);
            }
        }
        passed.into()
    }

    /// The buffered rest, when the stream ends.
    pub(super) fn finish(mut self) -> Bytes {
        let mut passed = Vec::new();
        self.end_event(&mut passed);
        passed.into()
    }

    /// Ends the current event. Returns whether it is hidden.
    fn end_event(&mut self, passed: &mut Vec<u8>) -> bool {
        let is_hidden =
            !std::mem::take(&mut self.passes_event) && data(&self.event).is_some_and(|data| (self.hides.0)(&data));
        if is_hidden {
            self.event.clear();
        } else {
            passed.append(&mut self.event);
        }
        is_hidden
    }
}

/// The data of an event.
fn data(event: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(event);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text).replace("\r\n", "\n");
    let values = text.split(['\n', '\r']).filter_map(|line| match line.strip_prefix("data")? {
        "" => Some(""),
        rest => rest.strip_prefix(':').map(|value| value.strip_prefix(' ').unwrap_or(value)),
    });
    let values: Vec<&str> = values.collect();
    (!values.is_empty()).then(|| values.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(pieces: &[&[u8]]) -> String {
        let mut filter = EventFilter::new(Hides::new(|data| data == "hidden"));
        let mut passed = Vec::new();
        for piece in pieces {
            passed.extend(filter.push(piece));
        }
        passed.extend(filter.finish());
        String::from_utf8(passed).unwrap()
    }

    #[test]
    fn hidden_events_are_removed_and_nothing_else() {
        let large = format!("data: {}\n\n", "x".repeat(EVENT_BYTES_MAX));
        // stream, what is passed on
        let table = [
            ("data: a\n\ndata: hidden\n\ndata: b\n\n", "data: a\n\ndata: b\n\n"),
            ("data: a\r\n\r\ndata: hidden\r\n\r\ndata: b\r\n\r\n", "data: a\r\n\r\ndata: b\r\n\r\n"),
            ("data: a\r\rdata: hidden\r\rdata: b\r\r", "data: a\r\rdata: b\r\r"),
            (": ping\n\nid: 1\nevent: x\ndata:hidden\n\n: ping\n\n", ": ping\n\n: ping\n\n"),
            ("event: x\r\nid: 1\r\ndata: a\r\n\r\n", "event: x\r\nid: 1\r\ndata: a\r\n\r\n"),
            ("data: a\n\ndata: hidden", "data: a\n\n"),
            ("data: hidden\ndata: more\n\n", "data: hidden\ndata: more\n\n"),
            ("\n\n\r\n", "\n\n\r\n"),
            ("data: a", "data: a"),
            (&*format!("{large}data: hidden\n\n"), &large),
        ];
        for (stream, expected) in table {
            for cut in [1, 3, stream.len()] {
                let pieces: Vec<_> = stream.as_bytes().chunks(cut).collect();
                assert_eq!(filter(&pieces), expected, "{stream:?} in pieces of {cut}");
            }
        }
    }

    #[test]
    fn event_is_passed_on_once_it_is_complete() {
        let mut filter = EventFilter::new(Hides::new(|_| false));
        assert_eq!(filter.push(b"data: a\n"), "");
        assert_eq!(filter.push(b"\ndata: b"), "data: a\n\n");
    }
}
