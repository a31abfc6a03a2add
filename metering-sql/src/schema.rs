//! Versions of the schema that are the same in all databases. A backend's own versions come first.

/// The script of each version, in order. Released ones are never edited. A backend's own words replace those in braces:
/// `{integer}` is the type of numbers, `{blob}` that of bytes, `{keyed}` follows a table with a key of its own,
/// `{serial}` is the type of a key that the database counts, and `{audit_guard}` is replaced by statements.
pub const STEPS: &[&str] = &[
    include_str!("schema/0001_browser_sessions.sql"),
    include_str!("schema/0002_buyers.sql"),
    include_str!("schema/0003_unclaimed_payments.sql"),
    include_str!("schema/0004_payment_values.sql"),
    include_str!("schema/0005_repeated_changes.sql"),
    include_str!("schema/0006_processor_payments.sql"),
    include_str!("schema/0007_token_limits.sql"),
    include_str!("schema/0008_key_hints.sql"),
    include_str!("schema/0009_authorized_usage.sql"),
    include_str!("schema/0010_auto_top_ups.sql"),
    include_str!("schema/0011_upstreams.sql"),
    include_str!("schema/0013_oauth.sql"),
    include_str!("schema/0014_delivery_responses.sql"),
    include_str!("schema/0015_members.sql"),
    include_str!("schema/0016_child_accounts.sql"),
    include_str!("schema/0017_erasure.sql"),
    include_str!("schema/0019_usage_sinks.sql"),
    include_str!("schema/0020_receipts.sql"),
    include_str!("schema/0022_log.sql"),
    include_str!("schema/0023_previous_logs.sql"),
    include_str!("schema/0024_webhook_health.sql"),
    include_str!("schema/0025_reversal_interruptions.sql"),
];
