//! Keys, nonces, session tokens and user codes, as clients send them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use metering_core::payments::QuoteNonce;
use metering_core::signups::{SessionToken, UserCode};
use metering_core::{AccountId, ApiKey};

fuzz_target!(|text: &str| {
    if let Ok(key) = ApiKey::parse(text) {
        assert_eq!(key.expose(), text);
        let header = ApiKey::from_authorization(&format!("Bearer {text}")).expect("a key is a Bearer token");
        assert_eq!(header.hash(), key.hash());
        assert!(!format!("{key:?}").contains(text), "Debug shows the key");
    }
    let _ = ApiKey::from_authorization(text);
    if let Ok(id) = text.parse::<AccountId>() {
        assert_eq!(id.as_str(), text);
    }
    if let Ok(nonce) = QuoteNonce::parse(text) {
        assert!(!format!("{nonce:?}").contains(text), "Debug shows the nonce");
    }
    if let Ok(token) = SessionToken::parse(text) {
        assert!(!format!("{token:?}").contains(text), "Debug shows the token");
    }
    let _ = text.parse::<UserCode>();
});
