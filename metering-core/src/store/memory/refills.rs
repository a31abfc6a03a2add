//! Recurring credits on a memory store.

use async_trait::async_trait;

use crate::clock::Timestamp;
use crate::decision::{is_refill_due, refill_account};
use crate::money::refill::Refill;
use crate::store::{MemoryStore, RefillStore, Refilled, StoreError};

#[async_trait]
impl RefillStore for MemoryStore {
    async fn refill(&self) -> Result<Option<Refill>, StoreError> {
        Ok(self.state()?.refill)
    }

    async fn set_refill(&self, refill: Option<Refill>) -> Result<(), StoreError> {
        self.state()?.refill = refill;
        Ok(())
    }

    async fn refill_accounts(&self, now: Timestamp, limit: u32) -> Result<Refilled, StoreError> {
        let mut state = self.state()?;
        let mut refilled = Refilled::NOTHING;
        let Some(refill) = state.refill else { return Ok(refilled) };
        let period = refill.period(now.day());
        let due = |(row, record): (usize, &super::state::Record)| {
            is_refill_due(&record.account, record.refilled_for, period).then_some(row)
        };
        let due: Vec<_> = state.accounts.iter().enumerate().filter_map(due).collect();
        refilled.is_done = due.len() <= limit as usize;
        for row in due.into_iter().take(limit as usize) {
            let changes = refill_account(row, state.accounts[row].account.clone(), &refill, now);
            state.accounts[row].refilled_for = Some(changes.period);
            if let Some(entry) = changes.entry {
                refilled.add(entry.entry.amount);
                state.write_entry(entry);
            }
        }
        Ok(refilled)
    }
}
