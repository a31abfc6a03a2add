//! The head of a response: its status, and how its body ends.
//!
//! This is a parser of our own because it reads only what a load generator needs, in one pass and without copying. It
//! is strict: a response that it cannot follow counts as an error.

use std::str;

use super::malformed::Malformed;

/// The longest head that is accepted.
pub(super) const MAX_HEAD_BYTES: usize = 32 * 1024;

/// What the load generator needs from a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) status: u16,
    /// Its length, including the empty line that ends it.
    pub(super) bytes: usize,
    pub(super) framing: Framing,
    /// Whether the connection can take another request after this response.
    pub(super) keep_alive: bool,
}

/// How a body ends (RFC 9112, section 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    Length(u64),
    Chunked,
    UntilClose,
}

/// Parses the head at the start of `bytes`; `None` if it is not complete yet.
///
/// `bodiless`: the request was a HEAD, whose response describes a body but has none.
pub(super) fn parse(bytes: &[u8], bodiless: bool) -> Result<Option<Head>, Malformed> {
    let mut lines = Lines { rest: bytes };
    let Some(status_line) = lines.next() else { return incomplete(bytes) };
    let (status, mut keep_alive) = status_and_version(status_line)?;
    let (mut length, mut chunked) = (None, false);
    loop {
        let Some(line) = lines.next() else { return incomplete(bytes) };
        if line.is_empty() {
            break;
        }
        let (name, value) = name_and_value(line)?;
        if name.eq_ignore_ascii_case(b"content-length") {
            let given = number(value)?;
            if length.is_some_and(|earlier| earlier != given) {
                return Err(Malformed("two lengths"));
            }
            length = Some(given);
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            chunked = value.to_ascii_lowercase().ends_with(b"chunked");
        } else if name.eq_ignore_ascii_case(b"connection") {
            keep_alive = !value.eq_ignore_ascii_case(b"close");
        }
    }
    let framing = match length {
        _ if bodiless || matches!(status, 100..=199 | 204 | 304) => Framing::Length(0),
        _ if chunked => Framing::Chunked,
        Some(length) => Framing::Length(length),
        None => Framing::UntilClose,
    };
    Ok(Some(Head { status, bytes: bytes.len() - lines.rest.len(), framing, keep_alive }))
}

/// The value of the first header of that name in a parsed head.
pub(super) fn header<'h>(head: &'h [u8], name: &str) -> Option<&'h str> {
    let headers = Lines { rest: head }.skip(1).filter_map(|line| name_and_value(line).ok());
    let value = headers.into_iter().find(|(own, _)| own.eq_ignore_ascii_case(name.as_bytes()))?.1;
    str::from_utf8(value).ok()
}

fn incomplete(bytes: &[u8]) -> Result<Option<Head>, Malformed> {
    if bytes.len() < MAX_HEAD_BYTES { Ok(None) } else { Err(Malformed("a head without an end")) }
}

/// Complete lines, without their line ends.
struct Lines<'b> {
    rest: &'b [u8],
}

impl<'b> Iterator for Lines<'b> {
    type Item = &'b [u8];

    fn next(&mut self) -> Option<&'b [u8]> {
        let end = self.rest.iter().position(|byte| *byte == b'\n')?;
        let line = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    }
}

/// The status, and whether this HTTP version keeps connections open unless a header says otherwise.
fn status_and_version(line: &[u8]) -> Result<(u16, bool), Malformed> {
    let keep_alive = match line.get(..9) {
        Some(b"HTTP/1.1 ") => true,
        Some(b"HTTP/1.0 ") => false,
        _ => return Err(Malformed("not a status line of HTTP/1")),
    };
    match line[9..] {
        [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', ref reason @ ..] if matches!(reason, [] | [b' ', ..]) => {
            let digit = |digit: u8| u16::from(digit - b'0');
            Ok((digit(a) * 100 + digit(b) * 10 + digit(c), keep_alive))
        }
        _ => Err(Malformed("not a status")),
    }
}

