use clap::ValueEnum;
use metering_core::ApiKey;

/// A setting of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Setting {
    /// The service's URL.
    Url,
    /// The account's API key.
    ApiKey,
    /// The most to pay for calls in 24 hours.
    DailyLimit,
}

/// The ends of a key: the prefix that all keys share, and four characters of its checksum. They tell keys apart and
/// reveal no secret.
pub(crate) fn redacted(key: &ApiKey) -> String {
    let text = key.expose();
    let end = text.get(text.len().saturating_sub(4)..).unwrap_or_default();
    format!("sk_live_...{end}")
}
