//! Reports: usage of all accounts, payments that were credited, and the audit log.

use http::Method;
use metering_core::store::Cursor;

use super::register;
use crate::administration::Administration;
use crate::call::{Bounded, Call, EntryNumber, Nothing, Viewer, parameters};
use crate::error::AdminError;
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
}

parameters! {
    /// Which payments.
    PaymentsPage {
        /// Where to continue
        after: Option<Cursor>,
        /// Maximum number of payments, 100 by default
        limit: Bounded<100, 1000>,
    }
}

parameters! {
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

/// The usage of all accounts, in total.
#[derive(Debug)]
pub struct ListUsage;

impl Call for ListUsage {
    const ID: &str = "usage";
    const METHOD: Method = Method::GET;
    const PATH: &str = "/admin/usage";
    const TAG: &str = "reports";
    const SUMMARY: &str = "The usage of all accounts, in total";
    const DESCRIPTION: &str =
        "UTC days; each account's totals are from one moment. Reads the usage of every account of the page.";
    const SUCCESS: (u16, &str) = (200, "The usage of accounts");
    type By = Viewer;
    type Parameters = UsagePage;
    type Body = Nothing;
    type Reply = AccountsUsageDocument;

    async fn run(
        admin: &Administration,
        _by: &Viewer,
        page: UsagePage,
        _body: Nothing,
    ) -> Result<AccountsUsageDocument, AdminError> {
        admin.usage_of_accounts(page.days.0, page.after.as_ref(), page.limit.0).await
    }
}

/// The payments that were credited, in the order recorded.
#[derive(Debug)]
pub struct ListPayments;

impl Call for ListPayments {
    const ID: &str = "payments";
    const METHOD: Method = Method::GET;
    const PATH: &str = "/admin/payments";
    const TAG: &str = "payments";
    const SUMMARY: &str = "The payments that were credited, in the order recorded";
    const SUCCESS: (u16, &str) = (200, "Payments");
    type By = Viewer;
    type Parameters = PaymentsPage;
    type Body = Nothing;
    type Reply = PaymentRecordsDocument;

    async fn run(
        admin: &Administration,
        _by: &Viewer,
        page: PaymentsPage,
        _body: Nothing,
    ) -> Result<PaymentRecordsDocument, AdminError> {
        let records = admin.payments(page.after.as_ref(), page.limit.0).await?;
        Ok(PaymentRecordsDocument::new(&records, &admin.plans().await?))
    }
}

/// The audit log, newest entry first.
#[derive(Debug)]
pub struct ListAudit;

impl Call for ListAudit {
    const ID: &str = "audit";
    const METHOD: Method = Method::GET;
    const PATH: &str = "/admin/audit";
    const TAG: &str = "audit";
    const SUMMARY: &str = "The audit log, newest entry first";
    const DESCRIPTION: &str = "If `next` is not null, older entries follow: send it as `before`.";
    const SUCCESS: (u16, &str) = (200, "Entries");
    type By = Viewer;
    type Parameters = AuditPage;
    type Body = Nothing;
    type Reply = AuditDocument;

    async fn run(
        admin: &Administration,
        _by: &Viewer,
        page: AuditPage,
        _body: Nothing,
    ) -> Result<AuditDocument, AdminError> {
        admin.audit_log(page.subject.as_deref(), page.before.map(|entry| entry.0), page.limit.0).await
    }
}
