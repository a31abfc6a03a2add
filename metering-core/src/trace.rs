//! The spans of a charge, for tracing systems such as OpenTelemetry.
//!
//! All have one target, so a program can record them apart from its log. They name no key, account or query. A span
//! that no subscriber records costs one check.

use tracing::Span;

/// The target of every span.
///
/// Phases of a charge: `price`, `authenticate`, `pay`, `charge` with `queue` and `commit` inside, `settle_hold`,
/// `refund`, and `delivered` for an idempotency key that is used up.
pub const TARGET: &str = "metering::trace";

/// The current span: for work that continues in another task, or later.
///
/// It does not check whether spans are enabled (`span_enabled!`): with filters of single layers, that loses the next
/// event.
#[must_use]
pub fn current() -> Span {
    Span::current()
}
