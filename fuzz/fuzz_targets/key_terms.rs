//! Terms of keys: accepted lists survive a round trip through the text that stores keep, and are within themselves.
#![no_main]

use libfuzzer_sys::fuzz_target;
use metering_core::access::{Networks, RoutePatterns, Scopes};
use metering_core::wire::{ChangeKeyRequest, CreateKeyRequest};

fuzz_target!(|text: &str| {
    if let Ok(networks) = text.parse::<Networks>() {
        assert_eq!(networks.to_string().parse::<Networks>().as_ref(), Ok(&networks));
        assert!(networks.is_within(&networks));
    }
    if let Ok(routes) = text.parse::<RoutePatterns>() {
        assert_eq!(routes.to_string().parse::<RoutePatterns>().as_ref(), Ok(&routes));
        assert!(routes.is_within(&routes));
    }
    if let Ok(scopes) = text.parse::<Scopes>() {
        assert_eq!(scopes.to_string().parse::<Scopes>(), Ok(scopes));
    }
    let _ = serde_json::from_str::<CreateKeyRequest>(text);
    let _ = serde_json::from_str::<ChangeKeyRequest>(text);
});
