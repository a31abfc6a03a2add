//! Accounts: lists, shows and changes them, and what they did.

use metering_core::AccountId;
use metering_core::charging::HoldId;
use metering_core::clock::Day;
use metering_core::operators::{AccountFilter, AccountState, ListOrder, Period};
use metering_core::parameters;
use metering_core::store::{Cursor, Page};
use metering_core::wire::call::{Bounded, EntryNumber};
use metering_core::wire::{ActivityDocument, LedgerDocument, UsageSummary};

use super::register::register;
use crate::action::Action;
use crate::call::{Viewer, call};
use crate::error::{AdminError, wrong};
use crate::wire::{
    AccountDocument, AccountFamilyDocument, AccountMembersDocument, AccountRequestDocument, AccountRequestsDocument,
    AccountsDocument, CreateAccountRequest, CreatedAccountDocument, EntryRequest, EraseRequest, ErasureDocument,
    LimitsRequest, NoteRequest, PaymentRecordsDocument, ReasonRequest,
};

register!(
    ListAccounts,
    CreateAccount,
    ShowAccount,
    AccountLedger,
    AccountUsage,
    AccountActivity,
    AccountPayments,
    AccountMembers,
    AccountFamily,
    HeldRequests,
    HeldRequest,
    Grant,
    Adjust,
    SetLimits,
    WriteNote,
    RevokeAccount,
    ShowErasure,
    EraseAccount,
    RotateAccountKey
);

/// Whether a list is requested newest first. Only such a list has filters.
pub(super) fn is_newest_first(order: Option<ListOrder>, is_filtered: bool) -> Result<bool, AdminError> {
    match order {
        Some(ListOrder::Newest) => Ok(true),
        _ if is_filtered => Err(wrong("order", "must be newest for a list with a filter")),
        _ => Ok(false),
    }
}

parameters! {
    /// An account.
    OfAccount {
        /// The account's id
        id: AccountId,
    }

    /// Which accounts.
    AccountsPage {
        /// A part of an id, agent name, email address or wallet
        search: Option<String>,
        /// `oldest` first, the default, or `newest` first
        order: Option<ListOrder>,
        /// Only accounts created on this UTC day or later; newest first only
        from: Option<Day>,
        /// Only accounts created on this UTC day or earlier; newest first only
        to: Option<Day>,
        /// Only accounts in this state: `active` or `revoked`; newest first only
        state: Option<AccountState>,
        /// Where to continue
        after: Option<Cursor>,
        /// Maximum number of accounts, 50 by default
        limit: Bounded<50, 1000>,
    }

    /// Which ledger entries.
    LedgerPage {
        /// The account's id
        id: AccountId,
        /// `oldest` first, the default, or `newest` first
        order: Option<ListOrder>,
        /// Only entries written on this UTC day or later; newest first only
        from: Option<Day>,
        /// Only entries written on this UTC day or earlier; newest first only
        to: Option<Day>,
        /// The number of the entry to continue after
        after: Option<EntryNumber>,
        /// Maximum number of entries, 100 by default
        limit: Bounded<100, 10000>,
    }

    /// Usage of how many days.
    AccountDays {
        /// The account's id
        id: AccountId,
        /// UTC days including today, 30 by default
        days: Bounded<30, 36500>,
    }

    /// Which child accounts.
    ChildrenPage {
        /// The account's id
        id: AccountId,
        /// Where to continue
        after: Option<Cursor>,
        /// Maximum number of accounts, 100 by default
        limit: Bounded<100, 1000>,
    }

    /// How many of the newest.
    Newest {
        /// The account's id
        id: AccountId,
        /// Maximum number of entries, 100 by default
        limit: Bounded<100, 1000>,
    }

    /// An erasure.
    ErasureOf {
        /// The account's id
        id: AccountId,
        /// Whether receipts lose who bought too
        receipts: Option<bool>,
    }

    /// A request.
    OfRequest {
        /// The request's id, from the header `X-BDS-Request-Id` or `X-Request-Id`
        id: HoldId,
    }
}

call! {
    /// Accounts in the order of creation, or newest first
    ///
    /// With `search`, those whose id, agent name, email address or wallet contains the text; a search may return more
    /// than `limit`. If `next` is not null, more accounts follow: send it as `after`. With a filter, a part of the list may
    /// have fewer than `limit`, or none, although more follow.
    ListAccounts("accounts") = GET "/admin/accounts" in "accounts";
    returns(200, "Accounts");
    async fn run(admin, _by: Viewer, page: AccountsPage, _body: ()) -> AccountsDocument {
        let AccountsPage { search, order, from, to, state, after, limit } = page;
        let filter = AccountFilter { name_prefix: None, created: Period::of_days(from, to), state };
        let (search, after) = (search.as_deref(), after.as_ref());
        let found = match is_newest_first(order, !filter.is_open())? {
            true => admin.newest_accounts(search, &filter, after, limit.0).await?,
            false => admin.accounts(search, after, limit.0).await?,
        };
        let next = found.next.map(|cursor| cursor.as_str().to_owned());
        Ok(AccountsDocument { accounts: found.items.iter().map(AccountDocument::from).collect(), next })
    }
}

