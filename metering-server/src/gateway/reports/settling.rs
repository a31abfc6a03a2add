//! Settles the hold of one request, by the usage that its response reported.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue};
use metering_core::catalogue::{BodyEnd, Ended, ReportError, ReportReader, Settlement, UsagePrice};
use metering_core::charging::HoldUpdated;
use metering_core::{Charged, Credits};
use tokio::time::timeout;

use super::unreported::Unreported;
use crate::operations::metric::counter;

/// How long a response waits for its hold to be settled. A store that works takes milliseconds; while it is down, the
/// hold is settled in the background.
const CAPTURE_WAIT: Duration = Duration::from_secs(3);

/// The cost that a response reports; `None` when it reports none.
pub(super) type Reported = Result<Option<Credits>, ReportError>;

/// A hold and the price of its route.
pub(super) struct Settling {
    pub(super) charged: Charged,
    pub(super) price: Arc<UsagePrice>,
    /// Whether the upstream responded with an error. Without a report, such a response costs nothing.
    pub(super) is_error: bool,
    pub(super) unreported: Arc<Unreported>,
    /// The length of the request's body in bytes.
    pub(super) request_bytes: u64,
}

impl Settling {
    /// Notes which upstream served the request: the settled hold names it and has its price.
    pub(super) async fn served_by(&mut self, upstream: &str) {
        self.charged.served_by(upstream).await;
        if let Some(price) = self.charged.usage_price() {
            self.price = Arc::clone(price);
        }
    }

    /// The cost that headers or trailers report.
    pub(super) fn cost_from(&self, headers: &HeaderMap) -> Reported {
        self.price.cost_from_headers(|name: &str| headers.get(name).map(HeaderValue::as_bytes))
    }

    /// Captures what headers or trailers reported, or settles the hold by its rule.
    pub(super) async fn settle_from(&self, headers: &HeaderMap) -> Option<HoldUpdated> {
        let tokens = self.price.tokens_from_headers(|name: &str| headers.get(name).map(HeaderValue::as_bytes));
        self.charged.used_tokens(tokens).await;
        self.settle(self.cost_from(headers)).await
    }

    /// Whether the report is in headers or trailers.
    pub(super) fn reports_in_headers(&self) -> bool {
        self.price.report().header_names().next().is_some()
    }

    /// Captures the reported cost, or settles the hold by its rule. `None` if it was settled before, or is still being
    /// settled.
    pub(super) async fn settle(&self, reported: Reported) -> Option<HoldUpdated> {
        match reported {
            Ok(Some(cost)) => within_wait(self.charged.capture(cost)).await,
            Ok(None) => self.settle_without_report("the response has no report").await,
            Err(error @ ReportError::TooLarge { .. }) if !self.is_error => {
                self.count_unreadable("too_large");
                let Charged { route_template, amount, .. } = &self.charged;
                self.unreported.count(route_template, *amount, *amount, error);
                within_wait(self.charged.capture(*amount)).await
            }
            Err(error) => {
                self.count_unreadable(match &error {
                    ReportError::TooDeep => "too_deep",
                    ReportError::NotJson => "not_json",
                    _ => "invalid",
                });
                self.settle_without_report(&error).await
            }
        }
    }

    /// Counts a report that cannot be read. An error response owes none.
    fn count_unreadable(&self, reason: &'static str) {
        if !self.is_error {
            counter!(
                "metering_unreadable_reports_total",
                "Responses whose report of their cost could not be read, by reason",
                "reason" => reason
            )
            .increment(1);
        }
    }

    /// How the response ended, for settling the hold.
    pub(super) fn ended(&self, body: BodyEnd) -> Ended {
        Ended { body, is_error: self.is_error, held: self.charged.amount, request_bytes: self.request_bytes }
    }

    /// Settles the hold of a response whose body was read, and ended in this way.
    pub(super) async fn settle_read(&self, reader: ReportReader, end: BodyEnd) -> Option<HoldUpdated> {
        let (settlement, tokens) = reader.settlement_and_tokens(&self.ended(end));
        self.charged.used_tokens(tokens).await;
        self.settle_as(settlement, end).await
    }

    /// Settles the hold of a response whose body ended in this way.
    pub(super) async fn settle_as(&self, settlement: Settlement, end: BodyEnd) -> Option<HoldUpdated> {
        match settlement {
            Settlement::Reported(cost) | Settlement::Delivered(cost) => within_wait(self.charged.capture(cost)).await,
            Settlement::Nothing => within_wait(self.charged.release()).await,
            Settlement::Missing(_) if end == BodyEnd::Abandoned => {
                self.settle_unreadable("disconnected", "its client disconnected too early").await
            }
            Settlement::Missing(None) => self.settle(Ok(None)).await,
            Settlement::Missing(Some(error)) => self.settle(Err(error)).await,
        }
    }

    async fn settle_without_report(&self, why: impl Display) -> Option<HoldUpdated> {
        if self.is_error {
            return within_wait(self.charged.release()).await;
        }
        let Charged { route_template, amount, .. } = &self.charged;
        self.unreported.count(route_template, *amount, self.price.without_report(*amount), why);
        within_wait(self.charged.capture_without_report()).await
    }

    /// Settles the hold by its rule, because the report cannot be read.
    pub(super) async fn settle_unreadable(&self, reason: &'static str, why: &str) -> Option<HoldUpdated> {
        self.count_unreadable(reason);
        self.settle_without_report(why).await
    }
}

/// Waits for the outcome. A hold that could not be settled is logged by its guard, and one that takes longer is settled
/// in the background. Boxed, since otherwise a task has room for each place where it may settle.
fn within_wait<'f, E: 'f>(
    settling: impl Future<Output = Result<Option<HoldUpdated>, E>> + Send + 'f,
) -> BoxFuture<'f, Option<HoldUpdated>> {
    Box::pin(async { timeout(CAPTURE_WAIT, settling).await.ok()?.ok()? })
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn response_does_not_wait_long_for_a_store_that_is_down() {
        let started = Instant::now();
        let settled = within_wait(std::future::pending::<Result<_, ()>>()).await;
        assert!(settled.is_none());
        assert_eq!(started.elapsed(), CAPTURE_WAIT);
        assert!(within_wait(std::future::ready(Err(()))).await.is_none());
    }
}
