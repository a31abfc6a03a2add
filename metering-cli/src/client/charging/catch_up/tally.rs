//! The summary of a run, for people and for programs.

use std::io::Write;

use serde::Serialize;

use crate::client::charging::catch_up::block::BlockNumber;
use crate::client::money::amount::Amount;
use crate::failure::Failure;
use crate::output::write_json;
use crate::progress::Progress;

/// The counts of a run in progress.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) progress: Progress,
    pub(super) latest: Option<BlockNumber>,
    first: Option<BlockNumber>,
    written: u64,
    skipped: Vec<BlockNumber>,
}

/// The summary at the end of a run.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    written: u64,
    /// The first block that was written, if one was.
    first_block: Option<BlockNumber>,
    /// Where the cursor is.
    last_block: Option<BlockNumber>,
    /// The latest finalized block, if the service reported it.
    latest_block: Option<BlockNumber>,
    /// How many blocks there are after the cursor.
    remaining: Option<u64>,
    /// The blocks that were skipped.
    missing: Vec<BlockNumber>,
    credit_balance: Option<Amount>,
}

impl Tally {
    pub(super) fn new(progress: Progress) -> Self {
        Self { progress, latest: None, first: None, written: 0, skipped: Vec::new() }
    }

    /// Counts a block as written.
    pub(super) fn wrote(&mut self, number: BlockNumber) {
        self.first.get_or_insert(number);
        self.written += 1;
        self.progress.add(1);
    }

    /// Counts a block as skipped.
    pub(super) fn skipped(&mut self, number: BlockNumber) {
        self.progress.message(&format!("The service does not have block {number}; skipping it."));
        self.skipped.push(number);
        self.progress.add(1);
    }

    /// How many blocks are written.
    #[cfg(test)]
    pub(super) const fn written(&self) -> u64 {
        self.written
    }

    /// The summary, given the cursor's current position.
    pub(super) fn finish(self, last_block: Option<BlockNumber>, credit_balance: Option<Amount>) -> Summary {
        self.progress.end();
        let remaining = self.latest.zip(last_block).and_then(|(latest, last)| latest.get().checked_sub(last.get()));
        Summary {
            written: self.written,
            first_block: self.first,
            last_block,
            latest_block: self.latest,
            remaining,
            missing: self.skipped,
            credit_balance,
        }
    }
}

impl Summary {
    /// For programs.
    pub(super) fn write_json(&self, out: &mut dyn Write) -> Result<(), Failure> {
        write_json(out, self)?;
        Ok(out.flush()?)
    }

    /// For people, on one line.
    pub(super) fn sentence(&self) -> String {
        let mut text = match (self.written, self.first_block, self.last_block) {
            (0, _, Some(last)) => format!("No block written; the cursor is at block {last}."),
            (1, Some(first), _) => format!("Wrote block {first}."),
            (count, Some(first), Some(last)) => format!("Wrote {count} blocks, {first} to {last}."),
            _ => "No block written.".to_owned(),
        };
        match self.missing.len() {
            0 => {}
            1 => text.push_str(" Skipped 1 block that the service does not have."),
            count => text.push_str(&format!(" Skipped {count} blocks that the service does not have.")),
        }
        match self.remaining {
            None => {}
            Some(0) => text.push_str(" That is the latest finalized block."),
            Some(1) => text.push_str(" 1 block remains: run the command again."),
            Some(count) => text.push_str(&format!(" {count} blocks remain: run the command again.")),
        }
        if let Some(balance) = &self.credit_balance {
            text.push_str(&format!(" The balance is {balance} credits."));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const N: fn(u64) -> BlockNumber = BlockNumber::new;

    fn summary(written: std::ops::Range<u64>, skipped: &[u64], last: Option<u64>, latest: Option<u64>) -> Summary {
        let mut tally = Tally::new(Progress::none());
        tally.latest = latest.map(N);
        written.for_each(|number| tally.wrote(N(number)));
        skipped.iter().for_each(|number| tally.skipped(N(*number)));
        tally.finish(last.map(N), serde_json::from_str("0.00130").ok())
    }

    #[test]
    fn run_summary_is_one_line() {
        let balance = " The balance is 0.00130 credits.";
        // written, skipped, last, latest, sentence
        let table = [
            (5..5, &[][..], None, None, "No block written."),
            (
                5..5,
                &[],
                Some(4),
                Some(4),
                "No block written; the cursor is at block 4. That is the latest finalized block.",
            ),
            (5..6, &[], Some(5), Some(5), "Wrote block 5. That is the latest finalized block."),
            (5..105, &[], Some(104), Some(105), "Wrote 100 blocks, 5 to 104. 1 block remains: run the command again."),
            (5..7, &[], Some(6), Some(16), "Wrote 2 blocks, 5 to 6. 10 blocks remain: run the command again."),
            (
                5..7,
                &[7, 8],
                Some(8),
                Some(8),
                "Wrote 2 blocks, 5 to 8. Skipped 2 blocks that the service does not have. That is the latest finalized \
                 block.",
            ),
        ];
        for (written, skipped, last, latest, sentence) in table {
            assert_eq!(summary(written, skipped, last, latest).sentence(), format!("{sentence}{balance}"));
        }
    }

    #[test]
    fn programs_get_a_document_with_every_digit() {
        let mut out = Vec::new();
        summary(5..7, &[7], Some(7), Some(9)).write_json(&mut out).unwrap();
        let expected = r#"{"written":2,"first_block":5,"last_block":7,"latest_block":9,"remaining":2,"missing":[7],"credit_balance":0.00130}"#;
        assert_eq!(String::from_utf8(out).unwrap(), format!("{expected}\n"));
    }
}
