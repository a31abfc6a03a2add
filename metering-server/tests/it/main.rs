//! The integration tests of the crate, in one binary.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

mod documents;
mod packaged_configuration;
mod warp_filters;
