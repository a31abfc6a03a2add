use clap::ValueEnum;

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
