//! Splits a body into JSON texts: the whole body, the data of server-sent events, or one text per line. Texts are
//! passed on as they arrive, so memory use does not depend on their size.
//!
//! Server-sent events are parsed as the WHATWG HTML standard specifies (section 9.2.6), for their data, and for the
//! type `error`, which marks a failure.

use crate::catalogue::byte_search::position;

/// The start of a line that is kept until its field is known. `event:error` and a byte more.
const FIELD_BYTES_MAX: usize = 16;
const DATA: &[u8] = b"data:";
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// How a body is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// One text.
    Whole,
    /// Server-sent events: an empty line ends an event.
    Events,
    /// A text per line.
    Lines,
}

/// The parts of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece<'b> {
    /// The next bytes of a text.
    Data(&'b [u8]),
    /// The end of a text.
    End,
    /// The current event has the type `error`.
    ErrorEvent,
}

/// Divides a body that arrives in pieces.
#[derive(Debug)]
pub(super) struct Splitter {
    framing: Framing,
    /// How many bytes of a byte order mark have been read; all of them once that is decided.
    mark: usize,
    line: Line,
    /// The start of the current line, while its field is not known.
    start: Vec<u8>,
    /// Whether the current event has data.
    has_data: bool,
    /// Whether the last line ended with a carriage return. A line feed directly after it belongs to it.
    after_carriage_return: bool,
}

/// The current line of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    /// Its field is not known yet.
    Start,
    Data,
    Other,
}

impl Splitter {
    pub(super) const fn new(framing: Framing) -> Self {
        Self { framing, mark: 0, line: Line::Start, start: Vec::new(), has_data: false, after_carriage_return: false }
    }