call! {
    /// Create an account
    ///
    /// The response has the account's key. It is in no other response.
    CreateAccount("create_account") = POST "/admin/accounts" in "accounts";
    audit("account.create", "Created an account");
    returns(201, "The account and its key") or(Conflict: "the email address is taken");
    async fn run(admin, by: Action, _none: (), wanted: CreateAccountRequest) -> CreatedAccountDocument {
        let (account, key) = admin.create_account(by, &wanted).await?;
        Ok(CreatedAccountDocument::new(key, &account))
    }
}

call! {
    /// An account
    ShowAccount("account") = GET "/admin/accounts/{id}" in "accounts";
    returns(200, "The account") or(NotFound);
    async fn run(admin, _by: Viewer, of: OfAccount, _body: ()) -> AccountDocument {
        admin.account_with_notes(&of.id).await
    }
}

call! {
    /// The ledger of an account, oldest or newest entry first
    AccountLedger("account_ledger") = GET "/admin/accounts/{id}/ledger" in "accounts";
    returns(200, "Ledger entries") or(NotFound);
    async fn run(admin, _by: Viewer, page: LedgerPage, _body: ()) -> LedgerDocument {
        let LedgerPage { id, order, from, to, after, limit } = page;
        let (written, after) = (Period::of_days(from, to), after.map(|entry| entry.0));
        match is_newest_first(order, !written.is_open())? {
            true => admin.newest_ledger(&id, written, after, limit.0).await,
            false => admin.ledger(&id, after, limit.0).await,
        }
    }
}

call! {
    /// The usage of an account by day and by route
    AccountUsage("account_usage") = GET "/admin/accounts/{id}/usage" in "accounts";
    returns(200, "The usage") or(NotFound);
    async fn run(admin, _by: Viewer, of: AccountDays, _body: ()) -> UsageSummary {
        admin.usage_summary(&of.id, of.days.0).await
    }
}

call! {
    /// The recent activity of an account, newest first
    AccountActivity("account_activity") = GET "/admin/accounts/{id}/activity" in "accounts";
    returns(200, "Recent activity") or(NotFound);
    async fn run(admin, _by: Viewer, of: Newest, _body: ()) -> ActivityDocument {
        admin.activity(&of.id, of.limit.0).await
    }
}

call! {
    /// The payments of an account, in the order credited
    AccountPayments("account_payments") = GET "/admin/accounts/{id}/payments" in "accounts";
    returns(200, "Payments") or(NotFound);
    async fn run(admin, _by: Viewer, of: OfAccount, _body: ()) -> PaymentRecordsDocument {
        let page = Page { items: admin.payments_of(&of.id).await?, next: None };
        Ok(PaymentRecordsDocument::new(&page, &admin.plans().await?))
    }
}

call! {
    /// The members of an account, and the newest entries of its log
    AccountMembers("account_members") = GET "/admin/accounts/{id}/members" in "accounts";
    returns(200, "Members, open invitations and the log") or(NotFound);
    async fn run(admin, _by: Viewer, of: OfAccount, _body: ()) -> AccountMembersDocument {
        admin.members(&of.id).await
    }
}

call! {
    /// The child accounts of an account, oldest first, and its parent
    ///
    /// If `next` is not null, more accounts follow: send it as `after`.
    AccountFamily("account_children") = GET "/admin/accounts/{id}/children" in "accounts";
    returns(200, "The parent and the children") or(NotFound);
    async fn run(admin, _by: Viewer, page: ChildrenPage, _body: ()) -> AccountFamilyDocument {
        admin.family(&page.id, page.after.as_ref(), page.limit.0).await
    }
}

call! {
    /// The requests of an account whose credits are held now, newest first
    ///
    /// Their cost is still unknown.
    HeldRequests("held_requests") = GET "/admin/accounts/{id}/requests" in "accounts";
    returns(200, "Requests") or(NotFound);
    async fn run(admin, _by: Viewer, of: Newest, _body: ()) -> AccountRequestsDocument {
        admin.held_requests(&of.id, of.limit.0).await
    }
}

call! {
    /// A request, with its charge and the reason
    ///
    /// Of any account. One whose credits were held is kept for a day after it was settled. A request that was charged
    /// immediately is found as long as it is among the account's recent activity; `request.explanation` then has the
    /// reason for the charge.
    HeldRequest("held_request") = GET "/admin/requests/{id}" in "accounts";
    returns(200, "The request") or(ValidationFailed: "not the id of a request", NotFound);
    async fn run(admin, _by: Viewer, of: OfRequest, _body: ()) -> AccountRequestDocument {
        admin.request(&of.id).await
    }
}

