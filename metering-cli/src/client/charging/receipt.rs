//! Prints the charge and the balance that a response's headers state.

use http::HeaderMap;
use metering_core::wire::{BALANCE_HEADER, CHARGED_HEADER};

use crate::output::notice;
use crate::table::printable;

/// Prints them; nothing if the route is not metered.
pub(crate) fn print_charge(headers: &HeaderMap) {
    let amount = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(printable);
    match (amount(CHARGED_HEADER), amount(BALANCE_HEADER)) {
        (Some(charged), Some(balance)) => notice(&format!("Charged {charged} credits; the balance is {balance}.")),
        (None, Some(balance)) => notice(&format!("The balance is {balance} credits.")),
        (Some(charged), None) => notice(&format!("Charged {charged} credits.")),
        (None, None) => {}
    }
}
