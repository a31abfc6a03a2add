//! Accounts: finds, shows, creates and changes them.

use metering_core::access::{Account, AccountId, ApiKey, Email, EmailStatus, KeyHash, RateLimits};
use metering_core::clock::Timestamp;
use metering_core::money::{Credits, LedgerKind, NewLedgerEntry};
use metering_core::operators::AccountFilter;
use metering_core::store::{Created, Cursor, FullStore, NewAccount, Page, Posted};

use crate::action::{Action, one_line};
use crate::administration::{Administration, locked, missing_or_revoked, no_account};
use crate::audited::{Step, Target, json, nothing, requested};
use crate::call::AdminCall;
use crate::calls::accounts::{Adjust, CreateAccount, Grant, RevokeAccount, RotateAccountKey, SetLimits};
use crate::error::AdminError;
use crate::wire::{AccountDocument, CreateAccountRequest, EntryRequest, LimitsRequest};

/// How many accounts a search reads at a time.
const PAGE: u32 = 1_000;
/// How many such pages a search of the newest reads at most.
const SEARCHED_PAGES: u32 = 50;
/// The note of a grant without its own note.
const GRANT_NOTE: &str = "Granted by the operator";

impl Administration {
    /// Accounts in the order of creation, after `after`: all, at most `limit`, or those that match `search`.
    ///
    /// An account matches if its id, agent name, email address or wallet contains the text. Case does not matter. A
    /// search reads whole pages of accounts until it has `limit`, so it may return more.
    ///
    /// # Errors
    /// When the store fails, or `after` is not a cursor of this list.
    pub async fn accounts(
        &self,
        search: Option<&str>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Account>, AdminError> {
        let search = search.map(|text| text.trim().to_lowercase()).filter(|text| !text.is_empty());
        let Some(search) = search else { return Ok(self.store.accounts(after, limit).await?) };
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        let (mut items, mut after, mut rows) = (Vec::new(), after.cloned(), limit.min(PAGE));
        loop {
            let page = self.store.accounts(after.as_ref(), rows).await?;
            let found_before = items.len();
            items.extend(page.items.into_iter().filter(|account| matches(account, &search)));
            after = page.next;
            if after.is_none() || items.len() >= most {
                return Ok(Page { items, next: after });
            }
            // Few accounts match: read faster.
            if items.len() == found_before {
                rows = rows.saturating_mul(2).min(PAGE);
            }
        }
    }

    /// The same, newest first, limited to those that match `filter`. A page may have fewer than `limit`, or none,
    /// although a next one follows.
    ///
    /// # Errors
    /// When the store fails, or `after` is not a cursor of this list.
    pub async fn newest_accounts(
        &self,
        search: Option<&str>,
        filter: &AccountFilter,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Account>, AdminError> {
        let search = search.map(|text| text.trim().to_lowercase()).filter(|text| !text.is_empty());
        let Some(search) = search else { return Ok(self.store.newest_accounts(filter, after, limit).await?) };
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        let (mut items, mut after) = (Vec::new(), after.cloned());
        for _ in 0..SEARCHED_PAGES {
            let page = self.store.newest_accounts(filter, after.as_ref(), PAGE).await?;
            items.extend(page.items.into_iter().filter(|account| matches(account, &search)));
            after = page.next;
            if after.is_none() || items.len() >= most {
                break;
            }
        }
        Ok(Page { items, next: after })
    }

    /// The account that holds an email address. If none does, the newest that waits for its verification, for which this
    /// reads all accounts. Revoked accounts are ignored.
    ///
    /// # Errors
    /// [`AdminError::NotFound`], or when the store fails.
    pub async fn account_by_email(&self, email: &Email) -> Result<Account, AdminError> {
        if let Some(holder) = self.store.account_by_email(email).await? {
            return Ok(holder);
        }
        let (mut after, mut newest) = (None, None);
        loop {
            let page = self.store.accounts(after.as_ref(), PAGE).await?;
            let wanted = |account: &Account| account.revoked_at.is_none() && account.email.as_ref() == Some(email);
            newest = page.items.into_iter().rfind(wanted).or(newest);
            if page.next.is_none() {
                return newest.ok_or_else(|| {
                    AdminError::NotFound(format!(
                        "no account has the email address {email}; revoked accounts are ignored"
                    ))
                });
            }
            after = page.next;
        }
    }

    /// Creates an account with its key. The store keeps only a hash of the key.
    ///
    /// # Errors
    /// [`AdminError::Invalid`], [`AdminError::Conflict`] when another account has the email address, or when the store
    /// fails.
    pub async fn create_account(
        &self,
        action: &Action,
        request: &CreateAccountRequest,
    ) -> Result<(Account, ApiKey), AdminError> {
        let credits = request.credits.unwrap_or_default();
        if credits.is_negative() {
            return Err(AdminError::Invalid("credits must not be negative".to_owned()));
        }
        let email: Option<Email> = match request.email.as_deref().map(str::trim).filter(|text| !text.is_empty()) {
            Some(text) => Some(text.parse().map_err(|error| AdminError::Invalid(format!("email: {error}")))?),
            None => None,
        };
        let agent_name = request.agent_name.parse();
        let agent_name = agent_name.map_err(|error| AdminError::Invalid(format!("agent_name {error}")))?;
        let key = ApiKey::generate(&*self.randomness);
        let initial = NewLedgerEntry::new(LedgerKind::Adjustment, credits, "Initial credits");
        let account = NewAccount {
            id: AccountId::generate(&*self.randomness),
            agent_name,
            email,
            email_status: EmailStatus::Unchecked,
            payer: None,
            limits: changed(RateLimits::default(), request.requests_per_minute, request.requests_per_day),
            key: key.hash(),
            entries: if credits.is_positive() { vec![initial] } else { Vec::new() },
            created_at: self.clock.now(),
        };
        let asked = requested(&CreateAccountRequest { reason: String::new(), ..request.clone() });
        let target = Target::of::<CreateAccount>(&account.id, action).asked(asked);
        let create: Step<(NewAccount, Option<u32>), _, _> = |store, (new, tokens)| {
            Box::pin(async move {
                match store.create_account(new.clone()).await? {
                    Created::Account(account) => with_token_limit(store, account, *tokens).await,
                    Created::EmailTaken => {
                        let email = new.email.as_ref().map(ToString::to_string).unwrap_or_default();
                        Err(AdminError::Conflict(format!("{email} belongs to another account")))
                    }
                    // Cannot happen: accounts created here have no payer.
                    Created::PayerTaken => {
                        Err(AdminError::Conflict("the payer's wallet has another account".to_owned()))
                    }
                    Created::OutOfRange => {
                        Err(AdminError::OutOfRange("credits is more than a balance can hold".to_owned()))
                    }
                }
            })
        };
        let args = (account, request.tokens_per_minute);
        Ok((self.audited(target, args, nothing, create, described).await?, key))
    }

    /// Grants credits.
    ///
    /// # Errors
    /// [`AdminError::Invalid`] when the credits are not above zero, [`AdminError::NoSuchAccount`], [`AdminError::Conflict`]
    /// when the account is revoked, [`AdminError::OutOfRange`], or when the store fails.
    pub async fn grant(&self, action: &Action, id: &AccountId, grant: &EntryRequest) -> Result<Account, AdminError> {
        if !grant.credits.is_positive() {
            return Err(AdminError::Invalid("credits must be above zero; to deduct credits, adjust them".to_owned()));
        }
        let note = grant.note.as_deref().unwrap_or(GRANT_NOTE);
        self.post::<Grant>(action, id, grant.credits, note).await
    }

    /// Corrects a balance, up or down. It may go below zero.
    ///
    /// # Errors
    /// As [`Administration::grant`], except that the credits may be negative, and a note is required.
    pub async fn adjust(&self, action: &Action, id: &AccountId, change: &EntryRequest) -> Result<Account, AdminError> {
        if change.credits == Credits::ZERO {
            return Err(AdminError::Invalid("credits must not be zero".to_owned()));
        }
        let note = change.note.as_deref().unwrap_or_default();
        self.post::<Adjust>(action, id, change.credits, note).await
    }

    async fn post<C: AdminCall>(
        &self,
        action: &Action,
        id: &AccountId,
        credits: Credits,
        note: &str,
    ) -> Result<Account, AdminError> {
        let note = one_line("note", note)?;
        let asked = requested(&EntryRequest { credits, note: Some(note.clone()), reason: String::new() });
        let entry = NewLedgerEntry::new(LedgerKind::Adjustment, credits, note);
        let post: Step<(AccountId, NewLedgerEntry, Timestamp), _, _> = |store, (id, entry, now)| {
            Box::pin(async move {
                match store.post_entry(id, entry.clone(), *now).await? {
                    Posted::Account(account) => Ok(account),
                    Posted::NoSuchAccount => Err(missing_or_revoked(store, id).await),
                    Posted::OutOfRange => Err(AdminError::OutOfRange(format!(
                        "{} credits would take the balance of {id} out of range; nothing was written",
                        entry.amount
                    ))),
                }
            })
        };
        let (target, args) = (Target::of::<C>(id, action).asked(asked), (id.clone(), entry, self.clock.now()));
        self.audited(target, args, |store, (id, ..)| Box::pin(before(store, id)), post, described).await
    }

    /// Changes the rate limits; one that is not given is left unchanged. Takes effect immediately.
    ///
    /// # Errors
    /// [`AdminError::NoSuchAccount`], or when the store fails.
    pub async fn set_limits(
        &self,
        action: &Action,
        id: &AccountId,
        limits: &LimitsRequest,
    ) -> Result<Account, AdminError> {
        let limits = LimitsRequest { reason: String::new(), ..limits.clone() };
        let target = Target::of::<SetLimits>(id, action).asked(requested(&limits));
        let set: Step<(AccountId, LimitsRequest), _, _> = |store, (id, limits)| {
            Box::pin(async move {
                let before = locked(store, id).await?.limits;
                let rates = changed(before, limits.requests_per_minute, limits.requests_per_day);
                let account = store.set_limits(id, rates).await?.ok_or_else(|| no_account(id))?;
                with_token_limit(store, account, limits.tokens_per_minute).await
            })
        };
        let args = (id.clone(), limits);
        self.audited(target, args, |store, (id, _)| Box::pin(before(store, id)), set, described).await
    }

    /// Revokes an account and its key permanently. Its records stay. Revoking it again changes nothing.
    ///
    /// # Errors
    /// [`AdminError::NoSuchAccount`], or when the store fails.
    pub async fn revoke_account(&self, action: &Action, id: &AccountId) -> Result<Account, AdminError> {
        let revoke: Step<(AccountId, Timestamp), _, _> = |store, (id, now)| {
            Box::pin(async move { store.revoke_account(id, *now).await?.ok_or_else(|| no_account(id)) })
        };
        let (target, args) = (Target::of::<RevokeAccount>(id, action), (id.clone(), self.clock.now()));
        self.audited(target, args, |store, (id, _)| Box::pin(before(store, id)), revoke, described).await
    }

    /// Replaces the secret of an account's first key, and revokes every other key that can manage keys. All of them stop
    /// working immediately. See [`Administration::rotate_key_by_id`] for one key.
    ///
    /// # Errors
    /// [`AdminError::NoSuchAccount`], [`AdminError::Conflict`] when the account is revoked, or when the store fails.
    pub async fn rotate_key(&self, action: &Action, id: &AccountId) -> Result<(Account, ApiKey), AdminError> {
        let key = ApiKey::generate(&*self.randomness);
        let rotate: Step<(AccountId, KeyHash, Timestamp), _, _> = |store, (id, key, now)| {
            Box::pin(async move {
                match store.replace_key(id, *key, *now).await? {
                    Some(account) => Ok(account),
                    None => Err(missing_or_revoked(store, id).await),
                }
            })
        };
        let target = Target::of::<RotateAccountKey>(id, action);
        let args = (id.clone(), key.hash(), self.clock.now());
        let rotated = self.audited(target, args, |store, (id, ..)| Box::pin(before(store, id)), rotate, described);
        Ok((rotated.await?, key))
    }
}

/// An account before an action.
async fn before(store: &dyn FullStore, id: &AccountId) -> Result<Option<String>, AdminError> {
    Ok(described(&locked(store, id).await?))
}

fn described(account: &Account) -> Option<String> {
    json(&AccountDocument::from(account))
}

fn matches(account: &Account, lower_case: &str) -> bool {
    let texts = [
        Some(account.id.as_str().to_lowercase()),
        Some(account.agent_name.as_str().to_lowercase()),
        account.email.as_ref().map(|email| email.as_str().to_lowercase()),
        account.payer.map(|payer| payer.address.to_string()),
    ];
    texts.into_iter().flatten().any(|text| text.contains(lower_case))
}

/// The account with this limit on tokens, if one is given.
async fn with_token_limit(
    store: &dyn FullStore,
    account: Account,
    tokens_per_minute: Option<u32>,
) -> Result<Account, AdminError> {
    match tokens_per_minute {
        Some(limit) => store.set_token_limit(&account.id, limit).await?.ok_or_else(|| no_account(&account.id)),
        None => Ok(account),
    }
}

fn changed(limits: RateLimits, per_minute: Option<u32>, per_day: Option<u32>) -> RateLimits {
    RateLimits::per_minute(per_minute.unwrap_or(limits.requests_per_minute))
        .and_per_day(per_day.unwrap_or(limits.requests_per_day))
}
