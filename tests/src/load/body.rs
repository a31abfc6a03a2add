//! Skips the body of a response to find its end.

use super::head::Framing;
use super::malformed::Malformed;

/// What is left of a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// This many bytes.
    Bytes(u64),
    /// Chunks (RFC 9112, section 7.1).
    Chunks(Chunks),
    /// Everything until the connection closes.
    UntilClose,
}

/// The position in a chunked body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Chunks {
    /// In a size line: the size so far, and whether its digits are over.
    Size { bytes: Option<u64>, digits_over: bool },
    /// In a chunk: how much of it is left, including its line end.
    Data { left: u64 },
    /// In the trailer: whether the current line is empty so far.
    Trailer { line_empty: bool },
    /// At the end.
    Over,
}

const SIZE_LINE: Chunks = Chunks::Size { bytes: None, digits_over: false };
const LINE_END_BYTES: u64 = 2;

impl Body {
    pub(super) fn new(framing: Framing) -> Self {
        match framing {
            Framing::Length(bytes) => Self::Bytes(bytes),
            Framing::Chunked => Self::Chunks(SIZE_LINE),
            Framing::UntilClose => Self::UntilClose,
        }
    }

    /// Whether the body has ended.
    pub(super) fn is_over(&self) -> bool {
        matches!(self, Self::Bytes(0) | Self::Chunks(Chunks::Over))
    }

    /// Skips received bytes, and returns how many of them belong to the body.
    pub(super) fn skip(&mut self, arrived: &[u8]) -> Result<usize, Malformed> {
        match self {
            Self::Bytes(left) => Ok(skip_bytes(left, arrived)),
            Self::Chunks(chunks) => chunks.skip(arrived),
            Self::UntilClose => Ok(arrived.len()),
        }
    }
}

impl Chunks {
    fn skip(&mut self, arrived: &[u8]) -> Result<usize, Malformed> {
        let mut skipped = 0;
        while skipped < arrived.len() && *self != Self::Over {
            if let Self::Data { left } = self {
                skipped += skip_bytes(left, &arrived[skipped..]);
                if *left == 0 {
                    *self = SIZE_LINE;
                }
            } else {
                self.skip_line_byte(arrived[skipped])?;
                skipped += 1;
            }
        }
        Ok(skipped)
    }

    fn skip_line_byte(&mut self, byte: u8) -> Result<(), Malformed> {
        *self = match *self {
            Self::Size { bytes: None, .. } if !byte.is_ascii_hexdigit() => {
                return Err(Malformed("a chunk without a size"));
            }
            Self::Size { bytes: Some(0), .. } if byte == b'\n' => Self::Trailer { line_empty: true },
            Self::Size { bytes: Some(bytes), .. } if byte == b'\n' => {
                Self::Data { left: bytes.checked_add(LINE_END_BYTES).ok_or(Malformed("an endless chunk"))? }
            }
            Self::Size { bytes, digits_over: false } => match char::from(byte).to_digit(16) {
                Some(digit) => {
                    let shifted = bytes.unwrap_or(0).checked_mul(16).ok_or(Malformed("an endless chunk"))?;
                    Self::Size { bytes: Some(shifted + u64::from(digit)), digits_over: false }
                }
                None if matches!(byte, b'\r' | b';' | b' ' | b'\t') => Self::Size { bytes, digits_over: true },
                None => return Err(Malformed("not a chunk size")),
            },
            Self::Trailer { line_empty: true } if byte == b'\n' => Self::Over,
            Self::Trailer { .. } if byte == b'\n' => Self::Trailer { line_empty: true },
            Self::Trailer { line_empty } => Self::Trailer { line_empty: line_empty && byte == b'\r' },
            // The rest of a size line is extensions, which are ignored.
            Self::Size { digits_over: true, .. } => return Ok(()),
            Self::Data { .. } | Self::Over => unreachable!("only lines are read byte by byte"),
        };
        Ok(())
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

    /// Skips `text` in steps of `step` bytes: returns the body's length, and whether it ended.
    fn skip(framing: Framing, text: &str, step: usize) -> Result<(usize, bool), Malformed> {
        let (mut body, mut skipped) = (Body::new(framing), 0);
        while skipped < text.len() && !body.is_over() {
            let end = text.len().min(skipped + step);
            skipped += body.skip(&text.as_bytes()[skipped..end])?;
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
            (Framing::Chunked, "3\nabc\r\n0\n\n", 10, true),
            (Framing::Chunked, "5\r\nhello\r\n0\r\n", 13, false),
            (Framing::Chunked, "5\r\nhello\r\n0\r\nTrailer: x\r\n", 25, false),
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
