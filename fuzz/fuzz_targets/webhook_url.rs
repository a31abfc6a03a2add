//! URLs of webhooks: what is accepted is `https`, public, and a fixed point, so no spelling hides another host.
#![no_main]

use libfuzzer_sys::fuzz_target;
use metering_core::events::{WebhookUrl, is_public};

fuzz_target!(|text: &str| {
    let Ok(url) = text.parse::<WebhookUrl>() else { return };
    let normal = url.as_str();
    assert!(normal.starts_with("https://") && normal.len() <= 2_048 && normal.is_ascii());
    assert!(url.address().is_none_or(is_public));
    assert!(!url.host().is_empty() && !url.host().contains(['@', '/', '\\', '%']));
    let again: WebhookUrl = normal.parse().expect("the normal form is accepted");
    assert_eq!(again.as_str(), normal, "the normal form is a fixed point");
    assert!(WebhookUrl::parse_trusted(text).is_ok(), "operators may use what customers may");
});
