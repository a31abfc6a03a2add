//! The spans of a charge, for tracing systems such as OpenTelemetry.
//!
//! All have one target, so that a program can record them apart from its log. They name no key, account or query. A span
//! that no subscriber records costs one check.

use tracing::{Level, Span, span_enabled};

/// The target of every span.
///
/// Phases of a charge: `price`, `authenticate`, `pay`, `charge` with `queue` and `commit` inside, `settle_hold`,
/// `refund`, and `delivered` for an idempotency key that is used up.
pub const TARGET: &str = "metering::trace";

/// The current span, if spans are recorded: for work that goes on in another task, or later.
#[must_use]
pub fn current() -> Span {
    if span_enabled!(target: TARGET, Level::INFO) { Span::current() } else { Span::none() }
}