call! {
    /// Grant credits
    Grant("grant") = POST "/admin/accounts/{id}/grant" in "accounts";
    audit("account.grant", "Granted credits");
    returns(200, "The account afterwards") or(NotFound, Conflict: "the account is revoked, or cannot hold the credits");
    async fn run(admin, by: Action, of: OfAccount, entry: EntryRequest) -> AccountDocument {
        Ok(AccountDocument::from(&admin.grant(by, &of.id, &entry).await?))
    }
}

call! {
    /// Correct a balance, up or down
    Adjust("adjust") = POST "/admin/accounts/{id}/adjust" in "accounts";
    audit("account.adjust", "Adjusted the balance");
    returns(200, "The account afterwards") or(NotFound, Conflict: "the account is revoked, or cannot hold the credits");
    async fn run(admin, by: Action, of: OfAccount, entry: EntryRequest) -> AccountDocument {
        Ok(AccountDocument::from(&admin.adjust(by, &of.id, &entry).await?))
    }
}

call! {
    /// Change the rate limits
    ///
    /// A limit that is not given is left unchanged. Takes effect immediately.
    SetLimits("limits") = POST "/admin/accounts/{id}/limits" in "accounts";
    audit("account.limits", "Set rate limits");
    returns(200, "The account afterwards") or(NotFound);
    async fn run(admin, by: Action, of: OfAccount, limits: LimitsRequest) -> AccountDocument {
        Ok(AccountDocument::from(&admin.set_limits(by, &of.id, &limits).await?))
    }
}

call! {
    /// Write a note on an account
    ///
    /// For other operators. It is kept in the audit log, so it never changes, and ends with the log's retention or an erasure.
    /// The owner's export has it, without who wrote it. `GET /admin/accounts/{id}` has the newest 100.
    WriteNote("note") = POST "/admin/accounts/{id}/notes" in "accounts";
    audit("account.note", "Wrote a note");
    returns(200, "The account with its notes") or(NotFound);
    async fn run(admin, by: Action, of: OfAccount, request: NoteRequest) -> AccountDocument {
        admin.write_note(by, &of.id, &request.note).await?;
        admin.account_with_notes(&of.id).await
    }
}

call! {
    /// Revoke an account and its key permanently
    ///
    /// Its records stay. Revoking it again changes nothing.
    RevokeAccount("revoke") = POST "/admin/accounts/{id}/revoke" in "accounts";
    audit("account.revoke", "Revoked the account");
    returns(200, "The account afterwards") or(NotFound);
    async fn run(admin, by: Action, of: OfAccount, _body: ReasonRequest) -> AccountDocument {
        Ok(AccountDocument::from(&admin.revoke_account(by, &of.id).await?))
    }
}

call! {
    /// The changes that erasing the owner of an account would make
    ShowErasure("erasure") = GET "/admin/accounts/{id}/erasure" in "accounts";
    returns(200, "The data that would be erased") or(NotFound);
    async fn run(admin, _by: Viewer, of: ErasureOf, _body: ()) -> ErasureDocument {
        admin.erasure(&of.id, of.receipts.unwrap_or_default()).await
    }
}

call! {
    /// Erase the personal data of the owner of an account, permanently
    ///
    /// The account is revoked. It keeps its id, balance, ledger, usage and payments; its name becomes `erased`. Email
    /// address, wallet, names and networks of keys, webhooks, events, sessions and paths of requests are gone, and
    /// entries of the audit log about it keep only who did what and when. With `receipts`, receipts lose who bought.
    /// Erasing it again erases only data that came in since.
    EraseAccount("erase") = POST "/admin/accounts/{id}/erase" in "accounts";
    audit("account.erase", "Erased the owner");
    returns(200, "What was erased") or(NotFound);
    async fn run(admin, by: Action, of: OfAccount, request: EraseRequest) -> ErasureDocument {
        admin.erase_account(by, &of.id, &request).await
    }
}

call! {
    /// Replace an account's keys
    ///
    /// The first key gets a new secret, and every other key that can manage keys stops working, all immediately. The
    /// response has the new one, which is in no other response.
    RotateAccountKey("rotate_key") = POST "/admin/accounts/{id}/rotate-key" in "accounts";
    audit("account.rotate_key", "Rotated the key");
    returns(200, "The account and its new key") or(NotFound, Conflict: "the account is revoked");
    async fn run(admin, by: Action, of: OfAccount, _body: ReasonRequest) -> CreatedAccountDocument {
        let (account, key) = admin.rotate_key(by, &of.id).await?;
        Ok(CreatedAccountDocument::new(key, &account))
    }
}
