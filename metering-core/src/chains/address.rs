//! EVM addresses: 20 bytes, with the mixed-case checksum of EIP-55.

use std::fmt;
use std::str::FromStr;

use sha3::{Digest, Keccak256};

use crate::raw_bytes::raw_bytes;
use crate::text_traits::text_traits;

/// An EVM address. Displayed in lower case; [`Address::to_checksummed`] is the form for people.
///
/// ```
/// use metering_core::chains::Address;
///
/// let address: Address = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed".parse()?;
/// assert_eq!(address.to_string(), "0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed");
/// # Ok::<(), metering_core::chains::AddressError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address([u8; 20]);

raw_bytes!(Address, 20);

/// Why the text is not an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// Not `0x` and 40 hexadecimal digits.
    #[error("an address is 0x followed by 40 hexadecimal digits")]
    Malformed,
    /// Mixed case that does not match the checksum of EIP-55: most likely a typo.
    #[error("the address fails its EIP-55 checksum; check it for a typo")]
    Checksum,
}

impl Address {
    /// The zero address, which represents the chain's native coin.
    pub const ZERO: Self = Self([0; 20]);

    /// The address in the mixed case of EIP-55.
    #[must_use]
    pub fn to_checksummed(&self) -> String {
        let lower = hex::encode(self.0);
        let hash = hex::encode(Keccak256::digest(lower.as_bytes()));
        let digits = lower
            .chars()
            .zip(hash.bytes())
            .map(|(digit, nibble)| if nibble >= b'8' { digit.to_ascii_uppercase() } else { digit });
        "0x".chars().chain(digits).collect()
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let digits = text.strip_prefix("0x").ok_or(AddressError::Malformed)?;
        let mut bytes = [0; 20];
        hex::decode_to_slice(digits, &mut bytes).map_err(|_| AddressError::Malformed)?;
        let address = Self(bytes);
        let mixed = digits.bytes().any(|b| b.is_ascii_uppercase()) && digits.bytes().any(|b| b.is_ascii_lowercase());
        if mixed && address.to_checksummed() != text {
            return Err(AddressError::Checksum);
        }
        Ok(address)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{}", hex::encode(self.0))
    }
}

text_traits!(Address: Debug, Serialize, Deserialize);

#[cfg(test)]
mod tests {
    use super::*;

    /// The test vectors of EIP-55.
    const CHECKSUMMED: [&str; 8] = [
        "0x52908400098527886E0F7030069857D2E4169EE7",
        "0x8617E340B3D01FA5F11F306F4090FD50E238070D",
        "0xde709f2102306220921060314715629080e2fb77",
        "0x27b1fdb04752bbc536007a920d24acb045561c26",
        "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
        "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
        "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
        "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
    ];

    #[test]
    fn eip_55_vectors_hold() {
        for text in CHECKSUMMED {
            let address: Address = text.parse().unwrap();
            assert_eq!(address.to_checksummed(), text);
            assert_eq!(address.to_string(), text.to_lowercase());
        }
    }

    #[test]
    fn one_case_needs_no_checksum_but_mixed_case_does() {
        let lower = CHECKSUMMED[4].to_lowercase();
        let upper = format!("0x{}", lower[2..].to_uppercase());
        assert_eq!(lower.parse::<Address>(), upper.parse::<Address>());
        let wrong = CHECKSUMMED[4].replacen('A', "a", 1);
        assert_eq!(wrong.parse::<Address>(), Err(AddressError::Checksum));
    }

    #[test]
    fn invalid_address_is_refused() {
        for text in [
            "",
            "0x",
            "52908400098527886E0F7030069857D2E4169EE7",
            "0x529084000985278",
            "0xzz908400098527886E0F7030069857D2E4169EE7",
        ] {
            assert_eq!(text.parse::<Address>(), Err(AddressError::Malformed), "{text}");
        }
    }
}
