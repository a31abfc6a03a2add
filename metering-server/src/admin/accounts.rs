//! Accounts: lists, shows and changes them.

use http::StatusCode;
use metering_core::AccountId;
use metering_core::administration::Action;
use metering_core::store::Cursor;
use metering_core::wire::admin::{
    AccountDocument, AccountsDocument, CreateAccountRequest, CreatedAccountDocument, EntryRequest, LimitsRequest,
    ReasonRequest,
};
use metering_core::wire::{ActivityDocument, ErrorBody, LedgerDocument, PaymentRecordsDocument, UsageSummary};

use super::app::AdminApp;
use crate::endpoints::query::{EntryNumber, optional};
use crate::endpoints::{Request, body};
use crate::http::{Problem, Reply, json};

use super::reports::{limit, usage_days};

/// Accounts in the order of creation
///
/// With `search`, those whose id, agent name, email address or wallet contains the text; a search may return more than
/// `limit`. If `next` is not null, more accounts follow: send it as `after`.
#[utoipa::path(get, path = "/admin/accounts", tag = "accounts", security(("operator" = [])), params(
    ("search" = Option<String>, Query, description = "A part of an id, agent name, email address or wallet"),
    ("after" = Option<String>, Query, description = "Where to continue"),
    ("limit" = Option<u32>, Query, description = "Maximum number of accounts, 50 by default", minimum = 1, maximum = 1000),
), responses(
    (status = 200, description = "Accounts", body = AccountsDocument),
    (status = 401, description = "`unauthorized`", body = ErrorBody),
))]
pub(super) async fn accounts(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    app.viewer(&request).await?;
    let search: Option<String> = optional(&request.query, "search")?;
    let after: Option<String> = optional(&request.query, "after")?;
    let limit = limit(&request.query, 50, 1_000)?;
    let page = app.administration.accounts(search.as_deref(), after.map(Cursor::new).as_ref(), limit).await?;
    let next = page.next.map(|cursor| cursor.as_str().to_owned());
    let accounts = page.items.iter().map(AccountDocument::from).collect();
    Ok(json(StatusCode::OK, &AccountsDocument { accounts, next }))
}

/// Create an account
///
/// The response has the account's key. It is in no other response.
#[utoipa::path(post, path = "/admin/accounts", tag = "accounts", security(("operator" = [])),
    request_body = CreateAccountRequest, responses(
    (status = 201, description = "The account and its key", body = CreatedAccountDocument),
    (status = 400, description = "`validation_failed`", body = ErrorBody),
    (status = 409, description = "`conflict`: the email address is taken", body = ErrorBody),
))]
pub(super) async fn create_account(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    let wanted: CreateAccountRequest = app.read(&request).await?;
    let action = app.action(&request, &wanted.reason).await?;
    let (account, key) = app.administration.create_account(&action, &wanted).await?;
    Ok(json(StatusCode::CREATED, &CreatedAccountDocument::new(key, &account)))
}

/// An account
#[utoipa::path(get, path = "/admin/accounts/{id}", tag = "accounts", security(("operator" = [])), params(
    ("id" = String, Path, description = "The account's id"),
), responses(
    (status = 200, description = "The account", body = AccountDocument),
    (status = 404, description = "`not_found`", body = ErrorBody),
))]
pub(super) async fn account(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    app.viewer(&request).await?;
    let account = app.administration.account(&id(&request)?).await?;
    Ok(json(StatusCode::OK, &AccountDocument::from(&account)))
}

/// The ledger of an account, oldest entry first
#[utoipa::path(get, path = "/admin/accounts/{id}/ledger", tag = "accounts", security(("operator" = [])), params(
    ("id" = String, Path, description = "The account's id"),
    ("after" = Option<i64>, Query, description = "The number of the entry to continue after"),
    ("limit" = Option<u32>, Query, description = "Maximum number of entries, 100 by default", minimum = 1, maximum = 10000),
), responses(
    (status = 200, description = "Ledger entries", body = LedgerDocument),
    (status = 404, description = "`not_found`", body = ErrorBody),
))]
pub(super) async fn account_ledger(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    app.viewer(&request).await?;
    let after: Option<EntryNumber> = optional(&request.query, "after")?;
    let limit = limit(&request.query, 100, 10_000)?;
    let ledger = app.administration.ledger(&id(&request)?, after.map(|entry| entry.0), limit).await?;
    Ok(json(StatusCode::OK, &ledger))
}

