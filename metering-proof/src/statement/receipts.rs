//! Matches receipts with the lines of a statement. Requests of one commit share a line, so a line must have at least
//! the requests and credits of its receipts.

use std::collections::HashSet;
use std::time::Duration;

use metering_core::AccountId;
use metering_core::charging::UsageKind;
use metering_core::receipts::ReceiptKind;

use crate::leaf::{Opening, Posting};
use crate::payload::ReceiptPayload;

/// A refund's receipt has the clock's time just after the commit, and commits of a struggling store may
/// take seconds.
const REFUND_TOLERANCE: Duration = Duration::from_secs(15);

/// The usage not matched to a receipt yet: lines, each with its remaining requests and atoms.
pub(super) struct Unmatched<'l> {
    account: &'l AccountId,
    lines: Vec<(&'l Opening, u64, u64)>,
}

impl<'l> Unmatched<'l> {
    pub(super) fn of(account: &'l AccountId, lines: &'l [Opening]) -> Self {
        let usage = lines.iter().filter_map(|line| match &line.posting {
            Posting::Usage { calls, .. } => Some((line, *calls, line.amount.atoms().unsigned_abs())),
            Posting::Opening | Posting::Ledger { .. } | Posting::Imported => None,
        });
        Self { account, lines: usage.collect() }
    }

    /// The receipts that no remaining line matches, in order. Earlier ones are matched first, so that as many as
    /// possible find a line, even if a receipt's time differs slightly from its line's.
    pub(super) fn among<'r>(
        mut self,
        receipts: impl IntoIterator<Item = &'r ReceiptPayload>,
    ) -> Vec<&'r ReceiptPayload> {
        let mut receipts: Vec<(usize, &ReceiptPayload)> = receipts.into_iter().enumerate().collect();
        receipts.sort_by_key(|(place, receipt)| (receipt.at, *place));
        // Looking a request up again yields another receipt for the same change.
        let mut taken = HashSet::new();
        receipts.retain(|&(_, receipt)| {
            let at = Some(receipt.at).filter(|_| receipt.kind != ReceiptKind::Refund);
            let change = (&receipt.account, receipt.request, receipt.kind, at);
            let is_borne_out = taken.contains(&change) || self.take(receipt);
            if is_borne_out {
                taken.insert(change);
            }
            !is_borne_out
        });
        receipts.sort_by_key(|(place, _)| *place);
        receipts.into_iter().map(|(_, receipt)| receipt).collect()
    }

    /// Subtracts a request and its price from the lines of its time. Several commits of one millisecond have a line
    /// each, and it is unknown which of them a receipt belongs to.
    fn take(&mut self, receipt: &ReceiptPayload) -> bool {
        let Ok(mut price) = u64::try_from(receipt.amount.atoms()) else { return false };
        if receipt.account != *self.account {
            return false;
        }
        let mut lines: Vec<_> = self.lines.iter_mut().filter(|(line, ..)| is_of(line, receipt)).collect();
        let atoms = lines.iter().fold(0_u64, |sum, (_, _, atoms)| sum.saturating_add(*atoms));
        let Some((_, calls, _)) = lines.iter_mut().find(|(_, calls, _)| *calls > 0) else { return false };
        if atoms < price {
            return false;
        }
        *calls -= 1;
        for (_, _, atoms) in lines {
            let taken = price.min(*atoms);
            (*atoms, price) = (*atoms - taken, price - taken);
        }
        true
    }
}

/// Whether a line can contain the receipt's request.
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
