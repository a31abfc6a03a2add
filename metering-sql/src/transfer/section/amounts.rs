//! The amounts in records, which a move adds up on both sides.

use metering_core::money::Credits;

use super::Record;

impl Record {
    /// Its amounts of credits, by name, for the sums.
    #[must_use]
    pub fn amounts(&self) -> Vec<(&'static str, Credits)> {
        match self {
            Self::Account(record) => {
                let totals = record.account.totals;
                vec![
                    ("balance", totals.balance),
                    ("purchased", totals.purchased),
                    ("granted", totals.granted),
                    ("used", totals.used),
                    ("held", totals.held),
                ]
            }
            Self::Ledger(record) => vec![("amount", record.entry.amount)],
            Self::Usage(total) => vec![("credits_used", total.credits_used)],
            Self::SentUsage(row) => vec![("sent", row.sent.credits)],
            Self::Activity(record) => vec![("amount", record.amount)],
            Self::Idempotency(record) => vec![("charged", record.result.charged)],
            Self::Hold(hold) => vec![("held", hold.held())],
            Self::Key(record) => vec![("spent", record.meter.map_or(Credits::ZERO, |meter| meter.spent.amount))],
            Self::Move(moved) => vec![("moved", moved.amount)],
            Self::Authorization(record) => vec![("credits", record.credits)],
            Self::Quote(quote) => vec![("credits", quote.credits), ("bonus_credits", quote.bonus_credits)],
            _ => Vec::new(),
        }
    }
}
