//! The buyer of credits, as receipts name it: details that the owner of an account gives, for their bookkeeping.
//!
//! A receipt has the details of the time of its purchase, and keeps them when they change. So they are stored with the time
//! for which they hold, and receipts look theirs up.

use crate::access::account::AccountId;
use crate::access::invisible::is_invisible;
use crate::clock::Timestamp;

/// Who buys.
///
/// ```
/// use metering_core::payments::Buyer;
///
/// let buyer = Buyer::new(" Acme GmbH ", &["Weg 1", "", "10115 Berlin"], Some("DE 123456789")).expect("all are fine");
/// assert_eq!((buyer.name(), buyer.tax_id()), ("Acme GmbH", Some("DE 123456789")));
/// assert_eq!(buyer.address(), ["Weg 1", "10115 Berlin"]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buyer {
    name: String,
    address: Vec<String>,
    tax_id: Option<String>,
}

/// A problem in the details of a buyer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BuyerError {
    /// The name.
    #[error("must be 1 to {} visible characters", Buyer::MAX_NAME)]
    Name,
    /// The address.
    #[error("must have at most {} lines of {} visible characters", Buyer::MAX_LINES, Buyer::MAX_LINE)]
    Address,
    /// The tax number.
    #[error("must be at most {} visible characters", Buyer::MAX_TAX_ID)]
    TaxId,
}

impl Buyer {
    /// The most characters of a name, of an address's line and of a tax number, and the most lines of an address.
    const MAX_NAME: usize = 120;
    const MAX_LINE: usize = 80;
    const MAX_LINES: usize = 6;
    const MAX_TAX_ID: usize = 40;

    /// The details, without spaces around them and without empty lines.
    ///
    /// # Errors
    /// Everything that is wrong.
    pub fn new<T: AsRef<str>>(name: &str, address: &[T], tax_id: Option<&str>) -> Result<Self, Vec<BuyerError>> {
        let mut wrong = Vec::new();
        let name = name.trim();
        if name.is_empty() || !is_clean(name, Self::MAX_NAME) {
            wrong.push(BuyerError::Name);
        }
        let lines = address.iter().map(|line| line.as_ref().trim()).filter(|line| !line.is_empty());
        let address: Vec<String> = lines.map(str::to_owned).collect();
        if address.len() > Self::MAX_LINES || !address.iter().all(|line| is_clean(line, Self::MAX_LINE)) {
            wrong.push(BuyerError::Address);
        }
        let tax_id = tax_id.map(str::trim).filter(|text| !text.is_empty());
        if tax_id.is_some_and(|text| !is_clean(text, Self::MAX_TAX_ID)) {
            wrong.push(BuyerError::TaxId);
        }
        let buyer = Self { name: name.to_owned(), address, tax_id: tax_id.map(str::to_owned) };
        if wrong.is_empty() { Ok(buyer) } else { Err(wrong) }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The postal address, line by line; may be empty.
    #[must_use]
    pub fn address(&self) -> &[String] {
        &self.address
    }

    /// The tax number, such as a VAT number.
    #[must_use]
    pub fn tax_id(&self) -> Option<&str> {
        self.tax_id.as_deref()
    }
}

fn is_clean(text: &str, most: usize) -> bool {
    text.chars().count() <= most && !text.chars().any(|c| c.is_control() || is_invisible(c))
}

/// The details of an account's buyer, for some time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuyerRecord {
    /// The account.
    pub account: AccountId,
    /// Purchases from then on have them.
    pub since: Timestamp,
    /// Purchases from then on no longer have them; `None` for those that hold now.
    pub until: Option<Timestamp>,
    /// The details.
    pub buyer: Buyer,
}

impl BuyerRecord {
    /// Whether a purchase at this time has them.
    #[must_use]
    pub fn covers(&self, at: Timestamp) -> bool {
        self.since <= at && self.until.is_none_or(|until| at < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_are_short_and_visible() {
        use BuyerError::{Address, Name, TaxId};
        let long = "x".repeat(121);
        let lines = ["1", "2", "3", "4", "5", "6", "7"];
        // name, address, tax number, problem
        type Row<'a> = (&'a str, &'a [&'a str], Option<&'a str>, &'a [BuyerError]);
        let table: [Row<'_>; 9] = [
            ("Jörg & Söhne", &["Straße 1", "Αθήνα"], Some("EL 123"), &[]),
            ("a", &[], None, &[]),
            ("a", &lines[..6], Some(" "), &[]),
            ("", &[], None, &[Name]),
            (&long, &[], None, &[Name]),
            ("a\u{202E}b", &[], None, &[Name]),
            ("a", &lines, None, &[Address]),
            ("a", &["b\nc"], None, &[Address]),
            ("", &[&long], Some(&long), &[Name, Address, TaxId]),
        ];
        for (name, address, tax_id, wrong) in table {
            assert_eq!(Buyer::new(name, address, tax_id).err().unwrap_or_default(), wrong, "{name} {address:?}");
        }
        assert_eq!(Buyer::new("a", &[" ", "b "], Some(" ")).unwrap(), Buyer::new("a", &["b"], None).unwrap());
    }

    #[test]
    fn a_record_covers_its_time() {
        let at = Timestamp::from_unix_millis;
        let buyer = Buyer::new::<&str>("a", &[], None).unwrap();
        let account = "org_xxxxxxxxxxxxxxxxxxxx".parse().unwrap();
        let record = BuyerRecord { account, since: at(10), until: Some(at(20)), buyer };
        assert_eq!([9, 10, 19, 20].map(|millis| record.covers(at(millis))), [false, true, true, false]);
        assert!(BuyerRecord { until: None, ..record }.covers(at(i64::MAX)));
    }
}
