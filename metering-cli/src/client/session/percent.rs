//! Percent-encodes values for a request's target, so that nothing in them is read as syntax.

/// Appends `text`, with all but the unreserved characters of RFC 3986, section 2.3, encoded.
pub(crate) fn push_encoded(text: &str, target: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            target.push(char::from(byte));
        } else {
            target.push_str(&format!("%{byte:02X}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unreserved_characters_stay() {
        let mut target = String::new();
        push_encoded("aZ09-._~ /?#&=+%é", &mut target);
        assert_eq!(target, "aZ09-._~%20%2F%3F%23%26%3D%2B%25%C3%A9");
    }
}
