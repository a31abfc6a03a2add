//! The terms of receipts: who sells, which tax prices include, and how receipts are numbered. The store keeps them with
//! their start time, so a receipt keeps its payment's terms when the configuration changes.

use crate::clock::Timestamp;
use crate::payments::buyer::Buyer;
use crate::payments::issued_receipt::NumberPrefix;
use crate::payments::seller::Seller;
use crate::payments::tax::SalesTax;

/// The terms of receipts for payments that are credited now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReceiptTerms {
    /// Who sells.
    pub seller: Seller,
    /// The tax that prices include, if receipts show one.
    pub tax: Option<SalesTax>,
    /// The prefix of consecutive numbers; `None` for numbers that are derived from the payment.
    pub numbering: Option<NumberPrefix>,
}

/// Terms, as a store has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiptTermsRecord {
    /// 1 for the first ones of the store.
    pub number: u32,
    /// When they were set.
    pub since: Timestamp,
    /// The terms.
    pub terms: ReceiptTerms,
}

impl ReceiptTerms {
    /// Whether they have more than the name of a seller.
    #[must_use]
    pub const fn are_special(&self) -> bool {
        self.tax.is_some() || self.numbering.is_some()
    }

    /// Whether a buyer owes the tax, and the receipt has none: their tax number begins with the code of a country other
    /// than the seller's. The number is not verified.
    #[must_use]
    pub fn is_reverse_charge(&self, buyer: Option<&Buyer>) -> bool {
        let allowed = self.tax.as_ref().is_some_and(|tax| tax.reverse_charge);
        let theirs = buyer.and_then(Buyer::tax_id).and_then(country);
        allowed && theirs.is_some_and(|theirs| self.seller.tax_id.as_deref().and_then(country) != Some(theirs))
    }
}

/// The two letters that VAT numbers begin with. Words, such as `none`, have no digits.
fn country(tax_id: &str) -> Option<[u8; 2]> {
    let (letters, rest) = tax_id.as_bytes().split_first_chunk::<2>()?;
    let is_number = letters.iter().all(u8::is_ascii_alphabetic) && rest.iter().any(u8::is_ascii_digit);
    let country = is_number.then(|| letters.map(|letter| letter.to_ascii_uppercase()))?;
    // Greek numbers begin with EL; some people write the country's code.
    Some(if country == *b"GR" { *b"EL" } else { country })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_buyers_with_a_number_of_another_country_owe_the_tax() {
        // seller's number, whether it is allowed, buyer's number, whether they owe it
        let table = [
            (Some("DE 1"), true, Some("FR 2"), true),
            (Some("DE 1"), true, Some("de2"), false),
            (Some("DE 1"), true, Some("12345"), false),
            (Some("DE 1"), true, Some("none"), false),
            (Some("GR 1"), true, Some("EL 2"), false),
            (Some("DE 1"), true, None, false),
            (Some("DE 1"), false, Some("FR 2"), false),
            (Some("12/345"), true, Some("FR 2"), true),
            (None, true, Some("FR 2"), true),
        ];
        for (seller, reverse_charge, buyer, owes) in table {
            let tax = SalesTax { name: "VAT".to_owned(), rate: "0.19".parse().unwrap(), reverse_charge };
            let seller = Seller { tax_id: seller.map(str::to_owned), ..Seller::default() };
            let terms = ReceiptTerms { seller, tax: Some(tax), numbering: None };
            let named = Buyer::new::<&str>("Acme", &[], buyer).unwrap();
            assert_eq!(terms.is_reverse_charge(Some(&named)), owes, "{terms:?} {buyer:?}");
            assert!(!terms.is_reverse_charge(None));
        }
    }
}
