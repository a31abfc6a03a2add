//! Wallet addresses, transaction hashes and signatures.
#![no_main]

use libfuzzer_sys::fuzz_target;
use metering_core::chains::{Address, TxHash, WalletSignature, signer};

fuzz_target!(|text: &str| {
    if let Ok(address) = text.parse::<Address>() {
        assert_eq!(address.to_checksummed().parse::<Address>(), Ok(address));
        assert_eq!(address.to_string().parse::<Address>(), Ok(address));
    }
    if let Ok(hash) = text.parse::<TxHash>() {
        assert_eq!(hash.to_string().parse::<TxHash>(), Ok(hash));
    }
    if let Ok(signature) = WalletSignature::parse(text) {
        let _ = signer("a message", &signature);
    }
});
