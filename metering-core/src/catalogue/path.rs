//! Normalises request targets: the target that is matched and priced must be the one that is forwarded.
//!
//! A gateway that matches one spelling of a path and forwards another can be made to serve a request that it did not
//! price. So a path is normalised once (RFC 3986, 6.2.2), paths that servers are known to read in different ways are
//! rejected, and both the catalogue and the upstream get the normal form.

use std::borrow::Cow;

use crate::catalogue::spelling::decode_nested;

/// A request path in normal form: percent-encoded only where needed, with upper-case digits and no dot segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestPath<'a>(Cow<'a, str>);

/// An encoded slash in normal form.
const ENCODED_SLASH: &str = "%2F";

/// How encoded slashes are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slashes {
    Refused,
    Kept,
}

/// Why a path or query is rejected: servers could read it in different ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// It does not start with a slash.
    #[error("the path must start with a slash")]
    NoLeadingSlash,
    /// It has a raw character that must be percent-encoded.
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
    /// The decoded text is not UTF-8.
    #[error("percent-encoded text must be UTF-8")]
    NotUtf8,
    /// A segment has a raw semicolon: some servers cut the segment off there, others do not.
    #[error("a semicolon in a path must be percent-encoded, as %3B")]
    RawSemicolon,
    /// Its percent-encoding is nested too deep.
    #[error("percent-encoding must not be nested")]
    NestedEncoding,
    /// A parameter's value is another spelling of a fixed segment that another route has in the same position.
    #[error("a segment reads like the name of another route; spell that route exactly as the catalogue does")]
    ReadsLikeOtherRoute,
}

impl<'a> RequestPath<'a> {
    /// Normalises a path, without its query.
    ///
    /// ```
    /// use metering_core::catalogue::{RequestPath, TargetError};
    ///
    /// let path = RequestPath::parse("/prices/caf%c3%a9/%7Eme")?;
    /// assert_eq!(path.as_str(), "/prices/caf%C3%A9/~me");
    /// assert_eq!(path.segments().count(), 3);
    /// assert_eq!(RequestPath::parse("/prices/../admin"), Err(TargetError::DotSegment));
    /// # Ok::<(), TargetError>(())
    /// ```
    ///
    /// # Errors
    /// When the path could be read in more than one way.
    pub fn parse(raw: &'a str) -> Result<Self, TargetError> {
        Self::read(raw, Slashes::Refused)
    }

    /// The same for a path whose segments may have encoded slashes, which stay encoded. No part of a segment between
    /// them may be empty or a dot segment, since some servers decode them before they route.
    ///
    /// # Errors
    /// When the path could be read in more than one way.
    pub(crate) fn parse_with_slashes(raw: &'a str) -> Result<Self, TargetError> {
        let path = Self::read(raw, Slashes::Kept)?;
        for segment in path.segments().filter(|segment| segment.contains(ENCODED_SLASH)) {
            if segment.split(ENCODED_SLASH).any(|part| matches!(part, "." | "..")) {
                return Err(TargetError::DotSegment);
            }
            if segment.split(ENCODED_SLASH).any(str::is_empty) {
                return Err(TargetError::EncodedSeparator);
            }
        }
        Ok(path)
    }

    fn read(raw: &'a str, slashes: Slashes) -> Result<Self, TargetError> {
        if !raw.starts_with('/') {
            return Err(TargetError::NoLeadingSlash);
        }
        let normal = if raw.contains('%') { Cow::Owned(normalise(raw, slashes)?) } else { Cow::Borrowed(raw) };
        if normal.contains(';') {
            return Err(TargetError::RawSemicolon);
        }
        if !normal.bytes().all(|b| is_path_char(b) || b == b'/' || b == b'%') {
            return Err(TargetError::RawCharacter);
        }
        if normal.split('/').any(|segment| matches!(segment, "." | "..")) {
            return Err(TargetError::DotSegment);
        }
        if normal.contains("%25") {
            normal.split('/').try_for_each(check_nested)?;
        }
        Ok(Self(normal))
    }

    /// The normal form.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a segment has an encoded slash.
    #[must_use]
    pub fn has_encoded_slash(&self) -> bool {
        self.0.contains(ENCODED_SLASH)
    }

    /// The segments between the slashes, still percent-encoded where needed.
    pub fn segments(&self) -> impl Iterator<Item = &str> {
        self.0[1..].split('/')
    }
}

/// Checks that a server that decodes the segment more than once finds no separator or dot segment in it.
fn check_nested(segment: &str) -> Result<(), TargetError> {
    let decoded = decode_nested(segment).ok_or(TargetError::NestedEncoding)?;
    match decoded.as_str() {
        "." | ".." => Err(TargetError::DotSegment),
        decoded if decoded.contains(['/', '\\']) || decoded.contains(|c: char| c.is_ascii_control()) => {
            Err(TargetError::EncodedSeparator)
        }
        _ => Ok(()),
    }
}

fn normalise(raw: &str, slashes: Slashes) -> Result<String, TargetError> {
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
        let is_separator = byte == b'\\' || (byte == b'/' && slashes == Slashes::Refused);
        if byte.is_ascii_control() || is_separator {
            return Err(TargetError::EncodedSeparator);
        }
        if is_unreserved(byte) {
            normal.push(char::from(byte));
        } else {
            push_percent(byte, &mut normal);
        }
    }
    std::str::from_utf8(&decoded).map_err(|_| TargetError::NotUtf8)?;
    Ok(normal)
}

