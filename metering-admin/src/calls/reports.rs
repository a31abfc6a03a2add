//! Reports: usage of all accounts, payments that were credited, and the audit log.

use metering_core::access::AccountId;
use metering_core::clock::Day;
use metering_core::operators::{AuditId, AuditQuery, ListOrder, PaymentFilter, PaymentState, Period};
use metering_core::parameters;
use metering_core::store::Cursor;
use metering_core::wire::call::{Bounded, EntryNumber};

use super::accounts::is_newest_first;
use super::register::register;
use crate::call::{Viewer, call};
use crate::wire::{AccountsUsageDocument, AuditDocument, PaymentRecordsDocument};

register!(ListUsage, ListPayments, ListAudit);

parameters! {
    /// Usage of how many days, and of which accounts.
    UsagePage {
        /// UTC days including today, 30 by default
        days: Bounded<30, 36500>,
        /// Where to continue
        after: Option<Cursor>,
        /// Maximum number of accounts, 100 by default
        limit: Bounded<100, 1000>,
    }

    /// Which payments.
    PaymentsPage {
        /// `oldest` first, the default, or `newest` first
        order: Option<ListOrder>,
        /// Only payments recorded on this UTC day or later; newest first only
        from: Option<Day>,
        /// Only payments recorded on this UTC day or earlier; newest first only
        to: Option<Day>,
        /// Only payments in this state: `unsettled`, `final` or `reversed`; newest first only
        state: Option<PaymentState>,
        /// Only payments of this account; newest first only
        account: Option<AccountId>,
        /// Only payments on the chain with this id, 0 for those that a processor took; newest first only
        chain_id: Option<u64>,
        /// Where to continue
        after: Option<Cursor>,
        /// Maximum number of payments, 100 by default
        limit: Bounded<100, 1000>,
    }

    /// Which entries of the audit log.
    AuditPage {
        /// Only entries about this, such as an account's id
        subject: Option<String>,
        /// Only this kind of action, such as `account.grant`
        action: Option<String>,
        /// Only entries of this UTC day or later
        from: Option<Day>,
        /// Only entries of this UTC day or earlier
        to: Option<Day>,
        /// The number of the entry to continue before
        before: Option<EntryNumber>,
        /// Maximum number of entries, 100 by default
        limit: Bounded<100, 10000>,
    }
}

call! {
    /// The usage of all accounts, in total
    ///
    /// UTC days; each account's totals are from one moment. Reads the usage of every account of the page.
    ListUsage("usage") = GET "/admin/usage" in "reports";
    returns(200, "The usage of accounts");
    async fn run(admin, _by: Viewer, page: UsagePage, _body: ()) -> AccountsUsageDocument {
        admin.usage_of_accounts(page.days.0, page.after.as_ref(), page.limit.0).await
    }
}

call! {
    /// The payments that were credited, in the order recorded, or newest first
    ListPayments("payments") = GET "/admin/payments" in "payments";
    returns(200, "Payments");
    async fn run(admin, _by: Viewer, page: PaymentsPage, _body: ()) -> PaymentRecordsDocument {
        let PaymentsPage { order, from, to, state, account, chain_id, after, limit } = page;
        let filter = PaymentFilter { recorded: Period::of_days(from, to), state, account, chain_id };
        if !is_newest_first(order, filter != PaymentFilter::default())? {
            let records = admin.payments(after.as_ref(), limit.0).await?;
            return Ok(PaymentRecordsDocument::new(&records, &admin.plans().await?));
        }
        let records = admin.newest_payments(&filter, after.as_ref(), limit.0).await?;
        let mut document = PaymentRecordsDocument::new(&records, &admin.plans().await?);
        let accounts = document.payments.iter().map(|payment| &*payment.org_id);
        document.agent_names = admin.agent_names(accounts.collect()).await?;
        Ok(document)
    }
}

call! {
    /// The audit log, newest entry first
    ///
    /// If `next` is not null, older entries follow: send it as `before`.
    ListAudit("audit") = GET "/admin/audit" in "audit";
    returns(200, "Entries");
    async fn run(admin, _by: Viewer, page: AuditPage, _body: ()) -> AuditDocument {
        let AuditPage { subject, action, from, to, before, limit } = page;
        let before = before.map(|entry| AuditId(entry.0));
        admin.audit_entries(AuditQuery { subject, before, action, at: Period::of_days(from, to) }, limit.0).await
    }
}
