//! Reports: usage of all accounts, payments that were credited, and the audit log.

use metering_core::parameters;
use metering_core::store::Cursor;
use metering_core::wire::call::{Bounded, EntryNumber};

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
        /// Where to continue
        after: Option<Cursor>,
        /// Maximum number of payments, 100 by default
        limit: Bounded<100, 1000>,
    }

    /// Which entries of the audit log.
    AuditPage {
        /// Only entries about this, such as an account's id
        subject: Option<String>,
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
    /// The payments that were credited, in the order recorded
    ListPayments("payments") = GET "/admin/payments" in "payments";
    returns(200, "Payments");
    async fn run(admin, _by: Viewer, page: PaymentsPage, _body: ()) -> PaymentRecordsDocument {
        let records = admin.payments(page.after.as_ref(), page.limit.0).await?;
        Ok(PaymentRecordsDocument::new(&records, &admin.plans().await?))
    }
}

call! {
    /// The audit log, newest entry first
    ///
    /// If `next` is not null, older entries follow: send it as `before`.
    ListAudit("audit") = GET "/admin/audit" in "audit";
    returns(200, "Entries");
    async fn run(admin, _by: Viewer, page: AuditPage, _body: ()) -> AuditDocument {
        admin.audit_log(page.subject.as_deref(), page.before.map(|entry| entry.0), page.limit.0).await
    }
}
