//! Where a response says what it cost: in a header, in its body, or by its length.

use crate::catalogue::pointer::Pointer;
use crate::catalogue::units::{Count, number_text};
use crate::money::credits::Credits;
use crate::money::decimal::DecimalError;
use serde_json::value::RawValue;

/// Longer values are cut in errors: they come from a response.
const EXCERPT_CHARS: usize = 64;

/// Where the response of a route priced by usage says what it cost.
///
/// ```
/// use metering_core::Catalogue;
///
/// let catalogue = Catalogue::from_json(
///     r#"{"market": "M", "version": 1, "endpoints": [{"path": "/chat", "method": "POST", "metered": true,
///         "price": {"max": "0.5", "report": {"header": "X-Cost"}}}]}"#,
/// )?;
/// let report = catalogue.routes()[0].usage_price().ok_or("no price by usage")?.report();
/// assert_eq!(report.header_names().collect::<Vec<_>>(), ["x-cost"]);
/// assert!(!report.needs_body());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    pub(super) source: Source,
}

/// The kinds of reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    /// Headers or trailers, by lower-case name.
    Headers(Measures<Box<str>>),
    /// Values in a JSON body, or in the JSON of events or lines.
    Json(Measures<Pointer>),
    /// The length of the body in bytes is the count of this unit.
    Bytes(Box<str>),
    /// A kind that this version cannot read. Only in catalogues published by other servers.
    Unknown,
}

/// What a report has: credits, or counts of units.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Measures<T> {
    /// Credits, here.
    Credits(T),
    /// Each unit, and where its count is. A unit that can be in several places is there several times; the first place
    /// that has a count decides.
    Counts(Vec<(Box<str>, T)>),
}

/// Why a response's report of its cost cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The body is not JSON.
    #[error("the response does not report its cost: its body is not valid JSON")]
    NotJson,
    /// A value is not a number of zero or more.
    #[error("the response does not report its cost: {location} is {value}: {problem}")]
    Unreadable {
        /// The header or the JSON pointer.
        location: String,
        /// The value, cut after 64 characters.
        value: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A name on the way to a value is in its object more than once.
    #[error("the response does not report its cost: a name in {location} appears more than once in its object")]
    Ambiguous {
        /// The JSON pointer.
        location: String,
    },
    /// The body, or the events that may have the report, are too large to read.
    #[error("the response does not report its cost within {bytes_max} bytes")]
    TooLarge {
        /// The most bytes that are read.
        bytes_max: usize,
    },
}

impl ReportError {
    /// An error about a value at `location`.
    pub(super) fn unreadable(location: &str, value: &str, problem: DecimalError) -> Self {
        let mut excerpt: String = value.chars().take(EXCERPT_CHARS).collect();
        excerpt = excerpt.escape_debug().to_string().chars().take(EXCERPT_CHARS).collect();
        let problem = match problem {
            DecimalError::Malformed => "not a number of zero or more",
            _ => "negative, too large or too long",
        };
        Self::Unreadable { location: location.to_owned(), value: excerpt, problem }
    }
}

impl Report {
    /// Whether it is in the response's body. The body must then not be encoded: request it with
    /// `Accept-Encoding: identity`, or decode it for the [`ReportReader`](crate::catalogue::ReportReader).
    #[must_use]
    pub const fn needs_body(&self) -> bool {
        matches!(self.source, Source::Json(_) | Source::Bytes(_))
    }

    /// The response headers that it is in, in lower case; none when it is in the body. Trailers have the same names.
    pub fn header_names(&self) -> impl Iterator<Item = &str> {
        let (one, several) = match &self.source {
            Source::Headers(Measures::Credits(name)) => (Some(&**name), &[][..]),
            Source::Headers(Measures::Counts(names)) => (None, names.as_slice()),
            Source::Json(_) | Source::Bytes(_) | Source::Unknown => (None, &[][..]),
        };
        one.into_iter().chain(several.iter().map(|(_, name)| &**name))
    }

    /// Whether it has credits rather than counts of units.
    #[must_use]
    pub const fn is_in_credits(&self) -> bool {
        matches!(self.source, Source::Headers(Measures::Credits(_)) | Source::Json(Measures::Credits(_)))
    }
}

/// The credits that a JSON value reports.
pub(super) fn read_credits(pointer: &Pointer, value: &RawValue) -> Result<Credits, ReportError> {
    let credits = number_text(value).and_then(|text| Credits::parse_rounding_up(&text));
    credits.map_err(|problem| ReportError::unreadable(pointer.as_str(), value.get(), problem))
}

/// The count that a JSON value reports.
pub(super) fn read_count(pointer: &Pointer, value: &RawValue) -> Result<Count, ReportError> {
    Count::from_json(value).map_err(|problem| ReportError::unreadable(pointer.as_str(), value.get(), problem))
}
