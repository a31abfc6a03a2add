//! Parses parameters in query strings.

use std::borrow::Cow;
use std::fmt::Display;
use std::str::FromStr;

use metering_core::Error;

/// The value of `name` in the query, if present. Other parameters are ignored.
///
/// # Errors
/// When it is given twice or cannot be parsed.
pub(crate) fn optional<T>(query: &str, name: &str) -> Result<Option<T>, Error>
where
    T: FromStr,
    T::Err: Display,
{
    once(query, name)?.map(|value| value.parse().map_err(|problem| Error::field(name, problem))).transpose()
}

/// The value of `name` in the query.
///
/// # Errors
/// When it is missing or given twice.
pub(crate) fn required<'q>(query: &'q str, name: &str) -> Result<Cow<'q, str>, Error> {
    once(query, name)?.ok_or_else(|| Error::field(name, "is required"))
}

fn once<'q>(query: &'q str, name: &str) -> Result<Option<Cow<'q, str>>, Error> {
    let mut values = form_urlencoded::parse(query.as_bytes()).filter(|(key, _)| key == name).map(|(_, value)| value);
    match (values.next(), values.next()) {
        (value, None) => Ok(value),
        (_, Some(_)) => Err(Error::field(name, "must be given once")),
    }
}

/// The number of a ledger entry, to continue from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EntryNumber(pub(crate) i64);

impl FromStr for EntryNumber {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|_| digits).map(Self).ok_or("must be a whole number")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optional_values_are_parsed_or_reported() {
        let entry = |query| optional::<EntryNumber>(query, "after").map(|found| found.map(|number| number.0));
        assert_eq!(entry("").ok(), Some(None));
        assert_eq!(entry("after=9223372036854775807").ok(), Some(Some(i64::MAX)));
        for query in ["after=", "after=x", "after=-1", "after=+1", "after=9223372036854775808", "after=1&after=2"] {
            assert!(entry(query).is_err(), "{query}");
        }
        assert_eq!(required("number=R-1%2D2", "number").ok().as_deref(), Some("R-1-2"));
        assert!(required("", "number").is_err());
    }
}