fn name_and_value(line: &[u8]) -> Result<(&[u8], &[u8]), Malformed> {
    let colon = line.iter().position(|byte| *byte == b':').ok_or(Malformed("a header without a colon"))?;
    Ok((&line[..colon], line[colon + 1..].trim_ascii()))
}

fn number(digits: &[u8]) -> Result<u64, Malformed> {
    let not_a_length = Malformed("not a length");
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(not_a_length);
    }
    str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).ok_or(not_a_length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn body_framing_follows_from_status_and_headers() {
        use Framing::{Chunked, Length, UntilClose};
        // head, whether of a HEAD request, status, framing, keep-alive
        let table = [
            ("HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n", false, 200, Length(12), true),
            ("HTTP/1.1 200 OK\r\nContent-Length:12 \r\n\r\n", false, 200, Length(12), true),
            ("HTTP/1.1 200 OK\r\ncontent-length: 12\r\ncontent-length: 12\r\n\r\n", false, 200, Length(12), true),
            ("HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n", true, 200, Length(0), true),
            ("HTTP/1.1 402\r\nConnection: close\r\ncontent-length: 0\r\n\r\n", false, 402, Length(0), false),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n", false, 200, Chunked, true),
            (
                "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\ncontent-length: 3\r\n\r\n",
                false,
                200,
                Chunked,
                true,
            ),
            ("HTTP/1.1 200 OK\r\n\r\n", false, 200, UntilClose, true),
            ("HTTP/1.0 200 OK\r\n\r\n", false, 200, UntilClose, false),
            ("HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 1\r\n\r\n", false, 200, Length(1), true),
            ("HTTP/1.1 204 No Content\r\n\r\n", false, 204, Length(0), true),
            ("HTTP/1.1 304 Not Modified\r\ncontent-length: 9\r\n\r\n", false, 304, Length(0), true),
            ("HTTP/1.1 100 Continue\r\n\r\n", false, 100, Length(0), true),
            ("HTTP/1.1 200 OK\nContent-Length: 2\n\n", false, 200, Length(2), true),
        ];
        for (text, bodiless, status, framing, keep_alive) in table {
            let head = Head { status, bytes: text.len(), framing, keep_alive };
            assert_eq!(parse(text.as_bytes(), bodiless), Ok(Some(head)), "{text}");
            let with_more = [text.as_bytes(), b"HTTP/1.1"].concat();
            assert_eq!(parse(&with_more, bodiless), Ok(Some(head)), "{text}");
        }
    }

    #[test]
    fn truncated_head_is_incomplete() {
        let text = b"HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n";
        for end in 0..text.len() {
            assert_eq!(parse(&text[..end], false), Ok(None), "{end} bytes");
        }
    }

    #[test]
    fn malformed_heads_are_rejected() {
        let endless = format!("HTTP/1.1 200 OK\r\nA: {}", "b".repeat(MAX_HEAD_BYTES));
        let table = [
            "SSH-2.0-OpenSSH\r\n",
            "HTTP/2 200\r\n\r\n",
            "HTTP/1.1 2000 OK\r\n\r\n",
            "HTTP/1.1 20x OK\r\n\r\n",
            "HTTP/1.1 \r\n\r\n",
            "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: +1\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length:\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
            endless.as_str(),
        ];
        for text in table {
            assert!(parse(text.as_bytes(), false).is_err(), "{text:.60}");
        }
    }

    #[test]
    fn headers_are_found_by_name_in_any_case() {
        let head = b"HTTP/1.1 200 OK\r\nX-BDS-Credit-Balance: 1.5\r\nx-bds-credit-balance: 2\r\nbytes: \xff\r\n\r\n";
        assert_eq!(header(head, "x-bds-credit-balance"), Some("1.5"));
        for absent in ["x-bds", "bytes", "", "HTTP/1.1 200 OK"] {
            assert_eq!(header(head, absent), None, "{absent}");
        }
    }
}
