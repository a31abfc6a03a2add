//! Child accounts: accounts of a customer's customers, which the customer creates, fills and closes.
//!
//! A child has keys, limits, usage and receipts of its own, and cannot see who its parent is.

use std::collections::BTreeMap;
use std::sync::Arc;

use sha3::{Digest, Sha3_256};

use crate::access::account::{Account, AccountId, AgentName, RateLimits};
use crate::access::credentials::Caller;
use crate::access::key::{ApiKey, KeyFault};
use crate::access::role::Right;
use crate::access::succession::{ROTATION_KEY_MIN, derived_key};
use crate::charging::delivery::{IdempotencyKey, Repetition};
use crate::clock::Day;
use crate::error::{ChildAccountError, Error};
use crate::money::credits::Credits;
use crate::random::SystemRandomness;
use crate::service::Access;
use crate::service::fields::{Fields, known_cursor, within};
use crate::service::metering::Service;
use crate::store::{ChildAccountStore, ChildClosed, ChildCreated, CreditMove, CreditsMoved, Cursor, NewAccount};
use crate::usage::DayRange;
use crate::wire::{
    ChangeChildRequest, ChildAccountResponse, ChildAccountsDocument, ChildUsageEntry, ChildrenDay,
    ChildrenUsageDocument, ClosedChildResponse, CreateChildRequest, IssuedChildResponse, MoveCreditsRequest,
    MovedCreditsResponse,
};

/// The most child accounts in one response.
const MAX_ENTRIES: u32 = 100;
/// The most days of usage.
const MAX_DAYS: u32 = 90;
/// Separates the first keys of child accounts from all other derived keys.
const FIRST_KEY: &[u8] = b"metering: the first key of a child account";
/// Separates the hashes of requests that move credits from all others.
const MOVE: &[u8] = b"metering: credits that move ";

/// Child accounts, from [`Service::child_accounts`].
#[derive(Debug, Clone, Copy)]
pub struct ChildAccounts<'s> {
    access: &'s Access,
    store: Option<&'s dyn ChildAccountStore>,
    most: u32,
}

impl Service {
    /// Offers child accounts, up to the configured number for each account. Without this, the service refuses them.
    ///
    /// `store` must be the service's own store.
    #[must_use]
    pub fn with_child_accounts(mut self, store: Arc<dyn ChildAccountStore>) -> Self {
        self.child_accounts = Some(store);
        self
    }

    /// Child accounts.
    #[must_use]
    pub fn child_accounts(&self) -> ChildAccounts<'_> {
        let (store, most) = (self.child_accounts.as_deref(), self.config.max_child_accounts);
        ChildAccounts { access: &self.access, store, most }
    }
}

