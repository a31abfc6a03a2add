//! Currencies (ISO 4217), and the decimals of their amounts. Processors take payments in them, and receipts express a
//! payment's value in one.

use std::fmt;
use std::str::FromStr;

use crate::chains::address::Address;

/// The codes in use, by the decimals of their amounts. A discontinued currency is kept: records of payments name it.
/// Metals, test codes and most funds are left out.
const CODES: [(u8, &str); 4] = [
    (
        2,
        "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CNY COP CRC CUP \
         CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD KES \
         KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK \
         NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB \
         TJS TMT TOP TRY TTD TWD TZS UAH USD UYU UZS VED VES WST XCD XCG YER ZAR ZMW ZWG",
    ),
    (0, "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF"),
    (3, "BHD IQD JOD KWD LYD OMR TND"),
    (4, "CLF UYW"),
];

/// A currency.
///
/// ```
/// use metering_core::money::Currency;
///
/// let euro: Currency = "eur".parse()?;
/// assert_eq!((euro.code(), euro.decimals()), ("EUR", 2));
/// assert_eq!(Currency::of_token(&euro.token()), Some(euro));
/// assert!("EURO".parse::<Currency>().is_err());
/// # Ok::<(), metering_core::money::CurrencyError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Currency {
    code: &'static str,
    decimals: u8,
}

/// The text is not the code of a currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be the code of a currency (ISO 4217), such as EUR")]
pub struct CurrencyError;

impl Currency {
    /// Its code, in upper case.
    #[must_use]
    pub const fn code(self) -> &'static str {
        self.code
    }

    /// The decimals of its amounts: 2 for EUR, whose smallest unit is the cent.
    #[must_use]
    pub const fn decimals(self) -> u8 {
        self.decimals
    }

    /// A payment's record has this in place of a token's contract: the code, in ASCII, after zeros. No contract has
    /// such an address.
    #[must_use]
    pub fn token(self) -> Address {
        let mut bytes = [0; 20];
        bytes[17..].copy_from_slice(self.code.as_bytes());
        Address::from_bytes(bytes)
    }

    /// The currency that [`Currency::token`] represents.
    #[must_use]
    pub fn of_token(token: &Address) -> Option<Self> {
        let (zeros, code) = token.as_bytes().split_at(17);
        let code = std::str::from_utf8(code).ok().filter(|_| zeros.iter().all(|byte| *byte == 0))?;
        code.parse().ok()
    }
}

impl FromStr for Currency {
    type Err = CurrencyError;

    /// Reads a code in either case.
    fn from_str(text: &str) -> Result<Self, CurrencyError> {
        let code = text.to_ascii_uppercase();
        let by_decimals = CODES.into_iter().find_map(|(decimals, codes)| {
            let code = codes.split_ascii_whitespace().find(|known| *known == code)?;
            Some(Self { code, decimals })
        });
        by_decimals.ok_or(CurrencyError)
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_code_is_a_currency_once() {
        let codes: Vec<&str> = CODES.iter().flat_map(|(_, codes)| codes.split_ascii_whitespace()).collect();
        assert_eq!(codes.iter().collect::<HashSet<_>>().len(), codes.len());
        for code in codes {
            let currency: Currency = code.to_lowercase().parse().unwrap();
            assert_eq!((currency.code(), Currency::of_token(&currency.token())), (code, Some(currency)));
        }
    }

    #[test]
    fn amounts_have_the_decimals_of_their_currency() {
        for (code, decimals) in [("USD", 2), ("JPY", 0), ("KWD", 3), ("CLF", 4)] {
            assert_eq!(code.parse::<Currency>().unwrap().decimals(), decimals, "{code}");
        }
        for text in ["", "EU", "EUR ", "XXX", "ETH"] {
            assert_eq!(text.parse::<Currency>(), Err(CurrencyError), "{text:?}");
        }
        assert_eq!(Currency::of_token(&Address::ZERO), None);
        assert_eq!(Currency::of_token(&Address::from_bytes([0x45; 20])), None);
    }
}
