//! Matches receipts with the lines of a statement. Requests of one commit share a line, so a line must have at least as
//! many requests and as much in credits as its receipts.

use std::time::Duration;

use metering_core::charging::UsageKind;
use metering_core::receipts::ReceiptKind;
use metering_core::{AccountId, Credits};

use crate::leaf::{Opening, Posting};
use crate::payload::ReceiptPayload;

/// The time of a refund's receipt is that of the clock, not of its commit.
const REFUND_TOLERANCE: Duration = Duration::from_secs(1);

/// The usage that no receipt was found for yet.
pub(super) struct Unmatched<'l> {
    account: &'l AccountId,
    lines: Vec<(&'l Opening, u64, Credits)>,
}

impl<'l> Unmatched<'l> {
    pub(super) fn of(account: &'l AccountId, lines: &'l [Opening]) -> Self {
        let usage = lines.iter().filter_map(|line| match &line.posting {
            Posting::Usage { calls, .. } => {
                let amount = if line.amount.is_negative() { line.amount.checked_neg()? } else { line.amount };
                Some((line, *calls, amount))
            }
            Posting::Opening | Posting::Ledger { .. } | Posting::Imported => None,
        });
        Self { account, lines: usage.collect() }
    }

    /// The receipts that no line is left for.
    pub(super) fn among<'r>(
        mut self,
        receipts: impl IntoIterator<Item = &'r ReceiptPayload>,
    ) -> Vec<&'r ReceiptPayload> {
        receipts.into_iter().filter(|receipt| !self.take(receipt)).collect()
    }

    fn take(&mut self, receipt: &ReceiptPayload) -> bool {
        if receipt.account != *self.account {
            return false;
        }
        for (line, calls, amount) in &mut self.lines {
            let left = amount.checked_sub(receipt.amount).filter(|left| !left.is_negative());
            if let Some(left) = left
                && *calls > 0
                && is_of(line, receipt)
            {
                (*calls, *amount) = (*calls - 1, left);
                return true;
            }
        }
        false
    }
}

/// Whether a line is the one that the receipt's request is in.
fn is_of(line: &Opening, receipt: &ReceiptPayload) -> bool {
    let Posting::Usage { line: of, kind, key, .. } = &line.posting else { return false };
    let (is_kind, tolerance) = match receipt.kind {
        ReceiptKind::Charge => (*kind == UsageKind::Charged, Duration::ZERO),
        ReceiptKind::Capture => (matches!(kind, UsageKind::Charged | UsageKind::Expired), Duration::ZERO),
        ReceiptKind::Refund => (*kind == UsageKind::Refunded, REFUND_TOLERANCE),
    };
    is_kind
        && key.get() == receipt.key_number
        && of.source.as_str() == receipt.source
        && format!("{} {}", of.http_method, of.route_template) == receipt.route
        && line.at >= receipt.at.saturating_sub(tolerance)
        && line.at <= receipt.at.saturating_add(tolerance)
}