/// The usage of an account by day and by route
#[utoipa::path(get, path = "/admin/accounts/{id}/usage", tag = "accounts", security(("operator" = [])), params(
    ("id" = String, Path, description = "The account's id"),
    ("days" = Option<u32>, Query, description = "UTC days including today, 30 by default", minimum = 1, maximum = 36500),
), responses(
    (status = 200, description = "The usage", body = UsageSummary),
    (status = 404, description = "`not_found`", body = ErrorBody),
))]
pub(super) async fn account_usage(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    app.viewer(&request).await?;
    let days = usage_days(&request.query)?;
    let id = id(&request)?;
    let report = app.administration.usage(&id, days).await?;
    let keys = app.administration.key_labels(&id).await?;
    let prices = app.administration.price_history(days).await?;
    let events = app.administration.lifetime_events(&report, days).await?;
    let summary = UsageSummary::new((report, events), &keys, &prices, days).ok_or_else(Problem::internal)?;
    Ok(json(StatusCode::OK, &summary))
}

/// The recent activity of an account, newest first
#[utoipa::path(get, path = "/admin/accounts/{id}/activity", tag = "accounts", security(("operator" = [])), params(
    ("id" = String, Path, description = "The account's id"),
    ("limit" = Option<u32>, Query, description = "Maximum number of entries, 100 by default", minimum = 1, maximum = 1000),
), responses(
    (status = 200, description = "Recent activity", body = ActivityDocument),
    (status = 404, description = "`not_found`", body = ErrorBody),
))]
pub(super) async fn account_activity(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    app.viewer(&request).await?;
    let limit = limit(&request.query, 100, 1_000)?;
    Ok(json(StatusCode::OK, &app.administration.activity(&id(&request)?, limit).await?))
}

/// The payments of an account, in the order credited
#[utoipa::path(get, path = "/admin/accounts/{id}/payments", tag = "accounts", security(("operator" = [])), params(
    ("id" = String, Path, description = "The account's id"),
), responses(
    (status = 200, description = "Payments", body = PaymentRecordsDocument),
    (status = 404, description = "`not_found`", body = ErrorBody),
))]
pub(super) async fn account_payments(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    app.viewer(&request).await?;
    let records = app.administration.payments_of(&id(&request)?).await?;
    let page = metering_core::store::Page { items: records, next: None };
    let plans = app.administration.plans().await?;
    Ok(json(StatusCode::OK, &PaymentRecordsDocument::new(&page, &plans)))
}

/// Grant credits
#[utoipa::path(post, path = "/admin/accounts/{id}/grant", tag = "accounts", security(("operator" = [])),
    request_body = EntryRequest, params(("id" = String, Path, description = "The account's id")), responses(
    (status = 200, description = "The account afterwards", body = AccountDocument),
    (status = 400, description = "`validation_failed`", body = ErrorBody),
    (status = 404, description = "`not_found`", body = ErrorBody),
    (status = 409, description = "`conflict`: the account is revoked, or cannot hold the credits", body = ErrorBody),
))]
pub(super) async fn grant(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    let (entry, action, id) = entry(app, &request).await?;
    let account = app.administration.grant(&action, &id, &entry).await?;
    Ok(json(StatusCode::OK, &AccountDocument::from(&account)))
}

