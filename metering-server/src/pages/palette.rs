//! The colours of the pages: fixed surface and text colours, and colours derived from the operator's accent.
//!
//! WCAG 2.2 requires a contrast of 4.5 to 1 between text and its background. Text on the accent is black or white,
//! whichever has more contrast; one of them always reaches 4.5. As a text colour, the accent is mixed with black or
//! white, step by step, until it reaches 4.5 on every surface.
#![expect(clippy::float_arithmetic, reason = "colours, not money")]

use serde::Serialize;

use crate::config::Colour;

/// The required contrast of text against its background (WCAG 2.2, 1.4.3).
const TEXT_CONTRAST: f64 = 4.5;
/// The number of steps between a colour and black or white.
const STEPS: u16 = 40;
const BLACK: Colour = Colour { red: 0, green: 0, blue: 0 };
const WHITE: Colour = Colour { red: 255, green: 255, blue: 255 };

/// The surfaces of the light scheme: page, card, and wells inside cards.
const LIGHT: [Colour; 3] = [grey(0xf5, 0xf4, 0xef), WHITE, grey(0xf1, 0xf0, 0xea)];
/// The surfaces of the dark scheme.
const DARK: [Colour; 3] = [grey(0x10, 0x12, 0x11), grey(0x19, 0x1c, 0x1a), grey(0x22, 0x26, 0x24)];

const fn grey(red: u8, green: u8, blue: u8) -> Colour {
    Colour { red, green, blue }
}

/// Both schemes.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Palette {
    light: Scheme,
    dark: Scheme,
}

/// The colours of one scheme, derived from its surfaces and the accent.
#[derive(Debug, Clone, Serialize)]
struct Scheme {
    page: Colour,
    card: Colour,
    well: Colour,
    /// The background of buttons.
    accent: Colour,
    /// The background of buttons under the pointer.
    accent_hover: Colour,
    on_accent: Colour,
    /// Links, chart bars, focus rings.
    accent_text: Colour,
    /// A tinted background for ordinary text.
    accent_soft: Colour,
}

impl Palette {
    /// The colours for an accent.
    pub(super) fn new(accent: Colour) -> Self {
        Self { light: Scheme::new(accent, LIGHT, BLACK), dark: Scheme::new(accent, DARK, WHITE) }
    }
}

impl Scheme {
    /// `ink` is black or white: the colour that text colours are mixed with to gain contrast.
    fn new(accent: Colour, surfaces: [Colour; 3], ink: Colour) -> Self {
        let [page, card, well] = surfaces;
        let on_accent = if contrast(accent, WHITE) >= contrast(accent, BLACK) { WHITE } else { BLACK };
        // Move away from the text colour, which only increases the contrast.
        let away = if on_accent == WHITE { BLACK } else { WHITE };
        let accent_soft = mix(card, accent, 4);
        let legible = |colour: &Colour| {
            [page, card, well, accent_soft].iter().all(|surface| contrast(*colour, *surface) >= TEXT_CONTRAST)
        };
        let accent_text = (0..=STEPS).map(|step| mix(accent, ink, step)).find(legible).unwrap_or(ink);
        Self { page, card, well, accent, accent_hover: mix(accent, away, 6), on_accent, accent_text, accent_soft }
    }
}

/// Mixes two colours: `step` parts of `other`, and the rest of the [`STEPS`] parts of `colour`.
fn mix(colour: Colour, other: Colour, step: u16) -> Colour {
    let blend = |from: u8, to: u8| {
        let mixed = (u16::from(from) * (STEPS - step) + u16::from(to) * step) / STEPS;
        u8::try_from(mixed).expect("between two bytes")
    };
    Colour {
        red: blend(colour.red, other.red),
        green: blend(colour.green, other.green),
        blue: blend(colour.blue, other.blue),
    }
}

/// The contrast of two colours as WCAG 2.2 defines it: 1 to 21.
fn contrast(one: Colour, other: Colour) -> f64 {
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

fn luminance(colour: Colour) -> f64 {
    let linear = |channel: u8| {
        let channel = f64::from(channel) / 255.0;
        if channel <= 0.04045 { channel / 12.92 } else { ((channel + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * linear(colour.red) + 0.7152 * linear(colour.green) + 0.0722 * linear(colour.blue)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn contrast_matches_the_standard() {
        assert!((contrast(BLACK, WHITE) - 21.0).abs() < 0.001);
        let grey: Colour = "#767676".parse().unwrap();
        assert!((contrast(grey, WHITE) - 4.54).abs() < 0.01, "the well-known lightest grey that passes");
    }

    #[test]
    fn readable_accent_is_unchanged() {
        let accent: Colour = "#0b6e4f".parse().unwrap();
        let palette = Palette::new(accent);
        assert_eq!((palette.light.accent, palette.light.accent_text), (accent, accent));
        assert_ne!(palette.dark.accent_text, accent, "the accent is too dark for text on dark surfaces");
    }

    proptest! {
        #[test]
        fn every_accent_gives_readable_texts(red: u8, green: u8, blue: u8) {
            let palette = Palette::new(Colour { red, green, blue });
            for scheme in [&palette.light, &palette.dark] {
                prop_assert!(contrast(scheme.on_accent, scheme.accent) >= TEXT_CONTRAST);
                prop_assert!(contrast(scheme.on_accent, scheme.accent_hover) >= TEXT_CONTRAST);
                for surface in [scheme.page, scheme.card, scheme.well, scheme.accent_soft] {
                    prop_assert!(contrast(scheme.accent_text, surface) >= TEXT_CONTRAST);
                }
            }
        }
    }
}
