//! Removes server-sent events that the client did not request, such as the usage that the gateway requested.
//!
//! An event is passed on as soon as it is complete, byte for byte. The rest of the stream is unchanged. Events that
//! arrive whole are passed on without a copy.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

/// A larger event is passed on: those that are hidden are small.
const EVENT_BYTES_MAX: usize = 64 << 10;

/// Whether an event with this data is hidden.
#[derive(Clone)]
pub(in crate::gateway) struct Hides(Arc<dyn Fn(&str) -> bool + Send + Sync>);

impl Hides {
    pub(in crate::gateway) fn new(hides: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(hides))
    }

    /// Whether an event is hidden. An event without data is not hidden.
    fn event(&self, event: &[u8]) -> bool {
        let text = String::from_utf8_lossy(event);
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let mut values = text.split(['\n', '\r']).filter_map(|line| match line.strip_prefix("data")? {
            "" => Some(""),
            rest => rest.strip_prefix(':').map(|value| value.strip_prefix(' ').unwrap_or(value)),
        });
        let Some(first) = values.next() else { return false };
        let Some(second) = values.next() else { return (self.0)(first) };
        let lines: Vec<&str> = [first, second].into_iter().chain(values).collect();
        (self.0)(&lines.join("\n"))
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
    /// The part of the current event from earlier pieces.
    event: Vec<u8>,
    /// Whether the current line is still empty.
    at_line_start: bool,
    /// Whether the current event is too large, and its rest is passed on.
    passes_event: bool,
    /// After a carriage return, whether it ended an event that was hidden, or else is passed on: a line feed right
    /// after it belongs to it.
    after_carriage_return: Option<bool>,
}

/// The visible bytes of a piece and of the events that it ends: a part of the piece, unless that is not enough.
struct Passed<'p> {
    piece: &'p Bytes,
    copied: Vec<u8>,
    /// The bytes after the copied ones.
    part: Range<usize>,
}

impl EventFilter {
    pub(super) const fn new(hides: Hides) -> Self {
        Self { hides, event: Vec::new(), at_line_start: true, passes_event: false, after_carriage_return: None }
    }

    /// Reads the next bytes, and returns what is passed on.
    pub(super) fn push(&mut self, piece: &Bytes) -> Bytes {
        let mut passed = Passed { piece, copied: Vec::new(), part: 0..0 };
        // Where the current event begins in this piece, if it does.
        let mut start = 0;
        let mut at = 0;
        while at < piece.len() {
            if let Some(was_hidden) = self.after_carriage_return.take()
                && piece[at] == b'\n'
            {
                at += 1;
                if self.event.is_empty() && start + 1 == at {
                    // It is the end of the event before.
                    if !was_hidden {
                        passed.add(start..at);
                    }
                    start = at;
                }
                continue;
            }
            let Some(length) = piece[at..].iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                self.at_line_start = false;
                break;
            };
            let ends_event = std::mem::replace(&mut self.at_line_start, true) && length == 0;
            at += length + 1;
            let is_hidden = ends_event && self.end_event(start..at, &mut passed);
            if ends_event {
                start = at;
            }
            self.after_carriage_return = (piece[at - 1] == b'\r').then_some(is_hidden);
        }
        let rest = start..piece.len();
        if self.passes_event || self.is_too_large(&rest) {
            self.passes_event = true;
            passed.add_all(&mut self.event);
            passed.add(rest);
        } else {
            self.event.extend_from_slice(&piece[rest]);
        }
        passed.finish()
    }

    /// The buffered rest, when the stream ends.
    pub(super) fn finish(self) -> Bytes {
        let is_hidden = !self.passes_event && self.hides.event(&self.event);
        if is_hidden { Bytes::new() } else { self.event.into() }
    }

    /// Ends the current event with this part of a piece. Returns whether it is hidden.
    fn end_event(&mut self, mut end: Range<usize>, passed: &mut Passed<'_>) -> bool {
        let passes = std::mem::take(&mut self.passes_event) || self.is_too_large(&end);
        if !passes && !self.event.is_empty() {
            self.event.extend_from_slice(&passed.piece[end.clone()]);
            end.start = end.end;
        }
        let event = if self.event.is_empty() { &passed.piece[end.clone()] } else { &self.event[..] };
        let is_hidden = !passes && self.hides.event(event);
        if is_hidden {
            self.event.clear();
        } else {
            passed.add_all(&mut self.event);
            passed.add(end);
        }
        is_hidden
    }

    /// Whether the current event is too large to be hidden, with this part of a piece.
    fn is_too_large(&self, part: &Range<usize>) -> bool {
        self.event.len() + part.len() > EVENT_BYTES_MAX
    }
}

