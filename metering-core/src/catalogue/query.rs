//! Reads queries like servers, and writes them in one spelling.

use std::borrow::Cow;

use crate::catalogue::path::{TargetError, decode_one, is_unreserved, push_percent};

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

/// Splits a query into decoded names and values, dropping empty pairs.
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

/// Appends `text` percent-encoded, so nothing in it can be read as syntax.
pub(crate) fn push_encoded(text: &str, query: &mut String) {
    for byte in text.bytes() {
        if is_unreserved(byte) {
            query.push(char::from(byte));
        } else {
            push_percent(byte, query);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_split_and_decoded() {
        let pairs = query_pairs("a=1&b=x%26y+z&&c").unwrap();
        assert_eq!(pairs, [("a".into(), "1".into()), ("b".into(), "x&y z".into()), ("c".into(), "".into())]);
        assert_eq!(query_pairs("a=%f"), Err(TargetError::BrokenEncoding));
        assert_eq!(query_pairs("a=%ff"), Err(TargetError::NotUtf8));
    }
}
