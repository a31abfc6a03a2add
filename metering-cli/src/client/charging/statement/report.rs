//! What `metering statement verify` found.

use std::io::Write;

use metering_core::wire::StatementGapDocument;
use metering_core::{Credits, Timestamp};
use metering_proof::{ChainHead, Posting, StatementSummary};
use serde::Serialize;

use crate::client::charging::service_keys::ServiceKeys;
use crate::failure::Failure;
use crate::output::{Format, write_json};
use crate::table::{printable, write_pairs};

/// The result, as `--json` prints it.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) issuer: String,
    pub(super) org_id: String,
    period: String,
    pub(super) from: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    gap: Option<StatementGapDocument>,
    pub(super) until: Timestamp,
    pub(super) complete: bool,
    lines: usize,
    requests: u64,
    opening: Option<Credits>,
    used: Credits,
    added: Credits,
    closing: Option<Credits>,
    next_number: Option<u64>,
    pub(super) log: String,
    log_size: u64,
    receipts: usize,
}

impl Report {
    /// The report with another page added.
    pub(super) fn with(before: Option<Self>, page: &StatementSummary, receipts: usize) -> Result<Self, Failure> {
        let funds = |state: Option<ChainHead>| state.map(|state| state.funds);
        let before = before.unwrap_or_else(|| Self {
            issuer: page.issuer.clone(),
            org_id: page.account.to_string(),
            period: page.period.clone(),
            from: page.from,
            gap: page.gap.clone(),
            until: page.until,
            complete: page.complete,
            lines: 0,
            requests: 0,
            opening: funds(page.opening),
            used: Credits::ZERO,
            added: Credits::ZERO,
            closing: None,
            next_number: None,
            log: page.log.clone(),
            log_size: 0,
            receipts,
        });
        let too_much = || Failure::Discrepancies("the sum of the lines is out of range".to_owned());
        let (mut requests, mut used, mut added) = (before.requests, before.used, before.added);
        for line in &page.lines {
            if let Posting::Usage { calls, .. } = &line.posting {
                requests = requests.saturating_add(*calls);
                used = used.checked_sub(line.amount).ok_or_else(too_much)?;
            } else {
                added = added.checked_add(line.amount).ok_or_else(too_much)?;
            }
        }
        Ok(Self {
            until: page.until,
            complete: page.complete,
            lines: before.lines + page.lines.len(),
            requests,
            used,
            added,
            closing: funds(page.closing),
            next_number: page.closing.map(|state| state.leaves),
            log_size: page.tree.0,
            ..before
        })
    }

    pub(super) fn write(&self, keys: &ServiceKeys, format: Format, out: &mut dyn Write) -> Result<(), Failure> {
        if format.json {
            return write_json(out, self);
        }
        let (issuer, from) = (printable(&self.issuer), printable(&keys.from));
        writeln!(out, "Valid: signed as {issuer} with a key of {from}, adds up, and the log has every line.\n")?;
        let credits = |amount: Option<Credits>| {
            amount.map_or_else(|| "not known".to_owned(), |amount| format!("{amount} credits"))
        };
        let complete = if self.complete { "yes" } else { "no: later postings may be added" };
        let log = format!("{}, {} entries", self.log, self.log_size);
        write_pairs(
            out,
            &[
                ("Account", &self.org_id),
                ("Period", &self.period),
                ("From", &self.from),
                ("Until", &self.until),
                ("Complete", &complete),
                ("Funds before", &credits(self.opening)),
                ("Added", &credits(Some(self.added))),
                ("Used", &credits(Some(self.used))),
                ("Funds after", &credits(self.closing)),
                ("Lines", &format!("{}, {} requests", self.lines, self.requests)),
                ("Receipts", &format!("{} found in it", self.receipts)),
                ("Log", &log),
            ],
        )?;
        if let Some(gap) = &self.gap {
            writeln!(out, "\n{}", lacks(gap))?;
        }
        Ok(())
    }
}

/// What a statement does not cover. The texts are the service's.
fn lacks(gap: &StatementGapDocument) -> String {
    let StatementGapDocument { from, until, reason, previous } = gap;
    let reason = printable(reason);
    let log = previous.as_ref().map_or_else(
        || "an earlier log".to_owned(),
        |log| {
            format!(
                "{}, which ended with {} entries and the root {}",
                printable(&log.origin),
                log.size,
                printable(&log.root)
            )
        },
    );
    format!(
        "Not in it: postings from {from} to {until}, before a new log began (store {reason}). They are in {log}, or in none."
    )
}

#[cfg(test)]
mod tests {
    use metering_core::wire::PreviousLogDocument;

    use super::*;

    #[test]
    fn what_a_statement_lacks_is_printed() {
        let root = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=".to_owned();
        let gap = StatementGapDocument {
            from: Timestamp::from_unix_millis(1_795_219_200_000),
            until: Timestamp::from_unix_millis(1_795_262_400_000),
            reason: "restored".to_owned(),
            previous: Some(PreviousLogDocument { origin: "api.example.com/log/1".to_owned(), size: 9, root }),
        };
        let text = lacks(&gap);
        for part in
            ["2026-11-21T00:00:00.000Z to 2026-11-21T12:00:00.000Z", "restored", "api.example.com/log/1", "9 entries"]
        {
            assert!(text.contains(part), "{text}");
        }
        assert!(lacks(&StatementGapDocument { previous: None, ..gap }).contains("an earlier log"));
    }
}
