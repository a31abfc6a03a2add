//! The stored decisions about a receipt or a credit note when it is issued: its terms and its consecutive number.

use std::fmt;
use std::str::FromStr;

use crate::access::account::AccountId;
use crate::chains::transaction::TxRef;
use crate::clock::Timestamp;

/// The placeholder of the year in a prefix.
const YEAR: &str = "{year}";
const MAX_PREFIX: usize = 20;
/// Numbers have at least as many digits.
const DIGITS: usize = 5;

/// A receipt, or a credit note, as it was issued: in the transaction that recorded its payment or reversal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuedReceipt {
    /// The account that paid.
    pub account: AccountId,
    /// The payment.
    pub tx: TxRef,
    /// The number of the credit note within the payment
    /// ([`CreditNoteNumber::part`](crate::payments::CreditNoteNumber::part)); 0 for the receipt.
    pub part: u32,
    /// The number of the terms that held.
    pub terms: u32,
    /// Whether the buyer owes the tax.
    pub reverse_charge: bool,
    /// Its consecutive number, if the terms have any.
    pub number: Option<ConsecutiveNumber>,
}

/// The prefix of consecutive numbers. If it has `{year}`, they begin again with each year (UTC).
///
/// ```
/// use metering_core::payments::NumberPrefix;
///
/// let prefix: NumberPrefix = "INV-{year}-".parse()?;
/// assert_eq!(prefix.series("2026-11-28T12:00:00Z".parse().expect("a time")), "INV-2026-");
/// assert!("INV".parse::<NumberPrefix>().is_ok());
/// assert!("2026".parse::<NumberPrefix>().is_err());
/// # Ok::<(), metering_core::payments::NumberPrefixError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberPrefix(String);

/// The text cannot be the prefix of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be 1 to {} characters of A-Z a-z 0-9 . _ -, in which {} may stand for the year; must not end with a digit or the \
     year, and not begin with R- or C-",
    MAX_PREFIX,
    YEAR
)]
pub struct NumberPrefixError;

/// A consecutive number: a series has no gaps.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ConsecutiveNumber {
    /// The prefix, with its year.
    pub series: String,
    /// The place in the series; the first is 1.
    pub sequence: u32,
}

/// The text is not a consecutive number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be the number of a receipt or a credit note")]
pub struct ConsecutiveNumberError;

impl NumberPrefix {
    /// The series that a number of this moment is in.
    #[must_use]
    pub fn series(&self, at: Timestamp) -> String {
        let text = at.to_string();
        self.0.replace(YEAR, text.split('-').next().unwrap_or_default())
    }
}

impl FromStr for NumberPrefix {
    type Err = NumberPrefixError;

    fn from_str(text: &str) -> Result<Self, NumberPrefixError> {
        let rest = text.replacen(YEAR, "0", 1);
        let names_payment = ["R-", "C-"].iter().any(|other| rest.to_ascii_uppercase().starts_with(other));
        let is_prefix = text.len() <= MAX_PREFIX && is_series(&rest) && !names_payment;
        if is_prefix { Ok(Self(text.to_owned())) } else { Err(NumberPrefixError) }
    }
}

impl fmt::Display for NumberPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for ConsecutiveNumber {
    type Err = ConsecutiveNumberError;

    fn from_str(text: &str) -> Result<Self, ConsecutiveNumberError> {
        let series = text.trim_end_matches(|last: char| last.is_ascii_digit());
        let sequence = text[series.len()..].parse().map_err(|_| ConsecutiveNumberError)?;
        let number = Self { series: series.to_owned(), sequence };
        // One spelling per number: no more zeros than needed.
        if is_series(series) && number.to_string() == text { Ok(number) } else { Err(ConsecutiveNumberError) }
    }
}

impl fmt::Display for ConsecutiveNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:0DIGITS$}", self.series, self.sequence)
    }
}

/// Whether a text without a placeholder can be a series. It does not end with a digit, or two numbers could look the
/// same.
fn is_series(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    text.bytes().all(plain) && text.bytes().last().is_some_and(|last| !last.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_keep_numbers_apart() {
        for prefix in ["INV-", "{year}-", "A{year}_", "re.", "2026-"] {
            assert_eq!(prefix.parse::<NumberPrefix>().unwrap().to_string(), prefix);
        }
        let long = "x".repeat(21);
        for wrong in ["", "INV-{year}", "INV1", "R-1-", "c-", "a b", "a/", "{year}-{year}-", "{month}-", &long] {
            assert!(wrong.parse::<NumberPrefix>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn numbers_have_one_spelling() {
        let number = |series: &str, sequence| ConsecutiveNumber { series: series.to_owned(), sequence };
        assert_eq!(number("INV-2026-", 7).to_string(), "INV-2026-00007");
        assert_eq!("INV-2026-00007".parse(), Ok(number("INV-2026-", 7)));
        assert_eq!("INV-123456".parse(), Ok(number("INV-", 123_456)));
        for wrong in
            ["INV-7", "INV-0000007", "INV-", "00007", "", "INV 00007", "INV-4294967296", "R-1-ABABABABABABABAG"]
        {
            assert!(wrong.parse::<ConsecutiveNumber>().is_err(), "{wrong}");
        }
    }
}
