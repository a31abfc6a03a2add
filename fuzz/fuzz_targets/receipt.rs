//! Receipts of requests: one spelling for each, and nothing but what was signed verifies.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use metering_log::keys::JwkSet;
use metering_proof::SignedReceipt;

const SIGNED: &str = include_str!("../seeds/receipt/example");

static KEYS: LazyLock<JwkSet> = LazyLock::new(|| {
    JwkSet::parse(include_str!("../../metering-proof/tests/vectors/keys.json")).expect("the example has keys")
});

fuzz_target!(|text: &str| {
    let Ok(receipt) = text.parse::<SignedReceipt>() else { return };
    assert_eq!(receipt.to_string(), text.trim());
    assert_eq!(receipt.verify(&KEYS).is_ok(), text.trim() == SIGNED.trim());
});
