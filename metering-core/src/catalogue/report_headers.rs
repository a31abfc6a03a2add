//! Reads the cost that a response's headers or trailers report.

use crate::catalogue::amount::{Amount, Measures, reported_credits};
use crate::catalogue::report::{ReportError, Source};
use crate::catalogue::units::{Count, Counts};
use crate::catalogue::usage_price::UsagePrice;
use crate::money::credits::Credits;
use crate::money::decimal::DecimalError;

impl UsagePrice {
    /// The cost that headers or trailers report; `None` when they do not. `header` returns the value of a header by its
    /// name in lower case.
    ///
    /// ```
    /// use metering_core::Catalogue;
    ///
    /// let catalogue = Catalogue::from_json(
    ///     r#"{"market": "M", "version": 1, "endpoints": [{"path": "/chat", "method": "POST", "metered": true,
    ///         "price": {"max": "0.5", "report": {"header": "x-cost"}}}]}"#,
    /// )?;
    /// let price = catalogue.routes()[0].usage_price().ok_or("no price by usage")?;
    /// let cost = price.cost_from_headers(|name| (name == "x-cost").then_some(b"0.25"))?;
    /// assert_eq!(cost, Some("0.25".parse()?));
    /// assert_eq!(price.cost_from_headers(|_| None)?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ReportError::Unreadable`] when a value is not a number of zero or more.
    pub fn cost_from_headers<'h>(
        &self,
        header: impl Fn(&str) -> Option<&'h [u8]>,
    ) -> Result<Option<Credits>, ReportError> {
        let Source::Headers(measures) = &self.report().source else { return Ok(None) };
        let values = match measures {
            Measures::Credits(name) => {
                let Some(value) = header(name) else { return Ok(None) };
                return parse_header(name, value, reported_credits).map(|cost| Some(self.cost_of_credits(cost)));
            }
            Measures::Counts(names) => names,
        };
        let counts = counts(values, header)?;
        Ok((!counts.is_empty()).then(|| self.cost_of_known(&counts)))
    }
}

/// The counts of units in headers or trailers.
pub(super) fn counts<'h>(
    names: &[(Box<str>, Amount<Box<str>>)],
    header: impl Fn(&str) -> Option<&'h [u8]>,
) -> Result<Counts, ReportError> {
    #[expect(clippy::borrowed_box, reason = "the places of this report are boxed names")]
    let mut read =
        |name: &Box<str>| header(name).map(|value| parse_header(name, value, str::parse::<Count>)).transpose();
    let mut counts = Vec::new();
    for (unit, amount) in names {
        counts.extend(amount.count(&mut read)?.map(|count| (&**unit, count)));
    }
    Ok(Counts::from_iter(counts))
}

fn parse_header<T>(
    name: &str,
    value: &[u8],
    parse: impl FnOnce(&str) -> Result<T, DecimalError>,
) -> Result<T, ReportError> {
    let text = String::from_utf8_lossy(value);
    let text = text.trim_matches([' ', '\t']);
    parse(text).map_err(|problem| ReportError::unreadable(name, text, problem))
}

#[cfg(test)]
mod tests;
