//! Accounts: lists, shows and changes them, and what they did.

use http::Method;
use metering_core::AccountId;
use metering_core::charging::HoldId;
use metering_core::store::{Cursor, Page};
use metering_core::wire::{ActivityDocument, ErrorCode, LedgerDocument, UsageSummary};

use super::{NOT_FOUND, register};
use crate::action::Action;
use crate::administration::Administration;
use crate::call::{Audit, Bounded, Call, EntryNumber, Nothing, Viewer, parameters};
use crate::error::AdminError;
use crate::wire::{
    AccountDocument, AccountRequestDocument, AccountRequestsDocument, AccountsDocument, CreateAccountRequest,
    CreatedAccountDocument, EntryRequest, LimitsRequest, PaymentRecordsDocument, ReasonRequest,
};

register!(
    ListAccounts,
    CreateAccount,
    ShowAccount,
    AccountLedger,
    AccountUsage,
    AccountActivity,
    AccountPayments,
    HeldRequests,
    HeldRequest,
    Grant,
    Adjust,
    SetLimits,
    RevokeAccount,
    RotateAccountKey
);

parameters! {
    /// An account.
    OfAccount {
        /// The account's id
        id: AccountId,
    }
}

parameters! {
    /// Which accounts.
    AccountsPage {
        /// A part of an id, agent name, email address or wallet
        search: Option<String>,
        /// Where to continue
        after: Option<Cursor>,
        /// Maximum number of accounts, 50 by default
        limit: Bounded<50, 1000>,
    }
}

parameters! {
    /// Which ledger entries.
    LedgerPage {
        /// The account's id
        id: AccountId,
        /// The number of the entry to continue after
        after: Option<EntryNumber>,
        /// Maximum number of entries, 100 by default
        limit: Bounded<100, 10000>,
    }
}

parameters! {
    /// Usage of how many days.
    AccountDays {
        /// The account's id
        id: AccountId,
        /// UTC days including today, 30 by default
        days: Bounded<30, 36500>,
    }
}

parameters! {
    /// How many of the newest.
    Newest {
        /// The account's id
        id: AccountId,
        /// Maximum number of entries, 100 by default
        limit: Bounded<100, 1000>,
    }
}

parameters! {
    /// A request.
    OfRequest {
        /// The request's id, from the header `X-BDS-Request-Id`
        id: HoldId,
    }
}

/// Accounts in the order of creation.
#[derive(Debug)]
pub struct ListAccounts;

impl Call for ListAccounts {
    const ID: &str = "accounts";
    const METHOD: Method = Method::GET;
    const PATH: &str = "/admin/accounts";
    const TAG: &str = "accounts";
    const SUMMARY: &str = "Accounts in the order of creation";
    const DESCRIPTION: &str = "With `search`, those whose id, agent name, email address or wallet contains the text; a search may \
        return more than `limit`. If `next` is not null, more accounts follow: send it as `after`.";
    const SUCCESS: (u16, &str) = (200, "Accounts");
    type By = Viewer;
    type Parameters = AccountsPage;
    type Body = Nothing;
    type Reply = AccountsDocument;

    async fn run(
        admin: &Administration,
        _by: &Viewer,
        page: AccountsPage,
        _body: Nothing,
    ) -> Result<AccountsDocument, AdminError> {
        let found = admin.accounts(page.search.as_deref(), page.after.as_ref(), page.limit.0).await?;
        let next = found.next.map(|cursor| cursor.as_str().to_owned());
        Ok(AccountsDocument { accounts: found.items.iter().map(AccountDocument::from).collect(), next })
    }
}

/// Create an account.
#[derive(Debug)]
pub struct CreateAccount;

impl Call for CreateAccount {
    const ID: &str = "create_account";
    const METHOD: Method = Method::POST;
    const PATH: &str = "/admin/accounts";
    const TAG: &str = "accounts";
    const SUMMARY: &str = "Create an account";
    const DESCRIPTION: &str = "The response has the account's key. It is in no other response.";
    const AUDIT: Option<Audit> = Some(Audit { name: "account.create", label: "Created an account" });
    const SUCCESS: (u16, &str) = (201, "The account and its key");
    const REFUSALS: &[(ErrorCode, &str)] = &[(ErrorCode::Conflict, "the email address is taken")];
    type By = Action;
    type Parameters = ();
    type Body = CreateAccountRequest;
    type Reply = CreatedAccountDocument;