/// Correct a balance, up or down
#[utoipa::path(post, path = "/admin/accounts/{id}/adjust", tag = "accounts", security(("operator" = [])),
    request_body = EntryRequest, params(("id" = String, Path, description = "The account's id")), responses(
    (status = 200, description = "The account afterwards", body = AccountDocument),
    (status = 400, description = "`validation_failed`", body = ErrorBody),
    (status = 404, description = "`not_found`", body = ErrorBody),
    (status = 409, description = "`conflict`: the account is revoked, or cannot hold the credits", body = ErrorBody),
))]
pub(super) async fn adjust(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    let (entry, action, id) = entry(app, &request).await?;
    let account = app.administration.adjust(&action, &id, &entry).await?;
    Ok(json(StatusCode::OK, &AccountDocument::from(&account)))
}

async fn entry(app: &AdminApp, request: &Request) -> Result<(EntryRequest, Action, AccountId), Problem> {
    let entry: EntryRequest = app.read(request).await?;
    let action = app.action(request, &entry.reason).await?;
    Ok((entry, action, id(request)?))
}

/// Change the rate limits
///
/// A limit that is not given stays as it is. Takes effect immediately.
#[utoipa::path(post, path = "/admin/accounts/{id}/limits", tag = "accounts", security(("operator" = [])),
    request_body = LimitsRequest, params(("id" = String, Path, description = "The account's id")), responses(
    (status = 200, description = "The account afterwards", body = AccountDocument),
    (status = 400, description = "`validation_failed`", body = ErrorBody),
    (status = 404, description = "`not_found`", body = ErrorBody),
))]
pub(super) async fn limits(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    let wanted: LimitsRequest = app.read(&request).await?;
    let action = app.action(&request, &wanted.reason).await?;
    let account = app.administration.set_limits(&action, &id(&request)?, &wanted).await?;
    Ok(json(StatusCode::OK, &AccountDocument::from(&account)))
}

/// Revoke an account and its key permanently
///
/// Its records stay. Revoking it again changes nothing.
#[utoipa::path(post, path = "/admin/accounts/{id}/revoke", tag = "accounts", security(("operator" = [])),
    request_body = ReasonRequest, params(("id" = String, Path, description = "The account's id")), responses(
    (status = 200, description = "The account afterwards", body = AccountDocument),
    (status = 400, description = "`validation_failed`", body = ErrorBody),
    (status = 404, description = "`not_found`", body = ErrorBody),
))]
pub(super) async fn revoke(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    let action = app.bare_action(&request).await?;
    let account = app.administration.revoke_account(&action, &id(&request)?).await?;
    Ok(json(StatusCode::OK, &AccountDocument::from(&account)))
}

/// Replace an account's keys
///
/// The first key gets a new secret, and every other key that can manage keys stops working, all immediately. The response has the new one, which is in no other response.
#[utoipa::path(post, path = "/admin/accounts/{id}/rotate-key", tag = "accounts", security(("operator" = [])),
    request_body = ReasonRequest, params(("id" = String, Path, description = "The account's id")), responses(
    (status = 200, description = "The account and its new key", body = CreatedAccountDocument),
    (status = 400, description = "`validation_failed`", body = ErrorBody),
    (status = 404, description = "`not_found`", body = ErrorBody),
    (status = 409, description = "`conflict`: the account is revoked", body = ErrorBody),
))]
pub(super) async fn rotate_key(app: &AdminApp, request: Request) -> Result<Reply, Problem> {
    let action = app.bare_action(&request).await?;
    let (account, key) = app.administration.rotate_key(&action, &id(&request)?).await?;
    Ok(json(StatusCode::OK, &CreatedAccountDocument::new(key, &account)))
}

fn id(request: &Request) -> Result<AccountId, Problem> {
    request.parameter(0, "id")
}

impl AdminApp {
    /// The body of an action. The caller is authenticated first, so that only operators learn what is wrong with it.
    pub(super) async fn read<T: serde::de::DeserializeOwned>(&self, request: &Request) -> Result<T, Problem> {
        self.viewer(request).await?;
        body::read(&request.body)
    }

    /// An action that needs nothing but a reason.
    pub(super) async fn bare_action(&self, request: &Request) -> Result<Action, Problem> {
        let ReasonRequest { reason } = self.read(request).await?;
        self.action(request, &reason).await
    }
}
