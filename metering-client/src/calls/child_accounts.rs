//! Child accounts: accounts of a customer's customers.

use metering_core::store::Cursor;
use metering_core::wire::call::Bounded;
use metering_core::wire::{
    ChangeChildRequest, ChildAccountResponse, ChildAccountsDocument, ChildrenUsageDocument, ClosedChildResponse,
    CreateChildRequest, IssuedChildResponse, MoveCreditsRequest, MovedCreditsResponse,
};
use metering_core::{call, parameters};

use super::access::KEY;

parameters! {
    /// A child account.
    OfChild {
        /// The child account's id
        id: String = "org_0123456789abcdefghij",
    }

    /// Which child accounts.
    ChildrenPage {
        /// Maximum number of child accounts, 100 by default
        limit: Bounded<100, 100> = 100,
        /// The value of `next` in the previous response
        after: Option<Cursor>,
    }

    /// Which days.
    ChildrenDays {
        /// Number of UTC days up to today, 30 by default
        days: Bounded<30, 90> = 30,
    }
}

call! {
    /// Create a child account
    ///
    /// With a first key of its own, which is shown only once, and without credits. It has the rate limits of its parent, or
    /// lower ones. To get it again after a lost response, send an `Idempotency-Key` of at least 32 random characters, and
    /// repeat the request with it. For the account's first key and for owners, as all calls that change child accounts.
    CreateChildAccount("create_child_account") = POST "/accounts" in "child_accounts" for KEY;
    takes((), CreateChildRequest, repeatable);
    returns(201, "The child account and its first key": IssuedChildResponse)
        or(ValidationFailed: "also for rate limits above those of the parent",
            NotFound: "this service does not offer child accounts",
            Conflict: "the account is a child itself, or has reached its limit of child accounts",
            IdempotencyKeyUsed: "the account that this `Idempotency-Key` made has another key now", RateLimited,
            OutcomeUnknown);

    /// Child accounts with their balances, oldest first
    ///
    /// Closed ones, too. If `next` is not null, more follow: send it as `after`.
    ListChildAccounts("child_accounts") = GET "/accounts" in "child_accounts" for KEY;
    takes(ChildrenPage, ());
    returns(200, "Child accounts": ChildAccountsDocument)
        or(ValidationFailed, NotFound: "this service does not offer child accounts");

    /// The usage of all child accounts
    ///
    /// By account and by day, read in one snapshot.
    GetChildrenUsage("child_accounts_usage") = GET "/accounts/usage" in "child_accounts" for KEY;
    takes(ChildrenDays, ());
    returns(200, "The usage": ChildrenUsageDocument)
        or(ValidationFailed, NotFound: "this service does not offer child accounts");

    /// A child account
    GetChildAccount("child_account") = GET "/accounts/{id}" in "child_accounts" for KEY;
    takes(OfChild, ());
    returns(200, "The child account": ChildAccountResponse) or(NotFound: "the account has no such child");

    /// Change the limits of a child account
    ///
    /// On requests, on tokens, or both. Takes effect immediately.
    ChangeChildAccount("change_child_account") = PATCH "/accounts/{id}" in "child_accounts" for KEY;
    takes(OfChild, ChangeChildRequest);
    returns(200, "The child account as it is now": ChildAccountResponse)
        or(ValidationFailed: "also for limits above those of the parent",
            NotFound: "the account has no such child, or it is closed", RateLimited, OutcomeUnknown);

    /// Give credits to a child account, or take them back
    ///
    /// Both accounts change in one transaction, and no balance falls below zero by it. The parent can take back at most
    /// the credits that it gave, minus those it took back before. `Idempotency-Key`, of at least 32 random characters,
    /// is required: the same request moves credits once.
    MoveCredits("move_credits") = POST "/accounts/{id}/credits" in "child_accounts" for KEY;
    takes(OfChild, MoveCreditsRequest, repeatable);
    returns(200, "Both balances": MovedCreditsResponse)
        or(NotFound: "the account has no such child, or it is closed",
            Conflict: "the account that would give the credits has too few, or more would be taken back than was given",
            IdempotencyKeyReused: "this `Idempotency-Key` moved something else", RateLimited, OutcomeUnknown);

    /// Replace the keys of a child account
    ///
    /// For a child account whose first key is lost. The old one stops working, and so does every key of the child that
    /// could manage keys. The new one is shown only once.
    RotateChildAccount("rotate_child_account") = POST "/accounts/{id}/rotate" in "child_accounts" for KEY;
    takes(OfChild, ());
    returns(200, "The new key": IssuedChildResponse)
        or(NotFound: "the account has no such child, or it is closed", RateLimited, OutcomeUnknown);

    /// Close a child account
    ///
    /// Its credits return to the parent, and its keys stop working.
    CloseChildAccount("close_child_account") = DELETE "/accounts/{id}" in "child_accounts" for KEY;
    takes(OfChild, ());
    returns(200, "Closed": ClosedChildResponse)
        or(NotFound: "the account has no such child, or it is closed",
            Conflict: "requests of it are in progress, a payment of it is on its way, its balance is below zero, or it has \
                       credits that the parent did not give",
            RateLimited, OutcomeUnknown);
}
