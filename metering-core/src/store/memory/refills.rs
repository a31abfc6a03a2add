//! Recurring credits on a memory store.

use async_trait::async_trait;

use crate::clock::Timestamp;
use crate::decision::{RefillProgress, is_refill_due, refill_account};
use crate::money::refill::Refill;
use crate::store::backend::one_more_than;
use crate::store::{MemoryStore, RefillStore, Refilled, StoreError};

#[async_trait]
impl RefillStore for MemoryStore {
    async fn refill(&self) -> Result<Option<Refill>, StoreError> {
        Ok(self.state()?.refill)
    }

    async fn set_refill(&self, refill: Option<Refill>) -> Result<(), StoreError> {
        let mut state = self.state()?;
        (state.refill, state.refill_progress) = (refill, None);
        Ok(())
    }

    async fn refill_accounts(&self, now: Timestamp, limit: u32) -> Result<Refilled, StoreError> {
        let mut state = self.state()?;
        let mut refilled = Refilled::NOTHING;
        let Some(refill) = state.refill else { return Ok(refilled) };
        let period = refill.period(now.day());
        let Some(after) = RefillProgress::position(state.refill_progress, period) else { return Ok(refilled) };
        // Row numbers start at 1, as in databases.
        let numbered = (1..).zip(0..state.accounts.len());
        let limited = usize::try_from(one_more_than(limit)).unwrap_or(usize::MAX);
        let mut rows: Vec<_> = numbered.filter(|(number, _)| *number > after).take(limited).collect();
        let progress = RefillProgress::after_page(period, &mut rows, limit);
        for (_, index) in rows {
            let record = &mut state.accounts[index];
            if !is_refill_due(&record.account, record.refilled_on, period) {
                continue;
            }
            let changes = refill_account(index, record.account.clone(), &refill, now);
            record.refilled_on = Some(changes.refilled_on);
            if let Some(entry) = changes.entry {
                refilled.add(entry.entry.amount);
                state.write_entry(entry);
            }
        }
        state.refill_progress = Some(progress);
        refilled.is_done = progress.after.is_none();
        Ok(refilled)
    }
}
