//! Skips the body of a response to find its end.

use httparse::{EMPTY_HEADER, Status, parse_chunk_size, parse_headers};

use super::head::Framing;
use super::malformed::Malformed;

/// The rest of a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// This many bytes.
    Bytes(u64),
    /// Chunks; the next one starts with its size (RFC 9112, section 7.1).
    Chunks,
    /// A chunk with this many bytes left, including its line end; then more chunks.
    Chunk(u64),
    /// The trailer after the last chunk.
    Trailer,
    /// Everything until the connection closes.
    UntilClose,
}

const LINE_END_BYTES: u64 = 2;
const MAX_TRAILERS: usize = 16;

impl Body {
    pub(super) fn new(framing: Framing) -> Self {
        match framing {
            Framing::Length(bytes) => Self::Bytes(bytes),
            Framing::Chunked => Self::Chunks,
            Framing::UntilClose => Self::UntilClose,
        }
    }

    /// Whether the body has ended.
    pub(super) fn is_over(&self) -> bool {
        *self == Self::Bytes(0)
    }

    /// Skips received bytes, and returns how many. Incomplete lines are not skipped: they are due again, with what
    /// arrives after them.
    pub(super) fn skip(&mut self, arrived: &[u8]) -> Result<usize, Malformed> {
        let mut skipped = 0;
        while skipped < arrived.len() && !self.is_over() {
            let rest = &arrived[skipped..];
            skipped += match self {
                Self::Bytes(left) => skip_bytes(left, rest),
                Self::Chunk(left) => {
                    let bytes = skip_bytes(left, rest);
                    if *left == 0 {
                        *self = Self::Chunks;
                    }
                    bytes
                }
                // The library reads a missing size as 0.
                Self::Chunks if !rest[0].is_ascii_hexdigit() => return Err(Malformed::ChunkSize),
                Self::Chunks => {
                    let Status::Complete((bytes, size)) = parse_chunk_size(rest)? else { break };
                    *self = match size {
                        0 => Self::Trailer,
                        size => Self::Chunk(size.checked_add(LINE_END_BYTES).ok_or(Malformed::ChunkSize)?),
                    };
                    bytes
                }
                Self::Trailer => {
                    let Status::Complete((bytes, _)) = parse_headers(rest, &mut [EMPTY_HEADER; MAX_TRAILERS])? else {
                        break;
                    };
                    *self = Self::Bytes(0);
                    bytes
                }
                Self::UntilClose => rest.len(),
            };
        }
        Ok(skipped)
    }
}

fn skip_bytes(left: &mut u64, arrived: &[u8]) -> usize {
    let skipped = usize::try_from(*left).unwrap_or(usize::MAX).min(arrived.len());
    // Lossless: `usize` has at most 64 bits.
    *left -= skipped as u64;
    skipped
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Skips `text`, of which `step` bytes arrive at a time: returns how much was skipped, and whether the body ended.
    fn skip(framing: Framing, text: &str, step: usize) -> Result<(usize, bool), Malformed> {
        let (mut body, mut skipped, mut arrived) = (Body::new(framing), 0, 0);
        while arrived < text.len() && !body.is_over() {
            arrived = text.len().min(arrived + step);
            skipped += body.skip(&text.as_bytes()[skipped..arrived])?;
        }
        Ok((skipped, body.is_over()))
    }

    #[test]
    fn body_end_is_found_however_the_body_is_split() {
        // framing, bytes, length of the body, over
        let table = [
            (Framing::Length(0), "", 0, true),
            (Framing::Length(5), "hello", 5, true),
            (Framing::Length(5), "helloHTTP", 5, true),
            (Framing::Length(5), "hell", 4, false),
            (Framing::Chunked, "0\r\n\r\n", 5, true),
            (Framing::Chunked, "5\r\nhello\r\n0\r\n\r\nHTTP", 15, true),
            (Framing::Chunked, "A;name=value\r\n0123456789\r\n00\r\n\r\n", 32, true),
            (Framing::Chunked, "1\r\n\n\r\n0\r\nTrailer: x\r\nOther: y\r\n\r\n", 33, true),
            (Framing::Chunked, "5\r\nhello\r\n0\r\n", 13, false),
            (Framing::Chunked, "5\r\nhello\r\n0\r\nTrailer: x\r\n", 13, false),
            (Framing::UntilClose, "anything", 8, false),
        ];
        for (framing, text, skipped, over) in table {
            for step in [1, 2, 3, 7, 1_000] {
                assert_eq!(skip(framing, text, step), Ok((skipped, over)), "{text:?} by {step}");
            }
        }
    }

    #[test]
    fn chunks_with_invalid_size_are_rejected() {
        for text in
            ["\r\n", "x\r\n", "5x\r\n", "ffffffffffffffff\r\n", "10000000000000000\r\n", "1\r\nabc\r\n0\r\n\r\n"]
        {
            for step in [1, 1_000] {
                assert!(skip(Framing::Chunked, text, step).is_err(), "{text:?}");
            }
        }
    }
}
