//! Branding of the browser pages: name, texts, mark and accent colour.

mod mark;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use crate::server::section::section;
use crate::server::text::as_text;
pub use mark::{Mark, MarkKind};

section! {
    /// Branding of the browser pages: name, texts, mark and accent colour.
    pub struct BrandConfig;

    /// The service's name.
    name: BrandText<40> = BrandText("Metering".to_owned()),
    /// The text next to the logo mark; by default the name.
    logo: Option<BrandText<24>>,
    /// An SVG or PNG file instead of the built-in mark.
    mark: Option<PathBuf>,
    /// The headline of the landing page.
    headline: BrandText<80> = BrandText("Pay for the calls you make.".to_owned()),
    /// The sentence below it.
    tagline: BrandText<240> = BrandText(
        "Prepaid credits, metered exactly, call by call. No subscription, no card, no surprises.".to_owned(),
    ),
    /// The colour of buttons, links and charts. Text stays readable with any colour.
    accent: Colour = Colour([0x0b, 0x6e, 0x4f]),
}

impl BrandConfig {
    /// The text next to the logo mark.
    #[must_use]
    pub fn logo(&self) -> &str {
        self.logo.as_ref().map_or(self.name.as_str(), BrandText::as_str)
    }
}

/// One line of 1 to `MAX` characters, without control characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct BrandText<const MAX: usize>(String);

impl<const MAX: usize> BrandText<MAX> {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de, const MAX: usize> Deserialize<'de> for BrandText<MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?.trim().to_owned();
        if text.is_empty() || text.chars().count() > MAX || text.chars().any(char::is_control) {
            return Err(Error::custom(format_args!("must be one line of 1 to {MAX} characters")));
        }
        Ok(Self(text))
    }
}

/// A colour, written as `#0b6e4f`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Colour([u8; 3]);

/// The text is not a colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a colour such as #0b6e4f")]
pub struct ColourError;

impl FromStr for Colour {
    type Err = ColourError;

    fn from_str(text: &str) -> Result<Self, ColourError> {
        let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6).ok_or(ColourError)?;
        let mut channels = [0; 3];
        hex::decode_to_slice(digits, &mut channels).map_err(|_| ColourError)?;
        Ok(Self(channels))
    }
}

impl fmt::Display for Colour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", hex::encode(self.0))
    }
}

as_text!(Colour);

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<BrandConfig, toml::de::Error> {
        toml::from_str(text)
    }

    #[test]
    fn valid_values_are_read() {
        let brand = read("name = ' Acme Data '\nlogo = 'acme'\naccent = '#C026d3'").unwrap();
        assert_eq!((brand.name.as_str(), brand.logo()), ("Acme Data", "acme"));
        assert_eq!(brand.accent.to_string(), "#c026d3");
        assert_eq!(read("name = 'Acme'").unwrap().logo(), "Acme", "the name is the logo where none is given");
    }

    #[test]
    fn unprintable_text_is_rejected() {
        let long = format!("name = '{}'", "x".repeat(41));
        let refused = [
            "name = ''",
            "name = '  '",
            "name = \"two\\nlines\"",
            &long,
            "accent = 'green'",
            "accent = '#0b6e4'",
            "accent = '#0b6e4f00'",
            "accent = '#0b6eéf'",
            "accent = '0b6e4f'",
            "colour = '#0b6e4f'",
        ];
        for text in refused {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
