//! Formats header values without allocating a string.

use std::fmt::{self, Display, Write};

use http::HeaderValue;
use http::header::InvalidHeaderValue;

/// Enough for everything that the layer displays. Longer text is formatted as a string first.
const ROOM: usize = 128;

/// Text on the stack.
struct Text {
    bytes: [u8; ROOM],
    length: usize,
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

/// The value of a header, as `value` is displayed.
///
/// # Errors
/// If the text has a character that is not allowed in a header.
pub(super) fn header_value(value: &dyn Display) -> Result<HeaderValue, InvalidHeaderValue> {
    let mut text = Text { bytes: [0; ROOM], length: 0 };
    match write!(text, "{value}") {
        Ok(()) => HeaderValue::from_bytes(&text.bytes[..text.length]),
        Err(fmt::Error) => HeaderValue::try_from(value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_the_strings() {
        for text in ["", "req_17", "x".repeat(ROOM).as_str(), "x".repeat(ROOM + 1).as_str()] {
            assert_eq!(header_value(&text).unwrap(), text);
        }
        assert!(header_value(&"a\nb").is_err());
    }
}
