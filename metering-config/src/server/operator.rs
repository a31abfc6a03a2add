//! Who operates the service: the seller named on receipts.

use metering_core::service::Seller;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::server::{BrandConfig, BrandText};

/// Who operates the service: the seller named on receipts.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OperatorConfig {
    /// The name of the person or company; by default `brand.name`.
    pub name: Option<BrandText<120>>,
    /// The postal address: up to eight lines, separated by line breaks.
    pub address: PostalAddress,
    /// The tax number, such as a VAT number.
    pub tax_id: Option<BrandText<60>>,
    /// An email address or URL for questions about a receipt.
    pub contact: Option<BrandText<120>>,
}

impl OperatorConfig {
    /// The seller on receipts.
    pub fn seller(&self, brand: &BrandConfig) -> Seller {
        Seller {
            name: self.name.as_ref().map_or(brand.name.as_str(), BrandText::as_str).to_owned(),
            address: self.address.0.clone(),
            tax_id: self.tax_id.as_ref().map(|text| text.as_str().to_owned()),
            contact: self.contact.as_ref().map(|text| text.as_str().to_owned()),
        }
    }
}

/// The lines of a postal address. May be empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PostalAddress(Vec<String>);

const MAX_LINES: usize = 8;
const MAX_LINE: usize = 120;

impl<'de> Deserialize<'de> for PostalAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect();
        let printable = |line: &String| line.chars().count() <= MAX_LINE && !line.chars().any(char::is_control);
        if lines.len() > MAX_LINES || !lines.iter().all(printable) {
            return Err(Error::custom(format_args!("must have at most {MAX_LINES} lines of {MAX_LINE} characters")));
        }
        Ok(Self(lines))
    }
}

impl Serialize for PostalAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<OperatorConfig, toml::de::Error> {
        toml::from_str(text)
    }

    #[test]
    fn address_is_read_line_by_line() {
        let text = "name = 'Acme Data Ltd'\naddress = '''\nHigh Street 1\n\n  London  \n'''\ntax_id = 'GB 123'";
        let seller = read(text).unwrap().seller(&BrandConfig::default());
        assert_eq!(seller.name, "Acme Data Ltd");
        assert_eq!(seller.address, ["High Street 1", "London"]);
        assert_eq!((seller.tax_id.as_deref(), seller.contact), (Some("GB 123"), None));
    }

    #[test]
    fn brand_sells_by_default() {
        let seller = read("").unwrap().seller(&BrandConfig::default());
        assert_eq!((seller.name.as_str(), seller.address.len()), ("Metering", 0));
    }

    #[test]
    fn invalid_values_are_rejected() {
        let (long, many) = (format!("address = '{}'", "x".repeat(121)), format!("address = '''{}'''", "x\n".repeat(9)));
        for text in ["name = ''", "name = \"two\\nlines\"", "street = 'x'", "address = \"a\\u0007b\"", &long, &many] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
