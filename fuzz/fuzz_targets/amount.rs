//! Amounts of credits, weights and token units: accepted credits and units survive a round trip through text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use metering_core::Credits;
use metering_core::catalogue::{Multiplier, Weight};
use metering_core::chains::TokenUnits;

fuzz_target!(|text: &str| {
    if let Ok(credits) = text.parse::<Credits>() {
        assert_eq!(credits.to_string().parse::<Credits>(), Ok(credits));
    }
    if let Ok(units) = text.parse::<TokenUnits>() {
        assert_eq!(units.to_string().parse::<TokenUnits>(), Ok(units));
        for decimals in [0, 6, 18, 255] {
            let _ = units.to_human(decimals);
        }
    }
    let _ = text.parse::<Weight>();
    let _ = text.parse::<Multiplier>();
});