    async fn run(
        admin: &Administration,
        by: &Action,
        (): (),
        wanted: CreateAccountRequest,
    ) -> Result<CreatedAccountDocument, AdminError> {
        let (account, key) = admin.create_account(by, &wanted).await?;
        Ok(CreatedAccountDocument::new(key, &account))
    }
}

/// An account.
#[derive(Debug)]
pub struct ShowAccount;

impl Call for ShowAccount {
    const ID: &str = "account";
    const METHOD: Method = Method::GET;
    const PATH: &str = "/admin/accounts/{id}";
    const TAG: &str = "accounts";
    const SUMMARY: &str = "An account";
    const SUCCESS: (u16, &str) = (200, "The account");
    const REFUSALS: &[(ErrorCode, &str)] = &[NOT_FOUND];
    type By = Viewer;
    type Parameters = OfAccount;
    type Body = Nothing;
    type Reply = AccountDocument;

    async fn run(
        admin: &Administration,
        _by: &Viewer,
        of: OfAccount,
        _body: Nothing,
    ) -> Result<AccountDocument, AdminError> {
        Ok(AccountDocument::from(&admin.account(&of.id).await?))
    }
}

/// The ledger of an account, oldest entry first.
#[derive(Debug)]
pub struct AccountLedger;

impl Call for AccountLedger {
    const ID: &str = "account_ledger";
    const METHOD: Method = Method::GET;
    const PATH: &str = "/admin/accounts/{id}/ledger";
    const TAG: &str = "accounts";
    const SUMMARY: &str = "The ledger of an account, oldest entry first";
    const SUCCESS: (u16, &str) = (200, "Ledger entries");
    const REFUSALS: &[(ErrorCode, &str)] = &[NOT_FOUND];
    type By = Viewer;
    type Parameters = LedgerPage;
    type Body = Nothing;
    type Reply = LedgerDocument;

    async fn run(
        admin: &Administration,
        _by: &Viewer,
        page: LedgerPage,
        _body: Nothing,
    ) -> Result<LedgerDocument, AdminError> {
        admin.ledger(&page.id, page.after.map(|entry| entry.0), page.limit.0).await
    }
}

/// The usage of an account by day and by route.
#[derive(Debug)]
pub struct AccountUsage;

impl Call for AccountUsage {
    const ID: &str = "account_usage";
    const METHOD: Method = Method::GET;
    const PATH: &str = "/admin/accounts/{id}/usage";
    const TAG: &str = "accounts";
    const SUMMARY: &str = "The usage of an account by day and by route";
    const SUCCESS: (u16, &str) = (200, "The usage");
    const REFUSALS: &[(ErrorCode, &str)] = &[NOT_FOUND];
    type By = Viewer;
    type Parameters = AccountDays;
    type Body = Nothing;
    type Reply = UsageSummary;

    async fn run(
        admin: &Administration,
        _by: &Viewer,
        of: AccountDays,
        _body: Nothing,
    ) -> Result<UsageSummary, AdminError> {
        admin.usage_summary(&of.id, of.days.0).await
    }
}

/// The recent activity of an account, newest first.
#[derive(Debug)]
pub struct AccountActivity;

impl Call for AccountActivity {
    const ID: &str = "account_activity";
    const METHOD: Method = Method::GET;
    const PATH: &str = "/admin/accounts/{id}/activity";
    const TAG: &str = "accounts";
    const SUMMARY: &str = "The recent activity of an account, newest first";
    const SUCCESS: (u16, &str) = (200, "Recent activity");
    const REFUSALS: &[(ErrorCode, &str)] = &[NOT_FOUND];
    type By = Viewer;
    type Parameters = Newest;
    type Body = Nothing;
    type Reply = ActivityDocument;

    async fn run(
        admin: &Administration,
        _by: &Viewer,
        of: Newest,
        _body: Nothing,
    ) -> Result<ActivityDocument, AdminError> {
        admin.activity(&of.id, of.limit.0).await
    }
}

/// The payments of an account, in the order credited.
#[derive(Debug)]
pub struct AccountPayments;

