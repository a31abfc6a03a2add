//! Parses numbers in query strings.

use metering_core::Error;

/// The value of `name` in the query, or `default`. Other parameters are ignored.
///
/// # Errors
/// When it is given twice or is not a whole number.
pub(super) fn number(query: &str, name: &str, default: u32) -> Result<u32, Error> {
    let mut values = form_urlencoded::parse(query.as_bytes()).filter(|(key, _)| key == name).map(|(_, value)| value);
    match (values.next(), values.next()) {
        (None, _) => Ok(default),
        (Some(value), None) if value.bytes().all(|b| b.is_ascii_digit()) => {
            value.parse().map_err(|_| Error::field(name, "must be a whole number"))
        }
        (Some(_), None) => Err(Error::field(name, "must be a whole number")),
        (Some(_), Some(_)) => Err(Error::field(name, "must be given once")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_or_reported_as_invalid() {
        let table = [
            ("", Some(7)),
            ("days=30", Some(30)),
            ("other=x&days=30", Some(30)),
            ("days=%33", Some(3)),
            ("days=", None),
            ("days=abc", None),
            ("days=-1", None),
            ("days=+1", None),
            ("days=1.5", None),
            ("days=99999999999", None),
            ("days=1&days=2", None),
        ];
        for (query, expected) in table {
            assert_eq!(number(query, "days", 7).ok(), expected, "{query}");
        }
    }
}
