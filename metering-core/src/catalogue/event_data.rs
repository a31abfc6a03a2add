//! Splits a body into the JSON texts that it streams: the data of server-sent events, or one text per line.
//!
//! Server-sent events are read as the WHATWG HTML standard says (section 9.2.6), for their data alone.

/// A longer event or line is skipped. Bounds the memory of a stream.
pub(super) const EVENT_BYTES_MAX: usize = 1 << 20;

/// How a body is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// Server-sent events: an empty line ends an event.
    Events,
    /// A text per line.
    Lines,
}

/// Divides a body that arrives in pieces.
#[derive(Debug)]
pub(super) struct Splitter {
    framing: Framing,
    /// The current line, as far as it has arrived.
    line: Vec<u8>,
    /// The data of the current event, each of its lines with a line feed at the end.
    data: Vec<u8>,
    /// Whether the current line is too long, and the rest of it is skipped.
    line_too_long: bool,
    /// Whether the current event is too large.
    event_too_large: bool,
    /// Whether the last line ended with a carriage return. A line feed right after it belongs to it.
    after_carriage_return: bool,
    /// Whether no line has ended yet. The first one may begin with a byte order mark.
    first_line: bool,
    /// Whether an event or line was skipped because of its size.
    skipped: bool,
}

impl Splitter {
    pub(super) const fn new(framing: Framing) -> Self {
        Self {
            framing,
            line: Vec::new(),
            data: Vec::new(),
            line_too_long: false,
            event_too_large: false,
            after_carriage_return: false,
            first_line: true,
            skipped: false,
        }
    }

    /// Whether an event or line was skipped because of its size.
    pub(super) const fn has_skipped(&self) -> bool {
        self.skipped
    }

    /// Reads the next bytes of the body, and hands each text that they complete to `take`.
    pub(super) fn push(&mut self, bytes: &[u8], take: &mut impl FnMut(&str)) {
        let mut rest = bytes;
        while let Some(first) = rest.first() {
            if std::mem::take(&mut self.after_carriage_return) && *first == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                self.extend_line(rest);
                return;
            };
            self.extend_line(&rest[..end]);
            self.after_carriage_return = rest[end] == b'\r';
            self.end_line(take);
            rest = &rest[end + 1..];
        }
    }

    /// Ends the body. A last line counts without a line end. A last event counts without the empty line after it,
    /// although the standard discards it: if it was cut off, its data is not valid JSON.
    pub(super) fn finish(&mut self, take: &mut impl FnMut(&str)) {
        self.end_line(take);
        if self.framing == Framing::Events {
            self.end_event(take);
        }
    }

    fn extend_line(&mut self, bytes: &[u8]) {
        if self.line.len() + self.data.len() + bytes.len() <= EVENT_BYTES_MAX {
            self.line.extend_from_slice(bytes);
        } else {
            // Keep the start, which says whether the line is data.
            let room = 8_usize.saturating_sub(self.line.len()).min(bytes.len());
            self.line.extend_from_slice(&bytes[..room]);
            self.line_too_long = true;
        }
    }

    fn end_line(&mut self, take: &mut impl FnMut(&str)) {
        let mut line = std::mem::take(&mut self.line);
        let too_long = std::mem::take(&mut self.line_too_long);
        if std::mem::take(&mut self.first_line) && line.starts_with(b"\xef\xbb\xbf") {
            line.drain(..3);
        }
        match self.framing {
            Framing::Lines if too_long => self.skipped = true,
            Framing::Lines => take(&String::from_utf8_lossy(&line)),
            Framing::Events if line.is_empty() && !too_long => self.end_event(take),
            Framing::Events => self.read_field(&line, too_long),
        }
        line.clear();
        self.line = line;
    }

    fn read_field(&mut self, line: &[u8], too_long: bool) {
        let Some(rest) = line.strip_prefix(b"data") else { return };
        let value = match rest.first() {
            None => rest,
            Some(b':') => rest[1..].strip_prefix(b" ").unwrap_or(&rest[1..]),
            Some(_) => return,
        };
        if too_long || self.event_too_large {
            self.event_too_large = true;
            return;
        }
        self.data.extend_from_slice(value);
        self.data.push(b'\n');
    }

    fn end_event(&mut self, take: &mut impl FnMut(&str)) {
        let data = std::mem::take(&mut self.data);
        if std::mem::take(&mut self.event_too_large) {
            self.skipped = true;
        } else if !data.is_empty() {
            take(&String::from_utf8_lossy(&data[..data.len() - 1]));
        }
        self.data = data;
        self.data.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split<'b>(framing: Framing, pieces: impl IntoIterator<Item = &'b [u8]>) -> Vec<String> {
        let (mut splitter, mut texts) = (Splitter::new(framing), Vec::new());
        let mut take = |text: &str| texts.push(text.to_owned());
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
        ];
        for (body, texts) in table {
            assert_eq!(split(Framing::Events, [body.as_bytes()]), *texts, "{body:?}");
        }
        assert_eq!(split(Framing::Events, [&b"data: \xff\n\n"[..]]), ["\u{fffd}"]);
    }

    #[test]
    fn lines_are_split() {
        assert_eq!(split(Framing::Lines, [&b"1\n2\r\n3"[..]]), ["1", "2", "3"]);
    }

    #[test]
    fn too_large_an_event_is_skipped_and_its_neighbours_are_read() {
        let half = "x".repeat(EVENT_BYTES_MAX / 2);
        // body, texts, whether something was skipped
        let table = [
            (format!("data: a\n\ndata: {half}{half}\n\ndata: b\n\n"), vec!["a", "b"], true),
            (format!("data: a\n\ndata: {half}\ndata: {half}\n\ndata: b\n\n"), vec!["a", "b"], true),
            (format!("data: a\n:{half}{half}\n\ndata: b\n\n"), vec!["a", "b"], false),
        ];
        for (body, expected, skipped) in table {
            let (mut splitter, mut texts) = (Splitter::new(Framing::Events), Vec::new());
            for piece in body.as_bytes().chunks(1_000) {
                splitter.push(piece, &mut |text| texts.push(text.to_owned()));
                assert!(splitter.line.len() + splitter.data.len() <= EVENT_BYTES_MAX + 8);
            }
            assert_eq!((texts, splitter.has_skipped()), (expected.into_iter().map(str::to_owned).collect(), skipped));
        }
    }

    proptest! {
        #[test]
        fn pieces_never_change_the_texts(
            lines in proptest::collection::vec("(data: ?|data|:|event: |\u{feff}data:)?[a-c]{0,3}(\r\n|\n|\r|\n\n)", 0..12),
            cut in 1_usize..6,
        ) {
            let body = lines.concat();
            for framing in [Framing::Events, Framing::Lines] {
                let whole = split(framing, [body.as_bytes()]);
                prop_assert_eq!(split(framing, body.as_bytes().chunks(cut)), whole);
            }
        }
    }
}
