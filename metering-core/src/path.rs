//! Request targets in one normal form, so that what is matched and priced is what is forwarded.
//!
//! A gateway that matches one spelling of a path and forwards another can be made to serve what it did not price. So
//! a path is normalised once (RFC 3986, 6.2.2), everything that servers are known to read in different ways is
//! refused, and both the catalogue and the upstream get the result.

use std::borrow::Cow;

/// A request path in normal form: percent-encoding only where needed, its digits upper-case, no dot segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestPath<'a>(Cow<'a, str>);

/// The path or query is one that servers could read in different ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// It does not start with a slash.
    #[error("the path must start with a slash")]
    NoLeadingSlash,
    /// It has a character that must be percent-encoded.
    #[error("the path has a character that must be percent-encoded")]
    RawCharacter,
    /// A `%` is not followed by two hexadecimal digits.
    #[error("a % must be followed by two hexadecimal digits")]
    BrokenEncoding,
    /// It encodes a slash, a backslash or a control character.
    #[error("encoded slashes, backslashes and control characters are not accepted")]
    EncodedSeparator,
    /// It has a `.` or `..` segment, encoded or not.
    #[error("the path must not have . or .. segments")]
    DotSegment,
    /// What it encodes is not UTF-8.
    #[error("percent-encoded text must be UTF-8")]
    NotUtf8,
}

impl<'a> RequestPath<'a> {
    /// Normalises a path, without its query.
    ///
    /// # Errors
    /// When it could be read in more than one way.
    pub fn parse(raw: &'a str) -> Result<Self, TargetError> {
        if !raw.starts_with('/') {
            return Err(TargetError::NoLeadingSlash);
        }
        let normal = if raw.contains('%') { Cow::Owned(normalise(raw)?) } else { Cow::Borrowed(raw) };
        if !normal.bytes().all(|b| is_path_char(b) || b == b'/' || b == b'%') {
            return Err(TargetError::RawCharacter);
        }
        if normal.split('/').any(|segment| matches!(segment, "." | "..")) {
            return Err(TargetError::DotSegment);
        }
        Ok(Self(normal))
    }

    /// The normal form.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The segments between the slashes, still percent-encoded where needed.
    pub fn segments(&self) -> impl Iterator<Item = &str> {
        self.0[1..].split('/')
    }
}

fn normalise(raw: &str) -> Result<String, TargetError> {
    let mut normal = String::with_capacity(raw.len());
    let mut decoded = Vec::with_capacity(raw.len());
    let mut rest = raw.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'%' {
            normal.push(char::from(*first));
            decoded.push(*first);
            continue;
        }
        let (byte, tail) = decode_one(tail)?;
        rest = tail;
        decoded.push(byte);
        if byte.is_ascii_control() || matches!(byte, b'/' | b'\\') {
            return Err(TargetError::EncodedSeparator);
        }
        if is_unreserved(byte) {
            normal.push(char::from(byte));
        } else {
            normal.push_str(&format!("%{byte:02X}"));
        }
    }
    std::str::from_utf8(&decoded).map_err(|_| TargetError::NotUtf8)?;
    Ok(normal)
}

/// The byte that two hexadecimal digits stand for, and what follows them.
fn decode_one(text: &[u8]) -> Result<(u8, &[u8]), TargetError> {
    let (digits, rest) = text.split_at_checked(2).ok_or(TargetError::BrokenEncoding)?;
    let mut byte = [0];
    hex::decode_to_slice(digits, &mut byte).map_err(|_| TargetError::BrokenEncoding)?;
    Ok((byte[0], rest))
}

/// RFC 3986, section 2.3.
fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// `pchar` of RFC 3986, section 3.3, less percent-encoding.
fn is_path_char(byte: u8) -> bool {
    is_unreserved(byte)
        || matches!(byte, b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=' | b':' | b'@')
}

/// Percent-decodes text; in a query a plus sign is a space.
///
/// # Errors
/// When the encoding is broken or not UTF-8.
pub(crate) fn decode(text: &str, plus_is_space: bool) -> Result<Cow<'_, str>, TargetError> {
    let encoded = text.contains('%') || plus_is_space && text.contains('+');
    if !encoded {
        return Ok(Cow::Borrowed(text));
    }
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        match first {
            b'%' => {
                let (byte, tail) = decode_one(tail)?;
                rest = tail;
                decoded.push(byte);
            }
            b'+' if plus_is_space => decoded.push(b' '),
            other => decoded.push(*other),
        }
    }
    String::from_utf8(decoded).map(Cow::Owned).map_err(|_| TargetError::NotUtf8)
}