impl<'s> ChildAccounts<'s> {
    /// Creates a child of the caller's account, without credits.
    ///
    /// With an idempotency key of at least 32 characters, the same request gets the same account and key again, for as
    /// long as the caller's secret and the child's key stay the same.
    ///
    /// ```
    /// use metering_core::charging::IdempotencyKey;
    /// use metering_core::wire::{CreateChildRequest, MoveCreditsRequest};
    /// use metering_core::{Catalogue, Service, ServiceConfig};
    /// use metering_sqlite::SqliteStore;
    /// # use std::sync::Arc;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let store = Arc::new(SqliteStore::in_memory()?);
    /// let config = ServiceConfig { max_child_accounts: 10, ..ServiceConfig::default() };
    /// let service = Service::start(store.clone(), Catalogue::default(), config).with_child_accounts(store);
    /// let (_, key) = service.open_account("reseller", "5".parse()?).await?;
    ///
    /// let request = CreateChildRequest { agent_name: Some("customer".to_owned()), rate_limits: None };
    /// let child = service.child_accounts().create(&key, &request, None).await?;
    /// let once = IdempotencyKey::parse("8e03978e-40d5-43e8-bc93-6894a57f9324")?;
    /// let two = MoveCreditsRequest { credits: Some("2".parse()?) };
    /// for _ in 0..2 {
    ///     let moved = service.child_accounts().move_credits(&key, &child.data.org_id, &two, Some(&once)).await?;
    ///     assert_eq!((moved.credit_balance, moved.data.credit_balance), ("3".parse()?, "2".parse()?));
    /// }
    /// assert_eq!(service.usage().balance(child.api_key.key()).await?.credit_balance, "2".parse()?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Unauthorized`] without the first key or an owner's session; [`Error::ValidationFailed`]; [`ChildAccountError`];
    /// or when the store fails.
    pub async fn create(
        self,
        caller: impl Into<Caller<'_>>,
        request: &CreateChildRequest,
        idempotency_key: Option<&IdempotencyKey>,
    ) -> Result<IssuedChildResponse, Error> {
        let caller = caller.into();
        let parent = self.access.first_holder(caller, Right::Own).await?.account;
        let store = self.store()?;
        let mut fields = Fields::default();
        let name: Option<AgentName> = fields.parsed("agent_name", request.agent_name.as_deref());
        let limits = request.rate_limits.unwrap_or(parent.limits);
        check_limits(&mut fields, limits, &parent);
        let name = name.filter(|_| fields.is_empty());
        let Some(name) = name else { return Err(fields.into_error()) };
        let key = match idempotency_key {
            Some(once) => {
                let proof = caller.proof().ok_or(Error::Unauthorized)?;
                let derived = derived_key(FIRST_KEY, proof, once);
                derived.map_err(|problem| Error::field("Idempotency-Key", problem))?
            }
            None => ApiKey::generate(&SystemRandomness),
        };
        let (id, hash) = (AccountId::generate(&SystemRandomness), key.hash());
        let new = NewAccount { limits, ..NewAccount::new(id, name.clone(), hash, self.access.now()) };
        let child = match store.create_child(&parent.id, new, self.most).await? {
            ChildCreated::Account(account) => account,
            // The same request made it before, unless that was for another account. Its key may have been replaced since.
            ChildCreated::KeyUsed => {
                let made = self.access.store.account_by_key(&hash).await?;
                let made = made.ok_or(Error::Repeated(Repetition::UsedUp))?;
                let child = store.child_account(&parent.id, &made.id).await?;
                child.filter(|child| child.agent_name == name).ok_or(Error::Repeated(Repetition::UsedUp))?
            }
            ChildCreated::NoSuchParent => return Err(Error::KeyRefused(KeyFault::NotLive)),
            ChildCreated::IsChild => return Err(ChildAccountError::IsChild.into()),
            ChildCreated::TooMany => return Err(ChildAccountError::TooMany.into()),
        };
        Ok(IssuedChildResponse { api_key: key.into(), data: (&child).into() })
    }

    /// Changes the rate limits of a child and its limit on tokens, to at most those of the caller's account. If only one of
    /// them is written before the store fails, repeat the request.
    ///
    /// # Errors
    /// As [`ChildAccounts::create`].
    pub async fn change(
        self,
        caller: impl Into<Caller<'_>>,
        id: &str,
        request: &ChangeChildRequest,
    ) -> Result<ChildAccountResponse, Error> {
        let parent = self.access.first_holder(caller.into(), Right::Own).await?.account;
        let child = self.child(&parent.id, id).await?;
        if child.revoked_at.is_some() {
            return Err(ChildAccountError::NoSuchChild.into());
        }
        let mut fields = Fields::default();
        let (limits, tokens) = (request.rate_limits, request.tokens_per_minute);
        if tokens.is_none() {
            fields.required("rate_limits", limits);
        }
        if let Some(limits) = limits {
            check_limits(&mut fields, limits, &parent);
        }
        if tokens.is_some_and(|tokens| !is_at_most(tokens, parent.tokens_per_minute)) {
            fields.wrong("tokens_per_minute", "must not exceed that of the parent account");
        }
        if !fields.is_empty() {
            return Err(fields.into_error());
        }
        let (store, mut child) = (&self.access.store, child);
        if let Some(limits) = limits {
            child = store.set_limits(&child.id, limits).await?.ok_or(ChildAccountError::NoSuchChild)?;
        }
        if let Some(tokens) = tokens {
            child = store.set_token_limit(&child.id, tokens).await?.ok_or(ChildAccountError::NoSuchChild)?;
        }
        Ok(ChildAccountResponse { data: (&child).into() })
    }

    /// The children of the caller's account with their balances, oldest first: at most `limit` (1 to 100) after `after`.
    ///
    /// # Errors
    /// As [`ChildAccounts::create`].
    pub async fn list(
        self,
        caller: impl Into<Caller<'_>>,
        after: Option<&str>,
        limit: u32,
    ) -> Result<ChildAccountsDocument, Error> {
        let parent = self.access.first_holder(caller.into(), Right::Read).await?.account.id;
        let limit = within("limit", limit, MAX_ENTRIES)?;
        let after = after.map(Cursor::new);
        let page = known_cursor(self.store()?.child_accounts(&parent, after.as_ref(), limit).await)?;
        let data = page.items.iter().map(Into::into).collect();
        Ok(ChildAccountsDocument { data, next: page.next.map(|next| next.as_str().to_owned()) })
    }

