//! Openings of leaves: each has one spelling.
#![no_main]

use libfuzzer_sys::fuzz_target;
use metering_proof::Opening;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(opening) = Opening::parse(bytes) {
        assert_eq!(opening.to_bytes(), bytes);
    }
});
