//! Versions of the schema that are the same in all databases. A backend's own versions come first.

/// The script of each version, in order. Released ones are never edited. A backend's words replace those in braces, of
/// which `{integer}` is the type of numbers.
pub const STEPS: &[&str] = &[include_str!("schema/0002_buyers.sql")];
