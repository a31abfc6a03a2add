//! Reports for operators: the business, an account's records, and the audit log.

use metering_core::access::AccountId;
use metering_core::clock::Day;
use metering_core::money::LedgerEntry;
use metering_core::operators::{AuditId, AuditQuery, PaymentFilter, Period};
use metering_core::payments::PaymentRecord;
use metering_core::service::lifetime_events;
use metering_core::store::{Cursor, Page};
use metering_core::usage::{DayRange, UsageReport};
use metering_core::wire::{ActivityDocument, LedgerDocument, UsageSummary};

use crate::administration::{Administration, no_account};
use crate::error::AdminError;
use crate::wire::{
    AccountUsageDocument, AccountsUsageDocument, AuditDocument, AuditEntryDocument, ReportDocument,
    VerificationDocument,
};

/// How many ledger entries are read at a time.
const PAGE: u32 = 1_000;

impl Administration {
    /// The business of `days` UTC days, until and with `last`: by default today.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn report(&self, days: u32, last: Option<Day>) -> Result<ReportDocument, AdminError> {
        let days = DayRange::last_days(last.map_or_else(|| self.clock.now(), Day::start), days);
        Ok(ReportDocument::new(days, self.store.operations_report(days).await?))
    }

    /// The usage of an account over the last `days` UTC days, today included.
    ///
    /// # Errors
    /// [`AdminError::NoSuchAccount`], or when the store fails.
    pub async fn usage(&self, id: &AccountId, days: u32) -> Result<UsageReport, AdminError> {
        let days = DayRange::last_days(self.clock.now(), days);
        self.store.usage_report(id, days).await?.ok_or_else(|| no_account(id))
    }

    /// The usage of an account over the last `days` UTC days, by day, route and key, as people see it.
    ///
    /// # Errors
    /// As [`Administration::usage`], and [`AdminError::OutOfRange`] when a sum cannot be held.
    pub async fn usage_summary(&self, id: &AccountId, days: u32) -> Result<UsageSummary, AdminError> {
        let report = self.usage(id, days).await?;
        let (keys, prices) = (self.key_labels(id).await?, self.price_history(days).await?);
        let events = self.lifetime_events(&report, days).await?;
        UsageSummary::new((report, events), &keys, &prices, days).ok_or_else(out_of_range)
    }

    /// The accepted requests of the account's lifetime. `report` is of the last `days` UTC days.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn lifetime_events(&self, report: &UsageReport, days: u32) -> Result<u64, AdminError> {
        let now = self.clock.now();
        Ok(lifetime_events(&*self.store, report, DayRange::last_days(now, days), now).await?)
    }

    /// The totals of accounts over the last `days` UTC days, today included: at most `limit` accounts after `after`,
    /// oldest first.
    ///
    /// One report per account, so that the cost depends on the requested days only; the daily totals would need the
    /// whole history.
    ///
    /// # Errors
    /// [`AdminError::OutOfRange`] when a sum cannot be held, or when the store fails, or `after` is not a cursor of
    /// this list.
    pub async fn usage_of_accounts(
        &self,
        days: u32,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<AccountsUsageDocument, AdminError> {
        let page = self.store.accounts(after, limit).await?;
        let mut accounts = Vec::with_capacity(page.items.len());
        for account in &page.items {
            let report = self.usage(&account.id, days).await?;
            accounts.push(AccountUsageDocument::new(&report).ok_or_else(out_of_range)?);
        }
        let next = page.next.as_ref().map(Cursor::as_str).map(ToOwned::to_owned);
        Ok(AccountsUsageDocument { window_days: days, accounts, next })
    }

    /// Adds up the books of every account, and checks the store as far as it can be checked while it is in use.
    ///
    /// # Errors
    /// When the store fails or is damaged.
    pub async fn verify(&self) -> Result<VerificationDocument, AdminError> {
        Ok(VerificationDocument::from(&self.store.verify().await?))
    }

    /// The recent activity of an account, newest first, at most `limit` entries.
    ///
    /// # Errors
    /// [`AdminError::NoSuchAccount`], or when the store fails.
    pub async fn activity(&self, id: &AccountId, limit: u32) -> Result<ActivityDocument, AdminError> {
        let account = self.account(id).await?;
        let keys = self.store.key_labels(id).await?.into_iter().collect();
        Ok(ActivityDocument::new(&account.id, self.store.activity(id, limit).await?, &keys))
    }

    /// The ledger of an account, oldest entry first, at most `limit` entries after the one with the number `after`.
    ///
    /// # Errors
    /// [`AdminError::NoSuchAccount`], or when the store fails.
    pub async fn ledger(&self, id: &AccountId, after: Option<i64>, limit: u32) -> Result<LedgerDocument, AdminError> {
        let account = self.account(id).await?;
        let after = after.map(|number| Cursor::new(number.to_string()));
        let page = self.store.account_ledger(id, after.as_ref(), limit).await?;
        let next = next_entry(&page);
        Ok(LedgerDocument::new(&account.id, page.items, next))
    }

    /// The same, newest entry first, of those written in a period: at most `limit` entries before the one with the number
    /// `before`.
    ///
    /// # Errors
    /// [`AdminError::NoSuchAccount`], or when the store fails.
    pub async fn newest_ledger(
        &self,
        id: &AccountId,
        written: Period,
        before: Option<i64>,
        limit: u32,
    ) -> Result<LedgerDocument, AdminError> {
        let account = self.account(id).await?;
        let before = before.map(|number| Cursor::new(number.to_string()));
        let page = self.store.newest_entries(id, written, before.as_ref(), limit).await?;
        let next = next_entry(&page);
        Ok(LedgerDocument::new(&account.id, page.items, next))
    }

    /// The payments of an account, in the order credited.
    ///
    /// # Errors
    /// [`AdminError::NoSuchAccount`], or when the store fails.
    pub async fn payments_of(&self, id: &AccountId) -> Result<Vec<PaymentRecord>, AdminError> {
        self.account(id).await?;
        let (mut records, mut after) = (Vec::<PaymentRecord>::new(), None);
        loop {
            let page = self.store.account_ledger(id, after.as_ref(), PAGE).await?;
            for payment in page.items.into_iter().filter_map(|entry| entry.payment) {
                if records.iter().all(|record| record.payment.tx != payment.tx)
                    && let Some(record) = self.store.payment(&payment.tx).await?
                {
                    records.push(record);
                }
            }
            after = page.next;
            if after.is_none() {
                return Ok(records);
            }
        }
    }

    /// The payments that were credited, in the order recorded, at most `limit` after `after`.
    ///
    /// # Errors
    /// When the store fails, or `after` is not a cursor of this list.
    pub async fn payments(&self, after: Option<&Cursor>, limit: u32) -> Result<Page<PaymentRecord>, AdminError> {
        Ok(self.store.payments(after, limit).await?)
    }

    /// The same, newest first, limited to those that match `filter`.
    ///
    /// # Errors
    /// When the store fails, or `after` is not a cursor of this list.
    pub async fn newest_payments(
        &self,
        filter: &PaymentFilter,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<PaymentRecord>, AdminError> {
        Ok(self.store.newest_payments(filter, after, limit).await?)
    }

    /// The audit log, newest entry first, at most `limit` entries: all, or those about `subject`, before the entry with
    /// the number `before`.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn audit_log(
        &self,
        subject: Option<&str>,
        before: Option<i64>,
        limit: u32,
    ) -> Result<AuditDocument, AdminError> {
        let subject = subject.map(str::to_owned);
        let query = AuditQuery { subject, before: before.map(AuditId), ..AuditQuery::default() };
        self.audit_entries(query, limit).await
    }

    /// The entries of the audit log that match a query, newest first, at most `limit`.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn audit_entries(&self, query: AuditQuery, limit: u32) -> Result<AuditDocument, AdminError> {
        let mut entries = self.store.audit_log(&query, limit.saturating_add(1)).await?;
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        let more = entries.len() > most;
        entries.truncate(most);
        let next = entries.last().filter(|_| more).map(|entry| entry.id.0);
        Ok(AuditDocument { entries: entries.into_iter().map(AuditEntryDocument::from).collect(), next })
    }
}

/// The number of the entry to continue from.
fn next_entry(page: &Page<LedgerEntry>) -> Option<i64> {
    page.next.as_ref().and(page.items.last()).map(|entry| entry.id)
}

fn out_of_range() -> AdminError {
    AdminError::OutOfRange("the sum of the usage is out of range; request fewer days".to_owned())
}