impl Call for AccountPayments {
    const ID: &str = "account_payments";
    const METHOD: Method = Method::GET;
    const PATH: &str = "/admin/accounts/{id}/payments";
    const TAG: &str = "accounts";
    const SUMMARY: &str = "The payments of an account, in the order credited";
    const SUCCESS: (u16, &str) = (200, "Payments");
    const REFUSALS: &[(ErrorCode, &str)] = &[NOT_FOUND];
    type By = Viewer;
    type Parameters = OfAccount;
    type Body = Nothing;
    type Reply = PaymentRecordsDocument;

    async fn run(
        admin: &Administration,
        _by: &Viewer,
        of: OfAccount,
        _body: Nothing,
    ) -> Result<PaymentRecordsDocument, AdminError> {
        let page = Page { items: admin.payments_of(&of.id).await?, next: None };
        Ok(PaymentRecordsDocument::new(&page, &admin.plans().await?))
    }
}

/// The requests of an account whose credits are held now, newest first.
#[derive(Debug)]
pub struct HeldRequests;

impl Call for HeldRequests {
    const ID: &str = "held_requests";
    const METHOD: Method = Method::GET;
    const PATH: &str = "/admin/accounts/{id}/requests";
    const TAG: &str = "accounts";
    const SUMMARY: &str = "The requests of an account whose credits are held now, newest first";
    const DESCRIPTION: &str = "Their cost is not known yet.";
    const SUCCESS: (u16, &str) = (200, "Requests");
    const REFUSALS: &[(ErrorCode, &str)] = &[NOT_FOUND];
    type By = Viewer;
    type Parameters = Newest;
    type Body = Nothing;
    type Reply = AccountRequestsDocument;

    async fn run(
        admin: &Administration,
        _by: &Viewer,
        of: Newest,
        _body: Nothing,
    ) -> Result<AccountRequestsDocument, AdminError> {
        admin.held_requests(&of.id, of.limit.0).await
    }
}

/// A request whose credits are or were held.
#[derive(Debug)]
pub struct HeldRequest;

impl Call for HeldRequest {
    const ID: &str = "held_request";
    const METHOD: Method = Method::GET;
    const PATH: &str = "/admin/requests/{id}";
    const TAG: &str = "accounts";
    const SUMMARY: &str = "A request whose credits are or were held";
    const DESCRIPTION: &str = "Of any account. A settled request is kept for a day.";
    const SUCCESS: (u16, &str) = (200, "The request");
    const REFUSALS: &[(ErrorCode, &str)] = &[(ErrorCode::ValidationFailed, "not the id of a request"), NOT_FOUND];
    type By = Viewer;
    type Parameters = OfRequest;
    type Body = Nothing;
    type Reply = AccountRequestDocument;

    async fn run(
        admin: &Administration,
        _by: &Viewer,
        of: OfRequest,
        _body: Nothing,
    ) -> Result<AccountRequestDocument, AdminError> {
        admin.request(&of.id).await
    }
}

/// Grant credits.
#[derive(Debug)]
pub struct Grant;

impl Call for Grant {
    const ID: &str = "grant";
    const METHOD: Method = Method::POST;
    const PATH: &str = "/admin/accounts/{id}/grant";
    const TAG: &str = "accounts";
    const SUMMARY: &str = "Grant credits";
    const AUDIT: Option<Audit> = Some(Audit { name: "account.grant", label: "Granted credits" });
    const SUCCESS: (u16, &str) = (200, "The account afterwards");
    const REFUSALS: &[(ErrorCode, &str)] =
        &[NOT_FOUND, (ErrorCode::Conflict, "the account is revoked, or cannot hold the credits")];
    type By = Action;
    type Parameters = OfAccount;
    type Body = EntryRequest;
    type Reply = AccountDocument;

    async fn run(
        admin: &Administration,
        by: &Action,
        of: OfAccount,
        entry: EntryRequest,
    ) -> Result<AccountDocument, AdminError> {
        Ok(AccountDocument::from(&admin.grant(by, &of.id, &entry).await?))
    }
}

/// Correct a balance, up or down.
#[derive(Debug)]
pub struct Adjust;