/// A name and its value, percent-decoded.
pub(crate) type QueryPair<'q> = (Cow<'q, str>, Cow<'q, str>);

/// Splits a query into decoded names and values; empty pieces are dropped.
///
/// # Errors
/// When the encoding is broken or not UTF-8.
pub(crate) fn query_pairs(query: &str) -> Result<Vec<QueryPair<'_>>, TargetError> {
    let pieces = query.split('&').filter(|piece| !piece.is_empty());
    pieces
        .map(|piece| {
            let (name, value) = piece.split_once('=').unwrap_or((piece, ""));
            Ok((decode(name, true)?, decode(value, true)?))
        })
        .collect()
}

/// Appends `text` percent-encoded so that nothing in it can be read as syntax.
pub(crate) fn push_encoded(text: &str, query: &mut String) {
    for byte in text.bytes() {
        if is_unreserved(byte) {
            query.push(char::from(byte));
        } else {
            query.push_str(&format!("%{byte:02X}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn paths_have_one_spelling_or_none() {
        use TargetError::{BrokenEncoding, DotSegment, EncodedSeparator, NoLeadingSlash, NotUtf8, RawCharacter};
        // raw, normal
        let table = [
            ("/mpp/ethPrice", Ok("/mpp/ethPrice")),
            ("/mpp/%65thPrice", Ok("/mpp/ethPrice")),
            ("/mpp/a%20b", Ok("/mpp/a%20b")),
            ("/mpp/%c3%a9", Ok("/mpp/%C3%A9")),
            ("/mpp//x", Ok("/mpp//x")),
            ("/", Ok("/")),
            ("", Err(NoLeadingSlash)),
            ("mpp", Err(NoLeadingSlash)),
            ("*", Err(NoLeadingSlash)),
            ("/mpp/../internal", Err(DotSegment)),
            ("/mpp/./x", Err(DotSegment)),
            ("/mpp/%2e%2E/internal", Err(DotSegment)),
            ("/mpp/.%2e/internal", Err(DotSegment)),
            ("/mpp/..", Err(DotSegment)),
            ("/mpp%2Finternal", Err(EncodedSeparator)),
            ("/mpp/%5c..", Err(EncodedSeparator)),
            ("/mpp/%00", Err(EncodedSeparator)),
            ("/mpp/%0d%0aX-Evil:1", Err(EncodedSeparator)),
            ("/mpp/%", Err(BrokenEncoding)),
            ("/mpp/%4", Err(BrokenEncoding)),
            ("/mpp/%zz", Err(BrokenEncoding)),
            ("/mpp/%ff", Err(NotUtf8)),
            ("/mpp/\\..\\x", Err(RawCharacter)),
            ("/mpp/é", Err(RawCharacter)),
            ("/mpp/é%20", Err(RawCharacter)),
            ("/mpp/a b", Err(RawCharacter)),
            ("/mpp/...", Ok("/mpp/...")),
        ];
        for (raw, expected) in table {
            assert_eq!(RequestPath::parse(raw).as_ref().map(RequestPath::as_str), expected.as_ref().copied(), "{raw}");
        }
    }

    #[test]
    fn queries_are_split_and_decoded() {
        let pairs = query_pairs("a=1&b=x%26y+z&&c").unwrap();
        assert_eq!(pairs, [("a".into(), "1".into()), ("b".into(), "x&y z".into()), ("c".into(), "".into())]);
        assert_eq!(query_pairs("a=%f"), Err(TargetError::BrokenEncoding));
        assert_eq!(query_pairs("a=%ff"), Err(TargetError::NotUtf8));
    }

    proptest! {
        #[test]
        fn the_normal_form_is_its_own_normal_form(raw in "/[a-zA-Z0-9%./_~é-]{0,40}") {
            if let Ok(path) = RequestPath::parse(&raw) {
                prop_assert_eq!(RequestPath::parse(path.as_str()).unwrap(), path.clone());
            }
        }
    }
}
