//! Recurring credits in the model.

use metering_core::clock::{Day, Timestamp};
use metering_core::money::{LedgerKind, NewLedgerEntry, Refill};
use metering_core::store::Refilled;

use super::recorded::Rule;
use super::{Model, credits};

impl Model {
    pub(crate) fn set_refill(&mut self, refill: Option<Refill>) {
        self.rule = refill.map(|refill| Rule { refill, turns: None });
    }

    /// Gives the next `limit` accounts their turn.
    pub(crate) fn refill_accounts(&mut self, now: Timestamp, limit: usize) -> Refilled {
        let mut refilled = Refilled::NOTHING;
        let Some(Rule { refill, turns }) = &mut self.rule else { return refilled };
        let (refill, period) = (*refill, refill.every.first_day(now.day()));
        let (newest, begin) = turns.unwrap_or((period, 0));
        let begin = if newest < period { 0 } else { begin };
        // Accounts that were created after the period was done wait for the next one.
        if newest > period || begin == usize::MAX {
            return refilled;
        }
        let end = self.owners.len().min(begin + limit);
        refilled.is_done = end == self.owners.len();
        *turns = Some((period, if refilled.is_done { usize::MAX } else { end }));
        for number in begin..end {
            if let Some(atoms) = self.take_turn(number, &refill, period, now) {
                refilled.add(credits(atoms));
            }
        }
        refilled
    }

    fn take_turn(&mut self, number: usize, refill: &Refill, period: Day, now: Timestamp) -> Option<i128> {
        let owner = &mut self.owners[number];
        let last = owner.last_turn.unwrap_or_else(|| owner.made.created_at.day());
        if !owner.is_live() || last >= period {
            return None;
        }
        owner.last_turn = Some(now.day());
        let room = i128::from(refill.cap.atoms()) - owner.balance() - owner.held();
        let atoms = room.min(i128::from(refill.credits.atoms()));
        if atoms <= 0 {
            return None;
        }
        let description = format!("Refill for the period from {period}");
        let entry = NewLedgerEntry::new(LedgerKind::Refill, credits(atoms), description);
        if !owner.add(&[entry], now) {
            return None;
        }
        owner.lower_balance();
        self.ledger.extend(owner.entries.last().map(|entry| (number, entry.clone())));
        Some(atoms)
    }
}