/// Decodes two hexadecimal digits; returns the byte and the rest of the text.
pub(super) fn decode_one(text: &[u8]) -> Result<(u8, &[u8]), TargetError> {
    let (digits, rest) = text.split_at_checked(2).ok_or(TargetError::BrokenEncoding)?;
    let mut byte = [0];
    hex::decode_to_slice(digits, &mut byte).map_err(|_| TargetError::BrokenEncoding)?;
    Ok((byte[0], rest))
}

/// Appends a byte percent-encoded, with upper-case digits.
pub(super) fn push_percent(byte: u8, text: &mut String) {
    let digit = |nibble: u8| char::from(b"0123456789ABCDEF"[usize::from(nibble)]);
    text.extend(['%', digit(byte >> 4), digit(byte & 0xF)]);
}

/// RFC 3986, section 2.3.
pub(super) fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// `pchar` of RFC 3986, section 3.3, without percent-encoding and the semicolon.
fn is_path_char(byte: u8) -> bool {
    is_unreserved(byte)
        || matches!(byte, b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b'=' | b':' | b'@')
}

/// Encodes a path from another service, decoded or not, for storage: percent-encoded where needed. It rejects nothing.
pub(crate) fn encode_path(text: &str) -> String {
    let mut path = String::with_capacity(text.len() + 1);
    if !text.starts_with('/') {
        path.push('/');
    }
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        let decoded = if *first == b'%' { decode_one(tail).ok() } else { None };
        match decoded {
            Some((byte, tail)) => {
                rest = tail;
                if is_unreserved(byte) {
                    path.push(char::from(byte));
                } else {
                    push_percent(byte, &mut path);
                }
            }
            None if is_path_char(*first) || matches!(*first, b'/' | b';') => path.push(char::from(*first)),
            None => push_percent(*first, &mut path),
        }
    }
    path
}

/// The segments of a path, without empty ones and with dot segments resolved.
pub(crate) fn plain_segments(path: &str) -> Vec<&str> {
    let mut segments = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            other => segments.push(other),
        }
    }
    segments
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn paths_have_one_spelling_or_none() {
        use TargetError::{
            BrokenEncoding, DotSegment, EncodedSeparator, NestedEncoding, NoLeadingSlash, NotUtf8, RawCharacter,
            RawSemicolon,
        };
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
            ("/mpp/a;b=c", Err(RawSemicolon)),
            ("/mpp;v=1/x", Err(RawSemicolon)),
            ("/mpp/%41;", Err(RawSemicolon)),
            ("/mpp/a%3bb", Ok("/mpp/a%3Bb")),
            ("/mpp/100%25", Ok("/mpp/100%25")),
            ("/mpp/a%2541", Ok("/mpp/a%2541")),
            ("/mpp/x%252F..%252Fexport", Err(EncodedSeparator)),
            ("/mpp/%252e%252e", Err(DotSegment)),
            ("/mpp/%25255cx", Err(EncodedSeparator)),
            ("/mpp/%2500", Err(EncodedSeparator)),
            ("/mpp/%252525252525252541", Err(NestedEncoding)),
        ];
        for (raw, expected) in table {
            assert_eq!(RequestPath::parse(raw).as_ref().map(RequestPath::as_str), expected.as_ref().copied(), "{raw}");
        }
    }

    #[test]
    fn encoded_slashes_stay_encoded_or_are_refused() {
        use TargetError::{DotSegment, EncodedSeparator};
        let table = [
            ("/m/openai%2fx", Ok("/m/openai%2Fx")),
            ("/m/a%2Fb%2Fc:run", Ok("/m/a%2Fb%2Fc:run")),
            ("/m/x", Ok("/m/x")),
            ("/m/a%2F..%2Fb", Err(DotSegment)),
            ("/m/..%2Fb", Err(DotSegment)),
            ("/m/a%2F.", Err(DotSegment)),
            ("/m/a%2F%2e%2e", Err(DotSegment)),
            ("/m/a%2F%2Fb", Err(EncodedSeparator)),
            ("/m/%2Fb", Err(EncodedSeparator)),
            ("/m/b%2F", Err(EncodedSeparator)),
            ("/m/a%5Cb", Err(EncodedSeparator)),
            ("/m/a%252Fb", Err(EncodedSeparator)),
            ("/m/a%2Fb%25", Err(EncodedSeparator)),
            ("/m/a%2Fb%252e", Err(EncodedSeparator)),
        ];
        for (raw, expected) in table {
            let path = RequestPath::parse_with_slashes(raw);
            assert_eq!(path.as_ref().map(RequestPath::as_str), expected.as_ref().copied(), "{raw}");
        }
    }

    #[test]
    fn any_text_can_be_normalised_to_a_path() {
        // name, kept, segments
        let table: [(&str, &str, &[&str]); 9] = [
            ("/mpp/ethPrice", "/mpp/ethPrice", &["mpp", "ethPrice"]),
            ("/mpp/ethPrice/", "/mpp/ethPrice/", &["mpp", "ethPrice"]),
            ("mpp//x", "/mpp//x", &["mpp", "x"]),
            ("/a b/é", "/a%20b/%C3%A9", &["a%20b", "%C3%A9"]),
            ("/a%20b/%c3%a9/%41", "/a%20b/%C3%A9/A", &["a%20b", "%C3%A9", "A"]),
            ("/100%/%zz", "/100%25/%25zz", &["100%25", "%25zz"]),
            ("/a/../b/./c", "/a/../b/./c", &["b", "c"]),
            ("/x\r\n\\", "/x%0D%0A%5C", &["x%0D%0A%5C"]),
            ("", "/", &[]),
        ];
        for (named, kept, segments) in table {
            let path = encode_path(named);
            assert_eq!((path.as_str(), plain_segments(&path).as_slice()), (kept, segments), "{named:?}");
        }
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
