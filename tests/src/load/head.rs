//! The head of a response: its status, and how its body ends. A response that does not follow the standard counts as an
//! error.

use std::str;

use httparse::{EMPTY_HEADER, Header, Response, Status};

use super::malformed::Malformed;

/// The longest head that is accepted.
pub(super) const MAX_HEAD_BYTES: usize = 32 * 1024;
const MAX_HEADERS: usize = 64;

/// The fields of a head that the load generator needs.
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
    let mut headers = [EMPTY_HEADER; MAX_HEADERS];
    let mut response = Response::new(&mut headers);
    let (Status::Complete(length), Some(status)) = (response.parse(bytes)?, response.code) else {
        let endless = bytes.len() >= MAX_HEAD_BYTES;
        return if endless { Err(Malformed::Framing("a head without an end")) } else { Ok(None) };
    };
    let mut head =
        Head { status, bytes: length, framing: Framing::UntilClose, keep_alive: response.version == Some(1) };
    for Header { name, value } in response.headers {
        if name.eq_ignore_ascii_case("content-length") {
            let given = Framing::Length(number(value)?);
            match head.framing {
                Framing::Chunked => {}
                Framing::Length(_) if head.framing != given => return Err(Malformed::Framing("two lengths")),
                _ => head.framing = given,
            }
        } else if name.eq_ignore_ascii_case("transfer-encoding") && value.to_ascii_lowercase().ends_with(b"chunked") {
            head.framing = Framing::Chunked;
        } else if name.eq_ignore_ascii_case("connection") {
            head.keep_alive = !value.eq_ignore_ascii_case(b"close");
        }
    }
    if bodiless || matches!(status, 100..=199 | 204 | 304) {
        head.framing = Framing::Length(0);
    }
    Ok(Some(head))
}

/// The value of the first header of that name in a parsed head.
pub(super) fn header<'h>(head: &'h [u8], name: &str) -> Option<&'h str> {
    let mut headers = [EMPTY_HEADER; MAX_HEADERS];
    let mut response = Response::new(&mut headers);
    response.parse(head).ok()?;
    let header = response.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
    str::from_utf8(header.value).ok()
}

fn number(digits: &[u8]) -> Result<u64, Malformed> {
    let digits = str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()));
    digits.and_then(|digits| digits.parse().ok()).ok_or(Malformed::Framing("not a length"))
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