impl Call for Adjust {
    const ID: &str = "adjust";
    const METHOD: Method = Method::POST;
    const PATH: &str = "/admin/accounts/{id}/adjust";
    const TAG: &str = "accounts";
    const SUMMARY: &str = "Correct a balance, up or down";
    const AUDIT: Option<Audit> = Some(Audit { name: "account.adjust", label: "Adjusted the balance" });
    const SUCCESS: (u16, &str) = (200, "The account afterwards");
    const REFUSALS: &[(ErrorCode, &str)] =
        &[NOT_FOUND, (ErrorCode::Conflict, "the account is revoked, or cannot hold the credits")];
    type By = Action;
    type Parameters = OfAccount;
    type Body = EntryRequest;
    type Reply = AccountDocument;

    async fn run(
        admin: &Administration,
        by: &Action,
        of: OfAccount,
        entry: EntryRequest,
    ) -> Result<AccountDocument, AdminError> {
        Ok(AccountDocument::from(&admin.adjust(by, &of.id, &entry).await?))
    }
}

/// Change the rate limits.
#[derive(Debug)]
pub struct SetLimits;

impl Call for SetLimits {
    const ID: &str = "limits";
    const METHOD: Method = Method::POST;
    const PATH: &str = "/admin/accounts/{id}/limits";
    const TAG: &str = "accounts";
    const SUMMARY: &str = "Change the rate limits";
    const DESCRIPTION: &str = "A limit that is not given stays as it is. Takes effect immediately.";
    const AUDIT: Option<Audit> = Some(Audit { name: "account.limits", label: "Set rate limits" });
    const SUCCESS: (u16, &str) = (200, "The account afterwards");
    const REFUSALS: &[(ErrorCode, &str)] = &[NOT_FOUND];
    type By = Action;
    type Parameters = OfAccount;
    type Body = LimitsRequest;
    type Reply = AccountDocument;

    async fn run(
        admin: &Administration,
        by: &Action,
        of: OfAccount,
        limits: LimitsRequest,
    ) -> Result<AccountDocument, AdminError> {
        Ok(AccountDocument::from(&admin.set_limits(by, &of.id, &limits).await?))
    }
}

/// Revoke an account and its key permanently.
#[derive(Debug)]
pub struct RevokeAccount;

impl Call for RevokeAccount {
    const ID: &str = "revoke";
    const METHOD: Method = Method::POST;
    const PATH: &str = "/admin/accounts/{id}/revoke";
    const TAG: &str = "accounts";
    const SUMMARY: &str = "Revoke an account and its key permanently";
    const DESCRIPTION: &str = "Its records stay. Revoking it again changes nothing.";
    const AUDIT: Option<Audit> = Some(Audit { name: "account.revoke", label: "Revoked the account" });
    const SUCCESS: (u16, &str) = (200, "The account afterwards");
    const REFUSALS: &[(ErrorCode, &str)] = &[NOT_FOUND];
    type By = Action;
    type Parameters = OfAccount;
    type Body = ReasonRequest;
    type Reply = AccountDocument;

    async fn run(
        admin: &Administration,
        by: &Action,
        of: OfAccount,
        _body: ReasonRequest,
    ) -> Result<AccountDocument, AdminError> {
        Ok(AccountDocument::from(&admin.revoke_account(by, &of.id).await?))
    }
}

/// Replace an account's keys.
#[derive(Debug)]
pub struct RotateAccountKey;

impl Call for RotateAccountKey {
    const ID: &str = "rotate_key";
    const METHOD: Method = Method::POST;
    const PATH: &str = "/admin/accounts/{id}/rotate-key";
    const TAG: &str = "accounts";
    const SUMMARY: &str = "Replace an account's keys";
    const DESCRIPTION: &str = "The first key gets a new secret, and every other key that can manage keys stops working, all \
        immediately. The response has the new one, which is in no other response.";
    const AUDIT: Option<Audit> = Some(Audit { name: "account.rotate_key", label: "Rotated the key" });
    const SUCCESS: (u16, &str) = (200, "The account and its new key");
    const REFUSALS: &[(ErrorCode, &str)] = &[NOT_FOUND, (ErrorCode::Conflict, "the account is revoked")];
    type By = Action;
    type Parameters = OfAccount;
    type Body = ReasonRequest;
    type Reply = CreatedAccountDocument;

    async fn run(
        admin: &Administration,
        by: &Action,
        of: OfAccount,
        _body: ReasonRequest,
    ) -> Result<CreatedAccountDocument, AdminError> {
        let (account, key) = admin.rotate_key(by, &of.id).await?;
        Ok(CreatedAccountDocument::new(key, &account))
    }
}