    /// A child of the caller's account.
    ///
    /// # Errors
    /// As [`ChildAccounts::create`].
    pub async fn get(self, caller: impl Into<Caller<'_>>, id: &str) -> Result<ChildAccountResponse, Error> {
        let parent = self.access.first_holder(caller.into(), Right::Read).await?.account.id;
        let child = self.child(&parent, id).await?;
        Ok(ChildAccountResponse { data: (&child).into() })
    }

    /// The usage of all children of the caller's account over the last `days` UTC days (1 to 90), in one read.
    ///
    /// # Errors
    /// As [`ChildAccounts::create`].
    pub async fn usage(self, caller: impl Into<Caller<'_>>, days: u32) -> Result<ChildrenUsageDocument, Error> {
        let parent = self.access.first_holder(caller.into(), Right::Read).await?.account.id;
        let days = within("days", days, MAX_DAYS)?;
        let window = DayRange::last_days(self.access.now(), days);
        let mut data: Vec<ChildUsageEntry> = Vec::new();
        let mut by_day: BTreeMap<Day, (u64, Credits)> = BTreeMap::new();
        for used in self.store()?.child_usage(&parent, window).await? {
            let org_id = used.account.to_string();
            // The rows of one account are consecutive.
            match data.last_mut().filter(|last| last.org_id == org_id) {
                Some(last) => {
                    last.usage_events = last.usage_events.saturating_add(used.usage_events);
                    last.credits_used = sum(last.credits_used, used.credits_used)?;
                }
                None => {
                    let (usage_events, credits_used) = (used.usage_events, used.credits_used);
                    data.push(ChildUsageEntry { org_id, usage_events, credits_used });
                }
            }
            let (events, credits) = by_day.entry(used.day).or_default();
            (*events, *credits) = (events.saturating_add(used.usage_events), sum(*credits, used.credits_used)?);
        }
        let day = |(day, (usage_events, credits_used)): (Day, _)| ChildrenDay {
            date: day.to_string(),
            usage_events,
            credits_used,
        };
        Ok(ChildrenUsageDocument { window_days: days, data, by_day: by_day.into_iter().map(day).collect() })
    }

    /// Gives credits to a child, or, with an amount below zero, takes back at most the credits given. Both accounts
    /// change together, once for each idempotency key, which is required.
    ///
    /// # Errors
    /// As [`ChildAccounts::create`]; [`Error::Repeated`] when the idempotency key moved something else.
    pub async fn move_credits(
        self,
        caller: impl Into<Caller<'_>>,
        id: &str,
        request: &MoveCreditsRequest,
        idempotency_key: Option<&IdempotencyKey>,
    ) -> Result<MovedCreditsResponse, Error> {
        let parent = self.access.first_holder(caller.into(), Right::Own).await?.account.id;
        let mut fields = Fields::default();
        let amount = fields.required("credits", request.credits).filter(|amount| *amount != Credits::ZERO);
        if amount.is_none() && fields.is_empty() {
            fields.wrong("credits", "must not be 0");
        }
        let once = fields.required("Idempotency-Key", idempotency_key);
        if once.is_some_and(|once| once.as_str().len() < ROTATION_KEY_MIN) {
            fields.wrong("Idempotency-Key", format_args!("must have at least {ROTATION_KEY_MIN} characters"));
        }
        let (Some(amount), Some(once), true) = (amount, once, fields.is_empty()) else {
            return Err(fields.into_error());
        };
        let child: AccountId = id.parse().map_err(|_| ChildAccountError::NoSuchChild)?;
        let request = Sha3_256::new_with_prefix(MOVE).chain_update(once.as_str()).finalize().into();
        let wanted = CreditMove { parent, request, child, amount, at: self.access.now() };
        match self.store()?.move_credits(wanted).await? {
            CreditsMoved::Moved { parent, child } => {
                Ok(MovedCreditsResponse { credit_balance: parent.totals.balance, data: (&*child).into() })
            }
            CreditsMoved::NoSuchChild => Err(ChildAccountError::NoSuchChild.into()),
            CreditsMoved::OtherRequest => Err(Error::Repeated(Repetition::OtherRequest)),
            CreditsMoved::NotEnough(left) => Err(ChildAccountError::NotEnough(left).into()),
            CreditsMoved::NotGiven(most) => Err(ChildAccountError::NotGiven(most).into()),
            CreditsMoved::OutOfRange => Err(ChildAccountError::OutOfRange.into()),
        }
    }