impl Passed<'_> {
    /// Adds a part of the piece.
    fn add(&mut self, part: Range<usize>) {
        if part.is_empty() {
            return;
        }
        if !self.part.is_empty() && self.part.end != part.start {
            self.copy_part();
        }
        if self.part.is_empty() {
            self.part = part;
        } else {
            self.part.end = part.end;
        }
    }

    /// Adds bytes of earlier pieces.
    fn add_all(&mut self, bytes: &mut Vec<u8>) {
        if !bytes.is_empty() {
            self.copy_part();
            self.copied.append(bytes);
        }
    }

    fn copy_part(&mut self) {
        self.copied.extend_from_slice(&self.piece[std::mem::take(&mut self.part)]);
    }

    fn finish(mut self) -> Bytes {
        if self.copied.is_empty() {
            return self.piece.slice(self.part);
        }
        self.copy_part();
        self.copied.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(pieces: &[&[u8]]) -> String {
        let mut filter = EventFilter::new(Hides::new(|data| data == "hidden"));
        let mut passed = Vec::new();
        for piece in pieces {
            passed.extend(filter.push(&Bytes::copy_from_slice(piece)));
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
    fn events_are_hidden_up_to_the_limit() {
        for (bytes, is_hidden) in [(EVENT_BYTES_MAX, true), (EVENT_BYTES_MAX + 1, false)] {
            for end in ["\n\n", "\r\r", ""] {
                let event = format!("data: {}{end}", "x".repeat(bytes - "data: ".len() - end.len()));
                assert_eq!(event.len(), bytes);
                for cut in [1_000, bytes - 1, bytes] {
                    let mut filter = EventFilter::new(Hides::new(|_| true));
                    let mut passed = Vec::new();
                    for piece in event.as_bytes().chunks(cut) {
                        passed.extend(filter.push(&Bytes::copy_from_slice(piece)));
                    }
                    passed.extend(filter.finish());
                    let expected = if is_hidden { "" } else { event.as_str() };
                    assert!(passed == expected.as_bytes(), "{bytes} bytes, end {end:?}, in pieces of {cut}");
                }
            }
        }
    }

    #[test]
    fn event_is_passed_on_once_it_is_complete() {
        let mut filter = EventFilter::new(Hides::new(|_| false));
        assert_eq!(filter.push(&Bytes::from_static(b"data: a\n")), "");
        assert_eq!(filter.push(&Bytes::from_static(b"\ndata: b")), "data: a\n\n");
    }

    #[test]
    fn events_that_arrive_whole_are_not_copied() {
        let mut filter = EventFilter::new(Hides::new(|data| data == "hidden"));
        // piece, where what is passed on begins in it, its length
        let table = [
            ("data: a\n\ndata: b\n\n", 0, 18),
            ("data: hidden\n\ndata: b\r\n\r\ndata: hidden\n\n", 14, 11),
            (": ping\r\n\r\n", 0, 10),
            ("data: a\n\ndata: hid", 0, 9),
        ];
        for (piece, start, length) in table {
            let piece = Bytes::from_static(piece.as_bytes());
            let passed = filter.push(&piece);
            assert_eq!(passed, piece.slice(start..start + length));
            assert_eq!(passed.as_ptr(), piece[start..].as_ptr());
        }
        assert_eq!(filter.push(&Bytes::from_static(b"den\n\n: ping\n\n")), ": ping\n\n");
    }
}
