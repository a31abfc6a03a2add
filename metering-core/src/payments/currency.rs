//! Currencies of ISO 4217, in which receipts can say what a payment was worth.

use std::fmt;
use std::str::FromStr;

/// The active codes (ISO 4217). Funds, metals and test codes are left out.
const CODES: &str = "\
    AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CLP CNY COP \
    CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR \
    IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU \
    MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG \
    SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VED VES VND VUV \
    WST XAF XCD XCG XOF XPF YER ZAR ZMW ZWG";
/// Those whose amounts are whole numbers, and those with three decimals. All others have two.
const WHOLE: &str = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF";
const THREE_DECIMALS: &str = "BHD IQD JOD KWD LYD OMR TND";

/// The code of a currency (ISO 4217).
///
/// ```
/// use metering_core::payments::CurrencyCode;
///
/// let digits = |code: &str| code.parse::<CurrencyCode>().unwrap().minor_digits();
/// assert_eq!(["EUR", "JPY", "KWD", "EUX"].map(digits), [Some(2), Some(0), Some(3), None]);
/// assert!("eur".parse::<CurrencyCode>().is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CurrencyCode([u8; 3]);

/// The text is not the code of a currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be the code of a currency (ISO 4217) such as EUR")]
pub struct CurrencyCodeError;

impl CurrencyCode {
    /// How many decimals an amount of the currency has; `None` for a code that is not in use. Such codes can still be
    /// read, because currencies end and receipts stay.
    #[must_use]
    pub fn minor_digits(self) -> Option<u32> {
        let is_in = |list: &str| list.split_whitespace().any(|code| code.as_bytes() == self.0);
        if is_in(WHOLE) {
            return Some(0);
        }
        if is_in(THREE_DECIMALS) { Some(3) } else { is_in(CODES).then_some(2) }
    }
}

impl FromStr for CurrencyCode {
    type Err = CurrencyCodeError;

    fn from_str(text: &str) -> Result<Self, CurrencyCodeError> {
        let letters: [u8; 3] = text.as_bytes().try_into().map_err(|_| CurrencyCodeError)?;
        if letters.iter().all(u8::is_ascii_uppercase) { Ok(Self(letters)) } else { Err(CurrencyCodeError) }
    }
}

impl fmt::Display for CurrencyCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.0).unwrap_or_default())
    }
}

impl fmt::Debug for CurrencyCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_of_codes_in_use() {
        let codes: Vec<&str> = CODES.split_whitespace().collect();
        assert!(codes.is_sorted() && codes.len() == 155, "{}", codes.len());
        for code in WHOLE.split_whitespace().chain(THREE_DECIMALS.split_whitespace()) {
            assert!(codes.contains(&code), "{code}");
        }
        for code in codes {
            assert_eq!(code.parse::<CurrencyCode>().unwrap().to_string(), code);
        }
        for wrong in ["", "EU", "EURO", "eur", "€", "E R"] {
            assert_eq!(wrong.parse::<CurrencyCode>(), Err(CurrencyCodeError), "{wrong}");
        }
    }
}