    /// Replaces the keys of a child whose first key is lost, as an operator does for other accounts.
    ///
    /// # Errors
    /// As [`ChildAccounts::create`].
    pub async fn rotate(self, caller: impl Into<Caller<'_>>, id: &str) -> Result<IssuedChildResponse, Error> {
        let parent = self.access.first_holder(caller.into(), Right::Own).await?.account.id;
        let child = self.child(&parent, id).await?;
        let key = ApiKey::generate(&SystemRandomness);
        let replaced = self.access.store.replace_key(&child.id, key.hash(), self.access.now()).await?;
        let account = replaced.ok_or(ChildAccountError::NoSuchChild)?;
        Ok(IssuedChildResponse { api_key: key.into(), data: (&account).into() })
    }

    /// Closes a child: its credits return to the parent, and its keys stop working. It is still listed. Refused while
    /// it has credits that did not come from its parent.
    ///
    /// # Errors
    /// As [`ChildAccounts::create`].
    pub async fn close(self, caller: impl Into<Caller<'_>>, id: &str) -> Result<ClosedChildResponse, Error> {
        let parent = self.access.first_holder(caller.into(), Right::Own).await?.account.id;
        let id: AccountId = id.parse().map_err(|_| ChildAccountError::NoSuchChild)?;
        match self.store()?.close_child(&parent, &id, self.access.now()).await? {
            ChildClosed::Closed(credits_returned) => Ok(ClosedChildResponse { closed: true, credits_returned }),
            ChildClosed::NoSuchChild => Err(ChildAccountError::NoSuchChild.into()),
            ChildClosed::InProgress(held) => Err(ChildAccountError::InProgress(held).into()),
            ChildClosed::Paying => Err(ChildAccountError::Paying.into()),
            ChildClosed::Owes(balance) => Err(ChildAccountError::Owes(balance).into()),
            ChildClosed::HasOwn(own) => Err(ChildAccountError::HasOwn(own).into()),
            ChildClosed::OutOfRange => Err(ChildAccountError::OutOfRange.into()),
        }
    }

    async fn child(self, parent: &AccountId, id: &str) -> Result<Account, Error> {
        let id: AccountId = id.parse().map_err(|_| ChildAccountError::NoSuchChild)?;
        Ok(self.store()?.child_account(parent, &id).await?.ok_or(ChildAccountError::NoSuchChild)?)
    }

    fn store(self) -> Result<&'s dyn ChildAccountStore, Error> {
        Ok(self.store.filter(|_| self.most > 0).ok_or(ChildAccountError::NotOffered)?)
    }
}

fn check_limits(fields: &mut Fields, limits: RateLimits, parent: &Account) {
    if !is_within(limits, parent.limits) {
        fields.wrong("rate_limits", "must not exceed those of the parent account");
    }
}

/// Whether limits allow at most as much as others.
const fn is_within(limits: RateLimits, most: RateLimits) -> bool {
    is_at_most(limits.requests_per_minute, most.requests_per_minute)
        && is_at_most(limits.requests_per_day, most.requests_per_day)
}

/// Whether a limit allows at most as much as another. 0 means no limit.
const fn is_at_most(limit: u32, most: u32) -> bool {
    most == 0 || (limit != 0 && limit <= most)
}

fn sum(one: Credits, other: Credits) -> Result<Credits, Error> {
    one.checked_add(other).ok_or(Error::Internal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_has_at_most_the_limits_of_its_parent() {
        let limits = |minute, day| RateLimits::per_minute(minute).and_per_day(day);
        // child, parent, within
        let table = [
            (limits(1, 1), limits(1, 1), true),
            (limits(1, 1), limits(0, 0), true),
            (limits(0, 0), limits(0, 0), true),
            (limits(0, 1), limits(1, 1), false),
            (limits(1, 0), limits(1, 1), false),
            (limits(2, 1), limits(1, 1), false),
        ];
        for (child, parent, expected) in table {
            assert_eq!(is_within(child, parent), expected, "{child:?} {parent:?}");
        }
    }
}