    /// Reads the next bytes of the body and passes on their texts.
    pub(super) fn push(&mut self, bytes: &[u8], take: &mut impl FnMut(Piece<'_>)) {
        let mut rest = bytes;
        while self.mark < BYTE_ORDER_MARK.len() {
            match rest.split_first() {
                None => return,
                Some((byte, after)) if *byte == BYTE_ORDER_MARK[self.mark] => {
                    self.mark += 1;
                    rest = after;
                }
                Some(_) => {
                    let begun = std::mem::replace(&mut self.mark, BYTE_ORDER_MARK.len());
                    self.read(&BYTE_ORDER_MARK[..begun], take);
                }
            }
        }
        self.read(rest, take);
    }

    /// Ends the body. A last line counts without a line end. A last event counts without the empty line after it,
    /// although the standard discards it: if it was cut off, its data is not valid JSON.
    pub(super) fn finish(&mut self, take: &mut impl FnMut(Piece<'_>)) {
        match self.framing {
            Framing::Whole | Framing::Lines => take(Piece::End),
            Framing::Events => {
                if self.line != Line::Start || !self.start.is_empty() {
                    self.end_line(take);
                }
                self.end_event(take);
            }
        }
    }

    fn read(&mut self, bytes: &[u8], take: &mut impl FnMut(Piece<'_>)) {
        if self.framing == Framing::Whole {
            return take(Piece::Data(bytes));
        }
        let mut rest = bytes;
        while let Some(first) = rest.first() {
            if std::mem::take(&mut self.after_carriage_return) && *first == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let Some(end) = position(rest, |byte| (byte == b'\n') | (byte == b'\r')) else {
                self.read_line(rest, take);
                return;
            };
            self.read_line(&rest[..end], take);
            self.after_carriage_return = rest[end] == b'\r';
            self.end_line(take);
            rest = &rest[end + 1..];
        }
    }

    /// Reads a part of a line.
    fn read_line(&mut self, bytes: &[u8], take: &mut impl FnMut(Piece<'_>)) {
        if self.framing == Framing::Lines || self.line == Line::Data {
            return take(Piece::Data(bytes));
        }
        if self.line == Line::Other {
            return;
        }
        if self.start.is_empty()
            && let Some(rest) = bytes.strip_prefix(DATA)
            && !rest.is_empty()
        {
            self.begin_data(take);
            return take(Piece::Data(value(rest)));
        }
        let room = (FIELD_BYTES_MAX - self.start.len()).min(bytes.len());
        self.start.extend_from_slice(&bytes[..room]);
        // A space after the colon is not part of the value, so one more byte is needed to know where the value begins.
        if self.start.len() > DATA.len() && self.start.starts_with(DATA) {
            let start = std::mem::take(&mut self.start);
            self.begin_data(take);
            take(Piece::Data(value(&start[DATA.len()..])));
            take(Piece::Data(&bytes[room..]));
            self.reuse(start);
        } else if self.start.len() == FIELD_BYTES_MAX {
            self.start.clear();
            self.line = Line::Other;
        }
    }

    fn begin_data(&mut self, take: &mut impl FnMut(Piece<'_>)) {
        if std::mem::replace(&mut self.has_data, true) {
            take(Piece::Data(b"\n"));
        }
        self.line = Line::Data;
    }

    fn end_line(&mut self, take: &mut impl FnMut(Piece<'_>)) {
        if self.framing == Framing::Lines {
            return take(Piece::End);
        }
        let start = std::mem::take(&mut self.start);
        match (std::mem::replace(&mut self.line, Line::Start), &start[..]) {
            (Line::Start, b"") => self.end_event(take),
            (Line::Start, b"data" | b"data:") => {
                self.begin_data(take);
                self.line = Line::Start;
            }
            (Line::Start, field) if field.strip_prefix(b"event:").map(value) == Some(b"error") => {
                take(Piece::ErrorEvent);
            }
            _ => {}
        }
        self.reuse(start);
    }

    /// Keeps the memory of the start of a line for the next one: a stream has many lines.
    fn reuse(&mut self, mut start: Vec<u8>) {
        start.clear();
        self.start = start;
    }

    fn end_event(&mut self, take: &mut impl FnMut(Piece<'_>)) {
        if std::mem::take(&mut self.has_data) {
            take(Piece::End);
        }
    }
}

/// The value of a field, from the text after its colon.
fn value(rest: &[u8]) -> &[u8] {
    rest.strip_prefix(b" ").unwrap_or(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split<'b>(framing: Framing, pieces: impl IntoIterator<Item = &'b [u8]>) -> Vec<String> {
        let (mut splitter, mut texts, mut text) = (Splitter::new(framing), Vec::new(), Vec::new());
        let mut take = |piece: Piece<'_>| match piece {
            Piece::Data(data) => text.extend_from_slice(data),
            Piece::ErrorEvent => text.extend_from_slice(b"ERROR "),
            Piece::End => texts.push(String::from_utf8_lossy(&std::mem::take(&mut text)).into_owned()),
        };
        for piece in pieces {
            splitter.push(piece, &mut take);
        }
        splitter.finish(&mut take);
        texts
    }

    #[test]
    fn events_are_split_as_the_standard_says_and_the_last_may_lack_its_end() {
        // body, the data of its events
        let table: &[(&str, &[&str])] = &[
            ("data: a\n\ndata: b\n\n", &["a", "b"]),
            ("data: a\r\n\r\ndata: b\r\rdata: c\n\n", &["a", "b", "c"]),
            ("data: a\ndata: b\n\n", &["a\nb"]),
            ("data:a\n\ndata:  b\n\n", &["a", " b"]),
            ("data\n\ndata\ndata\n\n", &["", "\n"]),
            ("\u{feff}data: a\n\n\u{feff}data: b\n\n", &["a"]),
            (": comment\nevent: x\nid: 1\nretry: 5\ndata: a\nfield\n\n", &["a"]),
            ("database: a\n data: b\nDATA: c\n\n", &[]),
            ("\n\n\n", &[]),
            ("data: a\n\ndata: the last", &["a", "the last"]),
            ("data: a\n\ndata: the last\n", &["a", "the last"]),
            ("data: a\n\ndata:", &["a", ""]),
            ("event: error\ndata: a\n\nevent:error\r\ndata: b\n\n", &["ERROR a", "ERROR b"]),
            ("event: errors\ndata: a\n\nevents: error\ndata: b\n\n", &["a", "b"]),
        ];
        for (body, texts) in table {
            assert_eq!(split(Framing::Events, [body.as_bytes()]), *texts, "{body:?}");
        }
        assert_eq!(split(Framing::Events, [&b"data: \xff\n\n"[..]]), ["\u{fffd}"]);
    }

    #[test]
    fn lines_are_split() {
        assert_eq!(split(Framing::Lines, [&b"\xef\xbb\xbf1\n2\r\n3"[..]]), ["1", "2", "3"]);
        assert_eq!(split(Framing::Whole, [&b"\xef\xbb"[..], b"\xbf1\n", b"2"]), ["1\n2"]);
        assert_eq!(split(Framing::Whole, [&b"\xef\xbb1"[..]]), ["\u{fffd}1"]);
    }

    proptest! {
        #[test]
        fn pieces_never_change_the_texts(
            lines in proptest::collection::vec("(data: ?|data|:|event: |\u{feff}data:)?[a-c]{0,3}(\r\n|\n|\r|\n\n)", 0..12),
            cut in 1_usize..6,
        ) {
            let body = lines.concat();
            for framing in [Framing::Events, Framing::Lines, Framing::Whole] {
                let whole = split(framing, [body.as_bytes()]);
                prop_assert_eq!(split(framing, body.as_bytes().chunks(cut)), whole);
            }
        }
    }
}
