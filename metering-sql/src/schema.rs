//! Versions of the schema that are the same in all databases. A backend's own versions come first.

/// The script of each version, in order. Released ones are never edited. A backend's words replace those in braces:
/// `{integer}` is the type of numbers, `{blob}` that of bytes, and `{keyed}` follows a table with a key of its own.
pub const STEPS: &[&str] = &[
    include_str!("schema/0001_browser_sessions.sql"),
    include_str!("schema/0002_buyers.sql"),
    include_str!("schema/0003_unclaimed_payments.sql"),
    include_str!("schema/0004_payment_values.sql"),
    include_str!("schema/0005_repeated_changes.sql"),
    include_str!("schema/0006_processor_payments.sql"),
    include_str!("schema/0007_token_limits.sql"),
    include_str!("schema/0008_key_hints.sql"),
    include_str!("schema/0015_members.sql"),
    include_str!("schema/0016_child_accounts.sql"),
];
