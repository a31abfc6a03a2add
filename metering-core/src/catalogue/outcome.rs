//! How to settle when a response has ended: the reported cost, the cost of the delivered part, or the rule for a
//! missing report.
//!
//! Failures of the upstream cost nothing, or only the delivered part. Failures that a client can cause are not cheaper
//! than a whole response, or every client would cause them.

use crate::catalogue::report::ReportError;
use crate::catalogue::units::{Count, Counts, ExactCost};
use crate::catalogue::usage_price::UsagePrice;
use crate::money::credits::Credits;

/// How the body of a response ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyEnd {
    /// It is complete.
    Complete,
    /// The upstream cut it off.
    Broken,
    /// The server stopped before the response ended.
    ShuttingDown,
    /// The client disconnected, and the rest was not read.
    Abandoned,
}

/// The end of a response, and its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// How the body ended.
    pub body: BodyEnd,
    /// Whether the response has an error status. Without a report, it costs nothing.
    pub is_error: bool,
    /// The held amount.
    pub held: Credits,
    /// The length of the request's body in bytes.
    pub request_bytes: u64,
}

/// How to settle a hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settlement {
    /// Capture the cost that was reported.
    Reported(Credits),
    /// Capture the cost of the delivered part of a response that ended early. At most the hold.
    Delivered(Credits),
    /// Settle by the rule for a missing report; the error says why a report cannot be read.
    Missing(Option<ReportError>),
    /// Release it.
    Nothing,
}

/// The part of a body that was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct BodyRead {
    /// The credits that it reported.
    pub(super) credits: Option<Credits>,
    /// The counts that it reported.
    pub(super) counts: Counts,
    /// Why a value cannot be read.
    pub(super) error: Option<ReportError>,
    /// Whether the upstream reported that it failed.
    pub(super) failed: bool,
    /// Whether it had anything but white space and comments.
    pub(super) has_content: bool,
    /// Units whose count is at most this length of texts, and whether a report came after the last of them.
    pub(super) delivered: Option<Vec<(Box<str>, u64, bool)>>,
    /// Bytes that no report came after.
    pub(super) unreported_bytes: u64,
}

impl UsagePrice {
    /// How to settle a response whose body has no report and was cut off after `bytes`, such as one whose report is in
    /// its trailers.
    #[must_use]
    pub fn settlement_of_cut(&self, bytes: u64, ended: &Ended) -> Settlement {
        let read = BodyRead { has_content: bytes > 0, unreported_bytes: bytes, ..BodyRead::default() };
        self.settlement(&read, ended)
    }

    pub(super) fn settlement(&self, read: &BodyRead, ended: &Ended) -> Settlement {
        let is_whole = ended.body == BodyEnd::Complete && !read.failed;
        match self.reported(read) {
            Ok(Some(cost)) if is_whole || ended.is_error || read.is_covered() => Settlement::Reported(cost),
            _ if ended.is_error => Settlement::Nothing,
            Ok(_) if is_whole && !read.has_content => Settlement::Nothing,
            Ok(_) if is_whole => Settlement::Missing(None),
            Err(error) if is_whole => Settlement::Missing(Some(error)),
            _ => match self.cost_of_delivered(read, ended) {
                Some(cost) => Settlement::Delivered(cost.min(ended.held)),
                // A client can cause that.
                None if ended.body == BodyEnd::Abandoned && !read.failed => Settlement::Missing(None),
                None => Settlement::Nothing,
            },
        }
    }

    /// The cost that was reported.
    pub(super) fn reported(&self, read: &BodyRead) -> Result<Option<Credits>, ReportError> {
        if let Some(error) = &read.error {
            return Err(error.clone());
        }
        Ok(self.reported_so_far(read))
    }

    fn reported_so_far(&self, read: &BodyRead) -> Option<Credits> {
        let counted = || (!read.counts.is_empty()).then(|| self.cost_of_known(&read.counts));
        read.credits.map(|credits| self.cost_of_credits(credits)).or_else(counted)
    }

    /// The cost of a part of a response; `None` if nothing in it has a cost.
    fn cost_of_delivered(&self, read: &BodyRead, ended: &Ended) -> Option<Credits> {
        let by_client = ended.body == BodyEnd::Abandoned;
        let reported = self.reported_so_far(read);
        if let Some(units) = &read.delivered {
            return self.cost_of_texts(read, units, ended.request_bytes);
        }
        let dearest = self.units().map(|(_, price)| price).max();
        let by_length = match dearest {
            _ if read.unreported_bytes == 0 => None,
            Some(price) => {
                let cost = ExactCost::ZERO.plus(Count::from(read.unreported_bytes), price);
                Some(self.cost_of_credits(cost.round_up()))
            }
            // Credits have no upper bound, so a client that did not cause this is only charged the known cost.
            None if by_client => None,
            None => Some(self.cost_of_credits(Credits::ZERO)),
        };
        match (reported, by_length) {
            // A client that leaves before the last report must not save its cost.
            (Some(reported), Some(by_length)) if by_client => Some(reported.max(by_length)),
            (Some(cost), _) | (None, Some(cost)) => Some(cost),
            (None, None) => None,
        }
    }

    /// The cost of the units reported so far and, at least, of the delivered texts.
    fn cost_of_texts(&self, read: &BodyRead, texts: &[(Box<str>, u64, bool)], request_bytes: u64) -> Option<Credits> {
        let has_texts = texts.iter().any(|(_, bytes, _)| *bytes > 0);
        if read.counts.is_empty() && !has_texts {
            return None;
        }
        let mut cost = ExactCost::ZERO;
        for (unit, price) in self.units() {
            let reported = read.counts.get(unit);
            let bytes = texts.iter().find(|(name, _, _)| **name == *unit);
            let least = match (bytes, reported) {
                (Some((_, _, true)), Some(_)) | (None, _) => 0,
                (Some((_, bytes, _)), _) => *bytes,
            };
            cost = cost.plus(reported.unwrap_or_default().max(Count::from(least)), price);
        }
        let of_request = self
            .estimate
            .as_ref()
            .map(|estimate| &estimate.bytes)
            .filter(|units| has_texts && !units.iter().any(|unit| read.counts.get(unit).is_some()));
        let prices = of_request.into_iter().flatten().filter_map(|unit| self.unit_price(unit));
        if let Some(price) = prices.max() {
            cost = cost.plus(Count::from(request_bytes), price);
        }
        Some(self.cost_of_credits(cost.round_up()))
    }
}

impl BodyRead {
    /// Whether a report came after all that was delivered.
    fn is_covered(&self) -> bool {
        match &self.delivered {
            Some(texts) => texts.iter().all(|(_, bytes, is_covered)| *bytes == 0 || *is_covered),
            None => self.unreported_bytes == 0,
        }
    }
}

#[cfg(test)]
mod tests;
