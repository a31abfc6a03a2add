//! Where a response reports its cost: in a header, in its body, or by its length.

use std::sync::Arc;

use crate::catalogue::amount::Measures;
use crate::catalogue::json_report::JsonReport;
use crate::catalogue::json_scanner::DEPTH_MAX;
use crate::money::decimal::DecimalError;

/// Longer values are cut in errors: they come from a response.
const EXCERPT_CHARS: usize = 64;

/// Where the response of a route priced by usage reports its cost.
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
    Json(Arc<JsonReport>),
    /// The length of the body in bytes is the count of this unit.
    Bytes(Box<str>),
    /// A kind that this version cannot read. Only in catalogues published by other servers.
    Unknown,
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
        /// The problem with it.
        problem: &'static str,
    },
    /// A value is a larger number than can be charged, or a longer one than is read. The whole hold is captured: it is
    /// the most that the request could cost.
    #[error("the response reports a cost that is too large: {location} is {value}")]
    TooLarge {
        /// The header or the JSON pointer.
        location: String,
        /// The value, cut after 64 characters.
        value: String,
    },
    /// A name on the way to a value is in its object more than once.
    #[error("the response does not report its cost: a name in {location} appears more than once in its object")]
    Ambiguous {
        /// The JSON pointer.
        location: String,
    },
    /// The JSON is nested too deep.
    #[error("the response does not report its cost: its JSON is deeper than {DEPTH_MAX} levels")]
    TooDeep,
}

impl ReportError {
    /// An error about a value at `location`.
    pub(super) fn unreadable(location: &str, value: &str, problem: DecimalError) -> Self {
        let mut excerpt: String = value.chars().take(EXCERPT_CHARS).collect();
        excerpt = excerpt.escape_debug().to_string().chars().take(EXCERPT_CHARS).collect();
        let location = location.to_owned();
        match problem {
            DecimalError::Malformed => {
                Self::Unreadable { location, value: excerpt, problem: "not a number of zero or more" }
            }
            _ if value.starts_with('-') => Self::Unreadable { location, value: excerpt, problem: "negative" },
            _ => Self::TooLarge { location, value: excerpt },
        }
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
        let names = match &self.source {
            Source::Headers(Measures::Credits(name)) => vec![&**name],
            Source::Headers(Measures::Counts(units)) => {
                units.iter().flat_map(|(_, amount)| amount.places()).map(|name| &**name).collect()
            }
            Source::Json(_) | Source::Bytes(_) | Source::Unknown => Vec::new(),
        };
        names.into_iter()
    }

    /// Whether it has credits rather than counts of units.
    #[must_use]
    pub fn is_in_credits(&self) -> bool {
        match &self.source {
            Source::Headers(measures) => measures.is_in_credits(),
            Source::Json(report) => report.measures.is_in_credits(),
            Source::Bytes(_) | Source::Unknown => false,
        }
    }
}
